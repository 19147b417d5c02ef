// cuBLASLt: products with the epilogues that are used, with two algorithms that round differently.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "stream.h"

namespace {

using namespace emulator;

enum Status { SUCCESS = 0, INVALID_VALUE = 7, NOT_SUPPORTED = 15 };
enum Type { FLOAT = 0, BF16 = 14 };
enum Attribute { TRANSPOSE_A = 3, TRANSPOSE_B = 4, EPILOGUE = 7, BIAS = 8, AUXILIARY = 11, AUXILIARY_STRIDE = 12 };
enum Epilogue { NOTHING = 1, ADD_BIAS = 4, GELU_OF_BIAS = 164 };

struct Description {
    int transpose_a = 0, transpose_b = 0, epilogue = NOTHING;
    const char* bias = nullptr;
    char* auxiliary = nullptr;
    int64_t auxiliary_stride = 0;
};

struct Layout {
    int type;
    uint64_t rows, columns;
    int64_t stride;

    size_t bytes() const { return type == BF16 ? 2 : 4; }
};

struct Preference {
    uint32_t alignment[4] = {256, 256, 256, 256};
};

struct Algorithm {
    uint64_t data[8];
};

struct Suggestion {
    Algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

float read(const char* from, int type, size_t index) {
    if (type == FLOAT) return ((const float*)from)[index];
    uint32_t bits = (uint32_t)((const uint16_t*)from)[index] << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

void write(char* to, int type, size_t index, float value) {
    if (type == FLOAT) {
        ((float*)to)[index] = value;
        return;
    }
    uint32_t bits;
    memcpy(&bits, &value, 4);
    ((uint16_t*)to)[index] = value != value ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// The operand of a product as `[rows, columns]`, rows after each other.
std::vector<float> dense(const char* from, const Layout& layout, bool transposed) {
    uint64_t rows = transposed ? layout.columns : layout.rows;
    uint64_t columns = transposed ? layout.rows : layout.columns;
    std::vector<float> all(rows * columns);
    for (uint64_t column = 0; column < layout.columns; column++)
        for (uint64_t row = 0; row < layout.rows; row++) {
            float value = read(from, layout.type, row + column * layout.stride);
            if (transposed) all[column * columns + row] = value;
            else all[row * columns + column] = value;
        }
    return all;
}

float gelu(float x) { return 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))); }

struct Product {
    Description operation;
    Layout a, b, d;
    const char *from_a, *from_b;
    char* to;
    bool add, backwards;

    void run() const {
        uint64_t rows = d.rows, columns = d.columns;
        uint64_t inner = operation.transpose_a ? a.rows : a.columns;
        // Only measurements of speed are that large, which do not read the result: NaN.
        if ((double)rows * columns * inner > 2e10) {
            for (uint64_t column = 0; column < columns; column++)
                memset(to + column * d.stride * d.bytes(), 0xff, rows * d.bytes());
            return;
        }
        // Columns after each other, as the output is stored.
        auto left = dense(from_a, a, !operation.transpose_a), right = dense(from_b, b, !operation.transpose_b);
        std::vector<float> sums(rows);
        for (uint64_t column = 0; column < columns; column++) {
            std::fill(sums.begin(), sums.end(), 0.0f);
            for (uint64_t step = 0; step < inner; step++) {
                uint64_t k = backwards ? inner - 1 - step : step;
                float factor = right[column * inner + k];
                const float* from = &left[k * rows];
                for (uint64_t row = 0; row < rows; row++) sums[row] += factor * from[row];
            }
            for (uint64_t row = 0; row < rows; row++) finish(row, column, sums[row]);
        }
    }

    void finish(uint64_t row, uint64_t column, float value) const {
        if (operation.epilogue != NOTHING) value += read(operation.bias, d.type, row);
        if (operation.epilogue == GELU_OF_BIAS) {
            write(operation.auxiliary, d.type, row + column * operation.auxiliary_stride, value);
            value = gelu(value);
        }
        size_t place = row + column * d.stride;
        if (add) value += read(to, d.type, place);
        write(to, d.type, place, value);
    }
};

}  // namespace

extern "C" {

size_t cublasLtGetVersion() { return 130000; }

Status cublasLtCreate(void** handle) {
    *handle = malloc(1);
    return SUCCESS;
}

Status cublasLtDestroy(void* handle) {
    free(handle);
    return SUCCESS;
}

Status cublasLtMatmulDescCreate(Description** operation, int, int) {
    *operation = new Description;
    return SUCCESS;
}

Status cublasLtMatmulDescDestroy(Description* operation) {
    delete operation;
    return SUCCESS;
}

Status cublasLtMatmulDescSetAttribute(Description* operation, int attribute, const void* value, size_t size) {
    switch (attribute) {
        case TRANSPOSE_A: memcpy(&operation->transpose_a, value, size); break;
        case TRANSPOSE_B: memcpy(&operation->transpose_b, value, size); break;
        case EPILOGUE: memcpy(&operation->epilogue, value, size); break;
        case BIAS: memcpy(&operation->bias, value, size); break;
        case AUXILIARY: memcpy(&operation->auxiliary, value, size); break;
        case AUXILIARY_STRIDE: memcpy(&operation->auxiliary_stride, value, size); break;
        default: return NOT_SUPPORTED;
    }
    return SUCCESS;
}

Status cublasLtMatrixLayoutCreate(Layout** layout, int type, uint64_t rows, uint64_t columns, int64_t stride) {
    if (stride < (int64_t)rows) return INVALID_VALUE;
    *layout = new Layout{type, rows, columns, stride};
    return SUCCESS;
}

Status cublasLtMatrixLayoutDestroy(Layout* layout) {
    delete layout;
    return SUCCESS;
}

Status cublasLtMatmulPreferenceCreate(Preference** preference) {
    *preference = new Preference;
    return SUCCESS;
}

Status cublasLtMatmulPreferenceDestroy(Preference* preference) {
    delete preference;
    return SUCCESS;
}

Status cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute, const void* value, size_t) {
    // The alignments of A, B, C and D.
    if (attribute >= 5 && attribute <= 8) memcpy(&preference->alignment[attribute - 5], value, 4);
    return SUCCESS;
}

// Like the library: bf16 needs pairs, the epilogue with two outputs chunks of sixteen bytes.
Status cublasLtMatmulAlgoGetHeuristic(void*, Description* operation, Layout* a, Layout* b, Layout*, Layout* d,
                                      Preference* preference, int most, Suggestion* found, int* count) {
    size_t grain = operation->epilogue == GELU_OF_BIAS ? 16 : 4;
    *count = 0;
    const Layout* layouts[] = {a, b, d};
    const uint32_t alignments[] = {preference->alignment[0], preference->alignment[1], preference->alignment[3]};
    for (int i = 0; i < 3; i++)
        if (layouts[i]->stride * layouts[i]->bytes() % grain || alignments[i] % grain) return NOT_SUPPORTED;
    // Timing several takes long for large products.
    bool large = (double)d->rows * d->columns * (operation->transpose_a ? a->rows : a->columns) > 1e7;
    for (uint64_t kind = 0; kind < (large ? 1 : 2) && *count < most; kind++)
        found[(*count)++] = {{{kind}}, 0, SUCCESS, 1.0f, {}};
    return SUCCESS;
}

Status cublasLtMatmul(void*, Description* operation, const void* alpha, const void* a, Layout* a_layout, const void* b,
                      Layout* b_layout, const void* beta, const void* c, Layout*, void* d, Layout* d_layout,
                      const Algorithm* algorithm, void*, size_t, void* stream) {
    float factor = *(const float*)alpha, kept = *(const float*)beta;
    if (factor != 1.0f || (kept != 0.0f && kept != 1.0f) || (kept != 0.0f && c != d)) return NOT_SUPPORTED;
    if (a_layout->type != b_layout->type) return NOT_SUPPORTED;
    Product product = {*operation, *a_layout, *b_layout, *d_layout, (const char*)a, (const char*)b,
                       (char*)d, kept == 1.0f, algorithm->data[0] == 1};
    stream_of(stream)->enqueue([=] { product.run(); });
    return SUCCESS;
}
}
