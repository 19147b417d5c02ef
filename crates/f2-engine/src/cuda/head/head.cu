// Softmax losses of rows of logits; the gradient overwrites the logits.

// The columns `begin..end` of a row of logits that a softmax is over. Rows begin at multiples
// of eight elements.
struct Columns {
    u32 begin, end;
};

// The largest logit and the sum of exponentials of one thread's share of these columns.
__device__ __forceinline__ void share_of_sum(const real* row, Columns span, int stride, int thread,
                                             int threads, float& largest, float& sum) {
    largest = NEVER, sum = 0.0f;
    for (u32 column = span.begin / 8 * 8 + thread * 8; column < span.end; column += threads * 8) {
        float x[8];
        load8(row, column, stride, x);
        float most = NEVER;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            if (column + i < span.begin || column + i >= span.end) x[i] = NEVER;
            most = fmaxf(most, x[i]);
        }
        if (most > largest) sum *= __expf(largest - most), largest = most;
#pragma unroll
        for (int i = 0; i < 8; i++) sum += __expf(x[i] - largest);
    }
}

// Writes probability times `factor`, minus `weight` at the target; zero outside these columns.
__device__ __forceinline__ void write_gradient(real* row, Columns span, int stride, int thread,
                                               int threads, float log_sum, float factor,
                                               u32 target, float weight) {
    for (u32 column = thread * 8; column < stride; column += threads * 8) {
        float x[8] = {};
        if (column < span.end && column + 8 > span.begin) {
            load8(row, column, stride, x);
#pragma unroll
            for (int i = 0; i < 8; i++) {
                bool inside = column + i >= span.begin && column + i < span.end;
                x[i] = inside ? factor * __expf(x[i] - log_sum) : 0.0f;
                if (column + i == target) x[i] -= weight;
            }
        }
        store8(row, column, stride, x);
    }
}

// One warp per short row: `logits: [rows, stride]`. The softmax of entry `e` is over the columns
// `begins[e]..ends[e]` that exist, without these lists over all; entry `e` is position `order[e]`,
// without this list position `e`.
KERNEL __launch_bounds__(256)
softmax_short_rows(int rows, u32 columns, int stride, int first, const u32* order,
                   const u32* targets, const float* weights, const u32* begins, const u32* ends,
                   int backward, real* logits, float* losses) {
    int index = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (index >= rows) return;
    int entry = first + index;
    real* row = logits + (i64)index * stride;
    u32 target = targets[entry];
    Columns span = {begins ? begins[entry] : 0, ends ? min(ends[entry], columns) : columns};
    float weight = target == NONE ? 0.0f : weights[entry];
    float largest, sum;
    share_of_sum(row, span, stride, lane, 32, largest, sum);
    float most = warp_max(largest);
    sum = warp_sum(sum * __expf(largest - most));
    float log_sum = most + __logf(sum);
    if (lane == 0)
        losses[order ? order[entry] : entry] =
            target == NONE ? 0.0f : weight * (log_sum - widen(row[target]));
    __syncwarp();
    if (backward) write_gradient(row, span, stride, lane, 32, log_sum, weight, target, weight);
}

// The unlikelihood candidates of a row; its target is left out.
struct Candidates {
    const u32* ids;
    u32 count;
    float weight, floor;
};

// Writes the gradients of the candidates' own columns to `own`; returns the pull of all candidates
// on the other columns, which is proportional to their probability.
//
// A candidate of probability p pulls by a = p / (1 - p), and its own column gets p (1 - Σ of the
// others' pulls). At most one candidate has p above one half: its 1 - p is computed as the sum of
// all other probabilities, and its pull is kept separate, since differences would cancel.
__device__ float own_gradients(Candidates list, const real* row, int columns, float log_sum,
                               u32 target, float weight, float* own, float& penalty) {
    __shared__ u32 sure;
    if (threadIdx.x == 0) sure = NONE;
    __syncthreads();
    for (u32 i = threadIdx.x; i < list.count; i += blockDim.x) {
        u32 column = list.ids[i];
        if (column != target && __expf(widen(row[column]) - log_sum) > 0.5f) sure = column;
    }
    __syncthreads();
    float sure_rest = 0.0f, sure_pull = 0.0f, pull = 0.0f;
    if (sure != NONE) {
        for (u32 column = threadIdx.x; column < columns; column += blockDim.x)
            if (column != sure) sure_rest += __expf(widen(row[column]) - log_sum);
        sure_rest = block_sum(sure_rest);
    }
    penalty = 0.0f;
    for (u32 i = threadIdx.x; i < list.count; i += blockDim.x) {
        u32 column = list.ids[i];
        own[i] = 0.0f;
        if (column == target) continue;
        float probability = __expf(widen(row[column]) - log_sum);
        float rest = column == sure ? sure_rest : 1.0f - probability;
        penalty -= logf(fmaxf(rest, list.floor));
        if (rest > list.floor) own[i] = list.weight * probability / rest;
        if (column == sure) sure_pull = own[i];
        else pull += own[i];
    }
    penalty = block_sum(penalty);
    pull = block_sum(pull);
    sure_pull = block_sum(sure_pull);
    for (u32 i = threadIdx.x; i < list.count; i += blockDim.x) {
        u32 column = list.ids[i];
        if (column == target) continue;
        float others = column == sure ? pull : pull - own[i] + sure_pull;
        float push = own[i] > 0.0f ? list.weight : 0.0f;
        own[i] = __expf(widen(row[column]) - log_sum) * (weight + push - others);
    }
    return pull + sure_pull;
}

// One block per long row. With candidates, `penalties` gets their penalty, and the block needs
// shared memory for one float per candidate of the row.
KERNEL __launch_bounds__(1024)
softmax_long_rows(int columns, int stride, int first, const u32* order, const u32* targets,
                  const float* weights, int backward, real* logits, float* losses,
                  float* penalties, const u32* candidates, const u32* starts, const u32* ends,
                  float penalty_weight, float floor) {
    extern __shared__ float own[];
    int entry = first + blockIdx.x;
    real* row = logits + (i64)blockIdx.x * stride;
    u32 target = targets[entry];
    float weight = target == NONE ? 0.0f : weights[entry];
    float largest, sum;
    Columns span = {0, (u32)columns};
    share_of_sum(row, span, stride, threadIdx.x, blockDim.x, largest, sum);
    float most = block_max(largest);
    sum = block_sum(sum * __expf(largest - most));
    float log_sum = most + __logf(sum);
    u32 position = order ? order[entry] : entry;
    if (threadIdx.x == 0)
        losses[position] = target == NONE ? 0.0f : weight * (log_sum - widen(row[target]));
    float pull = 0.0f;
    u32 begin = 0, count = 0;
    if (candidates) {
        begin = starts[entry], count = ends[entry] - begin;
        Candidates list = {candidates + begin, count, penalty_weight, floor};
        float penalty;
        pull = own_gradients(list, row, columns, log_sum, target, weight, own, penalty);
        if (threadIdx.x == 0) penalties[position] = penalty_weight * penalty;
    }
    if (!backward) return;
    __syncthreads();
    write_gradient(row, span, stride, threadIdx.x, blockDim.x, log_sum, weight - pull, target, weight);
    if (!count) return;
    __syncthreads();
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) {
        u32 column = candidates[begin + i];
        if (column != target) row[column] = narrow(own[i]);
    }
}

// Writes the first column with the largest logit of each row to `winners`, at its position in
// `order`.
KERNEL __launch_bounds__(256)
first_maxima(int columns, int first, const u32* order, const float* logits, u32* winners) {
    __shared__ float values[256];
    __shared__ int places[256];
    const float* row = logits + (i64)blockIdx.x * columns;
    float best = -3.4e38f;
    int place = 0;
    for (int column = threadIdx.x; column < columns; column += 256)
        if (row[column] > best) best = row[column], place = column;
    values[threadIdx.x] = best, places[threadIdx.x] = place;
    for (int step = 128; step > 0; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) {
            float other = values[threadIdx.x + step];
            int there = places[threadIdx.x + step];
            if (other > best || (other == best && there < place))
                values[threadIdx.x] = best = other, places[threadIdx.x] = place = there;
        }
    }
    if (threadIdx.x == 0) winners[order[first + blockIdx.x]] = place;
}

// The logarithm of a row's sum of exponentials, by the whole block.
__device__ float log_sum_of(const float* row, int columns) {
    float largest = NEVER;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, row[i]);
    largest = block_max(largest);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i] - largest);
    return largest + logf(block_sum(sum));
}

KERNEL __launch_bounds__(512) log_softmax(int columns, float* logits) {
    float* row = logits + (i64)blockIdx.x * columns;
    float log_sum = log_sum_of(row, columns);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) row[i] -= log_sum;
}

// Turns token logits into log-posteriors in place: block (row, class) normalises its slice and adds
// the class's log-probability. `class_logits: [rows, classes]`.
KERNEL __launch_bounds__(256)
f2_posterior(int classes, int vocabulary, const u32* ends, const float* class_logits, float* logits) {
    u32 start = blockIdx.y ? ends[blockIdx.y - 1] : 0, end = ends[blockIdx.y];
    const float* by_class = class_logits + (i64)blockIdx.x * classes;
    float* slice = logits + (i64)blockIdx.x * vocabulary + start;
    float class_sum = log_sum_of(by_class, classes);
    float shift = by_class[blockIdx.y] - class_sum - log_sum_of(slice, end - start);
    for (u32 i = threadIdx.x; i < end - start; i += blockDim.x) slice[i] += shift;
}
