// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The views of the page of a whole run. Uses charts.js.
const add = (panel, ...parts) => fill(panel, {}, parts);  // parts that are false are left out
const value_series = (v, i) => [{name: v.name, color: color(i), mean: v.mean, low: v.low, high: v.high, not_finite: v.not_finite}];
/// Values over a wide range of positive numbers are read better on a logarithmic axis.
const value_chart = (v, i) => {
  const numbers = [...v.low, ...v.high].filter(x => x !== null), least = numbers.reduce((m, x) => Math.min(m, x), Infinity);
  const largest = numbers.reduce((m, x) => Math.max(m, x), -Infinity), wide = least > 0 && largest / least > 100;
  const holder = el("div"), show = log => holder.replaceChildren(chart({title: v.name, unit: "plain", buckets: run.buckets, log,
    series: value_series(v, i), from_zero: !log && least >= 0 && least < .5 * largest}));
  show(wide);
  return card(v.name, least > 0 && el("div", {class: "controls"}, choice(`Axis of ${v.name}`, [["linear", "linear"], ["log", "logarithmic"]],
    way => show(way === "log"), wide ? "log" : "linear")), holder);
};
const time_series = () => [
  {name: "computing", color: "var(--c1)", stacked: true, mean: run.step_seconds.mean.map((s, i) => s === null ? null : s - (run.step_waiting[i] || 0))},
  {name: "waiting", color: "var(--c5)", stacked: true, mean: run.step_waiting},
  ...(run.predicted ? [{name: "predicted", color: "var(--c6)", dashed: true, mean: run.predicted}] : [])];
const time_chart = () => chart({title: "Time of a step", unit: "s", buckets: run.buckets, series: time_series()});

const overview = panel => {
  const first = run.starts[0], mesh = first ? Object.entries(first.mesh).map(([a, n]) => `${a} ${n}`).join(", ") : "";
  add(panel, el("dl", {class: "facts"},
    run.steps !== undefined && fact("Last step", number("/last", "count"), run.repeated ? ["of these ", number("/repeated", "count"), " done twice"] : `from step ${run.first}`),
    run.wall !== undefined && fact("Duration", number("/wall", "duration"), `since ${moment(run.begun)}`),
    run.mean_step !== undefined && fact("Time of a step", number("/mean_step", "s"), ["waiting ", number("/waiting_share", "share")], meter(run.waiting_share)),
    fact("Processes", number("/processes", "count"), mesh),
    fact("Restarts", number("/restarts", "count"), run.restarts ? ["the last one at step ", number(`/starts/${run.starts.length - 1}/first`, "id")] : "none"),
    fact("Checkpoints", number("/checkpoints", "count"), "in the event logs"),
    run.skipped > 0 && fact("Skipped batches", number("/skipped", "count"), "not finite"),
    fact("Stragglers", number("/stragglers", "count"), run.stragglers ? el("span", {class: "bad"}, "see Time") : "none reported"),
    run.peak !== undefined && fact("Memory", number("/peak", "B"), "most of a process"),
    !run.logs_hold && fact("Event logs", el("span", {class: "bad"}, "altered"), "see Events")));
  if (run.steps === undefined) return void add(panel, card("Steps", el("p", {}, "There is no telemetry of steps.")));
  if (run.values.length) add(panel, value_chart(run.values[0], 2));
  add(panel, card("Time of a step", time_chart()));
};

const values_view = panel => add(panel, el("div", {class: "grid"}, ...run.values.map((v, i) => value_chart(v, i + 2))));

const row_label = r => r.processes > 1 ? `${r.process}–${r.process + r.processes - 1}` : String(r.process);
const time_view = panel => {
  const median = Array.from({length: run.columns.count}, (_, c) => {
    const all = run.rows.map(r => r.compute[c]).filter(v => v !== null).sort((a, b) => a - b);
    return all.length ? all[(all.length - 1) >> 1] : null;
  });
  const ratio = (r, c) => median[c] > 0 && run.rows[r].compute[c] !== null ? run.rows[r].compute[c] / median[c] : null;
  const slowest = run.rows.reduce((m, _, r) => median.reduce((n, _, c) => Math.max(n, ratio(r, c) || 0), m), 0);
  const labels = run.rows.map(row_label);
  const [node] = table({caption: "By process", rows: run.rows.map((r, i) => ({...r, path: `/rows/${i}/`})), sort: 0, down: false, page: 32, columns: [
    {label: "Process", text: row_label, by: r => r.process, number: true}, {label: "Host", text: r => r.host || "–", by: r => r.host},
    {label: "Mean computing time", text: r => number(r.path + "mean_compute", "s"), by: r => r.mean_compute, number: true},
    {label: "Waiting", text: r => number(r.path + "waiting_share", "share"), by: r => r.waiting_share, number: true},
    {label: "Most memory", text: r => number(r.path + "peak", "B"), by: r => r.peak, number: true}]});
  add(panel, card("Time of a step", time_chart(), el("p", {class: "muted"}, "Means over the steps of a point and over all processes. Waiting " +
      "is the time in which a process waits for others, transfers included.")),
    run.rows.length > 1 && card("Computing time, to the median of the processes",
      heat_map({title: "Computing time of each process", rows: labels, value: ratio, unit: "ratio", least: .8, most: Math.max(1.4, slowest), row_name: "Process"}),
      el("p", {class: "muted"}, "A process that computes longer than 1.3 times the median in half of the steps is a straggler: the others wait for it.")),
    run.rows.length > 1 && card("Share of waiting", heat_map({title: "Share of waiting of each process", rows: labels,
      value: (r, c) => run.rows[r].waiting[c], unit: "share", most: Math.max(.01, most_of(run.rows, r => most_of(r.waiting, v => v || 0))), row_name: "Process"})),
    card("Processes", node));
};

const communication = panel => {
  const kinds = run.received.map((r, i) => ({...r, path: `/received/${i}/bytes`, color: color(i)})), whole = kinds.reduce((sum, k) => sum + k.bytes, 0);
  if (kinds.length === 0) return void add(panel, card("Received bytes", el("p", {}, "No program that was added to the telemetry received bytes.")));
  const [node] = table({caption: "Bytes received by all processes", rows: kinds, sort: 1, columns: [
    {label: "Kind", text: k => [key(k.color), k.kind], by: k => k.kind}, {label: "Bytes", text: k => number(k.path, "B"), by: k => k.bytes, number: true},
    {label: "Share", text: k => share_of(k.bytes, whole), by: k => k.bytes, number: true}]});
  add(panel, card("Bytes that a process receives in a step", chart({title: "Received bytes per step", unit: "B", buckets: run.buckets,
    series: kinds.map(k => ({name: k.kind, color: k.color, stacked: true, mean: k.per_step}))})), card("By kind", node));
};

const memory_view = panel => {
  const few = run.rows.length <= 9, at = f => Array.from({length: run.columns.count}, (_, c) => {
    const all = run.rows.map(r => r.resident[c]).filter(v => v !== null);
    return all.length ? f(all) : null;
  });
  const mean = all => all.reduce((a, b) => a + b, 0) / all.length, arena = Array.from({length: run.columns.count}, (_, c) =>
    run.rows.reduce((m, r) => Math.max(m, r.arena[c] || 0), 0));
  const series = few ? run.rows.map((r, i) => ({name: `process ${row_label(r)}`, color: color(i), mean: r.resident}))
    : [{name: "processes, mean and range", color: "var(--c1)", mean: at(mean), low: at(a => Math.min(...a)), high: at(a => Math.max(...a))}];
  add(panel, card("Memory of the processes", chart({title: "Memory", unit: "B", buckets: run.columns,
    series: [...series, {name: "values of programs (arena)", color: "var(--c9)", dashed: true, mean: arena}]})),
    run.rows.length > 9 && card("Memory of each process", heat_map({title: "Memory of each process", rows: run.rows.map(row_label),
      value: (r, c) => run.rows[r].resident[c], unit: "B", most: most_of(run.rows, r => most_of(r.resident, v => v || 0)), row_name: "Process"})));
};

const list_card = list => {
  const n = Math.ceil(list.length / list.group), labels = Array.from({length: n}, (_, i) =>
    list.group > 1 ? `${i * list.group}–${Math.min(list.length, (i + 1) * list.group) - 1}` : String(i));
  const means = list.columns.map(c => c && c.reduce((a, b) => a + (b || 0), 0) / c.length);
  const number_of = (r, c) => list.columns[c] ? list.columns[c][r] ?? null : null;
  const ratio = (r, c) => means[c] > 0 && number_of(r, c) !== null ? number_of(r, c) / means[c] : null;
  const most = f => list.columns.reduce((m, _, c) => labels.reduce((k, _, r) => Math.max(k, f(r, c) || 0), m), 0);
  const holder = el("div"), show = way => holder.replaceChildren(heat_map({title: list.name, rows: labels, row_name: "Entry",
    ...(way === "share" ? {value: ratio, unit: "ratio", most: most(ratio)} : {value: number_of, unit: "plain", most: most(number_of)})}));
  show("share");
  return card(list.name, el("div", {class: "controls"}, choice(`Numbers of ${list.name}`,
    [["share", "to the mean of all entries"], ["number", "as given"]], show, "share")), holder);
};
const lists_view = panel => add(panel, ...run.lists.map(list_card));

const events_view = panel => {
  const rows = run.events.map((e, i) => ({...e, i})), kinds = [...new Set(run.events.map(e => e.event))].sort();
  const [node, filter] = table({caption: "Events of all processes", rows, sort: 0, down: false, columns: [
    {label: "Time", text: e => el("span", {class: "nowrap"}, moment(e.time)), by: e => e.time + e.i * 1e-9},
    {label: "Step", text: e => number(`/events/${e.i}/step`, "id"), by: e => e.step ?? -1, number: true},
    {label: "Process", text: e => number(`/events/${e.i}/process`, "id"), by: e => e.process, number: true},
    {label: "Event", text: e => ["abort", "not_finite", "straggler", "log_altered"].includes(e.event) ? el("span", {class: "bad"}, e.event) : e.event, by: e => e.event},
    {label: "Fields", least: "16rem", text: e => el("span", {class: "mono"}, e.fields === "{}" ? "" : e.fields), by: e => e.fields}]});
  const [starts] = table({caption: "Starts of the run", rows: run.starts.map((s, i) => ({...s, i})), columns: [
    {label: "Start", text: s => el("span", {class: "nowrap"}, moment(s.time))}, {label: "Processes", text: s => number(`/starts/${s.i}/processes`, "count"), number: true},
    {label: "First step", text: s => number(`/starts/${s.i}/first`, "id"), number: true}, {label: "Last step", text: s => number(`/starts/${s.i}/last`, "id"), number: true},
    {label: "Version", text: s => s.version}, {label: "End", text: s => s.end === "no word" ? el("span", {class: "bad"}, "without a word")
      : s.end === "finish" ? "finished" : s.end || (s.ended ? `last heard of ${moment(s.ended)}` : "–")}]});
  add(panel, run.starts.length > 0 && card("Starts", starts), card("Events", run.events.length === 0 ? el("p", {}, "There is no event log.") : [
    el("div", {class: "controls"}, choice("Events", [["", "all"], ...kinds.map(k => [k, k])], k => filter(e => !k || e.event === k))), node,
    run.event_count > run.events.length && el("p", {class: "muted"}, `Of ${as_text.count(run.event_count)} events, the first and the last ones are shown.`)]),
    run.logs.length > 0 && card("Integrity of the event logs", el("ul", {class: "plain"}, ...run.logs.map(t =>
      el("li", {class: / unaltered/.test(t) ? "" : "bad"}, t)))),
    run.unread > 0 && el("p", {class: "muted"}, `${run.unread} lines could not be read.`));
};
