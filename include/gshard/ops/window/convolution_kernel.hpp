// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels of convolutions.

#include <gshard/core/base/interval.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/gemm/contract.hpp>
#include <gshard/exec/kernel/move/move.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/ops/window/convolution.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace kernel {

/// The dims of an operand that is read through windows. Along dim d, factor[d] has the global indices i in [indices.offset, indices.offset
/// + indices.extent), and tap_factor[d] has the taps k. They read position windows[d].position(i, k).
struct windowed_dims {
  static constexpr int none = -1;

  placement at;  // the contiguous local region; elements outside of it count as zero
  placement indices;
  window_array windows{};
  std::array<int, max_rank> factor{};
  std::array<int, max_rank> tap_factor{none, none, none, none, none, none, none, none};  // none: one tap
};

/// An einsum whose first operand is read through windows: out[o] = sum of a[position(i, k)] * b over the factors that are not in the
/// result. Positions without an element count as zero. Indices, taps and plain dims are all factors, so one form serves convolutions, sums
/// over windows, and the gradients of both. The elements to read are copied into scratch memory as patches, piece by piece, and contracted.
/// Prepared once, run many times.
/// Throws gshard::error at construction as `contraction` does, or if there are more than max_rank dims and taps.
template <class T>
class convolution {
 public:
  /// most_bytes: limit of scratch memory, which should stay in the cache. The limit holds only if the first dim of a can be split. That dim
  /// must have no window, and must be the first dim of b and out, or absent there.
  convolution(const windowed_dims& a, const operand_dims& b, const operand_dims& out, std::int64_t most_bytes = 1 << 20) : a_(a) {
    prepare(&b, out, most_bytes);
  }
  convolution(const windowed_dims& a, const operand_dims& out, std::int64_t most_bytes = 1 << 20) : a_(a) {
    prepare(nullptr, out, most_bytes);
  }

  /// Two operands. `out` must not overlap them.
  void run(const T* a, const T* b, T* out) const {
    each_piece(a, out, [&](const contraction<T>& sum, const T* patches, std::int64_t first, T* to) {
      sum.run(patches, b + first * b_step_, to);
    });
  }
  /// One operand. `out` must not overlap it.
  void run(const T* a, T* out) const {
    each_piece(a, out, [&](const contraction<T>& sum, const T* patches, std::int64_t, T* to) { sum.run(patches, to); });
  }

 private:
  // The work for a fixed number of indices of the first dim.
  struct piece {
    std::vector<std::pair<std::int64_t, sources>> taps;  // with the offset of its patches
    std::int64_t size = 0;
    contraction<T> sum;
  };
  struct patch_dim {
    std::size_t dim;
    bool tap;
  };

  windowed_dims a_;
  std::vector<patch_dim> order_;
  std::int64_t extent_ = 1, step_ = 1;               // extent of the first dim, and its indices per piece
  std::int64_t a_step_ = 0, b_step_ = 0, out_step_ = 0;  // elements from one of its indices to the next
  std::int64_t out_size_ = 0;
  bool splits_b_ = false, splits_out_ = false;  // also split into pieces
  bool reads_in_place_ = false;  // no patches are copied
  std::optional<piece> whole_, rest_;

  bool is_windowed(std::size_t d) const { return a_.tap_factor[d] != windowed_dims::none || a_.windows[d] != bound_window{}; }

  void prepare(const operand_dims* b, const operand_dims& out, std::int64_t most_bytes) {
    out_size_ = element_count(out.rank, out.extent);
    order_dims();
    reads_in_place_ = true;
    std::int64_t size = std::int64_t(sizeof(T));
    for (std::size_t d = 0; d < std::size_t(a_.at.rank); ++d) {
      reads_in_place_ = reads_in_place_ && a_.windows[d] == bound_window{} && a_.indices.offset[d] == a_.at.offset[d] &&
                    a_.indices.extent[d] == a_.at.extent[d];
      size *= a_.indices.extent[d] * a_.windows[d].taps;
    }
    step_ = extent_ = a_.at.rank == 0 ? 1 : a_.indices.extent[0];
    if (!reads_in_place_ && size > most_bytes && can_split(b, out)) {
      step_ = std::max<std::int64_t>(1, most_bytes / (size / extent_));
      a_step_ = row_major_strides(a_.at.rank, a_.at.extent)[0];
      splits_b_ = b && leads(*b);
      splits_out_ = leads(out);
      if (splits_b_) b_step_ = row_major_strides(b->rank, b->extent)[0];
      if (splits_out_) out_step_ = row_major_strides(out.rank, out.extent)[0];
    }
    whole_ = make_piece(b, out, step_);
    if (extent_ > step_ && extent_ % step_ > 0) rest_ = make_piece(b, out, extent_ % step_);
  }

  /// Orders the dims of the patches. Taps come after the windowed dims if the innermost dim has no window, otherwise before them, so that
  /// rows stay long.
  void order_dims() {
    const auto rank = std::size_t(a_.at.rank);
    std::size_t before = 0, taps = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      if (a_.tap_factor[d] == windowed_dims::none && a_.windows[d].taps != 1)
        throw error("convolution: dim " + std::to_string(d) + " has " + std::to_string(a_.windows[d].taps) +
                    " taps but no factor for them");
      if (a_.tap_factor[d] != windowed_dims::none) ++taps;
      if (is_windowed(d)) before = d + 1;
    }
    if (before == rank)
      for (before = 0; before < rank && !is_windowed(before);) ++before;
    if (rank + taps > std::size_t(max_rank))
      throw error("convolution: an operand of " + std::to_string(rank) + " dims with taps along " + std::to_string(taps) +
                  ", but dims and taps may be " + std::to_string(max_rank) + " in all");
    for (std::size_t d = 0; d <= rank; ++d) {
      for (std::size_t t = 0; d == before && t < rank; ++t)
        if (a_.tap_factor[t] != windowed_dims::none) order_.push_back({t, true});
      if (d < rank) order_.push_back({d, false});
    }
  }

  bool leads(const operand_dims& x) const { return x.rank > 0 && x.factor[0] == a_.factor[0]; }
  bool can_split(const operand_dims* b, const operand_dims& out) const {
    const auto fits = [&](const operand_dims& x) {
      return std::find(x.factor.begin() + (leads(x) ? 1 : 0), x.factor.begin() + x.rank, a_.factor[0]) == x.factor.begin() + x.rank;
    };
    const bool once = std::find(a_.factor.begin() + 1, a_.factor.begin() + a_.at.rank, a_.factor[0]) == a_.factor.begin() + a_.at.rank;
    return a_.at.rank > 0 && !is_windowed(0) && once && (!b || fits(*b)) && fits(out);
  }

  /// The piece for `n` indices of the first dim.
  piece make_piece(const operand_dims* b, operand_dims out, std::int64_t n) const {
    placement indices = a_.indices;
    if (a_.at.rank > 0) indices.extent[0] = n;
    operand_dims patches{int(order_.size()), {}, {}};
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const auto [d, tap] = order_[i];
      patches.factor[i] = tap ? a_.tap_factor[d] : a_.factor[d];
      patches.extent[i] = tap ? a_.windows[d].taps : indices.extent[d];
    }
    if (splits_out_) out.extent[0] = n;
    const auto sum = [&] {
      if (!b) return contraction<T>(patches, out);
      operand_dims cut = *b;
      if (splits_b_) cut.extent[0] = n;
      return contraction<T>(patches, cut, out);
    };
    piece p{{}, element_count(patches.rank, patches.extent), sum()};
    if (reads_in_place_) return p;
    index_array stride{}, tap_stride{};
    const index_array all = row_major_strides(patches.rank, patches.extent);
    for (std::size_t i = 0; i < order_.size(); ++i) (order_[i].tap ? tap_stride : stride)[order_[i].dim] = all[i];
    for_each_tap(a_.at.rank, a_.windows, [&](const index_array& taps, std::int64_t) {
      std::int64_t to = 0;
      for (std::size_t d = 0; d < std::size_t(a_.at.rank); ++d) to += taps[d] * tap_stride[d];
      p.taps.emplace_back(to, sources(a_.windows, taps, a_.at, indices, stride));
    });
    return p;
  }

  /// Pieces of the result run on several threads. Pieces of a sum run one after another.
  template <class Sum>
  void each_piece(const T* a, T* out, Sum sum) const {
    const std::int64_t pieces = step_ == 0 ? 1 : std::max<std::int64_t>(1, (extent_ + step_ - 1) / step_);
    if (pieces == 1 || splits_out_) {
      const std::int64_t grain = pieces < threads() ? pieces : 1;  // threads share each of a few pieces
      return parallel_for(pieces, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t p = begin; p < end; ++p) contract(p * step_, a, out + p * step_ * out_step_, sum);
      });
    }
    contract(0, a, out, sum);
    thread_local std::vector<T> more;
    more.resize(std::size_t(out_size_));
    for (std::int64_t p = 1; p < pieces; ++p) {
      contract(p * step_, a, more.data(), sum);
      for (std::int64_t i = 0; i < out_size_; ++i) out[i] += more[std::size_t(i)];
    }
  }
  template <class Sum>
  void contract(std::int64_t first, const T* a, T* to, Sum sum) const {
    thread_local std::vector<T> patches;
    const piece& p = extent_ - first < step_ && rest_ ? *rest_ : *whole_;
    if (!reads_in_place_ && patches.size() < std::size_t(p.size)) patches.resize(std::size_t(p.size));
    for (const auto& [at, from] : p.taps) detail::fill_and_move_rows(from, a + first * a_step_, patches.data() + at, T(0));
    sum(p.sum, reads_in_place_ ? a : patches.data(), first, to);
  }
};

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

/// The block of a factor that a device computes: its block of the dim with this factor in the result, or otherwise in the second operand.
template <class T>
interval block_of_factor(const local_step<T>& step, int factor) {
  const auto block = [](const kernel::placement& p, int d) {
    const auto at = std::size_t(d);
    return interval{p.offset[at], p.offset[at] + p.extent[at]};
  };
  if (const int d = step.n.rule.out[0].find(factor); d >= 0) return block(step.out_place(), d);
  return block(step.in_place(1), step.n.rule.in[1].find(factor));
}

template <class T>
action bind(kernel_of<op::convolution>, const local_step<T>& step) {
  const node& n = step.n;
  kernel::windowed_dims a;
  a.at = step.in_place(0);
  a.indices = a.at;
  a.windows = step.windows(0);
  for (int d = 0; d < step.in_value(0).rank(); ++d) {
    const auto at = std::size_t(d);
    a.factor[at] = n.rule.in[0][d];
    if (window_row(n, 0, d) == 0) continue;
    a.tap_factor[at] = n.attr.dims[d] - 1;
    if (const int tap = tap_factor(n, 0, d); tap >= 0) {
      const interval taps = block_of_factor(step, tap);
      a.windows[at].low += a.windows[at].step * taps.begin;
      a.windows[at].taps = taps.size();
    }
    const interval block = block_of_factor(step, a.factor[at]);
    a.indices.offset[at] = block.begin;
    a.indices.extent[at] = block.size();
  }
  const auto y = step.out_dims();
  if (n.inputs == 1)
    return [c = kernel::convolution<T>(a, y), from = step.in(0), to = step.out()](const run_context&) { c.run(from, to); };
  return [c = kernel::convolution<T>(a, step.in_dims(1), y), from = step.in(0), w = step.in(1),
          to = step.out()](const run_context&) { c.run(from, w, to); };
}

}}}  // namespace gshard::v0::detail
