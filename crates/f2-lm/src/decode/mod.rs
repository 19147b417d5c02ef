//! Generation: from a prompt's hidden state to the next token, step by step.
//!
//! A [`Strategy`] says how tokens are chosen and a [`Generator`] applies it to many prompts at
//! once. An F² model is decoded *decoupled* by default: a class first, then a token
//! in it, so that only that class's part of the output matrix is read.
//!
//! A `step` of the `scheduler` feeds the newest token of every running `sequence` to the model.
//! `sampler` then chooses the next tokens from the log-probabilities that `scores` computes: in the
//! class drawn by `class_draw`, among the `candidates` left by penalties and `truncation`. In
//! `deterministic` decoding, error diffusion replaces the random numbers.
//!
//! `sampling` drives the scheduler for one request; `beam` and `contrastive_search` search instead.
//! A server drives the [`Scheduler`] directly: sequences of many requests join and leave one batch,
//! each with its own strategy and, on request, the alternatives to its tokens and its
//! `prompt_scores`.
//!
//! A text depends only on model, prompt, strategy and seed, not on the rest of the batch, the order
//! of the prompts or the number of threads.

mod beam;
mod candidates;
mod checks;
mod class_draw;
mod contrast;
mod contrastive_search;
mod decoding_file;
mod deterministic;
mod distribution;
mod dry;
mod generator;
#[cfg(test)]
mod golden;
mod mirostat;
mod prompt_scores;
mod protocol;
mod sampler;
mod sampling;
mod scheduler;
mod scores;
mod sequence;
mod several;
mod step;
mod stop;
mod strategy;
mod truncation;
mod xtc;

pub use beam::BeamSearch;
pub use class_draw::{ClassDraw, SmallClass, fill_order};
pub use contrast::Contrast;
pub use contrastive_search::ContrastiveSearch;
pub use decoding_file::{DECODING, DecodingKeys};
pub use deterministic::{Context, ErrorDiffusion};
pub use distribution::Distribution;
pub use dry::Dry;
pub use generator::{Continuation, Event, Generated, Generator, Request, Token};
pub use mirostat::Mirostat;
pub use protocol::{Cut, Protocol, ProtocolName, TestSet};
pub use scheduler::{Joining, Output, Scheduler};
pub use scores::Scored;
pub use sequence::{RandomStream, RandomStreams};
pub use several::{generate_against, generate_on};
pub use stop::StopSequences;
pub use strategy::{Factorisation, Strategy};
pub use truncation::*;
pub use xtc::Xtc;

pub(crate) use truncation::Foreign;
