// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Charts of the page of a whole run: curves, heat maps and events. Uses page.js.
as_text.plain = x => String(Number(x.toPrecision(4)));
as_text.ratio = x => short(x) + " ×";
as_text.duration = x => {
  const s = Math.round(x), d = Math.floor(s / 86400), h = Math.floor(s / 3600) % 24, m = Math.floor(s / 60) % 60;
  return d ? `${d} d ${h} h` : h ? `${h} h ${m} min` : m ? `${m} min` + (m < 10 ? ` ${s % 60} s` : "") : as_text.s(x);
};
const moment = t => new Date(t * 1000).toISOString().slice(0, 19).replace("T", " ") + " UTC";
const steps_of = (b, i) => {
  const from = b.first + i * b.width, to = Math.min(run.last, from + b.width - 1);
  return from === to ? `Step ${from}` : `Steps ${from}–${to}`;
};
/// Round numbers from 0 or `low` to `high`, at most about n.
const round_ticks = (low, high, n) => {
  const raw = (high - low) / n || 1, ten = 10 ** Math.floor(Math.log10(raw)), unit = [1, 2, 5, 10].find(u => u * ten >= raw * .999) * ten;
  const list = [];
  for (let k = Math.ceil(low / unit - 1e-9); k * unit <= high + unit * 1e-6; ++k) list.push(Number((k * unit).toPrecision(12)));
  return list;
};
/// The scale of an axis: a factor and the unit's name.
const scale_of = (unit, most) => {
  if (unit === "s") return [[1, "s"], [1e3, "ms"], [1e6, "µs"], [1e9, "ns"]].find(([f]) => most * f >= 1) || [1e9, "ns"];
  if (unit === "B") return [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]].map(([f, u]) => [1 / f, u]).find(([f]) => most * f >= 1) || [1, "B"];
  if (unit === "share") return [100, "%"];
  return [1, ""];
};
const axis_left = 74, axis_right = 16, axis_top = 20, axis_bottom = 38;
const x_ticks = (x, width, height) => round_ticks(run.first, run.last, Math.max(2, Math.min(8, width / 110))).filter(Number.isInteger).map(t => [
  svg("line", {class: "axis", x1: x(t), x2: x(t), y1: height - axis_bottom, y2: height - axis_bottom + 5}),
  svg("text", {class: "muted", x: x(t), y: height - axis_bottom + 18, "text-anchor": "middle"}, as_text.count(t))]);
const x_title = (width, height) => svg("text", {class: "muted", x: (axis_left + width - axis_right) / 2, y: height - 4, "text-anchor": "middle"}, "step");
/// The middle of a step, from the first to the last.
const x_scale = width => step => axis_left + (step - run.first + .5) / (run.last - run.first + 1) * (width - axis_left - axis_right);
const middle_of = (b, i) => Math.min(run.last, b.first + i * b.width + b.width - 1) / 2 + (b.first + i * b.width) / 2;

/// Events as marks over a chart: restarts as lines, others as signs on the axes.
const kinds_of_mark = {restart: "--bad", checkpoint: "--c3", straggler: "--c5", not_finite: "--bad", abort: "--bad", load: "--c2"};
const marks = [...run.starts.slice(1).filter(s => s.first !== undefined).map(s => ({kind: "restart", step: s.first, text: `restart, ${moment(s.time)}`})),
  ...run.events.filter(e => e.event in kinds_of_mark && e.step !== null && e.process === (run.events.find(o => o.event === e.event) || e).process)
    .map(e => ({kind: e.event, step: e.step, text: `${e.event.replace("_", " ")}, step ${e.step}, ${moment(e.time)}`}))]
  .filter(m => m.step >= run.first && m.step <= run.last);
/// A mark with its place: lines over the whole height, triangles on the axis, diamonds above the chart.
const mark = (kind, x, top, bottom, ...inside) => kind === "restart"
  ? svg("line", {class: "restart", x1: x, x2: x, y1: top, y2: bottom}, ...inside)
  : svg("path", {class: "mark", style: `--color:var(${kinds_of_mark[kind]})`,
      d: kind === "checkpoint" || kind === "load" ? `M${x} ${bottom - 9}l5 9h-10z` : `M${x} ${top - 13}l5 6l-5 6l-5 -6z`}, ...inside);
const marks_of = (x, height, on_axis = true) => {
  const bottom = height - axis_bottom, taken = {};
  return marks.filter(m => {
    const pixel = m.kind + Math.round(x(m.step) / 4);
    return taken[pixel] || (!on_axis && (m.kind === "checkpoint" || m.kind === "load")) ? false : taken[pixel] = true;
  }).map(m => mark(m.kind, x(m.step), axis_top, bottom, svg("title", {}, m.text)));
};
const mark_legend = () => [...new Set(marks.map(m => m.kind))].map(k => el("li", {}, svg("svg", {viewBox: "0 0 14 12", "aria-hidden": "true"},
  k === "restart" ? mark(k, 7, 0, 12) : mark(k, 7, 13, 11)), k.replace("_", " ")));

/// The paths of a curve: gaps where there is no number.
const pieces = list => {
  const all = [];
  list.forEach((v, i) => {
    if (v === null || v === undefined) return;
    if (i === 0 || list[i - 1] === null || list[i - 1] === undefined) all.push([]);
    all.at(-1).push(i);
  });
  return all;
};

/// A chart over steps that says what is under the cursor: {title, unit, buckets, series: [{name, color, mean, low, high, dashed}]}. Stacked
/// series are drawn on top of each other. Arrow keys move the cursor.
const chart = ({title, unit, buckets, series, from_zero = true, log = false, height = 260}) => {
  const hint = "Point at the chart, or use the arrow keys on it, to read its numbers.";
  const say = el("p", {class: "readout", "aria-live": "polite"}, hint);
  let at = -1, cursor, x;
  const stacked = series.filter(s => s.stacked), tops = stacked.map((s, k) =>
    s.mean.map((v, i) => v === null ? null : stacked.slice(0, k + 1).reduce((sum, o) => sum + (o.mean[i] || 0), 0)));
  const numbers = [...series.filter(s => !s.stacked).flatMap(s => [...s.mean, ...(s.low || []), ...(s.high || [])]), ...tops.flat()]
    .filter(v => v !== null && v !== undefined && (!log || v > 0));
  const draw = width => {
    const least = numbers.reduce((m, v) => Math.min(m, v), Infinity);
    const largest = numbers.reduce((m, v) => Math.max(m, v), -Infinity);
    let [low, high] = numbers.length ? [from_zero ? Math.min(0, least) : least, from_zero ? Math.max(0, largest) : largest] : [0, 1];
    if (high === low) [low, high] = [low - Math.abs(low) * .1, high + Math.abs(high) * .1 || 1];
    const [factor, name] = scale_of(unit, Math.max(Math.abs(high), Math.abs(low)));
    const place = log ? Math.log10 : v => v, a = place(log ? least || 1e-9 : low), b = place(high), room = (b - a) * (log ? .04 : .06) || 1;
    const floor = from_zero && !log && low === 0 ? 0 : a - room, roof = b + room;
    const y = v => axis_top + (1 - (place(Math.max(v, log ? least : -Infinity)) - floor) / (roof - floor)) * (height - axis_top - axis_bottom);
    x = x_scale(width);
    const px = i => x(middle_of(buckets, i)).toFixed(1), py = v => y(v).toFixed(1);
    let ticks = log ? [] : round_ticks(floor * factor, roof * factor, 5);
    if (log) {
      for (let e = Math.floor(floor); e <= Math.ceil(roof); ++e) for (const m of roof - floor > 2.5 ? [1] : roof - floor > 1 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8])
        if (Math.log10(m) + e >= floor && Math.log10(m) + e <= roof) ticks.push(Number((m * 10 ** e * factor).toPrecision(6)));
    }
    // An area reaches over the whole of its first and last point.
    const edge = i => x(Math.min(run.last + 1, buckets.first + i * buckets.width) - .5).toFixed(1);
    const side = (piece, y_of) => [[edge(piece[0]), piece[0]], ...piece.map(i => [px(i), i]), [edge(piece.at(-1) + 1), piece.at(-1)]]
      .map(([left, i]) => `${left} ${py(y_of(i))}`);
    const area = (top, bottom, piece) => "M" + side(piece, top).join("L") + "L" + side(piece, bottom).reverse().join("L") + "Z";
    cursor = svg("line", {class: "cursor", y1: axis_top, y2: height - axis_bottom, visibility: "hidden"});
    const picture_of = svg("svg", {width, height, role: "img", "aria-label": title},
      ...ticks.map(t => [svg("line", {class: "rule", x1: axis_left, x2: width - axis_right, y1: y(t / factor), y2: y(t / factor)}),
        svg("text", {class: "muted", x: axis_left - 8, y: y(t / factor) + 4, "text-anchor": "end"}, `${as_text.plain(t)}${name && " " + name}`)]),
      ...stacked.map((s, k) => pieces(s.mean).map(p => svg("path", {class: "stacked", style: `--color:${s.color}`,
        d: area(i => tops[k][i], i => k ? tops[k - 1][i] || 0 : 0, p)}))),
      ...series.filter(s => !s.stacked && s.low).map(s => pieces(s.low).map(p => svg("path", {class: "band", style: `--color:${s.color}`,
        d: area(i => s.high[i], i => s.low[i], p)}))),
      ...series.filter(s => !s.stacked).map(s => pieces(s.mean).map(p => svg("path", {class: s.dashed ? "curve dashed" : "curve",
        style: `--color:${s.color}`, d: "M" + p.map(i => `${px(i)} ${py(s.mean[i])}`).join("L") + (p.length === 1 ? "h.1" : "")}))),
      svg("line", {class: "axis", x1: axis_left, x2: width - axis_right, y1: height - axis_bottom, y2: height - axis_bottom}),
      ...x_ticks(x, width, height), x_title(width, height), ...marks_of(x, height),
      ...series.flatMap(s => (s.not_finite || []).map(i => svg("text", {class: "bad", x: px(i), y: axis_top + 12, "text-anchor": "middle",
        style: "fill:var(--bad)"}, "NaN", svg("title", {}, `${s.name} is not finite at ${steps_of(buckets, i).toLowerCase()}`)))), cursor);
    show();
    return picture_of;
  };
  const show = () => {
    if (!cursor) return;
    cursor.setAttribute("visibility", at < 0 ? "hidden" : "visible");
    if (at < 0) return void (say.textContent = hint);
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, x(middle_of(buckets, at)));
    const told = series.map(s => {
      const v = s.mean[at];
      if (v === null || v === undefined) return `${s.name} –`;
      const range = s.low && s.low[at] !== s.high[at] ? ` (${as_text[unit](s.low[at])} to ${as_text[unit](s.high[at])})` : "";
      return `${s.name} ${as_text[unit](v)}${range}`;
    });
    const clock = buckets === run.buckets && run.time[at] !== null ? `, ${as_text.duration(run.time[at])} after the start` : "";
    say.textContent = `${steps_of(buckets, at)}${clock}: ${told.join(", ")}`;
  };
  const move = to => {
    at = Math.max(0, Math.min(buckets.count - 1, to));
    show();
  };
  const box = picture(draw);
  fill(box, {tabindex: 0, role: "group", "aria-label": `${title}; arrow keys read its numbers`, on: {
    pointermove: e => x && move(Math.floor((run.first + (e.clientX - box.getBoundingClientRect().left - axis_left) /
      (box.clientWidth - axis_left - axis_right) * (run.last - run.first + 1) - buckets.first) / buckets.width)),
    pointerleave: () => { at = -1; show(); },
    keydown: e => {
      const far = Math.max(1, Math.round(buckets.count / 20));
      const to = {ArrowRight: at + 1, ArrowLeft: at - 1, PageDown: at + far, PageUp: at - far, Home: 0, End: buckets.count - 1}[e.key];
      if (to === undefined) return;
      e.preventDefault();
      move(to);
    }}}, []);
  return el("div", {class: "chart"}, el("ul", {class: "legend"}, ...series.map(s => el("li", {}, key(s.color), s.name)), ...mark_legend()), box, say);
};

/// A picture with a colored cell for each row and part of the steps: {title, rows: [label], value: (row, column) => number or null, unit}.
const heat_map = ({title, rows, value, unit, least = 0, most, row_name}) => {
  const b = run.columns, say = el("p", {class: "readout", "aria-live": "polite"}, "Point at a cell to read its number.");
  const level = v => v === null || v === undefined ? -1 : v <= 0 && least === 0 ? 0 : Math.min(heat_steps, Math.max(1, Math.ceil(heat_steps * (v - least) / (most - least || 1))));
  const pitch = Math.max(3, Math.min(24, 384 / rows.length)), height = axis_top + rows.length * pitch + axis_bottom;
  const draw = width => {
    const x = x_scale(width), edge = i => x(Math.min(run.last + 1, b.first + i * b.width) - .5);
    const cells = [];
    rows.forEach((_, r) => {
      for (let from = 0, to; from < b.count; from = to) {
        const now = level(value(r, from));
        for (to = from + 1; to < b.count && level(value(r, to)) === now; ++to);
        if (now >= 0) cells.push(svg("rect", {x: edge(from).toFixed(1), width: Math.max(.5, edge(to) - edge(from)).toFixed(1),
          y: (axis_top + r * pitch).toFixed(1), height: (pitch > 8 ? pitch - 1 : pitch).toFixed(1), style: `fill:var(--h${now})`}));
      }
    });
    const every = Math.ceil(16 / pitch);
    return svg("svg", {width, height, role: "img", "aria-label": title}, svg("g", {class: "cells"}, ...cells),
      ...rows.map((label, r) => r % every === 0 && svg("text", {class: "muted", x: axis_left - 8, y: axis_top + (r + .5) * pitch + 4, "text-anchor": "end"}, label)),
      svg("line", {class: "axis", x1: axis_left, x2: width - axis_right, y1: height - axis_bottom, y2: height - axis_bottom}),
      ...x_ticks(x, width, height), x_title(width, height), ...marks_of(x, height, false));
  };
  const box = picture(draw);
  fill(box, {on: {pointermove: e => {
    const place = box.getBoundingClientRect(), r = Math.floor((e.clientY - place.top - axis_top) / pitch);
    const c = Math.floor((e.clientX - place.left - axis_left) / (box.clientWidth - axis_left - axis_right) * (run.last - run.first + 1) / b.width);
    if (r < 0 || r >= rows.length || c < 0 || c >= b.count) return;
    const v = value(r, c);
    say.textContent = `${row_name} ${rows[r]}, ${steps_of(b, c).toLowerCase()}: ${v === null || v === undefined ? "–" : as_text[unit](v)}`;
  }}}, []);
  return el("div", {class: "chart"}, el("ul", {class: "legend"}, el("li", {class: "muted"}, "up to"), ...Array.from({length: heat_steps}, (_, h) =>
    el("li", {}, key(`var(--h${h + 1})`), as_text[unit](least + (most - least) * (h + 1) / heat_steps)))), box, say);
};
