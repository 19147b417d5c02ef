//! NCCL, loaded at run time: the functions used here.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use cudarc::nccl::sys::{cudaStream_t, ncclComm_t, ncclDataType_t, ncclUniqueId};
use libloading::Library;

use crate::Error;
use crate::cuda::DEVICE;
use crate::cuda::runtime::load_from_wheels;

/// The names of the library. `cudarc` tries only the second, which comes with the headers; packages
/// for running programs have only the first.
const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];

/// The oldest version known to support sends to several ranks in a group. Before 2.29.2 a group
/// that does not fit into one NCCL kernel may stall if a rank sends several parts to another;
/// groups of a few ranks fit.
const OLDEST: c_int = 21_800;

/// Declares the table of functions, and how it is loaded from the library.
macro_rules! functions {
    ($($field:ident = $name:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions of the library. Results are plain numbers, since a newer library may
        /// return others than those known here.
        pub(super) struct Nccl {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Nccl {
            fn read(library: &Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    // SAFETY: the function has this signature in every version 2.
                    $($field: *unsafe { library.get(concat!($name, "\0").as_bytes()) }?,)*
                })
            }
        }
    };
}

functions! {
    get_version = "ncclGetVersion": fn(*mut c_int) -> c_int;
    get_unique_id = "ncclGetUniqueId": fn(*mut ncclUniqueId) -> c_int;
    comm_init_rank = "ncclCommInitRank": fn(*mut ncclComm_t, c_int, ncclUniqueId, c_int) -> c_int;
    comm_destroy = "ncclCommDestroy": fn(ncclComm_t) -> c_int;
    comm_abort = "ncclCommAbort": fn(ncclComm_t) -> c_int;
    comm_get_async_error = "ncclCommGetAsyncError": fn(ncclComm_t, *mut c_int) -> c_int;
    error_string = "ncclGetErrorString": fn(c_int) -> *const c_char;
    last_error = "ncclGetLastError": fn(ncclComm_t) -> *const c_char;
    group_start = "ncclGroupStart": fn() -> c_int;
    group_end = "ncclGroupEnd": fn() -> c_int;
    send = "ncclSend": fn(*const c_void, usize, ncclDataType_t, c_int, ncclComm_t, cudaStream_t) -> c_int;
    receive = "ncclRecv": fn(*mut c_void, usize, ncclDataType_t, c_int, ncclComm_t, cudaStream_t) -> c_int;
    all_gather = "ncclAllGather": fn(*const c_void, *mut c_void, usize, ncclDataType_t, ncclComm_t, cudaStream_t) -> c_int;
    broadcast = "ncclBroadcast": fn(*const c_void, *mut c_void, usize, ncclDataType_t, c_int, ncclComm_t, cudaStream_t) -> c_int;
}

impl Nccl {
    /// The library, loaded by the first call: from the system, or from wheels in the program's
    /// Python environment.
    pub(super) fn get() -> Result<&'static Self, Error> {
        static LOADED: OnceLock<Result<Nccl, String>> = OnceLock::new();
        LOADED.get_or_init(Self::load).as_ref().map_err(failed)
    }

    fn load() -> Result<Self, String> {
        let library = open().or_else(|| {
            load_from_wheels("nccl");
            open()
        });
        let library = library.ok_or(
            "NCCL, through which GPUs exchange gradients, was not found (libnccl.so.2); install it \
             (Debian: libnccl2; pip: nvidia-nccl-cu13), or put its folder into LD_LIBRARY_PATH",
        )?;
        let nccl = Self::read(&library).map_err(|error| format!("NCCL is too old: {error}"))?;
        // It stays loaded until the process ends: its threads may outlive every user.
        std::mem::forget(library);
        let version = nccl.version();
        if version < OLDEST {
            return Err(format!("NCCL {} is too old; 2.18 or later is needed", dotted(version)));
        }
        Ok(nccl)
    }

    fn version(&self) -> c_int {
        let mut version = 0;
        // SAFETY: writes one number to a valid place.
        unsafe { (self.get_version)(&raw mut version) };
        version
    }

    /// Turns a result into an error that says what failed.
    pub(super) fn check(&self, what: &str, comm: ncclComm_t, result: c_int) -> Result<(), String> {
        if result == 0 {
            return Ok(());
        }
        // SAFETY: both return null, or NUL-terminated strings that live as long as the library.
        let [name, last] =
            unsafe { [(self.error_string)(result), (self.last_error)(comm)] }.map(|text| {
                let text = (!text.is_null()).then(|| {
                    // SAFETY: not null; see above.
                    unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned()
                });
                text.unwrap_or_default()
            });
        let last = if last.is_empty() { last } else { format!(" ({last})") };
        Err(format!("NCCL: {what}: {name}{last}"))
    }
}

fn open() -> Option<Library> {
    // SAFETY: loading the library runs its initialisers, as in every program that uses it.
    NAMES.into_iter().find_map(|name| unsafe { Library::new(name) }.ok())
}

pub(super) fn failed(reason: impl std::fmt::Display) -> Error {
    Error::Failed { device: DEVICE, reason: reason.to_string() }
}

/// A version such as 22803 in dotted form.
fn dotted(version: c_int) -> String {
    format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
}

/// The version of NCCL, such as `2.28.3`; the error says why it cannot be used.
pub fn nccl_version() -> Result<String, Error> {
    Ok(dotted(Nccl::get()?.version()))
}

/// The number of bytes of an [`NcclId`].
const ID_BYTES: usize = 128;

/// The unique id of a group of ranks, created by one of them and known to all.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NcclId(pub [u8; ID_BYTES]);

impl NcclId {
    /// Creates an id. The rank that creates it must stay alive until all have joined.
    pub fn new() -> Result<Self, Error> {
        let nccl = Nccl::get()?;
        let mut id = ncclUniqueId { internal: [0; ID_BYTES] };
        // SAFETY: writes an id to a valid place.
        let made = unsafe { (nccl.get_unique_id)(&raw mut id) };
        nccl.check("making an id", std::ptr::null_mut(), made).map_err(failed)?;
        Ok(Self(id.internal.map(|byte| byte as u8)))
    }

    pub(super) fn raw(self) -> ncclUniqueId {
        ncclUniqueId { internal: self.0.map(|byte| byte as c_char) }
    }
}

impl std::fmt::Debug for NcclId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("NcclId")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(dotted(22_803), "2.28.3");
        assert_eq!(dotted(21_805), "2.18.5");
    }

    /// With the library installed or not, with or without a GPU.
    #[test]
    fn the_library_is_found_or_missed_by_name() {
        match nccl_version() {
            Ok(version) => {
                println!("NCCL {version}");
                assert!(version.starts_with("2."), "{version}");
                let nccl = Nccl::get().unwrap();
                let refused = nccl.check("sending", std::ptr::null_mut(), 4).unwrap_err();
                assert!(refused.starts_with("NCCL: sending: invalid argument"), "{refused}");
            }
            Err(error) => {
                assert!(error.to_string().contains("nvidia-nccl-cu13"), "{error}");
                println!("skipped: {error}");
            }
        }
    }
}
