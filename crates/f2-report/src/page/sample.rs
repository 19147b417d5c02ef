//! Samples as HTML: tokens coloured by frequency band, repeats underlined.

use std::fmt::Write as _;

use crate::markup::escape;
use crate::results::{SampleResult, SampleText, SampleToken};

const BANDS: [&str; 4] = ["frequent", "medium", "rare", "very rare"];

/// The legend of the colours, then a block for each prefix. The first block is open.
pub(super) fn html(samples: &[SampleResult]) -> String {
    let keys = BANDS
        .iter()
        .enumerate()
        .map(|(band, name)| format!("<span class=\"token band{band}\">{name}</span>\n"));
    let mut out = format!(
        "<p class=\"key\">{}<span class=\"token repeat\">repeated</span>\n</p>\n",
        keys.collect::<String>()
    );
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

fn continuation(text: &SampleText) -> String {
    let repeats = text.repeats();
    let repeated = repeats.iter().filter(|repeated| **repeated).count() as f64;
    let rare = text.very_rare().map_or_else(String::new, |share| {
        let repeated = 100.0 * repeated / repeats.len() as f64;
        format!(" <small>{:.1} % very rare, {repeated:.0} % repeated</small>", 100.0 * share)
    });
    let tokens = text.tokens.iter().zip(repeats);
    let tokens: String = tokens.map(|(each, repeated)| token(each, repeated)).collect();
    format!(
        "<article><h3>{}{rare}</h3>\n<p class=\"tokens\" tabindex=\"0\">{tokens}</p></article>\n",
        escape(&text.name)
    )
}

/// A token, and the hint that the style sheet shows on hover.
fn token(token: &SampleToken, repeated: bool) -> String {
    let band = usize::from(token.band).min(3);
    let mut hint = BANDS[band].to_owned();
    if let Some(class) = token.class {
        let _ = write!(hint, " · class {class}");
    }
    if let Some(probability) = token.probability {
        let _ = write!(hint, " · probability {}", percent(probability));
    }
    if repeated {
        hint.push_str(" · repeated");
    }
    let text = escape(&token.text);
    let class = if repeated { " repeat" } else { "" };
    format!("<span class=\"token band{band}{class}\" data-hint=\"{}\">{text}</span>", escape(&hint))
}

/// A probability in percent, with two significant digits.
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
        let rare = SampleToken {
            text: " <b>".to_owned(),
            band: 3,
            class: Some(7),
            probability: Some(0.0312),
        };
        let shown = token(&rare, false);
        assert_eq!(
            shown,
            "<span class=\"token band3\" data-hint=\"very rare · class 7 · probability 3.1 %\"> \
             &lt;b&gt;</span>"
        );
        let again = token(&rare, true);
        assert!(again.contains("band3 repeat\"") && again.contains("3.1 % · repeated"), "{again}");
        assert_eq!(percent(0.000_001), "below 0.01 %");
    }
}
