//! Files that were changed at random, and parsers that must not crash on them.
//!
//! A target is a parser with a folder of seeds: files as they should be. Each input is a seed with
//! a few changes that its number alone decides, so that an input that brought a parser down is
//! made again by its number. A reader may refuse what it is given; it may not panic, and it may
//! not ask for more memory than the files warrant.
//!
//! `cargo test -p f2-fuzz` tries some thousands of inputs of every target. `F2_FUZZ_INPUTS` says
//! how many, and `F2_FUZZ_FROM` from which number on:
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

/// Inputs tried where nothing else is said.
const INPUTS: u64 = 3_000;

/// Memory is watched for one target at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Memory that a reader may take whatever it reads: buffers have their size.
pub const BUFFERS: usize = 4 << 20;

/// Memory that a reader of tokenizers may take: the regular expressions in them are compiled, up
/// to the limit that their engine has for each.
pub const EXPRESSIONS: usize = 64 << 20;

/// Gives changed seeds to a reader, which finds each of them under the path it is handed: the
/// folder of the seed's files. Beside what the files warrant it may take `spare` bytes of memory.
///
/// # Panics
/// When the reader does, or asks for too much memory; the input is saved, and its number printed.
pub fn fuzz(name: &str, seeds: &Seeds, repair: Repair, spare: usize, read: impl Fn(&Path)) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // In memory where there is such a place: disks are slow, and wear.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let folder = folder.expect("a folder");
    let from = number("F2_FUZZ_FROM").unwrap_or(0);
    let inputs = number("F2_FUZZ_INPUTS").unwrap_or(INPUTS);
    // A folder for each seed: only the changed file is written again.
    let folders: Vec<_> =
        (0..seeds.len()).map(|seed| folder.path().join(seed.to_string())).collect();
    // Whatever is made once, at first use, is no reader's waste.
    folders.iter().enumerate().for_each(|(seed, folder)| {
        seeds.lay_out(seed, folder);
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
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| memory::most_used(|| read(folder))));
        let complaint = match outcome {
            Err(_) => Some("the reader panicked".to_owned()),
            Ok(most) if most > memory::warranted(size) + spare => {
                Some(format!("{most} bytes of memory for {size} bytes of files"))
            }
            Ok(_) => None,
        };
        if let Some(complaint) = complaint {
            let kept = std::env::temp_dir().join(format!("f2-fuzz-{name}-{number}"));
            seeds.lay_out(seed, &kept);
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
