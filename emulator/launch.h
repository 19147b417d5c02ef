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

// A matrix of which kernels copy boxes of 64 columns of bf16 to shared memory; `stride` is in bytes.
struct Matrix {
    const char* start;
    unsigned long long rows, columns, stride, box_rows;
};

}  // namespace emulator
