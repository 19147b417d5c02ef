//! The driver: compilation and launches of kernels, the stream they run on, copies, and recorded
//! graphs.

mod compile;
mod graph;
mod kernel_cache;
mod kernels;
mod launch;
mod pinned;
mod reading;
#[cfg(test)]
mod signatures;
mod stream;
mod tensor_map;
mod upload;
mod wheels;

pub(super) use compile::cache_folder;
pub use compile::{compile_kernels, nvrtc_is_present};
pub(super) use graph::Recording;
pub(super) use kernels::Kernels;
#[cfg(test)]
pub(super) use launch::Kind;
pub(super) use launch::{Address, Grid, Kernel, kernels};
pub(super) use reading::Reading;
pub(super) use stream::{Stream, find_driver};
pub(super) use tensor_map::TensorMap;
pub(super) use upload::{Lists, Upload};
pub(super) use wheels::load as load_from_wheels;
