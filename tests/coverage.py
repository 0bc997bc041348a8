# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of a gcovr report by folder of include/gshard: coverage.py coverage.json [--bar LINES BRANCHES]. See tests/coverage.sh."""
import json
import sys
from collections import defaultdict

# Folders that mostly the compiler runs.
PLANNER = ("base", "ir", "trace", "grad", "nn", "optim", "pass")


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


def read(path):
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    files = {}
    for entry in report["files"]:
        name = entry["file"].split("include/gshard/", 1)[1]
        files[name] = total = Sum()
        for line in entry["lines"]:
            if line.get("gcovr/noncode"):
                continue
            total.lines += 1
            total.lines_run += line["count"] > 0
            branches = [branch for branch in line["branches"] if not branch["throw"]]
            total.branches += len(branches)
            total.branches_run += sum(branch["count"] > 0 for branch in branches)
    return files


def main():
    files = read(sys.argv[1])
    folders = defaultdict(Sum)
    run, planner, everything = Sum(), Sum(), Sum()
    for name, total in files.items():
        folder = name.split("/")[0] if "/" in name else "."
        folders[folder].add(total)
        everything.add(total)
        (planner if folder in PLANNER else run).add(total)
    print("By folder:")
    for name, total in sorted(folders.items()):
        print(f"  {name:22} {total.text()}" + ("   mostly run by the compiler" if name in PLANNER else ""))
    print("The 25 files with the least lines:")
    for name, total in sorted(files.items(), key=lambda item: item[1].rank())[:25]:
        print(f"  {name:46} {total.text()}")
    print(f"Without the planner      {run.text()}")
    print(f"The planner at run time  {planner.text()}")
    print(f"All of include/          {everything.text()}")


if __name__ == "__main__":
    main()
