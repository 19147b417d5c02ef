//! `--gpus`: several GPUs of this host at once.

use std::num::NonZeroUsize;
use std::str::FromStr;

use clap::Args;

use crate::failure::{Failure, Kind};
use crate::machine::cuda;
use crate::verbs::flags::from_one;

/// The flag of verbs that can use several GPUs.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct GpuChoice {
    /// Work on this many GPUs of the host at once, or on `all`; the results are the same as on one.
    #[arg(long, value_name = "N|all")]
    gpus: Option<GpuCount>,
}

/// How many GPUs of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GpuCount {
    All,
    Number(NonZeroUsize),
}

impl FromStr for GpuCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            number => from_one(number)
                .map(Self::Number)
                .map_err(|_| "expected a number from 1 up, or `all`".to_owned()),
        }
    }
}

impl GpuChoice {
    /// The number of GPUs requested; `None` without the flag.
    pub(crate) fn asked(self) -> Option<GpuCount> {
        self.gpus
    }
}

impl GpuChoice {
    /// The number of GPUs to plan for, which need not exist; one without the flag.
    pub(crate) fn planned(self) -> Result<usize, Failure> {
        match self.gpus {
            None => Ok(1),
            Some(GpuCount::Number(number)) => Ok(number.get()),
            Some(GpuCount::All) => GpuCount::All.found(),
        }
    }
}

/// If this variable is set, but not to 0, parts share GPUs, so that `--gpus` can be tested on one.
const SHARE: &str = "F2_SHARE_GPU";

/// Whether `--gpus` may name more GPUs than there are.
pub(crate) fn gpus_are_shared() -> bool {
    std::env::var_os(SHARE).is_some_and(|given| given != "0")
}

/// The number of the GPU for a part: that of the part, unless GPUs are shared and there are fewer.
pub(crate) fn gpu_of(part: usize) -> usize {
    if !gpus_are_shared() {
        return part;
    }
    part % cuda::find().map_or(1, |found| found.devices.len().max(1))
}

impl GpuCount {
    /// The number of GPUs that this means on this machine; fails if they do not exist.
    pub(crate) fn found(self) -> Result<usize, Failure> {
        let names = cuda::find().map(|found| found.devices.into_iter().map(|gpu| gpu.name));
        self.among(names.map(Iterator::collect), gpus_are_shared())
    }

    fn among(self, there: Result<Vec<String>, String>, shared: bool) -> Result<usize, Failure> {
        let (there, reason) = there.map_or_else(|reason| (vec![], Some(reason)), |all| (all, None));
        let wanted = match self {
            Self::All => there.len().max(1),
            Self::Number(number) => number.get(),
        };
        if wanted <= there.len() || (shared && !there.is_empty()) {
            return Ok(wanted);
        }
        let listed = there.iter().enumerate().map(|(number, name)| format!("cuda:{number} {name}"));
        let listed: Vec<String> = listed.collect();
        let found = match (listed.as_slice(), reason) {
            ([], Some(reason)) => reason,
            ([], None) => "the NVIDIA driver sees no GPU".to_owned(),
            (listed, _) => format!("this host has {}: {}", listed.len(), listed.join(", ")),
        };
        let gpus = if wanted == 1 { "a GPU is".to_owned() } else { format!("{wanted} GPUs are") };
        Err(Failure::new(Kind::Device, format!("{gpus} requested by `--gpus`; {found}"))
            .advise("ask for those that are there; `f2 doctor` shows them"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_gpus_than_there_are_is_a_failure_that_lists_them() {
        let there = || Ok(vec!["NVIDIA H200".to_owned(), "NVIDIA A100".to_owned()]);
        let of = |text: &str| text.parse::<GpuCount>().unwrap();
        assert_eq!(of("all").among(there(), false).unwrap(), 2);
        assert_eq!(of("1").among(there(), false).unwrap(), 1);
        assert_eq!(of("5").among(there(), true).unwrap(), 5);
        let said = |text: &str, there| format!("{:?}", of(text).among(there, false).unwrap_err());
        insta::assert_snapshot!(
            [
                said("3", there()),
                said("all", Ok(vec![])),
                said("2", Err("no NVIDIA driver".to_owned())),
            ]
            .join("\n")
        );
        for wrong in ["0", "-1", "", "ALL", "1.5"] {
            assert!(wrong.parse::<GpuCount>().is_err(), "{wrong}");
        }
    }
}
