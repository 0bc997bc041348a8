# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts the faults of a list into a copy of the sources, and runs tests with one of them active at a time. See tests/mutations.sh.

mutations.py list LIST
mutations.py check LIST SOURCE    that each fault's line is in SOURCE, once, and the tests of its entry are there
mutations.py copy LIST SOURCE COPY any|exact    any: faults whose line is nowhere in SOURCE are left out
mutations.py run LIST COPY BUILD JOBS REGEX [NUMBER...]    REGEX: of the names of tests
"""
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HEADERS = Path("include/gshard")


@dataclass
class Fault:
    number: int
    name: str
    file: str = ""
    line: str = ""
    wrong: str = ""
    first: list = field(default_factory=list)

    def fragment(self):
        return self.line.replace("@[", "", 1).replace("]@", "", 1)

    def span(self):
        """Of what is replaced, within the fragment."""
        return self.line.index("@["), self.line.index("]@") - 2

    def replaced(self):
        begin, end = self.span()
        right = self.fragment()[begin:end]
        if right.endswith(";"):
            return f"{{ if (::gshard_mutation({self.number})) {{ {self.wrong} }} else {{ {right} }} }}"
        return f"(::gshard_mutation({self.number}) ? ({self.wrong}) : ({right}))"


def read_list(path):
    faults = []
    for number, text in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        def refuse(why):
            sys.exit(f"{path}:{number}: {why}")

        if not text.strip() or text.startswith("#"):
            continue
        if match := re.fullmatch(r"(\d+) (.+)", text):
            faults.append(Fault(int(match[1]), match[2]))
            continue
        match = re.fullmatch(r"  (file|line|wrong|first)\b ?(.*)", text)
        if not match or not faults:
            refuse("is no line of a fault")
        key, value = match[1], match[2].strip()
        if key == "line" and (value.count("@[") != 1 or value.count("]@") != 1 or value.index("@[") > value.index("]@")):
            refuse("needs one @[ and one ]@ after it")
        if key == "line" and value.index("@[") + 2 == value.index("]@"):
            refuse("replaces nothing")
        setattr(faults[-1], key, value.split() if key == "first" else value)
    if not faults:
        sys.exit(f"{path}: no fault")
    numbers = [f.number for f in faults]
    for f in faults:
        if numbers.count(f.number) > 1 or not 0 < f.number < 1000:
            sys.exit(f"{path}: fault {f.number}: numbers are from 1 to 999, each once")
        if not f.file or not f.line or not f.first:
            sys.exit(f"{path}: fault {f.number} lacks its file, line or first")
        if not f.wrong and not f.fragment()[slice(*f.span())].endswith(";"):
            sys.exit(f"{path}: fault {f.number} lacks what is wrong in place of an expression")
    return faults


def place_of(fault, source, any_place):
    """The header with the line of a fault, or a text that says why there is none."""
    path = source / HEADERS / fault.file
    times = path.read_text(encoding="utf-8").count(fault.fragment()) if path.is_file() else 0
    if times == 1:
        return path, ""
    why = f"occurs {times} times in" if path.is_file() else "cannot be looked for: there is no"
    if any_place:
        texts = [(p, p.read_text(encoding="utf-8").count(fault.fragment())) for p in sorted((source / HEADERS).rglob("*.hpp"))]
        found = [p for p, n in texts if n]
        if len(found) == 1 and dict(texts)[found[0]] == 1:
            return found[0], ""
    return None, f"fault {fault.number}: its line {why} {HEADERS / fault.file}: {fault.fragment()}"


def spans_of(faults, text, name):
    """What the faults of a file replace: begin, end and fault, the last one first."""
    spans = []
    for f in faults:
        begin, end = (text.index(f.fragment()) + at for at in f.span())
        spans.append((begin, end, f))
    spans.sort(key=lambda s: s[0], reverse=True)
    for (later, _, one), (_, end, other) in zip(spans, spans[1:]):
        if end > later:
            sys.exit(f"faults {other.number} and {one.number} replace the same text of {name}")
    return spans


def check(faults, source):
    problems = [problem for f in faults if (problem := place_of(f, source, False)[1])]
    for name in sorted({f.file for f in faults} if not problems else ()):
        spans_of([f for f in faults if f.file == name], (source / HEADERS / name).read_text(encoding="utf-8"), name)
    tests = [str(p.relative_to(source / "tests"))[: -len("_test.cpp")] for p in (source / "tests").rglob("*_test.cpp")]
    tests += ["misuse", "survive/under_faults", "survive/under_faults_mpi"]
    problems += [f"fault {f.number}: no test's name begins with {begin}"
                 for f in faults for begin in f.first if not any(t.startswith(begin) or begin.startswith(t + "/") for t in tests)]
    if problems:
        sys.exit("\n".join(problems) + "\nThe code has changed: change the list tests/mutations/faults.txt, too")
    print(f"{len(faults)} faults fit the sources")


def write_if_new(path, content, mode):
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def names_of(source):
    """The files of a checkout, or of an unpacked archive."""
    if not (source / ".git").exists():
        return [str(p.relative_to(source)) for p in source.rglob("*") if p.is_file() and p.relative_to(source).parts[0] != "build"]
    listed = subprocess.run(["git", "-C", source, "ls-files", "-co", "--exclude-standard", "-z"], check=True, stdout=subprocess.PIPE)
    return [n for n in listed.stdout.decode().split("\0") if n and (source / n).is_file()]


def copy_with_faults(faults, source, copy, any_place):
    names = names_of(source)
    changes, problems = {}, []
    for f in faults:
        path, problem = place_of(f, source, any_place)
        if path:
            changes.setdefault(path.relative_to(source), []).append(f)
        else:
            problems.append(problem)
    if problems and not any_place:
        sys.exit("\n".join(problems) + "\nThe code has changed: change the list tests/mutations/faults.txt, too")
    for name in names:
        content = (source / name).read_bytes()
        if of_file := changes.get(Path(name)):
            text = content.decode()
            for begin, end, f in spans_of(of_file, text, name):
                text = text[:begin] + f.replaced() + text[end:]
            content = text.encode()
        write_if_new(copy / name, content, (source / name).stat().st_mode & 0o777)
    wanted = {copy / n for n in names}
    for path in copy.rglob("*"):
        if path.is_file() and path not in wanted and "__pycache__" not in path.parts:
            path.unlink()
    applied = sorted(f.number for of_file in changes.values() for f in of_file)
    (copy.parent / "applied.json").write_text(json.dumps(applied))
    print(f"{len(applied)} faults are in the copy {copy}")
    for problem in problems:
        print("not applicable:", problem)


class Test:
    def __init__(self, described):
        properties = {p["name"]: p["value"] for p in described.get("properties", [])}
        self.name = described["name"]
        self.command = described.get("command", [])
        self.labels = properties.get("LABELS", [])
        self.directory = properties.get("WORKING_DIRECTORY")
        self.timeout = float(properties.get("TIMEOUT", 600))
        self.environment = dict(e.split("=", 1) for e in properties.get("ENVIRONMENT", []))
        self.fails = properties.get("FAIL_REGULAR_EXPRESSION", [])
        self.seconds = 0.0
        self.reaches = set()

    def is_mpi(self):
        return "mpi" in self.labels

    def is_wanted(self, build):
        if "unit" not in self.labels and not (self.is_mpi() and "/2_ranks" in self.name):
            return False
        ours = [c for c in self.command if c.startswith(str(build))]
        return bool(ours) and all(Path(c).is_file() for c in ours) and "threads" not in self.labels

    def run(self, environment, seconds):
        """Returns an empty text if the test passes, else why it does not; and its output."""
        command = list(self.command)
        if not self.is_mpi() and any(c.startswith("--source-file=") for c in command):
            command.append("--abort-after=1")
        with subprocess.Popen(command, cwd=self.directory, env={**os.environ, **self.environment, **environment}, start_new_session=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            try:
                output = process.communicate(timeout=seconds)[0].decode(errors="replace")
            except subprocess.TimeoutExpired:
                for how in (signal.SIGTERM, signal.SIGKILL):
                    try:
                        os.killpg(process.pid, how)
                        process.communicate(timeout=10)
                        break
                    except (ProcessLookupError, subprocess.TimeoutExpired):
                        continue
                return "hangs", ""
        if process.returncode != 0:
            return "fails" if process.returncode > 0 else f"ends by signal {-process.returncode}", output
        return ("runs nothing" if any(re.search(f, output) for f in self.fails) else ""), output


def tests_of(build):
    described = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, stdout=subprocess.PIPE)
    tests = [Test(t) for t in json.loads(described.stdout)["tests"]]
    return [t for t in tests if t.is_wanted(build)]


def measure(tests, build, jobs):
    """Runs all tests without a fault, to record the faults that each reaches and its time. Unchanged tests are not run again."""
    reached, table = build / "reached", build / "measured.json"
    reached.mkdir(exist_ok=True)
    known = json.loads(table.read_text()) if table.is_file() else {}
    failed, lock = [], threading.Lock()

    def state_of(test):
        return [[c, Path(c).stat().st_mtime_ns] for c in test.command if c.startswith(str(build))] + [test.command]

    def one(test):
        row = known.get(test.name)
        if row and row["state"] == state_of(test):
            test.seconds, test.reaches = row["seconds"], set(row["reaches"])
            return
        file = reached / test.name.replace("/", "-")
        file.unlink(missing_ok=True)
        start = time.monotonic()
        why, output = test.run({"GSHARD_MUTATIONS_REACHED": str(file)}, test.timeout)
        test.seconds = time.monotonic() - start
        if why:
            failed.append(f"{test.name} {why} without a fault")
            (reached / (file.name + ".log")).write_text(output)
        if file.is_file():
            test.reaches = {int(n) for n in file.read_text().split()}
        if not why:
            with lock:
                known[test.name] = {"state": state_of(test), "seconds": test.seconds, "reaches": sorted(test.reaches)}
                table.write_text(json.dumps(known))

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, sorted(tests, key=lambda t: t.is_mpi())))
    return failed


class Runner:
    def __init__(self, tests, build):
        self.tests, self.logs, self.lock = tests, build / "logs", threading.Lock()
        self.logs.mkdir(exist_ok=True)

    def order(self, fault):
        """The tests that come to a fault: those of its entry, then those of its folder, then the others; short ones before long."""
        def rank(test):
            for i, begin in enumerate(fault.first):
                if test.name.startswith(begin):
                    return i, test.seconds
            in_folder = test.name.split("/")[0] == fault.file.split("/")[0]
            return len(fault.first) + (0 if in_folder else 1), test.seconds

        return sorted((t for t in self.tests if fault.number in t.reaches), key=rank)

    def run(self, fault):
        start, active = time.monotonic(), {"GSHARD_MUTATION": str(fault.number)}
        candidates = self.order(fault)
        found = ""
        for test in candidates:
            limit = max(60.0, 10 * test.seconds)
            why, output = test.run(active, limit)
            if why and (test.is_mpi() or why == "hangs") and test.run({}, limit)[0]:
                continue  # it failed for another reason
            if why:
                found = test.name + ("" if why == "fails" else f" ({why})")
                (self.logs / f"{fault.number}.log").write_text(output)
                break
        result = found or ("MISSED" if candidates else "MISSED: no test runs it")
        with self.lock:
            seconds = time.monotonic() - start
            print(f"{fault.number:4} {seconds:7.1f} s  {result:60} {fault.name}", flush=True)
        return result


def run_faults(faults, copy, build, jobs, wanted, only):
    applied = json.loads((copy.parent / "applied.json").read_text())
    chosen = [f for f in faults if f.number in applied and (not only or f.number in only)]
    tests = [t for t in tests_of(build) if re.search(wanted, t.name)]
    if not tests:
        sys.exit(f"no tests are built in {build}")
    begins = tuple(begin for f in chosen for begin in f.first)
    failed, results = [], {}
    print("fault  seconds  found by")
    # Most faults are found by the tests of the entries. The others run only if a fault is missed.
    for some in ([t for t in tests if t.name.startswith(begins)], [t for t in tests if not t.name.startswith(begins)]):
        left = [f for f in chosen if results.get(f.number, "MISSED").startswith("MISSED")]
        if not left or not some:
            continue
        start = time.monotonic()
        wrong = measure(some, build, jobs)
        print(f"{len(some)} tests take {time.monotonic() - start:.0f} s without a fault", flush=True)
        if wrong:
            print("\n".join(wrong) + "\nThese are left out", flush=True)
            some = [t for t in some if not any(w.startswith(t.name + " ") for w in wrong)]
        failed += wrong
        runner = Runner(some, build)
        with ThreadPoolExecutor(jobs) as pool:
            results.update(zip([f.number for f in left], pool.map(runner.run, left)))
    missed = [f for f in chosen if results[f.number].startswith("MISSED")]
    lines = [f"{f.number:4}  {results[f.number] if f.number in results else 'not applicable':60} {f.file:45} {f.name}"
             for f in faults if f.number in results or (not only and f.number not in applied)]
    (build.parent / "results.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(["", *lines, ""]))
    print(f"{len(chosen) - len(missed)} of {len(chosen)} faults are found"
          + (f", {len(faults) - len(applied)} are not applicable" if len(applied) < len(faults) else "")
          + (f", {len(failed)} tests fail without a fault" if failed else ""))
    for f in missed:
        print(f"MISSED: fault {f.number}, {f.file}: {f.name}")
    sys.exit(1 if missed or failed else 0)


def main():
    what, faults = sys.argv[1], read_list(sys.argv[2])
    if what == "list":
        for f in faults:
            print(f"{f.number:4}  {f.file:40} {f.name}")
    elif what == "check":
        check(faults, Path(sys.argv[3]).resolve())
    elif what == "copy":
        copy_with_faults(faults, Path(sys.argv[3]).resolve(), Path(sys.argv[4]).resolve(), sys.argv[5] == "any")
    else:
        run_faults(faults, Path(sys.argv[3]).resolve(), Path(sys.argv[4]).resolve(), int(sys.argv[5]), sys.argv[6],
                   [int(n) for n in sys.argv[7:]])


main()
