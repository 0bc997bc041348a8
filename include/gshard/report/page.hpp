// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/comm/simulator/run_record.hpp>
#include <gshard/comm/simulator/sweep_row.hpp>
#include <gshard/pass/plan.hpp>
#include <gshard/report/link_map.hpp>
#include <gshard/report/page_mesh.hpp>
#include <gshard/report/page_script.hpp>
#include <gshard/report/page_style.hpp>
#include <gshard/report/page_timeline.hpp>
#include <gshard/report/page_views.hpp>
#include <gshard/report/run_json.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

/// JSON for the inside of a script element, which no text in it can end: < stands as its escape.
inline std::string json_in_page(const ordered_json& document) {
  std::string s;
  for (const char c : text_of_json(document))
    if (c == '<') s += "\\u003c";
    else s += c;
  return s;
}

inline void put_heat(std::string& s, const std::array<std::string_view, heat_steps>& colours) {
  s += "  --h0: var(--line);";
  for (std::size_t h = 0; h < colours.size(); ++h) s.append(" --h").append(std::to_string(h + 1)).append(": ").append(colours[h]).append(";");
  s += "\n";
}

inline std::string page_colours() {
  std::string light(page_light), dark(page_dark);
  put_heat(light, heat_on_light);
  put_heat(dark, heat_on_dark);
  return ":root {" + light + "}\n:root[data-theme=dark] {" + dark + "}\n@media (prefers-color-scheme: dark) { :root:not([data-theme=light]) {" + dark +
         "} }\n@media print { :root:root:root {" + light + "} }\n";
}

struct page_view {
  std::string_view id, title, draw;  // draw: the function of the script that fills it
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

}  // namespace detail

/// A simulated run as one HTML file that needs nothing else, no network either: headline numbers and where time goes, all steps with why they
/// communicate, roofline, timeline, mesh and how tensors are cut, bytes over links, memory, other runs to compare with if there are any, and
/// what was assumed. The page holds the document of `run_json`, from which it draws all it shows. For light and dark, keyboards, readers and
/// phones. Throws `gshard::error` if the record is not of this plan. @see run_json
inline std::string run_page(const run_record& run, const plan_view& plan, const extents& sizes, const std::vector<sweep_row>& sweep = {}) {
  const auto is_shown = [&](const detail::page_view& v) { return v.id != "comparison" || !sweep.empty(); };
  const std::string title = detail::markup_text(run.program.empty() ? "A step" : run.program);
  std::string s = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                  "<link rel=\"icon\" href=\"data:,\">\n<title>" + title + " - gshard run</title>\n<style>\n";
  s.append(detail::page_colours()).append(detail::page_style.substr(1));
  s += "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to content</a>\n<header class=\"top\">\n<div>\n<div class=\"title\"><h1>" + title +
       "</h1>\n<p class=\"muted\">" + detail::markup_text(detail::mesh_text(run)) + (run.network.empty() ? "" : " on " + detail::markup_text(run.network)) +
       "; a simulated run</p></div>\n"
       "<label for=\"theme\">Colours <select id=\"theme\"><option value=\"\">as the system</option><option value=\"light\">light</option>"
       "<option value=\"dark\">dark</option></select></label>\n</div>\n<nav aria-label=\"Views\"><div role=\"tablist\" aria-label=\"Views\">\n";
  for (const detail::page_view& v : detail::page_list)
    if (is_shown(v))
      s.append("<button type=\"button\" role=\"tab\" id=\"tab-").append(v.id).append("\" aria-controls=\"").append(v.id).append("-view\">").append(v.title).append("</button>\n");
  s += "</div></nav>\n</header>\n<main id=\"main\" tabindex=\"-1\">\n<noscript><p>This page draws its data with a script, and scripts are switched off.</p></noscript>\n";
  for (const detail::page_view& v : detail::page_list)
    if (is_shown(v))
      s.append("<div role=\"tabpanel\" id=\"").append(v.id).append("-view\" aria-labelledby=\"tab-").append(v.id).append("\" tabindex=\"0\" hidden></div>\n");
  s += "</main>\n<script type=\"application/json\" id=\"run\">";
  s += detail::json_in_page(run_json(run, plan, sizes, sweep));
  s += "</script>\n<script>";
  s.append(detail::page_script).append(detail::page_views.substr(1)).append(detail::page_mesh.substr(1)).append(detail::page_timeline.substr(1));
  for (const detail::page_view& v : detail::page_list)
    if (is_shown(v)) s.append(v.draw).append("(by_id(\"").append(v.id).append("-view\"));\n");
  return s + "start_tabs();\nstart_theme();\n</script>\n</body>\n</html>\n";
}

}}  // namespace gshard::v0
