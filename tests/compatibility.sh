#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compiles tests/compatibility/smoke.cpp with several compilers and versions of the libraries. Prints a table of the results. See --help.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cmake/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/packages.sh"

usage() {
  cat <<'TXT'
usage: tests/compatibility.sh [eigen=DIR] [xtensor=DIR:DIR] [mpi=DIR] [cxx=COMMAND]...
  eigen=DIR        another Eigen: the folder that holds Eigen/Core
  xtensor=DIR:DIR  another xtensor and its xtl: the folders that hold xtensor/ and xtl/
  mpi=DIR          another MPI: the folder that holds its mpicxx and mpirun
  cxx=COMMAND      a compiler in addition to g++-12, g++-13, clang++-16 and clang++-19
The first compiler with the installed libraries is the reference. Every other library is tried alone with this compiler, and all of them
together with every compiler. Prints a Markdown table; ends with 1 if a program fails or prints other digits than the reference.
Builds in build/compatibility.
TXT
}

eigen='' xtensor='' mpi=''
compilers=(g++-12 g++-13 clang++-16 clang++-19)
for arg; do
  case $arg in
    --help | -h) usage; exit ;;
    eigen=*) eigen=${arg#*=}; [ -f "$eigen/Eigen/Core" ] || die "No Eigen/Core in '$eigen'" ;;
    xtensor=*:*)
      xtensor=${arg#*=}
      [ -d "${xtensor%%:*}/xtensor" ] || die "No xtensor/ in '${xtensor%%:*}'"
      [ -d "${xtensor#*:}/xtl" ] || die "No xtl/ in '${xtensor#*:}'" ;;
    mpi=*)
      mpi=${arg#*=}
      [ -x "$mpi/mpicxx" ] || die "No mpicxx in '$mpi'"
      [ -x "$mpi/mpirun" ] || die "No mpirun in '$mpi'" ;;
    cxx=*) is_there "cmd:${arg#*=}" || die "No compiler '${arg#*=}'"; compilers+=("${arg#*=}") ;;
    *) usage >&2; die "Unknown: $arg" ;;
  esac
done
need_packages
build=$top/build/compatibility
mkdir -p "$build"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMP_NUM_THREADS=1

# extra_flag <compiler> <xtensor>: clang 19 rejects xtensor before 0.26 without this flag (issue 2804 of xtensor).
extra_flag() {
  local folder=${2%%:*}
  case $1 in *clang*) ;; *) return ;; esac
  if [ "$("$1" -dumpversion | cut -d. -f1)" -ge 19 ] && [ -f "${folder:-/usr/include}/xtensor/xarray.hpp" ]; then
    echo -fno-relaxed-template-template-args
  fi
}

# compute <name> <compiler> <eigen> <xtensor> <mpi>: writes the program's output to <name>.txt. Empty: the installed version.
compute() {
  local limits='-fconstexpr-ops-limit=100000000000 -fconstexpr-loop-limit=100000000' includes=("-I$top/include")
  case $2 in *clang*) limits="-fconstexpr-steps=2000000000 $(extra_flag "$2" "$4")" ;; esac
  [ -z "$4" ] || includes+=("-I${4%%:*}" "-I${4#*:}")
  includes+=("-I${3:-/usr/include/eigen3}")
  # shellcheck disable=SC2086  # several options
  OMPI_CXX=$2 MPICH_CXX=$2 "${5:+$5/}mpicxx" -std=c++20 -O1 $limits "${includes[@]}" "$top/tests/compatibility/smoke.cpp" -o "$build/$1" &&
    "${5:+$5/}mpirun" -n 2 "$build/$1" >"$build/$1.txt"
}

# version <name> <of what>: the version in the program's output.
version() {
  local text
  text=$(sed -n "s/^# $2:[[:space:]]*//p" "$build/$1.txt")
  case $text in
    *[Cc]lang*) text="clang $(grep -oE '[0-9]+[.][0-9.]+' <<<"$text" | head -n 1)" ;;
    'Open MPI v'*) text=${text#Open MPI v}; text="Open MPI ${text%%,*}" ;;
    MPICH*) text="MPICH $(grep -oE '[0-9]+[.][0-9.]+' <<<"$text" | head -n 1)" ;;
  esac
  [ "$2" != compiler ] || case $text in clang*) ;; *) text="g++ $text" ;; esac
  echo "$text"
}

# difference <reference> <output>: "equal", or the largest relative difference of two numbers.
difference() {
  awk '/^#/ { next }
    NR == FNR { expected[++lines] = $0; next }
    { if ($0 == expected[++line]) next
      differs = 1
      if (split($0, a, " ") != split(expected[line], b, " ")) other = 1
      for (i in a) if (a[i] "" != b[i] "") {
        if (a[i] !~ /^-?[0-9.e+-]+$/ || $1 == "plan:") { other = 1; continue }
        d = a[i] - b[i]; d = d < 0 ? -d : d; s = b[i] < 0 ? -b[i] : b[i]
        if (d / (s > 0 ? s : 1) > largest) largest = d / (s > 0 ? s : 1)
      } }
    END { if (other || line != lines) print "another plan or text"
      else if (differs) printf "differ by %.1e\n", largest
      else print "equal" }' "$1" "$2"
}

# try <compiler> <eigen> <xtensor> <mpi>: prints a row of the table.
reference=''
failures=0
rows=0
try() {
  local name result flag
  rows=$((rows + 1))
  name=$rows
  echo "$1${2:+ eigen=$2}${3:+ xtensor=$3}${4:+ mpi=$4}" >&2
  if ! compute "$name" "$@" >"$build/$name.log" 2>&1; then
    echo "| $1 | ${2:-installed} | ${3:-installed} | ${4:-installed} | fails: see $build/$name.log |"
    failures=$((failures + 1))
    return
  fi
  if [ -z "$reference" ]; then
    reference=$build/$name.txt
    result=reference
  else
    result=$(difference "$reference" "$build/$name.txt")
    [ "$result" = equal ] || failures=$((failures + 1))
  fi
  flag=$(extra_flag "$1" "$3")
  result+=${flag:+, with \`$flag\`}
  echo "| $(version "$name" compiler) | $(version "$name" Eigen) | $(version "$name" xtensor) | $(version "$name" MPI) | $result |"
}

echo "| compiler | Eigen | xtensor | MPI | digits |"
echo "|---|---|---|---|---|"
first=''
for compiler in "${compilers[@]}"; do
  if ! is_there "cmd:$compiler"; then
    echo "| $compiler | | | | not tried here |"
    continue
  fi
  try "$compiler" '' '' ''
  if [ -z "$first" ]; then
    first=$compiler
    [ -z "$eigen" ] || try "$compiler" "$eigen" '' ''
    [ -z "$xtensor" ] || try "$compiler" '' "$xtensor" ''
    [ -z "$mpi" ] || try "$compiler" '' '' "$mpi"
  fi
  [ -z "$eigen$xtensor$mpi" ] || try "$compiler" "$eigen" "$xtensor" "$mpi"
done
[ -n "$eigen" ] || echo "| | another Eigen | | | not tried here |"
[ -n "$xtensor" ] || echo "| | | another xtensor | | not tried here |"
[ -n "$mpi" ] || echo "| | | | another MPI | not tried here |"
[ -n "$first" ] || die "None of these compilers is installed: ${compilers[*]}"
[ "$failures" -eq 0 ] || die "$failures of $rows programs fail, or print other digits than the reference"
