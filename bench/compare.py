#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs gshard's benchmarks and those of peers that are installed, in turn, and compares them. Called by run.sh, which builds first."""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent


def contests(build, mpirun, rounds):
    """Name -> commands that take turns; each prints lines of JSON {case, side, seconds: [...]}."""
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else "python3"
    has_torch = subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0
    peer = lambda name, *more: [[python, str(HERE / "peers" / name), str(rounds), *more]] if has_torch else []  # noqa: E731
    ours = lambda name: [str(build / "bench" / f"bench_{name}"), str(rounds)]  # noqa: E731
    result = {
        "moe": [ours("moe_layer"), *peer("moe_layer.py")],
        "transformer": [ours("transformer_step"), *peer("transformer_step.py")],
        "overhead": [ours("overhead")],
        "dry run": [ours("dry_run")],
        "bandwidth": [ours("bandwidth")],
    }
    if mpirun:
        two_threads = [["env", "OMP_NUM_THREADS=2", *command] for command in peer("transformer_step.py", "1", "2")]
        result["transformer, 2 ranks"] = [[*mpirun, "-n", "2", *ours("transformer_step")], *peer("transformer_step.py", "2"), *two_threads]
        result["gemm, 2 ranks"] = [[*mpirun, "-n", "2", *ours("distributed_gemm")]]
        result["collectives, 2 ranks"] = [[*mpirun, "-n", "2", *ours("collectives")]]
    if not has_torch:
        print("PyTorch is not installed (Debian: python3-torch): compared without it", file=sys.stderr)
    return result


def environment(threads):
    """As fair to peers as can be: their memory is kept, and their BLAS is the one that shares threads with them."""
    e = dict(os.environ, OMP_NUM_THREADS=str(threads), MALLOC_MMAP_THRESHOLD_=str(8 << 30), MALLOC_TRIM_THRESHOLD_=str(8 << 30))
    blas = Path(f"/usr/lib/{platform.machine()}-linux-gnu/openblas-openmp")
    if blas.exists():
        e["LD_LIBRARY_PATH"] = f"{blas}:{e.get('LD_LIBRARY_PATH', '')}".rstrip(":")
    return e


def machine(build):
    """What the numbers depend on."""
    info = Path("/proc/cpuinfo").read_text()
    model = next((line.split(":")[1].strip() for line in info.splitlines() if line.startswith("model name")), platform.machine())
    autogroup = Path("/proc/sys/kernel/sched_autogroup_enabled")
    libraries = subprocess.run(["ldd", str(build / "bench" / "bench_moe_layer")], capture_output=True, text=True).stdout
    found = [name for name in ("dnnl", "openblas", "mkl", "blis") if f"lib{name}" in libraries]
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load before": os.getloadavg(),
        "scheduler autogroup": autogroup.read_text().strip() if autogroup.exists() else "none",
        "matrix products": found or ["Eigen"],
    }


def run_all(chosen, turns, threads):
    times, facts = defaultdict(lambda: defaultdict(list)), defaultdict(list)
    for turn in range(turns):
        for name, commands in chosen.items():
            for command in commands:
                program = next(part for part in command if "bench" in part)
                print(f"[{turn + 1}/{turns}] {name}: {Path(program).name}", file=sys.stderr)
                done = subprocess.run(command, capture_output=True, text=True, env=environment(threads))
                if done.returncode != 0:
                    sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
                for line in done.stdout.splitlines():
                    row = json.loads(line)
                    if "seconds" in row:
                        times[row["case"]][row["side"]] += row["seconds"]
                    else:
                        facts[(row["case"], row["side"])].append(row)
    return times, {key: medians(rows) for key, rows in facts.items()}


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
                         "spread": spread(seconds), "gshard is faster by": median / ours, "runs": len(seconds)})
    return rows


def print_table(rows):
    print(f"{'case':32} {'side':20} {'median':>10} {'least':>10} {'spread':>7} {'gshard is faster by':>20}")
    before = None
    for r in rows:
        case = r["case"] if r["case"] != before else ""
        before = r["case"]
        ratio = "" if r["side"] == "gshard" else f"{r['gshard is faster by']:.2f}x"
        print(f"{case:32} {r['side']:20} {r['median ms']:7.2f} ms {r['least ms']:7.2f} ms {100 * r['spread']:5.0f} % {ratio:>20}")


def plot(rows):
    """Bars of how much faster gshard is than each side, with the line of 1."""
    bars = [r for r in rows if r["side"] != "gshard"]
    most = max([1.2] + [min(r["gshard is faster by"], 8) for r in bars])
    width, left, line = 860, 420, 24
    at = lambda ratio: left + (width - left - 80) * min(ratio, most) / most  # noqa: E731
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {line * (len(bars) + 2)}" font-family="sans-serif" font-size="13">',
           f'<rect width="{width}" height="{line * (len(bars) + 2)}" fill="white"/>',
           '<text x="10" y="17" font-weight="bold">Time of each side divided by that of gshard</text>']
    for i, r in enumerate(bars):
        y, ratio = line * (i + 1) + 6, r["gshard is faster by"]
        out += [f'<text x="10" y="{y + 13}">{r["case"]}: {r["side"]}</text>',
                f'<rect x="{left}" y="{y}" width="{at(ratio) - left:.1f}" height="16" fill="{"#2a7ab0" if ratio >= 1 else "#c0603a"}"/>',
                f'<text x="{at(ratio) + 6:.1f}" y="{y + 13}">{ratio:.2f}</text>']
    out += [f'<line x1="{at(1):.1f}" x2="{at(1):.1f}" y1="{line}" y2="{line * (len(bars) + 1) + 6}" stroke="black" stroke-dasharray="4 3"/>', "</svg>"]
    return "\n".join(out) + "\n"


def main():
    options = argparse.ArgumentParser(prog="bench/run.sh", description=__doc__)
    options.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    options.add_argument("--mpirun", default="", help=argparse.SUPPRESS)
    options.add_argument("--threads", type=int, default=1, help="OpenMP threads per process (1)")
    options.add_argument("--turns", type=int, default=3, help="how often the sides take turns (3)")
    options.add_argument("--rounds", type=int, default=3, help="runs in every turn (3)")
    options.add_argument("--only", help="one contest: moe, transformer, ...; or kernels: each by itself, in GFLOP/s or GB/s")
    a = options.parse_args()
    if a.only == "kernels":
        kernels = [str(a.build / "bench" / "bench_kernels"), f"--benchmark_out={a.build / 'bench' / 'kernels.json'}"]
        sys.exit(subprocess.run(kernels, env=environment(a.threads)).returncode)
    chosen = contests(a.build, a.mpirun.split(), a.rounds)
    if a.only:
        chosen = {name: commands for name, commands in chosen.items() if name.startswith(a.only)}
    about = dict(machine(a.build), threads=a.threads)
    times, facts = run_all(chosen, a.turns, a.threads)
    about["load after"] = os.getloadavg()
    rows = table(times)
    print(", ".join(f"{k}: {v}" for k, v in about.items()))
    print_table(rows)
    for fact in facts.values():
        print(", ".join(f"{k}: {v}" for k, v in fact.items() if k != "case"), f"({fact['case']})")
    to = a.build / "bench"
    (to / "results.json").write_text(json.dumps({"machine": about, "rows": rows, "facts": list(facts.values()), "seconds": times}, indent=1))
    (to / "results.svg").write_text(plot(rows))
    print(f"{to / 'results.json'}, {to / 'results.svg'}")


if __name__ == "__main__":
    main()
