// Drawing tokens from logits, one block per row. Sums and draws are in double precision and in the
// order of ids, as on the host.

// The index of the weight that `rest` falls on, weights in order; run by one thread.
__device__ int draw_of(int count, const double* weights, double rest) {
    int last = -1;
    for (int i = 0; i < count; i++) {
        if (!(weights[i] > 0.0)) continue;
        last = i;
        if (rest < weights[i]) break;
        rest -= weights[i];
    }
    return last;
}

// Turns weights into probabilities; run by one thread.
__device__ void normalise(int count, double* weights) {
    double sum = 0.0;
    for (int i = 0; i < count; i++)
        if (weights[i] > 0.0) sum += weights[i];
    for (int i = 0; i < count; i++) weights[i] = weights[i] > 0.0 ? weights[i] / sum : 0.0;
}

// The mass up to and including `own` in descending order of probability, ties by index; `before`
// counts only the more likely ones.
__device__ double mass_up_to(int count, const double* p, int own, int& before) {
    double mass = 0.0;
    before = 0;
    for (int i = 0; i < count; i++) {
        bool likelier = p[i] > p[own];
        before += likelier;
        if (likelier || (p[i] == p[own] && i <= own)) mass += p[i];
    }
    return mass;
}

// The class that `uniform` falls on; -1 if no class has a positive probability. `distribution` and
// `kept` have one element per class.
__device__ int draw_class(int classes, const float* logits, float log_sum, double temperature, int k,
                          double most, double uniform, double* distribution, double* kept) {
    __shared__ int drawn;
    __shared__ double threshold;
    float largest = NEVER;
    for (int i = threadIdx.x; i < classes; i += blockDim.x)
        largest = fmaxf(largest, logits[i] - log_sum);
    largest = block_max(largest);
    for (int i = threadIdx.x; i < classes; i += blockDim.x)
        distribution[i] = exp((double)(logits[i] - log_sum - largest) / temperature);
    __syncthreads();
    if (threadIdx.x == 0) normalise(classes, distribution);
    __syncthreads();
    if (k > 0) {
        for (int i = threadIdx.x; i < classes; i += blockDim.x) {
            int before;
            mass_up_to(classes, distribution, i, before);
            kept[i] = before < k ? distribution[i] : 0.0;
        }
        __syncthreads();
        if (threadIdx.x == 0) normalise(classes, kept);
        __syncthreads();
        for (int i = threadIdx.x; i < classes; i += blockDim.x) distribution[i] = kept[i];
        __syncthreads();
    }
    if (most < 1.0) {
        // A class is kept if the mass up to and including it does not exceed `most`.
        for (int i = threadIdx.x; i < classes; i += blockDim.x) {
            int before;
            double mass = mass_up_to(classes, distribution, i, before);
            kept[i] = mass <= most + 1e-12 ? distribution[i] : 0.0;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            double least = 2.0, highest = 0.0;
            for (int i = 0; i < classes; i++) {
                if (kept[i] > 0.0 && kept[i] < least) least = kept[i];
                if (distribution[i] > highest) highest = distribution[i];
            }
            threshold = least > 1.0 ? highest : least;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < classes; i += blockDim.x)
            if (distribution[i] < threshold) distribution[i] = 0.0;
        __syncthreads();
        if (threadIdx.x == 0) normalise(classes, distribution);
    }
    __syncthreads();
    if (threadIdx.x == 0) drawn = draw_of(classes, distribution, uniform);
    __syncthreads();
    return drawn;
}

// The token that `uniform` falls on; -1 if no token has a positive probability.
__device__ int draw_token(const Tokens& tokens, double uniform) {
    __shared__ double sums[256];
    __shared__ double rest;
    __shared__ int owner, drawn;
    // Each thread takes neighbouring tokens, so that sums follow the order of ids.
    u32 share = (tokens.count + 255) / 256, begin = min(tokens.count, share * threadIdx.x);
    u32 end = min(tokens.count, begin + share);
    double sum = 0.0;
    for (u32 i = begin; i < end; i++) sum += tokens.weight(i);
    sums[threadIdx.x] = sum;
    if (threadIdx.x == 0) drawn = -1;
    __syncthreads();
    if (threadIdx.x == 0) {
        double total = 0.0, left;
        for (int i = 0; i < 256; i++) total += sums[i];
        left = uniform * total;
        owner = -1;
        for (int i = 0; i < 256; i++) {
            if (!(sums[i] > 0.0)) continue;
            owner = i, rest = left;
            if (left < sums[i]) break;
            left -= sums[i];
        }
    }
    __syncthreads();
    if (threadIdx.x == owner) {
        double left = rest;
        for (u32 i = begin; i < end; i++) {
            double own = tokens.weight(i);
            if (!(own > 0.0)) continue;
            drawn = i;
            if (left < own) break;
            left -= own;
        }
    }
    __syncthreads();
    return drawn;
}

// `logits: [rows, vocabulary]`, `class_logits: [rows, classes]`, `uniforms: [rows, 2]`. With
// `decoupled` a class is drawn first; otherwise the logits of an F² head are already
// log-probabilities. `drawn: [rows, 4]` gets token, log-probability, class and the class's
// log-probability. Logits of dropped tokens are overwritten. Few registers per thread let six
// blocks share a processor, since all wait for memory.
KERNEL __launch_bounds__(256, 6)
draw_tokens(int classes, u32 vocabulary, const u32* ends, const float* class_logits, float* logits,
            int decoupled, double class_temperature, int class_k, double class_p, const Rules* rules,
            const double* uniforms, u32* drawn) {
    extern __shared__ double class_weights[];
    const float* by_class = class_logits + (i64)blockIdx.x * classes;
    float class_sum = classes ? log_sum_of(by_class, classes) : 0.0f;
    u32 start = 0, end = vocabulary;
    int class_ = -1, token = -1;
    if (decoupled) {
        class_ = draw_class(classes, by_class, class_sum, class_temperature, class_k, class_p,
                            uniforms[2 * blockIdx.x], class_weights, class_weights + classes);
        start = class_ > 0 ? ends[class_ - 1] : 0, end = class_ >= 0 ? ends[class_] : 0;
    }
    Tokens tokens = {logits + (i64)blockIdx.x * vocabulary + start, end - start};
    if (decoupled && class_ >= 0) tokens.class_log = by_class[class_] - class_sum;
    if (decoupled || !classes) tokens.log_sum = log_sum_of(tokens.logits, tokens.count);
    if (end > start) {
        apply(tokens, *rules);
        token = draw_token(tokens, uniforms[2 * blockIdx.x + decoupled]);
    }
    if (threadIdx.x) return;
    u32* to = drawn + 4 * blockIdx.x;
    to[0] = token < 0 ? NONE : start + token;
    to[1] = token < 0 ? 0 : __float_as_uint(tokens.log(token));
    if (!decoupled && classes && token >= 0)
        for (class_ = 0; ends[class_] <= token; class_++) {}
    to[2] = class_ < 0 ? NONE : class_;
    to[3] = class_ < 0 ? 0 : __float_as_uint(by_class[class_] - class_sum);
}
