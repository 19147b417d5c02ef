//! Work of fixed shape, recorded once and replayed.

use cudarc::driver::CudaGraph;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};

use super::{Cuda, Precision};

/// How far a recording has come.
#[derive(Default)]
pub enum Recording {
    /// Never run.
    #[default]
    New,
    /// Run once as it is, so that all that is set up at first use has been.
    Warm,
    /// Recorded.
    Recorded(Graph),
}

/// A graph of operations.
pub struct Graph(CudaGraph);

// SAFETY: a graph may be used by any thread, one at a time; launching borrows it exclusively.
unsafe impl Send for Graph {}

impl<P: Precision> Cuda<P> {
    pub(super) fn replay_body(&self, recording: &mut Recording, body: &mut dyn FnMut()) {
        match recording {
            Recording::New => {
                body();
                *recording = Recording::Warm;
            }
            Recording::Warm => match self.record(body) {
                Some(graph) => {
                    self.launch_graph(&graph);
                    *recording = Recording::Recorded(graph);
                }
                None => body(),
            },
            Recording::Recorded(graph) => self.launch_graph(graph),
        }
    }

    fn launch_graph(&self, graph: &Graph) {
        self.stream.count();
        self.stream.note("replaying a graph", graph.0.launch());
    }

    fn record(&self, body: &mut dyn FnMut()) -> Option<Graph> {
        let stream = self.stream.cuda();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        if let Err(error) = stream.begin_capture(mode) {
            self.stream.note("recording a graph", Err(error));
            return None;
        }
        body();
        match stream.end_capture(CUgraphInstantiate_flags(0)) {
            Ok(graph) => graph.map(Graph),
            Err(error) => {
                self.stream.note("recording a graph", Err(error));
                None
            }
        }
    }
}
