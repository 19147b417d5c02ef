//! Writing the page, its tables and its figures to files.

use std::path::{Path, PathBuf};

use f2_files::{WriteError, disk, write_text_atomically};

use super::Report;

impl Report {
    /// Writes `report.html`, every table as `tables/NAME.{md,tex,csv,json}` and every figure as
    /// `figures/NAME.svg`. Returns the page's path.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, WriteError> {
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

fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, WriteError> {
    let path = folder.join(name);
    disk::create_folders(folder).map_err(WriteError::of(&path))?;
    write_text_atomically(&path, text)?;
    Ok(path)
}
