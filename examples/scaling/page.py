#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes one HTML page with tables and plots of the scaling experiment. usage: page.py RESULTS PAGE [--note FILE]

RESULTS: the directory that the program `scaling` wrote. FILE: HTML that is placed below the title, such as the conclusions."""
import argparse
import base64
import collections
import html
import io
import json
import pathlib
import statistics

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plot  # noqa: E402  (after the choice of the backend)

matplotlib.rcParams.update({"svg.hashsalt": "gshard", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3, "figure.dpi": 100})
SETS = {"all": "all languages", "high": "third of the languages with most pairs", "low": "third with fewest pairs"}


class Run:
    """One finished run: its settings, its reports, and its last report."""

    def __init__(self, path):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.finished = bool(lines) and lines[-1].get("finished", False)
        if not self.finished:
            return
        self.settings, self.reports = lines[0], lines[1:-1]
        self.arena_bytes = lines[-1]["arena_bytes"]
        self.last = self.reports[-1]

    def loss(self, which):
        return self.last["validation"][which]

    def step_seconds(self):
        return statistics.median(r["step_seconds"] for r in self.reports)

    def is_standard(self):
        s = self.settings
        return s["experts"] == 0 or (s["capacity"], s["balance"], s["second"]) == (2, 0.3, "random")


def read(directory):
    runs = [Run(path) for path in sorted(pathlib.Path(directory).glob("*.jsonl"))]
    return [run for run in runs if run.finished]


def mean_and_range(values):
    values = sorted(values)
    return statistics.mean(values), values[0], values[-1]


def model_name(experts):
    return "dense" if experts == 0 else f"E = {experts}"


def table(head, rows):
    cells = "".join(f"<th>{html.escape(str(h))}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(c))}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def picture(figure, text):
    out = io.BytesIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    plot.close(figure)
    data = base64.b64encode(out.getvalue()).decode()
    return f'<figure><img alt="{html.escape(text)}" src="data:image/svg+xml;base64,{data}"><figcaption>{html.escape(text)}</figcaption></figure>'


def by_model(runs):
    """Runs with the standard settings: {(layers, experts): runs of all seeds}."""
    groups = collections.defaultdict(list)
    for run in runs:
        if run.is_standard():
            groups[run.settings["layers"], run.settings["experts"]].append(run)
    return dict(sorted(groups.items()))


def scaling_table(groups):
    two = {layers: statistics.median(r.step_seconds() for r in runs) for (layers, e), runs in groups.items() if e == 2}
    rows = []
    for (layers, experts), runs in groups.items():
        row = [f"{layers} + {layers}", model_name(experts), len(runs), f"{runs[0].settings['parameters'] / 1e6:.2f} M"]
        for which in SETS:
            mean, low, high = mean_and_range([r.loss(which) for r in runs])
            row.append(f"{mean:.3f} ({low:.3f} to {high:.3f})")
        seconds = statistics.median(r.step_seconds() for r in runs)
        row += [f"{1e3 * seconds:.0f} ms", f"{seconds / two[layers]:.2f}" if layers in two else "", f"{runs[0].arena_bytes / 2**20:.0f} MiB"]
        rows.append(row)
    return table(["layers", "experts", "seeds", "parameters", *SETS.values(), "step", "of E = 2", "activations"], rows)


def scaling_plots(groups):
    pictures = []
    depths = sorted({layers for layers, _ in groups})
    figure, axes = plot.subplots(1, 3, figsize=(12, 3.6), sharex=True)
    for ax, (which, title) in zip(axes, SETS.items()):
        for layers in depths:
            points = [(e, mean_and_range([r.loss(which) for r in runs])) for (l, e), runs in groups.items() if l == layers and e > 0]
            if points:
                x = [e for e, _ in points]
                ax.errorbar(x, [p[0] for _, p in points], yerr=[[p[0] - p[1] for _, p in points], [p[2] - p[0] for _, p in points]],
                            marker="o", capsize=3, label=f"{layers} + {layers} layers")
            if (layers, 0) in groups:
                ax.axhline(statistics.mean(r.loss(which) for r in groups[layers, 0]), linestyle="--", color=f"C{depths.index(layers)}",
                           label=f"dense, {layers} + {layers}")
        ax.set_xscale("log", base=2)
        ax.set_title(title)
        ax.set_xlabel("experts per layer")
    axes[0].set_ylabel("validation loss, nats per token")
    axes[0].legend()
    pictures.append(picture(figure, "Validation loss against experts, at equal operations per token. Bars: range of the seeds."))

    figure, ax = plot.subplots(figsize=(6, 3.6))
    for (layers, experts), runs in groups.items():
        cost = statistics.median(r.step_seconds() for r in runs) * runs[0].settings["steps"]
        ax.plot([cost], [statistics.mean(r.loss("all") for r in runs)], marker="o" if experts else "s", color=f"C{depths.index(layers)}")
        ax.annotate(f"{layers}+{layers} {model_name(experts)}", (cost, statistics.mean(r.loss("all") for r in runs)), fontsize=7,
                    xytext=(4, 3), textcoords="offset points")
    ax.set_xlabel("core seconds of training")
    ax.set_ylabel("validation loss")
    pictures.append(picture(figure, "Quality against cost (the paper's Fig. 1)."))

    figure, ax = plot.subplots(figsize=(6, 3.6))
    for (layers, experts), runs in groups.items():
        if layers == depths[0]:
            steps = [r["step"] for r in runs[0].reports]
            ax.plot(steps, [statistics.mean(run.reports[i]["validation"]["all"] for run in runs) for i in range(len(steps))],
                    label=model_name(experts))
    ax.set_xlabel("training steps")
    ax.set_ylabel("validation loss")
    ax.legend()
    pictures.append(picture(figure, f"Validation loss during training, {depths[0]} + {depths[0]} layers, mean of the seeds."))

    figure, axes = plot.subplots(1, 2, figsize=(10, 3.4))
    for layers in depths:
        points = [(e, runs) for (l, e), runs in groups.items() if l == layers and e > 0]
        x = [e for e, _ in points]
        axes[0].plot(x, [1e3 * statistics.median(r.step_seconds() for r in runs) for _, runs in points], marker="o", label=f"{layers} + {layers} layers")
        axes[1].plot(x, [(4 * runs[0].settings["parameters"] + runs[0].arena_bytes) / 2**20 for _, runs in points], marker="o")
    for ax, label in zip(axes, ["milliseconds per step", "MiB of parameters and activations"]):
        ax.set_xscale("log", base=2)
        ax.set_ylim(bottom=0)
        ax.set_xlabel("experts per layer")
        ax.set_ylabel(label)
    axes[0].legend()
    pictures.append(picture(figure, "Step time and memory against experts, on one device (the paper's Fig. 6 to 8)."))
    return "".join(pictures)


def load_plot(runs):
    chosen = [r for r in runs if r.settings["experts"] == 32 and r.settings["layers"] == 2 and r.is_standard() and r.settings["seed"] == 1]
    if not chosen:
        return ""
    run = chosen[0]
    figure, ax = plot.subplots(figsize=(6, 3.4))
    image = ax.imshow([sorted(r["load"], reverse=True) for r in run.reports], aspect="auto", vmin=0, origin="lower",
                      extent=[0, 32, 0, run.settings["steps"]])
    ax.grid(False)
    ax.set_xlabel("experts, the busiest first")
    ax.set_ylabel("training steps")
    figure.colorbar(image, label="load, 1 = an equal share")
    return picture(figure, "Load of 32 experts during training.")


def settings_table(runs, key, title):
    """Runs with 32 experts that differ in one setting from the standard."""
    standard = {"capacity": 2, "balance": 0.3, "second": "random"}
    rows = []
    for run in runs:
        s = run.settings
        if s["experts"] != 32 or s["layers"] != 2 or s["seed"] != 1 or any(s[k] != v for k, v in standard.items() if k != key):
            continue
        busiest = statistics.mean(max(r["load"]) for r in run.reports[-3:])
        refused = statistics.mean(r["refused"] for r in run.reports[-3:])
        rows.append([s[key], *(f"{run.loss(w):.3f}" for w in SETS), f"{busiest:.2f}", f"{100 * refused:.1f} %"])
    rows.sort(key=lambda row: str(row[0]) if isinstance(row[0], str) else float(row[0]))
    return f"<h3>{title}</h3>" + table([key, *SETS.values(), "busiest expert", "refused choices"], rows) if rows else ""


STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#18202c;background:#fff}
table{border-collapse:collapse;margin:.8rem 0}th,td{border:1px solid #d9dee5;padding:.25rem .6rem;text-align:right}th{background:#f6f7f9}
td:nth-child(-n+2){text-align:left}figure{margin:1rem 0}img{max-width:100%}figcaption{color:#566273;font-size:.9em}"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("page")
    parser.add_argument("--note")
    given = parser.parse_args()
    runs = read(given.results)
    if not runs:
        parser.error(f"{given.results} holds no finished run")
    parts = ["<h1>More experts, better translation, at equal cost?</h1>"]
    if given.note:
        parts.append(pathlib.Path(given.note).read_text())
    for task in sorted({r.settings["task"] for r in runs}):
        mine = [r for r in runs if r.settings["task"] == task]
        s = mine[0].settings
        parts.append(f"<h2>{html.escape(task)}</h2><p>{s['pairs']:,} training pairs of {s['languages']} languages, {s['terms']:,} English texts, "
                     f"{s['steps']} steps. Loss in nats per target token, on held-out pairs.</p>")
        groups = by_model(mine)
        if groups:
            parts += [scaling_table(groups), scaling_plots(groups)]
        parts.append(load_plot(mine))
        for key, title in [("capacity", "Capacity factor"), ("balance", "Weight of the auxiliary loss"), ("second", "Second expert")]:
            parts.append(settings_table(mine, key, title))
    pathlib.Path(given.page).write_text(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Scaling experiment - gshard</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n")


if __name__ == "__main__":
    main()
