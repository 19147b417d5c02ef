use std::io;
use std::path::{Path, PathBuf};

use f2_files::write_text_atomically;

use super::Report;

impl Report {
    /// Writes `report.html`, every table as `tables/NAME.{md,tex,csv,json}` and every figure as
    /// `figures/NAME.svg`. Returns the page's path, or the path that could not be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, (PathBuf, io::Error)> {
        let tables = folder.join("tables");
        for named in self.tables() {
            let table = &named.table;
            let contents = [
                ("md", table.to_markdown()),
                ("tex", table.to_latex()),
                ("csv", table.to_csv()),
                ("json", table.to_json()),
            ];
            for (ending, text) in contents {
                write(&tables, &format!("{}.{ending}", named.name), &text)?;
            }
        }
        let figures = folder.join("figures");
        for named in self.figures() {
            write(&figures, &format!("{}.svg", named.name), &named.figure.to_svg())?;
        }
        write(folder, "report.html", &self.to_html())
    }
}

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, (PathBuf, io::Error)> {
    let path = folder.join(name);
    let written = std::fs::create_dir_all(folder).and_then(|()| write_text_atomically(&path, text));
    match written {
        Ok(()) => Ok(path),
        Err(error) => Err((path, error)),
    }
}
