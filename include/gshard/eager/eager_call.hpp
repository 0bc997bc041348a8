// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Runs a verb on tensors outside of programs: plans a program of this verb at compile time, and runs it once with an executable.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/base/reason.hpp>
#include <gshard/core/ir/dim.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/core/program/program.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/exec/tensor/lru_cache.hpp>
#include <gshard/exec/tensor/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/core/base/hash.hpp>

#include <algorithm>
#endif

namespace gshard { inline namespace v0 { namespace detail {

/// A mesh of all axes that some specs name. An eager operation is planned on it.
template <class... Specs>
struct mesh_of {
  static constexpr mesh_shape shape = [] {
    mesh_shape s;
    const auto add = [&](const named_sharding& named) {
      for (int i = 0; i < named.count; ++i)
        if (const auto axis = named.items[std::size_t(i)].axis; s.find(axis.view()) < 0) s.push_back(axis.view(), dynamic);
    };
    (add(Specs::named), ...);
    return s;
  }();
};

/// The letters of an operand whose dims have these factors: 'A' for factor 0, ...
template <short_list Factors>
constexpr auto letters_of_factors() {
  constexpr auto text = [] {
    word<std::size_t(Factors.size())> w{std::string_view("ABCDEFGHIJKLMNOP").substr(0, std::size_t(Factors.size()))};
    for (int d = 0; d < Factors.size(); ++d) w.text[d] = char('A' + Factors[d]);
    return w;
  }();
  return text;
}
template <short_list Factors>
inline constexpr auto letters_of = letters_of_factors<Factors>();
/// The letters of a tensor's dims: 'A', 'B', ...
template <int Rank>
inline constexpr auto first_letters = letters_of<counting(Rank)>;
/// An operand of an operation, with the letters of its dims in the operation's program.
struct operand {
  std::string_view letters;
  const any_cluster* on;
  std::span<const std::int64_t> extents;
  const tensor_origin* origin;
};
inline operand operand_of(std::string_view letters, const untyped_tensor& t) {
  return {letters, &t.cluster(), t.extents(), &tensor_access::origin(t)};
}

/// Binds the letters of the operands to their extents; one letter must have one extent.
dims bind_letters(std::string_view operation, std::span<const operand> operands);

/// The facts about operands that processes compare, to check that all pass the same tensors in the same order.
struct operand_facts {
  std::span<const operand> operands;

  std::uint64_t hash() const;
  std::vector<fact> operator()() const;
};

/// The cluster and extents that a program is bound to, for its constructor.
struct binding {
  any_cluster on;
  dims bound;
  std::vector<std::int64_t> extents;  // of all operands
  process_error problem;
};
/// The binding of a new program for these operands. `problem`: an error on every process if they do not fit.
binding bind_operands(const mesh_shape& mesh, std::string_view operation, std::span<const operand> operands);
bool have_extents(std::span<const operand> operands, std::span<const std::int64_t> extents);
bool are_on(const any_cluster& on, std::span<const operand> operands);

/// A program of an operation, bound to a cluster, for the cluster's cache.
struct kept_program final : kept, untyped_executable {
  kept_program(const plan_view& plan, const kernel_table& kernels, binding to, std::string_view operation, const collective_call& operands);

  std::vector<std::int64_t> extents;  // of all operands

  using untyped_executable::read_output, untyped_executable::run_on_tensors;
};

/// A call of an operation. Its program is bound to the cluster and to the extents of the operands. Operands that do not fit are an error on
/// every process. The cluster caches the program, with its memory, for the next call with operands of these extents, unless devices share
/// memory.
class eager_call {
 public:
  eager_call(const plan_view& plan, const kernel_table& kernels, std::string_view operation, std::span<const operand> operands);
  /// Runs the program. `seed`: for its random numbers.
  void run(std::span<const untyped_tensor* const> inputs, std::uint64_t seed);
  /// A copy of a result with this sharding.
  untyped_result output(std::size_t i, const named_sharding& spec) const;
  /// Ends a call that did not throw.
  void keep();

 private:
  const any_cluster* on_;
  thread_rule::use in_use_;
  bool keeps_;
  std::unique_ptr<kept_program> program_;
};

template <class Program, std::size_t I>
auto eager_output(const eager_call& call) {
  using output_type = output_tensor<Program, I>;
  return tensor_access::typed<output_type>(call.output(I, output_type::layout_type::named));
}
template <class Program, std::size_t... I>
auto eager_outputs(const eager_call& call, std::index_sequence<I...>) {
  if constexpr (sizeof...(I) == 1) return (eager_output<Program, I>(call), ...);
  else return std::tuple{eager_output<Program, I>(call)...};
}

/// Runs the program of an operation. `operands`: all tensors, with the letters of their dims; `inputs`: those that the program reads.
template <class Program, std::size_t Operands, std::size_t Inputs>
auto run_operation(std::string_view operation, const std::array<operand, Operands>& operands,
                   const std::array<const untyped_tensor*, Inputs>& inputs, std::uint64_t seed = 0) {
  if constexpr (is_refused_program<Program>) {
    return refused_output();
  } else {
    eager_call call(Program::plan, kernels_of<Program>, operation, operands);
    call.run(inputs, seed);
    auto results = eager_outputs<Program>(call, std::make_index_sequence<Program::plan.outputs.size()>{});
    call.keep();
    return results;
  }
}

template <class... Specs>
constexpr bool in_mesh_order() {
  constexpr bool all = (Specs::named.order.empty() && ...);
  static_assert(holds<all, actual_type<Specs>...>,
                "gshard: operations on tensors outside of programs do not take an order of the devices (device_order)");
  return all;
}

/// True if the model calls a function of the user, which has source lines.
template <class Model>
concept calls_user = requires { Model::calls_user; };
/// A model without the source lines of its nodes, which would be lines of this library, unless it calls a function of the user.
template <auto Model>
inline constexpr auto without_lines = [](auto& m, auto... x) {
  const line_of_call kept(m.owner());
  return Model(m, x...);
};
template <auto Model>
  requires calls_user<decltype(Model)>
inline constexpr auto without_lines<Model> = Model;

template <class... Tensors>
inline constexpr bool all_complete = (!Tensors::is_partial && ...);
/// Does not compile if one of the tensors is a partial sum.
template <class... Tensors>
constexpr void require_complete() {
  static_assert(holds<all_complete<Tensors...>, actual_type<typename Tensors::layout_type>...>,
                "gshard: a partial sum is used as a complete tensor; reshard it first");
}

/// Plans and runs `Model` on the operands. Without letters, their dims match by position.
template <auto Model, class ExtraSpec, fixed_string... Letters, class... T, class... Specs>
auto run_eager(std::string_view operation, const tensor<T, Specs>&... operands) {
  if constexpr (sizeof...(Letters) < sizeof...(T)) {
    return run_eager<Model, ExtraSpec, first_letters<Specs::rank>...>(operation, operands...);
  } else if constexpr (in_mesh_order<Specs..., ExtraSpec>()) {
    using compiled = program<without_lines<Model>, mesh_of<Specs..., ExtraSpec>, in<Letters, Specs, T>..., partial_sums>;
    return run_operation<compiled>(operation, std::array{operand_of(Letters.view(), operands)...},
                                   std::array<const untyped_tensor*, sizeof...(T)>{&operands...});
  } else {
    return refused_output();
  }
}

/// Extents of dims that no operand has. They are passed to `bind_letters` as an operand.
class added_extents {
 public:
  /// `seed`: for the random numbers of the run.
  added_extents(const any_cluster& on, std::vector<std::int64_t> extents, std::uint64_t seed = 0)
      : on_(on), extents_(std::move(extents)), seed_(seed), origin_(on.backend()) {
    origin_.constant = std::to_string(seed);  // processes compare it in addition to the extents
  }
  const any_cluster& cluster() const { return on_; }
  std::span<const std::int64_t> extents() const { return extents_; }
  std::int64_t extent(int d) const { return extents_[std::size_t(d)]; }
  std::uint64_t seed() const { return seed_; }
  friend operand operand_of(std::string_view letters, const added_extents& a) { return {letters, &a.on_, a.extents_, &a.origin_}; }

 private:
  any_cluster on_;
  std::vector<std::int64_t> extents_;
  std::uint64_t seed_;
  tensor_origin origin_;
};

/// The same with complete operands (dims match by position), dims `Added` that no operand has, and parameters of type `Element`.
template <auto Model, class ExtraSpec, class Element, fixed_string Added, class... T, class... Specs>
auto run_eager_with(std::string_view operation, const added_extents& added, const tensor<T, Specs>&... operands) {
  require_complete<tensor<T, Specs>...>();
  if constexpr (in_mesh_order<Specs..., ExtraSpec>()) {
    using compiled = program<without_lines<Model>, mesh_of<Specs..., ExtraSpec>, in<first_letters<Specs::rank>, Specs, T>...,
                             element<Element>, partial_sums>;
    return run_operation<compiled>(operation,
                                   std::array{operand_of(Added.view(), added), operand_of(first_letters<Specs::rank>.view(), operands)...},
                                   std::array<const untyped_tensor*, sizeof...(T)>{&operands...}, added.seed());
  } else {
    return refused_output();
  }
}

/// Runs a verb whose operands are complete. Without letters, their dims match by position.
template <auto Model, fixed_string... Letters, class... T, class... Specs>
auto run_verb(std::string_view operation, const tensor<T, Specs>&... operands) {
  require_complete<tensor<T, Specs>...>();
  return run_eager<Model, spec<>, Letters...>(operation, operands...);
}

#if GSHARD_HAS_BODIES

GSHARD_INLINE dims bind_letters(std::string_view operation, std::span<const operand> operands) {
  dims bound;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const operand& t = operands[i];
    if (t.extents.size() != t.letters.size())
      throw error(std::string(operation) + ": " + std::to_string(t.extents.size()) + " extents for a spec of " +
                  std::to_string(t.letters.size()) + " dims");
    for (std::size_t d = 0; d < t.letters.size(); ++d) {
      const std::int64_t known = bound.find(t.letters[d]), given = t.extents[d];
      if (given < 0) throw error(std::string(operation) + ": a new dim has extent " + std::to_string(given));
      if (known >= 0 && known != given)
        throw error(std::string(operation) + ": dim " + std::to_string(d) + " of operand " + std::to_string(i) + " has extent " +
                    std::to_string(given) + ", an earlier operand has " + std::to_string(known) + " there");
      bound.set(t.letters[d], given);
    }
  }
  return bound;
}

GSHARD_INLINE std::uint64_t operand_facts::hash() const {
  fnv1a<std::uint64_t> h;
  for (const operand& t : operands) h.add(t.origin->hash());
  return h.value();
}

GSHARD_INLINE std::vector<fact> operand_facts::operator()() const {
  std::vector<fact> facts;
  for (std::size_t i = 0; i < operands.size(); ++i) operands[i].origin->add_to(facts, "operand " + std::to_string(i));
  return facts;
}

GSHARD_INLINE binding bind_operands(const mesh_shape& mesh, std::string_view operation, std::span<const operand> operands) {
  const any_cluster& on = *operands[0].on;
  binding to{cluster_access::unowned(on), {}, {}, {}};
  to.problem = problem_of([&] {
    if (!are_on(on, operands)) throw error(std::string(operation) + ": the operands belong to different clusters");
    for (int a = 0; a < mesh.rank(); ++a)
      if (on.mesh().find(mesh.name(a)) < 0)
        throw error(std::string(operation) + ": the cluster has no mesh axis called \"" + std::string(mesh.name(a)) + "\"");
    to.bound = bind_letters(operation, operands);
    for (const operand& t : operands) to.extents.insert(to.extents.end(), t.extents.begin(), t.extents.end());
  });
  return to;
}

GSHARD_INLINE kept_program::kept_program(const plan_view& plan, const kernel_table& kernels, binding to, std::string_view operation,
                                         const collective_call& operands)
    : kept(&plan, 0),
      untyped_executable(plan, kernels, to.on, to.bound, parameter_store(to.on), std::move(to.problem), operation, operands),
      extents(std::move(to.extents)) {
  executor().agreed_by_caller();  // when the program is made or reused
  bytes = executor().arena_bytes() * std::int64_t(to.on.devices().size());
}

GSHARD_INLINE eager_call::eager_call(const plan_view& plan, const kernel_table& kernels, std::string_view operation,
                                     std::span<const operand> operands)
    : on_(operands[0].on),
      in_use_(on_->backend().enter()),
      keeps_(!on_->backend().shares_memory()) {  // with shared memory, binding needs several agreements: all must bind together
  lru_cache& kept = cluster_access::kept(*on_);
  if (keeps_ && are_on(*on_, operands))
    program_ = kept.take<kept_program>(&plan, [&](const kept_program& p) { return have_extents(operands, p.extents); });
  const operand_facts facts{operands};
  const collective_call the_same{facts.hash(), facts};
  if (program_) program_->executor().use_again(the_same);
  else program_ = std::make_unique<kept_program>(plan, kernels, bind_operands(plan.mesh, operation, operands), operation, the_same);
}

GSHARD_INLINE void eager_call::run(std::span<const untyped_tensor* const> inputs, std::uint64_t seed) {
  program_->seed = seed;
  program_->run_on_tensors(inputs);
}

GSHARD_INLINE untyped_result eager_call::output(std::size_t i, const named_sharding& spec) const {
  return program_->read_output(i, spec, *on_);
}

GSHARD_INLINE void eager_call::keep() {
  if (keeps_) cluster_access::kept(*on_).put_back(std::move(program_));
}

GSHARD_INLINE bool have_extents(std::span<const operand> operands, std::span<const std::int64_t> extents) {
  for (const operand& t : operands) {
    if (extents.size() < t.extents.size() || !std::ranges::equal(t.extents, extents.first(t.extents.size()))) return false;
    extents = extents.subspan(t.extents.size());
  }
  return extents.empty();
}

GSHARD_INLINE bool are_on(const any_cluster& on, std::span<const operand> operands) {
  return std::ranges::all_of(operands, [&](const operand& t) { return t.on->same_as(on); });
}

#endif

}}}  // namespace gshard::v0::detail
