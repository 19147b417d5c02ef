use std::fmt::Write as _;

use crate::markup::escape;
use crate::results::{Continuation, SampleResult, SampleToken};

const BANDS: [&str; 4] = ["frequent", "medium", "rare", "very rare"];

/// The key to the colours, then a block for each prefix. The first is open.
pub(super) fn html(samples: &[SampleResult]) -> String {
    let keys = BANDS
        .iter()
        .enumerate()
        .map(|(band, name)| format!("<span class=\"token band{band}\">{name}</span>\n"));
    let mut out = format!("<p class=\"key\">{}</p>\n", keys.collect::<String>());
    for (place, sample) in samples.iter().enumerate() {
        let open = if place == 0 { " open" } else { "" };
        let texts: String = sample.continuations.iter().map(continuation).collect();
        let _ = write!(
            out,
            "<details class=\"sample\"{open}><summary><q>{}</q></summary>\n\
             <div class=\"texts\">\n{texts}</div></details>\n",
            escape(sample.prefix.trim())
        );
    }
    out
}

fn continuation(text: &Continuation) -> String {
    let rare = text.very_rare().map_or_else(String::new, |share| {
        format!(" <small>{:.1} % very rare</small>", 100.0 * share)
    });
    let tokens: String = text.tokens.iter().map(token).collect();
    format!(
        "<article><h3>{}{rare}</h3>\n<p class=\"tokens\" tabindex=\"0\">{tokens}</p></article>\n",
        escape(&text.name)
    )
}

/// A token, and what the style sheet shows of it to who points at it.
fn token(token: &SampleToken) -> String {
    let band = usize::from(token.band).min(3);
    let mut hint = BANDS[band].to_owned();
    if let Some(class) = token.class {
        let _ = write!(hint, " · class {class}");
    }
    if let Some(probability) = token.probability {
        let _ = write!(hint, " · probability {}", percent(probability));
    }
    let text = escape(&token.text);
    format!("<span class=\"token band{band}\" data-hint=\"{}\">{text}</span>", escape(&hint))
}

/// A probability with two digits that mean something.
fn percent(probability: f64) -> String {
    let percent = 100.0 * probability;
    match percent {
        _ if percent >= 10.0 => format!("{percent:.0} %"),
        _ if percent >= 1.0 => format!("{percent:.1} %"),
        _ if percent >= 0.01 => format!("{percent:.2} %"),
        _ => "below 0.01 %".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_carries_its_band_class_and_probability() {
        let shown = token(&SampleToken {
            text: " <b>".to_owned(),
            band: 3,
            class: Some(7),
            probability: Some(0.0312),
        });
        assert_eq!(
            shown,
            "<span class=\"token band3\" data-hint=\"very rare · class 7 · probability 3.1 %\"> \
             &lt;b&gt;</span>"
        );
        assert_eq!(percent(0.000_001), "below 0.01 %");
    }
}
