#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Fuzzes the parsers with libFuzzer, under the address and undefined-behavior sanitizers. Starts from the corpora, and adds to them what
# reaches new code. Needs clang-16 and libclang-rt-16-dev.
# usage: tests/fuzz/run.sh RUNS [TARGET...]   (targets: equation header manifest; all of them if none is named)
set -euo pipefail
[[ ${1:-} =~ ^[1-9][0-9]*$ ]] || { sed -n '3,5s/^# //p' "$0" >&2; exit 2; }
runs=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
work=$here/../../build/fuzz
[ $# -gt 0 ] || set -- equation header manifest

for target in "$@"; do
  mkdir -p "$work/$target" "$work/new"
  rm -rf "${work:?}/$target"/* "$work/new"/*
  clang++-16 -std=c++20 -O2 -g1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I"$here/../../include" -isystem /usr/include/eigen3 \
    -DGSHARD_FUZZ_TARGET="$target" -DGSHARD_HAS_MPI=0 "$here/fuzz.cpp" -lcrypto -o "$work/fuzz_$target"
  # A line of a corpus is an input, with \xHH for bytes that are not printable.
  python3 - "$here/corpus/$target.txt" "$work/$target" <<'P'
import re, sys, os
if os.path.exists(sys.argv[1]):
    for i, line in enumerate(open(sys.argv[1], encoding="ascii")):
        data = re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), line.rstrip("\n").encode())
        open(f"{sys.argv[2]}/seed{i}", "wb").write(data)
P
  echo "$target: $runs runs"
  (cd "$work" && "./fuzz_$target" -runs="$runs" -max_len=2000 -print_final_stats=1 -close_fd_mask=0 "$target" 2>&1 | tail -n 12)
  "$work/fuzz_$target" -merge=1 "$work/new" "$work/$target" 2>/dev/null
  # Short inputs alone are kept: a corpus is read by people, too.
  python3 - "$here/corpus/$target.txt" "$work/new" <<'P'
import os, sys
lines = set()
for name in os.listdir(sys.argv[2]):
    data = open(os.path.join(sys.argv[2], name), "rb").read()
    if len(data) <= (900 if "manifest" in sys.argv[1] else 160):
        lines.add("".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02x}" for b in data))
open(sys.argv[1], "w").write("".join(line + "\n" for line in sorted(lines)[:150]))
P
done
