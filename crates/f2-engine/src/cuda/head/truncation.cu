// The rules that decide which tokens of a row may be drawn, by the whole block. Their definitions
// are those of the host, in f2-lm/src/decode/truncation. Sums are in double precision and in a
// fixed order.

// As `token_rules` in draw.rs writes them; a rule that is zero is off.
struct Rules {
    double temperature, top_n_sigma, top_k, typical, top_p, min_p, epsilon, eta;
};

// The tokens of a class, or all, without those that rules have dropped: their log-probability or
// their weight is below a bound, or their logit has become -infinity.
struct Tokens {
    float* logits;
    u32 count;
    float log_sum, class_log, largest;
    double temperature, least_log, least_weight;

    // The log-probability of a token: that within its class plus that of the class.
    __device__ __forceinline__ float log(u32 i) const { return logits[i] - log_sum + class_log; }

    // The logarithm of a weight.
    __device__ __forceinline__ double exponent(u32 i) const {
        return (double)(log(i) - largest) / temperature;
    }

    // Proportional to the probability of being drawn; one for the largest log-probability.
    __device__ __forceinline__ double weight(u32 i) const {
        if (!(log(i) >= least_log)) return 0.0;
        double weight = exp(exponent(i));
        return weight >= least_weight ? weight : 0.0;
    }
};

template <class Value>
__device__ double sum_over(const Tokens& tokens, Value value) {
    double sum = 0.0;
    for (u32 i = threadIdx.x; i < tokens.count; i += blockDim.x) sum += value(i);
    return block_sum(sum);
}

__device__ double sum_of_weights(const Tokens& tokens) {
    return sum_over(tokens, [&](u32 i) { return tokens.weight(i); });
}

// The entropy in nats of weights with the sum `total`.
__device__ double entropy_of(const Tokens& tokens, double total) {
    double sum = sum_over(tokens, [&](u32 i) {
        double weight = tokens.weight(i);
        return weight > 0.0 ? weight * tokens.exponent(i) : 0.0;
    });
    return log(total) - sum / total;
}

__device__ double largest_weight(const Tokens& tokens) {
    float largest = NEVER;
    for (u32 i = threadIdx.x; i < tokens.count; i += blockDim.x)
        if (tokens.weight(i) > 0.0) largest = fmaxf(largest, tokens.log(i));
    return exp((double)(block_max(largest) - tokens.largest) / tokens.temperature);
}

__device__ float largest_log(const Tokens& tokens) {
    float largest = NEVER;
    for (u32 i = threadIdx.x; i < tokens.count; i += blockDim.x)
        largest = fmaxf(largest, tokens.log(i));
    return block_max(largest);
}

// Up to this k, the largest below the one before is read k times.
constexpr int SMALL_K = 24;

// The k-th largest log-probability for a small k. `bound` is the largest.
__device__ float small_kth_largest(const Tokens& tokens, int k, float bound) {
    while (k > 1 && bound > NEVER) {
        float next = NEVER, ties = 0.0f;
        for (u32 i = threadIdx.x; i < tokens.count; i += blockDim.x) {
            float log = tokens.log(i);
            if (log == bound) ties += 1.0f;
            if (log < bound) next = fmaxf(next, log);
        }
        k -= (int)block_sum(ties);
        if (k <= 0) return bound;
        bound = block_max(next);
    }
    return bound;
}

// Whole numbers in the order of floats.
__device__ __forceinline__ u32 order_of(float x) {
    u32 bits = __float_as_uint(x);
    return bits >> 31 ? ~bits : bits | 0x80000000;
}

__device__ __forceinline__ float float_at(u32 order) {
    return __uint_as_float(order >> 31 ? order & 0x7fffffff : ~order);
}

// The k-th largest log-probability; NEVER if there are fewer than k. Bisects the floats up to
// `largest`: each time it is known whether k reach the middle.
__device__ float kth_largest(const Tokens& tokens, int k, float largest) {
    if (k <= SMALL_K) return small_kth_largest(tokens, k, largest);
    u32 low = order_of(NEVER), high = order_of(largest);
    while (low < high) {
        u32 middle = high - (high - low) / 2;
        float bound = float_at(middle);
        int reach = 0;
        for (u32 i = threadIdx.x; i < tokens.count; i += blockDim.x) reach += tokens.log(i) >= bound;
        if (block_sum(reach) >= k) low = middle;
        else high = middle - 1;
    }
    return float_at(low);
}

// The log-probability `n` standard deviations of all below the largest.
__device__ double sigma_bound(const Tokens& tokens, double n) {
    double count = sum_over(tokens, [&](u32 i) { return isfinite(tokens.log(i)) ? 1.0 : 0.0; });
    double sum = sum_over(tokens, [&](u32 i) {
        float log = tokens.log(i);
        return isfinite(log) ? (double)log : 0.0;
    });
    double mean = sum / count;
    double squares = sum_over(tokens, [&](u32 i) {
        double distance = tokens.log(i) - mean;
        return isfinite(distance) ? distance * distance : 0.0;
    });
    return tokens.largest - n * sqrt(squares / count);
}

// The bits of numbers from zero up are in the order of the numbers.
constexpr u64 INFINITE = 0x7ff0000000000000;

__device__ __forceinline__ u64 bits_of(double x) { return (u64)__double_as_longlong(x); }

// The tokens with a rank in `low..high`, as bits; `before` is the weight of those of lower rank.
struct Range {
    u64 low, high;
    double before, weight;
    int count;

    __device__ __forceinline__ bool has(double rank) const {
        return low <= bits_of(rank) && bits_of(rank) < high;
    }
};

template <class Rank>
__device__ Range range_of(const Tokens& tokens, u64 low, u64 high, double before, Rank rank) {
    Range range = {low, high, before, 0.0, 0};
    for (u32 i = threadIdx.x; i < tokens.count; i += blockDim.x) {
        double weight = range.has(rank(i)) ? tokens.weight(i) : 0.0;
        range.weight += weight, range.count += weight > 0.0;
    }
    range.weight = block_sum(range.weight), range.count = block_sum(range.count);
    return range;
}

// The part of a range in which the weights, added in ascending order of rank, reach `goal`: one
// token, or tokens of equal rank.
template <class Rank>
__device__ Range part_at(const Tokens& tokens, Range range, double goal, Rank rank) {
    while (range.count > 1 && range.high - range.low > 1) {
        u64 middle = range.low + (range.high - range.low) / 2;
        Range lower = range_of(tokens, range.low, middle, range.before, rank);
        if (lower.before + lower.weight >= goal) {
            range = lower;
        } else {
            range.low = middle, range.before += lower.weight, range.count -= lower.count;
        }
    }
    return range;
}

// Keeps the fewest tokens that reach the share `p` of all weights, in ascending order of rank, ties
// by id. A rank is not negative.
template <class Rank>
__device__ void keep_until(const Tokens& tokens, double p, Rank rank) {
    Range all = range_of(tokens, 0, INFINITE, 0.0, rank);
    double goal = p * all.weight;
    Range last = part_at(tokens, all, goal, rank);
    auto tie = [&](u32 i) {
        return last.has(rank(i)) ? (double)i : __longlong_as_double(INFINITE);
    };
    Range ids = {0, INFINITE, last.before, last.weight, last.count};
    ids = part_at(tokens, ids, goal, tie);
    for (u32 i = threadIdx.x; i < tokens.count; i += blockDim.x) {
        bool keeps = bits_of(rank(i)) < last.low || bits_of(tie(i)) < ids.high;
        if (!keeps) tokens.logits[i] = __int_as_float(0xff800000);
    }
    __syncthreads();
}

// Keeps tokens with at least the probability `cutoff`, and always the most likely.
__device__ void cut_off(Tokens& tokens, double cutoff, double total, double most) {
    tokens.least_weight = fmax(tokens.least_weight, fmin(cutoff * total, most));
}

// Applies the rules in the host's order.
__device__ void apply(Tokens& tokens, Rules rules) {
    tokens.temperature = rules.temperature;
    tokens.least_log = -__longlong_as_double(INFINITE), tokens.least_weight = 0.0;
    tokens.largest = largest_log(tokens);
    int k = (int)rules.top_k;
    if (k > 0) tokens.least_log = kth_largest(tokens, k, tokens.largest);
    // Both rules apply to the same tokens, all of them.
    if (rules.top_n_sigma > 0.0)
        tokens.least_log = fmax(tokens.least_log, sigma_bound(tokens, rules.top_n_sigma));
    double most = 1.0;
    if (rules.typical > 0.0) {
        double total = sum_of_weights(tokens);
        // The exponent of a token whose information is the entropy.
        double middle = log(total) - entropy_of(tokens, total);
        keep_until(tokens, rules.typical, [&](u32 i) { return fabs(tokens.exponent(i) - middle); });
        most = largest_weight(tokens);
    }
    if (rules.top_p > 0.0)
        keep_until(tokens, rules.top_p, [&](u32 i) { return fabs(tokens.exponent(i)); });
    tokens.least_weight = rules.min_p * most;
    if (rules.epsilon > 0.0) cut_off(tokens, rules.epsilon, sum_of_weights(tokens), most);
    if (rules.eta > 0.0) {
        double total = sum_of_weights(tokens);
        double cutoff = sqrt(rules.eta) * exp(-entropy_of(tokens, total));
        cut_off(tokens, fmin(rules.eta, cutoff), total, most);
    }
}
