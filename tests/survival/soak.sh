#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A long training on the hosts of emulated-cluster, one rank each. A rank is killed from time to time. Memory, file descriptors and MPI
# objects of every process must stay as after its first checkpoint, and those of gshard-run as after the first minute.
# usage: emulated-cluster 4 1gbit tests/survival/soak.sh MINUTES GSHARD_RUN SURVIVOR [SECONDS between kills, default 60]
set -uo pipefail
if [ $# -lt 3 ] || [ -z "${CLUSTER_DIR:-}" ]; then sed -n '3,5s/^# //p' "$0" >&2; exit 2; fi
minutes=$1 gshard_run=$2 survivor=$3 between=${4:-60}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
hosts=${CLUSTER_HOSTS//[^,]/} hosts=$((${#hosts} + 1))
directories=()
for host in ${CLUSTER_HOSTS//,/ }; do directories+=(--checkpoint "$CLUSTER_DIR/$host/checkpoints"); done
export OMP_NUM_THREADS=1
"$gshard_run" "${directories[@]}" --wait 0.5 --stall 30 --grace 1 --retries 5 -- mpirun -n "$hosts" "$survivor" --checkpoint "$CLUSTER_DIR/%h/checkpoints" \
  --per-host --steps 100000000 --every 50 --pause 5 --warn 5 --fail 10 --losses "$work/losses" --resources "$work/resources" >"$work/log" 2>&1 &
pid=$!
# "resident_KiB descriptors" of gshard-run
wrapper() { echo "$(awk '/VmRSS/ {print $2}' "/proc/$pid/status") $(find "/proc/$pid/fd" -mindepth 1 | wc -l)"; }
sleep 60
wrapper_first=$(wrapper)
end=$((SECONDS + 60 * minutes - 60)) kills=0
while [ $((SECONDS + between)) -lt $end ] && kill -0 "$pid" 2>/dev/null; do
  mapfile -t ranks < <(pgrep -f "^$survivor ")
  [ ${#ranks[@]} -gt 0 ] && kill -9 "${ranks[RANDOM % ${#ranks[@]}]}" && kills=$((kills + 1))
  sleep "$between"
done
[ $SECONDS -ge $end ] || sleep $((end - SECONDS))
wrapper_last=$(wrapper)
kill -s USR1 "$pid" && wait "$pid"
status=$?
echo "$minutes minutes, $kills kills, status $status (75: stopped), $(tail -n 1 "$work/losses" | cut -d' ' -f1) steps"
echo "gshard-run: resident KiB and descriptors: $wrapper_first after a minute, $wrapper_last at the end"
# Samples of a process: every 50 steps. The second one is after its first checkpoint.
cat "$work"/resources.* | awk '
  ++n[$1] == 2 { rss[$1] = $3; fd[$1] = $4; objects[$1] = $5; processes++ }
  n[$1] < 2 { next }
  { lines++
    growth = ($3 - rss[$1]) / rss[$1]; if (growth > most) most = growth
    if ($4 != fd[$1]) fds++; if ($5 != objects[$1]) others++ }
  END { printf "%d samples of %d processes: resident memory grew by at most %.2f %% in a process; %d samples with other file descriptors, %d with other MPI objects than after the first checkpoint\n",
        lines, processes, 100 * most, fds, others; exit !(lines > 0 && most < 0.02 && fds == 0 && others == 0) }'
found=$?
if [ $status != 75 ] || [ $found != 0 ]; then tail -n 50 "$work/log"; exit 1; fi
