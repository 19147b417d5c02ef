//! The NVIDIA driver and its GPUs, looked up at run time: the build does not need them.

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute};

/// A driver and its devices.
pub(crate) struct Cuda {
    /// CUDA version that the driver supports, as (major, minor).
    pub(crate) version: (i32, i32),
    pub(crate) devices: Vec<CudaDevice>,
}

/// One GPU.
pub(crate) struct CudaDevice {
    pub(crate) name: String,
    pub(crate) memory: usize,
    /// Compute capability, as (major, minor).
    pub(crate) capability: (i32, i32),
}

/// Queries the driver for its devices; the error says why that is not possible.
pub(crate) fn find() -> Result<Cuda, String> {
    // SAFETY: loading the driver runs its initialisers, as in every CUDA program.
    if !unsafe { sys::is_culib_present() } {
        return Err("no NVIDIA driver (libcuda.so.1 or nvcuda.dll was not found)".to_owned());
    }
    query().map_err(|error| format!("the NVIDIA driver reports {error}"))
}

fn query() -> Result<Cuda, DriverError> {
    result::init()?;
    let mut version = 0;
    // SAFETY: the driver writes one int to the pointer, which is valid.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result()?;
    let devices = (0..result::device::get_count()?).map(device).collect::<Result<_, _>>()?;
    Ok(Cuda { version: (version / 1000, version % 1000 / 10), devices })
}

fn device(ordinal: i32) -> Result<CudaDevice, DriverError> {
    use CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
    };
    let device = result::device::get(ordinal)?;
    // SAFETY: the driver has just named this device.
    let attribute = |which| unsafe { result::device::get_attribute(device, which) };
    Ok(CudaDevice {
        name: result::device::get_name(device)?,
        // SAFETY: as above.
        memory: unsafe { result::device::total_mem(device) }?,
        capability: (attribute(MAJOR)?, attribute(MINOR)?),
    })
}
