# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of the reports of llvm-cov by folder of include/gshard: coverage.py DIRECTORY LIST. See tests/coverage.sh."""
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

# Folders that are mostly executed by the compiler.
PLANNER = ("core", "ops", "moe/layer", "moe/routing", "models", "train", "sim/search")
KERNELS = "*_kernel.hpp"


class Sum:
    def __init__(self):
        self.lines = self.lines_run = self.branches = self.branches_run = 0

    def add(self, other):
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def text(self):
        def part(run, all_of_them):
            return f"{run:6} / {all_of_them:6} {100 * run / all_of_them if all_of_them else 100:6.1f} %"

        return f"lines {part(self.lines_run, self.lines)}   branches {part(self.branches_run, self.branches)}"

    def rank(self):
        return self.lines_run / self.lines if self.lines else 1


def short(path):
    return path.split("include/gshard/", 1)[1] if "include/gshard/" in path else None


def read_lines(path, files):
    """Adds to files[name][line]: how often it ran."""
    name = None
    for text in path.read_text(encoding="utf-8").splitlines():
        if text.startswith("SF:"):
            name = short(text[3:])
        elif text.startswith("DA:") and name:
            line, count = text[3:].split(",")[:2]
            files[name][int(line)] += int(count)


def read_branches(path, files):
    """Adds to files[name][line, column]: how often the condition was true, and false, in all instances of a template."""
    for entry in json.loads(path.read_text(encoding="utf-8"))["data"][0]["files"]:
        if name := short(entry["filename"]):
            for line, column, _, _, true, false, *_ in entry["branches"]:
                both = files[name][line, column]
                both[0] += true
                both[1] += false


def room(name):
    """The folder of a header, at most two levels deep; of kernels of operations, one for all."""
    return KERNELS if name.endswith("_kernel.hpp") else "/".join(name.split("/")[:-1][:2]) or "."


def is_planner(folder):
    return folder != "models/decode" and any(folder == p or folder.startswith(p + "/") for p in PLANNER)


def ranges(lines):
    texts = []
    for line in sorted(lines):
        if texts and line == texts[-1][1] + 1:
            texts[-1][1] = line
        else:
            texts.append([line, line])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in texts)


def main():
    lines, branches = defaultdict(Counter), defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for path in sorted(Path(sys.argv[1]).iterdir()):
        read_lines(path, lines) if path.suffix == ".lcov" else read_branches(path, branches)
    files = {}
    with open(sys.argv[2], "w", encoding="utf-8") as missing:
        for name, counts in sorted(lines.items()):
            conditions = branches[name]
            files[name] = total = Sum()
            total.lines, total.lines_run = len(counts), sum(count > 0 for count in counts.values())
            total.branches, total.branches_run = 2 * len(conditions), sum(n > 0 for both in conditions.values() for n in both)
            print(f"{name}: {total.text()}", file=missing)
            print(f"  lines that did not run: {ranges(line for line, count in counts.items() if count == 0)}", file=missing)
            for wanted, index in ("true", 0), ("false", 1):
                places = sorted(place for place, both in conditions.items() if both[index] == 0)
                print(f"  never {wanted} (line:column): {' '.join(f'{line}:{column}' for line, column in places)}", file=missing)
    folders = defaultdict(Sum)
    run, planner, everything = Sum(), Sum(), Sum()
    for name, total in files.items():
        folder = room(name)
        folders[folder].add(total)
        everything.add(total)
        (planner if is_planner(folder) else run).add(total)
    print("By folder:")
    for name, total in sorted(folders.items()):
        print(f"  {name:22} {total.text()}" + ("   mostly run by the compiler" if is_planner(name) else ""))
    print("The 25 files with the least lines:")
    for name, total in sorted(files.items(), key=lambda item: item[1].rank())[:25]:
        print(f"  {name:46} {total.text()}")
    print(f"Without the planner      {run.text()}")
    print(f"The planner at run time  {planner.text()}")
    print(f"All of include/          {everything.text()}")


if __name__ == "__main__":
    main()
