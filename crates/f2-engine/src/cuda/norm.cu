// Layer norm, and the residual with dropout before it. A warp processes a row and holds it in
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
        // The norm is that of the sum as stored, which is what the backward pass reads.
#pragma unroll
        for (int i = 0; i < 8; i++) values[part][i] = widen(narrow(values[part][i] + added[part][i]));
        store8(sum + (i64)row * width, column, width, values[part]);
    }
    norm_row<PER>(lane, width, gain, bias, values, normed + (i64)row * width, statistics + 2 * row);
}

// Rows that a warp has in flight in a backward pass: as many as fit into 72 KiB for eight warps, at
// most three. If only one fits, rows are read directly.
template <int PER>
__device__ constexpr int rows_ahead() {
    constexpr int MOST = 72 * 1024 / (8 * 3 * 256 * PER * (int)sizeof(real));
    return MOST < 2 ? 1 : MOST > 3 ? 3 : MOST;
}

// Adds the shares of all warps in order. `shared: [warps, PER · 256]`; a lane's eight columns are
// 32 apart, so that there are no bank conflicts.
template <int PER>
__device__ __forceinline__ void add_shares(const float (&share)[PER][8], int width, float* shared,
                                           float* to) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
#pragma unroll
    for (int part = 0; part < PER; part++)
#pragma unroll
        for (int i = 0; i < 8; i++)
            shared[warp * PER * 256 + part * 256 + i * 32 + lane] = share[part][i];
    __syncthreads();
    for (int column = threadIdx.x; column < width; column += blockDim.x) {
        const float* own = shared + column / 256 * 256 + column % 8 * 32 + column % 256 / 8;
        float sum = own[0];
#pragma unroll 7
        for (int other = 1; other < warps; other++) sum += own[other * PER * 256];
        to[column] = sum;
    }
    __syncthreads();
}

// `d_x += …`; `d_branch`, if given, gets `d_x` through dropout. A block's sums over its rows are
// written to `partial: [blocks, 2, width]` (gain and bias gradients) and to
// `branch_sums: [blocks, width]` (columns of `d_branch`).
template <int PER>
__device__ __forceinline__ void backward(int rows, int width, const float* gain, Mask mask,
                                         const real* x, const float* statistics,
                                         const real* d_normed, real* d_x, real* d_branch,
                                         float* partial, float* branch_sums) {
    constexpr int AHEAD = rows_ahead<PER>();
    extern __shared__ __align__(16) float in_flight[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    // The lane's fetched values: `[AHEAD, 3, PER, 8]`, lanes side by side.
    real* fetched = (real*)in_flight + (warp * AHEAD * 3 * PER * 32 + lane) * 8;
    int step = gridDim.x * warps;
    auto fetch = [=](int row, int slot) {
        if constexpr (AHEAD > 1) {
            const real* from[3] = {d_normed, x, d_x};
            if (row < rows)
#pragma unroll
                for (int i = 0; i < 3 * PER; i++)
                    fetch8(fetched + (slot * 3 * PER + i) * 256, from[i / PER] + (i64)row * width,
                           i % PER * 256 + lane * 8, width);
            commit();
        }
    };
    auto load = [=](int which, int part, int row, int slot, float (&to)[8]) {
        if constexpr (AHEAD > 1) {
            load8(fetched + ((slot * 3 + which) * PER + part) * 256, 0, 8, to);
        } else {
            const real* from = which == 0 ? d_normed : which == 1 ? x : d_x;
            load8(from + (i64)row * width, part * 256 + lane * 8, width, to);
        }
    };
    float d_gain[PER][8] = {}, d_bias[PER][8] = {}, d_sum[PER][8] = {};
    int first = blockIdx.x * warps + warp, slot = 0;
#pragma unroll
    for (int i = 0; i < AHEAD - 1; i++) fetch(first + i * step, i);
    for (int row = first; row < rows; row += step) {
        float mean = statistics[2 * row], reciprocal = statistics[2 * row + 1];
        fetch(row + (AHEAD - 1) * step, slot == 0 ? AHEAD - 1 : slot - 1);
        wait<AHEAD - 1>();
        float d[PER][8], sum = 0.0f, product = 0.0f;
#pragma unroll
        for (int part = 0; part < PER; part++) {
            float standard[8], g[8];
            load(0, part, row, slot, d[part]);
            load(1, part, row, slot, standard);
            load8_values(gain, part * 256 + lane * 8, width, g);
#pragma unroll
            for (int i = 0; i < 8; i++) {
                standard[i] = (standard[i] - mean) * reciprocal;
                d_gain[part][i] += d[part][i] * standard[i];
                d_bias[part][i] += d[part][i];
                d[part][i] *= g[i];
                sum += d[part][i];
                product += d[part][i] * standard[i];
            }
        }
        sum = warp_sum(sum) / width;
        product = warp_sum(product) / width;
#pragma unroll
        for (int part = 0; part < PER; part++) {
            int column = part * 256 + lane * 8;
            // Read once more, since registers are scarce.
            float before[8], standard[8];
            load(2, part, row, slot, before);
            load(1, part, row, slot, standard);
#pragma unroll
            for (int i = 0; i < 8; i++) {
                standard[i] = (standard[i] - mean) * reciprocal;
                before[i] += (d[part][i] - sum - standard[i] * product) * reciprocal;
            }
            store8(d_x + (i64)row * width, column, width, before);
            if (d_branch) {
                drop8(mask, row, column, width, before);
                store8(d_branch + (i64)row * width, column, width, before);
#pragma unroll
                for (int i = 0; i < 8; i++) d_sum[part][i] += before[i];
            }
        }
        slot = slot + 1 == AHEAD ? 0 : slot + 1;
    }
    wait<0>();
    __syncthreads();
    float* to = partial + (i64)blockIdx.x * 2 * width;
    add_shares<PER>(d_gain, width, in_flight, to);
    add_shares<PER>(d_bias, width, in_flight, to + width);
    if (d_branch) add_shares<PER>(d_sum, width, in_flight, branch_sums + (i64)blockIdx.x * width);
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
        real* d_branch, float* partial, float* branch_sums) {                                       \
        Mask mask = {clock, site, threshold, scale};                                                \
        backward<PER>(rows, width, gain, mask, x, statistics, d_normed, d_x, d_branch, partial,     \
                      branch_sums);                                                                 \
    }

NORMS(1)
NORMS(2)
NORMS(4)

// Rows too wide for one warp's registers: a block processes a row and rereads it from the cache.

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
                          const real* d_normed, real* d_x, real* d_branch, float* partial,
                          float* branch_sums) {
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

// Writes gain and bias gradients of `per_block` rows to `partial: [blocks, 2, width]`.
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
