//! The machine: its cores and their load, threads, memory, disk and GPUs.

pub(crate) mod cuda;
mod disk;
mod load;
mod memory;
mod threads;

pub(crate) use disk::free_disk;
pub(crate) use load::load;
pub(crate) use memory::peak_memory;
pub(crate) use threads::avoid_threads_if_unavailable;

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
