//! Training by several ranks: the batch in shards, the optimiser in slices.
//!
//! A batch is cut into shards, and their gradients are added along a fixed tree ([`Shards`]),
//! whichever ranks computed them: any number of ranks gives the same bits. Each rank owns a slice
//! of the moments and updates that slice of the parameters (`sharded.rs`); gradients are sent to
//! the owners of their slices in buckets, during the backward pass (`outgoing.rs`). [`Ranks`] is
//! the connection to the others.

mod directive;
mod identity;
mod outgoing;
mod ranks;
mod settle;
mod sharded;
mod shards;

pub(super) use directive::Directive;
pub(super) use identity::RunIdentity;
pub(super) use outgoing::partition;
pub use ranks::Ranks;
pub(super) use settle::session_shards;
pub use settle::settle_shards;
pub(super) use sharded::Sharded;
pub use shards::Shards;
