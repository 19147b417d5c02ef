// What the driver and a program of kernels agree on.

#pragma once

#include <cstddef>

namespace emulator {

struct Index {
    unsigned x, y, z;
};

// How a kernel is launched: blocks, threads per block, bytes of dynamic shared memory.
struct Launch {
    Index grid, block;
    size_t shared;
};

}  // namespace emulator
