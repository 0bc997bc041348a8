// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// ONNX's operators that change shapes: reshapes, transposes, slices, padding and repetition.

#include <gshard/onnx/node/indices.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/reverse.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx { namespace operators {

/// Integers that were an attribute before a version, and are an input since.
inline std::vector<std::int64_t> attribute_or_input(node_call& n, std::string_view name, std::size_t input, int since) {
  if (n.opset() < since) return n.integers(name);
  return n.has(input) ? n.known_integers(input) : std::vector<std::int64_t>{};
}
/// The same tensor with other extents, also of values that are not in the program.
inline void set_reshaped(node_call& n, const extent_list& to) {
  if (count_elements(to) != count_elements(n.extents(0)))
    throw error("makes " + text_of(to) + " of a tensor " + text_of(n.extents(0)) + ", which has another number of elements");
  n.set(0, reshaped(n.tensor(0), to), n.type(0));
}

/// The extents of Reshape: 0 keeps the extent of the input, and -1 is what is left.
inline extent_list reshape_extents(node_call& n, const std::vector<std::int64_t>& wanted, bool allows_zero) {
  extent_list to;
  std::int64_t known = 1;
  int rest = -1;
  for (std::size_t d = 0; d < wanted.size(); ++d) {
    std::int64_t e = wanted[d];
    if (e == 0 && !allows_zero) {
      if (d >= n.extents(0).size())
        throw error("has the shape " + text_of(wanted) + ", whose 0 stands for no dim of " + text_of(n.extents(0)));
      e = n.extents(0)[d];
    }
    if (e < -1 || (e == -1 && rest >= 0)) throw error("has the shape " + text_of(wanted));
    if (e == -1)
      rest = int(d);
    else
      known *= e;
    to.push_back(e);
  }
  if (rest >= 0) {
    const std::int64_t all = count_elements(n.extents(0));
    if (known == 0 || all % known != 0) throw error("has the shape " + text_of(wanted) + " for a tensor " + text_of(n.extents(0)));
    to[std::size_t(rest)] = all / known;
  }
  return to;
}
inline void reshape_tensor(node_call& n) {
  n.ignore({"consumed_inputs"});
  const bool allows_zero = n.integer("allowzero", 0) != 0;
  set_reshaped(n, reshape_extents(n, attribute_or_input(n, "shape", 1, 5), allows_zero));
}

inline extent_list squeezed_extents(node_call& n) {
  const std::vector<std::int64_t> stated = attribute_or_input(n, "axes", 1, 13);
  const std::vector<int> axes = node_call::dims(stated, n.rank(0));
  extent_list to;
  for (int d = 0; d < n.rank(0); ++d) {
    const std::int64_t e = n.extents(0)[std::size_t(d)];
    const bool named = std::find(axes.begin(), axes.end(), d) != axes.end();
    if (named && e != 1) throw error("squeezes dim " + std::to_string(d) + " of a tensor " + text_of(n.extents(0)));
    if (named || (stated.empty() && e == 1)) continue;
    to.push_back(e);
  }
  return to;
}
inline extent_list unsqueezed_extents(node_call& n) {
  const std::vector<std::int64_t> stated = attribute_or_input(n, "axes", 1, 13);
  const int rank = n.rank(0) + int(stated.size());
  std::vector<int> axes = node_call::dims(stated, rank);
  std::sort(axes.begin(), axes.end());
  extent_list to = n.extents(0);
  for (const int d : axes) to.insert(to.begin() + d, 1);
  return to;
}
inline void flatten(node_call& n) {
  const std::int64_t at = n.integer("axis", 1);
  const int rank = n.rank(0);
  if (at < -rank || at > rank) n.refuse("axis");
  const auto split = n.extents(0).begin() + (at < 0 ? at + rank : at);
  set_reshaped(n, {std::accumulate(n.extents(0).begin(), split, std::int64_t(1), std::multiplies<>()),
                   std::accumulate(split, n.extents(0).end(), std::int64_t(1), std::multiplies<>())});
}

inline void transpose(node_call& n) {
  std::vector<std::int64_t> stated = n.integers("perm");
  if (stated.empty())
    for (int d = n.rank(0); d-- > 0;) stated.push_back(d);
  const std::vector<int> order = node_call::dims(stated, n.rank(0), "perm");
  if (int(order.size()) != n.rank(0)) n.refuse("perm");
  n.set(0, transposed(n.tensor(0), order), n.type(0));
}

inline void concat_tensors(node_call& n) {
  const std::int64_t axis = n.opset() < 4 ? n.integer("axis", 1) : n.integer("axis");
  std::vector<symbol> parts;
  for (std::size_t i = 0; i < n.inputs(); ++i) {
    if (n.type(i) != n.type(0)) throw error("joins " + name(n.type(0)) + " and " + name(n.type(i)));
    parts.push_back(n.tensor(i));
  }
  n.set(0, joined(parts, node_call::dim(axis, n.rank(0))), n.type(0));
}
inline void split_tensor(node_call& n) {
  const int at = node_call::dim(n.integer("axis", 0), n.rank(0));
  std::vector<std::int64_t> parts = attribute_or_input(n, "split", 1, 13);
  const std::int64_t all = n.extents(0)[std::size_t(at)];
  const auto count = std::int64_t(n.outputs());
  n.ignore({"num_outputs"});
  if (parts.empty()) {
    const std::int64_t each = (all + count - 1) / count;
    for (std::int64_t i = 0; i < count; ++i) parts.push_back(std::clamp<std::int64_t>(all - i * each, 0, each));
  }
  if (std::int64_t(parts.size()) != count || std::accumulate(parts.begin(), parts.end(), std::int64_t(0)) != all)
    throw error("splits a dim of " + std::to_string(all) + " into " + text_of(parts));
  std::int64_t start = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    n.set(i, sliced(n.tensor(0), at, start, start + parts[i]), n.type(0));
    start += parts[i];
  }
}

/// The elements of one dim that Slice takes: `count` of them from `first` on.
struct taken_range {
  int dim = 0;
  std::int64_t first = 0, count = 0, step = 1;
};
inline std::vector<taken_range> slice_ranges(node_call& n) {
  const bool by_input = n.opset() >= 10;
  const std::vector<std::int64_t> starts = by_input ? n.known_integers(1) : n.integers("starts");
  const std::vector<std::int64_t> ends = by_input ? n.known_integers(2) : n.integers("ends");
  std::vector<std::int64_t> axes = by_input ? (n.has(3) ? n.known_integers(3) : std::vector<std::int64_t>{}) : n.integers("axes");
  std::vector<std::int64_t> steps = by_input && n.has(4) ? n.known_integers(4) : std::vector<std::int64_t>{};
  if (axes.empty())
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(std::int64_t(i));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    throw error("has starts, ends, axes and steps of different lengths");
  const std::vector<int> dims = node_call::dims(axes, n.rank(0));
  std::vector<taken_range> ranges;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t all = n.extents(0)[std::size_t(dims[i])], step = steps[i];
    if (all == 0) {
      ranges.push_back({dims[i], 0, 0, 1});
      continue;
    }
    if (step == 0 || step == std::numeric_limits<std::int64_t>::min()) throw error("has steps = " + text_of(steps));
    const auto from_back = [&](std::int64_t at) { return at < 0 ? at + all : at; };
    const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? all : all - 1;
    const std::int64_t first = std::clamp(from_back(starts[i]), step > 0 ? low : std::int64_t(0), high);
    const std::int64_t end = ends[i] < -all ? low : std::clamp(from_back(ends[i]), low, high + (step < 0 ? 1 : 0));
    const std::int64_t distance = step > 0 ? end - first : first - end, stride = step > 0 ? step : -step;
    ranges.push_back({dims[i], first, distance <= 0 ? 0 : (distance - 1) / stride + 1, step});
  }
  return ranges;
}
inline void slice_tensor(node_call& n) {
  symbol x = n.tensor(0);
  for (const taken_range& r : slice_ranges(n)) {
    if (r.count == 0) {
      x = sliced(x, r.dim, 0, 0);
    } else if (r.step > 0) {
      x = sliced(x, r.dim, r.first, r.first + (r.count - 1) * r.step + 1, std::min<std::int64_t>(r.step, 1 << 30));
    } else {
      const std::int64_t last = r.first + (r.count - 1) * r.step;
      x = sliced(x, r.dim, last, r.first + 1, std::min<std::int64_t>(-r.step, 1 << 30));
      x = checked(reverse(x, r.dim));
    }
  }
  n.set(0, x, n.type(0));
}

inline void pad_tensor(node_call& n) {
  const std::string mode = n.text("mode", "constant");
  const bool by_input = n.opset() >= 11;
  std::vector<std::int64_t> pads = by_input ? n.known_integers(1) : n.integers(n.opset() < 2 ? "paddings" : "pads");
  double fill = by_input ? (n.has(2) ? n.known_real(2) : 0) : n.real("value", 0);
  std::vector<int> axes;
  if (n.has(3))
    axes = node_call::dims(n.known_integers(3), n.rank(0));
  else
    for (int d = 0; d < n.rank(0); ++d) axes.push_back(d);
  if (pads.size() != 2 * axes.size())
    throw error("has " + std::to_string(pads.size()) + " pads for " + std::to_string(axes.size()) + " dims");
  symbol x = n.tensor(0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t low = pads[i], high = pads[i + axes.size()], all = n.extents(0)[std::size_t(axes[i])];
    if (low == 0 && high == 0) continue;
    constexpr std::int64_t most = 1 << 30;
    if (low > most || high > most || low < -most || high < -most) throw error("has pads = " + text_of(pads));
    if (mode == "constant") {
      x = checked(pad(x, axes[i], int(low), int(high), 0, fill));
      continue;
    }
    std::vector<std::int64_t> from;
    for (std::int64_t at = -low; at < all + high; ++at) {
      if (mode == "edge") {
        from.push_back(std::clamp<std::int64_t>(at, 0, all - 1));
      } else if (mode == "wrap") {
        from.push_back(((at % all) + all) % all);
      } else if (mode == "reflect") {
        const std::int64_t period = std::max<std::int64_t>(1, 2 * (all - 1)), within = ((at % period) + period) % period;
        from.push_back(within < all ? within : period - within);
      } else {
        n.refuse("mode");
      }
    }
    x = taken(n, x, axes[i], from);
  }
  n.set(0, x, n.type(0));
}

inline void expand(node_call& n) {
  const extent_list to = broadcast_extents(n.extents(0), n.known_integers(1));
  n.set(0, expanded(n.tensor(0), to), n.type(0));
}
/// x, `repeats` times along each dim.
inline symbol tiled(symbol x, const std::vector<std::int64_t>& repeats) {
  for (std::size_t d = 0; d < repeats.size(); ++d) {
    if (repeats[d] == 1) continue;
    const extent_list own = extents_of(x);
    if (repeats[d] == 0) {
      x = sliced(x, int(d), 0, 0);
      continue;
    }
    if (own.size() == std::size_t(max_rank)) {
      x = joined(std::vector<symbol>(std::size_t(repeats[d]), x), int(d));
      continue;
    }
    extent_list with = own, whole = own;
    with.insert(with.begin() + std::ptrdiff_t(d), 1);
    x = reshaped(x, with);
    with[d] = repeats[d];
    whole[d] *= repeats[d];
    x = reshaped(expanded(x, with), whole);
  }
  return x;
}
inline void tile(node_call& n) {
  const std::vector<std::int64_t> stated = n.known_integers(1);
  std::vector<std::int64_t> repeats = stated;
  if (n.opset() < 6) {
    repeats.assign(std::size_t(n.rank(0)), 1);
    repeats[std::size_t(node_call::dim(n.known_integers(2).at(0), n.rank(0)))] = stated.at(0);
  }
  if (int(repeats.size()) != n.rank(0)) throw error("repeats " + std::to_string(n.rank(0)) + " dims " + text_of(repeats) + " times");
  for (const std::int64_t r : repeats)
    if (r < 0) throw error("repeats dims " + text_of(repeats) + " times");
  n.set(0, tiled(n.tensor(0), repeats), n.type(0));
}

/// Blocks of channels as pixels, and the opposite.
inline void depth_to_space(node_call& n) {
  const std::int64_t size = n.integer("blocksize");
  const std::string mode = n.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.refuse("mode");
  if (n.rank(0) != 4 || size < 1 || n.extents(0)[1] % (size * size) != 0) n.refuse("blocksize");
  const std::int64_t images = n.extents(0)[0], channels = n.extents(0)[1] / (size * size), height = n.extents(0)[2],
                     width = n.extents(0)[3];
  const bool depth_first = mode == "DCR";
  const symbol blocks = depth_first ? reshaped(n.tensor(0), {images, size, size, channels, height, width})
                                    : reshaped(n.tensor(0), {images, channels, size, size, height, width});
  const symbol turned = depth_first ? transposed(blocks, {0, 3, 4, 1, 5, 2}) : transposed(blocks, {0, 1, 4, 2, 5, 3});
  n.set(0, reshaped(turned, {images, channels, height * size, width * size}), n.type(0));
}
inline void space_to_depth(node_call& n) {
  const std::int64_t size = n.integer("blocksize");
  if (n.rank(0) != 4 || size < 1 || n.extents(0)[2] % size != 0 || n.extents(0)[3] % size != 0) n.refuse("blocksize");
  const std::int64_t images = n.extents(0)[0], channels = n.extents(0)[1], height = n.extents(0)[2] / size, width = n.extents(0)[3] / size;
  const symbol blocks = reshaped(n.tensor(0), {images, channels, height, size, width, size});
  n.set(0, reshaped(transposed(blocks, {0, 3, 5, 1, 2, 4}), {images, channels * size * size, height, width}), n.type(0));
}

/// The shape of the input, or a part of it: known while importing.
inline void shape_of(node_call& n) {
  const std::int64_t rank = n.rank(0);
  const auto within = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t start = within(n.integer("start", 0)), end = within(n.integer("end", rank));
  std::vector<std::int64_t> part;
  for (std::int64_t d = start; d < end; ++d) part.push_back(n.extents(0)[std::size_t(d)]);
  n.set(0, integers_of(part));
}
inline void size_of_tensor(node_call& n) {
  n.set(0, scalar_integer(count_elements(n.extents(0))));
}

inline constexpr operator_row shapes[]{
    {"Concat", concat_tensors},
    {"DepthToSpace", depth_to_space},
    {"Expand", expand},
    {"Flatten", flatten},
    {"Pad", pad_tensor},
    {"Reshape", reshape_tensor},
    {"Shape", shape_of},
    {"Size", size_of_tensor},
    {"Slice", slice_tensor},
    {"SpaceToDepth", space_to_depth},
    {"Split", split_tensor},
    {"Squeeze", [](node_call& n) { set_reshaped(n, squeezed_extents(n)); }},
    {"Tile", tile},
    {"Transpose", transpose},
    {"Unsqueeze", [](node_call& n) { set_reshaped(n, unsqueezed_extents(n)); }},
};

}}}}  // namespace gshard::v0::onnx::operators
