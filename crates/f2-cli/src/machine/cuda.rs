//! The NVIDIA driver, asked at run time: the program is built without it.

use std::ffi::{CStr, c_char, c_int, c_uint};

use libloading::{Library, Symbol};

/// What the driver is called, by system.
const LIBRARIES: [&str; 3] = ["libcuda.so.1", "libcuda.so", "nvcuda.dll"];

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `…_MINOR` of the driver's interface.
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;

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

/// Asks the driver for its devices; the reason where there is none to ask.
pub(crate) fn find() -> Result<Cuda, String> {
    // SAFETY: loading the driver runs its initialisers, as in every CUDA program.
    let load = |name: &&str| unsafe { Library::new(*name) }.ok();
    let library = LIBRARIES
        .iter()
        .find_map(load)
        .ok_or_else(|| format!("no NVIDIA driver ({} was not found)", LIBRARIES[0]))?;
    let driver = Driver { library };
    driver.call("cuInit", |init: Symbol<'_, unsafe extern "C" fn(c_uint) -> c_int>| {
        // SAFETY: the signature is the one of the CUDA driver interface; 0 is its only flag.
        unsafe { init(0) }
    })?;
    let version = driver.number("cuDriverGetVersion")?;
    let count = driver.number("cuDeviceGetCount")?;
    let devices = (0..count).map(|device| driver.device(device)).collect::<Result<_, _>>()?;
    Ok(Cuda { version: (version / 1000, version % 1000 / 10), devices })
}

struct Driver {
    library: Library,
}

impl Driver {
    /// Calls a function of the driver, whose status says why it failed.
    fn call<F>(&self, name: &str, call: impl FnOnce(Symbol<'_, F>) -> c_int) -> Result<(), String> {
        // SAFETY: every caller states the function's type as the driver interface declares it.
        let function = unsafe { self.library.get::<F>(name.as_bytes()) }
            .map_err(|error| format!("the NVIDIA driver is too old: {error}"))?;
        match call(function) {
            0 => Ok(()),
            status => Err(format!("the NVIDIA driver answers {name} with error {status}")),
        }
    }

    /// A function that writes one number.
    fn number(&self, name: &str) -> Result<c_int, String> {
        let mut number = 0;
        self.call(name, |get: Symbol<'_, unsafe extern "C" fn(*mut c_int) -> c_int>| {
            // SAFETY: the driver writes one int to the pointer, which is valid.
            unsafe { get(&raw mut number) }
        })?;
        Ok(number)
    }

    fn device(&self, device: c_int) -> Result<CudaDevice, String> {
        Ok(CudaDevice {
            name: self.name(device)?,
            memory: self.memory(device)?,
            capability: (
                self.attribute(CAPABILITY_MAJOR, device)?,
                self.attribute(CAPABILITY_MINOR, device)?,
            ),
        })
    }

    fn name(&self, device: c_int) -> Result<String, String> {
        type Function = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
        let mut bytes = [0_u8; 128];
        self.call("cuDeviceGetName", |get: Symbol<'_, Function>| {
            // SAFETY: the driver writes at most the given length, and ends it with a zero.
            unsafe { get(bytes.as_mut_ptr().cast(), bytes.len() as c_int, device) }
        })?;
        let name = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    fn memory(&self, device: c_int) -> Result<usize, String> {
        type Function = unsafe extern "C" fn(*mut usize, c_int) -> c_int;
        let mut bytes = 0;
        self.call("cuDeviceTotalMem_v2", |get: Symbol<'_, Function>| {
            // SAFETY: the driver writes one size to the pointer, which is valid.
            unsafe { get(&raw mut bytes, device) }
        })?;
        Ok(bytes)
    }

    fn attribute(&self, attribute: c_int, device: c_int) -> Result<c_int, String> {
        type Function = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
        let mut value = 0;
        self.call("cuDeviceGetAttribute", |get: Symbol<'_, Function>| {
            // SAFETY: the driver writes one int to the pointer, which is valid.
            unsafe { get(&raw mut value, attribute, device) }
        })?;
        Ok(value)
    }
}
