#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs random programs, already built, on all cores: see tests/run.sh --random.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: tests/run.sh --random SEEDS" >&2; exit 2; }
build=$1 seeds=$2
first=${GSHARD_RANDOM_FIRST:-0}
logs=$build/random
failed=0
rm -rf "$logs"
mkdir -p "$logs"
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none

# one_batch <name> <first seed> <number of seeds> <command>...: prints one line, or everything that it found.
one_batch() {
  local name=$1 from=$2 count=$3 seconds=600 code=0
  local log=$logs/$name-$from
  shift 3
  GSHARD_RANDOM_FIRST=$from GSHARD_RANDOM_SEEDS=$count timeout "$seconds" "$@" >"$log" 2>&1 || code=$?
  (
    flock 9
    if [ "$code" -eq 0 ]; then
      echo "$name: seeds $from to $((from + count - 1)), no finding ($SECONDS s)"
    else
      [ "$code" -ne 124 ] || echo "$name: seeds from $from on do not end within $seconds s"
      cat "$log"
    fi
  ) 9>"$logs/lock"
  return "$code"
}
# batches <name> <seeds> <seeds of a batch> <batches at once> <command>...
batches() {
  local name=$1 all=$2 each=$3 at_once=$4 begin
  shift 4
  for ((begin = 0; begin < all; begin += each)); do
    while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n || failed=1; done
    one_batch "$name" $((first + begin)) $((all - begin < each ? all - begin : each)) "$@" &
  done
  while [ -n "$(jobs -rp)" ]; do wait -n || failed=1; done
}

cores=$(nproc)
batches simulated "$seeds" 500 "$cores" "$build/tests/test_random" --no-intro --test-case="random programs*"
if [ -x "$build/tests/test_random_mpi" ]; then
  flags=()
  if mpirun --version 2>&1 | grep -qiE 'open.?mpi|openrte'; then flags=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1); fi
  for ranks in 2 3 4; do
    at_once=$((cores / ranks > 0 ? cores / ranks : 1))
    batches "ranks_$ranks" $(((seeds + 9) / 10)) 100 "$at_once" mpirun -n "$ranks" "${flags[@]}" "$build/tests/test_random_mpi"
  done
fi
if [ "$failed" -ne 0 ]; then
  echo "There are findings: see above, or the logs in $logs"
  exit 1
fi
echo "$seeds seeds, no finding"
