//! Reports with every section, of one corpus and of two, for visual inspection:
//! `cargo run -p f2-report --example report -- FOLDER`.

#[path = "../tests/invented/mod.rs"]
mod invented;

use std::path::PathBuf;

use f2_report::Report;

fn main() -> Result<(), f2_files::WriteError> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    for (name, results) in [("one", invented::results()), ("two", invented::study())] {
        println!("{}", Report::new(&results).write(&folder.join(name))?.display());
    }
    Ok(())
}
