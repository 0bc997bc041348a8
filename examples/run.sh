#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Trains and tries the translation model, or plans the training of large ones. Installs missing packages if possible. See --help.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cmake/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/packages.sh"

usage() {
  cat <<'TXT'
usage: examples/run.sh [options]
  --quick            a smoke test of about a minute: too short to learn
  --ranks N          on N MPI ranks (default 2)
  --simulate N       on a simulated mesh of N devices in one process, without MPI
  --minutes M        train for M minutes (default 5.5, with --quick 0.35)
  --translate TEXT   translate TEXT with the trained model
  --save FILE        keep the trained model     --load FILE   translate with a kept one
  --plan MODEL       instead of all this, plan a training step of MODEL (1T, 600B, 200B, 150B, 50B, 37B, 12.5B) on hardware that need not
                     be there, with --mesh HARDWARE (default tpu-v3:32x32), and write a report; all options: --plan 600B --help
  --config FILE      the same with a model of your own, in lines such as `layers = 24`
  --experiment scaling  instead of all this, train models with more and more experts at equal operations per token, and write a page. It
                     takes hours, with --quick minutes; all options: --experiment scaling --help
Everything else goes to the program: examples/run.sh -- --help lists its own options.
Builds in build/release; the first build takes about 3 minutes, with --plan about one.
TXT
}

ranks=2
simulate=
plan=
args=()
if [ "${1:-}" = --experiment ]; then
  [ "${2:-}" = scaling ] || die "--experiment takes the name of one: scaling"
  exec "$top/examples/scaling/run.sh" "${@:3}"
fi
while [ $# -gt 0 ]; do
  case $1 in
    --ranks | --simulate)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "$1 takes a number of at least 1, not '${2:-}'"
      if [ "$1" = --ranks ]; then ranks=$2; else simulate=$2 args+=(--simulate "$2"); fi
      shift 2 ;;
    --plan)
      if [[ ${2:--} != -* ]]; then plan=yes args+=("$@"); break; fi
      args+=("$1"); shift ;;  # an option of the translation model
    --plan=* | --config | --config=*) plan=yes args+=("$@"); break ;;
    --help | -h) usage; exit 0 ;;
    --) shift; args+=("$@"); break ;;
    *) args+=("$1"); shift ;;
  esac
done

# shellcheck disable=SC2119 # it takes packages, not this script's arguments
need_packages

called_from=$PWD
jobs=$(jobs_at_once)
build=$top/build/release
cd "$top"
if [ -n "$plan" ]; then target=gshard-plan-run takes="about a minute"; else target=translate takes="about 3 minutes"; fi
echo "Building $target in $build ($jobs at a time; the first time takes $takes)"
quietly "$build/configure.log" cmake --preset release
quietly "$build/build.log" cmake --build "$build" --target "$target" --parallel "$jobs"

# File names in the options are relative to the user's directory.
cd "$called_from"
if [ -n "$plan" ]; then
  [[ " ${args[*]} " = *" --html"* ]] || args+=(--html plan-run.html)
  exec "$build/examples/gshard-plan-run" "${args[@]}"
fi
program=("$build/examples/translate" ${args[@]+"${args[@]}"})
# The ranks share the cores without being bound to them, as there may be more ranks than cores. Simulated devices give the same bits with
# the same setting.
cores=$(nproc 2>/dev/null || echo 1)
threads=$((cores / ${simulate:-$ranks}))
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((threads > 0 ? threads : 1))} OMPI_MCA_btl_vader_single_copy_mechanism=none
if [ -n "$simulate" ] || [[ " ${args[*]-} " = *" --help "* ]]; then
  exec "${program[@]}"
fi

# mpirun gives every rank its own terminal, so the ranks cannot see where their output goes.
[ -t 1 ] || program+=(--plain)

launcher=(mpirun -n "$ranks")
if mpirun --version 2>&1 | grep -qiE 'open.?mpi|openrte'; then
  # Quiet: the program reports errors itself. mpirun's messages would bury them.
  launcher+=(--quiet --oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
  [ "$(id -u)" -ne 0 ] || launcher+=(--allow-run-as-root)
fi
exec "${launcher[@]}" "${program[@]}"
