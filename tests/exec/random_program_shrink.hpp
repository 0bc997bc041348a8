// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

// Shrinks a program that fails to a small one that fails.
namespace random_program {

namespace detail {

class shrinker {
 public:
  shrinker(recipe r, std::function<std::string(const recipe&)> failure) : r_(std::move(r)), failure_(std::move(failure)) {
    wanted_ = outcome_of(r_);
  }

  recipe shrink() {
    if (wanted_ == outcome::right) return r_;
    prune(r_);
    std::size_t before = 0;
    do {
      before = accepted_;
      drop_results();
      drop_steps();
      simplify_layouts();
      simplify_place();
      simplify_numbers();
    } while (before != accepted_ && runs_ <= most_runs);
    return r_;
  }

 private:
  static constexpr int most_runs = 6000;
  enum class outcome { right, wrong, wrong_on_one_device };

  recipe r_;
  std::function<std::string(const recipe&)> failure_;
  outcome wanted_ = outcome::right;
  std::size_t accepted_ = 0;
  int runs_ = 0;

  outcome outcome_of(const recipe& r) {
    ++runs_;
    try {
      const std::string said = failure_(r);
      return said.empty() ? outcome::right : said.starts_with(on_mesh::on_one_device) ? outcome::wrong_on_one_device : outcome::wrong;
    } catch (const on_mesh::ill_formed&) {
      return outcome::right;  // no failure
    }
  }
  /// Continues with `smaller` if it fails as well.
  bool take(recipe smaller) {
    prune(smaller);
    if (runs_ > most_runs || (smaller.results.empty() && smaller.gradients.empty())) return false;
    if (outcome_of(smaller) != wanted_) return false;
    r_ = std::move(smaller);
    ++accepted_;
    return true;
  }

  /// Removes steps that no result needs, and extents of no input.
  static void prune(recipe& r) {
    if (r.loss.empty()) r.gradients.clear();
    if (r.gradients.empty()) r.loss.clear();
    std::vector<char> needed(r.steps.size(), 0);
    for (const result& y : r.results) needed[std::size_t(y.of)] = 1;
    for (const result& y : r.gradients) needed[std::size_t(y.of)] = 1;
    for (const int i : r.loss) needed[std::size_t(i)] = 1;
    for (std::size_t i = r.steps.size(); i-- > 0;)
      if (needed[i])
        for (const int k : r.steps[i].in) needed[std::size_t(k)] = 1;
    std::vector<int> now(r.steps.size(), -1);
    std::vector<step> left;
    std::string letters;
    for (std::size_t i = 0; i < r.steps.size(); ++i) {
      if (!needed[i]) continue;
      now[i] = int(left.size());
      left.push_back(r.steps[i]);
      for (int& k : left.back().in) k = now[std::size_t(k)];
      const step& s = left.back();
      if (s.what == verb::input || s.what == verb::iota || s.what == verb::one_hot) letters += s.text;
      if (s.what == verb::input) letters += char(s.number[1]);
    }
    for (result& y : r.results) y.of = now[std::size_t(y.of)];
    for (result& y : r.gradients) y.of = now[std::size_t(y.of)];
    for (int& i : r.loss) i = now[std::size_t(i)];
    r.steps = std::move(left);
    gs::dims dims;
    for (std::size_t i = 0; i < r.on.dims.count; ++i)
      if (letters.find(r.on.dims.entries[i].letter) != std::string::npos)
        dims.set(r.on.dims.entries[i].letter, r.on.dims.entries[i].extent);
    r.on.dims = dims;
  }

  template <class List>
  void without(List recipe::* list) {
    for (std::size_t i = (r_.*list).size(); i-- > 0;) {
      if (i >= (r_.*list).size()) continue;
      recipe c = r_;
      (c.*list).erase((c.*list).begin() + std::ptrdiff_t(i));
      take(c);
    }
  }
  void drop_results() {
    recipe c = r_;
    c.gradients.clear();
    if (!take(c) && !r_.results.empty()) {
      c = r_;
      c.results.clear();
      take(c);
    }
    for (std::size_t i = 0; i < r_.results.size() && r_.results.size() > 1; ++i) {
      c = r_;
      c.results = {r_.results[i]};
      if (take(c)) break;
    }
    without(&recipe::results);
    without(&recipe::loss);
    without(&recipe::gradients);
  }

  static recipe renamed(recipe r, int from, int to) {
    const auto change = [&](int& i) { i = i == from ? to : i; };
    for (step& s : r.steps)
      for (int& i : s.in) change(i);
    for (result& y : r.results) change(y.of);
    for (int& i : r.loss) change(i);
    return r;
  }
  /// Replaces steps by one of their operands, or by an input.
  void drop_steps() {
    for (std::size_t i = r_.steps.size(); i-- > 0;) {
      if (i >= r_.steps.size()) continue;
      const step s = r_.steps[i];
      if (s.what == verb::input) continue;
      // A result of a step becomes a result of its operand.
      bool gone = false;
      for (std::size_t k = 0; k < s.in.size() && !gone; ++k) gone = take(renamed(r_, int(i), s.in[k]));
      for (const int special : {0, on_mesh::not_a_number, on_mesh::infinity})
        if (!gone) gone = take(as_input(r_, i, special));
      if (gone) continue;
      for (std::size_t k = s.in.size(); s.what == verb::concat && k-- > 0 && r_.steps[i].in.size() > 1;) {
        recipe c = r_;
        c.steps[i].in.erase(c.steps[i].in.begin() + std::ptrdiff_t(k));
        if (take(c)) break;
      }
    }
    // One operand instead of two.
    for (std::size_t i = 0; i < r_.steps.size(); ++i)
      for (std::size_t k = 1; i < r_.steps.size() && k < r_.steps[i].in.size(); ++k) {
        recipe c = r_;
        if (c.steps[i].in[k] == c.steps[i].in[0]) continue;
        c.steps[i].in[k] = c.steps[i].in[0];
        take(c);
      }
  }
  /// Replaces a step by an input of its shape with these special numbers. Dims without letters get some.
  static recipe as_input(recipe r, std::size_t at, int special) {
    gs::builder b;
    b.mesh = run_graph::mesh_of_rank(4);
    symbols made;
    for (std::size_t i = 0; i <= at; ++i) {
      symbols x;
      for (const int k : r.steps[i].in) x.push_back(made[std::size_t(k)]);
      made.push_back(call(b, r.steps[i], x));
      if (b.failed()) return r;
    }
    const gs::value& v = made[at].get();
    run_graph::traced t{b.program, {}, {}};
    const std::vector<std::int64_t> extents = run_graph::extents_of(t, made[at].id, r.on.dims);
    step s{verb::input, {}, {}, {int(v.type), 'A', 0, int(at) + 1, special}, gs::sharding::unconstrained(v.rank())};
    for (int d = 0; d < v.rank(); ++d) {
      const gs::dim& dim = b.program.dims[std::size_t(v.dims[d])];
      s.text += dim.what == gs::dim::kind::bound ? dim.letter : char('a' + v.dims[d] % 26);
      r.on.dims.set(s.text.back(), extents[std::size_t(d)]);
    }
    if (r.on.dims.find('A') < 0) r.on.dims.set('A', 1);
    if (r.steps[at].what == verb::annotate) s.layout = r.steps[at].layout;
    r.steps[at] = s;
    return r;
  }

  /// Visits every layout of a recipe.
  template <class F>
  static void for_each_layout(recipe& r, F f) {
    for (step& s : r.steps)
      if (s.what == verb::input || s.what == verb::annotate || s.what == verb::loop || s.what == verb::scan) f(s.layout);
    for (result& y : r.results) f(y.layout);
    for (result& y : r.gradients) f(y.layout);
  }
  template <class F>
  void change_layout(std::size_t at, F f) {
    recipe c = r_;
    std::size_t i = 0;
    bool changed = false;
    for_each_layout(c, [&](gs::sharding& s) {
      if (i++ != at) return;
      const gs::sharding before = s;
      f(s);
      changed = !(s == before);
    });
    if (changed) take(c);
  }
  void simplify_layouts() {
    for (auto list : {&recipe::results, &recipe::gradients})
      for (std::size_t i = 0; i < (r_.*list).size(); ++i)
        if ((r_.*list)[i].laid) {
          recipe c = r_;
          (c.*list)[i].laid = false;
          take(c);
        }
    std::size_t count = 0;
    for_each_layout(r_, [&](gs::sharding&) { ++count; });
    for (std::size_t i = 0; i < count; ++i) {
      change_layout(i, [](gs::sharding& s) { s = gs::sharding::replicated(s.rank); });
      change_layout(i, [](gs::sharding& s) { s.open = 0; });
      for (int a = 0; a < int(r_.on.mesh.size()); ++a)
        change_layout(i, [&](gs::sharding& s) {
          s.partial = std::uint8_t(s.partial & ~(1u << a));
          for (int d = 0; d < s.rank; ++d)
            if (const int at = s[d].find(a); at >= 0) s[d].erase(at);
        });
    }
  }

  void simplify_place() {
    for (std::string place::* known : {&place::known_axes, &place::known_dims})
      for (std::size_t i = (r_.on.*known).size(); i-- > 0;) {
        recipe c = r_;
        (c.on.*known).erase(i, 1);
        take(c);
      }
    if (r_.on.keep_pending) {
      recipe c = r_;
      c.on.keep_pending = false;
      take(c);
    }
    for (std::size_t a = r_.on.mesh.size(); a-- > 0 && r_.on.mesh.size() > 1;) {
      recipe c = r_;
      c.on.mesh.erase(c.on.mesh.begin() + std::ptrdiff_t(a));
      c.on.known_axes = {};
      for_each_layout(c, [&](gs::sharding& s) { s = without_axis(s, int(a)); });
      take(c);
    }
    for (std::size_t a = 0; a < r_.on.mesh.size(); ++a)
      while (r_.on.mesh[a] > 1) {
        recipe c = r_;
        --c.on.mesh[a];
        if (!take(c)) break;
      }
    for (std::size_t i = 0; i < r_.on.dims.count; ++i)
      while (i < r_.on.dims.count && r_.on.dims.entries[i].extent > 1) {
        recipe c = r_;
        --c.on.dims.entries[i].extent;
        if (!take(c)) break;
      }
  }
  static gs::sharding without_axis(const gs::sharding& s, int axis) {
    gs::sharding t = gs::sharding::replicated(s.rank);
    t.open = s.open;
    for (int d = 0; d < s.rank; ++d)
      for (int i = 0; i < s[d].size(); ++i)
        if (s[d][i] != axis) t[d].push_back(s[d][i] - (s[d][i] > axis));
    for (int a = 0; a < gs::max_axes; ++a)
      if (s.is_partial(a) && a != axis) t.partial = std::uint8_t(t.partial | (1u << (a - (a > axis))));
    return t;
  }

  void simplify_numbers() {
    for (std::size_t i = 0; i < r_.steps.size(); ++i)
      for (int bit = 1; bit <= on_mesh::largest; bit *= 2) {
        if (r_.steps[i].what != verb::input || !(r_.steps[i].number[4] & bit)) continue;
        recipe c = r_;
        c.steps[i].number[4] &= ~bit;
        take(c);
      }
    for (std::size_t i = 0; i < r_.steps.size(); ++i)
      for (std::size_t k = 0; i < r_.steps.size() && k < r_.steps[i].number.size(); ++k)
        for (const int n : {0, 1}) {
          if (r_.steps[i].what == verb::input || r_.steps[i].number[k] == n || r_.steps[i].number[k] == 0) continue;
          recipe c = r_;
          c.steps[i].number[k] = n;
          if (take(c)) break;
        }
  }
};

}  // namespace detail

/// A small recipe for which `failure` also returns a failure.
inline recipe shrunk(const recipe& r, const std::function<std::string(const recipe&)>& failure) {
  return detail::shrinker(r, failure).shrink();
}

}  // namespace random_program
