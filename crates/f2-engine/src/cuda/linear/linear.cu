// Operations around matrix products: bias gradients, GELU, and a plain product for shapes that
// cuBLASLt does not support.

// Writes a block's sums of 256 columns, its warps added in order, to `partial: [blocks, columns]`.
__device__ __forceinline__ void write_sums(const float (&sum)[8], int columns, float* partial) {
    __shared__ float sums[8][257];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < 8; i++) sums[warp][lane * 8 + i] = sum[i];
    __syncthreads();
    int column = blockIdx.x * 256 + threadIdx.x;
    if (column >= columns) return;
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; i++) total += sums[i][threadIdx.x];
    partial[(i64)blockIdx.y * columns + column] = total;
}

// Sums over rows: a block takes 256 columns and `per_block` rows.
KERNEL __launch_bounds__(256)
column_sums(int rows, int columns, int per_block, const real* x, float* partial) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int end = min(rows, (int)(blockIdx.y + 1) * per_block);
    float sum[8] = {};
#pragma unroll 4
    for (int row = blockIdx.y * per_block + warp; row < end; row += 8) {
        float values[8];
        load8(x + (i64)row * columns, blockIdx.x * 256 + lane * 8, columns, values);
#pragma unroll
        for (int i = 0; i < 8; i++) sum[i] += values[i];
    }
    write_sums(sum, columns, partial);
}

// Adds the sums over blocks of `partial: [blocks, first + second]` to two ranges, in a fixed order.
KERNEL __launch_bounds__(1024)
add_partial(int blocks, int first, int second, const float* partial, float* to_first,
            float* to_second) {
    __shared__ float sums[32][33];
    int lane = threadIdx.x % 32, slice = threadIdx.x / 32;
    int columns = first + second, column = blockIdx.x * 32 + lane;
    int share = (blocks + 31) / 32;
    float sum = 0.0f;
    if (column < columns)
        for (int block = slice * share; block < min(blocks, (slice + 1) * share); block++)
            sum += partial[(i64)block * columns + column];
    sums[slice][lane] = sum;
    __syncthreads();
    if (slice || column >= columns) return;
    for (int i = 1; i < 32; i++) sum += sums[i][lane];
    float* to = column < first ? to_first + column : to_second + (column - first);
    *to += sum;
}

// (1 + tanh u) / 2 with u = √(2/π) (x + 0.044715 x³).
__device__ __forceinline__ float gelu_gate(float x) {
    return __fdividef(1.0f, 1.0f + __expf(-1.5957691216f * x * (1.0f + 0.044715f * x * x)));
}

__device__ __forceinline__ float gelu_slope(float x) {
    float gate = gelu_gate(x), slope = 1.5957691216f * (1.0f + 3.0f * 0.044715f * x * x);
    return gate + x * slope * gate * (1.0f - gate);
}

// Eight elements per thread; the size of a buffer is a multiple of eight elements.
KERNEL gelu(u64 chunks, const real* x, real* y) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= chunks) return;
    float values[8];
    load8(x + 8 * i, 0, 8, values);
#pragma unroll
    for (int j = 0; j < 8; j++) values[j] *= gelu_gate(values[j]);
    store8(y + 8 * i, 0, 8, values);
}

// The backward pass of GELU, in place: `d: [rows, columns]`; the sums of its columns are written to
// `partial: [blocks, columns]`. A warp has four rows in flight.
KERNEL __launch_bounds__(256)
gelu_backward(int rows, int columns, int per_block, const real* before, real* d, float* partial) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = blockIdx.x * 256 + lane * 8;
    int end = min(rows, (int)(blockIdx.y + 1) * per_block);
    float sum[8] = {};
    for (int first = blockIdx.y * per_block + warp; first < end; first += 32) {
        float x[4][8], y[4][8];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            i64 start = (i64)min(first + 8 * k, end - 1) * columns;
            load8(before + start, column, columns, x[k]);
            load8(d + start, column, columns, y[k]);
        }
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (first + 8 * k >= end) break;
#pragma unroll
            for (int i = 0; i < 8; i++) {
                y[k][i] *= gelu_slope(x[k][i]);
                sum[i] += y[k][i];
            }
            store8(d + (i64)(first + 8 * k) * columns, column, columns, y[k]);
        }
    }
    write_sums(sum, columns, partial);
}

KERNEL add_bias(u64 count, int columns, const real* bias, real* y) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] = narrow(widen(y[i]) + widen(bias[i % columns]));
}

// to[i · to_row + j] (+)= Σ a[i · a_row + l · a_step] b[l · b_step + j · b_column].
template <typename To>
__device__ void product(int m, int n, int k, const real* a, i64 a_row, i64 a_step, const real* b,
                        i64 b_step, i64 b_column, To* to, i64 to_row, int add) {
    int j = blockIdx.y * blockDim.x + threadIdx.x, i = blockIdx.x;
    if (i >= m || j >= n) return;
    float sum = 0.0f;
    for (int l = 0; l < k; l++)
        sum += widen(a[i * a_row + l * a_step]) * widen(b[l * b_step + j * b_column]);
    To* place = to + i * to_row + j;
    if constexpr (sizeof(To) == sizeof(float)) {
        *(float*)place = sum + (add ? *(float*)place : 0.0f);
    } else {
        *place = narrow(sum + (add ? widen(*place) : 0.0f));
    }
}

KERNEL product_real(int m, int n, int k, const real* a, i64 a_row, i64 a_step, const real* b,
                    i64 b_step, i64 b_column, real* to, i64 to_row, int add) {
    product(m, n, k, a, a_row, a_step, b, b_step, b_column, to, to_row, add);
}

KERNEL product_float(int m, int n, int k, const real* a, i64 a_row, i64 a_step, const real* b,
                     i64 b_step, i64 b_column, float* to, i64 to_row, int add) {
    product(m, n, k, a, a_row, a_step, b, b_step, b_column, to, to_row, add);
}
