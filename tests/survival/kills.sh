#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Kills a training at random moments, under gshard-run, and compares its parameters and losses with an undisturbed run. See --help.
set -uo pipefail

usage() {
  cat <<'TXT'
usage: kills.sh [options] GSHARD_RUN SURVIVOR (tests/run.sh --kills N builds it and calls this)
  --runs N          so many runs, each with one failure (default 20)
  --ranks "2 4 8"   rank counts, in turn
  --kinds "..."     failures, in turn: rank (kill -9 of a random rank), rank0, two (ranks), save (while a checkpoint is written),
                    launcher, stop (SIGTERM to gshard-run, which is started again), none (a control, whose status is not 0).
                    In emulated-cluster, with one rank per host: host (all its processes and its disk), cable (cut for good; the ranks
                    there are ended and the cable is joined)
  --steps N --every N --pause MS   of the training (default 60, 5, 20). A pause shorter than a save makes a failure cost more steps:
                    those between checkpoints and those that a save takes
  --seed N          of the random moments (default 1)
Prints a line per run and a summary. Status 0 if nothing was lost in any run, and at least half of the failures hit their run.
TXT
}

runs=20 rank_counts="2 4 8" kinds="rank rank0 two save launcher stop" steps=60 every=5 pause=20 seed=1
while [[ ${1:-} == --* ]]; do
  case $1 in
    --help) usage; exit 0 ;;
    --runs) runs=$2 ;;
    --ranks) rank_counts=$2 ;;
    --kinds) kinds=$2 ;;
    --steps) steps=$2 ;;
    --every) every=$2 ;;
    --pause) pause=$2 ;;
    --seed) seed=$2 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift 2
done
[ $# -eq 2 ] || { usage >&2; exit 2; }
gshard_run=$1 survivor=$2
RANDOM=$seed
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none

in_cluster=${CLUSTER_DIR:+yes}
launcher=(mpirun)
[ -n "$in_cluster" ] || launcher+=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1)

# start DIR RANKS: starts the training under gshard-run in the background; sets `pid`.
start() {
  local dir=$1 ranks=$2 host program directories=()
  program=("$survivor" --steps "$steps" --every "$every" --pause "$pause" --losses "$dir/losses" --result "$dir/result")
  if [ -n "$in_cluster" ]; then
    for host in ${CLUSTER_HOSTS//,/ }; do directories+=(--checkpoint "$CLUSTER_DIR/$host/checkpoints"); done
    program+=(--checkpoint "$CLUSTER_DIR/%h/checkpoints" --per-host --warn 1 --fail 3)
  else
    directories=(--checkpoint "$dir/checkpoints")
    program+=(--checkpoint "$dir/checkpoints")
  fi
  "$gshard_run" "${directories[@]}" --wait 0.1 --retries 5 --stall 20 --grace 1 -- "${launcher[@]}" -n "$ranks" "${program[@]}" \
    >>"$dir/log" 2>&1 &
  pid=$!
}
# The processes of the ranks.
ranks_of() { pgrep -f "^$survivor .*$1/losses"; }
milliseconds() { date +%s%3N; }
nap() { sleep "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"; }
one_of() {
  local all
  mapfile -t all
  [ ${#all[@]} -eq 0 ] || echo "${all[RANDOM % ${#all[@]}]}"
}

# The largest number of steps that a restart computed again, by a file of losses.
lost() { awk '{ if (NR > 1 && $1 <= last) { again = last - $1 + 1; if (again > most) most = again } last = $1 } END { print most + 0 }' "$1"; }
# The first line of losses that differs from the reference.
wrong_loss() { awk 'NR == FNR { right[$1] = $2; next } right[$1] != $2 { print "step " $1 ": " $2 " instead of " right[$1]; exit }' "$1" "$2"; }

clear_disks() {
  local host
  [ -n "$in_cluster" ] || return 0
  for host in ${CLUSTER_HOSTS//,/ }; do rm -rf "$CLUSTER_DIR/$host/checkpoints"; done
}

# fail KIND DIR: causes one failure now.
fail() {
  local kind=$1 dir=$2 victim victims
  case $kind in
    rank | save) victim=$(ranks_of "$dir" | one_of); [ -n "$victim" ] && kill -9 "$victim" ;;
    rank0) victim=$(ranks_of "$dir" | while read -r p; do tr '\0' '\n' <"/proc/$p/environ" 2>/dev/null | grep -qx OMPI_COMM_WORLD_RANK=0 && echo "$p"; done)
      [ -n "$victim" ] && kill -9 "$victim" ;;
    two) mapfile -t victims < <(ranks_of "$dir" | shuf -n 2)
      [ ${#victims[@]} -gt 0 ] && kill -9 "${victims[@]}" ;;
    launcher) victim=$(pgrep -f "^mpirun .*$dir/losses" | head -n 1); [ -n "$victim" ] && kill -9 "$victim" ;;
    stop) kill -s TERM "$pid" && wait "$pid"; [ $? = 75 ] && start "$dir" "$ranks" ;;
    host) victim=h$((1 + RANDOM % (ranks - 1)))
      cluster-kill "$victim"; rm -rf "${CLUSTER_DIR:?}/$victim/checkpoints"; cluster-join "$victim" ;;
    cable) victim=h$((1 + RANDOM % (ranks - 1)))
      cluster-cut "$victim"; nap 5000; cluster-join "$victim" ;;
    *) return 1 ;;
  esac
}

declare -A duration
good=0 bad=0 hit=0 most_lost=0
for ((run = 0; run < runs; ++run)); do
  read -ra counts <<<"$rank_counts"
  read -ra all_kinds <<<"$kinds"
  ranks=${counts[run % ${#counts[@]}]} kind=${all_kinds[run / ${#counts[@]} % ${#all_kinds[@]}]}
  reference=$work/reference$ranks
  if [ ! -e "$reference" ]; then
    mkdir -p "$reference"
    clear_disks
    begin=$(milliseconds)
    start "$reference" "$ranks"
    wait "$pid" || { cat "$reference/log"; echo "the undisturbed run failed"; exit 1; }
    duration[$ranks]=$(($(milliseconds) - begin))
    echo "$ranks ranks: an undisturbed run takes ${duration[$ranks]} ms"
  fi
  dir=$work/run$run
  mkdir -p "$dir"
  clear_disks
  start "$dir" "$ranks"
  moment=$((duration[$ranks] / 10 + (RANDOM * 32768 + RANDOM) % (duration[$ranks] * 7 / 10)))  # not at the start or the end of the run
  nap $moment
  if [ "$kind" = save ]; then  # a checkpoint without a manifest
    for ((i = 0; i < 2000; ++i)); do
      open=
      for d in "$dir"/checkpoints/step-*; do [ ! -d "$d" ] || [ -e "$d/manifest.json" ] || open=yes; done
      if [ -n "$open" ] || ! kill -0 "$pid" 2>/dev/null; then break; fi
      sleep 0.001
    done
  fi
  fail "$kind" "$dir" || kind="$kind (too late)"
  wait "$pid"
  status=$?
  again=$(lost "$dir/losses")
  restarts=$(grep -c "next start in" "$dir/log")
  problem=
  [ $status = 0 ] || problem="status $status"
  cmp -s "$reference/result" "$dir/result" || problem+="; other parameters"
  wrong=$(wrong_loss "$reference/losses" "$dir/losses")
  [ -z "$wrong" ] || problem+="; $wrong"
  [ "$(tail -n 1 "$dir/losses" | cut -d' ' -f1)" = "$steps" ] || problem+="; not the last step"
  [ "$again" -le $((every + 1)) ] || problem+="; $again steps again"
  [ "$kind" != stop ] || [ "$again" = 0 ] || problem+="; stopped without a save"
  [ "$again" -le "$most_lost" ] || most_lost=$again
  if [ -z "$problem" ]; then good=$((good + 1)); else bad=$((bad + 1)); fi
  [ "$restarts" = 0 ] && [ "$kind" != stop ] || hit=$((hit + 1))
  printf '%3d: %d ranks, %s after %d ms, %d restarts, %d steps again%s\n' "$run" "$ranks" "$kind" "$moment" "$restarts" "$again" \
    "${problem:+: FAILED: $problem}"
  [ -z "$problem" ] || cat "$dir/log"
  rm -rf "$dir"
done
echo "$good of $((good + bad)) runs lost nothing ($hit of them had to start again); at most $most_lost steps were computed again"
[ $((2 * hit)) -ge "$runs" ] || { echo "FAILED: most failures came too late to hit their run"; exit 1; }
[ $bad = 0 ]
