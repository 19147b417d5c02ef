//! `f2 bench products`: how fast matrix products are on every instruction set of the processor.

use std::process::Command;

use clap::Args;
use f2_engine::{Cpu, ProductSpeeds, Simd};
use f2_report::{Align, Table};
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Kind, Outcome};
use crate::output;
use crate::verbs::flags::Threads;

/// Time matrix products of the shapes that matter, on every instruction set, and the peak.
///
/// The peak is the speed of a block in registers and the first cache. Shapes: a large linear layer,
/// a weight's gradient, many rows with few columns, a few rows (one step of generation), and the
/// scores of attention heads.
#[derive(Args)]
#[command(after_help = "Example:\n  f2 bench products --threads 2 --json")]
pub(super) struct BenchProducts {
    #[command(flatten)]
    threads: Threads,
    /// Only the instruction set in use, which `F2_SIMD` chooses.
    #[arg(long)]
    only_used: bool,
    /// Print one line of JSON for each instruction set and precision.
    #[arg(long)]
    json: bool,
}

/// One instruction set in one precision; speeds in GFLOP/s.
#[derive(Serialize, Deserialize)]
struct Line {
    simd: String,
    precision: String,
    threads: usize,
    peak: f64,
    products: Vec<Product>,
}

#[derive(Serialize, Deserialize)]
struct Product {
    shape: String,
    gflops: f64,
}

impl BenchProducts {
    pub(super) fn run(self) -> Outcome {
        let lines = if self.only_used { self.measure()? } else { self.measure_all()? };
        if self.json {
            let text: String = lines.iter().map(|line| to_json(line) + "\n").collect();
            return output::print(&text);
        }
        output::print(&table(&lines))
    }

    /// Measures with the instruction set this process uses, in every precision it has.
    fn measure(&self) -> Result<Vec<Line>, Failure> {
        let threads = self.threads.count();
        let device = |error: f2_engine::Error| Failure::new(Kind::Device, error);
        let mut lines =
            vec![self.line(
                "f32",
                &Cpu::new(threads).and_then(|cpu| cpu.product_speeds()).map_err(device)?,
            )];
        if Simd::has_bf16() {
            let speeds = Cpu::with_bf16(threads).and_then(|cpu| cpu.product_speeds());
            lines.push(self.line("bf16", &speeds.map_err(device)?));
        }
        Ok(lines)
    }

    fn line(&self, precision: &str, speeds: &ProductSpeeds) -> Line {
        let product = |&(shape, speed): &(&str, f64)| Product {
            shape: shape.to_owned(),
            gflops: speed / 1e9,
        };
        Line {
            simd: Simd::used().name().to_owned(),
            precision: precision.to_owned(),
            threads: self.threads.count(),
            peak: speeds.peak / 1e9,
            products: speeds.shapes.iter().map(product).collect(),
        }
    }

    /// Measures every instruction set in a process of its own: a process uses only one.
    fn measure_all(&self) -> Result<Vec<Line>, Failure> {
        let failed = |reason: String| {
            Failure::new(Kind::Device, format!("cannot measure in another process: {reason}"))
        };
        let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
        let mut lines = Vec::new();
        for simd in Simd::available().into_iter().rev() {
            let threads = self.threads.count().to_string();
            let output = Command::new(&program)
                .args(["bench", "products", "--only-used", "--json", "--threads", &threads])
                .env("F2_SIMD", simd.word())
                .output()
                .map_err(|error| failed(error.to_string()))?;
            if !output.status.success() {
                return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
            }
            for line in String::from_utf8_lossy(&output.stdout).lines() {
                lines.push(serde_json::from_str(line).map_err(|error| failed(error.to_string()))?);
            }
        }
        Ok(lines)
    }
}

fn to_json(line: &Line) -> String {
    serde_json::to_string(line).expect("words and numbers have a JSON form")
}

/// A row for each instruction set and precision, with the share of the peak.
fn table(lines: &[Line]) -> String {
    let Some(first) = lines.first() else { return String::new() };
    let names = ["instructions", "precision"].map(|name| (name, Align::Left));
    let shapes = first.products.iter().map(|product| (product.shape.as_str(), Align::Right));
    let mut table = Table::new(names.into_iter().chain([("peak", Align::Right)]).chain(shapes));
    for line in lines {
        let shares = line.products.iter().map(|product| {
            let percent = 100.0 * product.gflops / line.peak;
            format!("{:.0} ({percent:.0} %)", product.gflops).into()
        });
        let peak = format!("{:.0}", line.peak);
        let start = [line.simd.as_str().into(), line.precision.as_str().into(), peak.into()];
        table.row(start.into_iter().chain(shares));
    }
    format!(
        "GFLOP/s on {} threads, and the share of the peak\n\n{}",
        first.threads,
        table.to_terminal(output::terminal())
    )
}
