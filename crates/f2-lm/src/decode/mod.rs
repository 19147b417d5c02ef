//! Writing: from a prompt's hidden state to the next token, again and again.
//!
//! A [`Strategy`] says how tokens are chosen and a [`Generator`] applies it to many prompts at
//! once. An F² model is decoded *decoupled* unless asked otherwise: a class first, then a token
//! in it, so that only that class's part of the output matrix is read.
//!
//! A text is a function of model, prompt, strategy and seed alone: not of what else is in the
//! batch, the order of prompts or the number of threads.

mod beam;
mod candidates;
mod class_law;
mod continuation;
mod generator;
#[cfg(test)]
mod golden;
mod law;
mod on_device;
mod protocol;
mod repetition;
mod sampler;
mod scores;
mod slots;
mod strategy;
mod truncation;

pub use class_law::{class_law, fill_order};
pub use continuation::{Continuation, Event, Token};
pub use generator::{Generated, Generator, Request};
pub use law::Law;
pub use protocol::{Cut, Protocol, ProtocolName, TestSet};
pub use strategy::{BeamSearch, ClassDraw, Factorisation, SmallClass, Strategy};
pub use truncation::{min_p, nucleus, top_k, typical};
