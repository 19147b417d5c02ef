//! Kernel launches: kernels with the types of their arguments, grids, and arguments as plain bits.

use std::ffi::c_void;
use std::marker::PhantomData;

use cudarc::driver::result;

use super::TensorMap;
use crate::cuda::{Cuda, Precision};

/// A launch configuration: blocks, threads per block, bytes of dynamic shared memory per block.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct Grid {
    blocks: (u32, u32),
    threads: u32,
    shared: u32,
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

    /// The same with `second` blocks in the second dimension.
    pub(in crate::cuda) fn by(self, second: usize) -> Self {
        Self { blocks: (self.blocks.0, second as u32), ..self }
    }

    /// The same with `bytes` of dynamic shared memory per block.
    pub(in crate::cuda) fn sharing(self, bytes: usize) -> Self {
        Self { shared: bytes as u32, ..self }
    }
}

/// The name of a kernel, with the types of its arguments as a tuple.
pub(in crate::cuda) struct Kernel<A> {
    pub(super) name: &'static str,
    arguments: PhantomData<fn(A)>,
}

impl<A> Clone for Kernel<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Kernel<A> {}

impl<A: Arguments> Kernel<A> {
    pub(in crate::cuda) const fn new(name: &'static str) -> Self {
        Self { name, arguments: PhantomData }
    }

    /// The kernel without its types.
    #[cfg(test)]
    pub(in crate::cuda) const fn declared(self) -> (&'static str, &'static [Kind]) {
        (self.name, A::KINDS)
    }
}

/// Declares the kernels of a family, and lists them for the test that compares them with the
/// signatures in the `.cu` files: `NAME: (types of arguments) = name_of_the_kernel;`.
macro_rules! kernels {
    ($($name:ident: $arguments:ty = $kernel:ident;)*) => {
        $(const $name: $crate::cuda::runtime::Kernel<$arguments> =
            $crate::cuda::runtime::Kernel::new(stringify!($kernel));)*

        /// All kernels of the family.
        #[cfg(test)]
        pub(in crate::cuda) const KERNELS: &[(&str, &[$crate::cuda::runtime::Kind])] =
            &[$($name.declared()),*];
    };
}
pub(in crate::cuda) use kernels;

/// The kind of a parameter. A number is stored in eight bytes, of which the driver copies the first
/// ones, as many as the kernel's parameter has. An integer may therefore be narrower in the
/// kernel, since hosts with CUDA are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cuda) enum Kind {
    /// Up to eight bytes.
    Integer,
    /// Four bytes.
    Float,
    /// Eight bytes.
    Double,
    /// A pointer.
    Address,
    /// A matrix whose parts the GPU copies.
    TensorMap,
}

/// An argument of a kernel.
pub(in crate::cuda) trait Argument {
    const KIND: Kind;
    /// What the driver copies from.
    type Bits;
    fn bits(self) -> Self::Bits;
}

impl Argument for TensorMap {
    const KIND: Kind = Kind::TensorMap;
    type Bits = Self;
    fn bits(self) -> Self {
        self
    }
}

impl Argument for Address {
    const KIND: Kind = Kind::Address;
    type Bits = u64;
    fn bits(self) -> u64 {
        self
    }
}

impl Argument for usize {
    const KIND: Kind = Kind::Integer;
    type Bits = u64;
    fn bits(self) -> u64 {
        self as u64
    }
}

impl Argument for u32 {
    const KIND: Kind = Kind::Integer;
    type Bits = u64;
    fn bits(self) -> u64 {
        u64::from(self)
    }
}

impl Argument for bool {
    const KIND: Kind = Kind::Integer;
    type Bits = u64;
    fn bits(self) -> u64 {
        u64::from(self)
    }
}

impl Argument for f64 {
    const KIND: Kind = Kind::Double;
    type Bits = u64;
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

impl Argument for f32 {
    const KIND: Kind = Kind::Float;
    type Bits = u64;
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
}

/// An address in the GPU's memory, or zero for none.
pub(in crate::cuda) type Address = u64;

/// All arguments of a kernel, in its order.
pub(in crate::cuda) trait Arguments {
    #[cfg_attr(not(test), expect(dead_code, reason = "a test compares kinds with signatures"))]
    const KINDS: &'static [Kind];
    /// Calls `run` with pointers to the bits of every argument.
    fn with_pointers<R>(self, run: impl FnOnce(&mut [*mut c_void]) -> R) -> R;
}

/// Implements [`Arguments`] for tuples of up to as many arguments as there are letters.
macro_rules! tuples {
    ($first:ident $($rest:ident)*) => {
        impl<$first: Argument, $($rest: Argument),*> Arguments for ($first, $($rest,)*) {
            const KINDS: &'static [Kind] = &[$first::KIND, $($rest::KIND),*];

            #[allow(non_snake_case, reason = "an argument has the name of its type")]
            fn with_pointers<Result>(
                self,
                run: impl FnOnce(&mut [*mut c_void]) -> Result,
            ) -> Result {
                let ($first, $($rest,)*) = self;
                let ($first, $($rest,)*) = &mut ($first.bits(), $($rest.bits(),)*);
                run(&mut [
                    std::ptr::from_mut($first).cast(),
                    $(std::ptr::from_mut($rest).cast()),*
                ])
            }
        }
        tuples!($($rest)*);
    };
    () => {};
}
tuples!(A B C D E F G H I J K L M N O P Q R S);

impl<P: Precision> Cuda<P> {
    /// Enqueues a kernel on the stream. An empty grid launches nothing.
    ///
    /// # Safety
    /// The addresses must be zero where the kernel allows it, or lie in buffers of this device
    /// that hold everything the kernel reads and writes at these sizes.
    pub(in crate::cuda) unsafe fn launch<A: Arguments>(
        &self,
        kernel: Kernel<A>,
        grid: Grid,
        arguments: A,
    ) {
        if grid.blocks.0 == 0 || grid.blocks.1 == 0 {
            return;
        }
        let function = match self.kernels.get(kernel.name) {
            Ok(function) => function,
            Err(reason) => return self.stream.note(kernel.name, Err(reason)),
        };
        self.stream.count_operation();
        let launched = arguments.with_pointers(|pointers| {
            // SAFETY: the arguments have the types of the kernel's signature, which a test checks;
            // the caller guarantees the addresses; the driver copies the arguments.
            unsafe {
                result::launch_kernel(
                    function.cu_function(),
                    (grid.blocks.0, grid.blocks.1, 1),
                    (grid.threads, 1, 1),
                    grid.shared,
                    self.stream.raw(),
                    pointers,
                )
            }
        });
        self.stream.note(kernel.name, launched);
    }
}
