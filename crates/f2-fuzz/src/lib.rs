//! Fuzzing: parsers must not crash on randomly changed files.
//!
//! A target is a parser with a folder of seeds, which are valid files. Each input is a seed with a
//! few changes that depend only on the input's number, so that a failure is reproduced from that
//! number. A parser may refuse an input; it must not panic, nor use more memory than is reasonable
//! for the size of the files.
//!
//! `cargo test -p f2-fuzz` tries some thousands of inputs for every target. `F2_FUZZ_INPUTS` sets
//! how many, and `F2_FUZZ_FROM` the first number:
//! `F2_FUZZ_INPUTS=10000000 cargo test --release -p f2-fuzz shards`.

mod changes;
mod memory;
mod random;
mod repair;
mod seeds;

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

pub use memory::Watched;
pub use repair::Repair;
pub use seeds::Seeds;

/// The default number of inputs.
const INPUTS: u64 = 3_000;

/// Memory is measured for one target at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Bytes of memory that any parser may use, for its buffers.
pub const BUFFERS: usize = 4 << 20;

/// Bytes of memory that a parser of tokenizers may use: it compiles their regular expressions, each
/// up to the limit of the engine.
pub const EXPRESSIONS: usize = 64 << 20;

/// Calls `read` on changed seeds, with the folder of the seed's files. Besides the memory allowed
/// for the size of the files it may use `spare` bytes.
///
/// # Panics
/// If `read` panics or uses too much memory; the input is saved, and its number printed.
pub fn fuzz(name: &str, seeds: &Seeds, repair: Repair, spare: usize, read: impl Fn(&Path)) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // In memory if possible: disks are slow, and wear.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let folder = folder.expect("a folder");
    let from = number("F2_FUZZ_FROM").unwrap_or(0);
    let inputs = number("F2_FUZZ_INPUTS").unwrap_or(INPUTS);
    // A folder for each seed, so that only the changed file needs to be written.
    let folders: Vec<_> =
        (0..seeds.len()).map(|seed| folder.path().join(seed.to_string())).collect();
    // Memory allocated once, at first use, must not be attributed to an input.
    folders.iter().enumerate().for_each(|(seed, folder)| {
        seeds.write_to(seed, folder);
        read(folder);
    });
    for number in from..from + inputs {
        let mut random = random::Random::new(number);
        let seed = random.below(seeds.len());
        let folder = &folders[seed];
        let files = seeds.files(seed);
        let (file, whole) = &files[random.below(files.len())];
        let mut bytes = whole.clone();
        changes::change(&mut bytes, seeds, &mut random);
        repair.apply(file, &mut bytes, &mut random);
        let path = folder.join(file);
        fs::write(&path, &bytes).expect("room for a file");
        let size = files.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() + bytes.len();
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| memory::peak_of(|| read(folder))));
        let complaint = match outcome {
            Err(_) => Some("the reader panicked".to_owned()),
            Ok(peak) if peak > memory::allowed(size) + spare => {
                Some(format!("{peak} bytes of memory for {size} bytes of files"))
            }
            Ok(_) => None,
        };
        if let Some(complaint) = complaint {
            let kept = std::env::temp_dir().join(format!("f2-fuzz-{name}-{number}"));
            seeds.write_to(seed, &kept);
            fs::write(kept.join(file), &bytes).expect("room for a file");
            panic!("{name}, input {number}: {complaint}; it is kept as {}", kept.display());
        }
        fs::write(&path, whole).expect("room for a file");
    }
    println!("{name}: {inputs} inputs from {from} on");
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}
