// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A whole run as one self-contained HTML page, from its telemetry and event logs.

#include <gshard/io/report/page.hpp>
#include <gshard/survive/monitor/run_history.hpp>
#include <gshard/survive/monitor/run_page_data.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// The history of a run as one JSON document. Curves have at most 800 points, and heat maps at most 160 columns and 128 rows. Its
/// size does not grow with the number of steps. If a step is repeated after a restart, the last repetition counts.
inline nlohmann::ordered_json history_json(const run_history& history, const std::string& title) {
  return detail::run_page_data(history, title).json();
}

/// The history of a run as one HTML file that needs no other file and no network. It shows the program's values, times of steps, bytes by
/// kind, and memory. Times are shown with waiting and prediction. Heat maps show processes and lists, such as the load of experts. Starts
/// and events are marked. It supports light and dark colors, keyboards, screen readers and phones.
/// @see read_run_history, telemetry, event_log
inline std::string history_page(const run_history& history, const std::string& title) {
  const nlohmann::ordered_json data = history_json(history, title);
  const bool has_steps = data.contains("steps");
  struct view {
    std::string_view id, title, draw;
    bool shown;
  };
  const std::array<view, 7> views{{{"overview", "Overview", "overview", true},
                                   {"values", "Values", "values_view", has_steps && !data["values"].empty()},
                                   {"time", "Time", "time_view", has_steps},
                                   {"communication", "Communication", "communication", has_steps},
                                   {"memory", "Memory", "memory_view", has_steps},
                                   {"lists", "Lists", "lists_view", has_steps && !data["lists"].empty()},
                                   {"events", "Events", "events_view", true}}};
  std::string tabs, panels, script;
  namespace texts = detail::page_texts;
  for (const std::string_view part : {texts::page_js, texts::charts_js, texts::history_js}) script += part;
  for (const view& v : views) {
    if (!v.shown) continue;
    const std::vector<std::pair<std::string_view, std::string>> names{{"id", std::string(v.id)}, {"title", std::string(v.title)}};
    tabs += detail::fill_in("<button type=\"button\" role=\"tab\" id=\"tab-$id\" aria-controls=\"$id-view\">$title</button>\n", names);
    panels += detail::fill_in("<div role=\"tabpanel\" id=\"$id-view\" aria-labelledby=\"tab-$id\" tabindex=\"0\" hidden></div>\n", names);
    script.append(v.draw).append(detail::fill_in("(by_id(\"$id-view\"));\n", names));
  }
  script += "start_tabs();\nstart_theme();";
  const std::string processes = std::to_string(history.processes) + (history.processes == 1 ? " process" : " processes");
  return detail::fill_in(texts::frame_html, {{"program", detail::markup_text(title.empty() ? "A run" : title)},
                                             {"subtitle", "A run of " + processes},
                                             {"style", detail::page_colors() + std::string(texts::page_css) +
                                                           std::string(texts::history_css)},
                                             {"tabs", tabs},
                                             {"panels", panels},
                                             {"data", detail::json_in_page(data)},
                                             {"script", script}});
}

}}  // namespace gshard::v0
