// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "facts.hpp"

#include <gshard/exec/tensor/placement.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace planning {

namespace detail {

/// Colors the blocks in turn, or leaves the text unchanged.
class palette {
 public:
  explicit palette(bool colors) : on_(colors) {}
  std::string paint(const std::string& s, std::int64_t block) const {
    return on_ ? "\033[3" + std::to_string(1 + block % 6) + "m" + s + "\033[0m" : s;
  }

 private:
  bool on_;
};

/// A device that holds block `index` of dim d.
inline int holder_of(const gs::short_list& axes, std::int64_t index, std::span<const int> mesh) {
  std::array<int, gs::max_axes> at{};
  for (int i = axes.size(); i-- > 0;) {
    const auto a = std::size_t(axes[i]);
    at[a] = int(index % mesh[a]);
    index /= mesh[a];
  }
  int device = 0;
  for (std::size_t a = 0; a < mesh.size(); ++a) device = device * mesh[a] + at[a];
  return device;
}

/// The devices that hold the same block as `holder`: they differ from it only in other axes.
inline std::string holders_text(const gs::short_list& axes, int holder, std::span<const int> mesh, const std::vector<int>& order) {
  const gs::device_group same(mesh, ~axes.mask(), holder);
  if (gs::device_count(mesh) > most_listed) return std::to_string(same.size()) + (same.size() == 1 ? " device" : " devices");
  std::vector<int> devices;
  for (int m = 0; m < same.size(); ++m) devices.push_back(order.empty() ? same.device(m) : order[std::size_t(same.device(m))]);
  std::sort(devices.begin(), devices.end());
  std::string s;
  for (const int device : devices) s += (s.empty() ? "{" : ",") + std::to_string(device);
  return s + "}";
}

/// One row per block of a sharded dim: its indices, how full it is, and its devices. The middle of a long list is omitted.
inline std::string draw_blocks(const shape& s, int d, const gs::mesh_shape& mesh, const palette& colors) {
  constexpr std::int64_t most_rows = 16, ends = 4, cells = 16;
  const std::span<const int> extents = extents_of(mesh);
  std::int64_t blocks = 1;
  for (int i = 0; i < s.layout[d].size(); ++i) blocks *= mesh.static_extent(s.layout[d][i]);
  const auto at = std::size_t(d);
  const std::int64_t full = gs::place(s.extents, s.layout, extents, 0).extent[at];
  const std::size_t digits = std::to_string(s.extents[at]).size();
  const auto right = [&](std::int64_t n) {
    const std::string t = std::to_string(n);
    return std::string(digits - t.size(), ' ') + t;
  };
  std::string text;
  for (std::int64_t i = 0; i < blocks; ++i) {
    if (blocks > most_rows && i == ends) {
      i = blocks - ends;
      text += "    ... " + std::to_string(blocks - 2 * ends) + " more blocks\n";
    }
    const int holder = holder_of(s.layout[d], i, extents);
    const gs::kernel::placement here = gs::place(s.extents, s.layout, extents, holder);
    const std::int64_t begin = here.offset[at], length = here.extent[at];
    const auto filled = std::size_t(std::ceil(double(length) * double(cells) / double(full)));
    text += "    [" + right(begin) + "," + right(begin + length) + ")  " + colors.paint(std::string(filled, '#'), i) +
            std::string(std::size_t(cells) - filled, '.') + "  " + (length == 0 ? "empty  " : length < full ? "short  " : "") +
            holders_text(s.layout[d], holder, extents, s.order) + "\n";
  }
  return text;
}

}  // namespace detail

/// The layout of a tensor: the blocks of every sharded dim, and the devices that hold them. '.' marks the missing part of a short block.
/// The last line has the number of copies of every element.
inline std::string draw(const std::string& title, const tensor_facts& t, const gs::mesh_shape& mesh, bool colors) {
  const shape& s = t.whole;
  std::string text = title + "  " + text_of(s, mesh) + "  local " + text_of(t.local) + "\n";
  for (int d = 0; d < s.rank(); ++d) {
    shape alone{{s.extents[std::size_t(d)]}, gs::sharding::replicated(1)};
    alone.layout[0] = s.layout[d];
    text += "  dim " + std::to_string(d) + "  " + text_of(alone, mesh) + (s.layout[d].empty() ? "  whole on every device" : "") + "\n";
    if (!s.layout[d].empty()) text += detail::draw_blocks(s, d, mesh, detail::palette(colors));
  }
  int copies = 1, addends = 1;
  for (int a = 0; a < mesh.rank(); ++a) {
    if (s.layout.is_partial(a)) addends *= mesh.static_extent(a);
    else if (s.layout.dim_of(a) < 0) copies *= mesh.static_extent(a);
  }
  text += "  " + std::to_string(copies) + (copies == 1 ? " copy" : " copies") + " of every " +
          (addends == 1 ? "element\n" : "addend, " + std::to_string(addends) + " addends of every element\n");
  return text;
}

}  // namespace planning
