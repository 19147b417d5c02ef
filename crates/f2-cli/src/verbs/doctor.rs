use std::path::Path;

use clap::Args;
use indicatif::HumanBytes;
use serde_json::json;

use crate::failure::Outcome;
use crate::machine::{self, cuda};

/// Show what this machine offers: cores, SIMD, memory, disk, GPUs.
#[derive(Args)]
#[command(after_help = "Example:\n  f2 doctor --json")]
pub(crate) struct Doctor {
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(crate) fn run(self) -> Outcome {
        let memory = machine::total_and_available_memory();
        let disk = machine::free_disk(Path::new("."));
        let cuda = cuda::find();
        if self.json {
            println!("{:#}", report(memory, disk, &cuda));
            return Ok(());
        }
        let unknown = || "unknown on this system".to_owned();
        println!("f2         {}", env!("CARGO_PKG_VERSION"));
        println!("cores      {}", machine::cores());
        println!("SIMD       {}", machine::simd_level());
        println!(
            "memory     {}",
            memory.map_or_else(unknown, |(total, available)| format!(
                "{} of {} free",
                HumanBytes(available),
                HumanBytes(total)
            ))
        );
        let disk = disk.map_or_else(unknown, |free| format!("{} free here", HumanBytes(free)));
        println!("disk       {disk}");
        print_cuda(&cuda);
        Ok(())
    }
}

fn print_cuda(cuda: &Result<cuda::Cuda, String>) {
    match cuda {
        Ok(cuda) => {
            println!("CUDA       driver for CUDA {}.{}", cuda.version.0, cuda.version.1);
            for (number, device) in cuda.devices.iter().enumerate() {
                println!(
                    "  cuda:{number}   {}, {}, compute capability {}.{}",
                    device.name,
                    HumanBytes(device.memory as u64),
                    device.capability.0,
                    device.capability.1
                );
            }
        }
        Err(reason) => println!("CUDA       none: {reason}"),
    }
}

fn report(
    memory: Option<(u64, u64)>,
    disk: Option<u64>,
    cuda: &Result<cuda::Cuda, String>,
) -> serde_json::Value {
    let cuda = match cuda {
        Ok(cuda) => json!({
            "version": format!("{}.{}", cuda.version.0, cuda.version.1),
            "devices": cuda.devices.iter().map(|device| json!({
                "name": device.name,
                "memory_bytes": device.memory,
                "compute_capability": format!("{}.{}", device.capability.0, device.capability.1),
            })).collect::<Vec<_>>(),
        }),
        Err(reason) => json!({ "reason": reason }),
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "cores": machine::cores(),
        "simd": machine::simd_level(),
        "memory_bytes": memory.map(|(total, _)| total),
        "available_memory_bytes": memory.map(|(_, available)| available),
        "free_disk_bytes": disk,
        "cuda": cuda,
    })
}
