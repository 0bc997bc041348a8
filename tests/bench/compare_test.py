# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""bench/compare.py: a side that fails is named and the others go on; peers run as OpenBLAS's fastest core type."""
import os
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import compare  # noqa: E402


def side(name, then=""):
    """A program that prints the line of a side, and half a line, and then does something else."""
    row = f'{{"case": "c", "side": "{name}", "seconds": [1.0, 2.0]}}'
    return [sys.executable, "-c", f"import os, sys\nprint('{row}\\n{{\"case\"', end='', flush=True)\n{then}", "bench"]


class Failures(unittest.TestCase):
    def run_all(self, *commands, turns=2):
        with mock.patch.object(sys, "stderr"):
            return compare.run_all({"contest": list(commands)}, turns, dict(os.environ))

    def test_others_go_on(self):
        times, _, failures = self.run_all(side("first", "os.kill(os.getpid(), 4)"), side("second"), side("third", "sys.exit(7)"))
        self.assertEqual({name: len(seconds) for name, seconds in times["c"].items()}, {"first": 2, "second": 4, "third": 2})
        self.assertEqual(len(failures), 2)
        self.assertIn("ended by SIGILL (Illegal instruction)", failures[0])
        self.assertIn("contest: ", failures[0])
        self.assertIn("ended with code 7", failures[1])

    def test_none(self):
        self.assertEqual(self.run_all(side("first"))[2], [])

    def test_signal_of_a_launched_process(self):
        self.assertIn("SIGSEGV", compare.ending(128 + 11))
        self.assertEqual(compare.ending(1), "ended with code 1")
        self.assertEqual(compare.ending(255), "ended with code 255")


@mock.patch.object(compare.platform, "machine", lambda: "x86_64")
class CoreType(unittest.TestCase):
    def choose(self, times):
        with mock.patch.dict(os.environ):
            os.environ.pop("OPENBLAS_CORETYPE", None)
            return compare.choose_core_type(1, lambda name, _: times.get(name))

    def test_fastest(self):
        best, said = self.choose({"automatic": 0.120, "SKYLAKEX": 0.030, "HASWELL": 0.050})
        self.assertEqual(best, "SKYLAKEX")
        self.assertEqual(said, "SKYLAKEX (1024³ product: automatic 120 ms, SKYLAKEX 30 ms, HASWELL 50 ms)")
        self.assertEqual(compare.environment(1, best)["OPENBLAS_CORETYPE"], "SKYLAKEX")

    def test_one_that_the_processor_cannot_execute(self):
        self.assertEqual(self.choose({"automatic": 0.2, "HASWELL": 0.1})[0], "HASWELL")

    def test_no_openblas(self):
        self.assertEqual(self.choose({}), ("automatic", "no OpenBLAS"))

    def test_setting_of_the_user(self):
        with mock.patch.dict(os.environ, OPENBLAS_CORETYPE="Zen"):
            best, said = compare.choose_core_type(1, lambda *_: self.fail("tried"))
            self.assertEqual(compare.environment(1, best)["OPENBLAS_CORETYPE"], "Zen")
            self.assertIn("Zen", said)


if __name__ == "__main__":
    unittest.main()
