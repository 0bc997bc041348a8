// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Finds the elements that are read through windows at each tap, for slices, convolutions and pooling.

#include <gshard/core/ir/window.hpp>
#include <gshard/exec/kernel/view.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gshard { inline namespace v0 { namespace kernel {

/// One window per dim of a tensor; {} for a dim without a window.
using window_array = std::array<bound_window, max_rank>;

/// The index of position p of a window in a local region [offset, offset + extent) of a dim of `global` elements. It is -1 if the region
/// lacks it. With wrap, the region may extend beyond the dim, and all positions are taken modulo `global`.
constexpr std::int64_t source_of(const bound_window& w, std::int64_t p, std::int64_t offset, std::int64_t extent, std::int64_t global) {
  if (p % w.dilation != 0) return -1;
  const std::int64_t q = p / w.dilation;
  if (!w.wrap && (q < 0 || q >= global)) return -1;
  std::int64_t at = q - offset;
  if (w.wrap && global > 0 && (at < 0 || at >= extent)) at = (at % global + global) % global;
  return at >= 0 && at < extent ? at : -1;
}

/// Calls f(taps, flat) for every combination of the taps of the windows. `flat` is its row-major number.
template <class F>
void for_each_tap(int rank, const window_array& windows, F f) {
  std::int64_t n = 1;
  for (std::size_t d = 0; d < std::size_t(rank); ++d) n *= windows[d].taps;
  for (std::int64_t flat = 0; flat < n; ++flat) {
    index_array taps{};
    for (std::int64_t d = rank, rest = flat; d-- > 0; rest /= windows[std::size_t(d)].taps)
      taps[std::size_t(d)] = rest % windows[std::size_t(d)].taps;
    f(taps, flat);
  }
}

/// Calls f(slice, first) for slices of about `elements` elements along the first dim. `first` is the offset of the slice in the shard. A
/// slice stays in the cache while it is used several times.
template <class F>
void for_each_slice(const placement& p, std::int64_t elements, F f) {
  const std::int64_t n = p.rank == 0 ? 1 : p.extent[0], row = n == 0 ? 0 : element_count(p.rank, p.extent) / n;
  if (row == 0) return;
  const std::int64_t step = std::max<std::int64_t>(1, elements / row);
  placement slice = p;
  for (std::int64_t i = 0; i < n; i += step) {
    slice.extent[0] = std::min(step, n - i);
    slice.offset[0] = p.offset[0] + i;
    f(slice, i * row);
  }
}

/// The elements that a shard reads, at one tap of each dim, from a contiguous row-major region of another tensor of the same rank. Along
/// dim d, global index i of the shard reads position windows[d].position(i, taps[d]).
class sources {
 public:
  /// out_stride: strides of the shard, in elements.
  sources(const window_array& windows, const index_array& taps, const placement& in_at, const placement& out_at,
          const index_array& out_stride)
      : out_stride_(out_stride), empty_(element_count(out_at.rank, out_at.extent) == 0) {
    const index_array in_stride = row_major_strides(in_at.rank, in_at.extent);
    bool contiguous = true;
    for (int i = out_at.rank; i-- > 0;) {
      const auto d = std::size_t(i);
      std::vector<std::int64_t> at;
      for (std::int64_t j = 0; j < out_at.extent[d]; ++j)
        at.push_back(source_of(windows[d], windows[d].position(out_at.offset[d] + j, taps[d]), in_at.offset[d], in_at.extent[d],
                               in_at.global[d]));
      if (contiguous && out_stride[d] == run_ && in_stride[d] == run_ && is_identity(at, in_at.extent[d])) {
        run_ *= out_at.extent[d];
        continue;
      }
      for (std::int64_t& a : at) a = a < 0 ? a : a * in_stride[d];
      if (contiguous) make_row(at, out_stride[d]);
      else outer_.push_back({d, at});
      contiguous = false;
    }
    if (contiguous) make_row({0}, run_);
  }

  /// Calls row(out, in, n, out_step, in_step): n elements of the shard, from offset `out` on and out_step apart, read elements of the
  /// region, from offset `in` on and in_step apart. If an element of a row reads nothing, gap(out, n, out_step) is called for the complete
  /// row first.
  template <class Row, class Gap>
  void for_each(Row row, Gap gap) const {
    if (!empty_) walk(outer_.size(), 0, 0, true, row, gap);
  }

 private:
  // Elements of a row with constant steps on both sides.
  struct segment {
    std::int64_t out, in, count, out_step, in_step;
  };
  struct outer_dim {
    std::size_t dim;
    std::vector<std::int64_t> in;  // offset in the region that each index reads
  };

  index_array out_stride_;
  bool empty_;
  std::int64_t run_ = 1;           // elements that are contiguous on both sides; the unit of segments and rows
  std::vector<outer_dim> outer_;  // innermost first
  std::vector<segment> row_;
  std::int64_t row_extent_ = 1, row_stride_ = 1;
  bool row_is_full_ = false;

  static bool is_identity(const std::vector<std::int64_t>& at, std::int64_t extent) {
    if (std::int64_t(at.size()) != extent) return false;
    for (std::size_t j = 0; j < at.size(); ++j)
      if (at[j] != std::int64_t(j)) return false;
    return true;
  }
  void make_row(const std::vector<std::int64_t>& in, std::int64_t stride) {
    row_extent_ = std::int64_t(in.size());
    row_stride_ = stride;
    std::int64_t found = 0;
    for (std::size_t j = 0; j < in.size(); ++j) {
      if (in[j] < 0) continue;
      ++found;
      const std::int64_t out = std::int64_t(j) * stride;
      if (!row_.empty()) {
        segment& s = row_.back();
        const std::int64_t last = s.count - 1, out_step = out - (s.out + last * s.out_step), in_step = in[j] - (s.in + last * s.in_step);
        if (s.count == 1 || (s.out_step == out_step && s.in_step == in_step)) {
          s.out_step = out_step;
          s.in_step = in_step;
          ++s.count;
          continue;
        }
      }
      row_.push_back({out, in[j], 1, run_, run_});
    }
    row_is_full_ = found == row_extent_;
  }

  template <class Row, class Gap>
  void walk(std::size_t depth, std::int64_t out, std::int64_t in, bool found, Row& row, Gap& gap) const {
    if (depth > 0) {
      const outer_dim& d = outer_[depth - 1];
      for (const std::int64_t at : d.in) {
        walk(depth - 1, out, in + at, found && at >= 0, row, gap);
        out += out_stride_[d.dim];
      }
      return;
    }
    if (!found || !row_is_full_)
      in_runs(row_extent_, row_stride_, run_,
              [&](std::int64_t i, std::int64_t n, std::int64_t step, std::int64_t) { gap(out + i * row_stride_, n, step); });
    if (!found) return;
    for (const segment& s : row_)
      in_runs(s.count, s.out_step, s.in_step, [&](std::int64_t i, std::int64_t n, std::int64_t out_step, std::int64_t in_step) {
        row(out + s.out + i * s.out_step, in + s.in + i * s.in_step, n, out_step, in_step);
      });
  }
  // Merges `count` runs into one row if possible, otherwise takes them one by one: f(first run, elements, their steps).
  template <class F>
  void in_runs(std::int64_t count, std::int64_t out_step, std::int64_t in_step, F f) const {
    if (out_step == run_ && in_step == run_) return f(0, count * run_, 1, 1);
    if (run_ == 1) return f(0, count, out_step, in_step);
    for (std::int64_t i = 0; i < count; ++i) f(i, run_, 1, 1);
  }
};

}}}  // namespace gshard::v0::kernel
