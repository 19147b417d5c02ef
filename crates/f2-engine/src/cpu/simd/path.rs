//! The instruction set the kernels use: the best one available, or a lower one set by `F2_SIMD`.

use std::sync::OnceLock;

use crate::Error;

/// The environment variable that selects a lower instruction set than the best.
const VARIABLE: &str = "F2_SIMD";

/// An instruction set for which the CPU's kernels are compiled.
///
/// AVX2 and AVX-512 give the same bits; the baseline of x86-64 rounds products before adding them
/// and differs in the last digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Simd {
    /// The baseline of the target: SSE2 on x86-64, NEON on ARM.
    Baseline,
    /// AVX2 with FMA.
    Avx2,
    /// AVX-512: F, BW, DQ and VL.
    Avx512,
    /// AVX-512 with `AVX512_BF16`, and AMX for products in bf16, if the operating system permits
    /// it. In `f32` the same as [`Simd::Avx512`].
    Amx,
}

impl Simd {
    /// All of them, lowest first.
    const ALL: [Self; 4] = [Self::Baseline, Self::Avx2, Self::Avx512, Self::Amx];

    /// The sets available on this processor, lowest first.
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|simd| simd.is_available()).collect()
    }

    /// The set the kernels use: the best one, or that named by `F2_SIMD`. An invalid value is
    /// ignored here and rejected by [`Cpu::new`](crate::Cpu::new).
    pub fn used() -> Self {
        static USED: OnceLock<Simd> = OnceLock::new();
        *USED.get_or_init(|| Self::chosen().unwrap_or_else(|_| Self::best()))
    }

    /// Its name as a value of `F2_SIMD`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Amx => "amx",
        }
    }

    /// Its common name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline if cfg!(target_arch = "aarch64") => "NEON",
            Self::Baseline if cfg!(target_arch = "x86_64") => "SSE2",
            Self::Baseline => "portable",
            Self::Avx2 => "AVX2 with FMA",
            Self::Avx512 => "AVX-512",
            Self::Amx => "AVX-512 with AMX",
        }
    }

    /// The set named by `F2_SIMD`, or the best one.
    pub(in crate::cpu) fn chosen() -> Result<Self, Error> {
        let Some(value) = std::env::var_os(VARIABLE) else { return Ok(Self::best()) };
        Self::named(&value.to_string_lossy())
    }

    fn named(word: &str) -> Result<Self, Error> {
        let available = Self::available();
        let known = Self::ALL.into_iter().find(|simd| simd.word() == word);
        known.filter(|simd| available.contains(simd)).ok_or_else(|| Error::Simd {
            value: word.to_owned(),
            available: available.iter().map(|simd| simd.word()).collect::<Vec<_>>().join(", "),
        })
    }

    fn best() -> Self {
        Self::available().pop().unwrap_or(Self::Baseline)
    }

    fn is_available(self) -> bool {
        match self {
            Self::Baseline => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Amx => Self::Avx512.is_available() && x86_has_bf16() && amx_is_granted(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 | Self::Amx => false,
        }
    }

    /// Whether the instruction set in use has instructions for products in bf16.
    pub fn has_bf16() -> bool {
        #[cfg(target_arch = "x86_64")]
        return Self::used() >= Self::Avx512 && x86_has_bf16();
        #[cfg(not(target_arch = "x86_64"))]
        false
    }
}

#[cfg(target_arch = "x86_64")]
fn x86_has_bf16() -> bool {
    is_x86_feature_detected!("avx512bf16")
}

/// Whether the processor has AMX with bf16 and the system permits this process to use it. Linux
/// requires a request, since tiles enlarge every thread's saved state; other systems are not
/// supported.
#[cfg(target_arch = "x86_64")]
fn amx_is_granted() -> bool {
    const BF16: u32 = 1 << 22;
    const TILE: u32 = 1 << 24;
    let features = std::arch::x86_64::__cpuid_count(7, 0).edx;
    features & (BF16 | TILE) == BF16 | TILE && request_tiles()
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn request_tiles() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_int = 0x1023;
    const TILE_DATA: libc::c_int = 18;
    // SAFETY: the call takes two integers and only changes the permissions of this process.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0 }
}

#[cfg(all(target_arch = "x86_64", not(target_os = "linux")))]
fn request_tiles() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_sets_can_be_requested_and_no_others() {
        for simd in Simd::available() {
            assert_eq!(Simd::named(simd.word()).unwrap(), simd);
        }
        assert!(Simd::available().contains(&Simd::used()));
        let error = Simd::named("avx1024").unwrap_err().to_string();
        assert!(error.contains("avx1024") && error.contains("baseline"), "{error}");
    }

    /// Runs all tests of this binary on every lower instruction set, each in a separate process.
    #[test]
    fn these_tests_pass_on_every_instruction_set() {
        if std::env::var_os(VARIABLE).is_some() {
            return;
        }
        let lower = Simd::available().into_iter().filter(|&simd| simd < Simd::used());
        for simd in lower {
            let tests = std::env::current_exe().unwrap();
            let output =
                std::process::Command::new(tests).env(VARIABLE, simd.word()).output().unwrap();
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "on {}:\n{printed}", simd.name());
        }
    }
}
