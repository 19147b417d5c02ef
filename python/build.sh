#!/usr/bin/env bash
# Builds the wheel, with the program f2 in it: python/build.sh [OUTPUT] [options of maturin].
# F2_PROFILE=dev builds it quickly, for tests. F2_PROGRAM names a program that is built already.
set -euo pipefail
cd "$(dirname "$0")"
out=${1:-dist}
shift || true
profile=${F2_PROFILE:-release}
target=${CARGO_BUILD_TARGET:-}
folder=../target/${target:+$target/}$([ "$profile" = dev ] && echo debug || echo "$profile")

program=${F2_PROGRAM:-}
if [ -z "$program" ]; then
    cargo build --locked --profile "$profile" --package f2-cli --bin f2
    program=$folder/f2
    [ -e "$program" ] || program=$folder/f2.exe
fi
rm -rf f2_softmax.data
mkdir -p f2_softmax.data/scripts
case $program in *.exe) name=f2.exe ;; *) name=f2 ;; esac
install -m 755 "$program" "f2_softmax.data/scripts/$name"
# Symbols and line tables are for debuggers, and four fifths of the file.
strip f2_softmax.data/scripts/* 2>/dev/null || true
cp ../LICENSE-* .
trap 'rm -rf f2_softmax.data LICENSE-*' EXIT
maturin build --locked --profile "$profile" --out "$out" "$@"
