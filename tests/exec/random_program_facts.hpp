// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

// Facts about the elements of a random program's tensors before it runs, which determine the required agreement of two runs.
//
// All differences between shardings are from sums: they are computed in another order, and a product with a partial sum may be distributed
// over its addends. Therefore:
// - without an earlier sum (`fixed`), all bits agree, except the sign of a zero to which 0 may have been added (`zero_added`);
// - if all numbers are small multiples of a power of 2 (`exact`), the values agree, even after sums;
// - otherwise numbers agree up to rounding, and infinities and NaN agree;
// - but in two cases an infinity of one run may be NaN in the other (`blurred`): infinity times a partial sum, whose addends may have
//   other signs or be 0, and infinity times a number that is 0 up to rounding. No further step reads such a result.
// Sums that may overflow are not generated: the overflow depends on the order.
namespace random_program {

/// The number of bits of a number that do not depend on how it was computed.
inline int significant_bits(gs::dtype type) {
  switch (type) {
    case gs::dtype::bf16: return 7;
    case gs::dtype::f16: return 10;
    case gs::dtype::f32: return 20;
    default: return 44;
  }
}

struct facts {
  double top = 1;            // an upper bound of ordinary numbers
  bool exact = false;        // few multiples of 2^-bits: equal for any order of computation
  int bits = 0;
  std::int64_t below = -1;   // ids: all are in [0, below); -1: any integers
  bool negative = false;     // ids that may also be -1
  bool last = false;         // no step reads it
  bool nan = false, infinite = false, huge = false, tiny = false;  // it may have such elements
  bool sum = false;          // its elements may be partial sums
  bool fixed = false;        // every element is computed by the same operations in the same order on every mesh
  bool zero_added = false;   // except a sum with 0, which changes the sign of -0
  bool blurred = false;      // an infinity may be NaN in another run

  static facts number(double top, int bits) { return {.top = top, .exact = true, .bits = bits}; }
  static facts ids(std::int64_t n) { return {.top = double(std::max<std::int64_t>(n, 1)), .exact = true, .below = n, .fixed = true}; }

  bool special() const { return nan || infinite || huge; }
  /// True if every run has the same elements.
  bool certain() const { return exact || fixed; }
  double digits() const { return bits + std::log2(std::max(top, 1.0)); }

  facts rounded(double t) const {
    facts f = *this;
    f.top = t;
    f.exact = false;
    f.bits = 0;
    return f;
  }
  /// The facts after arithmetic that may overflow or cancel.
  facts computed() const {
    facts f = *this;
    f.infinite = infinite || huge;
    f.nan = nan || f.infinite;
    return f;
  }
  facts summed(double count) const {
    facts f = computed();
    f.top *= std::max(count, 1.0);
    f.exact = exact && !tiny;
    f.sum = true;
    f.fixed = false;
    return f;
  }
  facts scaled(int power) const {
    facts f = power > 0 ? computed() : *this;
    f.top = std::ldexp(top, power);
    f.bits = std::max(0, bits - power);
    f.exact = exact && !(tiny && sum);
    return f;
  }
  /// The facts about the elements of both.
  facts with(const facts& o) const {
    facts f;
    f.top = std::max(top, o.top);
    f.exact = exact && o.exact;
    f.bits = std::max(bits, o.bits);
    f.below = below < 0 || o.below < 0 ? -1 : std::max(below, o.below);
    f.negative = negative || o.negative;
    f.nan = nan || o.nan;
    f.infinite = infinite || o.infinite;
    f.huge = huge || o.huge;
    f.tiny = tiny || o.tiny;
    f.sum = sum || o.sum;
    f.fixed = fixed && o.fixed;
    f.zero_added = zero_added || o.zero_added;
    return f;
  }
  facts plus(const facts& o) const {
    facts f = with(o).computed();
    f.top = top + o.top;
    f.exact = f.exact && !(f.tiny && f.sum);
    return f;
  }
  facts times(const facts& o) const {
    const auto unsure = [](const facts& a, const facts& b) { return a.infinite && (b.sum || !b.certain()); };
    facts f = with(o).computed();
    f.top = top * o.top;
    f.bits = bits + o.bits;
    f.exact = f.exact && !(f.tiny && f.sum);
    f.blurred = f.last = unsure(*this, o) || unsure(o, *this);
    return f;
  }
};

/// A tensor: facts about it, and its shape.
struct known {
  facts of;
  gs::dtype type = gs::dtype::f64;
  std::vector<std::int64_t> extents{};

  bool is_real() const { return type == gs::dtype::f32 || type == gs::dtype::f64; }
  bool is_ids() const { return type == gs::dtype::i32; }
  int rank() const { return int(extents.size()); }
  std::int64_t extent(int d) const { return extents[std::size_t(d)]; }
  std::int64_t elements() const { return std::accumulate(extents.begin(), extents.end(), std::int64_t(1), std::multiplies<>()); }
};

/// The number of ways to match dims [d, ...) of a tensor with dims [r, ...) of another one, by name and in order. `found`, if given: for
/// every dim of the other tensor, its match in the last way, or -1.
inline int ways_to_match(const gs::dim_list& x, const gs::dim_list& to, std::vector<int>* found = nullptr, int d = 0, int r = 0) {
  if (d == x.size()) return 1;
  int ways = 0;
  for (; r < to.size(); ++r) {
    if (to[r] != x[d]) continue;
    const int more = ways_to_match(x, to, found, d + 1, r + 1);
    if (more > 0 && found) (*found)[std::size_t(r)] = d;
    ways += more;
  }
  return ways;
}

namespace detail {

/// The number of elements in each sum of an equation, and whether it has sums.
struct summation {
  double count = 1;
  bool any = false;
};
inline summation summed_by(const std::string& text, const std::vector<known>& x) {
  const std::size_t arrow = text.find("->");
  std::map<char, std::int64_t> extent;
  std::size_t operand = 0, d = 0;
  for (const char c : text.substr(0, arrow)) {
    if (c == ',') {
      ++operand;
      d = 0;
    } else {
      extent[c] = x[operand].extents[d++];
    }
  }
  summation s;
  for (const auto& [letter, n] : extent)
    if (text.find(letter, arrow) == std::string::npos) {
      s.count *= double(n);
      s.any = true;
    }
  return s;
}

/// True if one of two operands has an index that no other operand and the output lack.
inline bool has_own_sum(const std::string& text, std::size_t operand) {
  const std::size_t comma = text.find(','), begin = operand == 0 ? 0 : comma + 1, end = operand == 0 ? comma : text.find("->");
  const std::string own = text.substr(begin, end - begin), others = text.substr(0, begin) + text.substr(end);
  return std::any_of(own.begin(), own.end(), [&](char c) { return others.find(c) == std::string::npos; });
}

inline bool reads_padding(const std::vector<int>& n) {
  for (std::size_t i = 0; i + 4 < n.size(); i += 5)
    if (const gs::conv_window w = window_at(n, i); w.low > 0 || w.high > 0 || w.dilation > 1) return true;
  return false;
}

inline facts after_input(const step& s, const gs::dims& dims) {
  if (gs::dtype(s.number[0]) == gs::dtype::i32) {
    facts f = facts::ids(dims.find(char(s.number[1])));
    f.negative = s.number[2] < 0;
    return f;
  }
  const int special = s.number[4];
  facts f = facts::number(2, 2);
  f.nan = special & on_mesh::not_a_number;
  f.infinite = special & on_mesh::infinity;
  f.huge = special & on_mesh::largest;
  f.tiny = special & on_mesh::subnormal;
  f.sum = s.layout.partial != 0;
  f.fixed = !f.sum;
  return f;
}

inline facts after_map(int k, const std::vector<known>& x) {
  facts f = x[0].of;
  bool certain = true;
  for (const known& y : x) {
    f = f.with(y.of);
    certain = certain && y.of.certain();
  }
  f = f.computed();
  const double t = f.top;
  f.top = std::array{1.0, t * t, 1.0, t, 2 * t, t, t, t * t + t, t, 2 * t * t + t, 1.0, 1.0}[std::size_t(k)];
  if (functions[std::size_t(k)].smooth) f = f.rounded(f.top);
  f.sum = false;
  f.blurred = f.last = x.size() > 1 && f.infinite && !certain;
  return f;
}

inline std::optional<facts> after_attention(const attention_settings& how, const std::vector<known>& x) {
  const facts &q = x[0].of, &k = x[1].of, &v = x[2].of;
  const std::vector<std::int64_t>& e = x[1].extents;
  const std::int64_t keys = e[e.size() - 3];
  // The score of an infinite number may be infinite, NaN, or finite. The weights must not depend on which.
  const facts score = q.times(k);
  if (q.huge || k.huge || v.huge || score.blurred || e.back() == 0) return {};  // 0 / 0 if the depth is 0
  if (how.parts && score.computed().infinite) return {};  // a part with infinities may be NaN, and contribute nothing
  facts f = q.with(k).with(v).computed();
  if (how.log_sum) f = score.computed().rounded(score.top * std::sqrt(double(e.back())) + std::log(double(keys)));
  else f = f.rounded(v.top / (1 - how.dropout));
  f.nan = f.nan || f.infinite;
  f.sum = f.fixed = false;
  f.blurred = f.last = f.infinite;
  if (how.log_sum) f.infinite = f.infinite || how.mask >= 0 || how.position >= 0 || keys == 0;  // -infinity if there are no keys
  return f;
}

inline std::optional<facts> after_experts(const expert_settings& how, const std::vector<known>& x) {
  const facts &tokens = x[0].of, &logits = x[1].of, &w = x[2].of;
  // The choice of experts must not depend on rounding. Gates of logits near 0 are equal.
  if (!logits.exact || logits.special() || logits.tiny || x[1].extent(2) == 0 || (how.masked && (!x[3].of.exact || x[3].of.special())))
    return {};
  if (tokens.huge || tokens.infinite || w.huge || w.infinite) return {};
  if (how.token_chunks > 1 && (x[0].extent(0) == 0 || x[0].extent(0) % how.token_chunks != 0)) return {};
  const std::int64_t of_token = how.experts_choose() ? x[1].extent(2) : how.k;
  const double groups = double(x[1].extent(0)), choices = double(std::max<std::int64_t>(x[1].extent(1), 1) * of_token);
  if (how.result == 2) return facts::number(choices, 0);
  if (how.result == 3) return facts::number(2 * choices, 0);
  facts f = tokens.with(w).computed();
  if (how.result == 1) f = facts::number(1, 0);
  f = f.rounded(how.result == 1 ? 1 : tokens.top * w.top * double(std::max<std::int64_t>(x[0].extent(2), 1)) + 0.25);
  f.nan = f.nan || (how.result == 1 && groups == 0);
  f.sum = f.fixed = false;
  return f;
}

/// The facts about the result of a step with the shape of `y`. Nothing if the step must not be generated, because its result would depend
/// on rounding, or on the order of sums that overflow.
inline std::optional<facts> after(const step& s, const std::vector<known>& x, const known& y, const gs::dims& dims) {
  const auto first = [&] { return x[0].of; };
  const auto all = [&](auto f) { return std::all_of(x.begin(), x.end(), f); };
  if (!all([](const known& v) { return !v.of.last; })) return {};
  const bool huge = !all([](const known& v) { return !v.of.huge; });
  if (huge && !all([](const known& v) { return v.of.certain() && !v.of.sum; })) return {};
  const std::vector<int>& n = s.number;
  const auto ids_below = [](const known& ids, std::int64_t end) { return ids.of.below >= 0 && ids.of.below <= end; };
  switch (s.what) {
    case verb::input: return after_input(s, dims);
    case verb::conv:
      // Whether a non-finite number is multiplied by padding, which is 0, depends on the sharding.
      if (x[1].of.special() && reads_padding(n)) return {};
      [[fallthrough]];
    case verb::einsum: {
      const summation over = summed_by(s.text, x);
      // Indices of only one operand are summed before the product.
      const auto factor = [&](std::size_t i) {
        facts f = x[i].of;
        f.sum = f.sum || has_own_sum(s.text, i);
        return f;
      };
      facts f = x.size() == 1 ? first() : factor(0).times(factor(1));
      f.zero_added = f.zero_added || x.size() > 1;
      if (!over.any && s.what == verb::einsum) return f;
      if (huge) return {};
      const bool blurred = f.blurred;
      f = f.summed(over.count);
      f.blurred = f.last = blurred;
      return f;
    }
    case verb::mean: {
      if (huge) return {};
      const double count = summed_by(s.text, x).count;
      facts f = first().summed(1).rounded(first().top);
      f.nan = f.nan || count == 0;
      return f;
    }
    case verb::logsumexp: {
      facts f = first().computed().rounded(first().top + 3);
      f.infinite = f.infinite || summed_by(s.text, x).count == 0;
      f.sum = f.fixed = false;
      return f;
    }
    case verb::reduce: {
      if (!first().exact) return {};
      const double count = summed_by(s.text, x).count;
      facts f = first();
      f.sum = f.fixed = false;
      if (gs::reduction(n[0]) == gs::reduction::prod) {
        if (count > 12 || huge || f.tiny) return {};
        f = f.computed();
        f.top = std::pow(std::max(1.0, f.top), count);
        f.bits *= int(count);
      } else {
        f.infinite = f.infinite || count == 0;
      }
      return f;
    }
    case verb::argmax: {
      if (!first().exact) return {};
      const double count = summed_by(s.text, x).count;
      facts f = facts::ids(std::int64_t(count));
      f.last = count == 0;
      return f;
    }
    case verb::map:
      if (!functions[std::size_t(n[0])].smooth && !all([](const known& v) { return v.of.exact; })) return {};
      return after_map(n[0], x);
    case verb::relu:
    case verb::maximum:
    case verb::minimum: {
      if (!all([](const known& v) { return v.of.exact; })) return {};
      facts f = x.size() == 1 ? first() : first().with(x[1].of);
      f.sum = false;
      return f;
    }
    case verb::add:
    case verb::subtract: return first().plus(x[1].of);
    case verb::multiply: return first().times(x[1].of);
    case verb::scale: return first().scaled(n[0]);
    case verb::softmax: {
      facts f = first().computed().rounded(1);
      f.infinite = f.huge = f.tiny = f.sum = f.fixed = false;
      return f;
    }
    case verb::layer_norm: {
      if (huge) return {};
      const double rows = std::sqrt(double(x[0].extents.back()));
      facts f = first().with(x[1].of).with(x[2].of).computed().rounded(x[1].of.top * rows + x[2].of.top);
      f.sum = f.fixed = false;
      f.blurred = f.last = x[1].of.infinite;
      return f;
    }
    case verb::cross_entropy: {
      if (huge || x[0].extents.back() == 0 || !ids_below(x[1], x[0].extents.back())) return {};
      facts f = first().computed().rounded(2 * first().top + 3);
      f.sum = f.fixed = false;
      return f;
    }
    case verb::pad: {
      facts f = first();
      if (!y.is_ids()) {
        f.top = std::max(f.top, std::abs(n[4]) / 4.0);
        f.bits = std::max(f.bits, 2);
      }
      return f;
    }
    case verb::concat: {
      facts f = first();
      for (const known& v : x) f = f.with(v.of);
      return f;
    }
    case verb::cumsum: return huge ? std::nullopt : std::optional(first().summed(double(x[0].extent(n[0]))));
    case verb::sort:
    case verb::top_k: {
      if (!first().exact) return {};
      const bool ids = s.what == verb::sort ? n[2] : n[3];
      if (ids) return facts::ids(x[0].extent(s.what == verb::sort ? n[0] : n[1]));
      facts f = first();
      f.sum = false;
      return f;
    }
    case verb::gather: {
      if (x[1].of.negative || !ids_below(x[1], x[0].extent(n[0]))) return {};
      facts f = first();
      f.sum = f.zero_added = true;  // shards without the row add 0
      return f;
    }
    case verb::scatter_add: {
      if (huge || x[1].of.negative || !ids_below(x[1], x[0].extent(n[0]))) return {};
      return first().plus(x[2].of.summed(double(x[1].elements())));
    }
    case verb::dynamic_slice: {
      if (n[1] > x[0].extent(n[0])) return {};
      facts f = first();
      f.sum = f.zero_added = true;
      return f;
    }
    case verb::dynamic_update: {
      if (x[1].extent(n[0]) < 1 || x[1].extent(n[0]) > x[0].extent(n[0])) return {};
      facts f = first().with(x[1].of);
      f.sum = false;
      f.zero_added = true;
      return f;
    }
    case verb::iota: return facts::ids(y.extent(n[0]));
    case verb::sum_pool:
    case verb::mean_pool: {
      if (huge) return {};
      double count = 1;
      for (const gs::pool_window& w : pool_windows(n)) count *= w.taps;
      const facts f = first().summed(count);
      return s.what == verb::sum_pool ? f : f.rounded(f.top);
    }
    case verb::max_pool:
    case verb::min_pool: {
      if (!first().exact) return {};
      facts f = first();
      f.infinite = true;  // if a window reads nothing
      f.sum = f.fixed = false;
      return f;
    }
    case verb::dropout: {
      facts f = first().scaled(1);
      return n[0] == 5 ? f : f.rounded(f.top);
    }
    case verb::cast: {
      facts f = first();
      if (gs::dtype(n[0]) == x[0].type) return f;
      if (x[0].is_ids()) {
        if (f.below < 0) return {};
        f = facts::number(double(std::max<std::int64_t>(f.below, 1)), 0);
        f.fixed = first().fixed;
        return f;
      }
      if (gs::dtype(n[0]) == gs::dtype::f64) return f;
      if (!f.exact) return {};
      if (gs::dtype(n[0]) == gs::dtype::i32) {
        if (f.special()) return {};
        f.below = -1;
        return f;
      }
      if (significant_bits(gs::dtype(n[0])) < 20 && (f.huge || f.tiny)) return {};
      f.infinite = f.infinite || f.huge;
      return f;
    }
    case verb::one_hot: {
      facts f = facts::number(1, 0);
      f.fixed = first().fixed;
      return f;
    }
    case verb::attention: return after_attention(attention_settings(n), x);
    case verb::experts: return after_experts(expert_settings(n), x);
    case verb::scan: {
      if (!all([](const known& v) { return !v.of.huge && !v.of.infinite; })) return {};
      const double top = 1 + std::max({first().top, x[1].of.top, x[2].of.top}), steps = double(x[1].extent(0));
      facts f = first().with(x[1].of).with(x[2].of).computed().rounded(top * top + steps * top);
      f.sum = true;
      f.fixed = false;
      return f;
    }
    case verb::loop: {
      const facts& count = x[2].of;
      if (huge || !count.exact || count.special() || count.top > 4) return {};
      facts f = first().with(x[1].of).computed().rounded(std::max({first().top, x[1].of.top, 1.0}));
      f.sum = true;
      f.fixed = false;
      return f;
    }
    case verb::check_finite:
      if (first().special()) return {};
      return first();
    case verb::stop_gradient:
    case verb::broadcast:
    case verb::merge_dims:
    case verb::split_dim:
    case verb::slice:
    case verb::reverse:
    case verb::roll:
    case verb::annotate: return first();
    case verb::count_: break;
  }
  return {};
}

}  // namespace detail

}  // namespace random_program
