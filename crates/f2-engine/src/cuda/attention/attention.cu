// Causal attention for any head width and either precision, and attention to a cache. A warp
// processes one row of one head; its lanes share the columns. Its sums are in shared memory.
//
// `qkv: [positions, 3 · total]`, `out: [positions, total]`, `log_sums: [heads, positions]`.

__device__ __forceinline__ float dot(const float* a, const real* b, int width, int lane) {
    float sum = 0.0f;
    for (int i = lane; i < width; i += 32) sum += a[i] * widen(b[i]);
    return warp_sum(sum);
}

// The softmax-weighted sum of the values of `keys` rows, `stride` elements apart, in `sum`. `query`
// and `sum` are in shared memory. Returns the logarithm of the softmax's denominator.
__device__ __forceinline__ float attend(int keys, i64 stride, int width, int lane, float scale,
                                        const float* query, const real* k, const real* v,
                                        float* sum) {
    float largest = NEVER, denominator = 0.0f;
    for (int i = lane; i < width; i += 32) sum[i] = 0.0f;
    for (int key = 0; key < keys; key++) {
        float score = scale * dot(query, k + key * stride, width, lane);
        float most = fmaxf(largest, score);
        float keep = __expf(largest - most), weight = __expf(score - most);
        denominator = denominator * keep + weight;
        largest = most;
        const real* value = v + key * stride;
        for (int i = lane; i < width; i += 32) sum[i] = sum[i] * keep + weight * widen(value[i]);
    }
    for (int i = lane; i < width; i += 32) sum[i] /= denominator;
    return largest + logf(denominator);
}

KERNEL attention_any(int positions, int length, int heads, int width, float scale, const real* qkv,
                     real* out, float* log_sums) {
    extern __shared__ float shared[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int position = blockIdx.x * (blockDim.x / 32) + warp, head = blockIdx.y;
    if (position >= positions) return;
    float *query = shared + warp * 2 * width, *sum = query + width;
    i64 total = (i64)heads * width, stride = 3 * total;
    int first = position / length * length;
    const real* rows = qkv + head * width;
    for (int i = lane; i < width; i += 32) query[i] = widen(rows[position * stride + i]);
    __syncwarp();
    const real* k = rows + first * stride + total;
    float log_sum = attend(position - first + 1, stride, width, lane, scale, query, k, k + total, sum);
    for (int i = lane; i < width; i += 32)
        out[position * total + head * width + i] = narrow(sum[i]);
    if (lane == 0) log_sums[(i64)head * positions + position] = log_sum;
}

// Σ out · d_out for every row and head: `deltas: [heads, positions]`.
KERNEL attention_deltas(int positions, int heads, int width, const real* out, const real* d_out,
                        float* deltas) {
    int lane = threadIdx.x % 32, position = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (position >= positions) return;
    i64 start = ((i64)position * heads + blockIdx.y) * width;
    float sum = 0.0f;
    for (int i = lane; i < width; i += 32) sum += widen(out[start + i]) * widen(d_out[start + i]);
    sum = warp_sum(sum);
    if (lane == 0) deltas[(i64)blockIdx.y * positions + position] = sum;
}

KERNEL attention_any_backward_queries(int positions, int length, int heads, int width, float scale,
                                      const real* qkv, const float* log_sums, const float* deltas,
                                      const real* d_out, real* d_qkv) {
    extern __shared__ float shared[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int position = blockIdx.x * (blockDim.x / 32) + warp, head = blockIdx.y;
    if (position >= positions) return;
    float *query = shared + warp * 3 * width, *d = query + width, *sum = d + width;
    i64 total = (i64)heads * width, stride = 3 * total;
    int first = position / length * length;
    const real* rows = qkv + head * width;
    for (int i = lane; i < width; i += 32) {
        query[i] = widen(rows[position * stride + i]);
        d[i] = widen(d_out[position * total + head * width + i]);
        sum[i] = 0.0f;
    }
    __syncwarp();
    float log_sum = log_sums[(i64)head * positions + position];
    float delta = deltas[(i64)head * positions + position];
    for (int key = first; key <= position; key++) {
        const real *k = rows + key * stride + total, *v = k + total;
        float p = __expf(scale * dot(query, k, width, lane) - log_sum);
        float d_score = scale * p * (dot(d, v, width, lane) - delta);
        for (int i = lane; i < width; i += 32) sum[i] += d_score * widen(k[i]);
    }
    for (int i = lane; i < width; i += 32)
        d_qkv[position * stride + head * width + i] = narrow(sum[i]);
}

KERNEL attention_any_backward_keys(int positions, int length, int heads, int width, float scale,
                                   const real* qkv, const float* log_sums, const float* deltas,
                                   const real* d_out, real* d_qkv) {
    extern __shared__ float shared[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int position = blockIdx.x * (blockDim.x / 32) + warp, head = blockIdx.y;
    if (position >= positions) return;
    float *key = shared + warp * 4 * width, *value = key + width;
    float *d_key = value + width, *d_value = d_key + width;
    i64 total = (i64)heads * width, stride = 3 * total;
    int end = (position / length + 1) * length;
    const real* rows = qkv + head * width;
    for (int i = lane; i < width; i += 32) {
        key[i] = widen(rows[position * stride + total + i]);
        value[i] = widen(rows[position * stride + 2 * total + i]);
        d_key[i] = d_value[i] = 0.0f;
    }
    __syncwarp();
    for (int query = position; query < end; query++) {
        const real* q = rows + query * stride;
        const real* d = d_out + query * total + head * width;
        i64 row = (i64)head * positions + query;
        float p = __expf(scale * dot(key, q, width, lane) - log_sums[row]);
        float d_score = scale * p * (dot(value, d, width, lane) - deltas[row]);
        for (int i = lane; i < width; i += 32) {
            d_key[i] += d_score * widen(q[i]);
            d_value[i] += p * widen(d[i]);
        }
    }
    for (int i = lane; i < width; i += 32) {
        d_qkv[position * stride + total + head * width + i] = narrow(d_key[i]);
        d_qkv[position * stride + 2 * total + head * width + i] = narrow(d_value[i]);
    }
}

// The cache of a layer: keys `[sequences, heads, capacity, width]`, then values likewise. Row `r`
// of the batch is at position `places[r]` of sequence `sequences[r]`.
KERNEL store_in_cache(int rows, int heads, int width, int capacity, const u32* sequences,
                      const u32* places, const real* qkv, real* keys, real* values) {
    int row = blockIdx.x, total = heads * width;
    if (row >= rows) return;
    const real* from = qkv + (i64)row * 3 * total + total;
    for (int i = threadIdx.x; i < total; i += blockDim.x) {
        i64 place = (((i64)sequences[row] * heads + i / width) * capacity + places[row]) * width;
        keys[place + i % width] = from[i];
        values[place + i % width] = from[total + i];
    }
}

KERNEL attend_to_cache(int rows, int heads, int width, int capacity, float scale,
                       const u32* sequences, const u32* places, const real* qkv, const real* keys,
                       const real* values, real* out) {
    extern __shared__ float shared[];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int row = blockIdx.x * (blockDim.x / 32) + warp, head = blockIdx.y;
    if (row >= rows) return;
    float *query = shared + warp * 2 * width, *sum = query + width;
    i64 total = (i64)heads * width;
    for (int i = lane; i < width; i += 32)
        query[i] = widen(qkv[row * 3 * total + head * width + i]);
    __syncwarp();
    i64 start = ((i64)sequences[row] * heads + head) * capacity * width;
    attend(places[row] + 1, width, width, lane, scale, query, keys + start, values + start, sum);
    for (int i = lane; i < width; i += 32)
        out[row * total + head * width + i] = narrow(sum[i]);
}

// Copies the first `used` elements of every head of `from[parents[i]]` to `to[i]`; without
// `parents`, of `from[i]`.
KERNEL copy_sequences(int heads, int head_len, int used, const u32* parents, const real* from,
                      real* to) {
    i64 target = ((i64)blockIdx.x * heads + blockIdx.y) * head_len;
    i64 source = ((i64)(parents ? parents[blockIdx.x] : blockIdx.x) * heads + blockIdx.y) * head_len;
    for (int i = threadIdx.x; i < used; i += blockDim.x) to[target + i] = from[source + i];
}
