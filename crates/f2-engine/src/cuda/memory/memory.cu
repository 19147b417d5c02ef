// Copies between buffers, and sums over them.

// Writes the rounded copy of `count` weights.
KERNEL round_weights(u64 count, const float* weights, real* rounded) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) rounded[i] = narrow(weights[i]);
}

// `*to += Σ from`, in double precision.
KERNEL __launch_bounds__(1024) add_sum(u64 count, const float* from, float* to) {
    __shared__ double parts[32];
    double total = 0.0;
    for (u64 i = threadIdx.x; i < count; i += 1024) total += from[i];
#pragma unroll
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xffffffffu, total, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x) return;
    for (int i = 1; i < 32; i++) total += parts[i];
    *to += (float)total;
}

KERNEL fill_words(u64 count, u32 word, u32* to) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) to[i] = word;
}

// Gathers rows: `to[i] = from[rows[i]]`. One warp per row.
KERNEL gather_rows(int count, int width, const u32* rows, const real* from, real* to) {
    int index = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (index >= count) return;
    for (int column = lane * 8; column < width; column += 256) {
        float x[8];
        load8(from + (i64)rows[index] * width, column, width, x);
        store8(to + (i64)index * width, column, width, x);
    }
}

// Scatters rows: `to[rows[i]] = from[i]`, or `+=`.
KERNEL scatter_rows(int count, int width, int add, const u32* rows, const real* from, real* to) {
    int index = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (index >= count) return;
    real* place = to + (i64)rows[index] * width;
    for (int column = lane * 8; column < width; column += 256) {
        float x[8], before[8];
        load8(from + (i64)index * width, column, width, x);
        if (add) {
            load8(place, column, width, before);
#pragma unroll
            for (int i = 0; i < 8; i++) x[i] += before[i];
        }
        store8(place, column, width, x);
    }
}
