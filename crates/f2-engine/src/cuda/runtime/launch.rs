//! Kernel launches: a name, a shape, and arguments as the bits they have in a register.

use std::ffi::c_void;

use cudarc::driver::result;

use crate::cuda::{Cuda, Precision};

/// How many blocks, of how many threads, with how many bytes of shared memory.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct Grid {
    pub(in crate::cuda) blocks: (u32, u32),
    pub(in crate::cuda) threads: u32,
    pub(in crate::cuda) shared: u32,
}

impl Grid {
    /// One thread per item.
    pub(in crate::cuda) fn items(count: usize) -> Self {
        Self::blocks(count.div_ceil(256), 256)
    }

    /// One warp per row, eight to a block.
    pub(in crate::cuda) fn rows(rows: usize) -> Self {
        Self::blocks(rows.div_ceil(8), 256)
    }

    pub(in crate::cuda) fn blocks(blocks: usize, threads: u32) -> Self {
        Self { blocks: (blocks as u32, 1), threads, shared: 0 }
    }

    /// Another dimension of blocks.
    pub(in crate::cuda) fn by(self, second: usize) -> Self {
        Self { blocks: (self.blocks.0, second as u32), ..self }
    }

    pub(in crate::cuda) fn sharing(self, bytes: usize) -> Self {
        Self { shared: bytes as u32, ..self }
    }
}

/// A number as the driver takes it: in the low bytes of eight. CUDA's hosts are little-endian.
pub(in crate::cuda) trait Bits {
    fn bits(self) -> u64;
}

impl Bits for u64 {
    fn bits(self) -> u64 {
        self
    }
}

impl Bits for usize {
    fn bits(self) -> u64 {
        self as u64
    }
}

impl Bits for u32 {
    fn bits(self) -> u64 {
        u64::from(self)
    }
}

impl Bits for bool {
    fn bits(self) -> u64 {
        u64::from(self)
    }
}

impl Bits for f64 {
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

impl Bits for f32 {
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
}

/// The arguments of a kernel, in its order.
macro_rules! arguments {
    ($($argument:expr),* $(,)?) => { [$($crate::cuda::runtime::Bits::bits($argument)),*] };
}
pub(in crate::cuda) use arguments;

impl<P: Precision> Cuda<P> {
    /// Puts a kernel on the stream. A grid without blocks is no work.
    pub(in crate::cuda) fn launch<const N: usize>(
        &self,
        name: &'static str,
        grid: Grid,
        mut arguments: [u64; N],
    ) {
        if grid.blocks.0 == 0 || grid.blocks.1 == 0 {
            return;
        }
        let function = match self.kernels.get(name) {
            Ok(function) => function,
            Err(reason) => return self.stream.note(name, Err(reason)),
        };
        self.stream.count();
        let mut pointers =
            arguments.each_mut().map(|argument| (&raw mut *argument).cast::<c_void>());
        // SAFETY: callers give the arguments of the kernel's signature, whose pointers are buffers
        // of this device with room for what the kernel touches; the driver copies the arguments.
        let launched = unsafe {
            result::launch_kernel(
                function.cu_function(),
                (grid.blocks.0, grid.blocks.1, 1),
                (grid.threads, 1, 1),
                grid.shared,
                self.stream.raw(),
                &mut pointers,
            )
        };
        self.stream.note(name, launched);
    }
}
