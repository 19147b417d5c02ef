//! Robustness against signals, lost output, other processes in the same folder, faults of the disk
//! at any moment, and random kills.

#![cfg(unix)]

#[path = "../support/mod.rs"]
mod support;

mod faults;
mod locks;
mod lost_output;
mod signals;
mod soak;
mod study;
