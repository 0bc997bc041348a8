#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Fuzzes the parsers with libFuzzer, under the address and undefined-behavior sanitizers. Starts from the seeds and the corpora, and writes
# corpora of the inputs that reach the most code. Seeds are hand-written and stay. Needs clang-16 and libclang-rt-16-dev.
# usage: tests/fuzz/run.sh RUNS|SECONDSs [TARGET...]   (targets: equation header manifest onnx plan; all of them if none is named)
set -euo pipefail
[[ ${1:-} =~ ^[1-9][0-9]*(s?)$ ]] || { sed -n '3,5s/^# //p' "$0" >&2; exit 2; }
if [ -n "${BASH_REMATCH[1]}" ]; then limit=-max_total_time=${1%s}; else limit=-runs=$1; fi
for_target=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
work=$here/../../build/fuzz
[ $# -gt 0 ] || set -- equation header manifest onnx plan

for target in "$@"; do
  mkdir -p "$work/$target" "$work/new/$target"
  rm -rf "${work:?}/$target"/* "$work/new/$target"/*
  clang++-16 -std=c++20 -O2 -g1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I"$here/../../include" -isystem /usr/include/eigen3 \
    -DGSHARD_FUZZ_TARGET="$target" -DGSHARD_HAS_MPI=0 "$here/fuzz.cpp" -lcrypto -o "$work/fuzz_$target"
  # A line of a corpus is an input, with \xHH for bytes that are not printable.
  python3 - "$work/$target" "$here/corpus/$target.seeds.txt" "$here/corpus/$target.txt" <<'P'
import os, re, sys
for path in sys.argv[2:]:
    if not os.path.exists(path): continue
    for i, line in enumerate(open(path, encoding="ascii")):
        data = re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), line.rstrip("\n").encode())
        open(f"{sys.argv[1]}/{os.path.basename(path)}-{i}", "wb").write(data)
P
  options=("$limit" -max_len=2000 -print_final_stats=1 -close_fd_mask=0)
  [ ! -e "$here/$target.dict" ] || options+=("-dict=$here/$target.dict")
  echo "$target: $for_target"
  (cd "$work" && "./fuzz_$target" "${options[@]}" "$target" 2>&1 | tail -n 12)
  # As few inputs as possible that reach the code of all of them. Only short ones, because people read a corpus as well.
  case $target in manifest | plan) longest=900 ;; *) longest=160 ;; esac
  find "$work/$target" -type f -size "+${longest}c" -delete
  "$work/fuzz_$target" -set_cover_merge=1 "$work/new/$target" "$work/$target" 2>/dev/null
  python3 - "$here/corpus/$target" "$work/new/$target" <<'P'
import os, random, sys
def line(data): return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02x}" for b in data)
seeds = open(sys.argv[1] + ".seeds.txt").read().split("\n")[:-1] if os.path.exists(sys.argv[1] + ".seeds.txt") else [""]
found = {line(open(os.path.join(sys.argv[2], name), "rb").read()) for name in os.listdir(sys.argv[2])} - set(seeds)
# A random sample: in sorted order, the first inputs begin alike. At least half begin like a seed, because most of the others fail at once.
begin = seeds[0][:20]
shuffled = random.Random(1).sample(sorted(found), len(found))
deep, others = [l for l in shuffled if l.startswith(begin)], [l for l in shuffled if not l.startswith(begin)]
kept = others[:150 - min(len(deep), 110)]
kept += deep[:150 - len(kept)]
open(sys.argv[1] + ".txt", "w").write("".join(l + "\n" for l in sorted(kept)))
print(f"{len(kept)} of {len(found)} inputs are in the corpus")
P
done
