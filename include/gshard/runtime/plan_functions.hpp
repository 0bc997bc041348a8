// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The functions that steps of plans compute, by name.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/custom_operation.hpp>
#include <gshard/core/ir/pointwise.hpp>
#include <gshard/ops/user/call_on_shards.hpp>
#include <gshard/ops/user/custom.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#if GSHARD_HAS_BODIES
#include <gshard/all_functions.hpp>
#include <gshard/core/ir/arithmetic.hpp>
#include <gshard/exec/process/error.hpp>

#include <iterator>
#endif

namespace gshard { inline namespace v0 {

/// The functions that steps of plans compute, by name. A plan in a file has their names. The library's functions have names already; a
/// program names its own:
///
///     const auto functions = gs::plan_functions().map<gelu, 1>("gelu").on_shards<smooth, 2>("smooth").custom<distances>();
///
/// Throws `gshard::error` if a name is given twice.
/// @see save_plan, read_plan
class plan_functions {
 public:
  /// The functions of the library.
  plan_functions();
  /// The same, and every other name: for tools that describe and price plans of any program. Running such a function is an error.
  static plan_functions of_any_name();
  static constexpr int any_arity = -1;  ///< Of a function that is not known.

  /// A function of `map` that takes `Operands` numbers, and its derivatives.
  template <auto F, int Operands>
  plan_functions& map(const std::string& name) {
    return add(name, pointwise_of<F, Operands>);
  }
  /// A function of `call_on_shards` that takes `Operands` shards.
  template <auto F, int Operands>
  plan_functions& on_shards(const std::string& name) {
    return add(name, detail::shards_of<F, Operands>);
  }
  /// A function that a plan has.
  plan_functions& add(const std::string& name, const pointwise& f);
  /// An operation of `custom`, whose name is its member.
  template <class Operation>
  plan_functions& custom() {
    constexpr auto operands = std::size_t(detail::custom_parts<Operation>::rule.count);
    return add(detail::custom_of<Operation, std::make_index_sequence<operands>>);
  }

  /// An operation that a plan has.
  plan_functions& add(const custom_operation& operation);

  /// The function with this name, or null.
  const pointwise* find(std::string_view name) const;
  const custom_operation* find_custom(std::string_view name) const;
  /// The name of a function, or an empty one.
  std::string_view name_of(const pointwise& f) const;

 private:
  /// Stands for functions and operations that are not known.
  struct unknown {
    std::string name;
    pointwise function;
    custom_operation operation;
  };

  std::map<std::string, const pointwise*, std::less<>> functions_;
  std::map<std::string, const custom_operation*, std::less<>> customs_;
  std::shared_ptr<std::deque<unknown>> unknown_;  // null: an unknown name is not found

  const unknown& add_unknown(std::string_view name) const;
};

#if GSHARD_HAS_BODIES

GSHARD_INLINE plan_functions::plan_functions() {
  constexpr std::string_view names[]{"zero",         "one",           "identity",           "conjugate",
                                     "conjugate'0",  "add",           "subtract",           "multiply",
                                     "multiply'0",   "multiply'1",    "divide",             "divide'0",
                                     "divide'1",     "less",          "at_most",            "equal",
                                     "choose",       "choose'1",      "choose'2",           "where_equal",
                                     "both",         "either",        "negation",           "quotient",
                                     "modulo"};
  static_assert(std::size(names) == std::size_t(detail::arithmetic::number_of<detail::arithmetic::modulo>) + 1);
  std::size_t n = 0;
  detail::arithmetic::for_each_function([&]<class F>(F) { functions_.emplace(names[n++], &detail::own_function<F>); });
  for (const detail::named_function& f : all_functions) add(std::string(f.name), *f.function);
  for (const custom_operation* const o : all_custom_operations) add(*o);
}

GSHARD_INLINE plan_functions plan_functions::of_any_name() {
  plan_functions all;
  all.unknown_ = std::make_shared<std::deque<unknown>>();
  return all;
}

namespace detail {
template <class T>
void refuse_to_run(const T* const*, T*, std::int64_t) {
  throw error("a plan that was read with plan_functions::of_any_name() cannot run");
}
template <class T>
void refuse_to_run_shards(const T* const*, const shard_place*, T*, const shard_place&) {
  refuse_to_run<T>(nullptr, nullptr, 0);
}
}  // namespace detail

GSHARD_INLINE const plan_functions::unknown& plan_functions::add_unknown(std::string_view name) const {
  for (const unknown& u : *unknown_)
    if (u.name == name) return u;
  unknown& made = unknown_->emplace_back();
  made.name = name;
  made.function.arity = any_arity;
  made.function.f32 = detail::refuse_to_run<float>;
  made.function.f64 = detail::refuse_to_run<double>;
  made.function.shards_f32 = detail::refuse_to_run_shards<float>;
  made.function.shards_f64 = detail::refuse_to_run_shards<double>;
  made.operation.name = made.name;
  made.operation.f32 = detail::refuse_to_run_shards<float>;
  made.operation.f64 = detail::refuse_to_run_shards<double>;
  return made;
}

GSHARD_INLINE plan_functions& plan_functions::add(const std::string& name, const pointwise& f) {
  if (name.empty() || !functions_.emplace(name, &f).second) throw error("plan_functions: the name \"" + name + "\" is empty or taken");
  if (f.differentiable && f.own < 0)
    for (int i = 0; i < f.arity; ++i) add(name + "'" + std::to_string(i), f.derivative(i));
  return *this;
}

GSHARD_INLINE plan_functions& plan_functions::add(const custom_operation& operation) {
  const std::string name(operation.name);
  if (name.empty() || !customs_.emplace(name, &operation).second)
    throw error("plan_functions: the name \"" + name + "\" of a custom operation is empty or taken");
  return *this;
}

GSHARD_INLINE const pointwise* plan_functions::find(std::string_view name) const {
  if (const auto found = functions_.find(name); found != functions_.end()) return found->second;
  return unknown_ ? &add_unknown(name).function : nullptr;
}

GSHARD_INLINE const custom_operation* plan_functions::find_custom(std::string_view name) const {
  if (const auto found = customs_.find(name); found != customs_.end()) return found->second;
  return unknown_ ? &add_unknown(name).operation : nullptr;
}

GSHARD_INLINE std::string_view plan_functions::name_of(const pointwise& f) const {
  if (unknown_)
    for (const unknown& u : *unknown_)
      if (&u.function == &f) return u.name;
  for (const auto& [name, known] : functions_) {
    // By number and kernels, because constants with other flags compute the same.
    const bool same = f.own >= 0 ? known->own == f.own
                                 : known->own < 0 && known->arity == f.arity && known->f32 == f.f32 && known->f64 == f.f64 &&
                                       known->shards_f32 == f.shards_f32 && known->shards_f64 == f.shards_f64;
    if (same) return name;
  }
  return {};
}

#endif

}}  // namespace gshard::v0
