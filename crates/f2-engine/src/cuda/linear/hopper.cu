// Products with GELU in the same pass, on the tensor cores of compute capability 9.0: bf16, sums of up
// to 512.
//
// A block keeps 128 columns of the right operand in shared memory and multiplies tiles of 64 rows by
// them. One thread has tiles copied; each of three groups of four warps takes every third tile, so
// that one group's epilogue runs while another multiplies.

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) && !defined(F32)
constexpr int FUSED_COLUMNS = 128;
constexpr int GROUPS = 3;
// Sums are processed in chunks of 64: of the left operand in a ring of stages, of the right operand
// all at once.
constexpr int STAGES = 8;
constexpr int CHUNK_BYTES = 2 * TILE_BYTES;
constexpr int RING = 8 * CHUNK_BYTES;
// In the epilogue each warp has 16 rows of 64 columns here.
constexpr int STRIPS = RING + STAGES * TILE_BYTES;
constexpr int STRIP_BYTES = TILE_BYTES / 4;
constexpr int BIAS = STRIPS + 4 * GROUPS * STRIP_BYTES;
constexpr int BARRIERS = BIAS + FUSED_COLUMNS * 4;

// A matrix as the copy unit sees it, made by the driver.
struct __align__(128) TensorMap {
    u64 words[16];
};

__device__ __forceinline__ void begin_barrier(u32 barrier, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void arrive(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives, and lets the phase wait for so many bytes of copies, too.
__device__ __forceinline__ void arrive_before_bytes(u32 barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

// Copies the box of a matrix at a row and a column; `barrier` counts its bytes.
__device__ __forceinline__ void copy_box(u32 to, const TensorMap& from, int row, int column, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(&from), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}

// Waits until a phase of this parity is complete; the one before the first has parity 1.
__device__ __forceinline__ void wait_for(u32 barrier, u32 parity) {
    u32 done;
    do {
        asm volatile("{\n.reg .pred done;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, done;\n}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!done);
}

// Whether a stage was copied, and whether its products are done.
__device__ __forceinline__ u32 full_barrier(u32 shared, u32 stage) { return shared + BARRIERS + 8 * stage; }
__device__ __forceinline__ u32 free_barrier(u32 shared, u32 stage) {
    return shared + BARRIERS + 8 * (STAGES + stage);
}

// Whether it is a group's turn to multiply. Turns keep products in the order of tiles: a group that
// came too early could take a stage for full that still waits for an earlier tile, since only the
// parity of phases is known.
__device__ __forceinline__ u32 turn_barrier(u32 shared, u32 group) {
    return shared + BARRIERS + 8 * (2 * STAGES + group);
}

__device__ __forceinline__ void arrive_as_warp(u32 barrier) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(barrier);
}

#define SIXTEEN(x) ALL(x), EIGHT(x, 8), EIGHT(x, 10), EIGHT(x, 12), EIGHT(x, 14)
#define WIDE_PRODUCT                                                                                \
    "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11," \
    "%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,"  \
    "%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,"  \
    "%58,%59,%60,%61,%62,%63}, "

// to: [64, 128] (+)= left · right over a chunk of sums. The right operand's chunk is 128 columns that
// are rows in memory (`COLUMNS`), or else two halves of 64 columns, 64 rows each.
template <bool COLUMNS>
__device__ __forceinline__ void multiply_chunk(float (&to)[16][4], u32 left, u32 right, bool add) {
    u64 from = wgmma_descriptor(right);
    if (!COLUMNS) from += (u64)(TILE_BYTES / 16 - 1) << 16;
    begin_products();
#pragma unroll
    for (int step = 0; step < 4; step++)
        asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %66, 0;\n" WIDE_PRODUCT
                     "%64, %65, add, 1, 1, 0, %67;\n}"
                     : SIXTEEN(to)
                     : "l"(wgmma_descriptor(left) + 2 * step), "l"(from + (COLUMNS ? 2 : 128) * step),
                       "r"((int)(add || step > 0)), "n"(COLUMNS ? 0 : 1));
    commit_products();
}

template <int PENDING>
__device__ __forceinline__ void wait_wide_products(float (&x)[16][4]) {
    asm volatile("wgmma.wait_group.sync.aligned %64;" : SIXTEEN(x) : "n"(PENDING) : "memory");
}

// The tiles of a block: `first`, `first + step`, …, each with `chunks` chunks.
struct Tiles {
    int first, step, count, chunks;
};

__device__ __forceinline__ Tiles own_tiles(int rows, int inner) {
    int first = blockIdx.y, step = gridDim.y;
    return {first, step, (rows / 64 - first + step - 1) / step, inner / 64};
}

// Has all tiles of the block copied, by one thread. The first tile's chunks come with those of the
// right operand.
template <bool COLUMNS>
__device__ __forceinline__ void copy_tiles(Tiles tiles, const TensorMap& left, const TensorMap& right,
                                           u32 shared) {
    int column = blockIdx.x * FUSED_COLUMNS;
    u32 number = 0;
    for (int tile = 0; tile < tiles.count; tile++) {
        int row = (tiles.first + tile * tiles.step) * 64;
        for (int chunk = 0; chunk < tiles.chunks; chunk++, number++) {
            u32 stage = number % STAGES, full = full_barrier(shared, stage);
            u32 to = shared + chunk * CHUNK_BYTES;
            wait_for(free_barrier(shared, stage), number / STAGES % 2 ^ 1);
            arrive_before_bytes(full, TILE_BYTES + (tile == 0 ? CHUNK_BYTES : 0));
            copy_box(shared + RING + stage * TILE_BYTES, left, row, chunk * 64, full);
            if (tile > 0) continue;
            if (COLUMNS) {
                copy_box(to, right, column, chunk * 64, full);
            } else {
                copy_box(to, right, chunk * 64, column, full);
                copy_box(to + TILE_BYTES, right, chunk * 64, column + 64, full);
            }
        }
    }
}

// sums: [64, 128] = a tile · the right operand.
template <bool COLUMNS>
__device__ __forceinline__ void multiply_tile(float (&sums)[16][4], u32 tile, int chunks, u32 shared) {
    u32 number = tile * chunks, group = tile % GROUPS;
    wait_for(turn_barrier(shared, group), (tile / GROUPS + (group == 0)) % 2);
    for (int chunk = 0; chunk < chunks; chunk++, number++) {
        u32 stage = number % STAGES;
        wait_for(full_barrier(shared, stage), number / STAGES % 2);
        multiply_chunk<COLUMNS>(sums, shared + RING + stage * TILE_BYTES, shared + chunk * CHUNK_BYTES,
                                chunk > 0);
        if (chunk == chunks - 1) arrive_as_warp(turn_barrier(shared, (group + 1) % GROUPS));
        if (chunk == 0) continue;
        wait_wide_products<1>(sums);
        arrive_as_warp(free_barrier(shared, (number - 1) % STAGES));
    }
    wait_wide_products<0>(sums);
    arrive_as_warp(free_barrier(shared, (number - 1) % STAGES));
}

// Rounds 64 columns of a warp's 16 rows into its strip, whose chunks are placed as in a tile.
__device__ __forceinline__ void fill_strip(u32 strip, const float (&from)[8][4], int lane) {
    u32 first = chunk_address(strip, lane % 16, lane / 16);
    __syncwarp();
#pragma unroll
    for (int part = 0; part < 4; part++) {
        const float *low = from[2 * part], *high = from[2 * part + 1];
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(
                         first ^ 32 * part),
                     "r"(pack(low[0], low[1])), "r"(pack(low[2], low[3])),
                     "r"(pack(high[0], high[1])), "r"(pack(high[2], high[3]))
                     : "memory");
    }
    __syncwarp();
}

__device__ __forceinline__ void widen8(uint4 words, float (&x)[8]) {
    u32 word[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        x[2 * i] = __uint_as_float(word[i] << 16);
        x[2 * i + 1] = __uint_as_float(word[i] & 0xffff0000u);
    }
}

// `gelu_gate` and `gelu_slope` in fewer instructions, since the epilogue takes nearly as long as the
// product. Constants are for powers of two; `square` is that of `x`.
__device__ __forceinline__ float short_gate(float x, float square) {
    constexpr float LINEAR = -1.5957691216f * LOG2_E;
    float gate, inverse = 1.0f + exp2_of(x * (LINEAR + 0.044715f * LINEAR * square));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(gate) : "f"(inverse));
    return gate;
}

__device__ __forceinline__ float short_slope(float x) {
    float square = x * x, gate = short_gate(x, square);
    float slope = x * (1.5957691216f + 3.0f * 0.044715f * 1.5957691216f * square);
    return gate + slope * (gate - gate * gate);
}

// A lane's chunks of four rows, 4 · `columns` apart.
__device__ __forceinline__ void load_chunks(uint4 (&to)[4], const real* from, u32 start, int columns) {
#pragma unroll
    for (int part = 0; part < 4; part++)
        to[part] = __ldcs((const uint4*)(from + (start + part * 4 * columns)));
}

// The warp's place among those that multiply. In the epilogue a lane has eight columns of row
// `lane / 8` of every four, in each half of the columns.
struct OwnPlace {
    u32 lane, warp, offset;

    __device__ __forceinline__ OwnPlace(int columns) {
        lane = threadIdx.x % 32, warp = threadIdx.x / 32 - 4;
        offset = (warp % 4 * 16 + lane / 8) * columns + blockIdx.x * FUSED_COLUMNS + lane % 8 * 8;
    }

    // The lane's first columns of a tile in a matrix of less than 2³² elements.
    __device__ __forceinline__ u32 start(Tiles tiles, int number, int columns) const {
        return (u32)((tiles.first + number * tiles.step) * 64) * columns + offset;
    }

    // Where row `4 · part + lane / 8` is in the warp's strip.
    __device__ __forceinline__ u32 in_strip(int part) const {
        u32 first = chunk_address(STRIPS + warp * STRIP_BYTES, lane / 8, lane % 8);
        return (first ^ part % 2 * 64) + part * 512;
    }
};

// A stage is full after one arrival and the bytes that it announces; the others wait for four warps.
__device__ __forceinline__ void begin_barriers(u32 shared) {
    if (threadIdx.x < STAGES) {
        begin_barrier(full_barrier(shared, threadIdx.x), 1);
        begin_barrier(free_barrier(shared, threadIdx.x), 4);
        if (threadIdx.x < GROUPS) begin_barrier(turn_barrier(shared, threadIdx.x), 4);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
}

// More registers for the warps that multiply, fewer for the four others.
__device__ __forceinline__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
}
__device__ __forceinline__ void give_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 32;"); }

// before = left · rightᵀ + bias, to = GELU(before).
KERNEL __launch_bounds__(512, 1)
product_gelu_hopper(int rows, int columns, int inner, const __grid_constant__ TensorMap left,
                    const __grid_constant__ TensorMap right, const real* bias, real* before, real* to) {
    extern __shared__ __align__(1024) unsigned char memory[];
    u32 shared = shared_address(memory);
    float* own_bias = (float*)(memory + BIAS);
    begin_barriers(shared);
    if (threadIdx.x < FUSED_COLUMNS)
        own_bias[threadIdx.x] = widen(bias[blockIdx.x * FUSED_COLUMNS + threadIdx.x]);
    __syncthreads();
    Tiles tiles = own_tiles(rows, inner);
    if (threadIdx.x < 128) {
        give_registers();
        if (threadIdx.x == 0) copy_tiles<true>(tiles, left, right, shared);
        return;
    }
    take_registers();
    OwnPlace place(columns);
    u32 strip = shared + STRIPS + place.warp * STRIP_BYTES;
    for (int number = (int)place.warp / 4; number < tiles.count; number += GROUPS) {
        float sums[16][4];
        multiply_tile<true>(sums, number, tiles.chunks, shared);
        u32 start = place.start(tiles, number, columns);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float values[8][4];
#pragma unroll
            for (int part = 0; part < 8; part++) {
                const float* own = own_bias + half * 64 + part * 8 + place.lane % 4 * 2;
                float2 shift = *(const float2*)own;
#pragma unroll
                for (int i = 0; i < 4; i++)
                    values[part][i] = sums[half * 8 + part][i] + (i % 2 ? shift.y : shift.x);
            }
            fill_strip(strip, values, place.lane);
#pragma unroll
            for (int part = 0; part < 4; part++) {
                u32 at = start + part * 4 * columns + half * 64;
                uint4 words = *(const uint4*)(memory + place.in_strip(part));
                // Only the backward pass reads it again: the cache is for the other output.
                __stcs((uint4*)(before + at), words);
                float x[8];
                widen8(words, x);
#pragma unroll
                for (int i = 0; i < 8; i++) x[i] *= short_gate(x[i], x[i] * x[i]);
                store8(to + at, 0, 8, x);
            }
        }
    }
}

// to = (left · right) ∘ GELU'(before). The sums over the rows of a block are written to
// `partial: [gridDim.y, columns]`.
KERNEL __launch_bounds__(512, 1)
product_gelu_backward_hopper(int rows, int columns, int inner, const __grid_constant__ TensorMap left,
                             const __grid_constant__ TensorMap right, const real* before, real* to,
                             float* partial) {
    extern __shared__ __align__(1024) unsigned char memory[];
    u32 shared = shared_address(memory);
    begin_barriers(shared);
    __syncthreads();
    Tiles tiles = own_tiles(rows, inner);
    if (threadIdx.x < 128) {
        give_registers();
        if (threadIdx.x == 0) copy_tiles<false>(tiles, left, right, shared);
    } else {
        take_registers();
        OwnPlace place(columns);
        float column_sums[2][8] = {};
        for (int number = (int)place.warp / 4; number < tiles.count; number += GROUPS) {
            float sums[16][4];
            uint4 saved[2][4];
            load_chunks(saved[0], before, place.start(tiles, number, columns), columns);
            multiply_tile<false>(sums, number, tiles.chunks, shared);
            u32 start = place.start(tiles, number, columns);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float values[8][4];
#pragma unroll
                for (int i = 0; i < 32; i++) values[i / 4][i % 4] = sums[half * 8 + i / 4][i % 4];
                fill_strip(shared + STRIPS + place.warp * STRIP_BYTES, values, place.lane);
                // Half of the registers are free now.
                if (half == 0) load_chunks(saved[1], before, start + 64, columns);
#pragma unroll
                for (int part = 0; part < 4; part++) {
                    float x[8], y[8];
                    widen8(*(const uint4*)(memory + place.in_strip(part)), y);
                    widen8(saved[half][part], x);
#pragma unroll
                    for (int i = 0; i < 8; i++) {
                        y[i] *= short_slope(x[i]);
                        column_sums[half][i] += y[i];
                    }
                    store8(to + (start + part * 4 * columns + half * 64), 0, 8, y);
                }
            }
        }
        // Every warp's sums, in its strip.
        __syncwarp();
        float* own = (float*)(memory + STRIPS + place.warp * STRIP_BYTES);
#pragma unroll
        for (int i = 0; i < 16; i++) {
            float sum = column_sums[i / 8][i % 8];
            sum += __shfl_xor_sync(0xffffffffu, sum, 8);
            sum += __shfl_xor_sync(0xffffffffu, sum, 16);
            if (place.lane < 8) own[i / 8 * 64 + place.lane * 8 + i % 8] = sum;
        }
    }
    __syncthreads();
    if (threadIdx.x >= FUSED_COLUMNS) return;
    const float* sums = (const float*)(memory + STRIPS) + threadIdx.x;
    float total = 0.0f;
#pragma unroll
    for (int warp = 0; warp < 4 * GROUPS; warp++) total += sums[warp * (STRIP_BYTES / 4)];
    partial[(i64)blockIdx.y * columns + blockIdx.x * FUSED_COLUMNS + threadIdx.x] = total;
}
#endif
