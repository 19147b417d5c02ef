//! The layers that every request passes: connections with time limits, the guard, and the form of errors.

pub(crate) mod body;
pub(crate) mod connections;
pub(crate) mod error;
mod guard;
mod patience;
pub(crate) mod router;
