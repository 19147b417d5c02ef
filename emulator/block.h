// Runs the threads of a block one after the other on the CPU, each on a stack of its own, from
// barrier to barrier. Compiled into every program of kernels.
//
// What a GPU leaves open is chosen badly on purpose: threads run in a changing order, shared memory
// begins as NaN, and asynchronous copies arrive only when they are waited for. Kernels with races
// therefore give wrong results here that a GPU may hide.

#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "launch.h"

#ifndef __x86_64__
#error "the emulator switches stacks on x86-64 only"
#endif

namespace emulator {

constexpr unsigned WARP = 32;
constexpr unsigned MOST_THREADS = 1024;
constexpr size_t STACK = 64 << 10;
// Shared memory: as much as a block of Hopper can have, dynamic memory after static.
constexpr size_t MOST_SHARED = 227 << 10;
constexpr size_t DYNAMIC_SHARED = 48 << 10;
// Registers that a thread can show to the others of its warp at once.
constexpr int REGISTERS = 8;

// A copy to shared memory that was started, and the number of its group.
struct Copy {
    void* to;
    const void* from;
    unsigned size, bytes, group;
};

// A copy of a part of a matrix by the copy unit, and the barrier that counts its bytes.
struct Transfer {
    unsigned to;
    Matrix from;
    long long row, column;
    unsigned barrier;
};

struct Thread {
    void* stack_pointer;
    Index index;
    unsigned groups;
    std::vector<Copy> copies;
};

// A warp: its lanes as bits, by what they are doing, and the registers that they show each other. Two
// sets of these, since a lane may be one exchange ahead of another.
struct Warp {
    unsigned first, lanes, ready, at_warp_barrier, at_block_barrier, polling;
    // The order in which lanes run until the next barrier.
    unsigned start;
    bool backwards;
    unsigned registers[2][WARP][REGISTERS];
    unsigned exchanges[WARP];
};

struct Block {
    const Launch* launch;
    const char* kernel;
    void (*entry)(void**);
    void** arguments;
    Index index;
    // Different for every block that runs.
    unsigned long long number;
    size_t static_shared;
    // Phases of barriers in shared memory that were completed.
    unsigned long long phases;
    std::deque<Transfer> transfers;
    unsigned char* shared;
    unsigned char* stacks;
    void* scheduler;
    Thread threads[MOST_THREADS];
    Warp warps[MOST_THREADS / WARP];
    unsigned random;
};

inline Block block;
inline Thread* current;

[[noreturn]] inline void fail(const char* what) {
    fprintf(stderr, "emulator: %s, block (%u, %u), thread %u: %s\n", block.kernel, block.index.x,
            block.index.y, current ? current->index.x : 0, what);
    abort();
}

// Saves the registers that a function must preserve, and continues on another stack.
extern "C" void emulator_switch(void** from, void* to) __attribute__((visibility("hidden")));
asm(R"(
.text
.hidden emulator_switch
.type emulator_switch, @function
emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");

// A small number, different at every call.
inline unsigned some() {
    block.random = block.random * 1664525 + 1013904223;
    return block.random >> 16;
}

inline Warp& warp() { return block.warps[current->index.x / WARP]; }

// The next lane that can run. Lanes run in another order after every barrier.
inline Thread* next_lane(Warp& warp) {
    unsigned turned = warp.ready >> warp.start | (unsigned long long)warp.ready << (WARP - warp.start);
    unsigned bit = warp.backwards ? 31 - __builtin_clz(turned) : __builtin_ctz(turned);
    unsigned lane = (bit + warp.start) % WARP;
    warp.ready &= ~(1u << lane);
    return &block.threads[warp.first + lane];
}

inline void begin_order(Warp& warp) {
    unsigned number = some();
    warp.start = number % WARP, warp.backwards = number / WARP % 2;
}

// Continues with another lane of the warp, since this one must wait or is done.
inline void yield() {
    Warp& own = warp();
    if (own.ready == 0 && own.polling == 0 && own.at_warp_barrier != 0) {
        if (own.at_warp_barrier != own.lanes) fail("some lanes of the warp do not come to its barrier");
        own.ready = own.at_warp_barrier, own.at_warp_barrier = 0;
        begin_order(own);
    }
    Thread* self = current;
    if (own.ready == 0) {
        emulator_switch(&self->stack_pointer, block.scheduler);
    } else {
        current = next_lane(own);
        if (current != self) emulator_switch(&self->stack_pointer, current->stack_pointer);
    }
}

inline unsigned lane_bit() { return 1u << current->index.x % WARP; }

inline void wait_for_warp() {
    warp().at_warp_barrier |= lane_bit();
    yield();
}

inline void wait_for_block() {
    warp().at_block_barrier |= lane_bit();
    yield();
}

// Lets all others run, since this thread waits for a barrier in shared memory.
inline void poll() {
    warp().polling |= lane_bit();
    yield();
}

// Where a thread begins.
inline void begin() {
    block.entry(block.arguments);
    if (!current->copies.empty()) fail("returned before its copies to shared memory were waited for");
    yield();
    abort();
}

inline void prepare(unsigned number) {
    Thread& thread = block.threads[number];
    thread.index = {number, 0, 0};
    thread.groups = 0;
    thread.copies.clear();
    void** top = (void**)(block.stacks + (number + 1) * STACK);
    // As a call leaves it: a return address, the function to return to, and its registers.
    *--top = nullptr;
    *--top = (void*)begin;
    for (int i = 0; i < 6; i++) *--top = nullptr;
    thread.stack_pointer = top;
}

// Runs a warp until all its threads are at a barrier of the block or wait for others, or are done.
inline void run_warp(Warp& warp) {
    if (warp.ready == 0) return;
    begin_order(warp);
    current = next_lane(warp);
    emulator_switch(&block.scheduler, current->stack_pointer);
}

// Lets the lanes that are in this state run again. False if there are none.
inline bool resume(unsigned warps, unsigned Warp::* state) {
    bool any = false;
    for (unsigned i = 0; i < warps; i++) {
        Warp& warp = block.warps[i];
        warp.ready = warp.*state, warp.*state = 0;
        any |= warp.ready != 0;
    }
    return any;
}

// Makes the next copy by the copy unit, since all threads wait. Defined in ptx.h.
inline void transfer();

inline void run_block() {
    unsigned threads = block.launch->block.x, warps = (threads + WARP - 1) / WARP;
    block.number++;
    block.static_shared = 0;
    memset(block.shared, 0xff, DYNAMIC_SHARED + block.launch->shared);
    for (unsigned i = 0; i < threads; i++) prepare(i);
    for (unsigned i = 0; i < warps; i++) {
        Warp& warp = block.warps[i];
        unsigned count = std::min(WARP, threads - i * WARP);
        warp.first = i * WARP, warp.lanes = count == WARP ? ~0u : (1u << count) - 1;
        warp.ready = warp.lanes, warp.at_warp_barrier = warp.at_block_barrier = warp.polling = 0;
        memset(warp.exchanges, 0, sizeof warp.exchanges);
    }
    for (bool left = true; left;) {
        unsigned start = some();
        unsigned long long phases = block.phases;
        for (unsigned i = 0; i < warps; i++) run_warp(block.warps[(start + i) % warps]);
        left = resume(warps, &Warp::polling);
        if (left && block.phases == phases) transfer();
        left = left || resume(warps, &Warp::at_block_barrier);
    }
    if (!block.transfers.empty()) fail("ends before its copies by the copy unit");
}

// Runs all blocks, in reverse order at every second launch.
inline void run(const char* kernel, void (*entry)(void**), void** arguments, const Launch& launch,
                unsigned most_threads) {
    auto map = [](size_t bytes) {
        void* start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start == MAP_FAILED) fail("no memory for a block");
        return (unsigned char*)start;
    };
    if (!block.stacks) {
        block.stacks = map(MOST_THREADS * STACK);
        block.shared = map(DYNAMIC_SHARED + MOST_SHARED);
    }
    block.kernel = kernel, block.entry = entry, block.arguments = arguments, block.launch = &launch;
    current = nullptr;
    if (launch.block.x > most_threads || launch.shared > MOST_SHARED) fail("too large a block");
    unsigned blocks = launch.grid.x * launch.grid.y;
    bool reverse = some() % 2;
    for (unsigned i = 0; i < blocks; i++) {
        unsigned number = reverse ? blocks - 1 - i : i;
        block.index = {number % launch.grid.x, number / launch.grid.x, 0};
        run_block();
        if (block.static_shared + launch.shared > MOST_SHARED) fail("too much shared memory");
    }
}

// A variable in shared memory; `ID` is different for every declaration.
template <class T, size_t ALIGNMENT, int ID>
T& shared_variable() {
    static unsigned long long number;
    static size_t place;
    if (number != block.number) {
        number = block.number;
        size_t alignment = std::max(ALIGNMENT, alignof(T));
        place = (block.static_shared + alignment - 1) / alignment * alignment;
        block.static_shared = place + sizeof(T);
        if (block.static_shared > DYNAMIC_SHARED) fail("too much static shared memory");
    }
    return *(T*)(block.shared + place);
}

inline unsigned char* dynamic_shared() { return block.shared + DYNAMIC_SHARED; }

// Shows registers to all lanes of the warp, and waits for theirs: `[lane][register]`.
template <class... Registers>
const unsigned (*show(Registers... registers))[REGISTERS] {
    static_assert(sizeof...(Registers) <= REGISTERS);
    unsigned lane = current->index.x % WARP;
    Warp& own = warp();
    auto& set = own.registers[own.exchanges[lane]++ % 2];
    int next = 0;
    ((set[lane][next++] = registers), ...);
    wait_for_warp();
    return set;
}

}  // namespace emulator
