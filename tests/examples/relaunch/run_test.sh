#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# run_test.sh GSHARD_RUN: tests gshard-run with a program that fails in every way. The program counts steps in files, like a checkpointer.
set -uo pipefail
gshard_run=$1
guide=$(cd "$(dirname "$0")" && pwd)/../../../docs/guides/long-runs.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0 passed=0  # checks

# train DIR STEPS [FAILURE...]: resumes. Start number n ends with FAILURE number n, after 2 more steps.
cat >train <<'P'
#!/usr/bin/env bash
dir=$1 steps=$2; shift 2
mkdir -p "$dir"
echo x >>"$dir/../starts"; start=$(wc -l <"$dir/../starts")
failure=${!start:-none}
step=0; for d in "$dir"/step-*; do [ "$(cat "$d/manifest.json" 2>/dev/null)" != "{}" ] || step=$((10#${d##*-})); done  # not a damaged one
echo "$step" >>"$dir/../resumed"
save() { d=$dir/$(printf 'step-%010d' "$step"); mkdir -p "$d"; echo "{}" >"$d/manifest.json"; }
trap 'save; exit 75' USR1
for ((i = 0; step < steps; ++i)); do
  if [ "$i" = 2 ] || [[ $failure == at_once-* ]]; then
    case ${failure#at_once-} in
      status-*) exit "${failure##*-}" ;;
      kill) kill -9 $$ ;;
      hang) trap '' TERM; sleep 100 & wait ;;
      tells) while true; do date +%N >"$dir/new"; mv "$dir/new" "$dir/gshard-00000.prom"; sleep 0.2; done ;;  # its telemetry continues
      orphan) sleep 100 & echo $! >"$dir/../orphan"; exit 1 ;;
      slow) step=$((step + 1)); : >"$dir/../slow"; while true; do sleep 0.1; done ;;
    esac
  fi
  step=$((step + 1)); save
done
echo "$step" >"$dir/finished"
P
chmod +x train

# expect NAME STATUS WORDS COMMAND...: runs gshard-run in an empty folder, and checks its status and text. Sets `text`.
expect() {
  local name=$1 status=$2 words=$3 found
  shift 3
  rm -f starts resumed orphan slow; rm -rf c
  text=$(timeout 60 "$gshard_run" "$@" 2>&1)
  found=$?
  check "$name: status $status, not $found: $text" "$found" = "$status"
  check "$name: says '$words': $text" "$(grep -cF -- "$words" <<<"$text")" -gt 0
}
check() {
  local what=$1
  shift
  if [ "$@" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $what"; fi
}
run=(--checkpoint c --wait 0.1 --most-wait 0.2)

expect "a run without failures" 0 "c/finished: 5" "${run[@]}" -- ./train c 5
check "one start" "$(wc -l <starts)" = 1
expect "statuses, a kill, and 0 without a marker" 0 "c/finished: 20" "${run[@]}" -- ./train c 20 status-1 kill status-0 status-139 none
check "every start resumed from the newest checkpoint" "$(tr '\n' ' ' <resumed)" = "0 2 4 6 8 "
expect "failures without progress" 1 "gave up: 3 failures in a row" "${run[@]}" --retries 2 -- ./train c 9 at_once-status-3 at_once-kill at_once-status-0 none
check "three starts" "$(wc -l <starts)" = 3
expect "no failure is too many" 1 "gave up: 1 failure without a newer checkpoint; there is no checkpoint; the last status was 3" \
  "${run[@]}" --retries 0 -- ./train c 9 at_once-status-3
check "a failed command tells nothing of its directory: $text" "$(grep -c "not the directory" <<<"$text")" = 0
expect "the wrong directory" 1 "status was 0; if the command has finished, --checkpoint is not the directory of its checkpointer" \
  --checkpoint elsewhere --retries 0 -- ./train c 2 none
check "the program has finished: $(ls c)" -e c/finished
expect "the wrong directory, before the next start" 1 "its end marker; there is no checkpoint; if the command has finished, --checkpoint is not" \
  --checkpoint elsewhere --retries 1 --wait 0.1 -- ./train c 2 none
expect "progress starts the count again" 0 "c/finished: 9" "${run[@]}" --retries 1 -- ./train c 9 at_once-kill kill at_once-kill kill none
expect "a command that hangs" 0 "have not changed for 1.000 s" "${run[@]}" --stall 1 --grace 0.3 -- ./train c 5 hang none
expect "a command that hangs, with telemetry in the directory" 0 "have not changed for 1.500 s" "${run[@]}" --stall 1.5 --grace 0.3 -- \
  ./train c 5 tells none
check "two starts" "$(wc -l <starts)" = 2
expect "what a command leaves behind is ended" 0 "c/finished: 5" "${run[@]}" --grace 0.3 -- ./train c 5 orphan none
check "the orphan is gone" "$(sed 's/.*) //; s/ .*//' "/proc/$(cat orphan)/stat" 2>/dev/null | tr -d Z)" = ""  # Z: a zombie
expect "hosts that answer" 0 "c/finished: 1" "${run[@]}" --hosts a,b,c --per-host 2 --check '[ {host} != b ]' -- \
  bash -c 'echo "$@" >args; mkdir -p c; echo 1 >c/finished' - "{hosts}" "{slots}" "{ranks}"
check "placeholders: $(cat args)" "$(cat args)" = "a,c a:2,c:2 4"
mkdir -p d0 d1; mkdir -p d1/step-0000000007; echo "{}" >d1/step-0000000007/manifest.json
expect "directories of several hosts" 0 "d1/finished: 8" --checkpoint d0 --checkpoint d1 --wait 0.1 -- ./train d1 8
check "it resumed there" "$(cat resumed)" = 7

mkdir -p d2/step-0000000100; echo "damaged" >d2/step-0000000100/manifest.json
expect "checkpoints after a damaged one of a higher step are progress" 0 "the newest checkpoint is of step 6;" --checkpoint d2 --wait 0.1 \
  --most-wait 0.1 --retries 1 -- ./train d2 9 kill kill kill none
check "it resumed from them" "$(tr '\n' ' ' <resumed)" = "0 2 4 6 "
mkdir -p d3/step-0000000100; echo "damaged" >d3/step-0000000100/manifest.json
expect "the damaged one is no progress" 1 "gave up: 2 failures in a row" --checkpoint d3 --wait 0.1 --retries 1 -- \
  ./train d3 9 at_once-kill at_once-kill none
expect "a check without an end" 0 "c/finished: 1" "${run[@]}" --hosts a,b --check '[ {host} != a ] || sleep 100' --check-time 1 -- \
  bash -c 'echo "$@" >args; mkdir -p c; echo 1 >c/finished' - "{hosts}"
check "the host that answers: $(cat args)" "$(cat args)" = b

# started WAIT_FOR COMMAND...: starts gshard-run in the background, with SIGINT, and waits for a file. Sets `pid`.
started() {
  local file=$1
  shift
  rm -f starts resumed slow asked_host; rm -rf c
  set -m  # without job control, the shell ignores SIGINT in background processes
  "$gshard_run" "$@" >text 2>&1 &
  pid=$!
  set +m
  for ((i = 0; i < 200; ++i)); do [ ! -e "$file" ] || break; sleep 0.1; done
  sleep 0.3
}
for signal in USR1 TERM INT; do
  # Like mpirun, the launcher passes SIGUSR1 on, and kills its children when it gets another signal.
  cat >launch <<'P'
#!/usr/bin/env bash
"$@" & program=$!
trap 'kill -s USR1 $program' USR1
trap 'kill -9 $program; exit 1' TERM INT
while kill -0 $program 2>/dev/null; do wait $program; status=$?; done
exit $status
P
  chmod +x launch
  started slow "${run[@]}" -- ./launch ./train c 100 slow
  kill -s "$signal" "$pid"
  wait "$pid"
  status=$?
  check "SIG$signal ends it with 75, not $status: $(cat text)" $status = 75
  check "SIG$signal: what was not saved is saved: $(cat text)" -e c/step-0000000003/manifest.json
  check "SIG$signal is named: $(cat text)" "$(grep -c "stopped by SIG$signal; the newest checkpoint is of step 3" text)" = 1
  check "SIG$signal: one start" "$(wc -l <starts)" = 1
done
started asked_host "${run[@]}" --hosts a --check ': >asked_host; echo $$ >check_pid; exec sleep 300' --check-time 300 -- ./train c 5
kill -s TERM "$pid"
for ((i = 0; i < 200; ++i)); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
check "a request to stop ends the wait for a host" ! -e "/proc/$pid"
kill -9 "$pid" 2>/dev/null
wait "$pid"
status=$?
check "status 75, not $status: $(cat text)" $status = 75
for ((i = 0; i < 50; ++i)); do kill -0 "$(cat check_pid)" 2>/dev/null || break; sleep 0.1; done
check "the check of the host has ended" ! -e "/proc/$(cat check_pid)"

# The job scripts of the guide, with replacements for the commands of the batch systems and for gshard-run.
mkdir -p bin
cat >bin/gshard-run <<'P'
#!/usr/bin/env bash
echo "$@" >arguments
trap 'exit 75' USR1 TERM
: >running
will=$(cat will)
while [ "$will" = wait ]; do sleep 0.1; done
exit "$will"
P
cat >bin/scontrol <<'P'
#!/bin/sh
if [ "$1" = show ]; then echo n1; echo n2; else echo "$@" >again; fi
P
cat >bin/qsub <<'P'
#!/bin/sh
echo "$@" >again
P
chmod +x bin/*
printf 'n1\nn1\nn2\n' >nodes
export SLURM_JOB_ID=7 PBS_O_WORKDIR=$PWD PBS_NODEFILE=nodes
for system in SBATCH PBS; do
  awk -v word="#$system" '/^```/ { if (block ~ word) printf "%s", block; block = ""; next } { block = block $0 "\n" }' "$guide" >job
  for will in 0 1 wait; do
    rm -f again running; echo "$will" >will
    PATH="$PWD/bin:$PATH" bash job >text 2>&1 &
    pid=$!
    for ((i = 0; i < 100; ++i)); do [ ! -e running ] || break; sleep 0.1; done
    if [ "$will" = wait ]; then
      sleep 0.3
      if [ "$system" = PBS ]; then kill -s TERM "$pid" "$(pgrep -P "$pid" -f gshard-run)"; else kill -s USR1 "$pid"; fi
    fi
    wait "$pid"
    status=$?
    check "$system: status ${will/wait/75}, not $status: $(cat text)" "$status" = "${will/wait/75}"
    check "$system: started again after $will, or not" "$([ ! -e again ]; echo $?)" = "$([ "$will" != wait ]; echo $?)"
    check "$system: hosts: $(cat arguments)" "$(grep -c -- '--hosts n1,n2 --per-host 16' arguments)" = 1
  done
done

# A program that saves right after resuming, and fails: a manifest of the same step each time.
cat >saves_again <<'P'
#!/usr/bin/env bash
mkdir -p "$1/step-0000000005"; echo "{}" >"$1/step-0000000005/new"; mv "$1/step-0000000005/new" "$1/step-0000000005/manifest.json"
exit 1
P
chmod +x saves_again
expect "another checkpoint of the same step is no progress" 1 "gave up: 3 failures in a row" "${run[@]}" --retries 2 -- ./saves_again c

for options in "" "--checkpoint c" "--checkpoint c --retries x -- true" "--checkpoint c --nonsense -- true" "--checkpoint"; do
  # shellcheck disable=SC2086
  expect "wrong options '$options'" 2 "--help lists the options" $options
done
mkdir -p e; echo 3 >e/finished
expect "a run that has finished is not started" 0 "e/finished: 3" --checkpoint e -- ./train e 5
check "no start" ! -e starts

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
