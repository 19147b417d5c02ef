//! The flags of beam search.

use clap::Args;
use f2_lm::decode::BeamSearch;

#[derive(Args, Debug, Default)]
pub(super) struct BeamFlags {
    /// Search for likely texts with a beam this wide.
    #[arg(long, value_name = "WIDTH")]
    beam: Option<usize>,
    /// Number of searches, each without the hypotheses of those before (iterative beam search)
    /// [default: 1].
    #[arg(long, value_name = "N", requires = "beam")]
    beam_iterations: Option<usize>,
    /// Groups of the beam that avoid each other's tokens (diverse beam search).
    #[arg(long, value_name = "N", requires = "beam")]
    beam_groups: Option<usize>,
    /// The penalty on a token for each use by an earlier group, in nats [default: 0.5].
    #[arg(long, value_name = "X", requires = "beam_groups")]
    diversity: Option<f64>,
    /// Texts of a beam are ranked by log-probability over length to this power [default: 1].
    #[arg(long, value_name = "X", requires = "beam")]
    length_penalty: Option<f64>,
}

impl BeamFlags {
    /// Whether a beam is requested.
    pub(super) fn is_given(&self) -> bool {
        self.beam.is_some()
    }

    pub(super) fn search(&self) -> Option<BeamSearch> {
        let default = BeamSearch::default();
        self.beam.map(|width| BeamSearch {
            width,
            groups: self.beam_groups.unwrap_or(1),
            iterations: self.beam_iterations.unwrap_or(default.iterations),
            diversity: self.diversity.unwrap_or(default.diversity),
            length_penalty: self.length_penalty.unwrap_or(default.length_penalty),
        })
    }
}
