//! The values of further metrics and their JSON form: an object by key; for a metric with several
//! orders, an object by order.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Further;
use crate::Measure;

/// The values of the requested further metrics; `None` if one is not defined.
#[derive(Clone, Debug, PartialEq)]
pub struct FurtherMetrics<V = f64> {
    /// In the order of [`Further::ALL`], values in the order of [`Further::orders`].
    values: Vec<(Further, Vec<Option<V>>)>,
}

impl<V> Default for FurtherMetrics<V> {
    fn default() -> Self {
        Self { values: Vec::new() }
    }
}

impl<V: Copy> FurtherMetrics<V> {
    /// Whether no metric was requested.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The requested metrics.
    pub fn metrics(&self) -> impl Iterator<Item = Further> {
        self.values.iter().map(|(metric, _)| *metric)
    }

    /// The value of a metric at one of its orders.
    pub fn get(&self, metric: Further, order: usize) -> Option<V> {
        let (_, values) = self.values.iter().find(|(each, _)| *each == metric)?;
        let place = metric.orders().iter().position(|each| *each == order)?;
        values[place]
    }

    /// Sets the value of a metric at one of its orders. Its values at other orders are `None` until
    /// they are set.
    ///
    /// # Panics
    /// If the metric does not have this order.
    pub fn set(&mut self, metric: Further, order: usize, value: Option<V>) {
        let place = metric.orders().iter().position(|each| *each == order);
        let place = place.expect("an order of the metric");
        let at = self.values.iter().position(|(each, _)| *each == metric).unwrap_or_else(|| {
            let rank = |metric: Further| Further::ALL.iter().position(|each| *each == metric);
            let at = self.values.partition_point(|(each, _)| rank(*each) < rank(metric));
            self.values.insert(at, (metric, vec![None; metric.orders().len()]));
            at
        });
        self.values[at].1[place] = value;
    }

    /// Maps every value that is present.
    pub(crate) fn map<W: Copy>(
        &self,
        put: &mut impl FnMut(Measure, V) -> Option<W>,
    ) -> FurtherMetrics<W> {
        let mut mapped = FurtherMetrics::default();
        for (metric, values) in &self.values {
            for (order, value) in metric.orders().iter().zip(values) {
                let value = value.and_then(|value| put(Measure::Further(*metric, *order), value));
                mapped.set(*metric, *order, value);
            }
        }
        mapped
    }
}

/// The values of a metric with several orders, serialized as an object by order.
struct ByOrder<'a, V>(Further, &'a [Option<V>]);

impl<V: Serialize> Serialize for ByOrder<'_, V> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_map(self.0.orders().iter().map(ToString::to_string).zip(self.1))
    }
}

impl<V: Serialize> Serialize for FurtherMetrics<V> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(Some(self.values.len()))?;
        for (metric, values) in &self.values {
            if metric.has_orders() {
                map.serialize_entry(metric.key(), &ByOrder(*metric, values))?;
            } else {
                map.serialize_entry(metric.key(), &values[0])?;
            }
        }
        map.end()
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Entry<V> {
    One(V),
    ByOrder(BTreeMap<String, Option<V>>),
    Missing(()),
    Unknown(serde::de::IgnoredAny),
}

impl<'de, V: Copy + Deserialize<'de>> Deserialize<'de> for FurtherMetrics<V> {
    /// Unknown metrics and orders are ignored: a later version may have more.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let entries = BTreeMap::<String, Entry<V>>::deserialize(from)?;
        let mut all = Self::default();
        for (key, entry) in entries {
            let Some(metric) = Further::of_key(&key) else { continue };
            match entry {
                Entry::Missing(()) => all.set(metric, metric.orders()[0], None),
                Entry::One(value) if !metric.has_orders() => all.set(metric, 1, Some(value)),
                Entry::One(_) | Entry::Unknown(_) => {}
                Entry::ByOrder(values) => {
                    for order in metric.orders() {
                        let value = values.get(&order.to_string()).copied().flatten();
                        all.set(metric, *order, value);
                    }
                }
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interval;

    #[test]
    fn values_are_written_by_key_and_order_and_read_back() {
        let mut values = FurtherMetrics::default();
        values.set(Further::Mattr, 1, Some(0.75));
        values.set(Further::RepL, 128, Some(0.5));
        values.set(Further::RepL, 16, Some(0.25));
        values.set(Further::Zipf, 1, None);
        let json = serde_json::to_string(&values).unwrap();
        let expected = r#"{"rep_l":{"16":0.25,"32":null,"128":0.5},"zipf":null,"mattr":0.75}"#;
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<FurtherMetrics>(&json).unwrap(), values);
        assert_eq!(values.get(Further::RepL, 128), Some(0.5));
        assert_eq!(values.get(Further::Entropy, 1), None);
    }

    #[test]
    fn intervals_are_pairs_and_what_is_unknown_is_left_out() {
        let json = r#"{"rep_n":{"2":[0.1,0.2],"9":[0,1]},"mattr":[0.5,0.6],"invented":3}"#;
        let intervals: FurtherMetrics<Interval> = serde_json::from_str(json).unwrap();
        assert_eq!(intervals.get(Further::RepN, 2), Some(Interval { low: 0.1, high: 0.2 }));
        assert_eq!(intervals.get(Further::Mattr, 1), Some(Interval { low: 0.5, high: 0.6 }));
        assert_eq!(intervals.metrics().count(), 2);
    }
}
