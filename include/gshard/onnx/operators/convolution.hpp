// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// ONNX's convolutions and pooling.

#include <gshard/onnx/node/arithmetic.hpp>
#include <gshard/onnx/node/indices.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>
#include <gshard/onnx/node/scalar_functions.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/window/convolution.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/pool.hpp>
#include <gshard/ops/window/reverse.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx { namespace operators {

/// The attributes of windows over the spatial dims, with their defaults.
struct window_attributes {
  std::vector<std::int64_t> kernel, strides, dilations, low, high;

  std::size_t size() const { return kernel.size(); }
  /// The positions that a window spans.
  std::int64_t span(std::size_t d) const { return dilations[d] * (kernel[d] - 1) + 1; }
  std::int64_t padded(std::size_t d, std::int64_t extent) const { return extent + low[d] + high[d]; }
};
inline std::vector<std::int64_t> sized_attribute(node_call& n, std::string_view name, std::size_t size, std::int64_t otherwise) {
  std::vector<std::int64_t> all = n.integers(name);
  if (all.empty()) all.assign(size, otherwise);
  if (all.size() != size) n.refuse(name);
  for (const std::int64_t e : all)
    if (e < 0 || e > (1 << 20)) n.refuse(name);
  return all;
}
/// `extents`: of the spatial dims. `kernel`: the taps that the weights have, or empty.
inline window_attributes windows_of(node_call& n, const extent_list& extents, std::vector<std::int64_t> kernel) {
  const std::size_t dims = extents.size();
  if (dims == 0 || dims > 3) throw error("has " + std::to_string(dims) + " spatial dims; gshard computes one to three");
  window_attributes w;
  const std::vector<std::int64_t> stated = n.integers("kernel_shape");
  if (kernel.empty()) kernel = stated;
  if (kernel.size() != dims || (!stated.empty() && stated != kernel)) n.refuse("kernel_shape");
  w.kernel = kernel;
  w.strides = sized_attribute(n, "strides", dims, 1);
  w.dilations = sized_attribute(n, "dilations", dims, 1);
  for (std::size_t d = 0; d < dims; ++d)
    if (w.kernel[d] < 1 || w.strides[d] < 1 || w.dilations[d] < 1) throw error("has windows without elements");
  const std::vector<std::int64_t> pads = sized_attribute(n, "pads", 2 * dims, 0);
  const std::string how = n.text("auto_pad", "NOTSET");
  if (how != "NOTSET" && how != "VALID" && how != "SAME_UPPER" && how != "SAME_LOWER") n.refuse("auto_pad");
  for (std::size_t d = 0; d < dims; ++d) {
    if (how == "NOTSET" || how == "VALID") {
      w.low.push_back(how == "VALID" ? 0 : pads[d]);
      w.high.push_back(how == "VALID" ? 0 : pads[dims + d]);
      continue;
    }
    const std::int64_t out = (extents[d] + w.strides[d] - 1) / w.strides[d];
    const std::int64_t missing = std::max<std::int64_t>(0, (out - 1) * w.strides[d] + w.span(d) - extents[d]), less = missing / 2;
    w.low.push_back(how == "SAME_UPPER" ? less : missing - less);
    w.high.push_back(missing - w.low.back());
  }
  return w;
}

inline extent_list spatial(const extent_list& all) {
  if (all.size() < 3) throw error("has an input of " + std::to_string(all.size()) + " dims, without spatial ones");
  return {all.begin() + 2, all.end()};
}
/// "XY", "xy"
inline std::string spatial_letters(std::size_t dims) {
  return std::string("XYZ").substr(0, dims);
}
inline std::string tap_letters(std::size_t dims) {
  return std::string("xyz").substr(0, dims);
}

/// The convolution of x [N, C, ...] with w, in groups of channels. `input_first`: w is [C, O, ...], as of transposed convolutions, and not
/// [O, C, ...].
inline symbol grouped_convolution(symbol x, symbol w, std::int64_t groups, bool input_first, const std::vector<conv_window>& how) {
  const extent_list own = extents_of(x), taps = extents_of(w);
  const std::size_t dims = own.size() - 2;
  const std::int64_t channels = own[1], in = channels / groups, out = input_first ? taps[1] : taps[0] / groups;
  const std::string xs = spatial_letters(dims), ts = tap_letters(dims);
  const auto with_dims = [&](extent_list first, const extent_list& rest) {
    first.insert(first.end(), rest.begin() + 2, rest.end());
    return first;
  };
  const auto convolved = [&](const std::string& text, symbol a, symbol b) {
    return checked(conv(text, here(a), b, list_view(how.data(), how.size())));
  };
  const std::string kernel = input_first ? "IO" : "OI";
  if (groups == 1) return convolved("NI" + xs + "," + kernel + ts + "->NO" + xs, x, w);
  if (dims == 3 && in > 1) {  // dims, taps and groups would be too many
    std::vector<symbol> parts;
    for (std::int64_t g = 0; g < groups; ++g) {
      const symbol a = sliced(x, 1, g * in, (g + 1) * in);
      const symbol b = input_first ? sliced(w, 0, g * in, (g + 1) * in) : sliced(w, 0, g * out, (g + 1) * out);
      parts.push_back(convolved("NI" + xs + "," + kernel + ts + "->NO" + xs, a, b));
    }
    return joined(parts, 1);
  }
  const std::string i = in > 1 ? "I" : "";
  const symbol a = in > 1 ? reshaped(x, with_dims({own[0], groups, in}, own)) : x;
  extent_list weights = in == 1 ? extent_list{groups, out} : input_first ? extent_list{groups, in, out} : extent_list{groups, out, in};
  const symbol b = reshaped(w, with_dims(weights, taps));
  const std::string order = in == 1 ? "GO" : input_first ? "GIO" : "GOI";
  const symbol y = convolved("NG" + i + xs + "," + order + ts + "->NGO" + xs, a, b);
  extent_list merged = extents_of(y);
  merged.erase(merged.begin() + 1);
  merged[1] = groups * out;
  return reshaped(y, merged);
}
/// y plus a number for each channel.
inline symbol with_bias(symbol y, symbol bias) {
  return mapped_along(pointwise_add, y, 1, {bias});
}
inline std::int64_t checked_groups(node_call& n, std::int64_t channels, std::int64_t of_weights) {
  const std::int64_t groups = n.integer("group", 1);
  if (groups < 1 || channels % groups != 0 || channels / groups != of_weights) n.refuse("group");
  return groups;
}

/// The convolution of tensors of real numbers, with the attributes of Conv.
inline symbol convolution_of(node_call& n, symbol x, symbol w) {
  const extent_list own = extents_of(x), taps = extents_of(w);
  if (own.size() != taps.size()) throw error("has an input " + text_of(own) + " and weights " + text_of(taps));
  const window_attributes windows = windows_of(n, spatial(own), spatial(taps));
  const std::int64_t groups = checked_groups(n, own[1], taps[1]);
  if (taps[0] % groups != 0) n.refuse("group");
  std::vector<conv_window> how;
  for (std::size_t d = 0; d < windows.size(); ++d)
    how.push_back(
        {.stride = int(windows.strides[d]), .low = int(windows.low[d]), .high = int(windows.high[d]), .step = int(windows.dilations[d])});
  return grouped_convolution(x, w, groups, false, how);
}
inline void convolution(node_call& n) {
  const symbol x = n.real(0), w = n.real(1);
  symbol y = convolution_of(n, x, w);
  if (n.has(2)) y = with_bias(y, n.real(2));
  n.set(0, y, n.type(0));
}

/// The transposed convolution of x [N, C, ...] with w [C, O, ...] whose windows neither overlap nor leave gaps: each position makes its
/// own block of the result.
inline symbol blocks(symbol x, symbol w) {
  const extent_list own = extents_of(x), taps = extents_of(w);
  const std::size_t dims = own.size() - 2;
  const std::string xs = spatial_letters(dims), ts = tap_letters(dims);
  std::string both;
  extent_list merged{own[0], taps[1]};
  for (std::size_t d = 0; d < dims; ++d) {
    both += {xs[d], ts[d]};
    merged.push_back(own[d + 2] * taps[d + 2]);
  }
  return reshaped(checked(einsum("NC" + xs + ",CO" + ts + "->NO" + both, {x, w})), merged);
}
/// The gradient of a convolution: the input is dilated by the strides, and the taps are reversed.
inline void transposed_convolution(node_call& n) {
  const symbol x = n.real(0), w = n.real(1);
  const extent_list &own = n.extents(0), &taps = n.extents(1);
  if (own.size() != taps.size() || own[1] != taps[0]) throw error("has an input " + text_of(own) + " and weights " + text_of(taps));
  const std::string how_padded = n.text("auto_pad", "NOTSET");
  const extent_list positions = spatial(own);
  const std::size_t dims = positions.size();
  window_attributes windows = windows_of(n, positions, spatial(taps));
  const std::vector<std::int64_t> more = sized_attribute(n, "output_padding", dims, 0);
  std::vector<std::int64_t> shape = n.integers("output_shape");
  if (shape.size() == dims + 2) shape.erase(shape.begin(), shape.begin() + 2);
  const bool is_same = how_padded == "SAME_UPPER" || how_padded == "SAME_LOWER";
  if (is_same && shape.empty())
    for (std::size_t d = 0; d < dims; ++d) shape.push_back(positions[d] * windows.strides[d]);
  if (!shape.empty() && shape.size() != dims) n.refuse("output_shape");
  const std::int64_t groups = n.integer("group", 1);
  if (groups < 1 || own[1] % groups != 0) n.refuse("group");
  std::vector<conv_window> how;
  std::vector<int> turned;
  bool are_blocks = groups == 1;
  for (std::size_t d = 0; d < dims; ++d) {
    if (!shape.empty()) {
      const std::int64_t all = windows.strides[d] * (positions[d] - 1) + more[d] + windows.span(d) - shape[d],
                         half = (all - (all & 1)) / 2;  // rounded down, also if the output is larger
      windows.low[d] = how_padded == "SAME_UPPER" ? half : all - half;
      windows.high[d] = all - windows.low[d];
    }
    are_blocks = are_blocks && windows.strides[d] == windows.kernel[d] && windows.dilations[d] == 1 && windows.low[d] == 0 &&
                 windows.high[d] == 0 && more[d] == 0;
    const std::int64_t reach = windows.span(d) - 1;
    how.push_back({.stride = 1,
                   .low = int(reach - windows.low[d]),
                   .high = int(reach - windows.high[d] + more[d]),
                   .step = int(windows.dilations[d]),
                   .dilation = int(windows.strides[d])});
    turned.push_back(int(d) + 2);
  }
  symbol y = are_blocks ? blocks(x, w)
                        : grouped_convolution(x, checked(reverse(w, list_view(turned.data(), turned.size()))), groups, true, how);
  if (n.has(2)) y = with_bias(y, n.real(2));
  n.set(0, y, n.type(0));
}

/// The windows of a pooling operator; with ceil_mode the last window may be incomplete.
inline std::vector<pool_window> pool_windows(node_call& n, window_attributes& w, const extent_list& positions) {
  const bool rounds_up = n.integer("ceil_mode", 0) != 0;
  std::vector<pool_window> all;
  for (std::size_t d = 0; d < w.size(); ++d) {
    std::int64_t high = w.high[d];
    const std::int64_t room = w.padded(d, positions[d]) - w.span(d);
    if (room < 0) throw error("has windows that are larger than the input");
    if (rounds_up) {
      std::int64_t last = (room + w.strides[d] - 1) / w.strides[d];
      if (last * w.strides[d] >= positions[d] + w.low[d]) --last;  // it would have no element
      high = std::max(high, last * w.strides[d] + w.span(d) - positions[d] - w.low[d]);
      if (last * w.strides[d] <= room) high = w.high[d];
    }
    all.push_back({.dim = int(d) + 2,
                   .taps = int(w.kernel[d]),
                   .how = {.stride = int(w.strides[d]), .low = int(w.low[d]), .high = int(high), .step = int(w.dilations[d])}});
  }
  return all;
}
/// Pools by f(x, windows): large windows one dim after the other, because all their taps together would be many.
template <class F>
symbol pooled(symbol x, const std::vector<pool_window>& windows, const F& f) {
  constexpr std::int64_t most = 64;
  std::int64_t taps = 1;
  for (const pool_window& w : windows) taps *= w.taps;
  if (taps <= most) return checked(f(x, list_view(windows.data(), windows.size())));
  for (const pool_window& w : windows) x = checked(f(x, list_view(&w, 1)));
  return x;
}
inline void max_pooling(node_call& n) {
  const extent_list positions = spatial(n.extents(0));
  window_attributes w = windows_of(n, positions, {});
  const std::vector<pool_window> windows = pool_windows(n, w, positions);
  const bool by_columns = n.integer("storage_order", 0) != 0;
  const symbol x = is_float(n.type(0)) ? n.real(0) : checked(cast(comparable(n, 0), dtype::f64));
  const auto largest = [](symbol s, list_view<pool_window> over) { return max_pool(s, over); };
  if (!n.wants(1)) return n.set(0, pooled(x, windows, largest), n.type(0));
  const symbol y = checked(max_pool(x, list_view(windows.data(), windows.size())));
  symbol tap = n.program().result_of_last(1);
  n.set(0, y, n.type(0));
  // The place of the element in the input, row by row, from the number of its tap.
  const extent_list out = extents_of(y);
  symbol flat{};
  std::int64_t size = 1;
  std::vector<symbol> at(out.size());
  for (int d = 0; d < 2; ++d) at[std::size_t(d)] = index_along(n.program(), out, d);
  for (std::size_t d = w.size(); d-- > 0;) {
    const symbol taps = scalar_like(tap, double(w.kernel[d]));
    const symbol own = mapped(detail::own_function<detail::arithmetic::modulo>, {tap, taps});
    tap = divided(tap, taps);
    const symbol begin =
        sum_of(scaled(index_along(n.program(), out, int(d) + 2), double(w.strides[d])), scalar_like(tap, -double(w.low[d])));
    at[d + 2] = sum_of(begin, scaled(own, double(w.dilations[d])));
  }
  std::vector<std::size_t> order(out.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  if (by_columns) std::reverse(order.begin() + 2, order.end());
  for (std::size_t k = order.size(); k-- > 0;) {
    const symbol part = scaled(checked(cast(at[order[k]], dtype::i64)), double(size));
    flat = k + 1 == order.size() ? part : sum_of(flat, part);
    size *= n.extents(0)[order[k]];
  }
  n.set(1, flat, element::i64);
}
inline void average_pooling(node_call& n) {
  const extent_list positions = spatial(n.extents(0));
  window_attributes w = windows_of(n, positions, {});
  const std::vector<pool_window> windows = pool_windows(n, w, positions);
  const bool counts_padding = n.integer("count_include_pad", 0) != 0;
  const symbol x = n.real(0);
  symbol y = pooled(x, windows, [](symbol s, list_view<pool_window> over) { return sum_pool(s, over); });
  const extent_list out = extents_of(y);
  for (std::size_t d = 0; d < w.size(); ++d) {  // the number of elements of a window is a product over the dims
    std::vector<double> shares;
    bool equal = true;
    for (std::int64_t o = 0; o < out[d + 2]; ++o) {
      std::int64_t count = 0;
      for (std::int64_t k = 0; k < w.kernel[d]; ++k) {
        const std::int64_t at = o * w.strides[d] - w.low[d] + k * w.dilations[d];
        count += counts_padding ? at < positions[d] + w.high[d] : at >= 0 && at < positions[d];
      }
      shares.push_back(1 / double(std::max<std::int64_t>(1, count)));
      equal = equal && shares.back() == shares[0];
    }
    if (shares.empty()) continue;
    extent_list along(w.size() - d, 1);
    along[0] = out[d + 2];
    y = equal ? scaled(y, shares[0]) : product(y, real_tensor(n.state(), shares, along, y.get().type));
  }
  n.set(0, y, n.type(0));
}
/// The elements of a pooled tensor at the places that they came from, and zeros.
inline void max_unpooling(node_call& n) {
  const extent_list positions = spatial(n.extents(0));
  const window_attributes w = windows_of(n, positions, {});
  extent_list to{n.extents(0)[0], n.extents(0)[1]};
  for (std::size_t d = 0; d < w.size(); ++d) to.push_back((positions[d] - 1) * w.strides[d] + w.kernel[d] - w.low[d] - w.high[d]);
  const extent_list flat{elements_of(n.tensor(0))};
  const symbol ids = reshaped(indices(n, 1, count_elements(to)), flat);
  const symbol zeros = filled(n.program(), n.real(0).get().type, extent_list{count_elements(to)}, 0);
  symbol y = reshaped(checked(scatter_add(zeros, ids, reshaped(n.real(0), flat))), to);
  if (n.has(2)) {
    const std::vector<std::int64_t> shape = n.known_integers(2);
    if (shape.size() != to.size()) throw error("has an output_shape of " + std::to_string(shape.size()) + " dims");
    for (std::size_t d = 0; d < to.size(); ++d) {
      if (shape[d] < to[d] || shape[d] > (1 << 30)) throw error("has output_shape " + text_of(shape) + " for a tensor " + text_of(to));
      if (shape[d] > to[d]) y = checked(pad(y, int(d), 0, int(shape[d] - to[d])));
    }
  }
  n.set(0, y, n.type(0));
}
inline std::vector<int> spatial_dims(node_call& n) {
  std::vector<int> over;
  for (int d = 2; d < n.rank(0); ++d) over.push_back(d);
  return over;
}
inline void global_average_pooling(node_call& n) {
  n.set(0, averaged(n.real(0), spatial_dims(n), true), n.type(0));
}
inline void global_max_pooling(node_call& n) {
  n.set(0, reduced(n.real(0), reduction::max, spatial_dims(n), true), n.type(0));
}

/// Division by a power of the squares of neighbouring channels.
inline void local_response_normalization(node_call& n) {
  const std::int64_t size = n.integer("size");
  const double alpha = n.real("alpha", 0.0001), beta = n.real("beta", 0.75), bias = n.real("bias", 1);
  if (size < 1 || size > (1 << 20) || n.rank(0) < 2) n.refuse("size");
  const symbol x = n.real(0);
  const int low = int((size - 1) / 2);
  const pool_window window{.dim = 1, .taps = int(size), .how = {.low = low, .high = int(size) - 1 - low}};
  const symbol squares = checked(sum_pool(product(x, x), list_view(&window, 1)));
  const symbol base = sum_of(scaled(squares, alpha / double(size)), scalar_like(x, bias));
  n.set(0, quotient(x, mapped<functions::power{}, 2>({base, scalar_like(x, beta)})), n.type(0));
}

inline constexpr operator_row convolutions[]{
    {"AveragePool", average_pooling},
    {"Conv", convolution},
    {"ConvTranspose", transposed_convolution},
    {"GlobalAveragePool", global_average_pooling},
    {"GlobalMaxPool", global_max_pooling},
    {"LRN", local_response_normalization},
    {"MaxPool", max_pooling},
    {"MaxUnpool", max_unpooling},
};

}}}}  // namespace gshard::v0::onnx::operators
