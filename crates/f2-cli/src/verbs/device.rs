//! The flags that choose a device, and how a verb runs on it.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use f2_engine::{Bf16, Cpu, Cuda, Device, Error, F32, cuda_is_present};
use f2_experiment::DeviceFlags;

use crate::failure::{Failure, Kind};
use crate::verbs::flags::Threads;

/// The flags that choose a device, and how many threads work for it.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct DeviceChoice {
    #[command(flatten)]
    threads: Threads,
    /// The device to work on: `cpu`, `cuda`, `cuda:N`, or `auto` for a GPU where there is one.
    #[arg(long, value_name = "DEVICE", default_value = "auto", env = "F2_DEVICE")]
    device: DeviceName,
    /// Precision of matrix products, and of activations on a GPU [default: bf16 on a GPU, f32 on the
    /// CPU].
    #[arg(long, value_enum, value_name = "PRECISION")]
    precision: Option<PrecisionName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeviceName {
    Auto,
    Cpu,
    Cuda(usize),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PrecisionName {
    /// Fast, on the CPU where it has AMX; parameters, sums and optimiser stay f32.
    Bf16,
    /// Exact to seven digits.
    F32,
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = match text {
            "auto" => return Ok(Self::Auto),
            "cpu" => return Ok(Self::Cpu),
            "cuda" => return Ok(Self::Cuda(0)),
            text => text.strip_prefix("cuda:").and_then(|number| number.parse().ok()),
        };
        number.map(Self::Cuda).ok_or_else(|| "it is `auto`, `cpu`, `cuda` or `cuda:N`".to_owned())
    }
}

/// The part of a verb that runs on a device, generic over its type.
pub(crate) trait DeviceTask {
    /// The result.
    type Output;
    fn run<D: Device>(self, device: D) -> Result<Self::Output, Failure>;
}

impl DeviceChoice {
    /// How many threads.
    pub(crate) fn threads(self) -> usize {
        self.threads.count()
    }

    /// Opens the device and runs the task on it.
    pub(crate) fn run<T: DeviceTask>(self, task: T) -> Result<T::Output, Failure> {
        use PrecisionName as Precision;
        match (self.resolve(), self.precision) {
            (None, None | Some(Precision::F32)) => {
                task.run(Cpu::new(self.threads()).map_err(failure)?)
            }
            (None, Some(Precision::Bf16)) => {
                task.run(Cpu::with_bf16(self.threads()).map_err(failure)?)
            }
            (Some(number), None | Some(Precision::Bf16)) => {
                task.run(Cuda::<Bf16>::new(number).map_err(failure)?)
            }
            (Some(number), Some(Precision::F32)) => {
                task.run(Cuda::<F32>::new(number).map_err(failure)?)
            }
        }
    }

    /// The same choice with the threads and the device that are in force, whatever `auto` finds.
    pub(crate) fn settled(self) -> Self {
        let device = self.resolve().map_or(DeviceName::Cpu, DeviceName::Cuda);
        Self { threads: self.threads.settled(), device, ..self }
    }

    /// Whether it is a GPU.
    pub(crate) fn is_gpu(self) -> bool {
        self.resolve().is_some()
    }

    /// The number of threads alone.
    pub(crate) fn only_threads(self) -> Threads {
        self.threads
    }

    /// The flags of the settled choice.
    pub(crate) fn flags(self) -> DeviceFlags {
        let device = self.resolve().map_or("cpu".to_owned(), |number| format!("cuda:{number}"));
        let mut flags = DeviceFlags {
            threads: vec!["--threads".into(), self.threads().to_string().into()],
            device: vec!["--device".into(), device.into()],
        };
        if let Some(precision) = self.precision.and_then(|name| name.to_possible_value()) {
            flags.device.extend(["--precision".into(), precision.get_name().into()]);
        }
        flags
    }

    /// The GPU's number; none for the CPU.
    fn resolve(self) -> Option<usize> {
        match self.device {
            DeviceName::Auto => cuda_is_present().is_ok().then_some(0),
            DeviceName::Cpu => None,
            DeviceName::Cuda(number) => Some(number),
        }
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Simd { .. } => Failure::usage(error).advise("give one of those, or unset F2_SIMD"),
        Error::NoBf16 { .. } => Failure::new(Kind::Device, error)
            .advise("leave `--precision` out: f32 works on every processor"),
        Error::Threads { .. } => {
            Failure::new(Kind::Device, error).advise("ask for fewer, such as `--threads 1`")
        }
        error => Failure::new(Kind::Device, error)
            .advise("`f2 doctor` shows what this machine offers; `--device cpu` works everywhere"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_names_and_numbers() {
        assert_eq!("cuda:3".parse(), Ok(DeviceName::Cuda(3)));
        assert_eq!("cuda".parse(), Ok(DeviceName::Cuda(0)));
        assert_eq!("auto".parse(), Ok(DeviceName::Auto));
        for wrong in ["gpu", "cuda:", "cuda:-1", "CPU", ""] {
            assert!(wrong.parse::<DeviceName>().is_err(), "{wrong}");
        }
    }
}
