# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/compile/budget.py: growth by 12 % fails and is named, growth by 8 % passes; other compilers and headers are skipped with a reason."""
import contextlib
import io
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "compile"))
import budget  # noqa: E402

REFERENCE = {"templates": 10000, "allocated": 100.0, "instantiations": 5000}
RATIOS = {"templates": 2.0, "allocated": 1.5, "instantiations": 4.0, "cpu": 1.2, "peak": 1.1}
CHOSEN = [case for case in budget.cases() if case.budget]
BUDGET = {budget.REFERENCE: REFERENCE, **{case.name: RATIOS for case in CHOSEN}}


class Made:
    """A compiler whose numbers are those of the budget, but for one case and measure."""
    def __init__(self, name="g++ 12", case="", measure="", times=1.0, reference=1.0, until=99):
        self.name, self.case, self.measure, self.times, self.reference, self.until = name, case, measure, times, reference, until
        self.is_clang, self.counted, self.costs = name.startswith("clang"), 0, 0

    def numbers(self, case, measures, units, times):
        if case.name == budget.REFERENCE:
            return {m: self.reference * units[m] for m in measures}
        return {m: self.reference * units[m] * RATIOS[m] * (times if (case.name, m) == (self.case, self.measure) else 1) for m in measures}

    def count(self, case):
        self.counted += 1
        return self.numbers(case, ["instantiations"] if self.is_clang else ["templates", "allocated"], REFERENCE, self.times)

    def cost(self, case):
        self.costs += case.name == self.case
        return self.numbers(case, ["cpu", "peak"], {"cpu": 2.0, "peak": 170.0}, self.times if self.costs <= self.until else 1)


def outcome(f, *arguments):
    """What is printed, and the text with which the program ends, if it fails."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), mock.patch.object(sys, "stderr"):
        try:
            f(*arguments)
        except SystemExit as e:
            return said.getvalue(), e.code
    return said.getvalue(), None


class Check(unittest.TestCase):
    def all(self, compiler=None, counter=None):
        return outcome(budget.check_all, compiler or Made(), counter, BUDGET, 3)

    def counts(self, compiler, of=BUDGET):
        return outcome(budget.check_counts, compiler, of)

    def test_within(self):
        printed, failed = self.all(counter=Made("clang 16"))
        self.assertIsNone(failed)
        self.assertIn("within the budget", printed)

    def test_growth_by_12_percent_fails(self):
        for measure, (compiler, _) in budget.MEASURES.items():
            made = Made(compiler, "training step", measure, 1.12)
            _, failed = self.all(counter=made) if made.is_clang else self.all(made)
            self.assertRegex(failed, f"training step: {measure} .*1.12 times the budget", measure)
            self.assertEqual(len(failed.splitlines()), 2, failed)

    def test_growth_by_8_percent_passes(self):
        for measure in ("templates", "allocated", "cpu", "peak"):
            self.assertIsNone(self.all(Made("g++ 12", "training step", measure, 1.08))[1], measure)

    def test_test_of_counts(self):
        for compiler, measure in (("g++ 12", "templates"), ("g++ 12", "allocated"), ("clang 16", "instantiations")):
            self.assertIsNone(self.counts(Made(compiler))[1])
            self.assertIn(f"plan.hpp: {measure}", self.counts(Made(compiler, "plan.hpp", measure, 1.12))[1])

    def test_seconds_over_the_budget_are_measured_again(self):
        self.assertIsNone(self.all(Made("g++ 12", "plan.hpp", "cpu", 1.3, until=3))[1])

    def test_counts_that_are_not_comparable(self):
        for made in (Made("g++ 14"), Made("clang 19"), Made(reference=1.05)):
            printed, failed = self.counts(made)
            self.assertRegex(printed, "^skipped: ", made.name)
            self.assertEqual(made.counted, 1 if made.name == "g++ 12" else 0, made.name)
            self.assertIsNone(failed)
            self.assertIsNotNone(self.all(made)[1])

    def test_less_is_told(self):
        printed, failed = self.counts(Made("g++ 12", "plan.hpp", "templates", 0.8))
        self.assertIsNone(failed)
        self.assertIn("plan.hpp: templates 0.80", printed)


class Texts(unittest.TestCase):
    def test_table(self):
        self.assertEqual(budget.read_budget(budget.ABOUT + budget.written(BUDGET)), BUDGET)

    def test_committed_budget(self):
        of = budget.read_budget(budget.BUDGET.read_text())
        self.assertEqual(set(of), {budget.REFERENCE, *(case.name for case in CHOSEN)})
        for case in CHOSEN:
            self.assertEqual(set(of[case.name]), set(budget.MEASURES), case.name)

    def test_report(self):
        text = ("Total        100 200 300 words\nTotal           117M        102M       1548k\n"
                "decl_specializations: size 16381, 9555 elements, 1.26 collisions\ntype_specializations: size 8191, 5683 elements, 1.75 collisions\n")
        self.assertEqual(budget.parse_report(text), {"templates": 15238, "allocated": 102.0})

    def test_first_program(self):
        self.assertIn("int main()", budget.first_program())


if __name__ == "__main__":
    unittest.main()
