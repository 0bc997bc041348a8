#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds the site: the pages of docs/ and the reference. Fails on warnings and dead links. See --help.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../cmake/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/packages.sh"

case ${1:-} in
  --help | -h)
    echo "usage: docs/build.sh [FOLDER]   writes the site to FOLDER (build/site); its first page is index.html"
    exit 0 ;;
esac
site=${1:-$top/build/site}
packages=()  # none of those that the tests need
need_packages doxygen cmd:doxygen

mkdir -p "$site/examples"
site=$(cd "$site" && pwd)
cd "$top"
{ cat docs/Doxyfile; echo "OUTPUT_DIRECTORY = \"$site\""; } | doxygen - || die "doxygen has warnings"
cp examples/[0-9]*.cpp "$site/examples"
cp docs/scaling.html "$site"
cd "$site"
sed -i -E 's%href="(\.\./)+examples/%href="examples/%g; s%href="(\.\./|docs/)+scaling\.html%href="scaling.html%g' ./*.html

dead=()
while read -r link; do
  [ -e "$link" ] || dead+=("$link")
done < <(grep -ohE 'href="[^"#]+' ./*.html | sed 's/^href="//' | grep -v : | sort -u)
[ ${#dead[@]} -eq 0 ] || die "Dead links:" "${dead[@]}"
echo "$(find . -name '*.html' | wc -l) pages, no dead links: $site/index.html"
