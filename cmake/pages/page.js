// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared by all views of a page: the run, numbers as text (in the formats of describe_bytes, describe_seconds and describe_flops),
// elements, tables, pictures and tabs. Pictures are redrawn when the page changes its width or its colors.
"use strict";
const run = JSON.parse(document.getElementById("run").textContent);
const by_id = id => document.getElementById(id);

const scaled = (x, base, units) => {
  let u = 0;
  for (; x >= base && u + 1 < units.length; ++u) x /= base;
  return [x, units[u], u];
};
const short = x => String(Number(x.toPrecision(3)));
const as_text = {
  s(x) {
    if (x === 0) return "0 s";
    const units = ["s", "ms", "µs", "ns"];
    let u = 0;
    for (; x < 1 && u < 3; ++u) x *= 1000;
    return short(x) + " " + units[u];
  },
  B(x) {
    const [n, unit, u] = scaled(x, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
    return n.toFixed(u ? 1 : 0) + " " + unit;
  },
  flop(x) {
    const [n, unit] = scaled(x, 1000, ["flop", "kflop", "Mflop", "Gflop", "Tflop", "Pflop"]);
    return short(n) + " " + unit;
  },
  "flop/s": x => as_text.flop(x) + "/s",
  "B/s"(x) {
    const [n, unit] = scaled(x, 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]);
    return short(n) + " " + unit;
  },
  count: x => x.toLocaleString("en-US"),
  id: String,
  "flop/B": short,
  share: x => (100 * x).toFixed(1) + " %",
  years: x => short(x) + " core-years",
};
/// A time among times that are so far apart.
const time_among = (x, apart) => {
  const [scale, unit] = [[1, "s"], [1e3, "ms"], [1e6, "µs"], [1e9, "ns"]].find(([s]) => apart * s >= .1) || [1e9, "ns"];
  return (x * scale).toFixed(Math.max(0, -Math.floor(Math.log10(apart * scale) + 1e-9))) + " " + unit;
};
const share_of = (part, whole) => as_text.share(whole > 0 ? part / whole : 0);

const fill = (node, attributes, children) => {
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") for (const [event, f] of Object.entries(value)) node.addEventListener(event, f);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.flat(Infinity).filter(c => c !== undefined && c !== null && c !== false));
  return node;
};
const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

/// A number of the run, with its path in the data and its unit: its text is rounded, its value is not.
const number = (path, unit) => {
  let x = run;
  for (const key of path.split("/").slice(1)) x = x[key];
  if (typeof x !== "number") return el("span", {}, "–");
  const exact = unit === "count" || unit === "id" ? false : String(x);
  return el("data", {value: x, "data-path": path, "data-unit": unit, title: exact}, as_text[unit](x));
};

const card = (title, ...content) => el("section", {class: "card"}, el("h2", {}, title), ...content);
const fact = (name, value, note, meter) =>
  el("div", {}, el("dt", {}, name), el("dd", {}, value), note && el("dd", {class: "note"}, note), meter && el("dd", {}, meter));
const meter = x => el("div", {class: "meter", "aria-hidden": "true"},
  el("i", {class: x > 1 ? "over" : "", style: `width:${Math.min(100, 100 * x).toFixed(2)}%`}));
const color = n => `var(--c${n % 9 + 1})`;
const key = c => el("i", {class: "key", style: `--color:${c}`, "aria-hidden": "true"});
const parts = run.parts.map(p => p.part);
const color_of_part = part => color(Math.max(0, parts.indexOf(part)));
const choice = (label, options, change, selected) => {
  const box = el("select", {on: {change: () => change(box.value)}},
    ...options.map(([value, text]) => el("option", {value, selected: value === selected}, text)));
  return el("label", {}, label, box);
};
const most_of = (list, amount) => list.reduce((most, x) => Math.max(most, amount(x)), 0);
const heat_steps = 8;
const heat = (x, most) => x <= 0 || most <= 0 ? 0 : Math.min(heat_steps, Math.max(1, Math.ceil(heat_steps * x / most)));

/// Calls draw(width) for a new picture in the box now and whenever its width or the colors change.
const pictures = new Map();
const resized = new ResizeObserver(entries => requestAnimationFrame(() => {
  for (const {target} of entries) redraw(target);
}));
const redraw = (box, always = false) => {
  const p = pictures.get(box), width = Math.floor(box.clientWidth);
  if (!p || width < 40 || (!always && p.width === width)) return;
  p.width = width;
  const drawn = p.draw(width);
  if (box.firstChild !== drawn) box.replaceChildren(drawn);  // an unchanged picture keeps the focus
};
const picture = (draw, wide = false) => {
  const box = el("div", {class: wide ? "picture wide" : "picture"});
  if (wide) fill(box, {tabindex: 0, role: "group", "aria-label": "Picture, scrolls sideways"}, []);
  pictures.set(box, {draw, width: 0});
  resized.observe(box);
  return box;
};

/// A table whose columns sort by a button each: {label, text: row => content, by: row => its sort key, number: right-aligned,
/// least: its least width}.
/// Shows `page` rows at once; the returned function shows the rows that pass a test.
const table = ({caption, columns, rows, sort = -1, down = true, page = 100}) => {
  const body = el("tbody"), heads = columns.map((c, i) => el("th", {scope: "col", class: c.number ? "number" : ""},
    c.by ? el("button", {type: "button", on: {click: () => sort_by(i)}}, c.label) : c.label));
  const say = el("span", {"aria-live": "polite", class: "muted"});
  const back = el("button", {type: "button", on: {click: () => turn(-1)}}, "Previous");
  const on = el("button", {type: "button", on: {click: () => turn(1)}}, "Next");
  let shown = rows, first = 0;
  const show = () => {
    body.replaceChildren(...shown.slice(first, first + page).map(r => el("tr", {},
      ...columns.map(c => el("td", {class: c.number ? "number" : "", style: c.least && `min-width:${c.least}`}, c.text(r))))));
    back.disabled = first === 0;
    on.disabled = first + page >= shown.length;
    say.textContent = shown.length ? `Rows ${first + 1} to ${Math.min(first + page, shown.length)} of ${shown.length}` : "No rows";
    heads.forEach((h, i) => i === sort ? h.setAttribute("aria-sort", down ? "descending" : "ascending") : h.removeAttribute("aria-sort"));
  };
  const order = () => {
    if (sort < 0) return;
    const by = columns[sort].by, way = down ? -1 : 1;
    shown = [...shown].sort((a, b) => {
      const x = by(a), y = by(b);
      return way * (typeof x === "string" ? x.localeCompare(y) : x - y);
    });
  };
  const sort_by = i => {
    down = i === sort ? !down : Boolean(columns[i].number);
    sort = i;
    first = 0;
    order();
    show();
  };
  const turn = way => {
    first = Math.max(0, first + way * page);
    show();
  };
  const filter = test => {
    shown = rows.filter(test);
    first = 0;
    order();
    show();
    return shown;
  };
  filter(() => true);
  const node = el("div", {},
    el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": caption},
      el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...heads)), body)),
    rows.length > page && el("div", {class: "controls"}, back, on, say));
  return [node, filter];
};

/// Tabs: arrow keys, Home and End go from one to the next; the address keeps the one that is open.
const open_tab = (tab, focus = true) => {
  for (const t of document.querySelectorAll("[role=tab]")) {
    const on = t === tab;
    t.setAttribute("aria-selected", on);
    t.tabIndex = on ? 0 : -1;
    by_id(t.getAttribute("aria-controls")).hidden = !on;
  }
  if (focus) tab.focus();
  tab.scrollIntoView({block: "nearest", inline: "nearest"});
};
const start_tabs = () => {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const from_address = () => tabs.find(t => "#" + t.id.slice(4) === location.hash);
  const go = tab => {
    open_tab(tab);
    history.replaceState(null, "", "#" + tab.id.slice(4));
  };
  for (const [i, tab] of tabs.entries()) {
    tab.addEventListener("click", () => go(tab));
    tab.addEventListener("keydown", e => {
      const n = tabs.length, to = {ArrowRight: (i + 1) % n, ArrowLeft: (i + n - 1) % n, Home: 0, End: n - 1}[e.key];
      if (to === undefined) return;
      e.preventDefault();
      go(tabs[to]);
    });
  }
  addEventListener("hashchange", () => from_address() && open_tab(from_address(), false));
  open_tab(from_address() || tabs[0], false);
};

/// The theme: light, dark, or that of the system. Stored if the browser permits it for a file.
const start_theme = () => {
  const box = by_id("theme"), redraw_all = () => pictures.forEach((_, p) => redraw(p, true));
  const set = theme => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    redraw_all();
  };
  try { box.value = localStorage.getItem("gshard-theme") || ""; } catch { box.value = ""; }
  set(box.value);
  box.addEventListener("change", () => {
    set(box.value);
    try { localStorage.setItem("gshard-theme", box.value); } catch { return; }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw_all);
};
const color_now = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
