//! `f2 doctor`: the capabilities of this machine.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use f2_engine::{Simd, cublaslt_is_present, nccl_version, nvrtc_is_present};
use f2_lm::memory::{HostMemory, host_memory};
use indicatif::HumanBytes;
use serde_json::json;

use crate::failure::Outcome;
use crate::machine::{self, cuda};
use crate::output::print;

/// Show the capabilities of this machine: cores, SIMD, memory, disk, GPUs and their libraries.
#[derive(Args)]
#[command(after_help = "Example:\n  f2 doctor --json")]
pub(crate) struct Doctor {
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) fn run(self) -> Outcome {
        let machine = Machine {
            memory: host_memory(),
            disk: machine::free_disk(Path::new(".")),
            cuda: cuda::find(),
            libraries: [("NVRTC", nvrtc_is_present()), ("cuBLASLt", cublaslt_is_present())],
            nccl: nccl_version().ok(),
        };
        let report = if self.json { format!("{:#}\n", machine.json()) } else { machine.text() };
        print(&report)
    }
}

/// Advice on a missing library of a GPU.
const LIBRARY_MISSING: &str = "not found: install the CUDA toolkit (12 or later), or put the folder \
                               of the library into LD_LIBRARY_PATH";

const NCCL_MISSING: &str = "not found; only `f2 train` on several GPUs needs it (Debian: libnccl2; pip: \
                            nvidia-nccl-cu13)";

struct Machine {
    memory: Option<HostMemory>,
    disk: Option<u64>,
    cuda: Result<cuda::Cuda, String>,
    /// The libraries that a GPU needs besides its driver, and whether they are installed.
    libraries: [(&'static str, bool); 2],
    /// The version of the library that training on several GPUs needs.
    nccl: Option<String>,
}

impl Machine {
    fn text(&self) -> String {
        let unknown = || "unknown on this system".to_owned();
        let memory = self.memory.map_or_else(unknown, |memory| {
            format!("{} of {} free", HumanBytes(memory.available), HumanBytes(memory.total))
        });
        let disk = self.disk.map_or_else(unknown, |free| format!("{} free here", HumanBytes(free)));
        format!(
            "f2         {}\ncores      {}\nSIMD       {}\nmemory     {memory}\ndisk       {disk}\n{}",
            env!("CARGO_PKG_VERSION"),
            machine::cores(),
            simd_text(),
            self.cuda_text(),
        )
    }

    fn cuda_text(&self) -> String {
        let cuda = match &self.cuda {
            Ok(cuda) => cuda,
            Err(reason) => return format!("CUDA       none: {reason}\n"),
        };
        let driver = format!("CUDA       driver for CUDA {}.{}\n", cuda.version.0, cuda.version.1);
        let libraries = self.libraries.map(|(name, found)| {
            let found = if found { "found" } else { LIBRARY_MISSING };
            format!("{name:<10} {found}\n")
        });
        let devices = cuda.devices.iter().enumerate().map(|(number, device)| {
            let memory = HumanBytes(device.memory as u64);
            let (major, minor) = device.capability;
            let name = &device.name;
            format!("  cuda:{number}   {name}, {memory}, compute capability {major}.{minor}\n")
        });
        let nccl = self.nccl.as_deref().unwrap_or(NCCL_MISSING);
        driver
            + &devices.collect::<String>()
            + &libraries.concat()
            + &format!("NCCL       {nccl}\n")
    }

    fn json(&self) -> serde_json::Value {
        let cuda = match &self.cuda {
            Ok(cuda) => json!({
                "version": format!("{}.{}", cuda.version.0, cuda.version.1),
                "devices": cuda.devices.iter().map(device_json).collect::<Vec<_>>(),
                "nccl": self.nccl,
                "libraries": self.libraries.iter().copied().collect::<BTreeMap<_, _>>(),
            }),
            Err(reason) => json!({ "reason": reason }),
        };
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "cores": machine::cores(),
            "simd": Simd::used().name(),
            "simd_available": Simd::available().iter().map(|simd| simd.word()).collect::<Vec<_>>(),
            "bf16": Simd::has_bf16(),
            "memory_bytes": self.memory.map(|memory| memory.total),
            "available_memory_bytes": self.memory.map(|memory| memory.available),
            "free_disk_bytes": self.disk,
            "cuda": cuda,
        })
    }
}

/// The instruction set in use, the others that are available, and whether bf16 is fast.
fn simd_text() -> String {
    let used = Simd::used();
    let others = Simd::available().into_iter().rev().filter(|&simd| simd != used);
    let others: Vec<&str> = others.map(Simd::word).collect();
    let others = match others.as_slice() {
        [] => String::new(),
        others => format!("; F2_SIMD can choose {}", others.join(", ")),
    };
    let bf16 = match used {
        Simd::Amx => "; `--precision bf16` is fast",
        Simd::Avx512 if Simd::has_bf16() => "; `--precision bf16` works",
        _ => "",
    };
    let slow = if used == Simd::Baseline && cfg!(target_arch = "x86_64") {
        ": training will be slow"
    } else {
        ""
    };
    format!("{}{slow}{bf16}{others}", used.name())
}

fn device_json(device: &cuda::CudaDevice) -> serde_json::Value {
    json!({
        "name": device.name,
        "memory_bytes": device.memory,
        "compute_capability": format!("{}.{}", device.capability.0, device.capability.1),
    })
}
