#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs the scaling experiment, and writes its page. See --help.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../../cmake/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../cmake/packages.sh"

usage() {
  cat <<'TXT'
usage: examples/run.sh --experiment scaling [--small | --quick] [--out DIR] [options]
Trains translation models with no, 2, 8, 32 and 128 experts per layer at equal operations per token: two depths, three seeds, two tasks;
then other capacities, weights of the auxiliary loss, and uses of the second expert. One run per core at a time. Writes DIR/scaling.html.
Started again, it goes on with the runs that are not finished. One start at a time works in a directory. All of it takes hours: about five minutes a run and core.
  --small      small models: about a minute a run and core; docs/scaling.html says what came out
  --quick      tiny models and few steps: shows in a minute that everything runs
  --minutes N  no run begins later; those under way are finished. The page has what is there by then
  --only TEXT  only runs whose name has TEXT, or one of several, such as --only iso-codes-2x2; --list prints the names
  --tokens N   a training step has about N source and target positions (default 3072; small 6144; quick 1024)
  --time N     no training and no page: prints the time of a step of each run, measured in turn in N rounds on one core
  --out DIR    results (default build/scaling, with --small build/scaling-small, with --quick build/scaling-quick)
All else goes to the program, such as --seeds 1, --steps 500.
The tasks: names in iso-codes; messages of the programs below, whose Debian packages are unpacked in build/catalogues, not installed.
They are downloaded once, if a wanted run needs them.
TXT
  printf '  %s\n' "${sources[*]}"
}
sources=(gimp-data gnome-control-center-data evolution-common nautilus-data libgtk-3-common libgtk-4-common libglib2.0-data gettext coreutils
  git epiphany-browser-data rhythmbox-data gthumb-data evolution-data-server-common gedit-common gnumeric-common pidgin-data gnucash-common
  aptitude-common dpkg apt binutils-common gcc-12-locales)

size=
out=
args=()
while [ $# -gt 0 ]; do
  case $1 in
    --quick | --small)
      [ -z "$size" ] || [ "$size" = "$1" ] || die "--quick and --small exclude each other: choose one size"
      size=$1 args+=("$1") ;;
    --out) out=$(realpath -m "${2:?--out takes a directory}"); shift ;;
    --help | -h) usage; exit 0 ;;
    *) args+=("$1") ;;
  esac
  shift
done
: "${out:=$top/build/scaling${size#-}}"

need_packages python3-matplotlib py:matplotlib
cd "$top"
catalogues=$top/build/catalogues
build=$top/build/release
quietly "$build/configure.log" cmake --preset release
quietly "$build/build.log" cmake --build "$build" --target scaling --parallel "$(jobs_at_once)"

program=("$build/examples/scaling" --out "$out" --catalogues "$catalogues/files/usr/share/locale" ${args[@]+"${args[@]}"})
names=$("${program[@]}" --list)
if [[ " ${args[*]-} " == *" --list "* ]]; then
  echo "$names"
  exit 0
fi
if [ ! -e "$catalogues/complete" ] && grep -q ^catalogues <<<"$names"; then
  command -v apt-get >/dev/null || die "The catalogues come from Debian's packages (there is no apt-get): ${sources[*]}"
  echo "Downloading ${#sources[@]} packages of catalogues"
  mkdir -p "$catalogues/packages"
  (cd "$catalogues/packages" && quietly "$catalogues/download.log" apt-get download "${sources[@]}")
  for package in "$catalogues"/packages/*.deb; do dpkg -x "$package" "$catalogues/files"; done
  rm -rf "$catalogues/packages"
  touch "$catalogues/complete"
fi
if [[ " ${args[*]-} " =~ " --time"[\ =] ]]; then
  OMP_NUM_THREADS=1 exec "${program[@]}"
fi
mkdir -p "$out"
if command -v flock >/dev/null; then  # the workers inherit the lock and hold it while they run
  exec 9>"$out/running"
  flock --nonblock 9 || die "$out: this experiment runs in this directory already. Wait until it ends, or name another directory with --out."
fi
"${program[@]}" --check
workers=()
trap 'kill "${workers[@]}" 2>/dev/null || true' EXIT  # stopping this script stops the runs
for ((i = 0; i < $(nproc); ++i)); do
  OMP_NUM_THREADS=1 "${program[@]}" &
  workers+=($!)
done
failed=
for worker in "${workers[@]}"; do wait "$worker" || failed=yes; done
[ -z "$failed" ] || die "A run failed: see above. Start the same command again to go on."
/usr/bin/env python3 -c 'import matplotlib' 2>/dev/null && python=python3 || python=/usr/bin/python3
"$build/examples/scaling" --list --out "$out" >"$out/names"
"$python" "$top/examples/scaling/page.py" "$out" "$out/scaling.html" --command "examples/run.sh --experiment scaling ${args[*]-}"
echo "wrote $out/scaling.html"
