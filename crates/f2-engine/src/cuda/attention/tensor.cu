// Causal attention on the tensor cores: bf16, heads of 64 columns. Scores are in registers, for one
// tile of keys at a time, and are recomputed in the backward pass. The gradients of queries and
// those of keys and values have separate kernels, so that no sum depends on the order of blocks.

#ifndef F32
__device__ __forceinline__ void load_matrices(u32 (&r)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

__device__ __forceinline__ void load_transposed(u32 (&r)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

// Left operand: rows `row..row + 16`, columns `16 step..`.
__device__ __forceinline__ void load_left(u32 (&r)[4], u32 tile, int row, int step, int lane) {
    load_matrices(r, chunk_address(tile, row + lane % 16, 2 * step + lane / 16));
}

// Right operand, transposed in memory: outputs `16 pair..` are rows, sums run along columns
// `16 step..`. Two tiles of eight outputs, two registers each.
__device__ __forceinline__ void load_right_rows(u32 (&r)[4], u32 tile, int pair, int step, int lane) {
    int row = 16 * pair + lane % 8 + lane / 16 * 8;
    load_matrices(r, chunk_address(tile, row, 2 * step + lane / 8 % 2));
}

// Right operand as stored in memory: sums run along rows `16 step..`, outputs are columns
// `16 pair..`.
__device__ __forceinline__ void load_right_columns(u32 (&r)[4], u32 tile, int pair, int step,
                                                   int lane) {
    load_transposed(r, chunk_address(tile, 16 * step + lane % 16, 2 * pair + lane / 16));
}

// c += a · b on a 16 × 8 tile, sums over 16.
__device__ __forceinline__ void multiply(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// to: [16, 64] += left · tileᵀ, where the tile's rows are the outputs.
__device__ __forceinline__ void multiply_rows(float (&to)[8][4], const u32 (&left)[4][4], u32 tile,
                                              int lane) {
#pragma unroll
    for (int step = 0; step < 4; step++)
#pragma unroll
        for (int pair = 0; pair < 4; pair++) {
            u32 right[4];
            load_right_rows(right, tile, pair, step, lane);
            multiply(to[2 * pair], left[step], right[0], right[1]);
            multiply(to[2 * pair + 1], left[step], right[2], right[3]);
        }
}

// to: [16, 64] += rows `row..row + 16` of one tile · (another tile)ᵀ.
__device__ __forceinline__ void multiply_tiles(float (&to)[8][4], u32 own, int row, u32 tile, int lane) {
#pragma unroll
    for (int step = 0; step < 4; step++) {
        u32 left[4];
        load_left(left, own, row, step, lane);
#pragma unroll
        for (int pair = 0; pair < 4; pair++) {
            u32 right[4];
            load_right_rows(right, tile, pair, step, lane);
            multiply(to[2 * pair], left, right[0], right[1]);
            multiply(to[2 * pair + 1], left, right[2], right[3]);
        }
    }
}

// to: [16, 64] += values · tile, where sums run along the tile's rows. Once rounded, a product's
// result has the register layout of a left operand.
__device__ __forceinline__ void multiply_columns(float (&to)[8][4], const float (&values)[8][4],
                                                 u32 tile, int lane) {
#pragma unroll
    for (int step = 0; step < 4; step++) {
        const float *low = values[2 * step], *high = values[2 * step + 1];
        u32 left[4] = {pack(low[0], low[1]), pack(low[2], low[3]), pack(high[0], high[1]),
                       pack(high[2], high[3])};
#pragma unroll
        for (int pair = 0; pair < 4; pair++) {
            u32 right[4];
            load_right_columns(right, tile, pair, step, lane);
            multiply(to[2 * pair], left, right[0], right[1]);
            multiply(to[2 * pair + 1], left, right[2], right[3]);
        }
    }
}

// Attention of 128 queries of one head of one sequence, 32 per warp, to 64 keys at a time; two
// tiles are in flight.
KERNEL __launch_bounds__(128, 2)
attention_64(int positions, int length, int heads, float scale, const real* qkv, real* out,
             float* log_sums) {
    __shared__ __align__(128) unsigned char shared[6 * TILE_BYTES];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    auto [head, sequence, tile_of_head] = find_place(heads);
    int first = (gridDim.y - 1 - tile_of_head) * 128, there = length - first;
    int total = heads * HEAD, stride = 3 * total;
    const real* rows = qkv + (i64)sequence * length * stride + head * HEAD;
    u32 queries = shared_address(shared);
    u32 tiles = queries + 2 * TILE_BYTES;
    auto keys = [=](int tile) { return tiles + (tile % 2) * 2 * TILE_BYTES; };
    auto copy = [=](int tile) {
        const real* k = rows + (i64)tile * 64 * stride + total;
        copy_tile<64, 128>(keys(tile), k, stride, length - tile * 64);
        copy_tile<64, 128>(keys(tile) + TILE_BYTES, k + total, stride, length - tile * 64);
        commit();
    };
    copy_tile<128, 128>(queries, rows + first * stride, stride, there);
    copy(0);
    float output[2][8][4] = {}, largest[2][2], sum[2][2] = {};
    u32 query[2][4][4];
    largest[0][0] = largest[0][1] = largest[1][0] = largest[1][1] = NEVER;
    int last = (min(first + 128, length) - 1) / 64, mine = first + warp * 32;
    for (int tile = 0; tile <= last; tile++) {
        if (tile < last) {
            copy(tile + 1);
            wait<1>();
        } else {
            wait<0>();
        }
        __syncthreads();
        if (tile == 0) {
#pragma unroll
            for (int strip = 0; strip < 2; strip++)
#pragma unroll
                for (int step = 0; step < 4; step++)
                    load_left(query[strip][step], queries, warp * 32 + strip * 16, step, lane);
        }
        if (tile * 64 <= mine) {
            float scores[2][8][4] = {};
            u32 k = keys(tile), v = k + TILE_BYTES;
#pragma unroll
            for (int step = 0; step < 4; step++)
#pragma unroll
                for (int pair = 0; pair < 4; pair++) {
                    u32 right[4];
                    load_right_rows(right, k, pair, step, lane);
#pragma unroll
                    for (int strip = 0; strip < 2; strip++) {
                        multiply(scores[strip][2 * pair], query[strip][step], right[0], right[1]);
                        multiply(scores[strip][2 * pair + 1], query[strip][step], right[2], right[3]);
                    }
                }
#pragma unroll
            for (int strip = 0; strip < 2; strip++) {
                if (tile * 64 + 63 > mine) hide_later(scores[strip], mine + strip * 16, tile * 64, lane);
                soften(scores[strip], output[strip], largest[strip], sum[strip], scale * LOG2_E);
            }
#pragma unroll
            for (int step = 0; step < 4; step++) {
                u32 left[2][4];
#pragma unroll
                for (int strip = 0; strip < 2; strip++) {
                    const float *low = scores[strip][2 * step], *high = scores[strip][2 * step + 1];
                    left[strip][0] = pack(low[0], low[1]), left[strip][1] = pack(low[2], low[3]);
                    left[strip][2] = pack(high[0], high[1]), left[strip][3] = pack(high[2], high[3]);
                }
#pragma unroll
                for (int pair = 0; pair < 4; pair++) {
                    u32 right[4];
                    load_right_columns(right, v, pair, step, lane);
#pragma unroll
                    for (int strip = 0; strip < 2; strip++) {
                        multiply(output[strip][2 * pair], left[strip], right[0], right[1]);
                        multiply(output[strip][2 * pair + 1], left[strip], right[2], right[3]);
                    }
                }
            }
        }
        __syncthreads();
    }
    i64 start = (i64)sequence * length + first;
#pragma unroll
    for (int strip = 0; strip < 2; strip++)
        write_output(output[strip], largest[strip], sum[strip], scale, warp * 32 + strip * 16, there,
                     total, out + start * total + head * HEAD, log_sums + (i64)head * positions + start,
                     lane);
}

// The gradient of 64 queries, 16 per warp. Writes logarithms of sums to base 2 and Σ out · d_out to
// `statistics: [2, heads, positions]`, and the sums over its rows to
// `sums: [sequences, blocks, 3 · total]`.
KERNEL __launch_bounds__(128, 3)
attention_64_backward_queries(int positions, int length, int heads, float scale, const real* qkv,
                              const real* out, const float* log_sums, const real* d_out,
                              float* statistics, real* d_qkv, float* sums) {
    __shared__ __align__(128) unsigned char shared[6 * TILE_BYTES];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    auto [head, sequence, tile_of_head] = find_place(heads);
    int first = (gridDim.y - 1 - tile_of_head) * 64, there = length - first;
    int total = heads * HEAD, stride = 3 * total;
    const real* rows = qkv + (i64)sequence * length * stride + head * HEAD;
    i64 start = (i64)sequence * length + first;
    const real* d_rows = d_out + start * total + head * HEAD;
    u32 queries = shared_address(shared), d_queries = queries + TILE_BYTES;
    u32 tiles = queries + 2 * TILE_BYTES;
    auto keys = [=](int tile) { return tiles + (tile % 2) * 2 * TILE_BYTES; };
    auto copy = [=](int tile) {
        const real* k = rows + (i64)tile * 64 * stride + total;
        copy_tile<64, 128>(keys(tile), k, stride, length - tile * 64);
        copy_tile<64, 128>(keys(tile) + TILE_BYTES, k + total, stride, length - tile * 64);
        commit();
    };
    copy_tile<64, 128>(queries, rows + first * stride, stride, there);
    copy_tile<64, 128>(d_queries, d_rows, total, there);
    copy(0);
    float delta[2], log_sum[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int row = warp * 16 + half * 8 + lane / 4, safe = min(row, there - 1);
        delta[half] =
            delta_of(out + (start + safe) * total + head * HEAD, d_rows + safe * total, 0, lane);
        i64 place = (i64)head * positions + start + safe;
        log_sum[half] = log_sums[place] * LOG2_E;
        if (lane % 4 == 0 && row < there) {
            statistics[place] = log_sum[half];
            statistics[(i64)heads * positions + place] = delta[half];
        }
    }
    u32 query[4][4], d_query[4][4];
    float gradient[8][4] = {};
    int last = (min(first + 64, length) - 1) / 64, mine = first + warp * 16;
    for (int tile = 0; tile <= last; tile++) {
        if (tile < last) {
            copy(tile + 1);
            wait<1>();
        } else {
            wait<0>();
        }
        __syncthreads();
        if (tile == 0) {
#pragma unroll
            for (int step = 0; step < 4; step++) {
                load_left(query[step], queries, warp * 16, step, lane);
                load_left(d_query[step], d_queries, warp * 16, step, lane);
            }
        }
        u32 k = keys(tile), v = k + TILE_BYTES;
        float scores[8][4] = {}, d_scores[8][4] = {};
        multiply_rows(scores, query, k, lane);
        multiply_rows(d_scores, d_query, v, lane);
        if (tile * 64 + 63 > mine) hide_later(scores, mine, tile * 64, lane);
#pragma unroll
        for (int part = 0; part < 8; part++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float p = exp2_of(scores[part][i] * (scale * LOG2_E) - log_sum[i / 2]);
                scores[part][i] = p * (d_scores[part][i] - delta[i / 2]);
            }
        multiply_columns(gradient, scores, k, lane);
        __syncthreads();
    }
    write_rows(gradient, scale, scale, warp * 16, there, stride, d_qkv + start * stride + head * HEAD,
               lane);
    i64 block = (i64)sequence * gridDim.y + first / 64;
    sum_rows_of_warps(gradient, scale, warp * 16, there, (float*)shared,
                      sums + block * stride + head * HEAD, lane);
}

// The gradients of 64 keys and values, 16 per warp, summed over all later queries. Scores are
// transposed here: keys are rows, queries columns.
KERNEL __launch_bounds__(128, 3)
attention_64_backward_keys(int positions, int length, int heads, float scale, const real* qkv,
                           const real* d_out, const float* statistics, real* d_qkv, float* sums) {
    extern __shared__ __align__(128) unsigned char all_tiles[];
    __shared__ float log_sum[2][64], delta[2][64];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    auto [head, sequence, tile_of_head] = find_place(heads);
    int first = tile_of_head * 64, there = length - first;
    int total = heads * HEAD, stride = 3 * total;
    const real* rows = qkv + (i64)sequence * length * stride + head * HEAD;
    const real* d_rows = d_out + (i64)sequence * length * total + head * HEAD;
    const float* log_sums = statistics + (i64)head * positions + (i64)sequence * length;
    const float* deltas = log_sums + (i64)heads * positions;
    u32 tiles = shared_address(all_tiles);
    auto queries = [=](int tile) { return tiles + (tile % 2) * 2 * TILE_BYTES; };
    auto copy = [&](int tile) {
        int left = length - tile * 64;
        copy_tile<64, 128>(queries(tile), rows + (i64)tile * 64 * stride, stride, left);
        copy_tile<64, 128>(queries(tile) + TILE_BYTES, d_rows + (i64)tile * 64 * total, total, left);
        commit();
        if (threadIdx.x < 64) {
            // Zeros after the last query: results computed from them are discarded but must be
            // finite.
            int place = tile * 64 + threadIdx.x;
            bool is_there = threadIdx.x < left;
            log_sum[tile % 2][threadIdx.x] = is_there ? log_sums[place] : 0.0f;
            delta[tile % 2][threadIdx.x] = is_there ? deltas[place] : 0.0f;
        }
    };
    int begin = tile_of_head, end = (length + 63) / 64;
    // Keys and values stay in shared memory, since registers are scarcer.
    u32 own = tiles + 4 * TILE_BYTES;
    copy_tile<64, 128>(own, rows + first * stride + total, stride, there);
    copy_tile<64, 128>(own + TILE_BYTES, rows + first * stride + 2 * total, stride, there);
    commit();
    copy(begin);
    float d_key[8][4] = {}, d_value[8][4] = {};
    for (int tile = begin; tile < end; tile++) {
        if (tile + 1 < end) {
            copy(tile + 1);
            wait<1>();
        } else {
            wait<0>();
        }
        __syncthreads();
        u32 q = queries(tile), d = q + TILE_BYTES;
        float scores[8][4] = {};
        multiply_tiles(scores, own, warp * 16, q, lane);
#pragma unroll
        for (int part = 0; part < 8; part++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int column = part * 8 + lane % 4 * 2 + i % 2;
                scores[part][i] =
                    exp2_of(scores[part][i] * (scale * LOG2_E) - log_sum[tile % 2][column]);
            }
        if (tile == begin || (tile + 1) * 64 > length)
            drop_earlier(scores, first + warp * 16, tile * 64, length, lane);
        multiply_columns(d_value, scores, d, lane);
        float d_scores[8][4] = {};
        multiply_tiles(d_scores, own + TILE_BYTES, warp * 16, d, lane);
#pragma unroll
        for (int part = 0; part < 8; part++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int column = part * 8 + lane % 4 * 2 + i % 2;
                scores[part][i] *= d_scores[part][i] - delta[tile % 2][column];
            }
        multiply_columns(d_key, scores, q, lane);
        __syncthreads();
    }
    real* to = d_qkv + ((i64)sequence * length + first) * stride + head * HEAD;
    write_rows(d_key, scale, scale, warp * 16, there, stride, to + total, lane);
    write_rows(d_value, 1.0f, 1.0f, warp * 16, there, stride, to + 2 * total, lane);
    float* own_sums = sums + ((i64)sequence * gridDim.y + tile_of_head) * stride + head * HEAD;
    float* shared = (float*)all_tiles;
    sum_rows_of_warps(d_key, scale, warp * 16, there, shared, own_sums + total, lane);
    sum_rows_of_warps(d_value, 1.0f, warp * 16, there, shared, own_sums + 2 * total, lane);
}
#endif
