# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""examples/scaling/page.py: runs that cannot be compared are refused, by a sentence that says in what they differ."""
import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "scaling"))
try:
    import page
except ImportError:  # of matplotlib
    print("skipped: matplotlib is not installed")
    sys.exit(0)


class Comparisons(unittest.TestCase):
    def page_of(self, *runs, steps=None):
        """The page and the complaint for runs of these numbers of steps and batch sizes."""
        with tempfile.TemporaryDirectory() as name:
            for i, (length, tokens) in enumerate(runs):
                first = {"task": "names", "layers": 2, "experts": 0, "capacity": 2, "balance": 0.1, "policy": "random", "seed": i, "steps": length,
                         "parameters": 10, "pairs": 5, "languages": 2, "terms": 3,
                         "size": {"model": 8, "hidden": 16, "pieces": 20, "batch_tokens": tokens, "groups": 1}}
                reports = [{"step": s, "training_loss": 1.0, "step_seconds": 0.5, "validation": {"all": 2.0, "high": 1.0, "low": 3.0}}
                           for s in range(100, length + 1, 100)]
                lines = [first, *reports, {"finished": True, "arena_bytes": 100}]
                (Path(name) / f"{i}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            out, err = Path(name) / "page.html", io.StringIO()
            args = ["page.py", name, str(out)] + (["--steps", str(steps)] if steps else [])
            with mock.patch.object(sys, "argv", args), contextlib.redirect_stderr(err), contextlib.suppress(SystemExit):
                page.main()
            return (out.read_text() if out.exists() else ""), err.getvalue()

    def test_one_length(self):
        text, complaint = self.page_of((300, 64), (300, 64))
        self.assertEqual(complaint, "")
        self.assertIn("300 steps", text)

    def test_several_lengths(self):
        text, complaint = self.page_of((300, 64), (1200, 64))
        self.assertEqual(text, "")
        self.assertIn("holds runs of 300 and 1,200 steps of the task names. Compare them at the length of the shortest with --steps 300, "
                      "or remove those of one length", complaint)
        text, complaint = self.page_of((300, 64), (1200, 64), steps=300)
        self.assertEqual(complaint, "")
        self.assertIn("Some runs were longer. What came after step 300 is left out.", text)

    def test_several_sizes(self):
        text, complaint = self.page_of((300, 64), (300, 256))
        self.assertEqual(text, "")
        self.assertIn("holds runs of several sizes of the task names: batch_tokens 64 and 256. Remove those of one size", complaint)


if __name__ == "__main__":
    unittest.main()
