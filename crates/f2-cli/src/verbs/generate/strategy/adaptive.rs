//! The flags of mirostat and XTC.

use clap::Args;
use f2_lm::decode::{Mirostat, Xtc};

#[derive(Args, Debug, Default)]
pub(super) struct AdaptiveFlags {
    /// Mirostat 2: keep the text's surprise near this many bits a token.
    #[arg(long, value_name = "BITS")]
    mirostat_tau: Option<f64>,
    /// Mirostat 2: the rate at which the limit adapts [default: 0.1].
    #[arg(long, value_name = "X", requires = "mirostat_tau")]
    mirostat_eta: Option<f64>,
    /// XTC: the probability of leaving out all top choices but the least likely.
    #[arg(long, value_name = "P")]
    xtc_probability: Option<f64>,
    /// XTC: tokens at least this likely are top choices [default: 0.1].
    #[arg(long, value_name = "P", requires = "xtc_probability")]
    xtc_threshold: Option<f64>,
}

impl AdaptiveFlags {
    /// Whether one of them is given.
    pub(super) fn is_given(&self) -> bool {
        self.mirostat_tau.is_some() || self.xtc_probability.is_some()
    }

    pub(super) fn mirostat(&self) -> Option<Mirostat> {
        let eta = self.mirostat_eta.unwrap_or(Mirostat::default().eta);
        self.mirostat_tau.map(|tau| Mirostat { tau, eta })
    }

    pub(super) fn xtc(&self) -> Option<Xtc> {
        let threshold = self.xtc_threshold.unwrap_or(Xtc::default().threshold);
        self.xtc_probability.map(|probability| Xtc { probability, threshold })
    }
}
