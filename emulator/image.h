// The "machine code" of kernels: a shared library, with its length before it, since the driver is
// given its address alone.

#pragma once

#include <dlfcn.h>

#include <cstring>
#include <string>
#include <vector>

namespace emulator {

constexpr char MAGIC[8] = {'e', 'm', 'u', 'l', 'a', 't', 'e', 'd'};

inline std::vector<char> image_of(const std::string& library) {
    unsigned long long size = library.size();
    std::vector<char> image(sizeof MAGIC + sizeof size + library.size());
    memcpy(image.data(), MAGIC, sizeof MAGIC);
    memcpy(image.data() + sizeof MAGIC, &size, sizeof size);
    memcpy(image.data() + sizeof MAGIC + sizeof size, library.data(), library.size());
    return image;
}

// The library; empty if it is something else.
inline std::string library_in(const void* image) {
    unsigned long long size;
    const char* start = (const char*)image;
    if (memcmp(start, MAGIC, sizeof MAGIC) != 0) return {};
    memcpy(&size, start + sizeof MAGIC, sizeof size);
    return std::string(start + sizeof MAGIC + sizeof size, size);
}

}  // namespace emulator
