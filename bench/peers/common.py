# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the PyTorch peers have in common. Threads must be set before torch is imported: its libraries read them once."""
import json
import os
import sys
import time

THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))
for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(THREADS)
os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx512" if "avx512f" in open("/proc/cpuinfo").read() else "avx2")

import torch  # noqa: E402

torch.set_num_threads(THREADS)


def report(case, side, run, rounds, prints=True):
    """Runs once uncounted, then `rounds` times, and prints one line of JSON as gshard's benchmarks do."""
    seconds = []
    for i in range(-1, rounds):
        start = time.perf_counter()
        run()
        if i >= 0:
            seconds.append(time.perf_counter() - start)
    if prints:
        print(json.dumps({"case": case, "side": side, "seconds": seconds}), flush=True)


def rounds(default=3):
    return int(sys.argv[1]) if len(sys.argv) > 1 else default
