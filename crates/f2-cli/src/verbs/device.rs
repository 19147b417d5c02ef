//! The flags that choose a device, and how a verb runs on it.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use f2_engine::{Bf16, Cpu, Cuda, Device, Error, F32, cuda_is_present};
use f2_experiment::DeviceFlags;
use f2_lm::Devices;

use crate::failure::{Failure, Kind};
use crate::machine::cuda;
use crate::verbs::flags::Threads;
use crate::verbs::gpus::{GpuChoice, gpu_of};

/// The flags that choose a device and the number of threads.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct DeviceChoice {
    #[command(flatten)]
    threads: Threads,
    /// The device to work on: `cpu`, `cuda`, `cuda:N`, or `auto` for a GPU if there is one.
    #[arg(long, value_name = "DEVICE", default_value = "auto", env = "F2_DEVICE")]
    device: DeviceName,
    /// Precision of matrix products, and of activations on a GPU [default: bf16 on a GPU, f32 on
    /// the CPU].
    #[arg(long, value_enum, value_name = "PRECISION")]
    precision: Option<PrecisionName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeviceName {
    Auto,
    Cpu,
    /// The first GPU, or that of the rank.
    AnyCuda,
    Cuda(usize),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PrecisionName {
    /// Fast, on a CPU if it has AMX; parameters, sums and optimiser stay f32.
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
            "cuda" => return Ok(Self::AnyCuda),
            text => text.strip_prefix("cuda:").and_then(|number| number.parse().ok()),
        };
        number.map(Self::Cuda).ok_or_else(|| "it is `auto`, `cpu`, `cuda` or `cuda:N`".to_owned())
    }
}

impl DeviceName {
    fn of_rank(self, local_rank: usize, gpus: usize) -> Self {
        match self {
            Self::Auto | Self::AnyCuda if gpus > 1 => Self::Cuda(local_rank),
            named => named,
        }
    }
}

/// The part of a verb that runs on a device, generic over its type.
pub(crate) trait DeviceTask {
    /// The result.
    type Output;
    fn run<D: Device>(self, device: D) -> Result<Self::Output, Failure>;
}

/// The part of a verb that several devices share, generic over their type.
pub(crate) trait SharedTask {
    /// The result.
    type Output;
    fn run<D: Device>(self, devices: &Devices<'_, D, Failure>) -> Result<Self::Output, Failure>;
}

impl DeviceChoice {
    /// A GPU if there is one: the choice without flags.
    pub(crate) fn auto() -> Self {
        Self { threads: Threads::all(), device: DeviceName::Auto, precision: None }
    }

    /// The number of threads.
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

    /// Runs the task on the device, or on as many GPUs as were requested.
    pub(crate) fn share<T: SharedTask>(
        self,
        gpus: GpuChoice,
        task: T,
    ) -> Result<T::Output, Failure> {
        use PrecisionName as Precision;
        let count = self.gpu_count(gpus)?;
        match (self.resolve(), self.precision) {
            (None, None | Some(Precision::F32)) => {
                task.run(&Devices::one(&|_| Cpu::new(self.threads()).map_err(failure)))
            }
            (None, Some(Precision::Bf16)) => {
                task.run(&Devices::one(&|_| Cpu::with_bf16(self.threads()).map_err(failure)))
            }
            (Some(first), None | Some(Precision::Bf16)) => on_gpus(count, task, &|number| {
                Cuda::<Bf16>::new(first + gpu_of(number)).map_err(failure)
            }),
            (Some(first), Some(Precision::F32)) => on_gpus(count, task, &|number| {
                Cuda::<F32>::new(first + gpu_of(number)).map_err(failure)
            }),
        }
    }

    /// A choice for each of the requested GPUs, or this one alone if none were requested.
    pub(crate) fn each(self, gpus: GpuChoice) -> Result<Vec<Self>, Failure> {
        let Some(count) = self.gpu_count(gpus)? else { return Ok(vec![self]) };
        Ok((0..count).map(|part| Self { device: DeviceName::Cuda(gpu_of(part)), ..self }).collect())
    }

    /// The choice of a rank by its number on the host: the GPU of that number, unless `--device`
    /// names one (so that ranks can share it) or each process sees a single one.
    pub(crate) fn of_rank(self, local_rank: usize) -> Self {
        let gpus = cuda::find().map_or(0, |found| found.devices.len());
        Self { device: self.device.of_rank(gpu_of(local_rank), gpus), ..self }
    }

    /// The choice of a rank that `--gpus` started: the one that [`each`](Self::each) has for it.
    pub(crate) fn of_child(self, rank: usize) -> Self {
        let device = self.resolve().map_or(self.device, |_| DeviceName::Cuda(gpu_of(rank)));
        Self { device, ..self }
    }

    /// The number of GPUs requested, from the first on; `None` without the flag.
    fn gpu_count(self, gpus: GpuChoice) -> Result<Option<usize>, Failure> {
        let Some(asked) = gpus.asked() else { return Ok(None) };
        if matches!(self.device, DeviceName::Cpu | DeviceName::Cuda(1..)) {
            return Err(Failure::usage(
                "`--gpus` takes the GPUs of this host from the first on, `--device` another device",
            )
            .advise(
                "leave one of them out; `CUDA_VISIBLE_DEVICES` hides GPUs and numbers the rest",
            ));
        }
        asked.found().map(Some)
    }

    /// The same choice with the default threads and `auto` resolved.
    pub(crate) fn settled(self) -> Self {
        let device = self.resolve().map_or(DeviceName::Cpu, DeviceName::Cuda);
        Self { threads: self.threads.settled(), device, ..self }
    }

    /// Its name, such as `cuda:1`.
    pub(crate) fn name(self) -> String {
        self.resolve().map_or("cpu".to_owned(), |number| format!("cuda:{number}"))
    }

    /// Whether it is a GPU.
    pub(crate) fn is_gpu(self) -> bool {
        self.resolve().is_some()
    }

    /// The choice of threads alone.
    pub(crate) fn only_threads(self) -> Threads {
        self.threads
    }

    /// The flags of the settled choice.
    pub(crate) fn flags(self) -> DeviceFlags {
        let mut flags = DeviceFlags {
            threads: vec!["--threads".into(), self.threads().to_string().into()],
            device: vec!["--device".into(), self.name().into()],
        };
        if let Some(precision) = self.precision.and_then(|name| name.to_possible_value()) {
            flags.device.extend(["--precision".into(), precision.get_name().into()]);
        }
        flags
    }

    /// The GPU's number; `None` for the CPU.
    fn resolve(self) -> Option<usize> {
        match self.device {
            DeviceName::Auto => cuda_is_present().is_ok().then_some(0),
            DeviceName::Cpu => None,
            DeviceName::AnyCuda => Some(0),
            DeviceName::Cuda(number) => Some(number),
        }
    }
}

fn on_gpus<D: Device, T: SharedTask>(
    count: Option<usize>,
    task: T,
    open: &(dyn Fn(usize) -> Result<D, Failure> + Sync),
) -> Result<T::Output, Failure> {
    task.run(&count.map_or_else(|| Devices::one(open), |count| Devices::new(count, open)))
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
        assert_eq!("cuda".parse(), Ok(DeviceName::AnyCuda));
        assert_eq!("auto".parse(), Ok(DeviceName::Auto));
        for wrong in ["gpu", "cuda:", "cuda:-1", "CPU", ""] {
            assert!(wrong.parse::<DeviceName>().is_err(), "{wrong}");
        }
    }
    #[test]
    fn a_rank_takes_the_gpu_of_its_number_unless_one_is_named() {
        let of = |name: &str, gpus| name.parse::<DeviceName>().unwrap().of_rank(3, gpus);
        assert_eq!((of("auto", 8), of("cuda", 8)), (DeviceName::Cuda(3), DeviceName::Cuda(3)));
        // A GPU that does not exist is refused when it is opened.
        assert_eq!(of("auto", 2), DeviceName::Cuda(3));
        assert_eq!((of("cuda:0", 8), of("cpu", 8)), (DeviceName::Cuda(0), DeviceName::Cpu));
        // Schedulers may show each process its own GPU only.
        assert_eq!((of("auto", 1), of("cuda", 1)), (DeviceName::Auto, DeviceName::AnyCuda));
    }
}
