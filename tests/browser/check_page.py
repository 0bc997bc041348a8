# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_page.py <chromium> <folder of pages> [<folder for pictures>]: opens the pages that write_pages made and checks that nothing is
complained of, that the numbers shown are those of the data, that a keyboard is enough, and that phones and dark rooms are served."""
import json
import os
import sys
from decimal import ROUND_HALF_UP, Decimal

from browser import Browser

problems = []


def check(holds, what):
    if not holds:
        problems.append("%s: %s" % (page, what))


def rounded(x, digits):
    """To so many significant digits, without zeros at the end."""
    if x == 0:
        return "0"
    d = Decimal(x)
    d = d.quantize(Decimal(1).scaleb(d.adjusted() - digits + 1), ROUND_HALF_UP)
    text = format(d, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def scaled(x, base, units):
    u = 0
    while x >= base and u + 1 < len(units):
        x, u = x / base, u + 1
    return x, units[u], u


def as_text(x, unit):
    """What the page should show: written anew, not as the page does it."""
    if unit == "s":
        if x == 0:
            return "0 s"
        for scale, name in ((1, "s"), (1e3, "ms"), (1e6, "\u00b5s"), (1e9, "ns")):
            if x * scale >= 1 or name == "ns":
                return rounded(x * scale, 3) + " " + name
    if unit == "B":
        n, name, u = scaled(x, 1024, ["B", "KiB", "MiB", "GiB", "TiB"])
        return "%s %s" % (Decimal(n).quantize(Decimal("0.1") if u else Decimal(1), ROUND_HALF_UP), name)
    if unit in ("flop", "flop/s"):
        n, name, _ = scaled(x, 1000, ["flop", "kflop", "Mflop", "Gflop", "Tflop", "Pflop"])
        return rounded(n, 3) + " " + name + unit[4:]
    if unit == "B/s":
        n, name, _ = scaled(x, 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"])
        return rounded(n, 3) + " " + name
    if unit == "share":
        return "%s %%" % Decimal(100 * x).quantize(Decimal("0.1"), ROUND_HALF_UP)
    if unit == "years":
        return rounded(x, 3) + " core-years"
    return {"id": str, "count": lambda n: format(n, ","), "flop/B": lambda n: rounded(n, 3)}[unit](x)


def close(shown, expected):
    """Equal, but for the last digit where a product was rounded before."""
    if shown == expected:
        return True
    a, b = shown.split(" ", 1), expected.split(" ", 1)
    return len(a) == len(b) == 2 and a[1] == b[1] and abs(float(a[0]) / float(b[0]) - 1) < 0.01 and a[1] != "%"


def check_numbers(b, run):
    """All numbers with a place in the data, on all pages of all tables: as many as there are."""
    seen = {}
    while True:
        for path, value, unit, text in b.run(
                "[...document.querySelectorAll('data')].map(d => [d.dataset.path, d.value, d.dataset.unit, d.textContent])"):
            expected = run
            for key in path.split("/")[1:]:
                expected = expected[int(key)] if isinstance(expected, list) else expected[key]
            check(float(value) == expected, "%s is %s, the data say %s" % (path, value, expected))
            check(close(text, as_text(expected, unit)), "%s shows %s for %r" % (path, text, expected))
            seen[path] = True
        if not b.run("""[...document.querySelectorAll('button')].filter(n => n.textContent === 'Next' && !n.disabled)
                .map(n => n.click()).length"""):
            break
    for name, keys in (("steps", ("seconds", "flops", "bytes_touched", "bytes_received")), ("kinds", ("seconds", "share", "intensity")),
                       ("links", ("bytes", "seconds")), ("sweep", ("peak",)), ("tracks", ("compute", "communicate", "wait"))):
        for i in range(len(run[name])):
            for key in keys:
                check("/%s/%d/%s" % (name, i, key) in seen, "/%s/%d/%s is not shown" % (name, i, key))
    for i, part in enumerate(run["parts"]):
        check(part["seconds"] == 0 or "/parts/%d/seconds" % i in seen, "part %s is not shown" % part["part"])
    for i, kind in enumerate(run["memory"]["kinds"]):
        check(kind["bytes"] == 0 or "/memory/kinds/%d/bytes" % i in seen, "memory of %s is not shown" % kind["kind"])
    ends = [run["received"].index(f(run["received"])) for f in (min, max)] if run["received"] else []
    for path in ("/seconds", "/devices", "/memory/peak", "/roofs/flops", *("/received/%d" % d for d in ends)):
        check(path in seen, path + " is not shown")
    return len(seen)


def tabs_of(b):
    return b.run("[...document.querySelectorAll('[role=tab]')].map(t => t.id)")


def check_widths(b, width):
    for tab in tabs_of(b):
        b.run("document.getElementById('%s').click()" % tab)
        b.settle()
        wide = b.run("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)")
        check(wide <= width, "%s is %s pixels wide on a screen of %d" % (tab, wide, width))


LUMINANCE = """(css => {
  const box = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  box.fillStyle = css;
  box.fillRect(0, 0, 1, 1);
  const [r, g, b] = [...box.getImageData(0, 0, 1, 1).data].map(x => x / 255)
    .map(x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b;
})"""


def luminances(b):
    return b.run("""(() => {
      const of = %s, all = getComputedStyle(document.documentElement);
      return Object.fromEntries(['ground', 'surface', 'text', 'muted', 'accent', 'bad', 'good']
        .map(n => [n, of(all.getPropertyValue('--' + n))]));
    })()""" % LUMINANCE)


def check_colors(b):
    def contrast(x, y):
        return (max(x, y) + 0.05) / (min(x, y) + 0.05)

    for dark, theme in ((False, ""), (True, ""), (True, "light"), (False, "dark")):
        b.scheme(dark)
        b.run("(t => { t.value = '%s'; t.dispatchEvent(new Event('change')); })(document.getElementById('theme'))" % theme)
        b.settle()
        light = luminances(b)
        is_dark = theme == "dark" or (dark and not theme)
        check((light["ground"] < 0.1) == is_dark, "the ground with colors '%s' on a %s system" % (theme, "dark" if dark else "light"))
        check(b.run(LUMINANCE + "(getComputedStyle(document.body).backgroundColor)") == light["ground"], "the body has another ground")
        for name in ("text", "muted", "accent", "bad", "good"):
            for ground in ("ground", "surface"):
                ratio = contrast(light[name], light[ground])
                check(ratio >= 4.5, "%s on %s has contrast %.2f (%s)" % (name, ground, ratio, "dark" if is_dark else "light"))
    b.run("(t => { t.value = ''; t.dispatchEvent(new Event('change')); })(document.getElementById('theme'))")
    b.scheme(False)


def focused(b, what="id"):
    return b.run("document.activeElement.%s" % what)


def check_keyboard(b):
    b.run("document.activeElement.blur()")
    b.press("Tab")
    check(focused(b, "className") == "skip", "the first key does not reach the skip link, but %s" % focused(b, "outerHTML"))
    check(b.run("document.activeElement.getBoundingClientRect().left >= 0"), "the skip link stays out of sight")
    b.press("Tab")
    check(focused(b) == "theme", "the second key does not reach the colors")
    b.press("Tab")
    tabs = tabs_of(b)
    for key, to in (("Home", 0), ("ArrowRight", 1), ("End", -1), ("ArrowRight", 0), ("ArrowLeft", -1), ("Home", 0)):
        expected = tabs[to]
        b.press(key)
        check(focused(b) == expected, "%s goes to %s, not to %s" % (key, focused(b), expected))
        state = b.run("""[...document.querySelectorAll('[role=tab]')].map(t => [t.id, t.getAttribute('aria-selected'), t.tabIndex,
            document.getElementById(t.getAttribute('aria-controls')).hidden])""")
        for tab, selected, index, hidden in state:
            own = tab == expected
            check((selected == "true", index == 0, not hidden) == (own, own, own),
                  "%s after %s: %s" % (tab, key, (selected, index, hidden)))
        style = b.run("(s => [s.outlineStyle, parseFloat(s.outlineWidth)])(getComputedStyle(document.activeElement))")
        check(style[0] != "none" and style[1] >= 2, "focus cannot be seen")
    b.press("ArrowRight")  # steps

    def sort_times():
        return b.run("[...document.querySelectorAll('#steps-view td data[data-path$=\"/seconds\"]')].map(d => Number(d.value))")

    b.run("[...document.querySelectorAll('#steps-view th button')].find(h => h.textContent === 'Time').focus()")
    for order, reverse in (("descending", True), ("ascending", False)):
        b.press("Enter")
        check(b.run("document.activeElement.parentNode.getAttribute('aria-sort')") == order, "a column is not sorted by the key Enter")
        times = sort_times()
        check(times == sorted(times, reverse=reverse) and len(set(times)) > 3, "times are not " + order)
    b.run("document.getElementById('tab-timeline').click()")
    b.settle()
    if b.run("document.querySelector('canvas') === null"):
        return
    b.run("document.querySelector('canvas').focus()")
    said = [b.run("document.querySelector('.chosen').textContent")]
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "+"):
        b.press(key)
        said.append(b.run("document.querySelector('.chosen').textContent"))
    check(len(set(said)) >= 4 and said[1].startswith("Step "), "the timeline does not say what is chosen: %s" % said)


def check_recomputed(b, run):
    """The timeline says of the spans of compute, one by one, which step they are of, and whether it runs once more."""
    b.run("document.getElementById('tab-timeline').click()")
    b.settle()
    if b.run("document.querySelector('canvas') === null"):
        return
    b.run("document.querySelector('canvas').focus()")
    again = 0
    for span in [s for s in run["tracks"][0]["spans"] if s["what"] == "compute"][:60]:
        b.press("ArrowRight")
        step = run["steps"][span["row"]]
        said = b.run("document.querySelector('.chosen').textContent")
        check(said.startswith("Step %d %s, %s" % (step["step"], step["kind"], step["part"])), "the timeline says: " + said)
        tags = b.run("document.querySelectorAll('.chosen .tag').length")
        check(tags == int(step["recomputed"]), "of a step that runs %s the timeline says: %s" % (
            "once more" if step["recomputed"] else "once", said))
        again += tags
    check(again > 0, "no span runs once more")


def check_names(b):
    nameless = b.run("""[...document.querySelectorAll('button, select, input, a, [role=region], [tabindex="0"]')].filter(n =>
        !(n.textContent.trim() || n.getAttribute('aria-label') || n.getAttribute('aria-labelledby') ||
          n.labels?.[0]?.textContent.trim())).map(n => n.outerHTML)""")
    check(nameless == [], "without a name: %s" % nameless)
    ids = b.run("[...document.querySelectorAll('[id]')].map(n => n.id)")
    check(len(ids) == len(set(ids)), "an id occurs twice")


def check_filters(b, run):
    b.run("document.getElementById('tab-steps').click()")
    b.settle()
    part = max(run["steps"], key=lambda s: s["seconds"])["part"]
    b.run("(s => { s.value = '%s'; s.dispatchEvent(new Event('change')); })(document.querySelector('#steps-view select'))" % part)
    own = [s["seconds"] for s in run["steps"] if s["part"] == part]
    text = b.run("document.querySelector('#steps-view [aria-live]').textContent")
    check(text.startswith("%d of %d steps" % (len(own), len(run["steps"]))), "the filter says: " + text)
    check(as_text(sum(own), "s") in text, "the filter adds up to: " + text)


def held_by(run, tensor, device):
    """What a device holds of a tensor, as a sentence."""
    extents, at, rest = {a["axis"]: a["extent"] for a in run["mesh"]}, {}, device
    for axis in reversed(run["mesh"]):
        rest, at[axis["axis"]] = divmod(rest, axis["extent"])
    words = []
    for dim in tensor["dims"]:
        begin, end = 0, dim["extent"]
        for axis in dim["axes"]:
            block = -(-(end - begin) // extents[axis])
            begin, end = min(end, begin + block * at[axis]), min(end, begin + block * (at[axis] + 1))
        if begin == end:
            return "Device %d holds nothing of it." % device
        words.append("all " + dim["name"] if end - begin == dim["extent"] else
                     "%s %d" % (dim["name"], begin) if end - begin == 1 else "%s %d\u2013%d" % (dim["name"], begin, end - 1))
    return "Device %d holds %s." % (device, ", ".join(words) or "the number")


def check_shards(b, run):
    b.run("document.getElementById('tab-mesh').click()")
    for device in sorted({0, 1, run["devices"] // 2, run["devices"] - 1}):
        b.run("""(f => { f.value = %d; f.dispatchEvent(new Event('change')); })(
            document.querySelector('#mesh-view input[type=number]'))""" % device)
        b.settle()
        cards = b.run("""[...document.querySelectorAll('#mesh-view .grid .card')]
            .map(c => [c.querySelector('.mono').textContent, c.lastChild.textContent])""")
        check(len(cards) >= 3, "%d tensors are drawn" % len(cards))
        for text, said in cards:
            expected = held_by(run, next(t for t in run["tensors"] if t["text"] == text), device)
            check(said == expected, "%s: %s, but %s" % (text, said, expected))
        if run["chips"]:
            chip = run["chip_of"][device] if run["chip_of"] else device // run["cores_per_chip"]
            text = b.run("document.querySelector('#mesh-view [aria-live]').textContent")
            check(text.startswith("Device %d is on chip %d (" % (device, chip)), "of device %d it says: %s" % (device, text))
        marked = b.run("[...document.querySelectorAll('#mesh-view rect.core.here')].map(r => Number(r.dataset.device))")
        check(marked == [device], "marked are %s, not %d" % (marked, device))


def take_pictures(b, folder, name):
    for width, dark in ((1280, False), (1280, True), (360, False)):
        b.scheme(dark)
        for tab in tabs_of(b):
            b.size(width, 900, width < 500)
            b.run("document.getElementById('%s').click()" % tab)
            b.settle()
            b.size(width, min(3000, b.run("document.documentElement.scrollHeight")), width < 500)
            b.screenshot(os.path.join(folder, "%s-%d-%s-%s.png" % (name, width, "dark" if dark else "light", tab[4:])))


chromium, pages = sys.argv[1:3]
count = 0
for page in sorted(p for p in os.listdir(pages) if p.endswith(".html")):
    with Browser(chromium) as b:
        b.size(1280, 900)
        b.open(os.path.join(pages, page))
        text = b.run("document.getElementById('run').textContent")
        run = json.loads(text)
        check(run["format"] == "gshard run 1", "the data have the format " + run["format"])
        check(b.run("document.querySelector('h1').textContent") == run["program"], "the title is not the program's name")
        check(b.run("document.querySelectorAll('main script, h1 *, b, img').length") == 0, "a name has become an element")
        check(len(tabs_of(b)) == (9 if run["sweep"] else 8), "tabs: %s" % tabs_of(b))
        check_keyboard(b)
        check_names(b)
        check_filters(b, run)
        check_shards(b, run)
        b.open(os.path.join(pages, page))
        check_recomputed(b, run)
        check_colors(b)
        check_widths(b, 1280)
        count += check_numbers(b, run)
        b.open(os.path.join(pages, page) + "#links")
        check(b.run("document.querySelector('[aria-selected=true]').id") == "tab-links", "an address with a view does not open it")
        b.size(360, 740, mobile=True)
        check_widths(b, 360)
        b.scheme(True)
        check_widths(b, 360)
        if len(sys.argv) > 3:
            take_pictures(b, sys.argv[3], page[:-5])
        for complaint in b.complaints:
            check(False, complaint)
if count == 0:
    problems.append("there are no numbers to look at")
print("%d numbers are those of the data" % count)
for p in problems[:40]:
    print(p)
sys.exit(1 if problems else 0)
