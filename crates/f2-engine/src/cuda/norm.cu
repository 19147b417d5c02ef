// Layer norm, and the residual with dropout before it. A warp takes a row and holds it in
// registers: PER chunks of eight columns per lane.

template <int PER>
__device__ __forceinline__ void norm_row(int lane, int width, const float* gain, const float* bias,
                                         float (&x)[PER][8], real* normed, float* statistics) {
    float sum = 0.0f;
#pragma unroll
    for (int part = 0; part < PER; part++)
#pragma unroll
        for (int i = 0; i < 8; i++) sum += x[part][i];
    float mean = warp_sum(sum) / width;
    float squares = 0.0f;
#pragma unroll
    for (int part = 0; part < PER; part++) {
        int column = part * 256 + lane * 8;
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (column + i < width) squares += (x[part][i] - mean) * (x[part][i] - mean);
    }
    float reciprocal = rsqrtf(warp_sum(squares) / width + 1e-5f);
    if (lane == 0) statistics[0] = mean, statistics[1] = reciprocal;
#pragma unroll
    for (int part = 0; part < PER; part++) {
        int column = part * 256 + lane * 8;
        float g[8], b[8], y[8];
        load8_values(gain, column, width, g);
        load8_values(bias, column, width, b);
#pragma unroll
        for (int i = 0; i < 8; i++) y[i] = (x[part][i] - mean) * reciprocal * g[i] + b[i];
        store8(normed, column, width, y);
    }
}

template <int PER>
__device__ __forceinline__ void norm_forward(int rows, int width, const float* gain,
                                             const float* bias, const real* x, real* normed,
                                             float* statistics) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float values[PER][8];
#pragma unroll
    for (int part = 0; part < PER; part++)
        load8(x + (i64)row * width, part * 256 + lane * 8, width, values[part]);
    norm_row<PER>(lane, width, gain, bias, values, normed + (i64)row * width, statistics + 2 * row);
}

template <int PER>
__device__ __forceinline__ void residual_forward(int rows, int width, const float* gain,
                                                 const float* bias, Mask mask, const real* x,
                                                 const real* branch, real* sum, real* normed,
                                                 float* statistics) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float values[PER][8], added[PER][8];
#pragma unroll
    for (int part = 0; part < PER; part++) {
        load8(x + (i64)row * width, part * 256 + lane * 8, width, values[part]);
        load8(branch + (i64)row * width, part * 256 + lane * 8, width, added[part]);
    }
#pragma unroll
    for (int part = 0; part < PER; part++) {
        int column = part * 256 + lane * 8;
        drop8(mask, row, column, width, added[part]);
        // The norm sees the sum as it is kept, so that the backward pass sees the same.
#pragma unroll
        for (int i = 0; i < 8; i++) values[part][i] = widen(narrow(values[part][i] + added[part][i]));
        store8(sum + (i64)row * width, column, width, values[part]);
    }
    norm_row<PER>(lane, width, gain, bias, values, normed + (i64)row * width, statistics + 2 * row);
}

// `d_x += …`, and through dropout into `d_branch` where there is one. Gain and bias gradients of a
// block's rows go to `partial: [blocks, 2, width]`.
template <int PER>
__device__ __forceinline__ void backward(int rows, int width, const float* gain, Mask mask,
                                         const real* x, const float* statistics,
                                         const real* d_normed, real* d_x, real* d_branch,
                                         float* partial) {
    extern __shared__ float sums[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    float d_gain[PER][8] = {}, d_bias[PER][8] = {};
    for (int row = blockIdx.x * warps + warp; row < rows; row += gridDim.x * warps) {
        float mean = statistics[2 * row], reciprocal = statistics[2 * row + 1];
        i64 start = (i64)row * width;
        float d[PER][8], standard[PER][8], before[PER][8];
        float sum = 0.0f, product = 0.0f;
#pragma unroll
        for (int part = 0; part < PER; part++) {
            int column = part * 256 + lane * 8;
            load8(d_normed + start, column, width, d[part]);
            load8(x + start, column, width, standard[part]);
            load8(d_x + start, column, width, before[part]);
        }
#pragma unroll
        for (int part = 0; part < PER; part++) {
            float g[8];
            load8_values(gain, part * 256 + lane * 8, width, g);
#pragma unroll
            for (int i = 0; i < 8; i++) {
                standard[part][i] = (standard[part][i] - mean) * reciprocal;
                d_gain[part][i] += d[part][i] * standard[part][i];
                d_bias[part][i] += d[part][i];
                d[part][i] *= g[i];
                sum += d[part][i];
                product += d[part][i] * standard[part][i];
            }
        }
        sum = warp_sum(sum) / width;
        product = warp_sum(product) / width;
#pragma unroll
        for (int part = 0; part < PER; part++) {
            int column = part * 256 + lane * 8;
#pragma unroll
            for (int i = 0; i < 8; i++)
                before[part][i] +=
                    (d[part][i] - sum - standard[part][i] * product) * reciprocal;
            store8(d_x + start, column, width, before[part]);
            if (d_branch) {
                drop8(mask, row, column, width, before[part]);
                store8(d_branch + start, column, width, before[part]);
            }
        }
    }
    // Warp after warp adds its share; sums of lanes' columns lie apart, so that no banks meet.
    float* bias_sums = sums + PER * 256;
    for (int turn = 0; turn < warps; turn++) {
        if (warp == turn) {
#pragma unroll
            for (int part = 0; part < PER; part++)
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    int place = part * 256 + i * 32 + lane;
                    sums[place] = d_gain[part][i] + (turn ? sums[place] : 0.0f);
                    bias_sums[place] = d_bias[part][i] + (turn ? bias_sums[place] : 0.0f);
                }
        }
        __syncthreads();
    }
    float* to = partial + (i64)blockIdx.x * 2 * width;
    for (int column = threadIdx.x; column < width; column += blockDim.x) {
        int place = column / 256 * 256 + column % 8 * 32 + column % 256 / 8;
        to[column] = sums[place];
        to[width + column] = bias_sums[place];
    }
}

#define NORMS(PER)                                                                                  \
    KERNEL norm_##PER(int rows, int width, const float* gain, const float* bias, const real* x,     \
                      real* normed, float* statistics) {                                            \
        norm_forward<PER>(rows, width, gain, bias, x, normed, statistics);                          \
    }                                                                                               \
    KERNEL residual_norm_##PER(int rows, int width, const float* gain, const float* bias,           \
                               const u32* clock, u32 site, u32 threshold, float scale,              \
                               const real* x, const real* branch, real* sum, real* normed,          \
                               float* statistics) {                                                 \
        Mask mask = {clock, site, threshold, scale};                                                \
        residual_forward<PER>(rows, width, gain, bias, mask, x, branch, sum, normed, statistics);   \
    }                                                                                               \
    KERNEL __launch_bounds__(256) norm_backward_##PER(                                              \
        int rows, int width, const float* gain, const u32* clock, u32 site, u32 threshold,          \
        float scale, const real* x, const float* statistics, const real* d_normed, real* d_x,       \
        real* d_branch, float* partial) {                                                           \
        Mask mask = {clock, site, threshold, scale};                                                \
        backward<PER>(rows, width, gain, mask, x, statistics, d_normed, d_x, d_branch, partial);    \
    }

NORMS(1)
NORMS(2)
NORMS(4)

// Rows too wide for one warp's registers: a block takes a row and reads it again from the cache.

__device__ void norm_wide_row(int width, const float* gain, const float* bias, const real* x,
                              real* normed, float* statistics) {
    float sum = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < width; i += blockDim.x) sum += widen(x[i]);
    float mean = block_sum(sum) / width;
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        squares += (widen(x[i]) - mean) * (widen(x[i]) - mean);
    float reciprocal = rsqrtf(block_sum(squares) / width + 1e-5f);
    if (threadIdx.x == 0) statistics[0] = mean, statistics[1] = reciprocal;
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        normed[i] = narrow((widen(x[i]) - mean) * reciprocal * gain[i] + bias[i]);
}

KERNEL norm_wide(int rows, int width, const float* gain, const float* bias, const real* x,
                 real* normed, float* statistics) {
    i64 start = (i64)blockIdx.x * width;
    norm_wide_row(width, gain, bias, x + start, normed + start, statistics + 2 * blockIdx.x);
}

KERNEL residual_norm_wide(int rows, int width, const float* gain, const float* bias,
                          const u32* clock, u32 site, u32 threshold, float scale, const real* x,
                          const real* branch, real* sum, real* normed, float* statistics) {
    Mask mask = {clock, site, threshold, scale};
    i64 start = (i64)blockIdx.x * width;
    for (int column = threadIdx.x * 8; column < width; column += blockDim.x * 8) {
        float values[8], added[8];
        load8(x + start, column, width, values);
        load8(branch + start, column, width, added);
        drop8(mask, blockIdx.x, column, width, added);
#pragma unroll
        for (int i = 0; i < 8; i++) values[i] += added[i];
        store8(sum + start, column, width, values);
    }
    __syncthreads();
    norm_wide_row(width, gain, bias, sum + start, normed + start, statistics + 2 * blockIdx.x);
}

KERNEL norm_backward_wide(int rows, int width, const float* gain, const u32* clock, u32 site,
                          u32 threshold, float scale, const real* x, const float* statistics,
                          const real* d_normed, real* d_x, real* d_branch, float* partial) {
    Mask mask = {clock, site, threshold, scale};
    i64 start = (i64)blockIdx.x * width;
    float mean = statistics[2 * blockIdx.x], reciprocal = statistics[2 * blockIdx.x + 1];
    float sum = 0.0f, product = 0.0f;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        float d = widen(d_normed[start + i]) * gain[i];
        sum += d;
        product += d * (widen(x[start + i]) - mean) * reciprocal;
    }
    sum = block_sum(sum) / width;
    product = block_sum(product) / width;
    for (int column = threadIdx.x * 8; column < width; column += blockDim.x * 8) {
        float d[8], values[8], before[8], g[8];
        load8(d_normed + start, column, width, d);
        load8(x + start, column, width, values);
        load8(d_x + start, column, width, before);
        load8_values(gain, column, width, g);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            float standard = (values[i] - mean) * reciprocal;
            before[i] += (d[i] * g[i] - sum - standard * product) * reciprocal;
        }
        store8(d_x + start, column, width, before);
        if (d_branch) {
            drop8(mask, blockIdx.x, column, width, before);
            store8(d_branch + start, column, width, before);
        }
    }
}

// Gain and bias gradients of `per_block` rows, to `partial: [blocks, 2, width]`.
KERNEL norm_sums_wide(int rows, int width, int per_block, const real* x, const float* statistics,
                      const real* d_normed, float* partial) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= width) return;
    int end = min(rows, (int)(blockIdx.y + 1) * per_block);
    float d_gain = 0.0f, d_bias = 0.0f;
#pragma unroll 4
    for (int row = blockIdx.y * per_block; row < end; row++) {
        float d = widen(d_normed[(i64)row * width + column]);
        float value = widen(x[(i64)row * width + column]);
        d_gain += d * (value - statistics[2 * row]) * statistics[2 * row + 1];
        d_bias += d;
    }
    float* to = partial + (i64)blockIdx.y * 2 * width;
    to[column] = d_gain;
    to[width + column] = d_bias;
}
