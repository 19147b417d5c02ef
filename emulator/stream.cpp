#include "stream.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace emulator {

// How long an operation waits for somebody to wait for it, in milliseconds.
constexpr double PATIENCE = 100.0;

std::mutex& lock() {
    static auto mutex = new std::mutex;
    return *mutex;
}

static std::condition_variable& changed() {
    static auto condition = new std::condition_variable;
    return *condition;
}

double now() {
    auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(since).count();
}

void fail(const std::string& what) {
    fprintf(stderr, "emulator: %s\n", what.c_str());
    abort();
}

// Streams are never freed: events and this thread may still name them.
Stream::Stream() {
    std::thread([this] {
        for (;; usleep(20'000)) {
            {
                Guard guard(lock());
                if (recorded || waiting.empty() || now() - enqueued < PATIENCE) continue;
            }
            run();
        }
    }).detach();
}

void Stream::run_until(size_t count) {
    std::unique_lock<std::mutex> guard(lock());
    while (done < count) {
        if (running) {
            changed().wait(guard);
            continue;
        }
        if (waiting.empty()) fail("a stream waits for itself");
        Operation next = std::move(waiting.front());
        waiting.pop_front();
        running = true;
        guard.unlock();
        next();
        guard.lock();
        running = false;
        done++;
        changed().notify_all();
    }
}

void Stream::run() {
    size_t all;
    {
        Guard guard(lock());
        all = count();
    }
    run_until(all);
}

void Stream::enqueue(Operation operation) {
    Guard guard(lock());
    enqueued = now();
    if (recorded) recorded->push_back(std::move(operation));
    else waiting.push_back(std::move(operation));
}

}  // namespace emulator
