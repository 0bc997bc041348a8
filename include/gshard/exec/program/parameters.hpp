// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The store of tensors that outlive a run: parameters and optimizer state by name.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/tensor/buffer.hpp>
#include <gshard/exec/tensor/cluster.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/core/base/hash.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/kernel/element.hpp>
#include <gshard/exec/kernel/move/fill.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#endif

namespace gshard { inline namespace v0 {

namespace detail {
/// The text of a store for comparison between processes.
std::string store_text(std::uint64_t number);
}  // namespace detail

/// Parameters and optimizer state by name, each with one sharding. Programs on one store share them: a decoding step reads the parameters
/// that a training step updates. Copies of a store share its tensors. A const store cannot change them: it has no copies, and programs do
/// not take it.
class parameter_store {
 public:
  struct entry {
    detail::bound_value value;
    std::vector<buffer> shards;
    bool trainable = true;
    bool of_optimizer = false;
    bool is_cache = false;
  };
  /// A tensor and its name.
  struct named_entry {
    const std::string& name;
    const struct entry& tensor;
  };

  /// `seed` determines the initial values. They are the same on every mesh.
  explicit parameter_store(any_cluster on, std::uint64_t seed = 0);
  parameter_store(parameter_store&) = default;
  parameter_store(parameter_store&&) = default;
  parameter_store(const parameter_store&) = delete;
  parameter_store& operator=(parameter_store&) = default;
  parameter_store& operator=(parameter_store&&) = default;
  parameter_store& operator=(const parameter_store&) = delete;

  const any_cluster& cluster() const { return state_->on; }
  std::uint64_t seed() const { return state_->seed; }

  /// The number of finished steps: runs of programs that update parameters. Random operations of all programs on the store depend on it.
  /// Optimizers use it as their step count. The same on all processes.
  std::uint32_t steps() const { return state_->steps; }
  void set_steps(std::uint32_t n) { state_->steps = n; }

  /// Identifies the store between processes: the number of the collective call that bound the first program to it, 0 before.
  std::uint64_t number() const { return state_->number; }
  void set_number(std::uint64_t n);

  /// All tensors, by name. References to names and tensors are valid until `forget`.
  std::vector<named_entry> entries() const;
  /// The tensors that checkpoints contain, by name: all but caches.
  std::vector<named_entry> saved() const;
  /// A tensor by name, or null. Valid until the tensor is removed.
  const entry* find(std::string_view name) const;
  entry* find(std::string_view name);

  /// The tensor of a program's parameter. The first request creates and initializes it. Throws if another program created it with other
  /// extents, another element type or another sharding; if only one of the programs declares it a cache; if the element type cannot hold
  /// the initial values; if there are fewer replicas than experts.
  entry& demand(const parameter& p, const detail::bound_value& wanted, const extents& sizes);
  /// Removes a tensor. No program may be bound to it.
  void forget(const std::string& name);

 private:
  struct entry_map;  // <map> takes 5 % of the compile time of gshard.hpp
  struct state {
    any_cluster on;
    std::uint64_t seed;
    std::uint32_t steps;
    std::uint64_t number;
    std::shared_ptr<entry_map> entries;
  };
  std::shared_ptr<state> state_;

  static constexpr bool has_random_numbers(dtype type) { return is_real(type) || traits(type).arithmetic == arithmetic_of::storage; }
  static void check_initial_values(const initializer& how, dtype type, const std::string& name);
  void initialize(entry& e, const parameter& p, std::string_view name, const extents& sizes) const;
  /// Calls f(placement, first element, row) for the whole shard if `rows` is 0. Otherwise calls it for each row of the shard, with the
  /// placement and the number of the row that it copies.
  template <class F>
  static void for_each_original(const kernel::placement& shard, std::int64_t rows, F f);
};

namespace detail {
template <class G>
inline constexpr bool takes<parameter_store, G> = std::is_same_v<G, parameter_store>;
}  // namespace detail

#if GSHARD_HAS_BODIES

struct parameter_store::entry_map : std::map<std::string, entry, std::less<>> {};

GSHARD_INLINE std::string detail::store_text(std::uint64_t number) {
  return number == 0 ? "one without programs" : "that of the program made in call " + std::to_string(number);
}

GSHARD_INLINE parameter_store::parameter_store(any_cluster on, std::uint64_t seed)
    : state_(std::make_shared<state>(state{std::move(on), seed, 0, 0, std::make_shared<entry_map>()})) {}

GSHARD_INLINE void parameter_store::set_number(std::uint64_t n) {
  if (state_->number == 0) state_->number = n;
}

GSHARD_INLINE std::vector<parameter_store::named_entry> parameter_store::entries() const {
  std::vector<named_entry> list;
  for (const auto& [name, e] : *state_->entries) list.push_back({name, e});
  return list;
}

GSHARD_INLINE std::vector<parameter_store::named_entry> parameter_store::saved() const {
  std::vector<named_entry> list;
  for (const auto& [name, e] : *state_->entries)
    if (!e.is_cache) list.push_back({name, e});
  return list;
}

GSHARD_INLINE const parameter_store::entry* parameter_store::find(std::string_view name) const {
  const auto it = state_->entries->find(name);
  return it == state_->entries->end() ? nullptr : &it->second;
}
GSHARD_INLINE parameter_store::entry* parameter_store::find(std::string_view name) {
  const auto it = state_->entries->find(name);
  return it == state_->entries->end() ? nullptr : &it->second;
}

GSHARD_INLINE parameter_store::entry& parameter_store::demand(const parameter& p, const detail::bound_value& wanted,
                                                              const extents& sizes) {
  const std::string name(p.name.view());
  if (p.copies_of >= 0 && wanted.extents[0] < sizes.dim(p.copies_of))
    throw error("parameter \"" + name + "\": " + std::to_string(wanted.extents[0]) + " replicas of " +
                std::to_string(sizes.dim(p.copies_of)) + " experts; each needs one at least");
  if (entry* known = find(name)) {
    if (known->value.extents != wanted.extents || known->value.type != wanted.type)
      throw error("parameter \"" + name + "\": another program on this store has it as " +
                  detail::layout_text(known->value, cluster().mesh()) + ", this one as " + detail::layout_text(wanted, cluster().mesh()));
    if (!known->value.layout.same_layout(wanted.layout) || known->value.positions != wanted.positions)
      throw error("parameter \"" + name + "\": another program on this store has it in another layout; annotate it in both alike");
    if (known->is_cache != p.is_cache)
      throw error("parameter \"" + name + "\": another program on this store has it " + (p.is_cache ? "not " : "") + "as a cache");
    return *known;
  }
  check_initial_values(p.init, wanted.type, name);
  entry& e = (*state_->entries)[name];
  e.value = wanted;
  e.trainable = p.trainable;
  e.of_optimizer = p.of_optimizer;
  e.is_cache = p.is_cache;
  for (std::size_t i = 0; i < wanted.places.size(); ++i) {
    e.shards.emplace_back(wanted.bytes(i));
    e.value.data[i] = e.shards.back().data();
  }
  initialize(e, p, name, sizes);
  return e;
}

GSHARD_INLINE void parameter_store::forget(const std::string& name) { state_->entries->erase(name); }

GSHARD_INLINE void parameter_store::check_initial_values(const initializer& how, dtype type, const std::string& name) {
  using enum initializer::kind;
  const bool random = how.what == normal;
  if (random ? has_random_numbers(type) : how.what == zeros || how.what == row || can_hold(type, how.scale)) return;
  throw error("parameter \"" + name + "\": its elements are " + std::string(cpp_name(type)) + ", which cannot start as " +
              (random ? "normal random numbers" : detail::number_text(how.scale)));
}

GSHARD_INLINE void parameter_store::initialize(entry& e, const parameter& p, std::string_view name, const extents& sizes) const {
  const initializer& how = p.init;
  double scale = how.scale;
  double fan_in = 1;
  for (int i = 0; i < how.fan_in.size(); ++i) fan_in *= double(sizes.dim(how.fan_in[i]));
  scale /= std::sqrt(fan_in);
  const random_key key{state_->seed, 0xffffffffu, fnv1a<std::uint32_t>().add(name).value()};
  const std::int64_t rows = p.copies_of < 0 ? 0 : sizes.dim(p.copies_of);  // the rows of which the tensor has copies
  detail::with_element(e.value.type, [&]<class T>(T*) {
    const T start = detail::element_from<T>(how.what == initializer::kind::constant ? scale : 0);
    for (std::size_t i = 0; i < e.shards.size(); ++i)
      for_each_original(e.value.places[i], rows, [&](const kernel::placement& at, std::int64_t first, std::int64_t row) {
        T* const data = e.value.as<T>(i) + first;
        const std::int64_t n = kernel::element_count(at.rank, at.extent);
        if constexpr (has_random_numbers(dtype_of<T>))
          if (how.what == initializer::kind::normal) return kernel::fill_normal<T>(data, at, scale, key);
        std::fill_n(data, n, how.what == initializer::kind::row ? detail::element_from<T>(double(row)) : start);
      });
  });
}

template <class F>
void parameter_store::for_each_original(const kernel::placement& shard, std::int64_t rows, F f) {
  if (rows == 0) return f(shard, 0, 0);
  kernel::placement at = shard;
  const std::int64_t copies = shard.global[0];
  at.global[0] = rows;
  at.extent[0] = 1;
  const std::int64_t elements = kernel::element_count(at.rank, at.extent);
  for (std::int64_t r = 0; r < shard.extent[0]; ++r) {
    at.offset[0] = (shard.offset[0] + r) * rows / copies;
    f(at, r * elements, at.offset[0]);
  }
}

#endif

}}  // namespace gshard::v0
