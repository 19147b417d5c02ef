//! The compiled kernels, by name.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys::CUfunction_attribute;
use cudarc::driver::{CudaFunction, CudaModule, DriverError};
use cudarc::nvrtc::Ptx;
use std::sync::Arc;

use super::compile;
use super::stream::Stream;
use crate::Error;
use crate::cuda::{DEVICE, Precision};

/// The module, and the functions loaded from it so far.
pub(in crate::cuda) struct Kernels {
    module: Arc<CudaModule>,
    /// The most shared memory a block can have, in bytes.
    shared_memory: i32,
    pub(in crate::cuda) multiprocessors: usize,
    /// Whether there are kernels for the tensor cores of compute capability 9.0.
    pub(in crate::cuda) hopper: bool,
    functions: Mutex<HashMap<&'static str, CudaFunction>>,
}

impl Kernels {
    pub(in crate::cuda) fn load<P: Precision>(stream: &Stream) -> Result<Self, Error> {
        let capability = stream.capability()?;
        let code = compile::cached_kernels::<P>(capability)?;
        let module = stream.context().load_module(Ptx::from_binary(code)).map_err(|error| {
            Error::Failed { device: DEVICE, reason: format!("loading the kernels: {error}") }
        })?;
        let shared_memory = stream.shared_memory()?;
        let multiprocessors = stream.multiprocessors()?;
        let hopper = capability == compile::HOPPER;
        Ok(Self { module, shared_memory, multiprocessors, hopper, functions: Mutex::default() })
    }

    pub(in crate::cuda) fn get(&self, name: &'static str) -> Result<CudaFunction, String> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = functions.get(name) {
            return Ok(function.clone());
        }
        let function = self.module.load_function(name).map_err(|error| error.to_string())?;
        self.allow_all_shared_memory(&function).map_err(|error| error.to_string())?;
        functions.insert(name, function.clone());
        Ok(function)
    }

    /// More than the default of 48 KiB per block must be requested explicitly.
    fn allow_all_shared_memory(&self, function: &CudaFunction) -> Result<(), DriverError> {
        let own = function.shared_size_bytes()?;
        function.set_attribute(
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            self.shared_memory - own,
        )
    }
}
