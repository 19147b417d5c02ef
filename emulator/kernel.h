// What CUDA C++ has and C++ lacks, as far as the kernels use it.

#pragma once

#include <math.h>

#include <algorithm>
#include <type_traits>

#include "block.h"
#include "ptx.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) alignas(bytes)

#define threadIdx (emulator::current->index)
#define blockIdx (emulator::block.index)
#define blockDim (emulator::block.launch->block)
#define gridDim (emulator::block.launch->grid)

struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };

inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

inline float __uint_as_float(unsigned x) { return emulator::bits_as<float>(x); }
inline float __int_as_float(int x) { return emulator::bits_as<float>(x); }
inline unsigned __float_as_uint(float x) { return emulator::bits_as<unsigned>(x); }
inline double __longlong_as_double(long long x) { return emulator::bits_as<double>(x); }
inline long long __double_as_longlong(double x) { return emulator::bits_as<long long>(x); }

inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }

template <class T>
inline T __ldg(const T* from) {
    return *from;
}

template <class T>
inline T __ldcs(const T* from) {
    return *from;
}

template <class T>
inline void __stcs(T* to, T value) {
    *to = value;
}

template <class A, class B>
inline std::common_type_t<A, B> min(A a, B b) {
    std::common_type_t<A, B> x = a, y = b;
    return y < x ? y : x;
}

template <class A, class B>
inline std::common_type_t<A, B> max(A a, B b) {
    std::common_type_t<A, B> x = a, y = b;
    return x < y ? y : x;
}

inline void __syncthreads() { emulator::wait_for_block(); }
inline void __syncwarp() { emulator::wait_for_warp(); }

template <class T>
inline T __shfl_xor_sync(unsigned lanes, T own, int mask) {
    if (lanes != 0xffffffffu) emulator::fail("a shuffle of some lanes");
    unsigned from = (emulator::current->index.x ^ mask) % emulator::WARP;
    if constexpr (sizeof(T) == 4) {
        return emulator::bits_as<T>(emulator::show(emulator::bits_as<unsigned>(own))[from][0]);
    } else {
        auto word = emulator::bits_as<unsigned long long>(own);
        auto shown = emulator::show((unsigned)word, (unsigned)(word >> 32));
        return emulator::bits_as<T>(shown[from][0] | (unsigned long long)shown[from][1] << 32);
    }
}

inline size_t __cvta_generic_to_shared(const void* pointer) {
    return (const unsigned char*)pointer - emulator::block.shared;
}

namespace emulator {

// Calls a kernel with arguments as the driver passes them: an address for each.
template <class... Types, size_t... INDEX>
void call(void (*kernel)(Types...), void** arguments, std::index_sequence<INDEX...>) {
    kernel(*(Types*)arguments[INDEX]...);
}

template <class... Types>
void call(void (*kernel)(Types...), void** arguments) {
    call(kernel, arguments, std::index_sequence_for<Types...>());
}

// The sizes of a kernel's parameters.
template <class... Types>
std::vector<size_t> sizes_of(void (*)(Types...)) {
    return {sizeof(Types)...};
}

}  // namespace emulator

// Makes a kernel visible to the driver: the sizes of its parameters, and a function that runs it.
#define EMULATE(kernel, most_threads)                                                              \
    extern "C" __attribute__((visibility("default"))) std::vector<size_t> sizes_of_##kernel =     \
        emulator::sizes_of(kernel);                                                                \
    extern "C" __attribute__((visibility("default"))) void run_##kernel(                           \
        void** arguments, const emulator::Launch* launch) {                                        \
        auto entry = [](void** all) { emulator::call(kernel, all); };                              \
        emulator::run(#kernel, entry, arguments, *launch, most_threads);                           \
    }
