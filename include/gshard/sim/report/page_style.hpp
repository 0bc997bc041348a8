// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Style sheet (CSS) of the HTML page, and its light and dark colors.

#include <gshard/core/base/compiler.hpp>

#include <string_view>

namespace gshard { inline namespace v0 { namespace detail {

/// Colors of the page on a light and on a dark background. Parts of a step and kinds of memory have the colors of Okabe and Ito, which are
/// safe for color-blind readers. Every color has a label.
inline constexpr std::string_view page_light = R"css(
  color-scheme: light;
  --ground: #f6f7f9; --surface: #ffffff; --line: #d9dee5; --line-strong: #a9b2bf; --text: #18202c; --muted: #566273;
  --accent: #0b5cad; --accent-soft: #e3effb; --good: #1a7f4b; --bad: #b3261e; --bad-soft: #fdecea; --piece-1: #e6ebf1; --piece-2: #d3dbe5;
  --c1: #0072b2; --c2: #56b4e9; --c3: #009e73; --c4: #e0ca1b; --c5: #e69f00; --c6: #d55e00; --c7: #cc79a7; --c8: #7a4fa3; --c9: #8d97a5;
  --idle: #c7cdd6; --core: #bcc7d4;
)css";
inline constexpr std::string_view page_dark = R"css(
  color-scheme: dark;
  --ground: #101318; --surface: #181c23; --line: #2d343f; --line-strong: #5a6575; --text: #e7eaef; --muted: #9fabba;
  --accent: #7db8f5; --accent-soft: #1c3350; --good: #5fcf93; --bad: #ff8f85; --bad-soft: #40201e; --piece-1: #2a313c; --piece-2: #38414e;
  --c1: #3a9bdc; --c2: #7cc9f5; --c3: #2dbd92; --c4: #f0e442; --c5: #f0ae2b; --c6: #f0813a; --c7: #dd94bd; --c8: #ab86d3; --c9: #8d97a5;
  --idle: #4a5361; --core: #5a6779;
)css";

/// The page's style sheet without the colors.
inline constexpr std::string_view page_style = R"css(
*, ::before, ::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; overflow-y: scroll; }
body { margin: 0; background: var(--ground); color: var(--text); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1, h2, h3 { line-height: 1.25; margin: 0; font-weight: 650; text-wrap: balance; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; }
h3 { font-size: .95rem; }
p { margin: .35rem 0 0; max-width: 75ch; }
code, .mono { font: .86em/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.muted { color: var(--muted); }
.bad { color: var(--bad); font-weight: 600; }
.good { color: var(--good); }
.nowrap { white-space: nowrap; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
.skip { position: absolute; left: -100vw; top: 0; z-index: 3; background: var(--surface); color: var(--accent); padding: .6rem 1rem; }
.skip:focus { left: .5rem; top: .5rem; }
.hidden-text { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }

.top { background: var(--surface); border-bottom: 1px solid var(--line); }
.headline, main { max-width: 82rem; margin: 0 auto; padding: 0 1.25rem; }
.headline {
  display: flex; gap: .5rem 1.5rem; align-items: flex-start; justify-content: space-between; padding-top: 1rem; padding-bottom: .75rem;
  flex-wrap: wrap;
}
.top .title { flex: 1 1 18rem; min-width: 0; }
.top p { margin: .15rem 0 0; overflow-wrap: anywhere; }
main { padding-bottom: 4rem; }

label { font-size: .85rem; color: var(--muted); display: inline-flex; gap: .4rem; align-items: center; max-width: 100%; }
label > select { min-width: 0; }
select, input, button {
  font: inherit; font-size: .9rem; color: var(--text); background: var(--surface); border: 1px solid var(--line-strong); border-radius: 6px;
  min-height: 2.1rem; padding: .2rem .6rem; max-width: 100%;
}
button { cursor: pointer; }
button:hover:not(:disabled), select:hover { border-color: var(--accent); }
button:disabled { opacity: .45; cursor: default; }
input[type=range] {
  padding: 0; min-height: 2.1rem; accent-color: var(--accent); border: 0; background: none; flex: 1 1 10rem; min-width: 6rem;
}
.controls { display: flex; flex-wrap: wrap; gap: .5rem .9rem; align-items: center; margin: .75rem 0; }

[role=tablist] {
  display: flex; overflow-x: auto; gap: .1rem; max-width: 82rem; margin: 0 auto; padding: 0 1rem; scrollbar-width: thin;
  scrollbar-color: var(--line-strong) transparent;
}
[role=tab] {
  border: 0; border-bottom: 3px solid transparent; border-radius: 0; background: none; color: var(--muted); padding: .45rem .75rem;
  white-space: nowrap; flex: none;
}
[role=tab]:hover { color: var(--text); }
[role=tab][aria-selected=true] { color: var(--accent); border-bottom-color: var(--accent); font-weight: 600; }
[role=tab]:focus-visible { outline-offset: -3px; }
[role=tabpanel] { padding-top: 1.25rem; }
[role=tabpanel][hidden] { display: none; }

.grid { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); align-items: start; }
.card {
  background: var(--surface); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.1rem; margin-bottom: 1rem; min-width: 0;
}
.grid > .card { margin-bottom: 0; }
.grid + .card, .card + .grid { margin-top: 1rem; }
.facts { display: grid; gap: .75rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 9.5rem), 1fr)); margin: 0 0 1rem; }
.facts > div { background: var(--surface); border: 1px solid var(--line); border-radius: 10px; padding: .7rem .9rem; min-width: 0; }
.facts dt { font-size: .82rem; color: var(--muted); }
.facts dd { margin: .1rem 0 0; font-size: 1.45rem; line-height: 1.25; font-weight: 650; font-variant-numeric: tabular-nums; }
.facts dd.note { font-size: .82rem; font-weight: 400; color: var(--muted); }
.meter { height: 6px; border-radius: 3px; background: var(--piece-1); margin-top: .4rem; overflow: hidden; }
.meter > i { display: block; height: 100%; background: var(--accent); }
.meter > i.over { background: var(--bad); }

.scroll { overflow-x: auto; margin: .5rem -1.1rem 0; padding: 0 1.1rem .25rem; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--muted); font-size: .85rem; padding-bottom: .3rem; }
th, td { text-align: left; padding: .34rem .5rem; vertical-align: top; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { padding-left: 0; }
th { font-weight: 600; color: var(--muted); font-size: .82rem; vertical-align: bottom; white-space: nowrap; }
th.number, td.number { text-align: right; white-space: nowrap; width: 1%; }
data[value="0"]:not([data-unit=id]) { color: var(--muted); opacity: .7; }
.piece { display: inline-block; }
th button {
  border: 0; background: none; padding: .1rem 0; min-height: 1.7rem; font-weight: 600; font-size: inherit; color: inherit;
  white-space: nowrap;
}
th button::after { content: " \2195"; opacity: .45; }
th[aria-sort] { color: var(--text); }
th[aria-sort=ascending] button::after { content: " \2191"; opacity: 1; }
th[aria-sort=descending] button::after { content: " \2193"; opacity: 1; }
tbody tr:hover { background: color-mix(in srgb, var(--accent-soft) 45%, transparent); }
td .at { font-size: .92em; }
.tag {
  display: inline-block; font-size: .75rem; border: 1px solid var(--line-strong); border-radius: 4px; padding: 0 .3rem; color: var(--muted);
  margin-left: .35rem;
}
.key {
  display: inline-block; width: .75rem; height: .75rem; border-radius: 3px; margin-right: .45rem; vertical-align: -1px;
  background: var(--color); border: 1px solid color-mix(in srgb, var(--color) 70%, var(--text));
}
.bar { display: flex; height: 1.9rem; border-radius: 6px; overflow: hidden; gap: 2px; margin: .7rem 0 .3rem; background: var(--surface); }
.bar > i { display: block; background: var(--color); min-width: 0; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .85rem; margin: .4rem 0 0; padding: 0; list-style: none; }
.picture { margin: .6rem 0 0; }
.picture > svg, .picture > canvas { display: block; max-width: 100%; }
.picture.wide { overflow-x: auto; }
.picture.wide > svg { max-width: none; }
figure { margin: 0; }
svg text { fill: var(--text); font: 12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
svg text.muted, svg .muted { fill: var(--muted); }
svg .axis { stroke: var(--line-strong); fill: none; }
svg .rule { stroke: var(--line); fill: none; }
svg .roof { stroke: var(--accent); stroke-width: 2; fill: none; }
svg .dot { fill: var(--accent); fill-opacity: .35; stroke: var(--accent); stroke-width: 1.5; }
svg .area { fill: var(--accent); fill-opacity: .18; stroke: var(--accent); stroke-width: 1.5; }
svg .cap { stroke: var(--bad); stroke-dasharray: 5 4; stroke-width: 1.5; }
svg .chip { fill: var(--surface); stroke: var(--line-strong); }
svg .core { fill: var(--core); }
svg .here { fill: var(--accent); }
svg text.on-core { font-size: 10px; text-anchor: middle; pointer-events: none; }
svg text.on-here { fill: var(--surface); font-weight: 600; }
svg .piece-1 { fill: var(--piece-1); } svg .piece-2 { fill: var(--piece-2); }
svg .link { stroke: var(--heat); fill: none; }
svg .link path { stroke: none; fill: var(--heat); }
svg .outline { fill: none; stroke: var(--line-strong); }
canvas { touch-action: pan-y; }
ul.plain { margin: .5rem 0 0; padding-left: 1.1rem; }
ul.plain li { margin: .2rem 0; max-width: 80ch; overflow-wrap: anywhere; }

@media (max-width: 40rem) {
  body { font-size: 14px; }
  .headline, main { padding-left: .8rem; padding-right: .8rem; }
  [role=tablist] { padding: 0 .3rem; }
  .card { padding: .8rem .8rem; border-radius: 8px; }
  .scroll { margin-left: -.8rem; margin-right: -.8rem; padding-left: .8rem; padding-right: .8rem; }
  .facts { grid-template-columns: 1fr 1fr; gap: .5rem; }
  .facts dd { font-size: 1.15rem; }
  .facts > div { padding: .55rem .65rem; }
}
@media (prefers-reduced-motion: no-preference) { button, select, [role=tab] { transition: border-color .12s, color .12s; } }
@media print { [role=tablist], .controls, .skip { display: none; } [role=tabpanel][hidden] { display: block; } body { background: #fff; } }
)css";

}}}  // namespace gshard::v0::detail
