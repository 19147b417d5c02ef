// Shared by the kernels of causal attention on the tensor cores: bf16, heads of 64 columns.
//
// Tiles in shared memory have rows of 64 columns in eight chunks of 16 bytes; chunk `c` of row `r`
// is stored at `c ^ (r % 8)`, so that eight rows of one chunk touch all banks once.

#ifndef F32
constexpr int HEAD = 64;
constexpr int TILE_BYTES = 64 * HEAD * 2;
constexpr float LOG2_E = 1.4426950408889634f;
// Heads processed at the same time: about 16 MiB for sequences of 1,024 tokens.
constexpr int SECTION = 32;

// The head and the tile of a block. Heads are processed in sections, so that the cache holds what
// their blocks read; within a section first tiles come first.
struct Place {
    int head, sequence, tile;
};

__device__ __forceinline__ Place find_place(int heads) {
    int block = blockIdx.y * gridDim.x + blockIdx.x, full = SECTION * gridDim.y;
    int first = block / full * SECTION, section = min(SECTION, (int)gridDim.x - first);
    int rest = block % full, column = first + rest % section;
    return {column % heads, column / heads, rest / section};
}

__device__ __forceinline__ float exp2_of(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

__device__ __forceinline__ u32 chunk_address(u32 tile, int row, int chunk) {
    return tile + row * 128 + ((chunk ^ (row & 7)) << 4);
}

// Copies rows of one head, of which `there` exist; the others become zero. `to` and `from` are the
// thread's own first sixteen bytes.
template <int ROWS, int THREADS>
__device__ __forceinline__ void copy_rows(u32 to, const real* from, i64 stride, int there) {
#pragma unroll
    for (int i = 0; i < ROWS * 8 / THREADS; i++) {
        int row = i * (THREADS / 8);
        copy_chunk(to + row * 128, from + row * stride, (int)threadIdx.x / 8 + row < there);
    }
}

// The thread's own first sixteen bytes of a tile.
__device__ __forceinline__ u32 own_chunk(u32 tile) {
    return chunk_address(tile, threadIdx.x / 8, threadIdx.x % 8);
}

// The thread's own first sixteen bytes of rows in global memory.
__device__ __forceinline__ const real* own_chunk(const real* rows, i64 stride) {
    return rows + threadIdx.x / 8 * stride + threadIdx.x % 8 * 8;
}

template <int ROWS, int THREADS>
__device__ __forceinline__ void copy_tile(u32 tile, const real* from, i64 stride, int there) {
    copy_rows<ROWS, THREADS>(own_chunk(tile), own_chunk(from, stride), stride, there);
}

// Writes row `row + lane / 4` times `upper` and the row eight below times `lower`.
__device__ __forceinline__ void write_rows(const float (&from)[8][4], float upper, float lower,
                                           int row, int there, i64 stride, real* to, int lane) {
    int place = row + lane / 4;
#pragma unroll
    for (int tile = 0; tile < 8; tile++) {
        int column = tile * 8 + lane % 4 * 2;
        if (place < there)
            *(u32*)(to + place * stride + column) = pack(from[tile][0] * upper, from[tile][1] * upper);
        if (place + 8 < there)
            *(u32*)(to + (place + 8) * stride + column) =
                pack(from[tile][2] * lower, from[tile][3] * lower);
    }
}

// Writes the sums over the rows of four warps, times a factor, to 64 columns of `to`. A lane has
// rows `row + lane / 4` and eight below; rows from `there` on do not exist. `shared: [4, 64]`.
__device__ __forceinline__ void sum_rows_of_warps(const float (&from)[8][4], float factor, int row,
                                                  int there, float* shared, float* to, int lane) {
    bool upper = row + lane / 4 < there, lower = row + lane / 4 + 8 < there;
    __syncthreads();
#pragma unroll
    for (int tile = 0; tile < 8; tile++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float sum = (upper ? from[tile][i] : 0.0f) + (lower ? from[tile][i + 2] : 0.0f);
            sum += __shfl_xor_sync(0xffffffffu, sum, 4);
            sum += __shfl_xor_sync(0xffffffffu, sum, 8);
            sum += __shfl_xor_sync(0xffffffffu, sum, 16);
            if (lane < 4) shared[row / 16 * 64 + tile * 8 + lane * 2 + i] = sum;
        }
    __syncthreads();
    if (threadIdx.x < 64) {
        const float* own = shared + threadIdx.x;
        to[threadIdx.x] = ((own[0] + own[64]) + (own[128] + own[192])) * factor;
    }
}

// One step of the online softmax: turns a strip of scores into unnormalised probabilities, and
// updates the running maximum, sum and output.
__device__ __forceinline__ void soften(float (&scores)[8][4], float (&out)[8][4], float (&largest)[2],
                                       float (&sum)[2], float factor) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float most = largest[half];
#pragma unroll
        for (int tile = 0; tile < 8; tile++)
            most = fmaxf(most, fmaxf(scores[tile][2 * half], scores[tile][2 * half + 1]));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
        float keep = exp2_of((largest[half] - most) * factor), shift = most * factor, total = 0.0f;
        largest[half] = most;
#pragma unroll
        for (int tile = 0; tile < 8; tile++)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                scores[tile][i] = exp2_of(scores[tile][i] * factor - shift);
                total += scores[tile][i];
                out[tile][i] *= keep;
            }
        sum[half] = sum[half] * keep + total;
    }
}

// Masks the scores of keys after their query.
__device__ __forceinline__ void hide_later(float (&scores)[8][4], int query, int key, int lane) {
#pragma unroll
    for (int tile = 0; tile < 8; tile++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (key + tile * 8 + lane % 4 * 2 + i % 2 > query + lane / 4 + i / 2 * 8)
                scores[tile][i] = NEVER;
}

// Masks the probabilities of keys, which are rows here, for queries before them or beyond the end.
__device__ __forceinline__ void drop_earlier(float (&scores)[8][4], int key, int query, int length,
                                             int lane) {
#pragma unroll
    for (int tile = 0; tile < 8; tile++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int column = query + tile * 8 + lane % 4 * 2 + i % 2;
            if (key + lane / 4 + i / 2 * 8 > column || column >= length) scores[tile][i] = 0.0f;
        }
}

// Σ out · d_out over one row's 64 columns, of which this lane and its three neighbours take a
// quarter each. Chunk `c` of either is stored at `c ^ swizzle`.
__device__ __forceinline__ float delta_of(const real* out, const real* d_out, int swizzle, int lane) {
    float sum = 0.0f;
#pragma unroll
    for (int part = 0; part < 2; part++) {
        float a[8], b[8];
        int column = ((lane % 4 * 2 + part) ^ swizzle) * 8;
        load8(out, column, HEAD, a);
        load8(d_out, column, HEAD, b);
#pragma unroll
        for (int i = 0; i < 8; i++) sum += a[i] * b[i];
    }
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    return sum + __shfl_xor_sync(0xffffffffu, sum, 2);
}

// Divides a warp's output by the softmax's denominators; writes it and the denominators'
// logarithms.
__device__ __forceinline__ void write_output(const float (&output)[8][4], const float (&largest)[2],
                                             float (&sum)[2], float scale, int row, int there,
                                             i64 stride, real* out, float* log_sums, int lane) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 1);
        sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 2);
        int mine = row + half * 8 + lane / 4;
        if (lane % 4 == 0 && mine < there) log_sums[mine] = largest[half] * scale + __logf(sum[half]);
    }
    write_rows(output, 1.0f / sum[0], 1.0f / sum[1], row, there, stride, out, lane);
}
#endif
