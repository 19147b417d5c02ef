//! Survival of signals, lost output, other processes at the same folder, a disk
//! that fails at any moment, and kills at random.

#![cfg(unix)]

#[path = "../support/mod.rs"]
mod support;

mod faults;
mod locks;
mod lost_output;
mod signals;
mod soak;
mod study;
