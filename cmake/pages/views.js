// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Overview, steps, roofline, memory, comparison and sources of a simulated run: tables and simple charts.
const steps = run.steps.map((s, i) => ({...s, path: `/steps/${i}`}));
const all_seconds = steps.reduce((sum, s) => sum + s.seconds, 0);
const mesh_text = run.mesh.map(a => `${a.axis} ${a.extent}`).join(" × ");
const ranges = devices => {
  const list = [], most = 6;
  for (let i = 0, end; i < devices.length; i = end) {
    for (end = i + 1; end < devices.length && devices[end] === devices[end - 1] + 1;) ++end;
    list.push(end > i + 1 ? `${devices[i]}–${devices[end - 1]}` : String(devices[i]));
  }
  return list.slice(0, most).join(", ") + (list.length > most ? `, … (${devices.length} in all)` : "");
};
const track_name = t => (t.devices.length === 1 ? "Device " : "Devices ") + ranges(t.devices);
const unnumbered = text => text.replace(/%\d+ /g, "");
/// The operands and results of a step; lines end between tensors. Groups of equal steps lack the numbers of the tensors.
const operands = s => s.text.slice(s.kind.length).trim().replace(/-> /g, "->\u00a0").split(/ +(?=%|->)/)
  .map(piece => [el("span", {class: "piece"}, s.count ? unnumbered(piece) : piece), " "]);
const once_more = () => el("span", {class: "tag"}, "once more");
const operation = s => [el("span", {}, el("strong", {}, s.kind), s.recomputed && once_more(),
  s.at && el("span", {class: "muted at"}, " ", s.at)), el("div", {class: "mono muted"}, operands(s))];
const step_columns = {
  step: {label: "Step", text: s => number(s.path + "/step", "id"), by: s => s.step, number: true},
  operation: {label: "Operation", least: "16rem", text: operation, by: s => s.text},
  part: {label: "Part", text: s => el("span", {class: "nowrap"}, key(color_of_part(s.part)), s.part), by: s => s.part},
  bound: {label: "Bound by", text: s => s.bound, by: s => s.bound},
  seconds: {label: "Time", text: s => number(s.path + "/seconds", "s"), by: s => s.seconds, number: true},
  share: {label: "Share", text: s => share_of(s.seconds, all_seconds), by: s => s.seconds, number: true},
  flops: {label: "Work", text: s => number(s.path + "/flops", "flop"), by: s => s.flops, number: true},
  touched: {label: "Memory", text: s => number(s.path + "/bytes_touched", "B"), by: s => s.bytes_touched, number: true},
  received: {label: "Network", text: s => number(s.path + "/bytes_received", "B"), by: s => s.bytes_received, number: true},
  why: {label: "Why", least: "11rem", text: s => s.why, by: s => s.why},
};
const bar = (label, segments, whole) => el("div", {class: "bar", role: "img", "aria-label": label + ": " +
    segments.map(s => `${s.name} ${share_of(s.amount, whole)}`).join(", ")},
  ...segments.map(s => el("i", {title: `${s.name}: ${share_of(s.amount, whole)}`,
    style: `--color:${s.color};flex:${whole > 0 ? s.amount / whole : 0} 1 0`})));

/// Groups of steps that are equal except for the numbers of their tensors.
const alike = () => {
  const groups = new Map();
  for (const s of steps) {
    const name = [unnumbered(s.text), s.at, s.part, s.bound].join("\n"), group = groups.get(name);
    if (!group) groups.set(name, {...s, count: 1, recomputed: false});
    else {
      group.count += 1;
      group.seconds += s.seconds;
    }
  }
  return [...groups.values()];
};
/// The activities of a device, with their names and colors.
const doings = [{what: "compute", name: "Computing", color: "var(--c1)"}, {what: "communicate", name: "Sending", color: "var(--c6)"},
  {what: "wait", name: "Waiting", color: "var(--idle)"}];

const overview = panel => {
  const received = choose => number(`/received/${run.received.indexOf(choose(...run.received))}`, "B");
  const memory = run.memory, track = run.tracks[0], part_seconds = run.parts.reduce((sum, p) => sum + p.seconds, 0);
  const rate = run.seconds > 0 ? run.flops / run.seconds : 0, communicate = as_text.count(steps.filter(s => s.bytes_received > 0).length);
  panel.append(el("dl", {class: "facts"},
    fact("Time of a step", number("/seconds", "s"), run.seconds > 0 && `${short(1 / run.seconds)} steps a second`),
    fact("Devices", number("/devices", "count"), mesh_text),
    fact("Memory of the fullest device", number("/memory/peak", "B"), memory.capacity > 0
      ? [memory.peak > memory.capacity ? el("span", {class: "bad"}, "does not fit in ") : "of ", number("/memory/capacity", "B"),
        ` (${share_of(memory.peak, memory.capacity)})`]
      : "no limit given", memory.capacity > 0 && meter(memory.peak / memory.capacity)),
    fact("Work of a device", number("/flops", "flop"), as_text["flop/s"](rate) +
      (run.roofs.flops > 0 ? `, ${share_of(rate, run.roofs.flops)} of its roof` : "")),
    fact("Received by a device", number("/bytes_received", "B"), `${communicate} of ${as_text.count(steps.length)} steps communicate`),
    run.received.length > 0 && fact("Received, as counted", received(Math.max),
      ["at most, ", received(Math.min), ` at least, of ${as_text.count(run.received.length)} devices`]),
    track && fact("Sending", number("/tracks/0/communicate", "s"),
      `${share_of(track.communicate, run.seconds)} of the step, ${track_name(track).toLowerCase()}`)));

  const own = run.parts.map((p, i) => ({...p, path: `/parts/${i}/seconds`, color: color(i)})).filter(p => p.seconds > 0);
  const [part_table] = table({caption: "Time by part", rows: own, sort: 1, columns: [
    {label: "Part", text: p => [key(p.color), p.part], by: p => p.part},
    {label: "Time", text: p => number(p.path, "s"), by: p => p.seconds, number: true},
    {label: "Share", text: p => share_of(p.seconds, part_seconds), by: p => p.seconds, number: true}]});
  const breakdown = card("Where the time goes",
    bar("Time by part", own.map(p => ({name: p.part, amount: p.seconds, color: p.color})), part_seconds), part_table);

  const [device_table] = table({caption: "Time by what devices do; alike ones together", page: 8,
    rows: run.tracks.map((t, i) => ({...t, path: `/tracks/${i}/`, name: track_name(t)})), columns: [
      {label: "Devices", least: "8rem", by: t => t.devices[0],
        text: t => [t.name, bar(t.name, doings.map(d => ({...d, amount: t[d.what]})), run.seconds)]},
      ...doings.map(d => ({label: d.name, number: true, by: t => t[d.what], text: t => number(t.path + d.what, "s")}))]});
  const caption = "Steps that do the same at the same place of the program, together";
  const [longest] = table({caption, sort: 4, page: 10, rows: alike(), columns: [step_columns.operation,
    {label: "Steps", number: true, by: s => s.count, text: s => as_text.count(s.count)}, step_columns.part, step_columns.bound,
    {label: "Time", number: true, by: s => s.seconds, text: s => as_text.s(s.seconds)}, step_columns.share]});
  panel.append(el("div", {class: "grid"}, breakdown, card("What devices do",
      el("ul", {class: "legend"}, ...doings.map(d => el("li", {}, key(d.color), d.name))), device_table)),
    card("What takes longest", longest));
};

const all_steps = panel => {
  const wanted = {part: "", bound: "", text: ""}, total = el("p", {class: "muted", "aria-live": "polite"});
  const c = step_columns;
  const [node, filter] = table({caption: "Steps of the plan, as one device runs them", rows: steps, page: 50,
    columns: [c.step, c.operation, c.part, c.bound, c.seconds, c.share, c.flops, c.touched, c.received, c.why]});
  const apply = () => {
    const text = wanted.text.toLowerCase();
    const rows = filter(s => (!wanted.part || s.part === wanted.part) && (!wanted.bound || s.bound === wanted.bound) &&
      (!text || `${s.text} ${s.why} ${s.at}`.toLowerCase().includes(text)));
    const seconds = rows.reduce((sum, s) => sum + s.seconds, 0);
    total.textContent = `${rows.length} of ${steps.length} steps, ${as_text.s(seconds)} together ` +
      `(${share_of(seconds, all_seconds)} of the seconds of all steps, each alone)`;
  };
  const choose = (label, what, all) => choice(label, [["", "all"], ...[...new Set(all)].sort().map(x => [x, x])], x => {
    wanted[what] = x;
    apply();
  });
  const search = el("input", {type: "search", size: 18, on: {input: () => {
    wanted.text = search.value;
    apply();
  }}});
  apply();
  panel.append(card("Steps", el("div", {class: "controls", role: "search", "aria-label": "Filter steps"},
    choose("Part", "part", steps.map(s => s.part)), choose("Bound by", "bound", steps.map(s => s.bound)),
    el("label", {}, "Text", search)), total, node));
};

// Ticks of a logarithmic axis: powers of ten.
const decades = (from, to) => {
  const ticks = [];
  for (let e = Math.ceil(from); e <= Math.floor(to); ++e) ticks.push(e);
  return ticks;
};
const roof_plot = width => {
  const roofs = run.roofs, dots = steps.filter(s => s.flops > 0 && s.bytes_touched > 0 && s.seconds > 0)
    .map(s => ({s, x: Math.log10(s.flops / s.bytes_touched), y: Math.log10(s.flops / s.seconds), share: s.seconds / all_seconds}));
  const height = 320, left = 78, right = 16, top = 14, bottom = 44, ridge = Math.log10(roofs.flops / roofs.memory_bytes);
  const xs = [...dots.map(d => d.x), ridge], ys = [...dots.map(d => d.y), Math.log10(roofs.flops)];
  const x0 = Math.min(...xs) - .6, x1 = Math.max(...xs) + .6, y0 = Math.min(...ys) - .5, y1 = Math.max(...ys) + .3;
  const x = v => left + (v - x0) / (x1 - x0) * (width - left - right), y = v => top + (y1 - v) / (y1 - y0) * (height - top - bottom);
  const roof = v => Math.min(Math.log10(roofs.flops), v + Math.log10(roofs.memory_bytes));
  const under = v => Math.max(y0, roof(v)), start = Math.max(x0, y0 - Math.log10(roofs.memory_bytes));
  const ticks = [...decades(x0, x1).map(e => [svg("line", {class: "rule", x1: x(e), x2: x(e), y1: top, y2: height - bottom}),
    svg("text", {class: "muted", x: x(e), y: height - bottom + 16, "text-anchor": "middle"}, short(10 ** e))]),
    ...decades(y0, y1).map(e => [svg("line", {class: "rule", x1: left, x2: width - right, y1: y(e), y2: y(e)}),
      svg("text", {class: "muted", x: left - 6, y: y(e) + 4, "text-anchor": "end"}, as_text["flop/s"](10 ** e))])];
  const label = `Roofline of ${dots.length} steps; the table below has the numbers by operation`;
  return svg("svg", {width, height, role: "img", "aria-label": label}, ...ticks,
    svg("path", {class: "roof", d: `M${x(start)} ${y(under(start))}L${x(ridge)} ${y(roof(ridge))}L${x(x1)} ${y(roof(x1))}`}),
    svg("text", {x: width - right, y: y(roof(x1)) - 6, "text-anchor": "end"}, as_text["flop/s"](roofs.flops)),
    ...dots.map(d => svg("circle", {class: "dot", cx: x(d.x), cy: y(d.y), r: 4 + 18 * Math.sqrt(d.share)},
      svg("title", {}, `Step ${d.s.step}, ${d.s.kind}: ${short(10 ** d.x)} flop/B, ` +
        `${as_text["flop/s"](10 ** d.y)}, ${as_text.s(d.s.seconds)}`))),
    svg("text", {class: "muted", x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle"}, "flop a byte of memory"));
};
const at_roof = k => {
  const of = (amount, roof) => roof > 0 ? amount / roof : 0;
  return Math.min(k.seconds, Math.max(of(k.flops, run.roofs.flops), of(k.bytes_touched, run.roofs.memory_bytes), k.network));
};
const roofline = panel => {
  const ideal = steps.reduce((sum, s) => sum + at_roof(s), 0);
  panel.append(el("dl", {class: "facts"},
    fact("Arithmetic", number("/roofs/flops", "flop/s"), "the highest rate at which a step is priced"),
    fact("Memory", number("/roofs/memory_bytes", "B/s"), "read and written by a device"),
    fact("Network", number("/roofs/link_bytes", "B/s"), "received by a device at best"),
    fact("With every step at its roof", as_text.s(ideal), `${share_of(ideal, run.seconds)} of the step's time; the network as it is`)));
  const [node] = table({caption: "By kind of operation", rows: run.kinds.map((k, i) => ({...k, path: `/kinds/${i}/`})), columns: [
    {label: "Operation", text: k => k.kind, by: k => k.kind},
    ...[["Steps", "steps", "count"], ["Work", "flops", "flop"], ["Memory", "bytes_touched", "B"], ["Network", "bytes_received", "B"],
      ["Flop a byte", "intensity", "flop/B"]]
      .map(([label, what, unit]) => ({label, text: k => number(k.path + what, unit), by: k => k[what], number: true})),
    {label: "Bound by", text: k => k.bound, by: k => k.bound},
    ...[["Time", "seconds", "s"], ["Share", "share", "share"]].map(([label, what, unit]) =>
      ({label, text: k => number(k.path + what, unit), by: k => k[what], number: true})),
    {label: "Of its roof", number: true, text: k => share_of(at_roof(k), k.seconds),
        by: k => k.seconds > 0 ? at_roof(k) / k.seconds : 0}]});
  panel.append(card("Steps under their roof",
      el("p", {class: "muted"}, "A dot is a step that does arithmetic; the larger, the longer it takes."),
      run.roofs.flops > 0 && run.roofs.memory_bytes > 0 ? picture(roof_plot) : el("p", {}, "No step does arithmetic.")),
    card("Operations", node));
};

const memory_plot = track => width => {
  const height = 240, left = 78, right = 14, top = 14, bottom = 34, samples = track.memory, capacity = run.memory.capacity;
  const end = Math.max(run.seconds, most_of(samples, m => m.time)), peak = most_of(samples, m => m.bytes) || 1;
  const most = Math.max(peak, capacity > 0 && capacity < 2.5 * peak ? capacity : 0) * 1.06;
  const x = t => left + t / (end || 1) * (width - left - right), y = b => top + (1 - b / most) * (height - top - bottom);
  let line = `M${x(0)} ${y(samples.length ? samples[0].bytes : 0)}`;
  for (const m of samples) line += `H${x(m.time).toFixed(1)}V${y(m.bytes).toFixed(1)}`;
  line += `H${x(end)}`;
  return svg("svg", {width, height, role: "img", "aria-label": `Memory over the step: at most ${as_text.B(peak)}`},
    ...[0, .25, .5, .75, 1].map(f => [svg("line", {class: "rule", x1: left, x2: width - right, y1: y(f * peak), y2: y(f * peak)}),
      svg("text", {class: "muted", x: left - 6, y: y(f * peak) + 4, "text-anchor": "end"}, as_text.B(f * peak))]),
    ...[0, .5, 1].map(f => svg("text", {class: "muted", x: x(f * end), y: height - 12, "text-anchor": ["start", "middle", "end"][2 * f]},
      as_text.s(f * end))),
    svg("path", {class: "area", d: `${line}V${y(0)}H${x(0)}Z`}),
    capacity > 0 && capacity <= most && [svg("line", {class: "cap", x1: left, x2: width - right, y1: y(capacity), y2: y(capacity)}),
      svg("text", {x: left + 6, y: y(capacity) + 14}, `capacity ${as_text.B(capacity)}`)]);
};
const memory = panel => {
  const m = run.memory, at = run.steps.find(s => s.step === m.step);
  const kinds = m.kinds.map((k, i) => ({...k, path: `/memory/kinds/${i}/bytes`, color: color(i)})).filter(k => k.bytes > 0);
  panel.append(el("dl", {class: "facts"},
    fact("At most", number("/memory/peak", "B"), ["at step ", number("/memory/step", "id"), at && `, ${at.kind}`],
      m.capacity > 0 && meter(m.peak / m.capacity)),
    fact("Capacity", m.capacity > 0 ? number("/memory/capacity", "B") : "no limit", m.capacity > 0 && (m.peak > m.capacity
      ? el("span", {class: "bad"}, `${as_text.B(m.peak - m.capacity)} too much`) : `${as_text.B(m.capacity - m.peak)} left`)),
    fact("Padding", number("/memory/padding", "B"), "the last shards of uneven dims")));
  const [kind_table] = table({caption: "At peak memory", rows: kinds, sort: 1, columns: [
    {label: "Kind", text: k => [key(k.color), k.kind], by: k => k.kind},
    {label: "Bytes", text: k => number(k.path, "B"), by: k => k.bytes, number: true},
    {label: "Share", text: k => share_of(k.bytes, m.peak), by: k => k.bytes, number: true}]});
  const tensors = m.largest.map((t, i) => ({...t, path: `/memory/largest/${i}/`}));
  const [largest] = table({caption: "The largest tensors then", rows: tensors, columns: [
    {label: "Tensor", least: "12rem", text: t => [t.name && el("strong", {}, t.name + " "), el("span", {class: "mono"}, t.text)],
      by: t => t.name || t.text},
    {label: "Kind", text: t => t.kind, by: t => t.kind},
    {label: "Bytes", text: t => number(t.path + "bytes", "B"), by: t => t.bytes, number: true}]});
  const box = picture(width => memory_plot(run.tracks[shown])(width));
  let shown = 0;
  panel.append(run.tracks.length > 0 && card("Over the step", run.tracks.length > 1 && el("div", {class: "controls"},
      choice("Devices", run.tracks.map((t, i) => [String(i), track_name(t)]), i => {
        shown = Number(i);
        redraw(box, true);
      })), box),
    el("div", {class: "grid"}, card("By kind", bar("Memory by kind", kinds.map(k => ({name: k.kind, amount: k.bytes, color: k.color})),
      kinds.reduce((sum, k) => sum + k.bytes, 0)), kind_table), card("Largest tensors", largest)));
};

const comparison = panel => {
  const fastest = run.sweep.reduce((best, r) => r.fits && r.seconds > 0 && r.seconds < best ? r.seconds : best, Infinity);
  const [node] = table({caption: "Runs of the same program on other meshes", sort: 2, down: false, columns: [
    {label: "Mesh", text: r => r.mesh, by: r => r.mesh}, {label: "Mapping", least: "12rem", text: r => r.mapping, by: r => r.mapping},
    {label: "Time of a step", number: true, text: r => r.seconds > 0 ? number(r.path + "seconds", "s") : "–",
        by: r => r.seconds || Infinity},
    {label: "To the fastest", number: true, text: r => r.seconds > 0 ? short(r.seconds / fastest) + " ×" : "–",
        by: r => r.seconds || Infinity},
    {label: "Memory", text: r => number(r.path + "peak", "B"), by: r => r.peak, number: true},
    {label: "Fits", text: r => r.fits ? el("span", {class: "good"}, "fits") : el("span", {class: "bad"}, r.problem || "too large"),
      by: r => r.fits ? "a" : "b"},
    ...(run.sweep.some(r => r.core_years > 0) ? [{label: "Cost of training", number: true, by: r => r.core_years || Infinity,
      text: r => r.core_years > 0 ? number(r.path + "core_years", "years") : "–"}] : [])],
    rows: run.sweep.map((r, i) => ({...r, path: `/sweep/${i}/`}))});
  panel.append(card("Other meshes", node));
};

const sources = panel => {
  const text = by_id("run").textContent;
  const assumed = el("ul", {class: "plain"}, ...run.assumptions.map(a => el("li", {}, a)));
  panel.append(card("What is assumed", run.assumptions.length ? assumed : el("p", {}, "Not given.")),
    card("Where the numbers come from", el("p", {}, run.source || "Not given."),
      el("p", {class: "muted"}, "Seconds are those of a simulation. All that this page shows is computed from the data it holds."),
      el("div", {class: "controls"}, el("button", {type: "button", on: {click: () => {
        const url = URL.createObjectURL(new Blob([text], {type: "application/json"}));
        el("a", {href: url, download: "run.json"}).click();
        URL.revokeObjectURL(url);
      }}}, "Save the data (JSON)"))));
};
