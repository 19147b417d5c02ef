//! Damaged model folders: importing ends with a model or an error, and takes no more memory than is
//! in proportion to the files.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use f2_engine::Cpu;
use f2_lm::exchange::ForeignModel;
use f2_lm::run::{Pick, SavedModel};
use proptest::prelude::*;

/// The system's allocator, with counters of the current and the peak memory.
struct Watched;

static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator; the counters do not touch
// its memory.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let used = USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(used, Ordering::Relaxed);
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the promises of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static MEMORY: Watched = Watched;

/// A change to a file.
#[derive(Clone, Debug)]
enum Damage {
    /// A byte becomes another.
    Byte(u8),
    /// The rest is cut off.
    Cut,
    /// Bytes are inserted.
    Insert(Vec<u8>),
    /// A number is replaced by another; the header's length is adjusted.
    Number(String),
}

fn damage() -> impl Strategy<Value = Damage> {
    let numbers = prop_oneof![
        Just("0".to_owned()),
        Just("-1".to_owned()),
        Just("1e308".to_owned()),
        Just(u64::MAX.to_string()),
        Just((u64::MAX / 2 + 1).to_string()),
        Just("4294967295".to_owned()),
        any::<u32>().prop_map(|number| number.to_string()),
        (0_u32..40).prop_map(|number| number.to_string()),
        Just("\"many\"".to_owned()),
        Just("null".to_owned()),
    ];
    prop_oneof![
        1 => any::<u8>().prop_map(Damage::Byte),
        1 => Just(Damage::Cut),
        1 => prop::collection::vec(any::<u8>(), 1..9).prop_map(Damage::Insert),
        4 => numbers.prop_map(Damage::Number),
    ]
}

/// Half of all places are in the first bytes, where headers are.
fn spoil(bytes: &mut Vec<u8>, place: usize, near: bool, damage: &Damage) {
    if bytes.is_empty() {
        return;
    }
    let place = place % if near { bytes.len().min(4_000) } else { bytes.len() };
    match damage {
        Damage::Byte(byte) => bytes[place] = *byte,
        Damage::Cut => bytes.truncate(place),
        Damage::Insert(more) => drop(bytes.splice(place..place, more.iter().copied())),
        Damage::Number(number) => replace_number(bytes, place, number),
    }
}

fn replace_number(bytes: &mut Vec<u8>, place: usize, number: &str) {
    let Some(start) = (place..bytes.len()).find(|at| bytes[*at].is_ascii_digit()) else { return };
    let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    bytes.splice(start..start + digits, number.bytes());
    // Safetensors begin with the length of their header; JSON begins with a brace.
    if let Some((prefix, [b'{', ..])) = bytes.split_first_chunk_mut::<8>() {
        let length = u64::from_le_bytes(*prefix).wrapping_add(number.len() as u64);
        *prefix = length.wrapping_sub(digits as u64).to_le_bytes();
    }
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/gpt2")
}

fn copy_of(folder: &Path) -> (tempfile::TempDir, Vec<PathBuf>) {
    let copy = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let from = entry.unwrap().path();
        let to = copy.path().join(from.file_name().unwrap());
        fs::copy(&from, &to).unwrap();
        files.push(to);
    }
    files.sort();
    (copy, files)
}

fn damaged(files: &[PathBuf], damages: &[(usize, usize, bool, Damage)]) {
    for (file, place, near, damage) in damages {
        let path = &files[file % files.len()];
        let mut bytes = fs::read(path).unwrap();
        spoil(&mut bytes, *place, *near, damage);
        fs::write(path, bytes).unwrap();
    }
}

/// Runs `work` and checks the memory it took against the size of the files.
fn within_reason(files: &[PathBuf], work: impl FnOnce()) -> Result<(), TestCaseError> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let size: u64 = files.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    let before = USED.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    work();
    let most = MOST.load(Ordering::Relaxed).saturating_sub(before);
    // Weights are read one by one; parsed JSON takes many times its text.
    let limit = 40 * size as usize + (1 << 21);
    prop_assert!(most <= limit, "{most} bytes of memory for {size} bytes of files");
    Ok(())
}

/// Memory is measured for one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

proptest! {
    #[test]
    fn no_folder_brings_import_down(
        folder in prop::sample::select(vec!["tied", "untied", "sharded", "bfloat16"]),
        damages in prop::collection::vec((any::<usize>(), any::<usize>(), any::<bool>(), damage()), 1..4),
    ) {
        let (copy, files) = copy_of(&fixtures().join(folder));
        damaged(&files, &damages);
        within_reason(&files, || {
            if let Ok(model) = ForeignModel::open(copy.path()) {
                let _ = model.write(&copy.path().join("model"), &mut |_| true);
            }
        })?;
    }

    #[test]
    fn no_model_brings_loading_down(
        damages in prop::collection::vec((any::<usize>(), any::<usize>(), any::<bool>(), damage()), 1..4),
    ) {
        let good = tempfile::tempdir().unwrap();
        let model = good.path().join("model");
        ForeignModel::open(&fixtures().join("tied")).unwrap().write(&model, &mut |_| true).unwrap();
        let (copy, files) = copy_of(&model);
        damaged(&files, &damages);
        within_reason(&files, || {
            if let Ok(model) = SavedModel::open(copy.path(), Pick::Best) {
                let _ = model.load(Cpu::new(1).unwrap());
            }
        })?;
    }
}
