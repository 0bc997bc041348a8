// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Searches shardings of inputs and parameters for the fastest plan within the memory limit (the search of auto_shard).

#include <gshard/core/base/hash.hpp>
#include <gshard/core/base/list.hpp>
#include <gshard/core/cost/step_time.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/program/compile.hpp>
#include <gshard/sim/search/shard_choice.hpp>
#include <gshard/sim/search/shard_space.hpp>

#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 {

namespace detail {

class shard_searcher {
 public:
  constexpr shard_searcher(const graph& g, const mesh_shape& mesh, const extents& e, const search_options& o, const shard_space& space)
      : program_(g), g_(g), mesh_(mesh), e_(e), o_(o), space_(space) {
    for (const shard_variable& x : space.variables) {
      offset_.push_back(std::int32_t(least_.size()));
      for (std::size_t c = 0; c < x.candidates.size(); ++c) least_.push_back({});
    }
  }

  struct score {
    double seconds = -1;  // -1: no plan
    std::int64_t bytes = 0;
    constexpr bool known() const { return seconds >= 0; }
  };

  constexpr void try_all() {
    picks p(count(), 0);
    for (bool more = true; more;) {
      priced(p);
      more = false;
      for (std::size_t v = 0; v < count() && !more; ++v) {
        more = std::size_t(++p[v]) < space_.variables[v].candidates.size();
        if (!more) p[v] = 0;
      }
    }
  }

  /// Beam searches over one variable after the other. One order is by size, because large tensors matter most; the other is the program's
  /// order. Variables without a pick are left to propagation, so that one pick can determine others. Hill climbing from several starting
  /// points then improves single picks.
  constexpr void try_some() {
    list<std::int32_t> in_program, by_size;
    for (std::size_t v = 0; v < count(); ++v) {
      in_program.push_back(std::int32_t(v));
      by_size.push_back(std::int32_t(v));
      for (std::size_t k = v; k > 0 && elements(by_size[k]) > elements(by_size[k - 1]); --k) {
        const std::int32_t other = by_size[k];
        by_size[k] = by_size[k - 1];
        by_size[k - 1] = other;
      }
    }
    beam_over_dims(true);
    beam_over_dims(false);
    beam(by_size, true);
    beam(in_program, true);
    beam(by_size, false);
    if (o_.memory_limit > 0) look_around(smallest());
    for (int start = 0; start < o_.restarts && !spent(); ++start) look_around(arbitrary(start));
  }
  /// Improves p by changing one or two variables at a time.
  constexpr void improve(const picks& p) {
    look_around(p);
    do look_around(best_);
    while (change_two());
    for (std::size_t v = 0; v < count(); ++v) {  // price an alternative of every pick
      if (space_.variables[v].candidates.size() < 2 || next_best(v, best_[v]) >= 0) continue;
      picks other = best_;
      other[v] = best_[v] == 0 ? 1 : 0;
      evaluate(other);
    }
  }

  /// The best of all plans that were priced.
  constexpr const picks& best() const { return best_; }
  constexpr std::int64_t evaluations() const { return evaluations_; }
  /// Counts plans that another search has made.
  constexpr void spend(std::int64_t evaluations) { evaluations_ += evaluations; }

  /// The best candidate of a variable other than `but`, among all priced plans, or -1.
  constexpr int next_best(std::size_t variable, int but) const {
    int next = -1;
    for (int c = 0; c < int(space_.variables[variable].candidates.size()); ++c)
      if (c != but && least(variable, c).known() && (next < 0 || better(least(variable, c), least(variable, next)))) next = c;
    return next;
  }
  constexpr const score& least(std::size_t variable, int c) const { return least_[std::size_t(offset_[variable] + c)]; }

  /// The plan of the program with these shardings.
  constexpr plan_tables plan(const picks& p) const {
    graph g = program_;
    assign(g, p);
    return compile(g, mesh_, o_.compile);
  }
  /// The price of a plan. A plan has its own table of dims.
  constexpr step_price price_of(const plan_tables& made) const {
    const compile_options& how = o_.compile;
    const extents e = assume_extents(made.dims, mesh_, how.known, default_start_bytes, how.assumed, how.assumed_axes);
    return price(made.view(), e, o_.on);
  }

 private:
  struct state {
    picks chosen, all;
    score s;
  };

  const graph& program_;
  graph g_;  // the same, for propagation alone
  const mesh_shape& mesh_;
  const extents& e_;
  const search_options& o_;
  const shard_space& space_;
  list<std::int32_t> offset_;
  list<score> least_;  // by variable and candidate: the best priced plan with it
  list<std::uint64_t> seen_;
  list<score> scores_;
  picks best_;
  score best_score_;
  std::int64_t evaluations_ = 0;

  constexpr std::size_t count() const { return space_.variables.size(); }
  constexpr bool spent() const { return evaluations_ >= o_.evaluations; }
  constexpr std::int64_t elements(std::int32_t variable) const {
    const shard_variable& x = space_.variables[std::size_t(variable)];
    return shard_elements(g_.at(x.values.front()).dims, sharding::replicated(max_rank), e_) * std::int64_t(x.values.size());
  }

  /// Rounds seconds, so that plans that differ only in the last bits are equal. Unlike a tolerance, a grid keeps the order transitive.
  static constexpr double rounded(double seconds) {
    constexpr double keeps_33_bits = (1 << 20) + 1;
    const double t = keeps_33_bits * seconds;
    return t - (t - seconds);
  }
  /// A plan within the memory limit is better than one beyond it. Within the limit, the faster plan is better. Beyond the limit, the
  /// product of time and memory decides. Ties go to the smaller plan.
  constexpr bool better(const score& a, const score& b) const {
    if (!a.known() || !b.known()) return a.known() && !b.known();
    const bool fit = fits(a);
    if (fit != fits(b)) return fit;
    const double x = rounded(fit ? a.seconds : a.seconds * double(a.bytes)), y = rounded(fit ? b.seconds : b.seconds * double(b.bytes));
    return x < y || (x == y && a.bytes < b.bytes);
  }
  constexpr bool fits(const score& s) const { return o_.memory_limit <= 0 || s.bytes <= o_.memory_limit; }

  constexpr void assign(graph& g, const picks& p) const {
    for (std::size_t v = 0; v < count(); ++v)
      if (p[v] >= 0) space_.assign(g, v, space_.variables[v].candidates[std::size_t(p[v])]);
  }
  /// Completes picks for some variables by propagation. If `open`, propagation may refine these as well.
  constexpr picks completed(const picks& p, bool open) {
    for (std::size_t v = 0; v < g_.values.size(); ++v) g_.values[v].layout = program_.values[v].layout;
    for (std::size_t v = 0; v < count(); ++v) {
      if (p[v] < 0) continue;
      const shard_variable& x = space_.variables[v];
      sharding least = x.candidates[std::size_t(p[v])];
      if (open) least.open = g_.at(x.values.front()).layout.open;
      space_.assign(g_, v, least);
    }
    propagate(g_, e_);
    picks all = p;
    for (std::size_t v = 0; v < count(); ++v) {
      const int found = space_.variables[v].find(g_.at(space_.variables[v].values.front()).layout);
      if (found >= 0 || all[v] < 0) all[v] = std::int16_t(found < 0 ? 0 : found);
    }
    return all;
  }

  constexpr score evaluate(const picks& p) {
    fnv1a<std::uint64_t> hash;
    for (const std::int16_t c : p) hash.add(std::uint64_t(c));
    for (std::size_t i = seen_.size(); i-- > 0;)
      if (seen_[i] == hash.value()) return scores_[i];
    seen_.push_back(hash.value());
    scores_.push_back(priced(p));
    return scores_.back();
  }
  /// All plans are priced here, so that the best of all is kept.
  constexpr score priced(const picks& p) {
    ++evaluations_;
    const plan_tables made = plan(p);
    score s;
    if (!made.problem) {
      const step_price cost = price_of(made);
      s = {cost.seconds(), cost.bytes()};
    }
    if (best_.empty() || better(s, best_score_)) {
      best_ = p;
      best_score_ = s;
    }
    for (std::size_t v = 0; v < count(); ++v)
      if (score& l = least_[std::size_t(offset_[v] + p[v])]; better(s, l)) l = s;
    return s;
  }

  /// True if every dim keeps its axes, and maybe gets more.
  static constexpr bool extends(const sharding& before, const sharding& after) {
    for (int d = 0; d < before.rank; ++d)
      if (!before[d].is_prefix_of(after[d])) return false;
    return true;
  }
  /// Beam search. by_axis: first it assigns the first mesh axis, then the second, and so on; propagation may refine assigned tensors.
  /// Otherwise every tensor gets all its axes at once, and propagation does not refine it.
  constexpr void beam(const list<std::int32_t>& order, bool by_axis) {
    const auto start = [&](const picks& chosen) {
      state s{chosen, completed(chosen, by_axis), {}};
      s.s = evaluate(s.all);
      return s;
    };
    list<state> now{start(picks(count(), -1))};
    for (int axis = 0; axis < (by_axis ? mesh_.count : 1); ++axis)
      for (const std::int32_t v : order) {
        const shard_variable& x = space_.variables[std::size_t(v)];
        list<state> next = now;
        for (const state& s : now)
          for (std::size_t c = 0; x.candidates.size() > 1 && c < x.candidates.size() && !spent(); ++c) {
            const std::int16_t so_far = s.chosen[std::size_t(v)];
            const sharding &before = x.candidates[std::size_t(so_far < 0 ? 0 : so_far)], &after = x.candidates[c];
            if (by_axis && ((before.used() ^ after.used()) != 1u << axis || !extends(before, after))) continue;
            picks chosen = s.chosen;
            chosen[std::size_t(v)] = std::int16_t(c);
            insert(next, start(chosen));
          }
        now = static_cast<list<state>&&>(next);
      }
    look_around(now.front().all);
  }
  /// Beam search that shards a dim of all inputs, or of all parameters, by one axis at a time. Like an expert's annotations, it changes
  /// many variables at once, if single changes would not pay.
  constexpr void beam_over_dims(bool inputs_first) {
    const auto start = [&](const picks& p) { return state{p, p, evaluate(p)}; };
    list<state> now{start(picks(count(), 0))};
    for (int axis = 0; axis < mesh_.count; ++axis)
      for (const bool parameters : {!inputs_first, inputs_first, true}) {  // parameters twice, as two of their dims may take the axis
        list<state> next = now;
        for (const state& s : now)
          for (int dim = 0; dim < int(g_.dims.size()) && !spent(); ++dim)
            if (const picks p = with_axis(s.all, parameters, dim, axis); !equal(p, s.all)) insert(next, start(p));
        now = static_cast<list<state>&&>(next);
      }
    look_around(now.front().all);
  }
  /// p, with a dim sharded over the axis in all inputs, or in all parameters. Tensors stay as they are if the axis may not shard the dim,
  /// or shards another dim.
  constexpr picks with_axis(picks p, bool parameters, int dim, int axis) const {
    for (std::size_t v = 0; v < count(); ++v) {
      const shard_variable& x = space_.variables[v];
      const value& t = g_.at(x.values.front());
      const int at = t.dims.find(dim);
      if ((t.parameter >= 0) != parameters || at < 0) continue;
      sharding s = x.candidates[std::size_t(p[v])];
      if ((s.used() >> axis) & 1u) continue;
      s[at].push_back(axis);
      if (const int c = x.find(s); c >= 0) p[v] = std::int16_t(c);
    }
    return p;
  }
  constexpr bool equal(const picks& a, const picks& b) const {
    bool same = true;
    for (std::size_t v = 0; v < count() && same; ++v) same = a[v] == b[v];
    return same;
  }
  /// Inserts into a list sorted best first, without duplicates, of at most the beam width.
  constexpr void insert(list<state>& sorted, const state& s) const {
    for (const state& other : sorted)
      if (equal(other.all, s.all)) return;
    sorted.push_back(s);
    for (std::size_t k = sorted.size() - 1; k > 0 && better(sorted[k].s, sorted[k - 1].s); --k) {
      const state other = sorted[k];
      sorted[k] = sorted[k - 1];
      sorted[k - 1] = other;
    }
    if (sorted.size() > std::size_t(o_.beam)) sorted.pop_back();
  }

  /// The picks with the smallest shards of inputs and parameters.
  constexpr picks smallest() const {
    picks p(count(), 0);
    for (std::size_t v = 0; v < count(); ++v) {
      const shard_variable& x = space_.variables[v];
      const dim_list& dims = g_.at(x.values.front()).dims;
      for (std::size_t c = 1; c < x.candidates.size(); ++c)
        if (shard_elements(dims, x.candidates[c], e_) < shard_elements(dims, x.candidates[std::size_t(p[v])], e_)) p[v] = std::int16_t(c);
    }
    return p;
  }
  /// A pseudo-random starting point, the same on every machine.
  constexpr picks arbitrary(int start) const {
    picks p(count(), 0);
    for (std::size_t v = 0; v < count(); ++v) {
      const std::uint64_t number = fnv1a<std::uint64_t>().add(std::uint64_t(start)).add(v).value();
      p[v] = std::int16_t(number % space_.variables[v].candidates.size());
    }
    return p;
  }
  /// Changes two variables of the best plan, if that is better.
  constexpr bool change_two() {
    for (std::size_t u = 0; u < count(); ++u)
      for (std::size_t v = u + 1; v < count(); ++v)
        for (std::size_t c = 0; c < space_.variables[u].candidates.size(); ++c)
          for (std::size_t d = 0; d < space_.variables[v].candidates.size(); ++d) {
            if (spent()) return false;
            picks other = best_;
            other[u] = std::int16_t(c);
            other[v] = std::int16_t(d);
            const score before = best_score_;
            if (better(evaluate(other), before)) return true;
          }
    return false;
  }

  /// Hill climbing: changes one variable of p at a time, while that is better.
  constexpr void look_around(picks p) {
    score here = evaluate(p);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t v = 0; v < count(); ++v)
        for (std::size_t c = 0; c < space_.variables[v].candidates.size(); ++c) {
          if (spent()) break;
          picks other = p;
          other[v] = std::int16_t(c);
          const score there = evaluate(other);
          if (!better(there, here)) continue;
          p = other;
          here = there;
          changed = true;
        }
    }
  }
};

constexpr diagnostic unknown_extents(const graph& g, const mesh_shape& mesh, const gshard::dims& known) {
  diagnostic problem;
  for (const dim& d : g.dims)
    if (d.what == dim::kind::bound && (!known.has(d.letter) || known.find(d.letter) == 0))
      problem.report(fault::unknown_extent, {}, {&d.letter, 1});
  for (int a = 0; a < mesh.count; ++a)
    if (mesh.static_extent(a) == dynamic) problem.report(fault::unknown_extent, {}, mesh.name(a));
  return problem;
}

/// Faults that another sharding may avoid.
constexpr bool is_implicit_move(fault what) {
  return what == fault::implicit_gather || what == fault::implicit_move || what == fault::implicit_sum;
}

}  // namespace detail

/// Chooses shardings for the inputs and parameters of a traced program: the plan with the least time (`price`) within the memory limit.
/// Annotations are kept; open dims may be sharded further. Every candidate is compiled by `compile`, so that no part of the planner is
/// modeled twice. It is made for the machine that prices it; `compile(program, mesh, result.compile)` makes the same plan.
///
/// All combinations are tried if `evaluations` allows it. Otherwise a beam search (axis by axis, and all axes at once) and hill climbing
/// from several starting points try as many as it allows. Tensors whose names differ only in digits, such as weights of layers, first share
/// one sharding. Extents and mesh must be known.
///
/// Shapes: none.
/// Communicates: nothing.
/// Compile time: auto_shard calls it. A fault is `problem` of the result: `unknown_extent`, `too_little_memory`, or a fault of the program.
/// In a `visible` or `strict` program it may be an implicit move that no sharding avoids.
/// Throws: nothing.
/// @see auto_shard
constexpr shard_choice search_shardings(const graph& g, const mesh_shape& mesh, const search_options& options) {
  search_options o = options;
  if (o.on != machine{}) o.compile.start_bytes = start_bytes_of(o.on);
  shard_choice result;
  result.compile = o.compile;
  result.problem = g.problem;
  if (!result.problem) result.problem = detail::unknown_extents(g, mesh, o.compile.known);
  if (result.problem) return result;
  const compile_options& how = o.compile;
  extents e = detail::assume_extents(g.dims, mesh, how.known, default_start_bytes, how.assumed, how.assumed_axes);
  result.problem = detail::check_countable(g, mesh, o.compile.known, e);
  if (result.problem) return result;
  const detail::shard_space space(g, mesh, e, o.compile.uneven, o.free_state, false);
  detail::shard_searcher search(g, mesh, e, o, space);
  const plan_tables plain = search.plan(detail::picks(space.variables.size(), -1));
  if (plain.problem && !detail::is_implicit_move(plain.problem.what)) {
    result.problem = plain.problem;
    return result;
  }
  shard_choice_view& summary = result.summary;
  if (!plain.problem) summary.unsearched = search.price_of(plain);
  summary.exact = space.ways() <= o.evaluations;
  if (summary.exact) {
    search.try_all();
  } else if (const detail::shard_space groups(g, mesh, e, o.compile.uneven, o.free_state, true);
             groups.variables.size() < space.variables.size()) {
    search_options part = o;
    part.evaluations = o.evaluations / 2;
    detail::shard_searcher coarse(g, mesh, e, part, groups);
    groups.ways() <= part.evaluations ? coarse.try_all() : coarse.try_some();
    search.spend(coarse.evaluations());
    search.improve(space.as_in(groups, coarse.best()));
  } else {
    search.try_some();
    search.improve(search.best());
  }
  const detail::picks& best = search.best();
  const plan_tables plan = search.plan(best);
  if (plan.problem) {
    result.problem = plan.problem;
    return result;
  }
  summary.price = search.price_of(plan);
  summary.memory_limit = o.memory_limit;
  summary.evaluations = search.evaluations();

  for (std::size_t i = 0; i < g.inputs.size() + g.parameters.size(); ++i) {
    layout_choice t;
    t.is_parameter = i >= g.inputs.size();
    const std::size_t row = t.is_parameter ? i - g.inputs.size() : i;
    t.name = t.is_parameter ? g.parameters[row].name : g.inputs[row].name;
    t.value = t.is_parameter ? g.parameters[row].value : g.inputs[row].value;
    t.layout = plan.view().at(t.is_parameter ? plan.parameters[row].value : plan.inputs[row].value).layout;
    for (std::size_t v = 0; v < best.size(); ++v)
      for (const std::int32_t member : space.variables[v].values) {
        if (member == space.owner_of(t.value)) t.as = g.at(member).parameter + std::int32_t(g.inputs.size());
        if (member != t.value) continue;
        t.candidates = int(space.variables[v].candidates.size());
        const int next = search.next_best(v, best[v]);
        t.next_seconds = -1;
        if (next >= 0) {
          t.next = space.variables[v].candidates[std::size_t(next)];
          t.next_seconds = search.least(v, next).seconds;
          t.next_bytes = search.least(v, next).bytes;
        }
      }
    result.tensors.push_back(t);
  }
  constexpr std::int64_t mebibyte = 1 << 20;
  if (!summary.fits(summary.price.bytes()))
    result.problem.report(fault::too_little_memory, {}, {},
                          int((summary.price.bytes() + mebibyte - 1) / mebibyte),
                          int(o.memory_limit / mebibyte));
  return result;
}

}}  // namespace gshard::v0
