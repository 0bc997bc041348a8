// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program_text.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace random_program::detail {

/// What is known of the numbers of a tensor.
struct facts {
  double top = 1;              // none is larger
  bool exact = false;          // multiples of 2^-bits, so few of them that they are the same however they were computed
  int bits = 0;
  std::int64_t below = -1;     // ids: all are in [0, below) (or negative: nobody); -1: any integers
  bool last = false;           // infinite or not a number: nothing more is made of it

  static facts ids(std::int64_t n) {
    facts f{double(std::max<std::int64_t>(n, 1)), true, 0};
    f.below = n;
    return f;
  }
  facts ending(bool end) const {
    facts f = *this;
    f.last = end;
    return f;
  }
  facts times(const facts& o) const { return {top * o.top, exact && o.exact, bits + o.bits}; }
  facts plus(const facts& o) const { return {top + o.top, exact && o.exact, std::max(bits, o.bits)}; }
  facts either(const facts& o) const {
    facts f{std::max(top, o.top), exact && o.exact, std::max(bits, o.bits)};
    f.below = below < 0 || o.below < 0 ? -1 : std::max(below, o.below);
    return f;
  }
  facts summed(double count) const { return {top * std::max(count, 1.0), exact, bits}; }
  facts scaled(int power) const { return {std::ldexp(top, power), exact, std::max(0, bits - power)}; }
  double digits() const { return bits + std::log2(std::max(top, 1.0)); }
};

/// A recipe that grows, and the program it is so far. Tensors are steps.
class draft {
 public:
  explicit draft(std::uint32_t seed) : gen_(seed) {
    static const std::vector<std::vector<int>> meshes{{2},    {3},    {4},    {5},    {8},    {16},      {2, 2},    {4, 3},       {3, 2},      {2, 4},
                                                      {4, 4}, {2, 8}, {5, 3}, {1, 4}, {7, 2}, {2, 2, 2}, {3, 2, 2}, {2, 1, 3}, {2, 4, 2}, {2, 2, 2, 2}, {1, 2, 2, 3}};
    b_.mesh = run_graph::mesh_of_rank(4);
    r_.seed = seed;
    r_.on.mesh = meshes[std::size_t(below(int(meshes.size())))];
    for (const char c : {'A', 'B', 'C', 'D'}) r_.on.dims.set(c, 1 + below(below(2) ? 9 : 4));
    if (below(4) == 0) r_.on.dims.set('D', below(20) ? 10 + below(12) : 0);
    for (const char c : {'K', 'L'}) r_.on.dims.set(c, 1 + below(below(4) ? 3 : 9));
  }

 protected:
  std::mt19937 gen_;
  recipe r_;
  gs::builder b_;

  static constexpr std::int64_t most_elements = 600;

  int below(int n) { return int(gen_() % unsigned(n)); }
  template <class List>
  void shuffle(List& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[std::size_t(below(int(i)))]);
  }

  symbol at(int v) const { return made_[std::size_t(v)]; }
  const facts& about(int v) const { return facts_[std::size_t(v)]; }
  gs::dtype type(int v) const { return at(v).get().type; }
  int newest() const { return newest_; }
  std::int64_t extent_of_dim(int dim) const { return extents()[std::size_t(dim)]; }
  std::int64_t extent(int v, int d) const { return extent_of_dim(at(v).get().dims[d]); }
  std::int64_t size(int v) const {
    std::int64_t n = 1;
    for (int d = 0; d < at(v).rank(); ++d) n *= extent(v, d);
    return n;
  }

  bool is_usable(int v) const { return !about(v).last; }
  bool is_real(int v) const { return is_usable(v) && type(v) != gs::dtype::i32; }
  bool is_f64(int v) const { return is_usable(v) && type(v) == gs::dtype::f64; }
  bool is_exact(int v) const { return is_real(v) && about(v).exact; }
  bool is_ids(int v, std::int64_t n) const { return is_usable(v) && type(v) == gs::dtype::i32 && about(v).below >= 0 && about(v).below <= n && !negative_[std::size_t(v)]; }
  bool broadcasts(int v, int to) const {
    gs::short_list factors;
    return is_real(v) && type(v) == type(to) && at(v).rank() <= at(to).rank() && gs::detail::line_up(at(v).get().dims, at(to).get().dims, factors);
  }
  /// Whether all dims are letters, and which.
  bool letters_of(const gs::dim_list& dims, std::string* text) const {
    for (int d = 0; d < dims.size(); ++d) {
      const gs::dim& dim = b_.program.dims[std::size_t(dims[d])];
      if (dim.what != gs::dim::kind::bound) return false;
      if (text) *text += dim.letter;
    }
    return true;
  }

  /// A step for which f holds, or -1: rather one that nobody has used.
  template <class F>
  int any(F f) {
    std::vector<int> list;
    for (int v = 0; v < int(made_.size()); ++v)
      if (f(v)) list.push_back(v);
    if (list.empty()) return -1;
    const auto pick = [&] { return list[std::size_t(below(int(list.size())))]; };
    const int first = pick(), second = pick();
    return used_[std::size_t(first)] ? second : first;
  }

  std::string letters(int most, int least = 0) {
    std::string text;
    std::int64_t n = 1;
    for (int rank = std::max(least, below(most + 1)); rank > 0; --rank) {
      const char c = "ABCD"[below(4)];
      n *= r_.on.dims.find(c);
      if (n > most_elements / 2 && int(text.size()) >= least) break;
      text += c;
    }
    return text;
  }
  gs::sharding layout(int rank, bool pending) {
    gs::sharding s = gs::sharding::replicated(rank);
    const int density = below(4);
    for (int a = 0; a < int(r_.on.mesh.size()); ++a) {
      if (rank > 0 && below(3) < density) {
        const int d = below(rank);
        s[d].insert(below(s[d].size() + 1), a);
      } else if (pending && below(10) == 0) {
        s.partial = std::uint8_t(s.partial | (1u << a));
      }
    }
    if (below(2))
      for (int d = 0; d < rank; ++d)
        if (s[d].empty() && below(2)) s.open = std::uint8_t(s.open | (1u << d));
    return s;
  }

  int new_input(const std::string& text, gs::dtype type) {
    step s{verb::input, {}, text, {int(type), 'A', 0, int(gen_() >> 8)}, {}};
    s.layout = layout(int(text.size()), type == gs::dtype::f64);
    return add(s, {2, true, 2}) ? newest() : -1;
  }
  /// Ids from `least` on, below some extent that is at most n.
  int new_ids(const std::string& text, std::int64_t n, int least) {
    for (const char c : {'A', 'B', 'C', 'D', 'K', 'L'}) {
      if (r_.on.dims.find(c) < 1 || r_.on.dims.find(c) > n) continue;
      step s{verb::input, {}, text, {int(gs::dtype::i32), c, least, int(gen_() >> 8)}, {}};
      s.layout = layout(int(text.size()), false);
      if (!add(s, facts::ids(r_.on.dims.find(c)))) return -1;
      negative_.back() = least < 0;
      return newest();
    }
    return -1;
  }

  /// Appends a step, unless its result is too large or is float and not exact. A result that is large is scaled down.
  bool add(const step& s, facts f) {
    const gs::graph before = b_.program;
    symbols operands;
    for (const int i : s.in) operands.push_back(at(i));
    const symbol y = call(b_, s, operands);
    if (b_.failed()) throw std::logic_error("the ill-formed step was written: " + code_of(s) + ", fault " + std::to_string(int(b_.program.problem.what)));
    made_.push_back(y);
    const int id = int(made_.size()) - 1;
    const bool narrow = y.get().type == gs::dtype::f32;
    if (f.exact && f.digits() > (narrow ? 20 : 44)) f.exact = false;
    if (size(id) > most_elements || y.rank() > 6 || (narrow && !f.exact)) {
      made_.pop_back();
      b_.program = before;
      return false;
    }
    bool negative = false;
    for (const int i : s.in) {
      used_[std::size_t(i)] = 1;
      negative = negative || negative_[std::size_t(i)];
    }
    r_.steps.push_back(s);
    facts_.push_back(f);
    used_.push_back(0);
    negative_.push_back(negative && y.get().type == gs::dtype::i32);
    newest_ = id;
    if (f.last || y.get().type == gs::dtype::i32 || f.top <= 8) return true;
    const int power = -int(std::ceil(std::log2(f.top / 4)));
    return add({verb::scale, {id}, {}, {power}}, f.scaled(power));
  }

  static bool every_window_reads(const gs::conv_window& w, int taps, std::int64_t extent) {
    const std::int64_t padded = (extent - 1) * w.dilation + 1 + w.low + w.high, reach = (taps - 1) * w.step + 1;
    for (std::int64_t p = -w.low; p + reach <= padded - w.low; p += w.stride) {
      bool found = false;
      for (int k = 0; k < taps; ++k) {
        const std::int64_t q = p + k * w.step;
        found = found || (q >= 0 && q % w.dilation == 0 && q / w.dilation < extent);
      }
      if (!found) return false;
    }
    return true;
  }

  /// The results: what nobody uses. For half of the programs, gradients with respect to all real inputs.
  void finish() {
    const auto laid = [&](int v) { return result{v, below(2) == 0, layout(at(v).rank(), false)}; };
    const bool with_gradients = below(2) == 0;
    for (int v = 0; v < int(made_.size()); ++v) {
      if (used_[std::size_t(v)]) continue;
      r_.results.push_back(laid(v));
      if (with_gradients && is_f64(v)) r_.loss.push_back(v);
    }
    if (r_.loss.empty()) return;
    for (int v = 0; v < int(made_.size()); ++v)
      if (r_.steps[std::size_t(v)].what == verb::input && type(v) == gs::dtype::f64) r_.gradients.push_back(laid(v));
  }

 private:
  symbols made_;
  std::vector<facts> facts_;
  std::vector<char> used_, negative_;  // negative_: ids that may be -1
  int newest_ = -1;

  std::vector<std::int64_t> extents() const {
    std::vector<std::int64_t> e;
    for (const gs::dim& d : b_.program.dims)
      e.push_back(d.what == gs::dim::kind::bound ? r_.on.dims.find(d.letter) : gs::derived_extent(d, gs::list_view<std::int64_t>(e.data(), e.size())));
    return e;
  }
};

}  // namespace random_program::detail
