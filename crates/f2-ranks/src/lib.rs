//! The ranks of a parallel run: how they were started, how they find each other, what they tell
//! each other on the way, and how the loss of one ends all.
//!
//! [`Launch`] reads what a launcher (`torchrun`, `srun`, `mpirun`) put into the environment;
//! [`Children`] are ranks of this host that rank 0 starts itself. A [`Control`] carries small messages between hosts: over TCP ([`rendezvous`]), between threads of one
//! process ([`threads`]) or, with the feature `mpi`, over MPI ([`mpi`]). A [`Transport`] carries the numbers
//! of ranks that compute on CPUs. Nothing here knows what is trained.

mod control;
mod error;
mod fingerprint;
mod launch;
#[cfg(feature = "mpi")]
pub mod mpi;
mod state;
mod tcp;
mod threads;
mod transport;

pub use control::Control;
pub use error::Error;
pub use fingerprint::Fingerprint;
pub use launch::{Address, Launch, Launcher};
pub use tcp::{Children, Place, rendezvous};
pub use threads::{ThreadTransport, threads};
pub use transport::Transport;
