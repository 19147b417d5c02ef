// Token vectors plus learned positions. One warp per row.

KERNEL embed(int rows, int length, int width, const float* tokens, const float* positions,
             const u32* ids, const u32* clock, u32 site, u32 threshold, float scale, real* x) {
    Mask mask = {clock, site, threshold, scale};
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    const float* token = tokens + (i64)ids[row] * width;
    const float* place = positions + (i64)(row % length) * width;
    for (int column = lane * 8; column < width; column += 256) {
        float a[8], b[8];
        load8_values(token, column, width, a);
        load8_values(place, column, width, b);
#pragma unroll
        for (int i = 0; i < 8; i++) a[i] += b[i];
        drop8(mask, row, column, width, a);
        store8(x + (i64)row * width, column, width, a);
    }
}

// New tokens of cached sequences: row `r` is at position `places[r]` of its sequence.
KERNEL embed_spans(int rows, int width, const float* tokens, const float* positions, const u32* ids,
                   const u32* places, real* x) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    const float* token = tokens + (i64)ids[row] * width;
    const float* place = positions + (i64)places[row] * width;
    for (int column = lane * 8; column < width; column += 256) {
        float a[8], b[8];
        load8_values(token, column, width, a);
        load8_values(place, column, width, b);
#pragma unroll
        for (int i = 0; i < 8; i++) a[i] += b[i];
        store8(x + (i64)row * width, column, width, a);
    }
}

// Adds eight columns of row `row` of d_x to a sum, through dropout.
__device__ __forceinline__ void add_row(float (&sum)[8], u32 row, int column, int width, Mask mask,
                                        const real* d_x) {
    float x[8];
    load8(d_x + (i64)row * width, column, width, x);
    drop8(mask, row, column, width, x);
#pragma unroll
    for (int i = 0; i < 8; i++) sum[i] += x[i];
}

// Adds 256 columns from `start` on of `count` rows of d_x, where `row_of(i)` is the i-th row. The
// block's warps take rows in turn, and their sums are added in a fixed order.
template <int WARPS, typename RowOf>
__device__ void add_rows(int count, RowOf row_of, int start, int width, Mask mask, const real* d_x,
                         float* gradient) {
    __shared__ float sums[WARPS][256];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum[8] = {};
#pragma unroll 4
    for (int i = warp; i < count; i += WARPS)
        add_row(sum, row_of(i), start + lane * 8, width, mask, d_x);
#pragma unroll
    for (int i = 0; i < 8; i++) sums[warp][lane * 8 + i] = sum[i];
    __syncthreads();
    if (threadIdx.x < 256 && start + threadIdx.x < width) {
        float total = 0.0f;
        for (int i = 0; i < WARPS && i < count; i++) total += sums[i][threadIdx.x];
        gradient[start + threadIdx.x] += total;
    }
}

// Tokens that occur at most `few` times, one warp each: `order` lists positions by token, `starts`
// where those of each of the `counts[0]` tokens begin.
KERNEL embed_backward_rare(const u32* counts, u32 few, int width, const u32* ids, const u32* order,
                           const u32* starts, const u32* clock, u32 site, u32 threshold,
                           float scale, const real* d_x, float* gradients) {
    Mask mask = {clock, site, threshold, scale};
    int group = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (group >= counts[0]) return;
    u32 start = starts[group], end = starts[group + 1];
    if (end - start > few) return;
    float* gradient = gradients + (i64)ids[order[start]] * width;
    for (int column = lane * 8; column < width; column += 256) {
        float sum[8] = {};
        for (u32 i = start; i < end; i++) add_row(sum, order[i], column, width, mask, d_x);
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (column + i < width) gradient[column + i] += sum[i];
    }
}

// The more frequent tokens, one block per token and 256 columns: `common` lists the `counts[1]` of
// them.
KERNEL __launch_bounds__(1024)
embed_backward_common(const u32* counts, const u32* common, int width, const u32* ids,
                      const u32* order, const u32* starts, const u32* clock, u32 site,
                      u32 threshold, float scale, const real* d_x, float* gradients) {
    Mask mask = {clock, site, threshold, scale};
    for (u32 place = blockIdx.x; place < counts[1]; place += gridDim.x) {
        u32 group = common[place], start = starts[group], end = starts[group + 1];
        const u32* rows = order + start;
        add_rows<32>(end - start, [=](int i) { return rows[i]; }, blockIdx.y * 256, width, mask, d_x,
                     gradients + (i64)ids[rows[0]] * width);
        __syncthreads();
    }
}

// One block per position and 256 columns: the sum over sequences.
KERNEL __launch_bounds__(256)
embed_backward_positions(int sequences, int length, int width, const u32* clock, u32 site,
                         u32 threshold, float scale, const real* d_x, float* gradient) {
    Mask mask = {clock, site, threshold, scale};
    u32 place = blockIdx.x;
    add_rows<8>(sequences, [=](int i) { return i * length + place; }, blockIdx.y * 256, width, mask,
             d_x, gradient + (i64)place * width);
}
