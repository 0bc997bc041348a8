#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes one HTML page with tables and plots of the scaling experiment.

RESULTS: the directory that the program `scaling` wrote. Runs that it lists in the file `names` and that are not finished are named."""
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

matplotlib.rcParams.update({"svg.hashsalt": "gshard", "svg.fonttype": "none", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3, "figure.dpi": 100})
SETS = {"all": "all languages", "high": "third of the languages with most pairs", "low": "third with fewest pairs"}


class Run:
    """One finished run: its settings, its reports, and its last report."""

    def __init__(self, path, steps):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.finished = bool(lines) and lines[-1].get("finished", False)
        if not self.finished:
            return
        self.settings, self.reports = lines[0], lines[1:-1]
        self.was_longer = bool(steps) and self.settings["steps"] > steps
        if steps:
            self.settings["steps"] = min(steps, self.settings["steps"])
            self.reports = [r for r in self.reports if r["step"] <= steps]
        self.arena_bytes = lines[-1]["arena_bytes"]
        self.last = self.reports[-1]

    def loss(self, which):
        return self.last["validation"][which]

    def step_seconds(self):
        return statistics.median(r["step_seconds"] for r in self.reports)

    def is_standard(self):
        s = self.settings
        return s["experts"] == 0 or (s["capacity"], s["balance"], s["policy"]) == (2, 0.1, "random")


def read(directory, steps):
    runs = [Run(path, steps) for path in sorted(pathlib.Path(directory).glob("*.jsonl"))]
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


def seconds_of(runs):
    return statistics.median(r.step_seconds() for r in runs)


def by_model(runs):
    """Runs with the standard settings: {(layers, experts): runs of all seeds}."""
    groups = collections.defaultdict(list)
    for run in runs:
        if run.is_standard():
            groups[run.settings["layers"], run.settings["experts"]].append(run)
    return dict(sorted(groups.items()))


def scaling_table(groups):
    two = {layers: seconds_of(runs) for (layers, e), runs in groups.items() if e == 2}
    rows = []
    for (layers, experts), runs in groups.items():
        row = [f"{layers} + {layers}", model_name(experts), len(runs), f"{runs[0].settings['parameters'] / 1e6:.2f} M"]
        for which in SETS:
            mean, low, high = mean_and_range([r.loss(which) for r in runs])
            row.append(f"{mean:.3f} ({low:.3f} to {high:.3f})")
        seconds = seconds_of(runs)
        row += [f"{1e3 * seconds:.0f} ms", f"{seconds / two[layers]:.2f}" if layers in two else "", f"{runs[0].arena_bytes / 2**20:.0f} MiB"]
        rows.append(row)
    return table(["layers", "experts", "seeds", "parameters", *SETS.values(), "step", "of E = 2", "activations"], rows)


def findings(groups):
    """Sentences that follow from the numbers: does more experts mean less loss, beyond the seeds, and at which cost?"""
    sentences = []
    for layers in sorted({layers for layers, _ in groups}):
        models = {e: runs for (l, e), runs in groups.items() if l == layers}
        depth = f"{layers} + {layers} layers"
        for which, title in SETS.items():
            loss = {e: mean_and_range([r.loss(which) for r in runs]) for e, runs in models.items()}
            order = [e for e in loss if e > 0]
            if len(order) > 1:
                falls = all(loss[b][0] < loss[a][0] for a, b in zip(order, order[1:]))
                sentences.append(f"{depth}, {title}: the mean loss {'falls' if falls else 'does not always fall'} as experts are added: "
                                 + ", ".join(f"{loss[e][0]:.3f} (E = {e})" for e in order) + ".")
            if 0 in loss and order:
                best = min(order, key=lambda e: loss[e][0])
                apart = loss[best][2] < loss[0][1] or loss[0][2] < loss[best][1]
                seeds = min(len(models[0]), len(models[best]))
                ranges = "with one seed, ranges cannot be compared" if seeds < 2 else \
                    f"the ranges of {seeds} seeds {'do not overlap' if apart else 'overlap'}"
                difference = loss[best][0] - loss[0][0]
                sentences.append(f"{depth}, {title}: the best number of experts, {best}, is {abs(difference):.3f} nats per token "
                                 f"{'better' if difference < 0 else 'worse'} than the dense model; {ranges}.")
        if {2, 128} <= models.keys():
            ratio = seconds_of(models[128]) / seconds_of(models[2])
            sentences.append(f"{depth}: a step with 128 experts takes {ratio:.2f} times as long as with 2; the goal of at most 1.25 is "
                             f"{'met' if ratio <= 1.25 else 'missed'}.")
    return "<h3>What the numbers say</h3><ul>" + "".join(f"<li>{html.escape(s)}</li>" for s in sentences) + "</ul>" if sentences else ""


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
        cost = seconds_of(runs) * runs[0].settings["steps"]
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
        axes[0].plot(x, [1e3 * seconds_of(runs) for _, runs in points], marker="o", label=f"{layers} + {layers} layers")
        axes[1].plot(x, [(4 * runs[0].settings["parameters"] + runs[0].arena_bytes) / 2**20 for _, runs in points], marker="o")
    for ax, label in zip(axes, ["core milliseconds per step", "MiB of parameters and activations"]):
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
    standard = {"capacity": 2, "balance": 0.1, "policy": "random"}
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


INTRODUCTION = """<p>The experiment of the GShard paper (arXiv 2006.16668) in small: texts of many languages into English, by Transformers
of equal width and depth. Every second feed-forward layer has E experts, of which a token visits two; the dense model has two such layers side
by side there. Therefore all models compute equally many operations per token, except for the gate, empty slots and the optimizer, which
updates all experts. Validation pairs are fixed and held out; their sources occur in no training pair. The languages with the most and with
the fewest training pairs are also validated apart. Times are those of one core, without the time that other programs took.</p>"""


def not_done(directory, runs):
    """The runs of the experiment that this page does not have, as the program listed them."""
    listed = pathlib.Path(directory) / "names"
    if not listed.exists():
        return ""
    names = listed.read_text().split()
    missing = [n for n in names if n not in {r.settings["name"] for r in runs}]
    if not missing:
        return f"<p>All {len(names)} runs of the experiment were done.</p>"
    return (f"<p>Of the {len(names)} runs of the whole experiment, {len(names) - len(missing)} were done. Nothing here says anything about "
            f"the others.</p><details><summary>{len(missing)} runs that were not done</summary><p>{html.escape(', '.join(missing))}</p></details>")


STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#18202c;background:#fff}
table{border-collapse:collapse;margin:.8rem 0}th,td{border:1px solid #d9dee5;padding:.25rem .6rem;text-align:right}th{background:#f6f7f9}
td:nth-child(-n+2){text-align:left}figure{margin:1rem 0}img{max-width:100%}figcaption{color:#566273;font-size:.9em}"""


def differences(runs):
    """The parts of the size in which runs differ, with their values."""
    sizes = [r.settings["size"] for r in runs]
    values = {key: sorted({size[key] for size in sizes}) for key in sizes[0]}
    return ", ".join(f"{key} {' and '.join(map(str, each))}" for key, each in values.items() if len(each) > 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("page")
    parser.add_argument("--command", help="the command that made the results")
    parser.add_argument("--steps", type=int, help="leave out what came after this step: runs of several lengths are then compared")
    given = parser.parse_args()
    runs = read(given.results, given.steps)
    if not runs:
        parser.error(f"{given.results} holds no finished run")
    parts = ["<h1>More experts, better translation, at equal cost?</h1>", INTRODUCTION]
    if given.command:
        parts.append(f"<p>Made by</p><pre>{html.escape(given.command)}</pre>")
    parts.append(not_done(given.results, runs))
    if any(r.was_longer for r in runs):
        parts.append(f"<p>Some runs were longer. What came after step {given.steps} is left out.</p>")
    for task in sorted({r.settings["task"] for r in runs}):
        mine = [r for r in runs if r.settings["task"] == task]
        s = mine[0].settings
        if any("size" not in r.settings for r in mine):
            parser.error(f"{given.results} holds runs of another version of this program; remove them, or name another directory")
        lengths = sorted({r.settings["steps"] for r in mine})
        if len(lengths) > 1:
            parser.error(f"{given.results} holds runs of {' and '.join(f'{n:,}' for n in lengths)} steps of the task {task}. Compare them at the "
                         f"length of the shortest with --steps {lengths[0]}, or remove those of one length")
        if any(r.settings["size"] != s["size"] for r in mine):
            parser.error(f"{given.results} holds runs of several sizes of the task {task}: {differences(mine)}. Remove those of one size")
        parts.append(f"<h2>{html.escape(task)}</h2><p>{s['pairs']:,} training pairs of {s['languages']} languages, {s['terms']:,} English texts, "
                     f"{s['steps']} steps of about {s['size']['batch_tokens']:,} source and target positions, in {s['size']['groups']} "
                     f"group{'s' if s['size']['groups'] > 1 else ''}. Models of width {s['size']['model']}, hidden width {s['size']['hidden']}, "
                     f"{s['size']['pieces']:,} word pieces. Loss in nats per target token, on held-out pairs.</p>")
        groups = by_model(mine)
        if groups:
            parts += [scaling_table(groups), findings(groups), scaling_plots(groups)]
        parts.append(load_plot(mine))
        for key, title in [("capacity", "Capacity factor"), ("balance", "Weight of the auxiliary loss"), ("policy", "Routing policy")]:
            parts.append(settings_table(mine, key, title))
    pathlib.Path(given.page).write_text(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Scaling experiment - gshard</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n")


if __name__ == "__main__":
    main()
