#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs gshard's benchmarks and those of peers that are installed, in turn, and compares them. Called by run.sh, which builds first."""
import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Name -> its program and its description.
CONTESTS = {
    "moe": ("bench_moe_layer", "a mixture-of-experts layer, and the same by hand in C++ and in PyTorch"),
    "transformer": ("bench_transformer_step", "a training step of a Transformer, and of PyTorch; also on 2 ranks"),
    "decoding": ("bench_decoding", "64 tokens of 4 sequences of a language model, with a cache of keys and values and without"),
    "overhead": ("bench_overhead", "what gshard adds to its kernels"),
    "dry run": ("bench_dry_run", "what it takes to simulate a step on a mesh that is not there"),
    "bandwidth": ("bench_bandwidth", "kernels that do little arithmetic, and a plain copy"),
    "gemm": ("bench_distributed_gemm", "an einsum as a distributed product on 2 ranks, and ScaLAPACK's"),
    "collectives": ("bench_collectives", "communication on 2 ranks, and MPI's own calls"),
    "kernels": ("bench_kernels", "every kernel by itself, in GFLOP/s or GB/s; only with --only"),
}
RATIO = "time / gshard's"
# OpenBLAS chooses its kernels by the processor's model. On some new models it chooses badly.
CORE_TYPES = ("automatic", "SKYLAKEX", "HASWELL")
TIME_A_PRODUCT = """
import array, ctypes, time
try:
    blas = ctypes.CDLL("libopenblas.so.0")
except OSError:
    blas = ctypes.CDLL("libblas.so.3")
n = 1024
a, b, c = ((ctypes.c_float * (n * n)).from_buffer(array.array("f", [1.0]) * (n * n)) for _ in range(3))
one, zero, i = ctypes.c_float(1), ctypes.c_float(0), ctypes.c_int(n)
def product():
    start = time.perf_counter()
    blas.cblas_sgemm(101, 111, 111, i, i, i, one, a, i, b, i, zero, c, i)
    return time.perf_counter() - start
print(min(product() for _ in range(6)))
"""


def contests(build, mpirun, rounds):
    """Name -> commands that take turns; each prints lines of JSON {case, side, seconds: [...]}."""
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else "python3"
    has_torch = subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0
    peer = lambda name, *more: [[python, str(HERE / "peers" / name), str(rounds), *more]] if has_torch else []  # noqa: E731
    ours = lambda name: [str(build / "bench" / CONTESTS[name][0]), str(rounds)]  # noqa: E731
    result = {
        "moe": [ours("moe"), *peer("moe_layer.py")],
        "transformer": [ours("transformer"), *peer("transformer_step.py")],
        "decoding": [ours("decoding")],
        "overhead": [ours("overhead")],
        "dry run": [ours("dry run")],
        "bandwidth": [ours("bandwidth")],
    }
    if mpirun:
        two_threads = [["env", "OMP_NUM_THREADS=2", *command] for command in peer("transformer_step.py", "1", "2")]
        result["transformer, 2 ranks"] = [[*mpirun, "-n", "2", *ours("transformer")], *peer("transformer_step.py", "2"), *two_threads]
        result["gemm, 2 ranks"] = [[*mpirun, "-n", "2", *ours("gemm")]]
        result["collectives, 2 ranks"] = [[*mpirun, "-n", "2", *ours("collectives")]]
    if not has_torch:
        print("PyTorch is not installed (Debian: python3-torch): compared without it", file=sys.stderr)
    return result


def environment(threads, core_type="automatic"):
    """As fair to peers as can be: their memory is kept, and their BLAS is the one that shares threads with them, tuned to the machine."""
    e = dict(os.environ, OMP_NUM_THREADS=str(threads), MALLOC_MMAP_THRESHOLD_=str(8 << 30), MALLOC_TRIM_THRESHOLD_=str(8 << 30))
    blas = Path(f"/usr/lib/{platform.machine()}-linux-gnu/openblas-openmp")
    if blas.exists():
        e["LD_LIBRARY_PATH"] = f"{blas}:{e.get('LD_LIBRARY_PATH', '')}".rstrip(":")
    if core_type != "automatic":
        e["OPENBLAS_CORETYPE"] = core_type
    return e


def time_product(core_type, threads):
    """Seconds of a matrix product by OpenBLAS as this core type; None if it is not installed or the processor cannot execute it."""
    e = dict(environment(threads, core_type), OPENBLAS_NUM_THREADS=str(threads))
    done = subprocess.run([sys.executable, "-c", TIME_A_PRODUCT], capture_output=True, text=True, env=e)
    return float(done.stdout) if done.returncode == 0 else None


def choose_core_type(threads, trial=time_product):
    """The fastest core type, and the trials as text. A setting of the user's is kept; only x86-64 has these types."""
    if "OPENBLAS_CORETYPE" in os.environ:
        return "automatic", f"{os.environ['OPENBLAS_CORETYPE']} (OPENBLAS_CORETYPE is set)"
    if platform.machine() != "x86_64":
        return "automatic", "automatic"
    times = {name: trial(name, threads) for name in CORE_TYPES}
    times = {name: seconds for name, seconds in times.items() if seconds}
    if not times:
        return "automatic", "no OpenBLAS"
    best = min(times, key=times.get)
    return best, f"{best} (1024³ product: {', '.join(f'{name} {1e3 * t:.0f} ms' for name, t in times.items())})"


def machine(build, names):
    """What the numbers of these contests depend on."""
    info = Path("/proc/cpuinfo").read_text()
    model = next((line.split(":")[1].strip() for line in info.splitlines() if line.startswith("model name")), platform.machine())
    autogroup = Path("/proc/sys/kernel/sched_autogroup_enabled")
    programs = sorted({str(build / "bench" / CONTESTS[name][0]) for name in names})
    libraries = subprocess.run(["ldd", *programs], capture_output=True, text=True).stdout
    found = [name for name in ("dnnl", "openblas", "mkl", "blis") if f"lib{name}" in libraries]
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load before": os.getloadavg(),
        "scheduler autogroup": autogroup.read_text().strip() if autogroup.exists() else "none",
        "matrix products": found or ["Eigen"],
    }


def ending(code):
    """How a process ended, in words: launchers give 128 + n for a signal n of their processes."""
    number = -code if code < 0 else code - 128
    try:
        return f"ended by {signal.Signals(number).name} ({signal.strsignal(number)})"
    except ValueError:
        return f"ended with code {code}"


def rows_of(text):
    """The lines of JSON; a process that was ended may leave half a line."""
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            pass


def run_all(chosen, turns, e):
    """Times and facts by case and side, and what failed: a side that fails is not run again, and the others go on."""
    times, facts, failures = defaultdict(lambda: defaultdict(list)), defaultdict(list), {}
    for turn in range(turns):
        for name, commands in chosen.items():
            for command in commands:
                line = " ".join(command)
                if line in failures:
                    continue
                program = next(part for part in command if "bench" in part)
                print(f"[{turn + 1}/{turns}] {name}: {Path(program).name}", file=sys.stderr)
                done = subprocess.run(command, capture_output=True, text=True, env=e)
                if done.returncode != 0:
                    failures[line] = f"{name}: {line}\n  {ending(done.returncode)}"
                    print(f"{failures[line]}\n{done.stderr}", file=sys.stderr)
                for row in rows_of(done.stdout):
                    if "seconds" in row:
                        times[row["case"]][row["side"]] += row["seconds"]
                    else:
                        facts[(row["case"], row["side"])].append(row)
    return times, {key: medians(rows) for key, rows in facts.items()}, list(failures.values())


def medians(rows):
    """One row: medians of the numbers, and what else the first one says."""
    return {key: statistics.median(row[key] for row in rows) if isinstance(value, (int, float)) else value
            for key, value in rows[0].items()}


def spread(seconds):
    ordered = sorted(seconds)
    last = len(ordered) - 1
    return (ordered[round(0.9 * last)] - ordered[round(0.1 * last)]) / statistics.median(ordered)


def table(times):
    rows = []
    for case, sides in times.items():
        if "gshard" not in sides:
            continue
        ours = statistics.median(sides["gshard"])
        for side, seconds in sides.items():
            median = statistics.median(seconds)
            rows.append({"case": case, "side": side, "median ms": 1e3 * median, "least ms": 1e3 * min(seconds),
                         "spread": spread(seconds), RATIO: median / ours, "runs": len(seconds)})
    return rows


def print_table(rows):
    print(f"{'case':32} {'side':20} {'median':>10} {'least':>10} {'spread':>7} {RATIO:>16}")
    before = None
    for r in rows:
        case = r["case"] if r["case"] != before else ""
        before = r["case"]
        ratio = "" if r["side"] == "gshard" else f"{r[RATIO]:.2f}"
        print(f"{case:32} {r['side']:20} {r['median ms']:7.2f} ms {r['least ms']:7.2f} ms {100 * r['spread']:5.0f} % {ratio:>16}")


def print_facts(facts):
    for fact in facts:
        said = ", ".join(f"{key} {value:g}" if isinstance(value, (int, float)) else f"{key} {value}"
                         for key, value in fact.items() if key not in ("case", "side"))
        print(f"{fact['case'] + ':':32} {fact['side']:20} {said}")


def plot(bars):
    """Bars of the time of each side divided by that of gshard, with the line of 1."""
    most = max([1.2] + [min(r[RATIO], 8) for r in bars])
    width, left, line = 860, 420, 24
    at = lambda ratio: left + (width - left - 80) * min(ratio, most) / most  # noqa: E731
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {line * (len(bars) + 2)}" font-family="sans-serif" font-size="13">',
           f'<rect width="{width}" height="{line * (len(bars) + 2)}" fill="white"/>',
           '<text x="10" y="17" font-weight="bold">Time of each side divided by that of gshard</text>']
    for i, r in enumerate(bars):
        y, ratio = line * (i + 1) + 6, r[RATIO]
        out += [f'<text x="10" y="{y + 13}">{r["case"]}: {r["side"]}</text>',
                f'<rect x="{left}" y="{y}" width="{at(ratio) - left:.1f}" height="16" fill="{"#2a7ab0" if ratio >= 1 else "#c0603a"}"/>',
                f'<text x="{at(ratio) + 6:.1f}" y="{y + 13}">{ratio:.2f}</text>']
    out += [f'<line x1="{at(1):.1f}" x2="{at(1):.1f}" y1="{line}" y2="{line * (len(bars) + 1) + 6}" stroke="black" stroke-dasharray="4 3"/>', "</svg>"]
    return "\n".join(out) + "\n"


def run_kernels(program, to, e):
    """Google Benchmark's own table. Whether Debian compiled its library with assertions says nothing about the kernels."""
    with subprocess.Popen([str(program), f"--benchmark_out={to}"], env=e, stderr=subprocess.PIPE, text=True) as run:
        for line in run.stderr:
            if "Library was built as DEBUG" not in line:
                print(line, end="", file=sys.stderr, flush=True)
    return run.returncode


def contest(text):
    """The contests whose names begin so."""
    found = [name for name in CONTESTS if text and name.startswith(text)]
    if not found:
        raise argparse.ArgumentTypeError(f"there is no contest '{text}'; there are {', '.join(CONTESTS)}")
    return found


def count(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"wants a whole number of at least 1, not '{text}'")
    return int(text)


def parse():
    listed = "\n".join(f"  {name:12} {what}" for name, (_, what) in CONTESTS.items())
    options = argparse.ArgumentParser(
        prog="bench/run.sh", allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Builds gshard's benchmarks, runs them and those of peers that are installed, in turn, and compares them.",
        epilog=f"contests:\n{listed}\n\nBuilds in build/release, the first time for a few minutes. All contests then take some minutes more.\n"
               "Results: build/release/bench/results.json and results.svg; of kernels kernels.json.")
    options.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    options.add_argument("--mpirun", default="", help=argparse.SUPPRESS)
    options.add_argument("--targets", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--threads", type=count, default=1, metavar="N", help="OpenMP threads per process (1)")
    options.add_argument("--turns", type=count, default=3, metavar="N", help="how often the sides take turns (3)")
    options.add_argument("--rounds", type=count, default=3, metavar="N", help="runs in every turn (3)")
    options.add_argument("--only", type=contest, metavar="NAME", help="one contest, of those below; the beginning of its name is enough")
    return options.parse_args()


def main():
    a = parse()
    if a.targets:  # run.sh asks which targets to build
        print(*(CONTESTS[name][0] for name in a.only) if a.only else ["gshard_bench"])
        return
    if a.only == ["kernels"]:
        code = run_kernels(a.build / "bench" / "bench_kernels", a.build / "bench" / "kernels.json", environment(a.threads))
        sys.exit(f"bench_kernels {ending(code)}" if code else 0)
    chosen = contests(a.build, a.mpirun.split(), a.rounds)
    if a.only:
        chosen = {name: commands for name, commands in chosen.items() if name.split(",")[0] in a.only}
    if not chosen:
        sys.exit(f"{', '.join(a.only)}: needs mpirun, which is not installed")
    core_type, trials = choose_core_type(a.threads)
    about = dict(machine(a.build, {name.split(",")[0] for name in chosen}), threads=a.threads, **{"OpenBLAS core type": trials})
    times, facts, failures = run_all(chosen, a.turns, environment(a.threads, core_type))
    about["load after"] = os.getloadavg()
    rows = table(times)
    print(", ".join(f"{k}: {v}" for k, v in about.items()))
    if rows:
        print_table(rows)
    print_facts(facts.values())
    written = {"results.json": json.dumps(
        {"machine": about, "rows": rows, "facts": list(facts.values()), "failures": failures, "seconds": times}, indent=1)}
    bars = [r for r in rows if r["side"] != "gshard"]
    (a.build / "bench" / "results.svg").unlink(missing_ok=True)  # it may be from another run
    if bars:
        written["results.svg"] = plot(bars)
    for name, text in written.items():
        (a.build / "bench" / name).write_text(text)
        print(a.build / "bench" / name)
    if failures:
        sys.exit("\n".join(["failed:", *failures]))


if __name__ == "__main__":
    main()
