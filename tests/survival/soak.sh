#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A long training on the hosts of emulated-cluster, one rank each, of which one is killed every minute. Memory, file descriptors and MPI
# objects of every process must stay as they are after its first steps.
# usage: emulated-cluster 4 1gbit tests/survival/soak.sh MINUTES GSHARD_RUN SURVIVOR
set -uo pipefail
if [ $# -ne 3 ] || [ -z "${CLUSTER_DIR:-}" ]; then sed -n '3,5s/^# //p' "$0" >&2; exit 2; fi
minutes=$1 gshard_run=$2 survivor=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
hosts=${CLUSTER_HOSTS//[^,]/} hosts=$((${#hosts} + 1))
directories=()
for host in ${CLUSTER_HOSTS//,/ }; do directories+=(--checkpoint "$CLUSTER_DIR/$host/checkpoints"); done
export OMP_NUM_THREADS=1
"$gshard_run" "${directories[@]}" --wait 0.5 --stall 30 --grace 1 --retries 5 -- mpirun -n "$hosts" "$survivor" --checkpoint "$CLUSTER_DIR/%h/checkpoints" \
  --per-host --steps 100000000 --every 50 --pause 5 --warn 5 --fail 10 --losses "$work/losses" --resources "$work/resources" >"$work/log" 2>&1 &
pid=$!
end=$((SECONDS + 60 * minutes)) kills=0
while [ $SECONDS -lt $end ] && kill -0 "$pid" 2>/dev/null; do
  sleep 60
  mapfile -t ranks < <(pgrep -f "^$survivor ")
  [ ${#ranks[@]} -gt 0 ] && kill -9 "${ranks[RANDOM % ${#ranks[@]}]}" && kills=$((kills + 1))
done
kill -s USR1 "$pid" && wait "$pid"
status=$?
echo "$minutes minutes, $kills kills, status $status (75: stopped), $(tail -n 1 "$work/losses" | cut -d' ' -f1) steps"
# The first line of a process is at the first multiple of 50 steps behind its start. A process is new where its step is smaller than before.
cat "$work"/resources.* | awk '
  { key = $1; if (!(key in first_rss) || $2 <= step[key]) { first_rss[key] = $3; first_fd[key] = $4; first_objects[key] = $5; n = 0 }
    step[key] = $2; lines++
    growth = ($3 - first_rss[key]) / first_rss[key]; if (growth > most) most = growth
    if ($4 != first_fd[key]) fds++; if ($5 != first_objects[key]) objects++ }
  END { printf "%d samples: resident memory grew by at most %.2f %% in a process; %d samples with other file descriptors, %d with other MPI objects than at the start\n",
        lines, 100 * most, fds, objects; exit !(lines > 0 && most < 0.01 && fds == 0 && objects == 0) }'
found=$?
if [ $status != 75 ] || [ $found != 0 ]; then tail -n 50 "$work/log"; exit 1; fi
