// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The operations of programs and plans, with their traits.

#include <gshard/core/base/compiler.hpp>
#include <gshard/core/ir/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// When propagation passes shardings through an operation. @see propagate
enum class propagation : std::uint8_t {
  after_elementwise,          // after all operations that keep the shape
  first,                      // the result has the operands' shape, element by element
  first_unless_broadcast,     // the same, but late if an operand lacks dims
  first_if_one_operand,       // the same if there is one operand and no dim is summed
};

/// When a partial sum of the operands is a partial sum of the result.
enum class linearity : std::uint8_t {
  nonlinear,
  always,       // linear in all operands together
  of_function,  // if the function of the node is
  product,      // linear in each operand alone, except ids; with one operand, always
  one_operand,  // linear in its operand, unless it fills the result with another number than 0. Prices decide whether a sum stays partial
};

/// The dim along which an operation needs complete lines, but can be decomposed into operations on blocks. An operation that cannot be
/// decomposed has no `lines`; its rule blocks the dim, as in sort. @see decompose
enum class line_dim : std::uint8_t { absent, last, attribute };

namespace detail {
struct not_copied {
  constexpr not_copied() = default;
  not_copied(const not_copied&) = delete;
};
}  // namespace detail

/// The properties of an operation that passes and executor use, in addition to its rule. A field that its constant does not name has its
/// default.
struct operation {
  std::int16_t id = -1;  ///< Its number in plans and hashes, which no other operation has.
  std::string_view name;
  element_set elements = reals;  ///< The element types of its tensors, except ids.
  bool by_size = false;          ///< Its kernel moves elements by their size, whatever their type.
  bool routes = false;      ///< Routes tokens to experts, or computes with them there. @see moe/routing/routing.hpp
  bool collective = false;  ///< Moves data between devices.
  int move = -1;            ///< Its index in `move_operations`.
  bool reshards = false;    ///< Reshards each operand, and computes at most sums.
  bool ragged = false;      ///< Moves the rows in use of operand 0, after the counts of these rows, which are operand 1.
  bool alias = false;       ///< The result shares the storage of the first operand.
  bool control = false;     ///< Controls a while loop, and computes nothing.
  int nesting = 0;          ///< 1: the nodes after it are one loop deeper. -1: one less.
  bool checks = false;      ///< Its kernel may find numbers that are not finite, which is an error of the run.
  bool converts = false;    ///< Changes the element type, and computes nothing else.
  bool only_moves = false;  ///< Moves elements to other indices, and computes nothing.
  bool reads_what_it_writes = false;  ///< Reads as many elements as it writes, however large its operand is.
  /// Element i of the result depends on elements i of operands of its shape alone.
  bool elementwise = false;
  /// Multiplies two operands and sums: two floating-point operations per index of its rule.
  bool product = false;
  bool grouped = false;  ///< A product for each expert, of its rows alone. Operand 2 counts the rows of experts.
  int fused_products = 0;  ///< The number of such products over all indices of its rule in one kernel, for prices.
  /// Its strategy is the sharding of its result, because its numbers depend on the shards.
  bool follows_result = false;
  bool counts_devices = false;   ///< The result is a sum over all devices, whatever shards they hold. Such sums are therefore added first.
  bool of_addends = false;       ///< Computes with each device's addend of a partial sum, and with a state of that device.
  bool annotates = false;        ///< The program sets the sharding of its result, to which the operand is resharded.
  bool declares_result = false;  ///< The program declares the sharding, or the partial sum, of the result.
  bool sums = false;             ///< A collective that adds partial sums.
  bool in_rings = false;         ///< A collective that passes blocks around rings of devices: a gather or a reduction.
  bool one_call = false;         ///< A collective that is one call of a backend if it moves few bytes.
  bool piecewise = false;        ///< Its kernel can compute any range of the result alone.
  bool recomputable = false;     ///< Without random numbers and cheap: a fusing compiler computes it again for each reader.
  /// Cheap and without random numbers: the partitioner may run it again in another sharding, instead of resharding its result.
  bool repeatable = false;
  std::int8_t slot_factor = -1;  ///< The factor of its result that counts capacity slots, with zeros in empty ones; -1: none.
  bool gates = false;            ///< Its kernel passes over its operand several times. @see efficiency::gating_passes
  int windowed = 0;  ///< The number of leading operands that are read through the windows of the node's rule.
  bool windows_of_operands = false;  ///< The rule has one window per operand, along `dim`, instead of one per dim.
  bool taps = false;  ///< The windows of the first operand are read at taps, which are dims of another tensor.
  propagation spreads = propagation::after_elementwise;
  linearity linear = linearity::nonlinear;
  line_dim lines = line_dim::absent;
  bool after_extremum = false;  ///< Operand 1 is the extremum of its lines. Both are reductions, decomposed only if attr.by_blocks is set.
  bool keeps_sharding = false;  ///< Its results keep the sharding in which they are computed, in dims that nothing else decides.
  bool custom = false;     ///< attr.custom has its name, its kernel and its cost.
  bool user_code = false;  ///< Its kernel is the user's: it may throw, and is called on one device at a time.
  int overwrites = -1;  ///< The operand over which its kernel may write the result, or -1. @see any_of_its_dims
  int ids = -1;         ///< The operand that holds ids or labels, which are checked when the operation runs, or -1.
  line_dim ids_along = line_dim::last;  ///< The dim of operand 0 that ids index,
  bool ids_of_result = false;           ///< or of the result.

  [[no_unique_address]] detail::not_copied refers{};  ///< An op_ref refers to the constant itself.

  static constexpr int any_of_its_dims = -2;  ///< Every operand that has the dims of the result.
};

/// One constant per operation.
namespace op {
inline constexpr operation none{.name = "nothing"};

// arithmetic
inline constexpr operation einsum{.id = 0, .name = "einsum", .elements = all_elements, .product = true, .repeatable = true,
    .spreads = propagation::first_if_one_operand, .linear = linearity::product};
inline constexpr operation map{.id = 1, .name = "map", .elements = all_elements, .elementwise = true, .piecewise = true,
    .recomputable = true, .repeatable = true, .spreads = propagation::first_unless_broadcast, .linear = linearity::of_function,
    .overwrites = operation::any_of_its_dims};
inline constexpr operation scale{.id = 2, .name = "scale", .elements = reals | complexes | integers, .elementwise = true, .piecewise = true,
    .recomputable = true, .repeatable = true, .spreads = propagation::first, .linear = linearity::always, .overwrites = 0};
inline constexpr operation cast{.id = 5, .name = "cast", .elements = all_elements, .converts = true, .elementwise = true,
    .recomputable = true, .repeatable = true, .spreads = propagation::first};

// indices
inline constexpr operation iota{.id = 22, .name = "iota", .elements = 1u << int(dtype::i32), .repeatable = true};

// shape
inline constexpr operation reshape{.id = 26, .name = "reshape", .elements = all_elements, .by_size = true, .alias = true,
    .repeatable = true, .windowed = 1, .spreads = propagation::first, .linear = linearity::always};
inline constexpr operation annotate{.id = 27, .name = "annotate", .elements = all_elements, .by_size = true, .alias = true,
    .annotates = true, .spreads = propagation::first};

// while loops
inline constexpr operation carry{.id = 55, .name = "carry", .elements = all_elements, .by_size = true, .annotates = true,
    .spreads = propagation::first};
inline constexpr operation loop_begin{.id = 56, .name = "loop_begin", .control = true, .nesting = 1};
inline constexpr operation loop_test{.id = 57, .name = "loop_test", .control = true};
inline constexpr operation loop_end{.id = 58, .name = "loop_end", .control = true, .nesting = -1};

// communication, which the partitioner adds to plans
inline constexpr operation slice{.id = 59, .name = "slice", .move = 0, .reshards = true, .reads_what_it_writes = true};
inline constexpr operation all_gather{.id = 60, .name = "all_gather", .collective = true, .move = 1, .reshards = true, .in_rings = true,
    .one_call = true};
inline constexpr operation all_reduce{.id = 61, .name = "all_reduce", .collective = true, .move = 2, .reshards = true, .sums = true,
    .in_rings = true, .one_call = true};
inline constexpr operation reduce_scatter{.id = 62, .name = "reduce_scatter", .collective = true, .move = 3, .reshards = true, .sums = true,
    .in_rings = true};
inline constexpr operation all_to_all{.id = 63, .name = "all_to_all", .collective = true, .move = 4, .reshards = true};
inline constexpr operation ragged_all_to_all{.id = 64, .name = "ragged_all_to_all", .collective = true, .move = 5, .reshards = true,
    .ragged = true};
inline constexpr operation collective_permute{.id = 65, .name = "collective_permute", .collective = true, .move = 6, .reshards = true};
inline constexpr operation looped_einsum{.id = 66, .name = "looped_einsum", .elements = reals | complexes | integers, .collective = true,
    .move = 7, .product = true};
}  // namespace op

/// Operations have numbers below this one.
inline constexpr std::size_t most_operations = 128;

/// Names an operation: the kind of a node. A default one names no operation.
class op_ref {
 public:
  constexpr op_ref() = default;
  constexpr op_ref(const operation& o) : operation_(&o) {}
  op_ref(const operation&&) = delete;

  constexpr const operation& operator*() const { return *operation_; }
  constexpr const operation* operator->() const { return operation_; }

  // By number, not by address: kernels of several levels of the instruction set have constants of their own.
  // Without calls and copies, because constexpr evaluation pays for both.
  friend constexpr bool operator==(const op_ref& a, const op_ref& b) { return a.operation_->id == b.operation_->id; }
  friend constexpr bool operator==(const op_ref& a, const operation& b) { return a.operation_->id == b.id; }
  friend constexpr bool operator<(const op_ref& a, const op_ref& b) { return a.operation_->id < b.operation_->id; }
  friend constexpr const operation& traits(const op_ref& kind) { return *kind.operation_; }

 private:
  const operation* operation_ = &op::none;
};

/// The operations that are added to plans to move data, by `operation::move`.
inline constexpr op_ref move_operations[]{op::slice,      op::all_gather,        op::all_reduce,         op::reduce_scatter,
                                          op::all_to_all, op::ragged_all_to_all, op::collective_permute, op::looped_einsum};

constexpr const operation& traits(const op_ref& kind);  // a friend of op_ref
constexpr const operation& traits(const operation& kind) { return kind; }
constexpr std::string_view name(const op_ref& kind) { return kind->name; }
/// The operation as which one is measured. Executors fuse piecewise operations, so these are measured together.
constexpr op_ref measured_as(const op_ref& kind) { return kind->piecewise ? op_ref(op::map) : kind; }
/// True if an operation takes tensors of an element type.
constexpr bool supports(const op_ref& kind, dtype type) { return (kind->elements >> int(type)) & 1u; }
/// True if an operation may fail on one device alone: where ids or numbers are checked, and in the user's functions of shards.
constexpr bool may_fail(const op_ref& kind) { return kind->user_code || kind->checks || kind->ids >= 0; }
/// True for the nodes of a while loop: its control, and the values that it carries. @see ops/loop/loop.hpp
constexpr bool is_of_loop(const op_ref& kind) { return kind == op::carry || kind->control; }
/// True for an einsum that exchanges blocks while it computes.
constexpr bool is_looped_product(const op_ref& kind) { return kind->collective && kind->product; }

}}  // namespace gshard::v0
