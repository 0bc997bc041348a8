#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds and runs the tests; installs missing packages if possible. See --help.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cmake/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/packages.sh"

usage() {
  cat <<'TXT'
usage: tests/run.sh [--clang] [--asan | --asan-mpi | --no-mpi] [--werror] [--long | --only FOLDER | --random SEEDS |
                     --constants N | --kills N]
                    [ctest options]
       tests/run.sh --tsan | --faults | --coverage [--werror] [ctest options]
       tests/run.sh --mutations [options of tests/mutations.sh]
       tests/run.sh --all [--werror]
  --clang    with clang++-16; also with --asan, --asan-mpi or --no-mpi
  --asan     under the address and undefined-behavior sanitizers, without MPI. Random tests repeat a third as often, as with --asan-mpi
  --no-mpi   as on a machine without MPI
  --werror   warnings are errors
  --only FOLDER  build and run the tests of tests/FOLDER alone, such as ops, without tests on MPI ranks and with other libraries
  --long     also slow tests: users' projects that get gshard in all ways, each header alone, and each program of docs/ alone. Random
             tests repeat five times as often
  --all      one run after another: --long with g++, --asan --clang (without MPI), --asan-mpi --clang, --tsan, --faults, --mutations,
             --random, --kills. Prints at the end the failed ones, and the time of each. Omits --clang, --asan and --no-mpi alone
  --random SEEDS  run only this number of random programs on all cores, and a tenth of it on 2 to 4 MPI ranks. The first seed is
             GSHARD_RANDOM_FIRST (0). A finding is printed with its seed, as a small test
  --constants N  only plan N random programs in the compiler and at run time, write and read their plans, and compare all three
  --kills N  only kill a training on MPI ranks N times under gshard-run, and compare it with an undisturbed run. Options of
             tests/survival/kills.sh may follow
  --tsan     the multi-threaded parts under the thread sanitizer, with g++ and without MPI: started runs, the watch of waits, the
             writers of checkpoints, telemetry and the event log. Without OpenMP
  --asan-mpi the tests on MPI ranks with 2 ranks, under the address and undefined-behavior sanitizers. Leaks of Open MPI do not count:
             tests/leaks_of_open_mpi.txt
  --faults   fails every system call of a save and of a resume in turn, in one process and on 2 MPI ranks. Without it, the tests on
             ranks fail every 17th
  --mutations  only put small faults into a copy of the sources, one active at a time, and check that a test finds each. Options of
             tests/mutations.sh may follow
  --coverage lines and branches of include/ that the unit tests and the tests on MPI ranks run, by folder, and the files with the
             least; with clang 16: see tests/coverage.sh
All other options go to ctest, after all tests are built: tests/run.sh -R exec/kernel/ --verbose. Such a selection includes slow tests.
CMAKE_BUILD_PARALLEL_LEVEL in the environment is the number of compilations and tests at a time; by default, the cores or fewer.
Builds in build/tests (build/clang, build/asan, build/asan-clang, build/asan-mpi, build/asan-mpi-clang, build/coverage, build/mutations,
build/no-mpi, build/no-mpi-clang, build/tsan).
TXT
}

# run_all [options]: runs this script once per configuration.
run_all() {
  local configuration failed=() took=()
  for configuration in --long "--asan --clang" "--asan-mpi --clang" --tsan --faults --mutations "--random 2000" "--kills 8"; do
    echo "== tests/run.sh $configuration"
    SECONDS=0
    # shellcheck disable=SC2086  # options, split at blanks
    "${BASH_SOURCE[0]}" "$@" $configuration || failed+=("tests/run.sh $configuration")
    took+=("$((SECONDS / 60)) min  tests/run.sh $configuration")
  done
  printf '%s\n' "${took[@]}"
  [ ${#failed[@]} -eq 0 ] || die "Failed:" "${failed[@]/#/  }"
}

compiler=
preset=tests
all=
long=
werror=OFF
target=gshard_tests
others=()  # all options except --all
for_ctest=()
random_seeds=
constants=
kills=
mutations=
while [ $# -gt 0 ]; do
  [ "$1" = --all ] || others+=("$1")
  case $1 in
    --all) all=yes ;;
    --long)
      long=yes
      export GSHARD_EFFORT=all ;;
    --clang) compiler=clang ;;
    --asan | --no-mpi)
      [ "$preset" = tests ] || die "--asan and --no-mpi exclude each other: tests under the sanitizers run without MPI anyway"
      preset=${1#--} ;;
    --tsan | --asan-mpi | --coverage | --faults)
      [ "$preset$target" = testsgshard_tests ] || die "$1 chooses the build and the tests, and takes no other choice"
      case $1 in
        --tsan) preset=tsan target=test_in_threads for_ctest+=(-L '^threads$') ;;
        --asan-mpi) preset=asan-mpi target=gshard_rank_tests for_ctest+=(-L '^mpi$' -R '/2_ranks') ;;
        --coverage)
          preset=coverage target=gshard_coverage_tests
          for_ctest+=(-L '^(unit|mpi)$' -E '/(([a-z0-9]+_)?by_[a-z0-9_]+|hidden_tiles|simgrid)$|^survival/|/under_faults') ;;
        --faults)
          export GSHARD_FAULTS=all
          target=test_under_faults_all for_ctest+=(-R '^survive/under_faults' --verbose) ;;
      esac ;;
    --werror) werror=ON ;;
    --only)
      folders=$(cd "$top/tests" && find . -mindepth 2 -name '*_test.cpp' ! -name '*mpi*' ! -path './architecture/*' | cut -d/ -f2 | sort -u)
      grep -qxF -- "${2:-}" <<<"$folders" || die "--only takes one of the folders" "$folders"
      target=test_$2
      for_ctest+=(-L '^unit$' -R "^$2/" -E '/(by_[a-z]+|simgrid)$')
      others+=("$2")
      shift ;;
    --random)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "--random takes a number of seeds"
      random_seeds=$2
      shift ;;
    --constants)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "--constants takes a number of programs"
      constants=$2 target=test_constants
      shift ;;
    --kills)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "--kills takes a number of runs"
      kills=$2
      shift 2
      for_ctest=("$@")
      break ;;
    --mutations)
      shift
      mutations=yes for_ctest=("$@")
      break ;;
    --help | -h) usage; exit 0 ;;
    *) for_ctest+=("$1") ;;
  esac
  shift
done

if [ -n "$all" ]; then
  [ -z "${others[*]/--werror/}" ] || die "--all takes no other option but --werror"
  run_all ${others[@]+"${others[@]}"}
  exit
fi
[ -z "$mutations" ] || exec "$top/tests/mutations.sh" ${for_ctest[@]+"${for_ctest[@]}"}
[ ${#for_ctest[@]} -gt 0 ] || [ -n "$long$kills" ] || for_ctest+=(-LE '^long$')

[[ $preset != asan* ]] || export GSHARD_EFFORT=${GSHARD_EFFORT:-little}
case $preset in
  tsan | coverage) [ -z "$compiler" ] || die "--$preset chooses the compiler" ;;
esac
more=()
if [ "$preset" = coverage ]; then
  more+=(clang-16 cmd:clang++-16 llvm-16 cmd:llvm-cov-16
    libclang-rt-16-dev "file:/usr/lib/llvm-16/lib/clang/16/lib/linux/libclang_rt.profile-$(uname -m).a")
elif [ -n "$compiler" ]; then
  more+=(clang-16 cmd:clang++-16)
  [[ $preset != asan* ]] ||
    more+=(llvm-16 cmd:llvm-symbolizer-16
      libclang-rt-16-dev "file:/usr/lib/llvm-16/lib/clang/16/lib/linux/libclang_rt.asan-$(uname -m).a")
  if [ "$preset" = tests ]; then preset=clang; else preset+=-clang; fi
fi
need_packages ${more[@]+"${more[@]}"}

if symbolizer=$(command -v llvm-symbolizer-16); then export ASAN_SYMBOLIZER_PATH=$symbolizer; fi  # clang does not search this name
jobs=$(jobs_at_once)
build=$top/build/$preset
[ -z "$constants" ] || build=$top/build/constants
cd "$top"
echo "Building the tests in $build ($jobs at a time)"
quietly "$build/configure.log" cmake --preset "$preset" -B "$build" -DGSHARD_WERROR=$werror -DGSHARD_CONSTANT_PROGRAMS="${constants:-0}"
[ -z "$random_seeds" ] || target=random_programs
[ -z "$kills" ] || target=survivor
quietly "$build/build.log" cmake --build "$build" --target "$target" --parallel "$jobs"
[ -z "$constants" ] || exec "$build/tests/test_constants"
if [ -n "$random_seeds" ]; then
  exec "$top/tests/random.sh" "$build" "$random_seeds"
fi
if [ -n "$kills" ]; then
  exec "$top/tests/survival/kills.sh" --runs "$kills" ${for_ctest[@]+"${for_ctest[@]}"} "$top/examples/relaunch/gshard-run" "$build/tests/survivor"
fi
if [ "$preset" = coverage ]; then
  tests_failed=
  rm -rf "$build/profiles"
  export LLVM_PROFILE_FILE=$build/profiles/%4m.profraw  # the processes of a program share 4 files
  ctest --test-dir "$build" --output-on-failure --parallel "$jobs" ${for_ctest[@]+"${for_ctest[@]}"} || tests_failed=yes
  "$top/tests/coverage.sh" "$build"
  [ -z "$tests_failed" ] || die "Tests failed: see above"
  exit
fi
exec ctest --test-dir "$build" --output-on-failure --parallel "$jobs" ${for_ctest[@]+"${for_ctest[@]}"}
