//! A report with everything in it, to look at: `cargo run -p f2-report --example report -- FOLDER`.

#[path = "../tests/invented/mod.rs"]
mod invented;

use std::path::PathBuf;

use f2_report::Report;

fn main() -> Result<(), f2_files::WriteError> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    let page = Report::new(&invented::results()).write(&folder)?;
    println!("{}", page.display());
    Ok(())
}
