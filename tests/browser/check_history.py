# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_history.py <chromium> <folder of pages> [<folder for pictures>]: opens the pages that write_histories made and checks that nothing
is complained of, that the numbers shown are those of the data, that a keyboard reads the charts, and that phones are served."""
import json
import os
import re
import sys

from browser import Browser

problems = []
count = 0


def check(holds, what):
    if not holds:
        problems.append("%s: %s" % (page, what))


def tabs_of(b):
    return b.run("[...document.querySelectorAll('[role=tab]')].map(t => t.id)")


def show(b, tab):
    b.run("document.getElementById('%s').click()" % tab)
    b.settle()


def check_numbers(b, run):
    """Every number with a place in the data has the value that stands there."""
    seen = set()
    for path, value in b.run("[...document.querySelectorAll('data')].map(d => [d.dataset.path, d.value])"):
        expected = run
        for key in path.split("/")[1:]:
            expected = expected[int(key)] if isinstance(expected, list) else expected[key]
        check(float(value) == expected, "%s is %s, the data say %s" % (path, value, expected))
        seen.add(path)
    wanted = ["/processes", "/restarts", "/checkpoints", "/stragglers"]
    wanted += ["/skipped"] if run["skipped"] else []
    if "steps" in run:
        wanted += ["/last", "/wall", "/mean_step", "/waiting_share", "/peak"]
        wanted += ["/received/%d/bytes" % i for i in range(len(run["received"]))]
        wanted += ["/rows/%d/%s" % (i, key) for i in range(min(32, len(run["rows"]))) for key in ("mean_compute", "waiting_share", "peak")]
    wanted += ["/starts/%d/processes" % i for i in range(len(run["starts"]))]
    for path in wanted:
        check(path in seen, path + " is not shown")
    return len(seen)


def check_charts(b, run):
    """Every chart has axes with numbers inside of its picture; keys read the numbers of its points."""
    for tab in tabs_of(b):
        show(b, tab)
        panel = "#%s-view" % tab[4:]
        charts = b.run("""[...document.querySelectorAll('%s .chart')].map(c => {
            const picture = c.querySelector('svg[role=img]'), box = picture.getBoundingClientRect();
            const texts = [...picture.querySelectorAll(':scope > text')].map(t => [t.textContent, t.getBoundingClientRect()]);
            return [picture.getAttribute('aria-label'), texts.map(t => t[0]),
                texts.filter(([, r]) => r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1).length,
                /NaN|undefined|Infinity/.test([...picture.querySelectorAll('path, rect, line')].map(n => n.outerHTML).join())];
        })""" % panel)
        check(len(charts) > 0 or tab == "tab-events" or "steps" not in run, "%s has no chart" % tab)
        for label, texts, outside, broken in charts:
            check("step" in texts, "%s: the axis of steps has no title" % label)
            check(sum(1 for t in texts if re.match(r"^-?[\d.,]", t)) >= 2, "%s: the axes have these texts: %s" % (label, texts))
            check(outside == 0, "%s: %d texts are outside of the picture" % (label, outside))
            check(not broken, "%s has shapes without a place" % label)
    if "steps" not in run:
        return
    show(b, "tab-time")
    b.run("document.querySelector('#time-view .chart .picture').focus()")
    said = []
    for key in ("Home", "ArrowRight", "End", "ArrowLeft", "End"):
        b.press(key)
        said.append(b.run("document.querySelector('#time-view .readout').textContent"))
    check(re.match(r"Steps? %d\b" % run["first"], said[0]), "the first point says: " + said[0])
    check(re.search(r"\b%d\b" % run["last"], said[2].split(":")[0]), "the last point says: " + said[2])
    check(all("computing" in s and "waiting" in s for s in said), "a point says: %s" % said)
    check(said[2] == said[4], "the keys do not come back")
    if run["buckets"]["count"] > 2:
        check(len(set(said)) == 4, "the keys do not move: %s" % said)
    cells = b.run("[...document.querySelectorAll('#lists-view .cells rect')].length")
    check(cells > 0 or not run["lists"], "the lists have no cells")


def check_events(b, run):
    show(b, "tab-events")
    kind = run["events"][0]["event"]
    b.run("(s => { s.value = '%s'; s.dispatchEvent(new Event('change')); })(document.querySelector('#events-view select'))" % kind)
    rows = b.run("[...document.querySelectorAll('#events-view .card')].map(c => [c.firstChild.textContent, c.querySelectorAll('tbody tr').length])")
    check(["Events", sum(1 for e in run["events"] if e["event"] == kind)] in rows, "of the events %s there are %s" % (kind, rows))
    words = {"no word": "without a word", "finish": "finished"}
    said = b.run("[...document.querySelectorAll('#events-view tbody tr')].map(r => r.lastChild.textContent)")[:len(run["starts"])]
    for start, text in zip(run["starts"], said):
        check(not start["end"] or text == words.get(start["end"], start["end"]), "the end %s says %s" % (start["end"], text))


def check_widths(b, width):
    for tab in tabs_of(b):
        show(b, tab)
        wide = b.run("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)")
        check(wide <= width, "%s is %s pixels wide on a screen of %d" % (tab, wide, width))


def check_names(b):
    nameless = b.run("""[...document.querySelectorAll('button, select, input, a, [role=region], [tabindex="0"]')].filter(n =>
        !(n.textContent.trim() || n.getAttribute('aria-label') || n.getAttribute('aria-labelledby') ||
          n.labels?.[0]?.textContent.trim())).map(n => n.outerHTML)""")
    check(nameless == [], "without a name: %s" % nameless)
    check(b.run("document.querySelectorAll('main script, h1 *, h2 *, main b, main img, main > p, [role=tabpanel] > :not(div, dl, section, p)').length") == 0,
          "a name has become an element")
    check(b.run("[...document.querySelectorAll('[role=tabpanel]')].every(p => [...p.childNodes].every(n => n.nodeType === 1))"),
          "a value of the script has become a text")


def take_pictures(b, folder, name):
    for width, dark in ((1280, False), (1280, True), (360, False)):
        b.scheme(dark)
        for tab in tabs_of(b):
            b.size(width, 900, width < 500)
            show(b, tab)
            b.size(width, min(3000, b.run("document.documentElement.scrollHeight")), width < 500)
            b.screenshot(os.path.join(folder, "%s-%d-%s-%s.png" % (name, width, "dark" if dark else "light", tab[4:])))


chromium, pages = sys.argv[1:3]
for page in sorted(p for p in os.listdir(pages) if p.endswith(".html")):
    with Browser(chromium) as b:
        b.size(1280, 900)
        b.open(os.path.join(pages, page))
        run = json.loads(b.run("document.getElementById('run').textContent"))
        check(run["format"] == "gshard run history 1", "the data have the format " + run["format"])
        check(b.run("document.querySelector('h1').textContent") == run["title"], "the title is not the run's")
        check(len(tabs_of(b)) == (7 if "steps" in run else 2), "tabs: %s" % tabs_of(b))
        check_names(b)
        count += check_numbers(b, run)
        check_charts(b, run)
        check_events(b, run)
        for width, dark in ((1280, False), (1280, True), (360, False), (360, True)):
            b.size(width, 900, mobile=width < 500)
            b.scheme(dark)
            check_widths(b, width)
        if len(sys.argv) > 3:
            b.open(os.path.join(pages, page))
            take_pictures(b, sys.argv[3], page[:-5])
        for complaint in b.complaints:
            check(False, complaint)
if count == 0:
    problems.append("there are no numbers to look at")
print("%d numbers are those of the data" % count)
for p in problems[:40]:
    print(p)
sys.exit(1 if problems else 0)
