//! What this machine offers to the program.

pub(crate) mod cuda;
mod disk;
mod memory;

pub(crate) use disk::free_disk;
pub(crate) use memory::total_and_available_memory;

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
