// Streams: operations run in the order of their stream, when somebody waits for them.
//
// A stream runs late: only what is waited for runs, and what another stream must wait for by an
// event. Work that lacks such an event therefore meets data that are not there yet, which a GPU may
// hide by being fast. What nobody waits for runs after a while, since other processes may.

#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace emulator {

struct Stream;

// An operation on the GPU.
using Operation = std::function<void()>;

// A recorded sequence of operations.
using Graph = std::vector<Operation>;

struct Event {
    // Where it was recorded last: after this many operations of the stream. None: it is complete.
    Stream* stream = nullptr;
    size_t after = 0;
    // Recorded while its stream was: it cannot be waited for by the host.
    bool captured = false;
    // When it was reached, in milliseconds.
    double time = 0.0;
};

struct Stream {
    // Whether it waits for the default stream.
    bool blocking = true;
    // The number of operations that have run, those that have not, and whether one is running now.
    size_t done = 0;
    std::deque<Operation> waiting;
    bool running = false;
    // When an operation was enqueued last, in milliseconds.
    double enqueued = 0.0;
    // Operations are recorded instead, if there is a graph.
    std::unique_ptr<Graph> recorded;
    // A recording that an illegal call has ended.
    bool invalid = false;

    Stream();
    // The number of operations so far; the caller holds the lock.
    size_t count() const { return done + running + waiting.size(); }
    // Runs until so many operations are done.
    void run_until(size_t count);
    void run();
    void enqueue(Operation operation);
};

// Protects the fields of all streams and events; not held while an operation runs.
std::mutex& lock();
using Guard = std::lock_guard<std::mutex>;

// Milliseconds since some point in time.
double now();

// The stream of a handle of the driver, null for the default one.
Stream* stream_of(void* handle);

// Ends the process.
[[noreturn]] void fail(const std::string& what);

}  // namespace emulator
