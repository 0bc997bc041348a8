// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Pictures (SVG) and tables (CSV) of the bytes over every link of a simulated network.

#ifndef GSHARD_SHOW_WARNINGS
#pragma GCC system_header
#endif

#include <gshard/core/base/compiled.hpp>
#include <gshard/sim/record/run_record.hpp>
#include <gshard/sim/report/auto_shard.hpp>
#include <gshard/sim/report/describe.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// Colors of eight loads, from low to high, on a light and on a dark background: ColorBrewer's YlGnBu, which is safe for color-blind
/// readers. Higher loads have more contrast to the background.
inline constexpr int heat_steps = 8;
inline constexpr std::array<std::string_view, heat_steps> heat_on_light{"#dbe9b3", "#c7e9b4", "#7fcdbb", "#41b6c4",
                                                                        "#1d91c0", "#225ea8", "#253494", "#081d58"};
inline constexpr std::array<std::string_view, heat_steps> heat_on_dark{"#2c3d9e", "#225ea8", "#1d91c0", "#41b6c4",
                                                                       "#7fcdbb", "#c7e9b4", "#edf8b1", "#ffffd9"};

namespace detail {

/// Text escaped for the inside of an element or of a quoted attribute of XML or HTML.
std::string markup_text(std::string_view text);

/// The shortest text that reads back as the same number.
std::string number_text(double x);

/// The position of a chip along the dimensions z, y, x of the network. Missing dimensions come first, as 0.
using chip_place = std::array<int, 3>;

/// A network of up to three dimensions, drawn as layers of rows of chips.
struct chip_grid {
  chip_place extent{1, 1, 1};

  explicit chip_grid(const std::vector<int>& chips) {
    const std::size_t rank = std::min<std::size_t>(chips.size(), 3);
    for (std::size_t d = 0; d < rank; ++d) extent[3 - rank + d] = chips[chips.size() - rank + d];
  }
  chip_place at(int chip) const { return {chip / (extent[1] * extent[2]), chip / extent[2] % extent[1], chip % extent[2]}; }
  int size() const { return extent[0] * extent[1] * extent[2]; }
};

/// The direction of a link between neighbors: its dimension, its sign, and whether it wraps around the edge.
struct link_course {
  int dimension = -1;  // -1: its ends are not neighbors
  int way = 0;
  bool wraps = false;
};
link_course course_of(const chip_grid& grid, const link_load& link, bool second);

/// Calls f(link, course) for every link. If a chip has two links to the same chip, the second wraps around.
template <class F>
void for_each_course(const run_record& run, F f) {
  const chip_grid grid(run.chips);
  std::set<std::pair<int, int>> seen;
  for (const link_load& link : run.links) f(link, course_of(grid, link, !seen.insert({link.from, link.to}).second));
}

double most_bytes(const std::vector<link_load>& links);
/// The color of a load on the heat scale: 1 to heat_steps, 0 for no load.
int heat_of(double bytes, double most);

std::string place_of_chip(const chip_grid& grid, const std::vector<int>& chips, int chip);

// Draws the links, in units of pixels.
class link_drawing {
 public:
  explicit link_drawing(const run_record& run)
      : run_(run), grid_(run.chips), most_(most_bytes(run.links)),
        pitch_(std::clamp(960.0 / double(grid_.extent[2] * std::min(grid_.extent[0], across)), 18.0, 64.0)) {}

  std::string text() {
    const int layers = grid_.extent[0], columns = std::min(layers, across), rows = (layers + across - 1) / across;
    const double wide = std::max(layer_wide() * columns, 560.0), high = top + layer_high() * rows + legend;
    s_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + n(wide) + " " + n(high) + "\" width=\"" + n(wide) +
         "\" height=\"" + n(high) + "\" role=\"img\" aria-labelledby=\"title\">\n";
    s_ += "<title id=\"title\">Bytes over the links of " + markup_text(run_.network) + "</title>\n";
    style();
    s_ += "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n<text class=\"head\" x=\"16\" y=\"26\">" +
          markup_text(run_.network.empty() ? "Links" : run_.network) + "</text>\n";
    for (int layer = 0; layers > 1 && layer < layers; ++layer) {
      const auto [x, y] = corner(layer);
      s_ += "<text x=\"" + n(x) + "\" y=\"" + n(y - pitch_ * 0.35 - 4) + "\">layer " + std::to_string(layer) + "</text>\n";
    }
    s_ += "<g class=\"links\">\n";
    int elsewhere = 0;
    for_each_course(run_, [&](const link_load& link, const link_course& course) {
      if (course.dimension < 0) ++elsewhere;
      else put(link, course);
    });
    s_ += "</g>\n<g class=\"chips\">\n";
    const double side = pitch_ * 0.42;
    for (int chip = 0; chip < grid_.size(); ++chip) {
      const auto [x, y] = middle(chip);
      s_ += "<rect x=\"" + n(x - side / 2) + "\" y=\"" + n(y - side / 2) + "\" width=\"" + n(side) + "\" height=\"" + n(side) +
            "\" rx=\"2\"><title>chip " + std::to_string(chip) + "</title></rect>\n";
    }
    s_ += "</g>\n";
    put_legend(high - legend + 12, elsewhere);
    return std::move(s_) + "</svg>\n";
  }

 private:
  static constexpr int across = 4;  // layers side by side
  static constexpr double top = 44, legend = 84;

  // Rounds to tenths of a pixel.
  static std::string n(double x) { return number_text(std::round(x * 10) / 10); }
  double layer_wide() const { return grid_.extent[2] * pitch_ + 32; }
  double layer_high() const { return grid_.extent[1] * pitch_ + (grid_.extent[0] > 1 ? 44 : 24); }
  std::pair<double, double> corner(int layer) const {
    return {16 + layer % across * layer_wide(), top + (grid_.extent[0] > 1 ? 24 : 4) + layer / across * layer_high()};
  }
  std::pair<double, double> middle(int chip) const {
    const chip_place at = grid_.at(chip);
    const auto [x, y] = corner(at[0]);
    return {x + (at[2] + 0.5) * pitch_, y + (at[1] + 0.5) * pitch_};
  }

  void style() {
    s_ += "<style>text{font:13px system-ui,sans-serif;fill:#1c2330}.head{font-weight:600;font-size:15px}.ground{fill:#fff}"
          ".chips rect{fill:#eef1f5;stroke:#7b8696}.links line{stroke-width:" + n(std::max(1.5, pitch_ * 0.1)) +
          "}.h0{stroke:#d5dae1;fill:#d5dae1}";
    for (int h = 0; h < heat_steps; ++h) put_color(h + 1, heat_on_light[std::size_t(h)]);
    s_ += "@media (prefers-color-scheme:dark){text{fill:#e6e9ee}.ground{fill:#14171c}.chips rect{fill:#262c36;stroke:#8b95a5}"
          ".h0{stroke:#343b47;fill:#343b47}";
    for (int h = 0; h < heat_steps; ++h) put_color(h + 1, heat_on_dark[std::size_t(h)]);
    s_ += "}</style>\n";
  }
  void put_color(int step, std::string_view color) {
    s_.append(".h").append(std::to_string(step)).append("{stroke:").append(color).append(";fill:").append(color).append("}");
  }

  void put(const link_load& link, const link_course& c) {
    const auto [x, y] = middle(link.from);
    const double side = pitch_ * 0.21, off = pitch_ * 0.09, reach = pitch_ * (c.wraps ? 0.45 : 0.79);
    const auto line = [&](double x1, double y1, double x2, double y2) {
      s_ += "<line x1=\"" + n(x1) + "\" y1=\"" + n(y1) + "\" x2=\"" + n(x2) + "\" y2=\"" + n(y2) + "\"/>";
    };
    s_ += "<g class=\"h" + std::to_string(heat_of(link.bytes, most_)) + "\"><title>chip " + std::to_string(link.from) + " to " +
          std::to_string(link.to) + ": " + describe_bytes(std::int64_t(std::llround(link.bytes))) + ", busy " +
          describe_seconds(link.seconds) + "</title>";
    if (c.dimension == 0) {  // to another layer: drawn as a corner of the chip
      const double w = c.way * pitch_ * 0.21, v = c.way * pitch_ * 0.36;
      s_ += "<path stroke=\"none\" d=\"M" + n(x + v) + " " + n(y + w) + "V" + n(y + v) + "H" + n(x + w) + "Z\"/>";
    } else if (c.dimension == 1) {
      line(x - c.way * off, y + c.way * side, x - c.way * off, y + c.way * reach);
    } else {
      line(x + c.way * side, y + c.way * off, x + c.way * reach, y + c.way * off);
    }
    if (c.wraps && c.dimension > 0) {  // the other end of the line, at the opposite edge
      const auto [tx, ty] = middle(link.to);
      if (c.dimension == 1) line(tx - c.way * off, ty - c.way * reach, tx - c.way * off, ty - c.way * side);
      else line(tx - c.way * reach, ty + c.way * off, tx - c.way * side, ty + c.way * off);
    }
    s_ += "</g>\n";
  }

  void put_legend(double y, int elsewhere) {
    s_ += "<g>\n<text x=\"16\" y=\"" + n(y + 10) + "\">Bytes over a link in a step, up to</text>\n";
    for (int h = 0; h <= heat_steps; ++h) {
      const double x = 16 + h * 60;
      s_ += "<rect class=\"h" + std::to_string(h) + "\" x=\"" + n(x) + "\" y=\"" + n(y + 18) +
            "\" width=\"56\" height=\"10\" stroke=\"none\"/><text style=\"font-size:10px\" x=\"" + n(x) + "\" y=\"" + n(y + 42) + "\">" +
            (h == 0 ? "nothing" : describe_bytes(std::int64_t(most_ * h / heat_steps))) + "</text>\n";
    }
    s_ += "<text x=\"16\" y=\"" + n(y + 62) + "\">" + std::to_string(run_.links.size()) + " links, one each way";
    if (elsewhere > 0) s_ += "; " + std::to_string(elsewhere) + " join chips that are no neighbors and are not drawn";
    s_ += ".</text>\n</g>\n";
  }

  const run_record& run_;
  chip_grid grid_;
  double most_, pitch_;
  std::string s_;
};

}  // namespace detail

/// The bytes over every link of the network as a picture (SVG, for light and dark backgrounds). Chips are drawn in rows, layers of
/// three-dimensional networks side by side. Each link and direction is a line. Links that wrap around the edge are stubs at both ends.
/// Links between layers are corners of a chip. Empty if the run has no links.
std::string link_map_svg(const run_record& run);

/// The bytes over every link as a table (CSV): chips, their positions, dimension of the link (-1: none), direction, wrapping around the
/// edge, bytes and busy seconds.
std::string link_map_csv(const run_record& run);

#if GSHARD_HAS_BODIES

namespace detail {

GSHARD_INLINE std::string markup_text(std::string_view text) {
  std::string s;
  for (const char c : text) switch (c) {
      case '&': s += "&amp;"; break;
      case '<': s += "&lt;"; break;
      case '>': s += "&gt;"; break;
      case '"': s += "&quot;"; break;
      case '\'': s += "&#39;"; break;
      default: s += c >= 0 && c < ' ' ? ' ' : c;
    }
  return s;
}

GSHARD_INLINE std::string number_text(double x) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, x).ptr};
}

GSHARD_INLINE link_course course_of(const chip_grid& grid, const link_load& link, bool second) {
  if (link.from < 0 || link.to < 0 || link.from >= grid.size() || link.to >= grid.size()) return {};
  const chip_place from = grid.at(link.from), to = grid.at(link.to);
  link_course c;
  for (int d = 0; d < 3; ++d) {
    const int step = to[std::size_t(d)] - from[std::size_t(d)], n = grid.extent[std::size_t(d)];
    if (step == 0) continue;
    if (c.dimension >= 0) return {};
    const bool around = n > 2 ? std::abs(step) == n - 1 : second;  // two chips may have two links
    if (std::abs(step) != 1 && !around) return {};
    c = {d, around ? (step < 0 ? 1 : -1) : step, around};
  }
  return c;
}

GSHARD_INLINE double most_bytes(const std::vector<link_load>& links) {
  double most = 0;
  for (const link_load& l : links) most = std::max(most, l.bytes);
  return most;
}

GSHARD_INLINE int heat_of(double bytes, double most) {
  if (bytes <= 0 || most <= 0) return 0;
  return std::clamp(int(std::ceil(heat_steps * bytes / most)), 1, heat_steps);
}

GSHARD_INLINE std::string place_of_chip(const chip_grid& grid, const std::vector<int>& chips, int chip) {
  const chip_place at = grid.at(chip);
  std::string s;
  for (std::size_t d = 3 - std::min<std::size_t>(chips.size(), 3); d < 3; ++d)
    s.append(s.empty() ? "" : "/").append(std::to_string(at[d]));
  return s;
}

}  // namespace detail

GSHARD_INLINE std::string link_map_svg(const run_record& run) {
  if (run.chips.empty() || run.links.empty()) return {};
  return detail::link_drawing(run).text();
}

GSHARD_INLINE std::string link_map_csv(const run_record& run) {
  const detail::chip_grid grid(run.chips);
  const auto rank = int(std::min<std::size_t>(run.chips.size(), 3));
  std::string s = "from,to,from_at,to_at,dimension,way,wraps,bytes,seconds\n";
  detail::for_each_course(run, [&](const link_load& l, const detail::link_course& c) {
    s += std::to_string(l.from) + "," + std::to_string(l.to) + "," + detail::place_of_chip(grid, run.chips, l.from) + "," +
         detail::place_of_chip(grid, run.chips, l.to) + "," + std::to_string(c.dimension < 0 ? -1 : c.dimension - (3 - rank)) + "," +
         std::to_string(c.way) + "," + (c.wraps ? "1" : "0") + "," + detail::number_text(l.bytes) + "," +
         detail::number_text(l.seconds) + "\n";
  });
  return s;
}

#endif

}}  // namespace gshard::v0
