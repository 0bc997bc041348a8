// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The timeline: lanes for compute, collectives and waiting of every class of devices, to zoom and step through.
const lanes = ["compute", "collective", "wait"];
const most_tracks = 6, lane_height = 20, track_height = 3 * lane_height + 26, time_height = 24;
const luminance = c => {
  const n = parseInt(c.slice(1), 16);
  return .2126 * (n >> 16 & 255) + .7152 * (n >> 8 & 255) + .0722 * (n & 255);
};
/// A round number of seconds that makes about so many ticks.
const tick_length = (length, count) => {
  const least = length / count, ten = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map(k => k * ten).find(s => s >= least) || 10 * ten;
};

const timeline = panel => {
  if (!run.tracks.some(t => t.spans.length)) {
    panel.append(card("Timeline", el("p", {}, "The run left no timeline.")));
    return;
  }
  const end = Math.max(run.seconds, most_of(run.tracks, t => most_of(t.spans, s => s.end)));
  const least = end / 2e5;
  let from = 0, to = end, first = 0, chosen = null, left = 78, drawn = null;
  const tracks = () => run.tracks.slice(first, first + most_tracks);
  const detail = el("div", {"aria-live": "polite", class: "chosen"}), canvas = el("canvas", {tabindex: 0, role: "application",
    "aria-label": "Timeline. Left and right arrows go from span to span, up and down to another lane, plus and minus zoom, 0 shows all."});
  const spans_of = (track, lane) => tracks()[track].spans.filter(s => s.what === lanes[lane]);

  const paint = width => {
    const shown = tracks(), height = time_height + shown.length * track_height, ratio = devicePixelRatio || 1;
    left = width < 480 ? 60 : 78;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.cssText = `width:${width}px;height:${height}px`;
    const g = canvas.getContext("2d"), x = t => left + (t - from) / (to - from) * (width - left);
    const names = ["--text", "--muted", "--line", "--idle", ...Array.from({length: 9}, (_, i) => `--c${i + 1}`)];
    const colors = Object.fromEntries(names.map(n => [n, color_now(n)]));
    const part_color = row => colors[`--c${Math.max(0, parts.indexOf(run.steps[row].part)) % 9 + 1}`];
    g.scale(ratio, ratio);
    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "middle";
    const tick = tick_length(to - from, Math.max(2, width / 130));
    for (let i = Math.ceil(from / tick); i * tick <= to; ++i) {
      const at = x(i * tick);
      g.fillStyle = colors["--line"];
      g.fillRect(at, time_height - 4, 1, height);
      g.fillStyle = colors["--muted"];
      g.textAlign = at > width - 40 ? "right" : "left";
      g.fillText(i === 0 ? "0" : time_among(i * tick, tick), at + (at > width - 40 ? -2 : 2), 10);
    }
    g.textAlign = "left";
    shown.forEach((t, i) => {
      const top = time_height + i * track_height;
      g.fillStyle = colors["--text"];
      g.font = "600 12px system-ui, sans-serif";
      g.fillText(track_name(t), 0, top + 10);
      g.font = "12px system-ui, sans-serif";
      g.fillStyle = colors["--muted"];
      lanes.forEach((name, lane) => g.fillText(lane === 1 ? "send" : name, 0, top + 20 + (lane + .5) * lane_height));
    });
    g.save();
    g.beginPath();
    g.rect(left, time_height, width - left, height);
    g.clip();
    shown.forEach((t, i) => {
      const top = time_height + i * track_height + 20;
      for (const s of t.spans) {
        if (s.end < from || s.begin > to) continue;
        const x0 = x(s.begin), wide = x(s.end) - x0, y = top + lanes.indexOf(s.what) * lane_height;
        const c = s.what === "wait" ? colors["--idle"] : part_color(s.row);
        g.fillStyle = c;
        g.fillRect(x0, y + 1, Math.max(.6, wide - (wide > 3 ? 1 : 0)), lane_height - 3);
        if (s === chosen) {
          g.strokeStyle = colors["--text"];
          g.lineWidth = 2;
          g.strokeRect(x0, y + 1, Math.max(2, wide - 1), lane_height - 3);
        }
        const kind = run.steps[s.row].kind;
        if (wide > 30 && g.measureText(kind).width < wide - 8) {
          g.fillStyle = luminance(c) > 130 ? "#10141a" : "#ffffff";
          g.fillText(kind, Math.max(x0, left) + 4, y + lane_height / 2);
        }
      }
    });
    g.restore();
    drawn = {width, x};
    return canvas;
  };
  const box = picture(paint), again = () => redraw(box, true);
  const view = (begin, length) => {
    length = Math.min(end, Math.max(least, length));
    from = Math.max(0, Math.min(end - length, begin));
    to = from + length;
    again();
  };
  const zoom = (factor, at = (from + to) / 2) => view(at - (at - from) * factor, (to - from) * factor);
  const move = part => view(from + part * (to - from), to - from);
  const explain = s => {
    const step = run.steps[s.row], path = `/steps/${s.row}/`;
    const lines = [el("p", {}, el("strong", {}, s.what === "wait" ? `Waiting in step ${step.step}` : `Step ${step.step}`),
      ` ${step.kind}, ${step.part}`, step.recomputed && once_more(),
      `: ${as_text.s(s.end - s.begin)} from ${time_among(s.begin, s.end - s.begin || end)} on.`)];
    if (s.what !== "wait") lines.push(el("p", {class: "mono muted"}, operands(step)),
      el("p", {}, step.bytes_received > 0 && ["Receives ", number(path + "bytes_received", "B"), ". "],
        step.flops > 0 && ["Does ", number(path + "flops", "flop"), ". "], `Bound by ${step.bound}. `, step.why));
    detail.replaceChildren(...lines);
  };
  const choose = s => {
    chosen = s;
    explain(s);
    const length = to - from;
    if (s.end < from || s.begin > to) view((s.begin + s.end) / 2 - length / 2, length);
    else again();
  };
  const span_at = e => {
    const r = canvas.getBoundingClientRect(), px = e.clientX - r.left, y = e.clientY - r.top - time_height;
    const track = Math.floor(y / track_height), lane = Math.floor((y - track * track_height - 20) / lane_height);
    if (!drawn || px < left || track < 0 || track >= tracks().length || lane < 0 || lane > 2) return null;
    const near = 3 / (drawn.width - left) * (to - from), t = from + (px - left) / (drawn.width - left) * (to - from);
    let best = null, away = near;
    for (const s of spans_of(track, lane)) {
      const d = t < s.begin ? s.begin - t : t > s.end ? t - s.end : 0;
      if (d <= away) [best, away] = [s, d];
      if (d === 0) break;
    }
    return best;
  };
  const walk = (way, other_lane) => {
    const rows = tracks().flatMap((_, t) => lanes.map((__, l) => spans_of(t, l))).filter(r => r.length);
    let row = rows.findIndex(r => r.includes(chosen));
    if (row < 0) return choose(rows[0].find(s => s.end >= from) || rows[0][0]);
    if (!other_lane) return choose(rows[row][Math.max(0, Math.min(rows[row].length - 1, rows[row].indexOf(chosen) + way))]);
    row = Math.max(0, Math.min(rows.length - 1, row + way));
    choose(rows[row].reduce((best, s) => Math.abs(s.begin - chosen.begin) < Math.abs(best.begin - chosen.begin) ? s : best));
  };
  const keys = {ArrowRight: () => walk(1), ArrowLeft: () => walk(-1), ArrowDown: () => walk(1, true), ArrowUp: () => walk(-1, true),
    "+": () => zoom(.5), "=": () => zoom(.5), "-": () => zoom(2), "0": () => view(0, end)};
  canvas.addEventListener("keydown", e => {
    if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    keys[e.key]();
  });
  let held_at = null;
  canvas.addEventListener("pointerdown", e => { held_at = {x: e.clientX, from, moved: false}; });
  canvas.addEventListener("pointermove", e => {
    if (!held_at || !(e.buttons & 1)) {
      canvas.style.cursor = span_at(e) ? "pointer" : "default";
      return;
    }
    const dx = e.clientX - held_at.x;
    if (Math.abs(dx) > 4 && !held_at.moved) {
      held_at.moved = true;
      canvas.setPointerCapture(e.pointerId);
    }
    if (held_at.moved) view(held_at.from - dx / (drawn.width - left) * (to - from), to - from);
  });
  canvas.addEventListener("pointerup", e => {
    const s = held_at && !held_at.moved && span_at(e);
    held_at = null;
    if (s) choose(s);
  });
  canvas.addEventListener("wheel", e => {
    if (!e.ctrlKey) return;
    e.preventDefault();
    const r = canvas.getBoundingClientRect();
    zoom(e.deltaY > 0 ? 1.25 : .8, from + (e.clientX - r.left - left) / (drawn.width - left) * (to - from));
  }, {passive: false});

  const button = (text, f) => el("button", {type: "button", on: {click: f}}, text);
  detail.append(el("p", {class: "muted"}, "Choose a span to see what it is: click it, or use the arrow keys in the timeline. " +
    "Plus and minus, or the wheel with Ctrl, zoom."));
  const first_track = choice("From", run.tracks.map((t, i) => [String(i), track_name(t)]), i => {
    first = Number(i);
    chosen = null;
    again();
  });
  panel.append(card("Timeline", el("div", {class: "controls"}, button("Zoom in", () => zoom(.5)), button("Zoom out", () => zoom(2)),
      button("Earlier", () => move(-.5)), button("Later", () => move(.5)), button("All", () => view(0, end)),
      run.tracks.length > most_tracks && first_track),
    el("ul", {class: "legend"}, ...run.parts.filter(p => p.seconds > 0).map(p => el("li", {}, key(color_of_part(p.part)), p.part)),
      el("li", {}, key("var(--idle)"), "waiting")), box, detail));
};
