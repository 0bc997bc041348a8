// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Replicas of experts: weights with a row for each replica, and the routing of tokens to replicas. The expert of a replica may change
// during a run.

#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/iota.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/moe/routing/routing.hpp>
#include <gshard/ops/user/custom.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {

/// The replicas of each expert, in ascending order.
template <class T>
class replica_lists {
 public:
  explicit replica_lists(const local_shard<const T>& expert_of) {
    for (std::int64_t r = 0; r < expert_of.size(); ++r) {
      const auto e = std::size_t(std::max(expert_of.data[r], T(0)));
      if (e >= all_.size()) all_.resize(e + 1);
      all_[e].push_back(std::int32_t(r));
    }
  }
  std::size_t experts() const { return all_.size(); }
  const std::vector<std::int32_t>& operator[](std::size_t e) const { return all_[e]; }
  /// Numbers the experts with several replicas 0, 1, ...; -1 for all other experts.
  std::vector<std::int64_t> hot() const {
    std::vector<std::int64_t> number(all_.size(), -1);
    std::int64_t count = 0;
    for (std::size_t e = 0; e < all_.size(); ++e)
      if (all_[e].size() > 1) number[e] = count++;
    return number;
  }

 private:
  std::vector<std::vector<std::int32_t>> all_;
};

/// slots(slot, expert_of, place, place_of_replica): slots of replicas in place of slots of experts. The extents of the last two operands
/// are the capacities. The choices of an expert go to its replicas in turn: their numbers of choices differ by at most one. Each group
/// begins with another replica.
struct slots_of_replicas {
  static constexpr std::string_view name = "slots_of_replicas";
  template <class>
  using element = std::int32_t;

  template <class T>
  static void run(local_shard<const T> slot, local_shard<const T> expert_of, local_shard<const T> place, local_shard<const T> kept,
                  local_shard<T> y) {
    const replica_lists<T> replicas(expert_of);
    const T capacity = T(place.size()), of_replica = T(kept.size());
    const std::int64_t choices = slot.extent(1) * slot.extent(2);
    for (std::int64_t i = 0; i < slot.size(); ++i) {
      y.data[i] = -1;
      if (slot.data[i] < 0) continue;
      const auto e = std::size_t(slot.data[i] / capacity);
      if (e >= replicas.experts() || replicas[e].empty()) continue;
      const T n = T(replicas[e].size()), c = slot.data[i] % capacity;
      const std::int64_t group = slot.offset(0) + i / choices;
      if (c / n < of_replica) y.data[i] = replicas[e][std::size_t((c + group) % n)] * of_replica + c / n;
    }
  }
};
/// lost(slot, slot_of_replica): for each group, the number of choices with a slot of an expert but none of a replica.
struct lost_choices {
  static constexpr std::string_view name = "lost_choices";
  template <class>
  using element = std::int32_t;

  template <class T>
  static void run(local_shard<const T> before, local_shard<const T> after, local_shard<T> y) {
    const std::int64_t choices = before.extent(1) * before.extent(2);
    for (std::int64_t g = 0; g < y.size(); ++g) {
      y.data[g] = 0;
      for (std::int64_t i = g * choices; i < (g + 1) * choices; ++i) y.data[g] += before.data[i] >= 0 && after.data[i] < 0;
    }
  }
};

/// sums(rows, expert_of): for every expert with several replicas, the sum of their rows, in the order of the replicas. Other rows are zero.
struct sum_of_replicas {
  static constexpr std::string_view name = "sum_of_replicas";

  template <class T>
  static void run(local_shard<const T> rows, local_shard<const T> expert_of, local_shard<T> y) {
    const std::vector<std::int64_t> hot = replica_lists<T>(expert_of).hot();
    const std::int64_t count = rows.extent(0), width = count > 0 ? rows.size() / count : 0;
    std::fill_n(y.data, y.size(), T(0));
    for (std::int64_t r = 0; r < count; ++r)
      if (const std::int64_t h = hot[std::size_t(expert_of.data[rows.offset(0) + r])]; h >= 0)
        for (std::int64_t i = 0; i < width; ++i) y.data[h * width + i] += rows.data[r * width + i];
  }
};
/// with_sums(rows, sums, expert_of): the rows; the sums replace the rows of experts with several replicas.
struct rows_with_sums {
  static constexpr std::string_view name = "rows_with_sums";

  template <class T>
  static void run(local_shard<const T> rows, local_shard<const T> sums, local_shard<const T> expert_of, local_shard<T> y) {
    const std::vector<std::int64_t> hot = replica_lists<T>(expert_of).hot();
    const std::int64_t count = rows.extent(0), width = count > 0 ? rows.size() / count : 0;
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t h = hot[std::size_t(expert_of.data[rows.offset(0) + r])];
      std::copy_n(h >= 0 ? sums.data + h * width : rows.data + r * width, width, y.data + r * width);
    }
  }
};

template <class Operation, std::size_t Operands>
constexpr symbol emit_replica_step(const std::array<symbol, Operands>& operands, const sharding_rule& rule, const dim_list& dims,
                                   dtype type) {
  return emit_custom_node(custom_of<Operation, std::make_index_sequence<Operands>>, operands, rule, dims, type);
}

/// The sum of a gradient [R,...] over the replicas of each expert, for each replica. At most R - E experts have several replicas, so
/// devices exchange R - E rows.
constexpr symbol emit_sum_of_replicas(const symbol& rows, const symbol& expert_of) {
  builder& b = *rows.owner;
  if (b.failed()) return b.nothing();
  const value of = rows.get();
  const int replica = of.dims[0], rank = of.rank(), every = rank, hot = rank + 1;  // factors
  const std::int32_t placed = expert_of.get().parameter;
  const int hot_dim = b.linear_dim(replica, 1, b.program.parameters[std::size_t(placed)].copies_of, -1, 0);
  const symbol ids = emit_cast(expert_of, of.type);
  dim_list dims = of.dims;
  dims.set(0, hot_dim);
  short_list of_sums;
  for (int d = 0; d < rank; ++d) of_sums.push_back(d == 0 ? hot : d);
  const short_list of_ids = route::factors({every});
  sharding_rule rule;
  rule.block(every);
  rule.block(hot);
  rule.set_operands({counting(rank), of_ids});
  rule.out[0] = of_sums;
  const symbol sums = emit_replica_step<sum_of_replicas>(std::array{rows, ids}, rule, dims, of.type);
  rule.set_operands({counting(rank), of_sums, of_ids});
  rule.out[0] = counting(rank);
  return emit_replica_step<rows_with_sums>(std::array{rows, sums, ids}, rule, of.dims, of.type);
}

}  // namespace detail

/// replicas_of_experts(m, "R", "E"): the int32 variable "expert_of" [R] of the model: the expert, out of E, of each of R replicas.
/// Initially, replica r is of expert floor(r * E / R). `placed_experts` changes it between steps.
/// Shapes: -> [R].
/// Communicates: nothing. It is replicated.
/// Compile time: that the letters are valid.
/// Throws: nothing.
/// @see replica_param, send_to_replicas, placed_experts
constexpr symbol replicas_of_experts(const parameter_scope& m, std::string_view replicas, std::string_view experts,
                                     std::uint32_t line = __builtin_LINE(), const char* file = __builtin_FILE()) {
  builder& b = m.owner();
  const init_here rows(init{initializer::kind::row}, line, file);
  const symbol s = m.variable("expert_of", replicas, P<none>{}, rows, dtype::i32);
  if (b.failed()) return b.nothing();
  b.program.parameters[std::size_t(s.get().parameter)].copies_of = b.dims_of(experts, "expert_of")[0];
  return s;
}

namespace detail {
/// A parameter as a row for each replica.
constexpr symbol with_replicas(symbol s, symbol expert_of) {
  builder& b = *s.owner;
  if (b.failed() || !b.has(expert_of)) return b.nothing();
  const std::int32_t placed = expert_of.get().parameter;
  if (placed < 0 || b.program.parameters[std::size_t(placed)].copies_of < 0 || s.rank() < 1 ||
      s.get().dims[0] != expert_of.get().dims[0]) {
    b.fail(fault::dims_differ, "replica_param", {}, 0, 0);
    return b.nothing();
  }
  parameter& p = b.program.parameters[std::size_t(s.get().parameter)];
  p.copies_of = b.program.parameters[std::size_t(placed)].copies_of;
  p.placed_by = placed;
  p.sum_copies = emit_sum_of_replicas;
  return s;
}
}  // namespace detail

/// replica_param(m, expert_of, name, "R@expert,M,F", init): a parameter with a row along its first dim for each replica. The replicas of an
/// expert have equal rows. They start with the values of a parameter with a row per expert. Their gradients are sums over the replicas. The
/// dims, and maybe their sharding, are those of m.param; a spec may follow letters.
/// Shapes: the dims of the letters; the first is that of `expert_of`.
/// Communicates: nothing; its gradient: if the first dim is sharded, one all_reduce of R - E rows.
/// Compile time: that the first dim is that of `expert_of`; as m.param.
/// Throws: nothing.
/// @see replicas_of_experts
constexpr symbol replica_param(const parameter_scope& m, symbol expert_of, std::string_view name, std::string_view dims,
                               init_here start) {
  const detail::line_of_declaration here(m.owner(), start);
  return detail::with_replicas(m.param(name, dims, start), expert_of);
}
template <class... Entries>
constexpr symbol replica_param(const parameter_scope& m, symbol expert_of, std::string_view name, std::string_view letters,
                               spec<Entries...> layout, init_here start) {
  const detail::line_of_declaration here(m.owner(), start);
  return detail::with_replicas(m.param(name, letters, layout, start), expert_of);
}

/// send_to_replicas(gating, expert_of, slots): the routing of tokens to replicas, in place of experts. The choices of an expert go to its
/// replicas in turn, so each gets an equal share. A replica has ceil(factor * S / R) slots per group. With factor 0, the default, it has as
/// many as an expert, and no choice is lost. Otherwise choices that do not fit are dropped and counted in `overflow`. The minimum and the
/// multiple of `capacity` apply in both cases.
/// Shapes: gating of G,S,E,C and expert_of [R] -> gating of G,S,R,C'; `load` and `demand` stay those of the experts, [G,E].
/// Communicates: nothing.
/// Compile time: that `gating` is the result of a gating verb, without replicas or chunks of slots; that `slots` is in range.
/// Throws: nothing.
/// @see replicas_of_experts, nn::moe
constexpr gating_result send_to_replicas(const gating_result& gating, here expert_of, capacity slots = {0}) {
  builder& b = *expert_of.owner;
  gating_result r{b.nothing(), b.nothing(), gating.aux, gating.load, b.nothing(), gating.demand};
  const detail::one_hot_parts choices = detail::choices_of(b, gating, detail::takes_gatings::undivided, "send_to_replicas");
  if (!choices.found || !b.has(expert_of)) return r;
  if (expert_of.get().type != dtype::i32) b.fail_type("send_to_replicas", 1, expert_of.get().type, only(dtype::i32));
  else if (expert_of.rank() != 1) b.fail(fault::rank_mismatch, "send_to_replicas", {}, 1, expert_of.rank());
  if (b.failed()) return r;
  using detail::route::factors;
  const dim_list chosen = choices.slot.get().dims;
  const int slot_dim = gating.combine.get().dims[3], replica_dim = expert_of.get().dims[0];
  const int kept = detail::capacity_dim(b, slots, chosen[1], replica_dim, slot_dim, "send_to_replicas", "slots");
  if (b.failed()) return r;
  sharding_rule rule;
  rule.set_operands({detail::route::chosen, factors({3}), factors({4}), factors({5})});
  rule.out[0] = detail::route::chosen;
  for (const int f : {1, 2, 3, 4, 5}) rule.block(f);
  const std::array operands{choices.slot, symbol(expert_of), detail::emit_iota(b, detail::route::dims({slot_dim}), 0),
                            detail::emit_iota(b, detail::route::dims({kept}), 0)};
  const symbol slot = detail::emit_replica_step<detail::slots_of_replicas>(operands, rule, chosen, dtype::i32);
  const dtype type = choices.weight.get().type;
  r.combine = detail::emit_one_hot(slot, choices.weight, replica_dim, kept, type);
  r.dispatch = detail::emit_one_hot(slot, b.nothing(), replica_dim, kept, type);
  r.overflow = gating.overflow;
  if (slots.factor <= 0) return r;
  const line_of_call line(b);
  sharding_rule count;
  count.set_operands({detail::route::chosen, detail::route::chosen});
  count.out[0] = factors({detail::route::group});
  for (const int f : {1, 2}) count.block(f);
  dim_list groups;
  groups.push_back(chosen[0]);
  const symbol lost = detail::emit_replica_step<detail::lost_choices>(std::array{choices.slot, slot}, count, groups, dtype::i32);
  r.overflow = gating.overflow + detail::emit_cast(lost, type);
  return r;
}

namespace detail {
/// True if these are the arguments of replica_param.
template <class... Given>
inline constexpr bool declares_for_replicas = false;
template <class M, class Replicas, class Name, class Letters, class... Entries, class Start>
inline constexpr bool declares_for_replicas<M, Replicas, Name, Letters, spec<Entries...>, Start> =
    call<2, parameter_scope, symbol>::fits<M, Replicas> && declares<Name, Letters, spec<Entries...>, Start>;
}  // namespace detail

GSHARD_TAKES(replicas_of_experts, (detail::call<3, parameter_scope, std::string_view, std::string_view>::fits<Given...>),
             "replicas_of_experts(m, \"R\", \"E\") takes the first argument of the model and the letters of two dims")
GSHARD_TAKES(replica_param, (detail::call<5, parameter_scope, symbol, std::string_view, std::string_view, init>::fits<Given...> ||
                             detail::declares_for_replicas<Given...>),
             "replica_param(m, expert_of, name, \"R@expert,M,F\", init::zeros()) takes the first argument of the model, the result of "
             "replicas_of_experts, two texts, maybe a spec, and an initializer")
template <class... Given>
  requires(!detail::call<2, gating_result, symbol, capacity>::fits<Given...>)
constexpr auto send_to_replicas(const Given&... given) {
  static_assert(detail::accepts<Given...>, "gshard: send_to_replicas(gating, expert_of, capacity{2}) takes the result of a gating, that of "
                                           "replicas_of_experts, and a capacity");
  return detail::refused_gating(detail::refused(given...));
}

}}  // namespace gshard::v0
