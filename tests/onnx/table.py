#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes docs/guides/onnx-models.md from the output of `gshard-onnx sweep`.

usage: gshard-onnx sweep /usr/share/libonnx-testdata/data --most 40 | tests/onnx/table.py > docs/guides/onnx-models.md
"""
import re
import sys
from collections import defaultdict

models = []  # folder, name, outcome, text
runs = 0
for line in sys.stdin:
    if found := re.match(r"([a-z-]+)/(\w+): (passed|refused|contradictory|WRONG)[:,]? ?(.*)", line):
        models.append(found.groups())
    elif found := re.match(r"(\d+) runs$", line):
        runs = int(found[1])

folders = defaultdict(lambda: [0, 0, 0, 0, 0])
refusals = defaultdict(list)
for folder, name, outcome, text in models:
    counts = folders[folder]
    counts[("passed", "refused", "contradictory", "WRONG").index(outcome)] += 1
    counts[4] += outcome == "passed" and "computed while importing" in text
    if outcome == "refused":
        # The sentence without the node, which differs between models of one kind.
        refusals[re.sub(r' \((of|node) "[^"]*"\)', "", text)].append(name)

print("# Models of ONNX's test data")
print()
print("Which models of ONNX's test data gshard runs, and the sentences with which it refuses the others.")
print()
print("The models and data are those of Debian's package `libonnx-testdata` 1.12. A model passes if its outputs are the expected ones on one")
print("device and on meshes of 2, 3 and 2 x 2 simulated devices. On each mesh, at most 40 shardings of its inputs are run.")
print("[ONNX models](onnx.md#checks) has the tolerance. Models whose inputs are all shapes and indices are computed while importing.")
print(f"{runs:,} runs were compared. This page is made by `tests/onnx/table.py`.")
print()
print("| folder | models | passed | of these, computed while importing | refused | data contradict the model | wrong |")
print("|---|---|---|---|---|---|---|")
total = [0, 0, 0, 0, 0]
for folder, counts in sorted(folders.items()):
    total = [a + b for a, b in zip(total, counts)]
    print(f"| {folder} | {sum(counts[:4])} | {counts[0]} | {counts[4]} | {counts[1]} | {counts[2]} | {counts[3]} |")
print(f"| all | {sum(total[:4])} | {total[0]} | {total[4]} | {total[1]} | {total[2]} | {total[3]} |")
print()
print("## Refused")
print()
print("| models | sentence |")
print("|---|---|")
for text, names in sorted(refusals.items(), key=lambda item: (-len(item[1]), item[0])):
    print(f"| {len(names)}, such as `{min(names, key=len)}` | {text.replace('|', '/')} |")
for folder, name, outcome, text in models:
    if outcome == "contradictory":
        print()
        print(f"`{folder}/{name}`: {text}.")
wrong = [m for m in models if m[2] == "WRONG"]
if wrong:
    print()
    print("## Wrong")
    print()
    for folder, name, _, text in wrong:
        print(f"- {folder}/{name}: {text}")
