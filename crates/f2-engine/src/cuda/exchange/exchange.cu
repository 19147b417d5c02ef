// Sums of the gradients and losses that ranks exchange.

// `to += from`, four elements per thread.
KERNEL add_floats(u64 count, const float* from, float* to) {
    u64 start = 4 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
    if (start >= count) return;
    from += start, to += start;
    if (start + 4 <= count && ((u64)from | (u64)to) % 16 == 0) {
        float4 x = *(const float4*)from, y = *(float4*)to;
        *(float4*)to = make_float4(y.x + x.x, y.y + x.y, y.z + x.z, y.w + x.w);
    } else {
        for (u64 i = 0; i < 4 && start + i < count; i++) to[i] += from[i];
    }
}

// `*to = Σ from`, in order, in double precision. All threads load, the first one adds.
KERNEL __launch_bounds__(1024) add_in_order(u64 count, const float* from, float* to) {
    __shared__ float fetched[1024];
    double total = 0.0;
    for (u64 start = 0; start < count; start += 1024) {
        u64 i = start + threadIdx.x;
        fetched[threadIdx.x] = i < count ? from[i] : 0.0f;
        __syncthreads();
        if (threadIdx.x == 0) {
            int some = count - start < 1024 ? (int)(count - start) : 1024;
            for (int k = 0; k < some; k++) total += fetched[k];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) *to = (float)total;
}
