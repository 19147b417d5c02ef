#!/usr/bin/env bash
# Builds the emulator into a folder, target/emulator if none is named, and prints its path. A program
# that finds this folder first in LD_LIBRARY_PATH runs its GPU's work on the CPU.
set -euo pipefail
source=$(cd "$(dirname "$0")" && pwd)
target=${1:-$source/../target/emulator}
mkdir -p "$target"
target=$(cd "$target" && pwd)
"${CXX:-c++}" -std=c++20 -O3 -march=native -Wall -fPIC -shared -o "$target/libemulator.so" "$source"/*.cpp -ldl
for library in libcuda.so.1 libnvrtc.so libcublasLt.so libnccl.so.2; do
    ln -sf libemulator.so "$target/$library"
done
ln -sf "$source"/*.h "$target/"
echo "$target"
