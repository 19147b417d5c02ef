//! Language models behind an HTTP API, compatible with OpenAI's completions, and a web page.
//!
//! Each model has a thread that owns its device and drives a scheduler of `f2-lm` ([`work`], in
//! `engine.rs`); requests reach it as jobs over a channel, and results come back token by token
//! (`job.rs`). The asynchronous side ([`run`]) parses requests, assembles texts and writes
//! responses: `completions/` is the one large endpoint, `endpoints.rs` has the small ones, and
//! `http/` the layers of every request: connections with time limits, access control and errors.
//!
//! A text is a function of model, prompt, strategy and seed alone, whatever else the server is
//! doing.

mod completions;
mod endpoints;
mod engine;
mod http;
mod job;
mod metrics;
mod page;
mod served;

use std::sync::Arc;

pub use engine::work;
pub use http::connections::{Ended, run};
pub use job::Jobs;
pub use served::Served;

/// Where a server listens and what it requires of requests.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name or address to listen on.
    pub host: String,
    /// The port to listen on; 0 for any free one.
    pub port: u16,
    /// The key every request must carry; `None` if requests need no key.
    pub key: Option<String>,
    /// Limits on requests and connections.
    pub limits: Limits,
}

/// Limits on requests and connections.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Texts that may wait for a place in a model's batch before further requests are refused.
    pub waiting: usize,
    /// Tokens of one text.
    pub new_tokens: usize,
    /// Texts of one request.
    pub texts: usize,
    /// Bytes of a request's body.
    pub body: usize,
    /// Seconds a request may take.
    pub seconds: u64,
    /// Seconds that running requests have to finish when the server shuts down.
    pub drain_seconds: u64,
    /// Seconds a client may take to send a request's head, then its body, or to accept the next
    /// part of a response.
    pub patience_seconds: u64,
    /// Connections open at a time.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            waiting: 1024,
            new_tokens: 4096,
            texts: 1024,
            body: 8 << 20,
            seconds: 600,
            drain_seconds: 30,
            patience_seconds: 20,
            connections: 4096,
        }
    }
}

/// Why a server cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The port cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Host and port.
        address: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// Threads or timers are not available.
    #[error("cannot start the server: {0}")]
    Start(std::io::Error),
}

/// A model to serve: the handle that requests use, and the jobs for its thread, which runs
/// [`work`].
pub fn model(
    name: String,
    saved: f2_lm::run::SavedModel,
    decoding: Option<f2_lm::decode::Strategy>,
) -> (Model, Jobs) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let served = Arc::new(Served::new(name, saved, decoding));
    (Model { served: served.clone(), jobs: sender }, Jobs { served, receiver })
}

/// A model that requests can reach.
#[derive(Clone)]
pub struct Model {
    served: Arc<Served>,
    jobs: std::sync::mpsc::Sender<job::Job>,
}

impl Model {
    /// The model without its queue.
    pub fn served(&self) -> &Arc<Served> {
        &self.served
    }
}
