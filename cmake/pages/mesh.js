// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pictures of devices: chips and cores, a device's shard of each tensor, bytes over links.
const extent_of = Object.fromEntries(run.mesh.map(a => [a.axis, a.extent]));
/// The coordinates of a device along the axes of the mesh.
const coordinates = device => {
  const at = {};
  for (const {axis, extent} of [...run.mesh].reverse()) {
    at[axis] = device % extent;
    device = Math.floor(device / extent);
  }
  return at;
};
const along = at => run.mesh.map(a => `${a.axis} ${at[a.axis]}`).join(", ");
const chip_of = d => run.chip_of.length ? run.chip_of[d] : Math.floor(d / run.cores_per_chip);
/// Chips in layers of rows: a network of one to three dimensions; without one, devices as the mesh has them.
const grid_extent = (() => {
  const columns = run.mesh.length ? run.mesh.at(-1).extent : 1;
  const last = (run.chips.length ? run.chips : [run.devices / columns, columns]).slice(-3);
  return [...Array(3 - last.length).fill(1), ...last];
})();
const chips = grid_extent[0] * grid_extent[1] * grid_extent[2];
const place = chip => {
  const row = Math.floor(chip / grid_extent[2]);
  return [Math.floor(row / grid_extent[1]), row % grid_extent[1], chip % grid_extent[2]];
};
const chip_at = (() => {
  const devices = Array.from({length: chips}, () => []);
  for (let d = 0; d < run.devices; ++d) devices[run.chips.length ? chip_of(d) : d]?.push(d);
  return devices;
})();
/// Layers side by side as far as the width goes: the place of a chip's middle, and how large the picture is.
const grid_layout = (width, least, most) => {
  const [layers, rows, columns] = grid_extent, labels = layers > 1 ? 20 : 0;
  const across = Math.max(1, Math.min(layers, Math.floor(width / (columns * Math.max(least, 30) + 14))));
  const pitch = Math.max(least, Math.min(most, 720 / rows, (width - 14 * across) / (columns * across)));
  const wide = columns * pitch + 14, high = rows * pitch + 14 + labels;
  const corner = layer => [7 + layer % across * wide, 7 + labels + Math.floor(layer / across) * high];
  return {pitch, corner, width: across * wide, height: Math.ceil(layers / across) * high,
    middle(chip) {
      const [layer, row, column] = place(chip), [x, y] = corner(layer);
      return [x + (column + .5) * pitch, y + (row + .5) * pitch];
    },
    labels: Array.from({length: layers > 1 ? layers : 0}, (_, l) =>
      svg("text", {class: "muted", x: corner(l)[0], y: corner(l)[1] - 6}, `layer ${l}`))};
};
const heat_legend = (text, most, unit) => el("ul", {class: "legend"}, el("li", {class: "muted"}, text),
  ...Array.from({length: heat_steps}, (_, h) => el("li", {}, key(`var(--h${h + 1})`),
    as_text[unit](Math.trunc(most * (h + 1) / heat_steps)))));

let device = 0, colored = "";
const mesh_picture = width => {
  const g = grid_layout(width, 11, 64), side = g.pitch * .78;
  const cores = most_of(chip_at, c => c.length), across = Math.ceil(Math.sqrt(cores)), core = side / across, gap = Math.min(3, core * .18),
      marks = [];
  for (let chip = 0; chip < chips; ++chip) {
    const [x, y] = g.middle(chip);
    marks.push(svg("rect", {class: "chip", x: x - side / 2, y: y - side / 2, width: side, height: side, rx: Math.min(3, side / 6)}));
    chip_at[chip].forEach((d, i) => {
      const at = coordinates(d), left = x - side / 2 + i % across * core;
      const top = y - side / 2 + Math.floor(i / across) * core + (cores === 2 ? core / 2 : 0);
      const style = colored && d !== device && `fill:var(--h${heat(at[colored] + 1, extent_of[colored])})`;
      marks.push(svg("rect", {class: d === device ? "core here" : "core", style, x: left + gap, y: top + gap,
        width: core - 2 * gap, height: core - 2 * gap, "data-device": d},
        svg("title", {}, `Device ${d}` + (run.chips.length ? ` on chip ${chip}` : "") + `: ${along(at)}`)));
      if (core >= 22 && !colored)
        marks.push(svg("text", {class: d === device ? "on-core on-here" : "on-core", x: left + core / 2, y: top + core / 2 + 4}, d));
    });
  }
  const label = `${run.devices} devices` + (run.chips.length ? ` on ${chips} chips` : "") + `; device ${device} is marked`;
  return svg("svg", {width: g.width, height: g.height, role: "img", "aria-label": label,
    on: {click: e => e.target.dataset.device && choose_device(Number(e.target.dataset.device))}}, ...g.labels, ...marks);
};

/// The range of a dim that a device holds, [from, to): each axis divides the blocks of the axes before it, rounded up.
const held = (dim, at) => {
  let from = 0, to = dim.extent;
  for (const axis of dim.axes) {
    const length = to - from, block = Math.ceil(length / extent_of[axis]), start = Math.min(length, block * at[axis]);
    from += start;
    to = Math.min(to, from + block);
  }
  return [from, to];
};
const pieces_of = dim => dim.axes.reduce((n, a) => n * extent_of[a], 1);
/// The edges of all pieces of a dim.
const edges = dim => {
  let list = [[0, dim.extent]];
  for (const axis of dim.axes) list = list.flatMap(([from, to]) => {
    const block = Math.ceil((to - from) / extent_of[axis]);
    return Array.from({length: extent_of[axis]}, (_, i) => [Math.min(to, from + i * block), Math.min(to, from + (i + 1) * block)]);
  });
  return list;
};
const tensor_title = t => t.name ? `${t.name}` : `%${t.value}`;
const standing = t => coordinates(t.order.length ? t.order.indexOf(device) : device);
/// Two dims of a tensor, the sharded ones first, as rows and columns; the piece of the chosen device is marked.
const tensor_picture = t => width => {
  const point = {name: "", extent: 1, axes: [], pieces: 1};
  const ranked = t.dims.map((d, i) => ({...d, i, pieces: pieces_of(d)}))
    .sort((a, b) => (b.pieces > 1) - (a.pieces > 1) || b.extent - a.extent || a.i - b.i).slice(0, 2).sort((a, b) => a.i - b.i);
  const [rows, columns] = ranked.length > 1 ? ranked : [point, ranked[0] || point];
  const w = Math.min(width, 560), left = 78, top = 20, wide = w - left - 4, high = ranked.length > 1 ? 128 : 44, at = standing(t);
  const strips = (dim, length) => dim.pieces > 32 || dim.extent === 0 ? [[0, length]]
    : edges(dim).map(([a, b]) => [a / dim.extent * length, b / dim.extent * length]);
  const across = strips(columns, wide), down = strips(rows, high), cells = [];
  down.forEach(([y0, y1], r) => across.forEach(([x0, x1], c) => x1 > x0 && y1 > y0 &&
      cells.push(svg("rect", {class: (r + c) % 2 ? "piece-2" : "piece-1", x: left + x0, y: top + y0, width: x1 - x0, height: y1 - y0}))));
  const mine = t.dims.map(d => held(d, at)), span = (dim, length) => {
    if (dim.i === undefined || dim.extent === 0) return [0, length];
    const [a, b] = mine[dim.i], size = Math.max((b - a) / dim.extent * length, 2);
    return [Math.min(a / dim.extent * length, length - size), size];
  };
  const [hx, hw] = span(columns, wide), [hy, hh] = span(rows, high), empty = mine.some(([a, b]) => a >= b);
  const name = d => d.name && (d.pieces > 1 ? `${d.name} in ${d.pieces}` : d.name);
  const label = `${tensor_title(t)}: ${ranked.map(name).join(", ")}; the piece of device ${device} is marked`;
  return svg("svg", {width: w, height: top + high + 4, role: "img", "aria-label": label}, ...cells,
    svg("rect", {class: "outline", x: left, y: top, width: wide, height: high}),
    !empty && svg("rect", {class: "here", x: left + hx, y: top + hy, width: hw, height: hh, "fill-opacity": .8}),
    svg("text", {class: "muted", x: left + wide / 2, y: 13, "text-anchor": "middle"}, name(columns)),
    svg("text", {class: "muted", x: left - 7, y: top + high / 2 + 4, "text-anchor": "end"}, name(rows)));
};
const tensor_note = t => {
  const at = standing(t), mine = t.dims.map(d => held(d, at));
  if (mine.some(([a, b]) => a >= b)) return `Device ${device} holds nothing of it.`;
  return `Device ${device} holds ` + (t.dims.length === 0 ? "the number"
      : t.dims.map((d, i) => mine[i][1] - mine[i][0] === d.extent ? `all ${d.name}`
    : mine[i][1] - mine[i][0] === 1 ? `${d.name} ${mine[i][0]}` : `${d.name} ${mine[i][0]}–${mine[i][1] - 1}`).join(", ")) + ".";
};
const tensor_card = i => {
  const t = run.tensors[i], path = `/tensors/${i}/`;
  const pieces = t.dims.reduce((n, d) => n * pieces_of(d), 1), addends = t.partial.reduce((n, a) => n * extent_of[a], 1);
  const copies = run.devices / pieces / addends;
  const note = el("p", {}), box = picture(width => {
    note.textContent = tensor_note(t);
    return tensor_picture(t)(width);
  });
  return [el("section", {class: "card"}, el("h3", {}, tensor_title(t), el("span", {class: "tag"}, t.role)),
    el("p", {class: "mono"}, t.text),
    el("p", {class: "muted"}, number(path + "bytes", "B"), " a device of ", number(path + "whole_bytes", "B"),
      copies > 1 && `; ${as_text.count(copies)} copies`,
      t.partial.length > 0 && `; a sum over ${t.partial.join(", ")} is still to be made`), box, note), box];
};
let choose_device = () => {};
const mesh_view = panel => {
  const axes = run.mesh.map(a => [a.axis, a.axis]), boxes = [], mesh_box = picture(mesh_picture, true), legend = el("div");
  const slider = el("input", {type: "range", min: 0, max: run.devices - 1, value: 0, "aria-label": "Device",
      on: {input: () => choose_device(Number(slider.value))}});
  const field = el("input", {type: "number", min: 0, max: run.devices - 1, value: 0,
      on: {change: () => choose_device(Number(field.value))}});
  const where = el("p", {"aria-live": "polite"});
  choose_device = d => {
    device = Math.max(0, Math.min(run.devices - 1, Math.trunc(d) || 0));
    slider.value = field.value = device;
    const at = coordinates(device);
    const chip = run.chips.length && chip_of(device);
    where.textContent = `Device ${device}` + (run.chips.length ? ` is on chip ${chip} (${place(chip).slice(-run.chips.length).join(", ")})`
        : "") +
      `: ${run.mesh.map(a => `${a.axis} ${at[a.axis]} of ${a.extent}`).join(", ")}.`;
    for (const box of [mesh_box, ...boxes]) redraw(box, true);
  };
  // The largest tensor of each sharding, in falling order of size.
  const seen = new Set(), best = run.tensors.map((t, i) => ({t, i})).sort((a, b) => b.t.whole_bytes - a.t.whole_bytes)
    .filter(({t}) => !seen.has(t.text) && seen.add(t.text)).slice(0, 6);
  const cards = el("div", {class: "grid"}), show = i => {
    const [node, box] = tensor_card(i);
    boxes.push(box);
    return node;
  };
  cards.append(...best.map(({i}) => show(i)));
  const chosen = el("div");
  panel.append(card("Devices", el("div", {class: "controls"}, el("label", {}, "Device", field), slider,
      choice("Color by", [["", "nothing"], ...axes], axis => {
        colored = axis;
        legend.replaceChildren(axis ? heat_legend(`place along ${axis}, below`, extent_of[axis], "count") : "");
        redraw(mesh_box, true);
      })), where, mesh_box, legend),
    el("h2", {}, "Shardings of the largest tensors"),
    el("p", {class: "muted"}, "One of every layout. Two dims of each are drawn, sharded dims first."),
    el("div", {style: "height:.6rem"}), cards, run.tensors.length > best.length && el("div", {class: "controls"}, choice("Another tensor",
      [["", "choose"], ...run.tensors.map((t, i) => [String(i), `${tensor_title(t)}  ${t.text}`])],
      i => chosen.replaceChildren(...(i === "" ? [] : [show(Number(i))])))), chosen);
  choose_device(0);
};

/// Along which dimension a link goes, which way, and whether around the edge; none if its ends are no neighbors.
const course = (link, second) => {
  const from = place(link.from), to = place(link.to), moved = [0, 1, 2].filter(d => from[d] !== to[d]);
  if (moved.length !== 1) return null;
  const d = moved[0], step = to[d] - from[d], wraps = grid_extent[d] > 2 ? Math.abs(step) === grid_extent[d] - 1 : second;
  return Math.abs(step) === 1 || wraps ? {d, wraps, way: wraps ? -Math.sign(step) : step} : null;
};
const courses = () => {
  const seen = new Set();
  return run.links.map(l => {
    const ends = `${l.from} ${l.to}`, second = seen.has(ends);
    seen.add(ends);
    return course(l, second);
  });
};
const link_map = (all, most) => width => {
  const g = grid_layout(width, 18, 64), p = g.pitch, off = p * .09, side = p * .21, marks = [];
  run.links.forEach((l, i) => {
    const c = all[i];
    if (!c) return;
    const [x, y] = g.middle(l.from), [tx, ty] = g.middle(l.to), w = c.way, reach = p * (c.wraps ? .45 : .79);
    const style = `--heat:var(--h${heat(l.bytes, most)})`;
    const line = (x1, y1, x2, y2) => svg("line", {x1, y1, x2, y2, "stroke-width": Math.max(1.5, p * .1)});
    const title = svg("title", {}, `Chip ${l.from} to ${l.to}: ${as_text.B(l.bytes)}, busy ${as_text.s(l.seconds)}`);
    const arrives = c.wraps && c.d > 0;
    marks.push(svg("g", {class: "link", style}, title,
      c.d === 0 && svg("path", {d: `M${x + w * p * .36} ${y + w * side}V${y + w * p * .36}H${x + w * side}Z`}),
      c.d === 1 && line(x - w * off, y + w * side, x - w * off, y + w * reach),
      c.d === 2 && line(x + w * side, y + w * off, x + w * reach, y + w * off),
      arrives && (c.d === 1 ? line(tx - w * off, ty - w * reach, tx - w * off, ty - w * side)
        : line(tx - w * reach, ty + w * off, tx - w * side, ty + w * off))));
  });
  for (let chip = 0; chip < chips; ++chip) {
    const [x, y] = g.middle(chip);
    marks.push(svg("rect", {class: "chip", x: x - side, y: y - side, width: 2 * side, height: 2 * side, rx: 2},
      svg("title", {}, `Chip ${chip}`)));
  }
  const label = `Bytes over ${run.links.length} links; the table below has the numbers`;
  return svg("svg", {width: g.width, height: g.height, role: "img", "aria-label": label}, ...g.labels, ...marks);
};
const links_view = panel => {
  if (!run.links.length || !run.chips.length) {
    panel.append(card("Links", el("p", {}, "This network has no links to draw.")));
    return;
  }
  const all = courses(), hidden = all.filter(c => !c).length;
  const most = most_of(run.links, l => l.bytes), busiest = most_of(run.links, l => l.seconds);
  const mean = run.links.reduce((sum, l) => sum + l.bytes, 0) / run.links.length;
  const rows = run.links.map((l, i) => ({...l, path: `/links/${i}/`, c: all[i]}));
  const [node] = table({caption: "Links, each way on its own", sort: 3, page: 25, rows, columns: [
    ...[["From chip", "from"], ["To chip", "to"]].map(([label, what]) =>
      ({label, text: l => number(l.path + what, "id"), by: l => l[what], number: true})),
    {label: "Goes", least: "9rem", by: l => l.c ? l.c.d * 4 + l.c.way : 9, text: l => !l.c ? "to no neighbor"
      : ["layer", "row", "column"][l.c.d] + (l.c.way > 0 ? " +1" : " −1") + (l.c.wraps ? ", around the edge" : "")},
    {label: "Bytes", text: l => number(l.path + "bytes", "B"), by: l => l.bytes, number: true},
    {label: "Busy", text: l => number(l.path + "seconds", "s"), by: l => l.seconds, number: true},
    {label: "Of the step", text: l => share_of(l.seconds, run.seconds), by: l => l.seconds, number: true}]});
  panel.append(el("dl", {class: "facts"}, fact("Links", as_text.count(run.links.length), "one each way"),
      fact("Most over a link", as_text.B(most), `busy ${as_text.s(busiest)}, ${share_of(busiest, run.seconds)} of the step`),
      fact("On average", as_text.B(mean), `the busiest has ${mean > 0 ? short(most / mean) : 0} times as much`)),
    card("Bytes over links", heat_legend("in a step, up to", most, "B"), picture(link_map(all, most), true),
      el("p", {class: "muted"}, "Stubs at the edge are links that go around it. " +
        (grid_extent[0] > 1 ? "Corners of a chip are its links to the layers before and after. " : "") +
        (hidden ? `${hidden} links join chips that are no neighbors and are not drawn.` : ""))),
    card("Busiest links", node));
};
