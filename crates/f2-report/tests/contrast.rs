//! Contrast of text, lines and bars with their backgrounds by WCAG 2.2, level AA, computed from the
//! style sheets.

use f2_report::{FIGURE_STYLE, LOOKS, Report, Results};

/// Relative luminance of a colour such as `#8a6500` or `#fff`.
fn luminance(colour: &str) -> f64 {
    let digits = colour.strip_prefix('#').unwrap();
    let short = digits.len() == 3;
    let channel = |place: usize| {
        let hex = if short {
            digits[place..=place].repeat(2)
        } else {
            digits[2 * place..2 * place + 2].to_owned()
        };
        let value = f64::from(u8::from_str_radix(&hex, 16).unwrap()) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(0) + 0.7152 * channel(1) + 0.0722 * channel(2)
}

fn contrast(one: &str, other: &str) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// The value that follows `word` in a style sheet.
fn value<'a>(style: &'a str, word: &str) -> &'a str {
    let rest = style.split(word).nth(1).unwrap_or_else(|| panic!("{word}"));
    rest.split([';', ' ', '}']).find(|part| !part.is_empty()).unwrap()
}

/// The light and the dark part of a style sheet.
fn light_and_dark(style: &str) -> [String; 2] {
    let (mut light, mut dark) = (String::new(), String::new());
    for (place, part) in style.split("@media screen and (prefers-color-scheme: dark)").enumerate() {
        let (inside, after) = if place == 0 { ("", part) } else { block(part) };
        dark += inside;
        light += after;
    }
    [light, dark]
}

/// The text up to the end of the outermost braces, and the text that follows.
fn block(text: &str) -> (&str, &str) {
    let mut depth = 0;
    for (place, character) in text.char_indices() {
        depth += match character {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        if depth == 0 && character == '}' {
            return text.split_at(place + 1);
        }
    }
    (text, "")
}

fn page_style() -> String {
    let html = Report::new(&Results::new("Empty")).to_html();
    html.split("<style>").nth(1).unwrap().split("</style>").next().unwrap().to_owned()
}

/// Lines, marks and bars: 3 to 1 with the surface of a figure.
#[test]
fn every_series_stands_out_from_its_figure() {
    for style in light_and_dark(FIGURE_STYLE) {
        let surface = value(&style, ".surface { fill:");
        for series in 0..LOOKS {
            let line = value(&style, &format!(".line.s{series} {{ stroke:"));
            let ratio = contrast(line, surface);
            assert!(ratio >= 3.0, "series {series}, {line} on {surface}: {ratio:.2}");
        }
    }
}

/// Bars of tiles: 3 to 1 with their track, which is a mix of rule and paper.
#[test]
fn every_bar_of_a_tile_stands_out_from_its_track() {
    for style in light_and_dark(&page_style()) {
        let track = mixed(value(&style, "--rule:"), value(&style, "--paper:"), 0.55);
        for series in 1..LOOKS {
            let bar = value(&style, &format!(".s{series} {{ --colour:"));
            let ratio = contrast(bar, &track);
            assert!(ratio >= 3.0, "series {series}, {bar} on {track}: {ratio:.2}");
        }
    }
}

fn mixed(one: &str, other: &str, share: f64) -> String {
    let channel = |colour: &str, place: usize| {
        let digits = colour.trim_start_matches('#');
        let digits = if digits.len() == 3 {
            digits.chars().flat_map(|d| [d, d]).collect()
        } else {
            digits.to_owned()
        };
        f64::from(u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).unwrap())
    };
    let mix = |place| share * channel(one, place) + (1.0 - share) * channel(other, place);
    format!("#{:02x}{:02x}{:02x}", mix(0) as u8, mix(1) as u8, mix(2) as u8)
}

/// Text: 4.5 to 1 with all its backgrounds.
#[test]
fn all_text_can_be_read() {
    for style in light_and_dark(&page_style()) {
        let colour = |name: &str| value(&style, &format!("--{name}:"));
        for ground in ["ground", "paper", "mark", "medium", "rare", "very-rare"] {
            assert!(contrast(colour("ink"), colour(ground)) >= 4.5, "{ground}");
        }
        for (text, ground) in
            [("quiet", "ground"), ("quiet", "paper"), ("accent", "ground"), ("accent", "paper")]
        {
            assert!(contrast(colour(text), colour(ground)) >= 4.5, "{text} on {ground}");
        }
    }
}
