#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures what the compiler needs for programs of gshard, and compares it with budget.txt. Called by run.sh."""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
HERE = "bench/compile"
BUDGET = TOP / HERE / "budget.txt"
LIMIT = 1.10
REFERENCE = "Eigen/Core"
# Measure -> its compiler and its description.
MEASURES = {
    "templates": ("g++ 12", "specializations of templates"),
    "allocated": ("g++ 12", "bytes for types, declarations and constant expressions, without garbage collection"),
    "instantiations": ("clang 16", "instantiations of class and function templates"),
    "cpu": ("g++ 12", "user and system seconds"),
    "peak": ("g++ 12", "peak memory"),
}
COUNTS = ("templates", "allocated", "instantiations")  # the same in every run
ABOUT = f"""\
# What compiling costs, divided by what #include <{REFERENCE}> costs in the same run (whose own counts are in the first line; MB).
# bench/compile/run.sh --check fails at {LIMIT:.2f} times these numbers. bench/compile/run.sh --update writes them.
#
# templates       g++ 12, -fmem-report: specializations of templates
# allocated       g++ 12, -fmem-report, with garbage collection off: types, declarations, and the values of constant expressions
# instantiations  clang 16, -ftime-trace: instantiations of class and function templates
# cpu, peak       g++ 12: user and system seconds, and peak memory. Medians of pairs: {REFERENCE}, then the case
#
# The test bench/compile_budget guards CI. It compares templates and allocated; tests/run.sh --clang compares instantiations. These counts
# are the same in every run, and g++ alone has the first two. Both are needed: a program with more layers allocates more, and instantiates
# no more templates. Seconds vary by a tenth and more on a machine that others use, so only run.sh --check compares them.
"""


@dataclass(frozen=True)
class Case:
    name: str
    source: str            # a file, or text of several lines
    flags: tuple = ()
    code: bool = False     # True: measures seconds and peak memory with -O2 and an object file. False: of the front end alone
    budget: bool = True
    in_tests: bool = True  # counted by the test, which may take a minute of CPU time


def first_program():
    """The first C++ block of the README."""
    return re.search(r"^```cpp\n(.*?)^```", (TOP / "README.md").read_text(), re.M | re.S)[1]


def einsums(n, where):
    """n einsums, each over other letters: in a program, or on tensors."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    equations = [f"{a}{b},{b}{c}->{a}{c}" for a, b, c in zip(letters, letters[1:], letters[2:])][:n]
    head = "#include <gshard/gshard.hpp>\nnamespace gs = gshard;\nusing gs::P, gs::none;\n"
    if where == "program":
        calls = "".join(f'x = gs::einsum<"{e}">(x, w);\n' for e in equations)
        return (f'{head}inline constexpr auto model = [](auto& m, auto x) {{ const auto w = m.param("w", "AA", P<none, "x">{{}}, {{}});\n{calls}'
                'return x; };\nusing p = gs::program<model, gs::mesh<gs::axis<"x">>, gs::in<"BA">>;\n'
                "void run(gs::executable<p>& f, const std::vector<float>& x) { f(x); }\n")
    calls = "".join(f'static_cast<void>(gs::einsum<"{e}">(x, w));\n' for e in equations)
    return f'{head}void run(const gs::tensor<float, P<"x", none>>& x, const gs::tensor<float, P<none, "x">>& w) {{\n{calls}}}\n'


def cases():
    compiled = ("-DGSHARD_COMPILED_KERNELS=1",)
    everything = "#include <gshard/gshard.hpp>\n"
    layers = f"{HERE}/moe_transformer.cpp"
    return [
        Case("plan.hpp", "#include <gshard/plan.hpp>\n"),
        Case("gshard.hpp", everything),
        Case("gshard.hpp, compiled", everything, compiled),
        Case("first program", first_program(), code=True, in_tests=False),
        Case("first program, compiled", first_program(), compiled, code=True),
        Case("training step", f"{HERE}/training_step.cpp", in_tests=False),
        Case("language model, compiled", "examples/27_language_model.cpp", compiled),
        Case("6 + 6 layers", layers, ("-DLAYERS=6",)),
        Case("36 + 36 layers", layers, ("-DLAYERS=36",), in_tests=False),
        *(Case(f"{n} einsums, {where}", einsums(n, where), code=True, budget=False) for where in ("program", "tensors") for n in (1, 10, 50)),
    ]


def identify(compiler):
    """"g++ 12", "clang 16"."""
    said = [subprocess.run([compiler, option], capture_output=True, text=True, check=True).stdout for option in ("--version", "-dumpversion")]
    return f"{'clang' if 'clang' in said[0] else 'g++'} {said[1].split('.')[0].strip()}"


class Compiler:
    def __init__(self, command, eigen, work):
        self.command, self.eigen, self.work, self.name = command, eigen, work, identify(command)
        self.is_clang = self.name.startswith("clang")

    def run(self, case, *more):
        """What the compiler prints, and the resources that it used."""
        source = case.source
        if "\n" in source:
            source = self.work / "source.cpp"
            source.write_text(case.source)
        limits = ["-fconstexpr-steps=2000000000"] if self.is_clang else ["-fconstexpr-ops-limit=100000000000", "-fconstexpr-loop-limit=100000000"]
        eigen = [f"-isystem{folder}" for folder in self.eigen.split(";")]
        command = [self.command, "-std=c++20", "-Iinclude", *eigen, "-DGSHARD_HAS_MPI=0", *limits, *case.flags, *more, "-x", "c++", str(source)]
        printed = self.work / "printed.txt"
        with printed.open("w") as to, subprocess.Popen(command, cwd=TOP, stdout=to, stderr=to) as run:
            _, status, used = os.wait4(run.pid, 0)
            run.returncode = os.waitstatus_to_exitcode(status)
        if run.returncode:
            sys.exit(f"{case.name} does not compile: {' '.join(command)}\n{printed.read_text()[-4000:]}")
        return printed.read_text(), used

    def count(self, case):
        """Measure -> what is the same in every run."""
        if self.is_clang:
            trace = self.work / "trace.json"
            self.run(case, "-fsyntax-only", f"-ftime-trace={trace}", "-ftime-trace-granularity=0")
            return {"instantiations": len(re.findall(rb'"name":"Instantiate(?:Class|Function)"', trace.read_bytes()))}
        off = ("--param", "ggc-min-expand=1000000", "--param", "ggc-min-heapsize=100000000")
        return parse_report(self.run(case, "-fsyntax-only", "-fmem-report", *off)[0])

    def cost(self, case):
        used = self.run(case, *(("-O2", "-c", "-o", os.devnull) if case.code else ("-fsyntax-only",)))[1]
        return {"cpu": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss / 1024}


def parse_report(text):
    """g++'s -fmem-report: specializations, and megabytes in use at the end."""
    size = r"\s+(\d+)([kM]?)"
    _, _, used, unit, _, _ = re.search(rf"^Total{size}{size}{size}\s*$", text, re.M).groups()
    return {"templates": sum(int(n) for n in re.findall(r"^(?:decl|type)_specializations: size \d+, (\d+) elements", text, re.M)),
            "allocated": int(used) / {"M": 1, "k": 1024, "": 1024 ** 2}[unit]}


def divide(these, reference):
    return {measure: value / reference[measure] for measure, value in these.items()}


def cost_ratios(compiler, chosen, rounds, known):
    """Adds to `known` (case -> ratios of pairs) and returns the medians. The reference runs before each case, at the same speed of the machine."""
    for turn in range(rounds):
        for case in chosen:
            print(f"[{turn + 1}/{rounds}] {case.name}", file=sys.stderr)
            reference = compiler.cost(reference_case(case.code))
            known.setdefault(case.name, []).append(divide(compiler.cost(case), reference))
    return {name: {measure: statistics.median(pair[measure] for pair in pairs) for measure in pairs[0]} for name, pairs in known.items()}


def read_budget(text):
    """Case -> measure -> ratio; of the reference, its counts."""
    lines = [re.split(r"  +", line.strip()) for line in text.splitlines() if line and not line.startswith("#")]
    return {name: {measure: float(value) for measure, value in zip(lines[0][1:], values) if value != "-"} for name, *values in lines[1:]}


def written(rows):
    """The table: what read_budget() reads."""
    show = lambda name, measure: ("-" if measure not in rows[name] else f"{rows[name][measure]:.0f}" if name == REFERENCE  # noqa: E731
                                  else f"{rows[name][measure]:.3f}")
    lines = ["".join([f"{'case':26}", *(f"  {measure:>14}" for measure in MEASURES)])]
    lines += ["".join([f"{name:26}", *(f"  {show(name, measure):>14}" for measure in MEASURES)]) for name in rows]
    return "\n".join(lines) + "\n"


def grown(budget, rows):
    """A sentence for every case and measure that is over its budget."""
    return [f"{name}: {measure} ({MEASURES[measure][1]}) are {value:.3f} times those of {REFERENCE}, {value / budget[name][measure]:.2f} times the "
            f"budget of {budget[name][measure]:.3f}"
            for name, row in rows.items() if name != REFERENCE
            for measure, value in row.items() if measure in budget.get(name, {}) and value > LIMIT * budget[name][measure]]


def shrunk(budget, rows):
    return [f"{name}: {measure} {value / budget[name][measure]:.2f}" for name, row in rows.items() if name != REFERENCE
            for measure, value in row.items() if measure in budget.get(name, {}) and value * LIMIT < budget[name][measure]]


def why_not_comparable(budget, name, reference=None):
    """Why counts of this compiler say nothing about the budget; empty if they do. Without a reference, by its name alone."""
    measures = [measure for measure in COUNTS if MEASURES[measure][0] == name]
    if not measures:
        return f"the budget is of {' and '.join(sorted({of for of, _ in MEASURES.values()}))}, and this is {name}"
    other = [measure for measure in measures if reference and abs(reference[measure] / budget[REFERENCE][measure] - 1) > 0.01]
    return "" if not other else (f"{REFERENCE} has {reference[other[0]]:.0f} {other[0]} here and {budget[REFERENCE][other[0]]:.0f} in the budget: "
                                 "another version of Eigen or of the standard library")


def reference_case(code=False):
    return Case(REFERENCE, f"#include <{REFERENCE}>\n", code=code)


def count_all(compiler, chosen, rows, reference=None):
    reference = reference or compiler.count(reference_case())
    rows.setdefault(REFERENCE, {}).update(reference)
    for case in chosen:
        rows.setdefault(case.name, {}).update(divide(compiler.count(case), reference))


def judge(budget, rows):
    """Ends the program if a case is over its budget."""
    found = grown(budget, rows)
    if found:
        sys.exit("\n".join([f"over the budget of {BUDGET.relative_to(TOP)}, by more than {100 * LIMIT - 100:.0f} %:", *found]))
    less = shrunk(budget, rows)
    if less:
        print("\n".join(["of the budget, which --update lowers:", *less]))
    print("within the budget")


def parse():
    options = argparse.ArgumentParser(
        prog=f"{HERE}/run.sh", allow_abbrev=False,
        description="What the compiler needs for programs of gshard, divided by what it needs for Eigen/Core: CPU seconds (medians), peak memory, "
                    "and counts that are the same in every run.")
    mode = options.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help=f"fail if a case is over its budget by more than {100 * LIMIT - 100:.0f} %%")
    mode.add_argument("--update", action="store_true", help="write the budget; needs g++ 12 and clang++-16")
    mode.add_argument("--check-counts", action="store_true", help="as --check, only of counts by COMPILER and of cases that take a minute together")
    options.add_argument("--rounds", type=int, default=3, metavar="N", help="runs of each case, in turn (3)")
    options.add_argument("--eigen", default="/usr/include/eigen3", metavar="FOLDER", help="where Eigen is (/usr/include/eigen3)")
    options.add_argument("compiler", nargs="?", default="g++", metavar="COMPILER", help="g++")
    return options.parse_args()


def check_counts(compiler, budget):
    why = why_not_comparable(budget, compiler.name)  # other compilers print other reports, or lack an option
    if not why:
        reference = compiler.count(reference_case())
        why = why_not_comparable(budget, compiler.name, reference)
    if why:
        print(f"skipped: {why}")
        return
    rows = {}
    count_all(compiler, [case for case in cases() if case.budget and case.in_tests], rows, reference)
    print(written(rows))
    judge(budget, rows)


def check_all(compiler, counter, budget, rounds):
    """Counts and costs of all cases with a budget. A cost over its budget is measured twice more: a machine that others use varies."""
    chosen = [case for case in cases() if case.budget]
    rows = {}
    for each in filter(None, (compiler, counter)):
        count_all(each, chosen, rows)
        why = why_not_comparable(budget, each.name, rows[REFERENCE])
        if why:
            sys.exit(why)
    known = {}
    for again in (chosen, *2 * [None]):
        over = {sentence.split(":")[0] for sentence in grown(budget, {name: row for name, row in rows.items() if name in known})}
        medians = cost_ratios(compiler, again or [case for case in chosen if case.name in over], rounds, known)
        for name, row in medians.items():
            rows[name].update(row)
    print(written(rows))
    if not counter:
        print("without instantiations: clang++-16 is not installed")
    judge(budget, rows)


def main():
    a = parse()
    budget = read_budget(BUDGET.read_text()) if BUDGET.exists() else {}
    with tempfile.TemporaryDirectory() as work:
        compiler = Compiler(a.compiler, a.eigen, Path(work))
        if a.check_counts:
            return check_counts(compiler, budget)
        clangs = ["clang++-16"] if a.check or a.update else ["clang++-19", "clang++-16", "clang++"]
        found = next(filter(shutil.which, clangs), None)
        counter = Compiler(found, a.eigen, Path(work)) if found and not compiler.is_clang else None
        if a.check:
            return check_all(compiler, counter, budget, a.rounds)
        if a.update and (compiler.name, counter and counter.name) != ("g++ 12", "clang 16"):
            sys.exit("the budget is of g++ 12 and clang 16")
        chosen = [case for case in cases() if case.budget or not a.update]
        rows = {}
        for each in filter(None, (compiler, counter)):
            count_all(each, chosen, rows)
        for name, row in cost_ratios(compiler, chosen, a.rounds, {}).items():
            rows[name].update(row)
    print(f"{compiler.name}; instantiations: {counter.name if counter else compiler.name}; load {os.getloadavg()[0]:.1f}\n{written(rows)}")
    if a.update:
        BUDGET.write_text(f"{ABOUT}{written(rows)}")


if __name__ == "__main__":
    main()
