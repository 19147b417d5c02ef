//! The layers of every request: connections with time limits, access control, routes and errors.

pub(crate) mod body;
pub(crate) mod connections;
pub(crate) mod error;
mod guard;
mod patience;
pub(crate) mod router;
