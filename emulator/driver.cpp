// The CUDA driver: one GPU, whose memory is the host's.
//
// F2_EMULATOR_CAPABILITY is its compute capability: 9.0 if it is not set.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "image.h"
#include "launch.h"
#include "stream.h"

namespace {

using namespace emulator;

enum Result {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_IMAGE = 200,
    NOT_FOUND = 500,
    NOT_READY = 600,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
};

constexpr size_t MEMORY = 8ull << 30;
constexpr size_t PAGE = 4096;

struct Module {
    void* library;
    // Open as long as the library is: another one of the same name would be taken for it.
    int file;
};

struct Function {
    void (*run)(void**, const Launch*);
    std::vector<size_t> sizes;
};

// An argument of a kernel; a matrix for the copy unit is the largest.
struct alignas(128) Argument {
    char bytes[128];
};

struct State {
    // Held while a kernel runs: its blocks use the same memory.
    std::mutex execution;
    Stream default_stream;
    std::set<Stream*> streams;
    // Memory of the GPU: start of an allocation, and of what was mapped for it, with its length.
    std::map<size_t, std::pair<char*, size_t>> allocations;
    size_t used = 0;
    // Page-locked memory of the host and its length.
    std::map<char*, size_t> locked;

    State() { streams.insert(&default_stream); }
};

State& state() {
    static State* all = new State;
    return *all;
}

// Runs everything enqueued on a stream; recordings do not allow that.
Result wait_for(Stream* stream) {
    {
        Guard guard(lock());
        if (stream->recorded) {
            stream->invalid = true;
            return CAPTURE_UNSUPPORTED;
        }
    }
    stream->run();
    return SUCCESS;
}

// Runs all streams, or those that the default stream waits for.
void wait_for_all(bool only_blocking) {
    std::vector<Stream*> streams;
    {
        Guard guard(lock());
        for (Stream* stream : state().streams)
            if (!stream->recorded && (stream->blocking || !only_blocking)) streams.push_back(stream);
    }
    for (Stream* stream : streams) stream->run();
}

bool is_locked(const void* pointer, size_t bytes) {
    Guard guard(lock());
    auto& locked = state().locked;
    auto after = locked.upper_bound((char*)pointer);
    if (after == locked.begin()) return false;
    auto [start, length] = *--after;
    return (char*)pointer + bytes <= start + length;
}

// A range of the GPU's memory: all of it in one allocation.
char* device(size_t start, size_t bytes) {
    Guard guard(lock());
    auto& allocations = state().allocations;
    auto after = allocations.upper_bound(start);
    if (after != allocations.begin()) {
        auto [first, mapped] = *--after;
        size_t end = (size_t)mapped.first + mapped.second - PAGE;
        if (first <= start && start + bytes <= end) return (char*)start;
    }
    fail("an operation on memory that is not the GPU's");
}

std::pair<int, int> capability() {
    const char* text = getenv("F2_EMULATOR_CAPABILITY");
    int major = 9, minor = 0;
    if (text && sscanf(text, "%d.%d", &major, &minor) != 2) fail("F2_EMULATOR_CAPABILITY is not like 9.0");
    return {major, minor};
}

}  // namespace

namespace emulator {

Stream* stream_of(void* handle) { return handle ? (Stream*)handle : &state().default_stream; }

}  // namespace emulator

extern "C" {

Result cuInit(unsigned) { return SUCCESS; }

Result cuDriverGetVersion(int* version) {
    *version = 13000;
    return SUCCESS;
}

Result cuGetErrorName(Result error, const char** name) {
    switch (error) {
        case SUCCESS: *name = "CUDA_SUCCESS"; break;
        case INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
        case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
        case INVALID_IMAGE: *name = "CUDA_ERROR_INVALID_IMAGE"; break;
        case NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; break;
        case NOT_READY: *name = "CUDA_ERROR_NOT_READY"; break;
        case CAPTURE_UNSUPPORTED: *name = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"; break;
        case CAPTURE_INVALIDATED: *name = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"; break;
    }
    return SUCCESS;
}

Result cuGetErrorString(Result error, const char** text) { return cuGetErrorName(error, text); }

// Devices and contexts.

Result cuDeviceGetCount(int* count) {
    *count = 1;
    return SUCCESS;
}

Result cuDeviceGet(int* device, int ordinal) {
    *device = 0;
    return ordinal == 0 ? SUCCESS : INVALID_VALUE;
}

Result cuDeviceGetName(char* name, int length, int) {
    snprintf(name, length, "emulated GPU %d.%d", capability().first, capability().second);
    return SUCCESS;
}

Result cuDeviceTotalMem_v2(size_t* bytes, int) {
    *bytes = MEMORY;
    return SUCCESS;
}

Result cuDeviceGetAttribute(int* value, int attribute, int) {
    switch (attribute) {
        case 16: *value = 132; break;                   // multiprocessors
        case 75: *value = capability().first; break;    // compute capability
        case 76: *value = capability().second; break;
        case 97: *value = capability() == std::pair(9, 0) ? 227 << 10 : 99 << 10; break;  // shared memory
        default: *value = 0;
    }
    return SUCCESS;
}

Result cuDevicePrimaryCtxRetain(void** context, int) {
    *context = &state();
    return SUCCESS;
}

Result cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }
Result cuCtxSetCurrent(void*) { return SUCCESS; }

Result cuCtxGetCurrent(void** context) {
    *context = &state();
    return SUCCESS;
}

Result cuCtxSynchronize() {
    wait_for_all(false);
    return SUCCESS;
}

// Memory. An allocation ends where its last page ends, so that accesses beyond it are caught.

Result cuMemGetInfo_v2(size_t* free, size_t* total) {
    Guard guard(lock());
    *total = MEMORY, *free = MEMORY - state().used;
    return SUCCESS;
}

Result cuMemAlloc_v2(size_t* start, size_t bytes) {
    Guard guard(lock());
    if (bytes == 0) return INVALID_VALUE;
    if (bytes > MEMORY - state().used) return OUT_OF_MEMORY;
    size_t aligned = (bytes + 255) / 256 * 256, mapped = (aligned + PAGE - 1) / PAGE * PAGE + PAGE;
    char* pages = (char*)mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return OUT_OF_MEMORY;
    mprotect(pages + mapped - PAGE, PAGE, PROT_NONE);
    *start = (size_t)(pages + mapped - PAGE - aligned);
    // Whatever was there before.
    memset((void*)*start, 0xff, std::min<size_t>(aligned, 1 << 20));
    state().allocations[*start] = {pages, mapped};
    state().used += mapped;
    return SUCCESS;
}

Result cuMemFree_v2(size_t start) {
    wait_for_all(false);
    Guard guard(lock());
    auto found = state().allocations.find(start);
    if (found == state().allocations.end()) return INVALID_VALUE;
    auto [pages, mapped] = found->second;
    munmap(pages, mapped);
    state().used -= mapped;
    state().allocations.erase(found);
    return SUCCESS;
}

Result cuMemHostAlloc(void** start, size_t bytes, unsigned) {
    Guard guard(lock());
    *start = malloc(bytes);
    state().locked[(char*)*start] = bytes;
    return *start ? SUCCESS : OUT_OF_MEMORY;
}

Result cuMemFreeHost(void* start) {
    Guard guard(lock());
    if (!state().locked.erase((char*)start)) return INVALID_VALUE;
    free(start);
    return SUCCESS;
}

Result cuMemsetD8Async(size_t to, unsigned char value, size_t bytes, void* handle) {
    stream_of(handle)->enqueue([=] { memset(device(to, bytes), value, bytes); });
    return SUCCESS;
}

Result cuMemcpyDtoDAsync_v2(size_t to, size_t from, size_t bytes, void* handle) {
    stream_of(handle)->enqueue([=] { memmove(device(to, bytes), device(from, bytes), bytes); });
    return SUCCESS;
}

// Memory that is not page-locked is copied aside at once.
Result cuMemcpyHtoDAsync_v2(size_t to, const void* from, size_t bytes, void* handle) {
    Stream* stream = stream_of(handle);
    if (is_locked(from, bytes)) {
        stream->enqueue([=] { memcpy(device(to, bytes), from, bytes); });
    } else {
        std::string copy((const char*)from, bytes);
        stream->enqueue([=] { memcpy(device(to, bytes), copy.data(), bytes); });
    }
    return SUCCESS;
}

// Into memory that is not page-locked the copy is complete when the call returns.
Result cuMemcpyDtoHAsync_v2(void* to, size_t from, size_t bytes, void* handle) {
    Stream* stream = stream_of(handle);
    bool later = is_locked(to, bytes);
    if (!later && wait_for(stream) != SUCCESS) return CAPTURE_UNSUPPORTED;
    stream->enqueue([=] { memcpy(to, device(from, bytes), bytes); });
    return later ? SUCCESS : wait_for(stream);
}

Result cuMemcpyHtoD_v2(size_t to, const void* from, size_t bytes) {
    wait_for_all(true);
    memcpy(device(to, bytes), from, bytes);
    return SUCCESS;
}

Result cuMemcpyDtoH_v2(void* to, size_t from, size_t bytes) {
    wait_for_all(true);
    memcpy(to, device(from, bytes), bytes);
    return SUCCESS;
}

// Streams and events.

Result cuStreamCreate(Stream** stream, unsigned flags) {
    Guard guard(lock());
    *stream = new Stream;
    (*stream)->blocking = !(flags & 1);
    state().streams.insert(*stream);
    return SUCCESS;
}

Result cuStreamCreateWithPriority(Stream** stream, unsigned flags, int) { return cuStreamCreate(stream, flags); }

Result cuStreamDestroy_v2(Stream* stream) {
    stream->run();
    Guard guard(lock());
    state().streams.erase(stream);
    return SUCCESS;
}

Result cuStreamSynchronize(void* handle) {
    return wait_for(stream_of(handle));
}

Result cuStreamWaitEvent(void* handle, Event* event, unsigned) {
    Stream *first, *stream = stream_of(handle);
    size_t after;
    {
        Guard guard(lock());
        first = event->stream, after = event->after;
        if (!first) return SUCCESS;
        if (event->captured || stream->recorded) return CAPTURE_UNSUPPORTED;
    }
    stream->enqueue([=] { first->run_until(after); });
    return SUCCESS;
}

Result cuEventCreate(Event** event, unsigned) {
    *event = new Event;
    return SUCCESS;
}

// Where an event was recorded last.
static Event place_of(Event* event) {
    Guard guard(lock());
    return *event;
}

// The operation that marks it may not have run.
Result cuEventDestroy_v2(Event* event) {
    Event place = place_of(event);
    if (place.stream && !place.captured) place.stream->run_until(place.after);
    delete event;
    return SUCCESS;
}

Result cuEventRecord(Event* event, void* handle) {
    Stream* stream = stream_of(handle);
    {
        Guard guard(lock());
        event->captured = stream->recorded != nullptr;
        event->stream = stream;
        if (event->captured) return SUCCESS;
    }
    stream->enqueue([=] { event->time = now(); });
    Guard guard(lock());
    event->after = stream->count();
    return SUCCESS;
}

Result cuEventSynchronize(Event* event) {
    Event place = place_of(event);
    if (!place.stream) return SUCCESS;
    if (place.captured) {
        Guard guard(lock());
        place.stream->invalid = true;
        return CAPTURE_UNSUPPORTED;
    }
    place.stream->run_until(place.after);
    return SUCCESS;
}

Result cuEventQuery(Event* event) {
    Guard guard(lock());
    return !event->stream || event->stream->done >= event->after ? SUCCESS : NOT_READY;
}

Result cuEventElapsedTime(float* milliseconds, Event* from, Event* to) {
    *milliseconds = to->time - from->time;
    return SUCCESS;
}

Result cuEventElapsedTime_v2(float* milliseconds, Event* from, Event* to) {
    return cuEventElapsedTime(milliseconds, from, to);
}

// Graphs.

Result cuStreamBeginCapture_v2(Stream* stream, int) {
    Guard guard(lock());
    if (stream->recorded) return CAPTURE_UNSUPPORTED;
    stream->recorded = std::make_unique<Graph>();
    stream->invalid = false;
    return SUCCESS;
}

Result cuStreamEndCapture(Stream* stream, Graph** graph) {
    Guard guard(lock());
    std::unique_ptr<Graph> recorded = std::move(stream->recorded);
    if (!recorded) return INVALID_VALUE;
    *graph = stream->invalid ? nullptr : recorded.release();
    return stream->invalid ? CAPTURE_INVALIDATED : SUCCESS;
}

Result cuStreamIsCapturing(void* handle, int* status) {
    Guard guard(lock());
    Stream* stream = stream_of(handle);
    *status = !stream->recorded ? 0 : stream->invalid ? 2 : 1;
    return SUCCESS;
}

Result cuGraphInstantiateWithFlags(Graph** executable, Graph* graph, unsigned long long) {
    *executable = new Graph(*graph);
    return SUCCESS;
}

Result cuGraphUpload(Graph*, Stream*) { return SUCCESS; }

Result cuGraphLaunch(Graph* graph, void* handle) {
    for (auto& operation : *graph) stream_of(handle)->enqueue(operation);
    return SUCCESS;
}

Result cuGraphDestroy(Graph* graph) {
    delete graph;
    return SUCCESS;
}

Result cuGraphExecDestroy(Graph* graph) { return cuGraphDestroy(graph); }

// A matrix of which kernels copy boxes of 64 columns of bf16 to shared memory.
Result cuTensorMapEncodeTiled(Matrix* map, int type, unsigned dimensions, char* start,
                              const unsigned long long* sizes, const unsigned long long* strides,
                              const unsigned* box, const unsigned* steps, int interleave, int swizzle,
                              int, int fill) {
    constexpr int BF16 = 9, SWIZZLE_128 = 3;
    bool known = type == BF16 && dimensions == 2 && steps[0] == 1 && steps[1] == 1 && interleave == 0 &&
                 swizzle == SWIZZLE_128 && fill == 0 && box[0] == 64;
    if (!known || box[1] == 0 || box[1] > 256 || (size_t)map % 64 || (size_t)start % 16 || strides[0] % 16)
        return INVALID_VALUE;
    *map = {start, sizes[1], sizes[0], strides[0], box[1]};
    return SUCCESS;
}

// Modules and kernels.

Result cuModuleLoadData(Module** module, const void* image) {
    std::string library = library_in(image);
    if (library.empty()) return INVALID_IMAGE;
    int file = memfd_create("kernels", 0);
    if (file < 0 || write(file, library.data(), library.size()) != (ssize_t)library.size())
        return OUT_OF_MEMORY;
    std::string path = "/proc/self/fd/" + std::to_string(file);
    void* loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!loaded) fail(dlerror());
    *module = new Module{loaded, file};
    return SUCCESS;
}

Result cuModuleUnload(Module* module) {
    wait_for_all(false);
    dlclose(module->library);
    close(module->file);
    delete module;
    return SUCCESS;
}

// Functions are never freed: a graph may still contain them.
Result cuModuleGetFunction(Function** function, Module* module, const char* name) {
    std::string symbol = name;
    void* run = dlsym(module->library, ("run_" + symbol).c_str());
    void* sizes = dlsym(module->library, ("sizes_of_" + symbol).c_str());
    if (!run || !sizes) return NOT_FOUND;
    *function = new Function{(void (*)(void**, const Launch*))run, *(std::vector<size_t>*)sizes};
    return SUCCESS;
}

Result cuFuncGetAttribute(int* value, int, Function*) {
    *value = 0;
    return SUCCESS;
}

Result cuFuncSetAttribute(Function*, int, int) { return SUCCESS; }

Result cuLaunchKernel(Function* function, unsigned x, unsigned y, unsigned z, unsigned threads,
                      unsigned y_threads, unsigned z_threads, unsigned shared, void* handle,
                      void** arguments, void**) {
    if (x == 0 || y == 0 || z != 1 || threads == 0 || y > 65535 || y_threads != 1 || z_threads != 1)
        return INVALID_VALUE;
    std::vector<Argument> values(function->sizes.size());
    for (size_t i = 0; i < values.size(); i++) memcpy(&values[i], arguments[i], function->sizes[i]);
    Launch launch = {{x, y, 1}, {threads, 1, 1}, shared};
    stream_of(handle)->enqueue([=]() mutable {
        std::vector<void*> pointers;
        for (auto& value : values) pointers.push_back(&value);
        Guard guard(state().execution);
        function->run(pointers.data(), &launch);
    });
    return SUCCESS;
}
}
