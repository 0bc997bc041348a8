// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A simulated run as one self-contained HTML page.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#if !__has_include(<gshard/io/report/page_texts.hpp>)
#include "gshard: pages need a header that CMake makes: link gshard::io, or run cmake/embed_pages.cmake"
#endif
#include <gshard/core/plan/plan.hpp>
#include <gshard/io/report/page_texts.hpp>
#include <gshard/io/report/run_json.hpp>
#include <gshard/sim/record/run_record.hpp>
#include <gshard/sim/report/link_map.hpp>
#include <gshard/sim/run/sweep_row.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

/// JSON for the inside of a script element. `<` is escaped, so that no text can end the element.
inline std::string json_in_page(const ordered_json& document) {
  std::string s;
  for (const char c : text_of_json(document))
    if (c == '<') s += "\\u003c";
    else s += c;
  return s;
}

inline std::string heat_colors(const std::array<std::string_view, heat_steps>& colors) {
  std::string s = "  --h0: var(--line);";
  for (std::size_t h = 0; h < colors.size(); ++h)
    s.append(" --h").append(std::to_string(h + 1)).append(": ").append(colors[h]).append(";");
  return s + "\n";
}

inline std::string page_colors() {
  const std::string light = std::string(page_texts::light_css) + heat_colors(heat_on_light);
  const std::string dark = std::string(page_texts::dark_css) + heat_colors(heat_on_dark);
  return ":root {" + light + "}\n:root[data-theme=dark] {" + dark + "}\n@media (prefers-color-scheme: dark) { " +
         ":root:not([data-theme=light]) {" + dark + "} }\n@media print { :root:root:root {" + light + "} }\n";
}

struct page_view {
  std::string_view id, title, draw;  // draw: the script's function that fills the view
};
inline constexpr std::array<page_view, 9> page_list{{{"overview", "Overview", "overview"},
                                                     {"steps", "Steps", "all_steps"},
                                                     {"roofline", "Roofline", "roofline"},
                                                     {"timeline", "Timeline", "timeline"},
                                                     {"mesh", "Mesh and sharding", "mesh_view"},
                                                     {"links", "Links", "links_view"},
                                                     {"memory", "Memory", "memory"},
                                                     {"comparison", "Other meshes", "comparison"},
                                                     {"sources", "Sources", "sources"}}};

/// Replaces every $name of a text by its part. Parts are not searched for names.
inline std::string fill_in(std::string_view text, const std::vector<std::pair<std::string_view, std::string>>& parts) {
  std::string s;
  for (std::size_t at = 0;;) {
    const std::size_t next = text.find('$', at);
    s.append(text.substr(at, next - at));
    if (next == text.npos) return s;
    at = next + 1;
    for (const auto& [name, part] : parts)
      if (text.substr(at).starts_with(name)) {
        s += part;
        at += name.size();
        break;
      }
  }
}

}  // namespace detail

/// A simulated run as one HTML file that needs no other file and no network. It shows headline numbers, the parts of the time, and all
/// steps with the reasons of their communication. It has views for roofline, timeline, mesh and shardings, bytes over links, memory, other
/// runs for comparison if given, and assumptions. The page holds the document of `run_json` and draws everything from it. It supports light
/// and dark colors, keyboards, screen readers and phones. Throws `gshard::error` if the record is not of this plan. @see run_json
inline std::string run_page(const run_record& run, const plan_view& plan, const extents& sizes, const std::vector<sweep_row>& sweep = {}) {
  std::string tabs, panels, script;
  namespace texts = detail::page_texts;
  for (const std::string_view part : {texts::page_js, texts::views_js, texts::mesh_js, texts::timeline_js}) script += part;
  for (const detail::page_view& v : detail::page_list) {
    if (v.id == "comparison" && sweep.empty()) continue;
    const std::vector<std::pair<std::string_view, std::string>> names{{"id", std::string(v.id)}, {"title", std::string(v.title)}};
    tabs += detail::fill_in("<button type=\"button\" role=\"tab\" id=\"tab-$id\" aria-controls=\"$id-view\">$title</button>\n", names);
    panels += detail::fill_in("<div role=\"tabpanel\" id=\"$id-view\" aria-labelledby=\"tab-$id\" tabindex=\"0\" hidden></div>\n", names);
    script.append(v.draw).append(detail::fill_in("(by_id(\"$id-view\"));\n", names));
  }
  script += "start_tabs();\nstart_theme();";
  const std::string network = run.network.empty() ? "" : " on " + detail::markup_text(run.network);
  return detail::fill_in(texts::frame_html, {{"program", detail::markup_text(run.program.empty() ? "A step" : run.program)},
                                             {"subtitle", detail::markup_text(detail::mesh_text(run)) + network + "; a simulated run"},
                                             {"style", detail::page_colors() + std::string(texts::page_css)},
                                             {"tabs", tabs},
                                             {"panels", panels},
                                             {"data", detail::json_in_page(run_json(run, plan, sizes, sweep))},
                                             {"script", script}});
}

}}  // namespace gshard::v0
