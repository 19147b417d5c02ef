// Shared by all kernels: numbers in working precision, chunks of eight columns, sums over warps and
// blocks, dropout. No header is included, so that only NVRTC has to be installed.
//
// `real` is the working precision: bf16, or float where F32 is defined.

typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define KERNEL extern "C" __global__ void

// Marks a missing target, class or candidate.
constexpr u32 NONE = 0xffffffffu;
constexpr float NEVER = -1e30f;

#ifdef F32
typedef float real;

__device__ __forceinline__ float widen(real x) { return x; }
__device__ __forceinline__ real narrow(float x) { return x; }
#else
struct real {
    u16 bits;
};

__device__ __forceinline__ float widen(real x) { return __uint_as_float((u32)x.bits << 16); }
__device__ __forceinline__ real narrow(float x) {
    real result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
    return result;
}

// Two numbers in one register, `low` in the lower half.
__device__ __forceinline__ u32 pack(float low, float high) {
    u32 result;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
    return result;
}
#endif

// Eight columns of a row of `width`, from `column` on; zeros beyond the row's end.
__device__ __forceinline__ void load8(const real* row, int column, int width, float (&x)[8]) {
    if (column >= width) {
#pragma unroll
        for (int i = 0; i < 8; i++) x[i] = 0.0f;
    } else if (width % 8 == 0) {
#ifdef F32
        float4 low = *(const float4*)(row + column), high = *(const float4*)(row + column + 4);
        x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
        x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
#else
        uint4 words = *(const uint4*)(row + column);
        u32 word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            x[2 * i] = __uint_as_float(word[i] << 16);
            x[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
        }
#endif
    } else {
#pragma unroll
        for (int i = 0; i < 8; i++) x[i] = column + i < width ? widen(row[column + i]) : 0.0f;
    }
}

__device__ __forceinline__ void store8(real* row, int column, int width, const float (&x)[8]) {
    if (column >= width) return;
    if (width % 8 == 0) {
#ifdef F32
        *(float4*)(row + column) = make_float4(x[0], x[1], x[2], x[3]);
        *(float4*)(row + column + 4) = make_float4(x[4], x[5], x[6], x[7]);
#else
        *(uint4*)(row + column) =
            make_uint4(pack(x[0], x[1]), pack(x[2], x[3]), pack(x[4], x[5]), pack(x[6], x[7]));
#endif
    } else {
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (column + i < width) row[column + i] = narrow(x[i]);
    }
}

__device__ __forceinline__ u32 shared_address(const void* pointer) {
    return (u32)__cvta_generic_to_shared(pointer);
}

// Copies sixteen bytes to shared memory asynchronously; writes zeros if `there` is false.
__device__ __forceinline__ void copy_chunk(u32 to, const void* from, bool there) {
    int bytes = there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;"); }

template <int PENDING>
__device__ __forceinline__ void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING));
}

// Copies eight columns of a row to shared memory asynchronously, to be read by the same thread;
// zeros beyond the row's end.
__device__ __forceinline__ void fetch8(real* to, const real* row, int column, int width) {
    if (width % 8 == 0) {
#pragma unroll
        for (int i = 0; i < 8 * sizeof(real) / 16; i++)
            copy_chunk(shared_address(to) + 16 * i, (const char*)(row + column) + 16 * i, column < width);
    } else {
#pragma unroll
        for (int i = 0; i < 8; i++) to[i] = column + i < width ? row[column + i] : narrow(0.0f);
    }
}

// `load8` for parameters, which begin at multiples of sixteen elements.
__device__ __forceinline__ void load8_values(const float* row, int column, int width, float (&x)[8]) {
    if (width % 8 == 0 && column < width) {
        float4 low = *(const float4*)(row + column), high = *(const float4*)(row + column + 4);
        x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
        x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
    } else {
#pragma unroll
        for (int i = 0; i < 8; i++) x[i] = column + i < width ? row[column + i] : 0.0f;
    }
}

template <class T>
__device__ __forceinline__ T warp_sum(T x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
    return x;
}

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

// The sum over all threads of a block, in a fixed order; every thread gets the result.
template <class T>
__device__ T block_sum(T x) {
    __shared__ T parts[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x = warp_sum(x);
    __syncthreads();
    if (lane == 0) parts[warp] = x;
    __syncthreads();
    return warp_sum(lane < (blockDim.x + 31) / 32 ? parts[lane] : T(0));
}

__device__ float block_max(float x) {
    __shared__ float parts[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x = warp_max(x);
    __syncthreads();
    if (lane == 0) parts[warp] = x;
    __syncthreads();
    return warp_max(lane < (blockDim.x + 31) / 32 ? parts[lane] : NEVER);
}

// One site's dropout. `clock` holds seed, first position and step; see `Dropout` in ops/dropout.rs.
struct Mask {
    const u32* clock;
    u32 site;
    u32 threshold;
    float scale;
};

__device__ __forceinline__ void philox(u32 (&counter)[4], u32 key0, u32 key1) {
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u32 high0 = __umulhi(0xD2511F53u, counter[0]), low0 = 0xD2511F53u * counter[0];
        u32 high1 = __umulhi(0xCD9E8D57u, counter[2]), low1 = 0xCD9E8D57u * counter[2];
        counter[0] = high1 ^ counter[1] ^ key0;
        counter[1] = low1;
        counter[2] = high0 ^ counter[3] ^ key1;
        counter[3] = low0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

// Multiplies eight columns of a position by 0 or the scale.
__device__ __forceinline__ void drop8(Mask mask, u32 position, int column, int width, float (&x)[8]) {
    if (mask.threshold == 0) return;
    u64 first = (u64)mask.clock[2] | ((u64)mask.clock[3] << 32);
    u64 block = (first + position) * (u64)((width + 7) / 8) + column / 8;
    u32 word[4] = {(u32)block, (u32)(block >> 32), mask.site, mask.clock[4]};
    philox(word, mask.clock[0], mask.clock[1]);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        u32 half = (word[i / 2] >> (16 * (i % 2))) & 0xffffu;
        x[i] *= half >= mask.threshold ? mask.scale : 0.0f;
    }
}
