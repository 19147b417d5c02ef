// Causal attention on the tensor cores of compute capability 9.0: bf16, heads of 64 columns. The
// kernels correspond to those of tensor.cu, but use asynchronous warpgroup products (WGMMA), whose
// operands the tensor cores read from shared memory, transposed or not.

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) && !defined(F32)
// The WGMMA descriptor of a tile, in units of 16 bytes: its start address, 1,024 bytes from one
// group of eight rows to the next, and the 128-byte swizzle.
__device__ __forceinline__ u64 wgmma_descriptor(u32 tile) {
    return (u64)(tile >> 4) | (u64)1 << 16 | (u64)64 << 32 | (u64)1 << 62;
}

#define FOUR(x, i) "+f"(x[i][0]), "+f"(x[i][1]), "+f"(x[i][2]), "+f"(x[i][3])
#define EIGHT(x, i) FOUR(x, i), FOUR(x, i + 1)
#define ALL(x) EIGHT(x, 0), EIGHT(x, 2), EIGHT(x, 4), EIGHT(x, 6)
#define PRODUCT                                                                                     \
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,"  \
    "%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "

// From here on the registers of the products must not be accessed until `wait_products`.
__device__ __forceinline__ void begin_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commit_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits for all committed groups but the last `PENDING`; the products written to `x` must be among
// those waited for.
template <int PENDING>
__device__ __forceinline__ void wait_products(float (&x)[8][4]) {
    asm volatile("wgmma.wait_group.sync.aligned %32;" : ALL(x) : "n"(PENDING) : "memory");
}

// to: [64, 64] = own · tileᵀ, both as rows.
__device__ __forceinline__ void multiply_tiles(float (&to)[8][4], u32 own, u32 tile) {
    begin_products();
#pragma unroll
    for (int step = 0; step < 4; step++)
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %34, 0;\n" PRODUCT
                     "%32, %33, add, 1, 1, 0, 0;\n}"
                     : ALL(to)
                     : "l"(wgmma_descriptor(own) + 2 * step),
                       "l"(wgmma_descriptor(tile) + 2 * step), "r"(step));
    commit_products();
}

// to: [64, 64] += values · tile, where sums run along the tile's rows.
__device__ __forceinline__ void add_product(float (&to)[8][4], const u32 (&values)[4][4], u32 tile) {
    begin_products();
#pragma unroll
    for (int step = 0; step < 4; step++)
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, 1, 0;\n" PRODUCT
                     "{%32,%33,%34,%35}, %36, add, 1, 1, 1;\n}"
                     : ALL(to)
                     : "r"(values[step][0]), "r"(values[step][1]), "r"(values[step][2]),
                       "r"(values[step][3]), "l"(wgmma_descriptor(tile) + 128 * step));
    commit_products();
}

// Once rounded, a product's result has the register layout of a left operand.
__device__ __forceinline__ void round_values(u32 (&to)[4][4], const float (&from)[8][4]) {
#pragma unroll
    for (int step = 0; step < 4; step++) {
        const float *low = from[2 * step], *high = from[2 * step + 1];
        to[step][0] = pack(low[0], low[1]), to[step][1] = pack(low[2], low[3]);
        to[step][2] = pack(high[0], high[1]), to[step][3] = pack(high[2], high[3]);
    }
}

// Waits for all threads' copies and makes them visible to the tensor cores.
__device__ __forceinline__ void receive() {
    wait<0>();
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
}

// Copies a float to shared memory asynchronously; writes zero if `there` is false.
__device__ __forceinline__ void copy_float(u32 to, const float* from, bool there) {
    int bytes = there ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes));
}

// Attention of 128 queries of one head of one sequence, 64 for each group of four warps, to 64 keys
// at a time. While a tile is processed, the next one is copied and the previous one's product may
// still be running.
KERNEL __launch_bounds__(256, 2)
attention_64_hopper(int positions, int length, int heads, float scale, const real* qkv, real* out,
                    float* log_sums) {
    extern __shared__ __align__(1024) unsigned char tiles[];
    int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32, group = threadIdx.x / 128;
    auto [head, sequence, tile_of_head] = find_place(heads);
    int first = (gridDim.y - 1 - tile_of_head) * 128, there = length - first;
    int total = heads * HEAD, stride = 3 * total;
    const real* rows = qkv + (i64)sequence * length * stride + head * HEAD;
    u32 queries = shared_address(tiles);
    auto keys = [=](int tile) { return queries + (2 + tile % 3 * 2) * TILE_BYTES; };
    const real* next = own_chunk(rows + total, stride);
    auto copy = [&](int tile) {
        u32 to = own_chunk(keys(tile));
        copy_rows<64, 256>(to, next, stride, length - tile * 64);
        copy_rows<64, 256>(to + TILE_BYTES, next + total, stride, length - tile * 64);
        commit();
        next += 64 * stride;
    };
    copy_tile<128, 256>(queries, rows + first * stride, stride, there);
    copy(0);
    float scores[8][4], output[8][4] = {}, largest[2] = {NEVER, NEVER}, sum[2] = {};
    int row = group * 64 + warp * 16;
    int last = (min(first + 128, length) - 1) / 64, diagonal = min(first / 64 + group, last), tile = 0;
    do {
        receive();
        if (tile < last) copy(tile + 1);
        u32 k = keys(tile), v = k + TILE_BYTES;
        multiply_tiles(scores, queries + group * TILE_BYTES, k);
        wait_products<0>(scores);
        wait_products<0>(output);
        if (tile == diagonal) hide_later(scores, first + row, tile * 64, lane);
        soften(scores, output, largest, sum, scale * LOG2_E);
        u32 weights[4][4];
        round_values(weights, scores);
        add_product(output, weights, v);
    } while (++tile <= diagonal);
    // The other four warps process one more tile.
    if (tile <= last) receive();
    wait_products<0>(output);
    int start = sequence * length + first;
    write_output(output, largest, sum, scale, row, there, total, out + (i64)start * total + head * HEAD,
                 log_sums + (i64)head * positions + start, lane);
}

// The gradient of 64 queries. Writes logarithms of sums to base 2 and Σ out · d_out to
// `statistics: [2, heads, positions]`, and the sums over its rows to
// `sums: [sequences, blocks, 3 · total]`.
KERNEL __launch_bounds__(128, 4)
attention_64_backward_queries_hopper(int positions, int length, int heads, float scale,
                                     const real* qkv, const real* out, const float* log_sums,
                                     const real* d_out, float* statistics, real* d_qkv, float* sums) {
    extern __shared__ __align__(1024) unsigned char tiles[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    auto [head, sequence, tile_of_head] = find_place(heads);
    int first = (gridDim.y - 1 - tile_of_head) * 64, there = length - first;
    int total = heads * HEAD, stride = 3 * total, start = sequence * length + first;
    const real* rows = qkv + (i64)sequence * length * stride + head * HEAD;
    u32 queries = shared_address(tiles), d_queries = queries + TILE_BYTES;
    auto keys = [=](int tile) { return queries + (3 + tile % 2 * 2) * TILE_BYTES; };
    const real* next = own_chunk(rows + total, stride);
    auto copy = [&](int tile) {
        u32 to = own_chunk(keys(tile));
        copy_rows<64, 128>(to, next, stride, length - tile * 64);
        copy_rows<64, 128>(to + TILE_BYTES, next + total, stride, length - tile * 64);
        commit();
        next += 64 * stride;
    };
    copy_tile<64, 128>(queries, rows + first * stride, stride, there);
    copy_tile<64, 128>(d_queries, d_out + (i64)start * total + head * HEAD, total, there);
    copy_tile<64, 128>(d_queries + TILE_BYTES, out + (i64)start * total + head * HEAD, total, there);
    copy(0);
    float delta[2], log_sum[2];
    log_sums += (i64)head * positions + start;
    statistics += (i64)head * positions + start;
#pragma unroll
    for (int half = 0; half < 2; half++)
        log_sum[half] = log_sums[min(warp * 16 + half * 8 + lane / 4, there - 1)] * LOG2_E;
    float scores[8][4], d_scores[8][4], gradient[8][4] = {};
    int last = first / 64, tile = 0;
    do {
        // The next tile overwrites the previous one.
        wait_products<0>(gradient);
        receive();
        if (tile < last) copy(tile + 1);
        if (tile == 0) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int row = warp * 16 + half * 8 + lane / 4;
                const real* d_row = (const real*)(tiles + TILE_BYTES) + row * HEAD;
                delta[half] = delta_of(d_row + TILE_BYTES / 2, d_row, row % 8, lane);
                if (lane % 4 == 0 && row < there) {
                    statistics[row] = log_sum[half];
                    statistics[(i64)heads * positions + row] = delta[half];
                }
            }
        }
        u32 k = keys(tile), v = k + TILE_BYTES;
        multiply_tiles(scores, queries, k);
        multiply_tiles(d_scores, d_queries, v);
        wait_products<1>(scores);
        if (tile == last) hide_later(scores, first + warp * 16, tile * 64, lane);
#pragma unroll
        for (int part = 0; part < 8; part++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                scores[part][i] = exp2_of(scores[part][i] * (scale * LOG2_E) - log_sum[i / 2]);
        wait_products<0>(d_scores);
#pragma unroll
        for (int part = 0; part < 8; part++)
#pragma unroll
            for (int i = 0; i < 4; i++) scores[part][i] *= d_scores[part][i] - delta[i / 2];
        u32 values[4][4];
        round_values(values, scores);
        add_product(gradient, values, k);
    } while (++tile <= last);
    wait_products<0>(gradient);
    write_rows(gradient, scale, scale, warp * 16, there, stride, d_qkv + (i64)start * stride + head * HEAD,
               lane);
    i64 block = (i64)sequence * gridDim.y + first / 64;
    sum_rows_of_warps(gradient, scale, warp * 16, there, (float*)tiles,
                      sums + block * stride + head * HEAD, lane);
}

// The gradients of 64 keys and values, summed over all later queries. Scores are transposed here:
// keys are rows, queries columns.
KERNEL __launch_bounds__(128, 3)
attention_64_backward_keys_hopper(int positions, int length, int heads, float scale,
                                  const real* qkv, const real* d_out, const float* statistics,
                                  real* d_qkv, float* sums) {
    extern __shared__ __align__(1024) unsigned char tiles[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    auto [head, sequence, tile_of_head] = find_place(heads);
    int first = tile_of_head * 64, there = length - first;
    int total = heads * HEAD, stride = 3 * total, start = sequence * length + first;
    const real* rows = qkv + (i64)start * stride + head * HEAD;
    u32 keys = shared_address(tiles), values = keys + TILE_BYTES;
    // Logarithms of sums and Σ out · d_out of three tiles' queries, copied by half of the threads
    // each.
    float* statistics_tiles = (float*)(tiles + 8 * TILE_BYTES);
    statistics += (i64)(threadIdx.x / 64 * heads + head) * positions + start + threadIdx.x % 64;
    auto queries = [=](int tile) { return keys + (2 + tile % 3 * 2) * TILE_BYTES; };
    const real *next = own_chunk(rows, stride),
               *d_next = own_chunk(d_out + (i64)start * total + head * HEAD, total);
    auto copy = [&](int tile) {
        int left = length - tile * 64;
        u32 to = own_chunk(queries(tile));
        copy_rows<64, 128>(to, next, stride, left);
        copy_rows<64, 128>(to + TILE_BYTES, d_next, total, left);
        // Zeros after the last query: results computed from them are discarded but must be finite.
        copy_float(shared_address(statistics_tiles + tile % 3 * 128 + threadIdx.x), statistics,
                   threadIdx.x % 64 < left);
        commit();
        next += 64 * stride, d_next += 64 * total, statistics += 64;
    };
    copy_tile<64, 128>(keys, rows + total, stride, there);
    copy_tile<64, 128>(values, rows + 2 * total, stride, there);
    int end = (length + 63) / 64, tile = tile_of_head;
    copy(tile);
    float scores[8][4], d_scores[8][4], d_key[8][4] = {}, d_value[8][4] = {};
    do {
        receive();
        if (tile + 1 < end) copy(tile + 1);
        // The previous tile's products still read the registers written next.
        wait_products<0>(d_key);
        wait_products<0>(d_value);
        u32 q = queries(tile), d = q + TILE_BYTES;
        multiply_tiles(scores, keys, q);
        multiply_tiles(d_scores, values, d);
        wait_products<1>(scores);
        const float* log_sum = statistics_tiles + tile % 3 * 128 + lane % 4 * 2;
#pragma unroll
        for (int part = 0; part < 8; part++) {
            float2 shift = *(const float2*)(log_sum + part * 8);
#pragma unroll
            for (int i = 0; i < 4; i++)
                scores[part][i] =
                    exp2_of(scores[part][i] * (scale * LOG2_E) - (i % 2 ? shift.y : shift.x));
        }
        if (tile == tile_of_head || (tile + 1) * 64 > length)
            drop_earlier(scores, first + warp * 16, tile * 64, length, lane);
        u32 weights[4][4], d_weights[4][4];
        round_values(weights, scores);
        add_product(d_value, weights, d);
        wait_products<1>(d_scores);
#pragma unroll
        for (int part = 0; part < 8; part++) {
            float2 delta = *(const float2*)(log_sum + 64 + part * 8);
#pragma unroll
            for (int i = 0; i < 4; i++)
                scores[part][i] *= d_scores[part][i] - (i % 2 ? delta.y : delta.x);
        }
        round_values(d_weights, scores);
        add_product(d_key, d_weights, q);
    } while (++tile < end);
    wait_products<0>(d_key);
    wait_products<0>(d_value);
    real* to = d_qkv + (i64)start * stride + head * HEAD;
    write_rows(d_key, scale, scale, warp * 16, there, stride, to + total, lane);
    write_rows(d_value, 1.0f, 1.0f, warp * 16, there, stride, to + 2 * total, lane);
    float* own_sums = sums + ((i64)sequence * gridDim.y + tile_of_head) * stride + head * HEAD;
    sum_rows_of_warps(d_key, scale, warp * 16, there, (float*)tiles, own_sums + total, lane);
    sum_rows_of_warps(d_value, 1.0f, warp * 16, there, (float*)tiles, own_sums + 2 * total, lane);
}
#endif
