//! Compilation of the kernels from CUDA C++ to machine code by NVRTC, at first use; the result is
//! cached on disk.

use std::env;
use std::ffi::{CStr, CString, c_char};
use std::fmt::Write as _;
use std::path::PathBuf;

use cudarc::nvrtc::result;
use cudarc::nvrtc::sys;

use super::kernel_cache::KernelCache;
use super::wheels;
use crate::Error;
use crate::cuda::{DEVICE, Precision};

/// The sources of all kernels, compiled as one program in this order: shared code first.
pub(super) const SOURCES: [(&str, &str); 15] = [
    ("common.cu", include_str!("common.cu")),
    ("memory/memory.cu", include_str!("../memory/memory.cu")),
    ("embedding/embedding.cu", include_str!("../embedding/embedding.cu")),
    ("norm.cu", include_str!("../norm.cu")),
    ("linear/linear.cu", include_str!("../linear/linear.cu")),
    ("optimiser.cu", include_str!("../optimiser.cu")),
    ("exchange/exchange.cu", include_str!("../exchange/exchange.cu")),
    ("head/head.cu", include_str!("../head/head.cu")),
    ("head/truncation.cu", include_str!("../head/truncation.cu")),
    ("head/draw.cu", include_str!("../head/draw.cu")),
    ("attention/attention.cu", include_str!("../attention/attention.cu")),
    ("attention/tiles.cu", include_str!("../attention/tiles.cu")),
    ("attention/tensor.cu", include_str!("../attention/tensor.cu")),
    ("attention/hopper.cu", include_str!("../attention/hopper.cu")),
    ("linear/hopper.cu", include_str!("../linear/hopper.cu")),
];

/// The compute capability of Hopper, whose tensor cores have instructions that neither older nor
/// newer GPUs support.
pub(in crate::cuda) const HOPPER: (i32, i32) = (9, 0);

/// Whether NVRTC can be loaded, from the system or from wheels in the program's Python environment.
pub fn nvrtc_is_present() -> bool {
    // SAFETY: loading the library runs its initialisers, as in every program that uses it.
    let is_loaded = || unsafe { sys::is_culib_present() };
    is_loaded() || {
        wheels::load("nvrtc");
        is_loaded()
    }
}

/// Compiles all kernels to machine code, for a compute capability such as (9, 0).
pub fn compile_kernels<P: Precision>(capability: (i32, i32)) -> Result<Vec<u8>, Error> {
    if !nvrtc_is_present() {
        return Err(failed(
            "libnvrtc was not found; install the CUDA toolkit (12 or later), put the folder of \
             libnvrtc into LD_LIBRARY_PATH, or `pip install 'f2-softmax[cuda]'`",
        ));
    }
    let source = CString::new(source()).map_err(failed)?;
    let program = Program(result::create_program(&source, Some(c"f2.cu")).map_err(failed)?);
    // SAFETY: the program was just created and lives until the end of this function.
    match unsafe { result::compile_program(program.0, &options::<P>(capability)) } {
        Ok(()) => program.machine_code(),
        Err(_) => Err(failed(program.log())),
    }
}

/// The kernels from the cache, or from [`compile_kernels`] if they are not there.
pub(in crate::cuda) fn cached_kernels<P: Precision>(
    capability: (i32, i32),
) -> Result<Vec<u8>, Error> {
    let cache = cache_folder().map(|folder| {
        let name = format!("kernels-sm{}{}-{}", capability.0, capability.1, P::NAME);
        KernelCache::new(&folder, &name, compiled_from::<P>(capability))
    });
    if let Some(code) = cache.as_ref().and_then(KernelCache::load) {
        return Ok(code);
    }
    let code = compile_kernels::<P>(capability)?;
    if let Some(cache) = cache {
        cache.store(&code);
    }
    Ok(code)
}

/// Identifies the machine code in the cache: driver version, options and source.
fn compiled_from<P: Precision>(capability: (i32, i32)) -> String {
    let mut driver = 0;
    // SAFETY: a device is open, so the driver is loaded; the pointer is valid for one number.
    let _ = unsafe { cudarc::driver::sys::cuDriverGetVersion(&raw mut driver) };
    let options = options::<P>(capability).join(" ");
    format!("driver {driver}, {options}\n{}", source())
}

fn failed(reason: impl std::fmt::Display) -> Error {
    Error::Failed { device: DEVICE, reason: reason.to_string() }
}

fn source() -> String {
    let mut all = String::new();
    for (name, text) in SOURCES {
        let _ = write!(all, "#line 1 \"{name}\"\n{text}\n");
    }
    all
}

fn options<P: Precision>(capability: (i32, i32)) -> Vec<String> {
    let (major, minor) = capability;
    let own = if capability == HOPPER { "a" } else { "" };
    let mut options =
        vec![format!("--gpu-architecture=sm_{major}{minor}{own}"), "--std=c++17".to_owned()];
    if P::NAME == "f32" {
        options.push("-DF32".to_owned());
    }
    options
}

/// The folder of compiled kernels and measured products: `$F2_CACHE`, or the user's cache folder.
pub(in crate::cuda) fn cache_folder() -> Option<PathBuf> {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("F2_CACHE")
        .or_else(|| named("XDG_CACHE_HOME").map(|folder| folder.join("f2")))
        .or_else(|| named("HOME").map(|home| home.join(".cache").join("f2")))
        .or_else(|| named("LOCALAPPDATA").map(|folder| folder.join("f2")))
}

/// An NVRTC program, destroyed when dropped.
struct Program(sys::nvrtcProgram);

impl Program {
    fn machine_code(&self) -> Result<Vec<u8>, Error> {
        let mut size = 0;
        // SAFETY: the program is alive, and the pointer is valid for one number.
        unsafe { sys::nvrtcGetCUBINSize(self.0, &raw mut size) }.result().map_err(failed)?;
        let mut code = vec![0_u8; size];
        // SAFETY: the library writes exactly the number of bytes it has just reported.
        unsafe { sys::nvrtcGetCUBIN(self.0, code.as_mut_ptr().cast::<c_char>()) }
            .result()
            .map_err(failed)?;
        Ok(code)
    }

    /// The compiler's messages.
    fn log(&self) -> String {
        // SAFETY: the program is alive.
        let Ok(log) = (unsafe { result::get_program_log(self.0) }) else { return String::new() };
        let bytes: Vec<u8> = log.iter().map(|&byte| byte as u8).collect();
        let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
        text.to_string_lossy().into_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: nothing else destroys it.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}
