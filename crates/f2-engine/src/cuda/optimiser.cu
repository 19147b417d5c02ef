// The global norm and AdamW: single passes over the flat buffers.

// Each block's sum of squares, in double precision.
KERNEL __launch_bounds__(512) square_sums(u64 quads, const float4* gradients, double* partial) {
    __shared__ double parts[16];
    double total = 0.0;
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < quads; i += 4 * stride) {
        float4 g[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            g[j] = i + j * stride < quads ? gradients[i + j * stride] : make_float4(0, 0, 0, 0);
        float sum = 0.0f;
#pragma unroll
        for (int j = 0; j < 4; j++)
            sum += (g[j].x * g[j].x + g[j].y * g[j].y) + (g[j].z * g[j].z + g[j].w * g[j].w);
        total += sum;
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x) return;
    for (int i = 1; i < 16; i++) total += parts[i];
    partial[blockIdx.x] = total;
}

// The square root of the sum of at most 1,024 parts.
KERNEL __launch_bounds__(1024) finish_norm(int count, const double* partial, float* norm) {
    __shared__ double parts[32];
    double total = threadIdx.x < count ? partial[threadIdx.x] : 0.0;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x) return;
    for (int i = 1; i < 32; i++) total += parts[i];
    *norm = (float)sqrt(total);
}

// The sum of squares of each block of 4,096 gradients, in double precision, as the two words of its
// bits.
KERNEL __launch_bounds__(256) block_square_sums(u64 count, const float* gradients, u32* sums) {
    __shared__ double parts[8];
    double total = 0.0;
    u64 start = 4096 * (u64)blockIdx.x;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        u64 i = start + 4 * (j * 256 + threadIdx.x);
        float4 g = make_float4(0, 0, 0, 0);
        if (i + 4 <= count) {
            g = *(const float4*)(gradients + i);
        } else if (i < count) {
            g.x = gradients[i];
            if (i + 1 < count) g.y = gradients[i + 1];
            if (i + 2 < count) g.z = gradients[i + 2];
        }
        total += (g.x * g.x + g.y * g.y) + (g.z * g.z + g.w * g.w);
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x) return;
    for (int i = 1; i < 8; i++) total += parts[i];
    u64 bits = (u64)__double_as_longlong(total);
    sums[2 * blockIdx.x] = (u32)bits;
    sums[2 * blockIdx.x + 1] = (u32)(bits >> 32);
}

// The square root of the sum of what `block_square_sums` wrote.
KERNEL __launch_bounds__(1024) norm_of_sums(u64 blocks, const u32* sums, float* norm) {
    __shared__ double parts[32];
    double total = 0.0;
    for (u64 i = threadIdx.x; i < blocks; i += 1024)
        total += __longlong_as_double((i64)((u64)sums[2 * i] | ((u64)sums[2 * i + 1] << 32)));
#pragma unroll
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x) return;
    for (int i = 1; i < 32; i++) total += parts[i];
    *norm = (float)sqrt(total);
}

struct Rates {
    float penalty, keep, beta1, rest1, beta2, rest2, step, root, epsilon;
};

__device__ __forceinline__ float update(Rates rates, bool decays, float clip, float gradient, float w,
                                        float& m, float& v) {
    gradient *= clip;
    if (decays) gradient += rates.penalty * w;
    m = rates.beta1 * m + rates.rest1 * gradient;
    v = rates.beta2 * v + rates.rest2 * gradient * gradient;
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(v));
    return (decays ? w * rates.keep : w) -
           rates.step * __fdividef(m, root * rates.root + rates.epsilon);
}

// Whether element `i` lies in one of the ascending ranges `[starts[r], ends[r])`.
__device__ __forceinline__ bool in_ranges(int ranges, const u64* starts, const u64* ends, u64 i) {
    int low = 0, high = ranges;
    while (low < high) {
        int middle = (low + high) / 2;
        if (__ldg(ends + middle) <= i) low = middle + 1;
        else high = middle;
    }
    return low < ranges && __ldg(starts + low) <= i;
}

// One update of parameters, moments and the rounded copy; sets gradients to zero. If the norm is
// not finite, only the gradients change. Ranges begin and end at multiples of four. A block
// processes a long stretch of every buffer, since contiguous accesses to memory are faster.
constexpr int QUADS = 8;

KERNEL __launch_bounds__(256)
adamw(u64 quads, int ranges, const u64* bounds, const float* norm, float most, float penalty,
      float keep, float beta1, float rest1, float beta2, float rest2, float step, float root,
      float epsilon, float4* __restrict__ weights, float4* __restrict__ first,
      float4* __restrict__ second, float4* __restrict__ gradients, real* __restrict__ rounded) {
    Rates rates = {penalty, keep, beta1, rest1, beta2, rest2, step, root, epsilon};
    float length = __ldg(norm);
    float clip = length > most ? most / length : 1.0f;
    u64 start = (u64)blockIdx.x * QUADS * 256 + threadIdx.x;
    float4 g[QUADS], w[QUADS], m[QUADS], v[QUADS];
#pragma unroll
    for (int k = 0; k < QUADS; k++) {
        u64 i = start + k * 256;
        if (i < quads) {
            g[k] = gradients[i], w[k] = weights[i];
            m[k] = first[i], v[k] = second[i];
        }
    }
#pragma unroll
    for (int k = 0; k < QUADS; k++) {
        u64 i = start + k * 256;
        if (i >= quads) break;
        gradients[i] = make_float4(0, 0, 0, 0);
        if (!isfinite(length)) continue;
        bool decays = in_ranges(ranges, bounds, bounds + ranges, 4 * i);
        w[k].x = update(rates, decays, clip, g[k].x, w[k].x, m[k].x, v[k].x);
        w[k].y = update(rates, decays, clip, g[k].y, w[k].y, m[k].y, v[k].y);
        w[k].z = update(rates, decays, clip, g[k].z, w[k].z, m[k].z, v[k].z);
        w[k].w = update(rates, decays, clip, g[k].w, w[k].w, m[k].w, v[k].w);
        weights[i] = w[k], first[i] = m[k], second[i] = v[k];
#ifndef F32
        ((uint2*)rounded)[i] = make_uint2(pack(w[k].x, w[k].y), pack(w[k].z, w[k].w));
#endif
    }
}
