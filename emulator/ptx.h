// The PTX instructions of the kernels, as functions of their operands: outputs first. nvrtc.cpp says
// which instruction is which function.

#pragma once

#include <math.h>

#include "block.h"

namespace emulator {

template <class To, class From>
inline To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

}  // namespace emulator

namespace emulator::ptx {

// `bytes` bytes of shared memory at an address.
inline unsigned char* shared(size_t address, size_t bytes) {
    if (address + bytes > DYNAMIC_SHARED + block.launch->shared) fail("an address beyond shared memory");
    if (address % bytes) fail("an unaligned address in shared memory");
    return block.shared + address;
}

inline float from_bf16(unsigned short bits) { return bits_as<float>((unsigned)bits << 16); }

// Rounds to nearest, ties to even.
inline unsigned short to_bf16(float x) {
    unsigned bits = bits_as<unsigned>(x);
    if (x != x) return 0x7fff;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// One of the two numbers in a register.
inline float half(unsigned bits, unsigned index) { return from_bf16(bits >> 16 * index); }

inline void round_one(unsigned short& to, float x) { to = to_bf16(x); }

inline void round_two(unsigned& to, float high, float low) {
    to = (unsigned)to_bf16(high) << 16 | to_bf16(low);
}

inline float flushed(float x) { return fabsf(x) < 1.17549435e-38f ? 0.0f : x; }
inline void power_of_two(float& to, float x) { to = flushed(exp2f(flushed(x))); }
inline void square_root(float& to, float x) { to = sqrtf(flushed(x)); }
inline void reciprocal(float& to, float x) { to = flushed(1.0f / flushed(x)); }

// Starts a copy of `bytes` bytes; the rest of `SIZE` becomes zero.
template <unsigned SIZE>
inline void copy(unsigned to, const void* from, unsigned bytes) {
    if ((size_t)from % SIZE && bytes) fail("a copy from an unaligned address");
    current->copies.push_back({shared(to, SIZE), from, SIZE, bytes, current->groups});
}

inline void commit_copies() { current->groups++; }

// Makes the copies of all groups but the last `pending`, and leaves the others for later.
inline void wait_copies(unsigned pending) {
    auto& copies = current->copies;
    size_t left = 0;
    for (Copy& copy : copies) {
        if (copy.group + pending >= current->groups) {
            copies[left++] = copy;
            continue;
        }
        memset(copy.to, 0, copy.size);
        if (copy.bytes) memcpy(copy.to, copy.from, copy.bytes);
    }
    copies.resize(left);
}

// The addresses of the four matrices' rows, one from each lane.
inline const unsigned (*rows_of_matrices(unsigned address))[REGISTERS] {
    shared(address, 16);
    return show(address);
}

inline unsigned short element(const unsigned (*rows)[REGISTERS], unsigned matrix, unsigned row,
                              unsigned column) {
    return *(unsigned short*)shared(rows[8 * matrix + row][0] + 2 * column, 2);
}

inline void load_matrices(unsigned& a, unsigned& b, unsigned& c, unsigned& d, unsigned address) {
    auto rows = rows_of_matrices(address);
    unsigned lane = current->index.x % WARP, row = lane / 4, column = lane % 4 * 2, i = 0;
    for (unsigned* to : {&a, &b, &c, &d}) {
        *to = element(rows, i, row, column) | (unsigned)element(rows, i, row, column + 1) << 16;
        i++;
    }
}

inline void load_transposed(unsigned& a, unsigned& b, unsigned& c, unsigned& d, unsigned address) {
    auto rows = rows_of_matrices(address);
    unsigned lane = current->index.x % WARP, row = lane % 4 * 2, column = lane / 4, i = 0;
    for (unsigned* to : {&a, &b, &c, &d}) {
        *to = element(rows, i, row, column) | (unsigned)element(rows, i, row + 1, column) << 16;
        i++;
    }
}

inline void store_matrices(unsigned address, unsigned a, unsigned b, unsigned c, unsigned d) {
    auto rows = rows_of_matrices(address);
    unsigned lane = current->index.x % WARP, row = lane / 4, column = lane % 4 * 2, i = 0;
    for (unsigned from : {a, b, c, d})
        *(unsigned*)shared(rows[8 * i++ + row][0] + 2 * column, 4) = from;
}

// The operands of a product as numbers, which the lanes of a warp decode together: two sets, as for
// registers that are shown. Sums are over 16.
struct Operands {
    float left[16][16], right[16][128];
};

inline Operands& operands() {
    static Operands sets[MOST_THREADS / WARP][2];
    unsigned index = current->index.x;
    return sets[index / WARP][warp().exchanges[index % WARP] % 2];
}

// Decodes this lane's registers of a left operand of 16 rows.
inline void decode_left(Operands& to, const unsigned (&registers)[4]) {
    unsigned lane = current->index.x % WARP, row = lane / 4, k = lane % 4 * 2;
    for (unsigned i = 0; i < 8; i++)
        to.left[row + i / 2 % 2 * 8][k + i / 4 * 8 + i % 2] = half(registers[i / 2], i % 2);
}

inline float product_of(const Operands& from, unsigned row, unsigned column) {
    float sum = 0.0f;
    for (unsigned k = 0; k < 16; k++) sum += from.left[row][k] * from.right[k][column];
    return sum;
}

// A tile of 16 × 8 outputs: c += a · b.
inline void multiply(float& c0, float& c1, float& c2, float& c3, unsigned a0, unsigned a1, unsigned a2,
                     unsigned a3, unsigned b0, unsigned b1) {
    Operands& from = operands();
    unsigned lane = current->index.x % WARP, row = lane / 4, column = lane % 4 * 2;
    decode_left(from, {a0, a1, a2, a3});
    for (unsigned i = 0; i < 4; i++)
        from.right[column + i / 2 * 8 + i % 2][row] = half(i < 2 ? b0 : b1, i % 2);
    show();
    c0 += product_of(from, row, column), c1 += product_of(from, row, column + 1);
    c2 += product_of(from, row + 8, column), c3 += product_of(from, row + 8, column + 1);
}

// An element of a tile that a WGMMA descriptor names: rows of 128 bytes, whose chunks of 16 bytes
// are exchanged by the 128-byte swizzle.
inline float tile_element(unsigned long long descriptor, unsigned row, unsigned column) {
    constexpr unsigned long long KIND = 1ull << 62 | 64ull << 32 | 1ull << 16;
    if ((descriptor & ~0x3fffull) != KIND) fail("an unknown WGMMA descriptor");
    unsigned address = (descriptor & 0x3fff) * 16 + row * 128 + column * 2;
    return from_bf16(*(unsigned short*)shared(address ^ (address >> 7 & 7) << 4, 2));
}

// The outputs of a warp: 16 rows of 64 columns.
template <class... Floats>
inline void add_products(const Operands& from, bool add, Floats&... to) {
    unsigned lane = current->index.x % WARP, i = 0;
    auto sum = [&] {
        unsigned row = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        return i++, product_of(from, row, column);
    };
    ((to = (add ? to : 0.0f) + sum()), ...);
}

// `to: [64, 64] += left · rightᵀ`, or `=` if `add` is zero. Both operands are rows in shared memory,
// of which each of the four warps has 16.
template <class... Floats>
inline void multiply_group_tiles(unsigned long long left, unsigned long long right, unsigned add,
                                 Floats&... to) {
    Operands& from = operands();
    unsigned lane = current->index.x % WARP, first = current->index.x % 128 / WARP * 16;
    for (unsigned i = lane; i < 16 * 16; i += WARP)
        from.left[i / 16][i % 16] = tile_element(left, first + i / 16, i % 16);
    for (unsigned i = lane; i < 16 * 64; i += WARP)
        from.right[i % 16][i / 16] = tile_element(right, i / 16, i % 16);
    show();
    add_products(from, add, to...);
}

// `to: [64, 64] += left · right`: the left operand in registers, the right one as 16 rows of 64
// columns in shared memory.
template <class... Floats>
inline void multiply_group_registers(unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                     unsigned long long right, Floats&... to) {
    Operands& from = operands();
    decode_left(from, {a0, a1, a2, a3});
    for (unsigned i = current->index.x % WARP; i < 16 * 64; i += WARP)
        from.right[i / 64][i % 64] = tile_element(right, i / 64, i % 64);
    show();
    add_products(from, true, to...);
}

// The outputs of a warp: 16 rows of 128 columns. The right operand is 128 rows of a tile, or, if it is
// transposed, 16 rows of two tiles of 64 columns, whose distance the descriptor has in place of the
// number one.
template <class... Floats>
inline void multiply_group_wide(unsigned long long left, unsigned long long right, unsigned add,
                                unsigned transposed, Floats&... to) {
    static_assert(sizeof...(Floats) == 64);
    Operands& from = operands();
    unsigned lane = current->index.x % WARP, first = current->index.x % 128 / WARP * 16;
    unsigned long long second = right >> 16 & 0x3fff;
    if (transposed) right = (right & ~(0x3fffull << 16)) | 1 << 16;
    for (unsigned i = lane; i < 16 * 16; i += WARP)
        from.left[i / 16][i % 16] = tile_element(left, first + i / 16, i % 16);
    for (unsigned i = lane; i < 16 * 128; i += WARP) {
        unsigned k = i % 16, column = i / 16;
        from.right[k][column] = !transposed ? tile_element(right, column, k)
                                            : tile_element(right + column / 64 * second, k, column % 64);
    }
    show();
    add_products(from, add, to...);
}

// A barrier in shared memory: the arrivals that a phase needs, those that are missing, whether the
// number of complete phases is odd, and the bytes of copies that are missing.
struct Barrier {
    unsigned needed : 15, missing : 16, odd : 1;
    int bytes;
};

inline Barrier& barrier(unsigned address) {
    Barrier& barrier = *(Barrier*)shared(address, sizeof(Barrier));
    if (barrier.needed == 0x7fff) fail("a barrier that does not exist yet");
    return barrier;
}

inline void begin_barrier(unsigned address, unsigned count) {
    *(Barrier*)shared(address, sizeof(Barrier)) = {count, count, 0, 0};
}

inline void end_phase(Barrier& own) {
    if (own.missing != 0 || own.bytes != 0) return;
    own.missing = own.needed, own.odd ^= 1, block.phases++;
}

inline void arrive(unsigned address) {
    Barrier& own = barrier(address);
    own.missing--;
    end_phase(own);
}

inline void arrive_before_bytes(unsigned address, int bytes) {
    barrier(address).bytes += bytes;
    arrive(address);
}

// Whether the last phase of this parity is complete; if not, others run first.
inline void is_complete(unsigned& complete, unsigned address, unsigned parity) {
    complete = barrier(address).odd != parity;
    if (!complete) poll();
}

inline void copy_box(unsigned to, const void* map, int column, int row, unsigned barrier) {
    if (to % 1024) fail("a box at an unaligned address");
    block.transfers.push_back({to, *(const Matrix*)map, row, column, barrier});
}

// Fences, and waits for products that were made at once.
template <class... Operands>
inline void nothing(Operands&&...) {}

}  // namespace emulator::ptx

namespace emulator {

inline void transfer() {
    if (block.transfers.empty()) fail("threads wait for each other");
    auto [to, from, row, column, barrier] = block.transfers.front();
    block.transfers.pop_front();
    for (unsigned i = 0; i < from.box_rows * 64; i++) {
        unsigned long long r = row + i / 64, c = column + i % 64;
        unsigned place = to + i * 2;
        auto value = (unsigned short*)ptx::shared(place ^ (place >> 7 & 7) << 4, 2);
        bool there = r < from.rows && c < from.columns;
        *value = there ? *(const unsigned short*)(from.start + r * from.stride + c * 2) : 0;
    }
    ptx::Barrier& counting = ptx::barrier(barrier);
    counting.bytes -= from.box_rows * 128;
    ptx::end_phase(counting);
}

}  // namespace emulator
