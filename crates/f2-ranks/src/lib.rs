//! The ranks of a parallel run: how they are started, connect, exchange messages and detect the
//! loss of one, which ends all.
//!
//! [`Launch`] reads the environment variables of a launcher (`torchrun`, `srun`, `mpirun`);
//! [`Children`] are ranks on this host that rank 0 starts itself. A [`Control`] carries small
//! messages: over TCP ([`rendezvous`]), between threads of one process ([`threads`]) or, with the
//! feature `mpi`, over MPI (`mpi`). A [`Transport`] carries the numbers of ranks that compute on
//! CPUs. Nothing here depends on what is trained.

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
