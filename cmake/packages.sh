# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Shared by tests/run.sh and examples/run.sh (bash, sourced): their packages, and quiet builds.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Debian's name of each package, and a sign that it is installed in any way: a command, a header, a file, or a module of a Python.
packages=(
  g++                    cmd:c++
  cmake                  cmd:cmake
  ninja-build            cmd:ninja
  libeigen3-dev          hdr:Eigen/Core
  libxtensor-dev         hdr:xtensor
  libboost-mpi-dev       hdr:boost/mpi.hpp
  libopenmpi-dev         cmd:mpicxx
  openmpi-bin            cmd:mpirun
  doctest-dev            hdr:doctest/doctest.h
  nlohmann-json3-dev     hdr:nlohmann/json.hpp
  libxxhash-dev          hdr:xxhash.h
  libssl-dev             hdr:openssl/evp.h
  libprotozero-dev       hdr:protozero/pbf_reader.hpp
  libhdf5-openmpi-dev    hdr:hdf5/openmpi/hdf5.h
  libhdf5-dev            hdr:hdf5/serial/hdf5.h
  python3-numpy          py:numpy
  python3-h5py           py:h5py
  libcli11-dev           hdr:CLI/CLI.hpp
  libsentencepiece-dev   hdr:sentencepiece_processor.h
  libutf8proc-dev        hdr:utf8proc.h
  iso-codes              file:/usr/share/locale/de/LC_MESSAGES/iso_3166-1.mo
)

die() {
  printf '%s\n' "$@" >&2
  exit 1
}

is_there() {
  local what=${1#*:} dir
  case $1 in
    cmd:*) command -v "$what" >/dev/null ;;
    file:*) [ -e "$what" ] ;;
    py:*) python3 -c "import $what" 2>/dev/null || /usr/bin/python3 -c "import $what" 2>/dev/null ;;
    hdr:*)
      local IFS=:
      for dir in ${CPATH:-} ${CPLUS_INCLUDE_PATH:-} /usr/local/include /usr/include /usr/include/eigen3; do
        [ -e "$dir/$what" ] && return 0
      done
      return 1 ;;
  esac
}

# find_missing [packages in pairs]: sets `missing` to the missing ones.
find_missing() {
  missing=()
  while [ $# -gt 1 ]; do
    is_there "$2" || missing+=("$1")
    shift 2
  done
}

# need_packages [more packages, in pairs]: installs missing packages. If it cannot, prints how to install them and ends the script.
need_packages() {
  find_missing "${packages[@]}" "$@"
  [ ${#missing[@]} -gt 0 ] || return 0

  local as_root=() why=
  if ! command -v apt-get >/dev/null; then
    why="this is not Debian or Ubuntu (there is no apt-get)"
  elif [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
      as_root=(sudo)
    else
      why="this user is not root and cannot use sudo here"
    fi
  fi
  # Slim images leave the translations out of every package. The example needs those of iso-codes.
  local keep_data="-o Dpkg::Options::=--path-include=/usr/share/locale/*/LC_MESSAGES/iso_*"
  local install="apt-get install -y --no-install-recommends --reinstall $keep_data ${missing[*]}"
  [ -z "$why" ] || die "Missing: ${missing[*]}" "They cannot be installed by this script: $why." \
    "On Debian 12 this installs them (as root):" "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"

  echo "Installing ${missing[*]}"
  mkdir -p "$top/build"
  local log=$top/build/packages.log
  {
    "${as_root[@]}" apt-get update &&
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive bash -fc "$install"  # -f: only dpkg expands the *
  } >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    die "Installing failed; all of it is in $log. By hand:" "  apt-get update && $install"
  }
  find_missing "${packages[@]}" "$@"
  [ ${#missing[@]} -eq 0 ] || die "Installed, but what they should bring is not where it should be: ${missing[*]}"
}

# quietly <log> <command>...: shows the command's output only if it fails.
quietly() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 || {
    # Compilers print the error first, other tools print it last.
    grep -nE 'error|Error|FAILED' "$log" | head -n 40 >&2 || true
    echo "..." >&2
    tail -n 40 "$log" >&2
    die "Failed: $*" "All of its output is in $log"
  }
}

# One job per core, but no more than the memory allows: a compile may need 2 GB.
jobs_at_once() {
  local cores gigabytes
  if [[ ${CMAKE_BUILD_PARALLEL_LEVEL:-} =~ ^[1-9][0-9]*$ ]]; then echo "$CMAKE_BUILD_PARALLEL_LEVEL"; return; fi
  cores=$(nproc 2>/dev/null || echo 2)
  gigabytes=$(awk '/MemAvailable/ {print int($2 / 2097152)}' /proc/meminfo 2>/dev/null || true)
  [ -n "$gigabytes" ] && [ "$gigabytes" -lt "$cores" ] && cores=$gigabytes
  [ "$cores" -ge 1 ] || cores=1
  echo "$cores"
}
