//! A command and its output, for a snapshot.

use super::Folder;

/// A folder with some files in it.
pub(crate) fn folder(files: &[(&str, &str)]) -> Folder {
    let folder = Folder::new();
    for (name, content) in files {
        folder.write(name, content);
    }
    folder
}

/// The command line, exit code, standard output and standard error of a run.
pub(crate) fn f2(folder: &Folder, arguments: &str) -> String {
    let run = folder.f2(&arguments.split_whitespace().collect::<Vec<_>>());
    format!("$ f2 {arguments}\n{}", rounded(&run.shown()))
}

/// Rounds long fractions to nine digits: the last ones depend on the system's maths library.
fn rounded(text: &str) -> String {
    let number = |part: &str| -> String {
        let digits = part.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        match part.parse::<f64>() {
            Ok(value) if digits > 9 => format!("{value:.9}"),
            _ => part.to_owned(),
        }
    };
    let boundary = |c: char| !(c.is_ascii_digit() || c == '.' || c == '-');
    text.split_inclusive(boundary)
        .map(|piece| match piece.char_indices().next_back() {
            Some((end, last)) if boundary(last) => number(&piece[..end]) + &piece[end..],
            _ => number(piece),
        })
        .collect()
}
