//! Operations of fixed shape, recorded once as a CUDA graph and replayed.

use cudarc::driver::CudaGraph;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};

use super::Stream;

/// The state of a recording.
#[derive(Default)]
pub enum Recording {
    /// Never run.
    #[default]
    New,
    /// Run without recording, so that everything created at first use exists. The number counts
    /// failed attempts to record since.
    Warm(u8),
    /// Recorded.
    Recorded(Graph),
    /// Run each time, since it could not be recorded, for example for lack of memory.
    Unrecorded,
}

/// How often recording is attempted. A call by another thread can make one attempt fail.
const TRIES: u8 = 3;

/// A recorded graph of operations.
pub struct Graph(CudaGraph);

// SAFETY: a graph may be used by any thread, one at a time, and this type is not `Sync`.
unsafe impl Send for Graph {}

impl Recording {
    /// Runs `body` the first time, records it the second, and replays it from then on.
    pub(in crate::cuda) fn replay(&mut self, stream: &Stream, body: &mut dyn FnMut()) {
        match self {
            Self::New => {
                body();
                *self = Self::Warm(0);
            }
            Self::Warm(failed) => match record(stream, body) {
                Some(graph) => {
                    graph.launch(stream);
                    *self = Self::Recorded(graph);
                }
                None => {
                    body();
                    *self = if *failed + 1 < TRIES {
                        Self::Warm(*failed + 1)
                    } else {
                        Self::Unrecorded
                    };
                }
            },
            Self::Recorded(graph) => graph.launch(stream),
            Self::Unrecorded => body(),
        }
    }
}

impl Graph {
    fn launch(&self, stream: &Stream) {
        stream.count_operation();
        stream.note("replaying a graph", self.0.launch());
    }
}

fn record(stream: &Stream, body: &mut dyn FnMut()) -> Option<Graph> {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // If this fails, the operations themselves report what is wrong with the device.
    stream.cuda().begin_capture(mode).ok()?;
    let failure = stream.failure();
    body();
    match stream.cuda().end_capture(CUgraphInstantiate_flags(0)) {
        Ok(Some(graph)) => Some(Graph(graph)),
        // A call by another thread can invalidate a recording. Then none of the operations was
        // executed: the caller runs them unrecorded, and an operation at fault fails again.
        Ok(None) | Err(_) => {
            stream.set_failure(failure);
            None
        }
    }
}
