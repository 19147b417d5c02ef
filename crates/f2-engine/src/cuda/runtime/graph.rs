//! Work of fixed shape, recorded once and replayed.

use cudarc::driver::CudaGraph;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};

use super::Stream;

/// The state of a recording.
#[derive(Default)]
pub enum Recording {
    /// Never run.
    #[default]
    New,
    /// Run once without recording, so that everything set up at first use exists.
    Warm,
    /// Recorded.
    Recorded(Graph),
}

/// A graph of operations.
pub struct Graph(CudaGraph);

// SAFETY: a graph may be used by any thread, one at a time; launching borrows it exclusively.
unsafe impl Send for Graph {}

impl Recording {
    /// Runs `body` the first time, records it the second, and replays it from then on.
    pub(in crate::cuda) fn replay(&mut self, stream: &Stream, body: &mut dyn FnMut()) {
        match self {
            Self::New => {
                body();
                *self = Self::Warm;
            }
            Self::Warm => match record(stream, body) {
                Some(graph) => {
                    graph.launch(stream);
                    *self = Self::Recorded(graph);
                }
                None => body(),
            },
            Self::Recorded(graph) => graph.launch(stream),
        }
    }
}

impl Graph {
    fn launch(&self, stream: &Stream) {
        stream.count();
        stream.note("replaying a graph", self.0.launch());
    }
}

fn record(stream: &Stream, body: &mut dyn FnMut()) -> Option<Graph> {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    if let Err(error) = stream.cuda().begin_capture(mode) {
        stream.note("recording a graph", Err(error));
        return None;
    }
    let failure = stream.failure();
    body();
    match stream.cuda().end_capture(CUgraphInstantiate_flags(0)) {
        Ok(Some(graph)) => Some(Graph(graph)),
        // A call of another thread can invalidate a recording. Nothing of it was done then: the caller
        // does it unrecorded, and what was at fault itself fails again.
        Ok(None) | Err(_) => {
            stream.set_failure(failure);
            None
        }
    }
}
