// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program_analysis.hpp"
#include "random_program_text.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace random_program::detail {

/// A recipe that grows, and the current program. Tensors are steps.
class draft {
 public:
  explicit draft(std::uint32_t seed, const std::vector<int>& mesh)
      : gen_(seed), r_{seed, place_of(gen_, mesh), {}, {}, {}, {}}, known_(r_.on) {}

 protected:
  std::mt19937 gen_;
  recipe r_;
  int special_ = 0;  // special numbers of inputs

  static constexpr std::int64_t most_elements = 600;

  int below(int n) { return below(gen_, n); }
  template <class List>
  void shuffle(List& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[std::size_t(below(int(i)))]);
  }

  const known& about(int v) const { return known_.about(v); }
  const facts& of(int v) const { return about(v).of; }
  const gs::dim_list& dims(int v) const { return known_.dims(v); }
  const gs::dim& dim(int v, int d) const { return known_.dim(dims(v)[d]); }
  gs::dtype type(int v) const { return about(v).type; }
  int rank(int v) const { return about(v).rank(); }
  std::int64_t extent(int v, int d) const { return about(v).extent(d); }
  int newest() const { return int(known_.size()) - 1; }

  bool is_usable(int v) const { return !of(v).last; }
  bool is_real(int v) const { return is_usable(v) && about(v).is_real(); }
  bool is_f64(int v) const { return is_usable(v) && type(v) == gs::dtype::f64; }
  bool is_exact(int v) const { return is_real(v) && of(v).exact; }
  /// True for ids below n, or -1.
  bool is_labels(int v, std::int64_t n) const { return is_usable(v) && about(v).is_ids() && of(v).below >= 0 && of(v).below <= n; }
  bool is_ids(int v, std::int64_t n) const { return is_labels(v, n) && !of(v).negative; }
  /// True if an elementwise verb may read v together with a tensor of the dims of `to`.
  bool broadcasts(int v, int to) const { return is_real(v) && type(v) == type(to) && rank(v) <= rank(to) && broadcasts(dims(v), dims(to)); }
  static bool broadcasts(const gs::dim_list& x, const gs::dim_list& to) {
    return x.same(to) || (x.size() < to.size() && ways_to_match(x, to) == 1);
  }
  /// True if all dims are letters. Appends them to `text`.
  bool letters_of(const gs::dim_list& dims, std::string* text) const {
    for (int d = 0; d < dims.size(); ++d) {
      const gs::dim& dim = known_.dim(dims[d]);
      if (dim.what != gs::dim::kind::bound) return false;
      if (text) *text += dim.letter;
    }
    return true;
  }

  /// A step for which f holds, preferably an unused one, or -1.
  template <class F>
  int any(F f) {
    std::vector<int> list;
    for (int v = 0; v < int(known_.size()); ++v)
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
      const char c = text.empty() || below(6) ? "ABCD"[below(4)] : text.back();
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

  /// The special numbers of an input: sometimes fewer than those of other inputs.
  int special() { return below(3) ? special_ : special_ & int(gen_() & 31u); }
  int new_input(const std::string& text, gs::dtype type) {
    step s{verb::input, {}, text, {int(type), 'A', 0, int(gen_() >> 8), special()}, {}};
    s.layout = layout(int(text.size()), type == gs::dtype::f64);
    return add(s) ? newest() : -1;
  }
  /// New ids from `least` on, below some extent of at most n.
  int new_ids(const std::string& text, std::int64_t n, int least) {
    for (const char c : {'A', 'B', 'C', 'D', 'K', 'L'}) {
      if (r_.on.dims.find(c) < 1 || r_.on.dims.find(c) > n) continue;
      step s{verb::input, {}, text, {int(gs::dtype::i32), c, least, int(gen_() >> 8), 0}, {}};
      s.layout = layout(int(text.size()), true);
      return add(s) ? newest() : -1;
    }
    return -1;
  }

  /// Appends a step, unless its result is too large or it is not valid. Large results are scaled down.
  bool add(const step& s) {
    if (!known_.append(s, most_elements)) {
      if (known_.problem() != gs::fault::nothing)
        throw std::logic_error("the ill-formed step was written: " + code_of(s) + ", fault " + std::to_string(int(known_.problem())));
      return false;
    }
    for (const int i : s.in) used_[std::size_t(i)] = 1;
    r_.steps.push_back(s);
    used_.push_back(0);
    const facts& f = of(newest());
    if (f.last || !about(newest()).is_real() || f.top <= 8) return true;
    return add({verb::scale, {newest()}, {}, {-int(std::ceil(std::log2(f.top / 4)))}});
  }
  /// True if the library refuses the step.
  bool refuses(const step& s) {
    analysis a = known_;
    return !a.append(s) && a.problem() != gs::fault::nothing;
  }

  /// Adds the results: all unused steps. Half of the programs get gradients with respect to all real inputs.
  void finish() {
    const auto laid = [&](int v) { return result{v, below(2) == 0, layout(rank(v), false)}; };
    const bool with_gradients = below(2) == 0 && has_clear_gradients(r_, known_);
    for (int v = 0; v < int(known_.size()); ++v) {
      if (used_[std::size_t(v)]) continue;
      r_.results.push_back(laid(v));
      if (with_gradients && is_f64(v)) r_.loss.push_back(v);
    }
    if (r_.loss.empty()) return;
    for (int v = 0; v < int(known_.size()); ++v)
      if (r_.steps[std::size_t(v)].what == verb::input && type(v) == gs::dtype::f64) r_.gradients.push_back(laid(v));
  }

 private:
  analysis known_;
  std::vector<char> used_;

  static int below(std::mt19937& gen, int n) { return int(gen() % unsigned(n)); }
  /// Extents, and this mesh, or a random one if it is empty.
  static place place_of(std::mt19937& gen, const std::vector<int>& mesh) {
    static const std::vector<std::vector<int>> meshes{{2},    {3},       {4},       {5},       {8},       {16},         {2, 2},
                                                      {4, 3}, {3, 2},    {2, 4},    {4, 4},    {2, 8},    {5, 3},       {1, 4},
                                                      {7, 2}, {2, 2, 2}, {3, 2, 2}, {2, 1, 3}, {2, 4, 2}, {2, 2, 2, 2}, {1, 2, 2, 3}};
    place on{.mesh = meshes[std::size_t(below(gen, int(meshes.size())))]};
    if (!mesh.empty()) on.mesh = mesh;
    for (const char c : {'A', 'B', 'C', 'D'}) on.dims.set(c, 1 + below(gen, below(gen, 2) ? 9 : 4));
    if (below(gen, 4) == 0) on.dims.set('B', on.dims.find('A'));  // another dim of the same extent
    if (below(gen, 4) == 0) on.dims.set('D', below(gen, 20) ? 10 + below(gen, 12) : 0);
    for (const char c : {'K', 'L'}) on.dims.set(c, 1 + below(gen, below(gen, 4) ? 3 : 9));
    return on;
  }
};

}  // namespace random_program::detail
