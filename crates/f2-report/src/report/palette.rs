//! The colours of models, the same on the whole page.

use crate::paper::MODELS;
use crate::plot::LOOKS;
use crate::results::Results;

/// The looks for series that are not models.
pub(super) const OTHERS: [usize; 3] = [6, 7, 8];

/// The look of human text.
const HUMAN: usize = 5;

/// The look of every model: fixed for the paper's models and human text; other models take the
/// remaining ones in the order of the results.
pub(super) struct Palette {
    others: Vec<(String, usize)>,
}

impl Palette {
    pub(super) fn new(corpora: &[&Results]) -> Self {
        let scored = corpora.iter().flat_map(|results| &results.scores);
        let scored = scored.flat_map(|set| &set.records).map(|record| &record.name);
        let trained = corpora.iter().flat_map(|results| &results.runs).map(|run| &run.name);
        let transferred = corpora.iter().filter_map(|results| results.transfer.as_ref());
        let transferred = transferred.flat_map(|transfer| &transfer.runs).map(|run| &run.name);
        let mut names: Vec<&String> = Vec::new();
        for name in scored.chain(trained).chain(transferred) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let taken: Vec<usize> = names.iter().filter_map(|name| fixed(name)).collect();
        let free = (0..LOOKS).filter(|look| *look != HUMAN && !taken.contains(look));
        let unnamed = names.into_iter().filter(|name| fixed(name).is_none());
        // If there are more models than looks, some share one.
        let looks = free.chain((0..LOOKS).cycle());
        Self { others: unnamed.cloned().zip(looks).collect() }
    }

    pub(super) fn look(&self, name: &str) -> usize {
        let other = || self.others.iter().find(|(other, _)| other == name).map(|(_, look)| *look);
        fixed(name).or_else(other).unwrap_or(OTHERS[0])
    }
}

fn fixed(name: &str) -> Option<usize> {
    match name {
        "Human" => Some(HUMAN),
        // F² from scratch has the colour of F² in the other tables.
        "From scratch" => fixed("F²-Softmax"),
        _ => MODELS.iter().position(|model| *model == name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ResultRecord;
    use crate::results::{Decoding, ScoreSet};

    #[test]
    fn the_papers_models_keep_their_looks_and_others_take_what_is_left() {
        let record = |name: &str| ResultRecord { name: name.to_owned(), ..Default::default() };
        let mut results = Results::new("t");
        let records = ["mine", "F²-Softmax", "yours"].map(record).to_vec();
        results.scores = vec![ScoreSet::new(Decoding::Greedy, records)];
        let palette = Palette::new(&[&results]);
        let looks = ["MLE", "F²-Softmax", "Human", "mine", "yours"].map(|name| palette.look(name));
        assert_eq!(looks, [0, 4, 5, 0, 1]);
    }
}
