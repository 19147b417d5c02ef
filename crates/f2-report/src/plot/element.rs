//! Elements of an SVG document.

use std::fmt::{self, Write as _};

use crate::markup::escape;

/// An element of an SVG document, with its content.
#[derive(Clone, Debug)]
pub(super) struct Element {
    name: &'static str,
    attributes: String,
    content: String,
}

/// A value of an attribute.
pub(super) trait Attribute {
    fn write(&self, out: &mut String);
}

impl Attribute for str {
    fn write(&self, out: &mut String) {
        out.push_str(&escape(self));
    }
}

impl Attribute for String {
    fn write(&self, out: &mut String) {
        self.as_str().write(out);
    }
}

impl Attribute for f64 {
    fn write(&self, out: &mut String) {
        out.push_str(&length(*self));
    }
}

impl<T: Attribute + ?Sized> Attribute for &T {
    fn write(&self, out: &mut String) {
        (**self).write(out);
    }
}

impl Element {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, attributes: String::new(), content: String::new() }
    }

    /// An element styled by a class of the style sheet.
    pub(super) fn of_class(name: &'static str, class: &str) -> Self {
        Self::new(name).set("class", class)
    }

    /// A line of text whose baseline starts, centres or ends at a point.
    pub(super) fn text(class: &str, x: f64, y: f64, anchor: &str, text: &str) -> Self {
        let place = Self::of_class("text", class).set("x", x).set("y", y);
        place.set("text-anchor", anchor).words(text)
    }

    pub(super) fn line(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Self {
        Self::of_class("line", class).set("x1", x1).set("y1", y1).set("x2", x2).set("y2", y2)
    }

    pub(super) fn rectangle(class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) -> Self {
        let place = Self::of_class("rect", class).set("x", x).set("y", y);
        place.set("width", width).set("height", height)
    }

    pub(super) fn set(mut self, name: &str, value: impl Attribute) -> Self {
        let _ = write!(self.attributes, " {name}=\"");
        value.write(&mut self.attributes);
        self.attributes.push('"');
        self
    }

    pub(super) fn with(mut self, child: &Self) -> Self {
        let _ = write!(self.content, "{child}");
        self
    }

    pub(super) fn with_all(self, children: &[Self]) -> Self {
        children.iter().fold(self, Self::with)
    }

    /// The tooltip.
    pub(super) fn hint(self, text: &str) -> Self {
        self.with(&Self::new("title").words(text))
    }

    /// Sets text content.
    pub(super) fn words(mut self, text: &str) -> Self {
        self.content = escape(text);
        self
    }

    /// Adds content without escaping, such as a style sheet.
    pub(super) fn raw(mut self, content: &str) -> Self {
        self.content.push_str(content);
        self
    }
}

impl fmt::Display for Element {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, attributes, content } = self;
        if content.is_empty() {
            writeln!(out, "<{name}{attributes}/>")
        } else if ["text", "title", "desc"].contains(name) {
            writeln!(out, "<{name}{attributes}>{content}</{name}>")
        } else {
            writeln!(out, "<{name}{attributes}>\n{content}</{name}>")
        }
    }
}

/// A coordinate rounded to a hundredth of a pixel, without trailing zeros.
pub(super) fn length(value: f64) -> String {
    let rounded = (value * 100.0).round() / 100.0;
    // No negative zero.
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_text_stays_text() {
        let hint = Element::new("g").set("class", "a\"b").hint("<b> & \u{1}").to_string();
        assert_eq!(hint, "<g class=\"a&quot;b\">\n<title>&lt;b&gt; &amp; \u{fffd}</title>\n</g>\n");
    }

    #[test]
    fn lengths_are_short() {
        assert_eq!(length(12.0), "12");
        assert_eq!(length(1.0 / 3.0), "0.33");
        assert_eq!(length(-0.001), "0");
    }
}
