// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The operations of programs and plans, and the table of their traits.

#include <gshard/base/compiler.hpp>
#include <gshard/ir/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// Every operation of a program or a plan. Each has one line here and one in `op_table`.
enum class op : std::uint8_t {
  // arithmetic
  einsum,
  map,
  scale,
  reduce,
  argmax,
  cast,
  // rows
  softmax,
  softmax_grad,
  layer_norm,
  layer_norm_grad,
  cross_entropy,
  cross_entropy_grad,
  block_cross_entropy,
  attention,
  attention_grad,
  cumsum,
  block_sum,
  sort,
  top_k,
  scatter_along,
  // indices
  gather,
  scatter_add,
  iota,
  // checks
  check_finite,
  count_not_finite,
  sum_of_squares,
  // shape
  reshape,
  annotate,
  // windows
  strided_slice,
  pad,
  reverse,
  roll,
  permute,
  concat,
  convolution,
  pool,
  pool_grad,
  // operations of the user
  per_shard,
  custom,
  // random
  dropout,
  random,
  // mixture of experts
  top_k_gating,
  top_k_gating_grad,
  expert_group_slots,
  expert_group_slots_grad,
  expert_rows,
  grouped_product,
  grouped_weight_grad,
  one_hot,
  one_hot_grad,
  dispatch,
  combine,
  combine_weight_grad,
  // optimizers
  feedback,
  adam,
  // while loops
  carry,
  loop_begin,
  loop_test,
  loop_end,
  // communication, added to plans by the partitioner
  slice,
  all_gather,
  all_reduce,
  reduce_scatter,
  all_to_all,
  ragged_all_to_all,
  collective_permute,
  looped_einsum,
  count_
};

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

/// The properties of an operation that passes and executor use, besides its rule. A field that the table does not name has its default.
struct op_traits {
  op kind;
  std::string_view name;
  element_set elements = reals;  ///< The element types of its tensors, except ids.
  bool by_size = false;          ///< Its kernel moves elements by their size, whatever their type.
  bool routes = false;      ///< Routes tokens to experts, or computes with them there. @see grad/differentiate_routing.hpp
  bool collective = false;  ///< Moves data between devices.
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
  bool fills_slots = false;  ///< Its result has the capacity slots of experts, with zeros in empty ones.
  bool gates = false;            ///< Its kernel passes over its operand several times. @see efficiency::gating_passes
  int windowed = 0;  ///< The number of leading operands that are read through the windows of the node's rule.
  bool taps = false;  ///< The windows of the first operand are read at taps, which are dims of another tensor.
  propagation spreads = propagation::after_elementwise;
  linearity linear = linearity::nonlinear;
  line_dim lines = line_dim::absent;
  int line_sums = 0;  ///< For decompose_cost: the number of all_reduces of one number per line when decomposed, or `own_formula`.
  bool after_extremum = false;  ///< Operand 1 is the extremum of its lines. Both are reductions, decomposed only if attr.by_blocks is set.
  bool keeps_sharding = false;  ///< Its results keep the sharding in which they are computed, in dims that nothing else decides.
  bool user_code = false;  ///< Its kernel is the user's: it may throw, and is called on one device at a time.
  int overwrites = -1;  ///< The operand over which its kernel may write the result, or -1. @see any_of_its_dims
  int ids = -1;         ///< The operand that holds ids or labels, which are checked when the operation runs, or -1.
  line_dim ids_along = line_dim::last;  ///< The dim of operand 0 that ids index,
  bool ids_of_result = false;           ///< or of the result.

  static constexpr int own_formula = -1;
  static constexpr int any_of_its_dims = -2;  ///< Every operand that has the dims of the result.
};

/// One row per operation, in the order of `op`. Not std::array, whose operator[] costs the constexpr evaluator two more calls.
inline constexpr op_traits op_table[]{
    {.kind = op::einsum,
     .name = "einsum",
     .elements = all_elements,
     .product = true,
     .repeatable = true,
     .spreads = propagation::first_if_one_operand,
     .linear = linearity::product},
    {.kind = op::map,
     .name = "map",
     .elements = all_elements,
     .elementwise = true,
     .piecewise = true,
     .recomputable = true,
     .repeatable = true,
     .spreads = propagation::first_unless_broadcast,
     .linear = linearity::of_function,
     .overwrites = op_traits::any_of_its_dims},
    {.kind = op::scale,
     .name = "scale",
     .elements = reals | complexes | integers,
     .elementwise = true,
     .piecewise = true,
     .recomputable = true,
     .repeatable = true,
     .spreads = propagation::first,
     .linear = linearity::always,
     .overwrites = 0},
    {.kind = op::reduce, .name = "reduce", .elements = reals | integers},
    {.kind = op::argmax, .name = "argmax", .lines = line_dim::attribute, .line_sums = op_traits::own_formula, .after_extremum = true},
    {.kind = op::cast,
     .name = "cast",
     .elements = all_elements,
     .converts = true,
     .elementwise = true,
     .recomputable = true,
     .repeatable = true,
     .spreads = propagation::first},
    {.kind = op::softmax, .name = "softmax", .spreads = propagation::first, .lines = line_dim::last, .line_sums = 2, .overwrites = 0},
    {.kind = op::softmax_grad,
     .name = "softmax_grad",
     .spreads = propagation::first,
     .lines = line_dim::last,
     .line_sums = 1,
     .overwrites = 1},
    {.kind = op::layer_norm, .name = "layer_norm", .lines = line_dim::last, .line_sums = 2, .overwrites = 0},
    {.kind = op::layer_norm_grad, .name = "layer_norm_grad", .lines = line_dim::last, .line_sums = 4},
    {.kind = op::cross_entropy, .name = "cross_entropy", .lines = line_dim::last, .line_sums = 3, .ids = 1},
    {.kind = op::cross_entropy_grad, .name = "cross_entropy_grad", .lines = line_dim::last, .line_sums = 2, .overwrites = 0, .ids = 1},
    {.kind = op::block_cross_entropy, .name = "block_cross_entropy", .follows_result = true, .ids = 1},
    {.kind = op::attention, .name = "attention", .fused_products = 2},
    {.kind = op::attention_grad, .name = "attention_grad", .fused_products = 5},
    {.kind = op::cumsum, .name = "cumsum", .lines = line_dim::attribute, .line_sums = op_traits::own_formula},
    {.kind = op::block_sum, .name = "block_sum", .follows_result = true},
    {.kind = op::sort, .name = "sort", .keeps_sharding = true},
    {.kind = op::top_k, .name = "top_k", .lines = line_dim::attribute, .line_sums = op_traits::own_formula},
    {.kind = op::scatter_along, .name = "scatter_along"},
    {.kind = op::gather,
     .name = "gather",
     .elements = all_elements,
     .by_size = true,
     .reads_what_it_writes = true,
     .repeatable = true,
     .linear = linearity::product,
     .ids = 1,
     .ids_along = line_dim::attribute},
    {.kind = op::scatter_add,
     .name = "scatter_add",
     .elements = reals | complexes,
     .linear = linearity::product,
     .ids = 0,
     .ids_along = line_dim::attribute,
     .ids_of_result = true},
    {.kind = op::iota, .name = "iota", .elements = 1u << int(dtype::i32), .repeatable = true},
    {.kind = op::check_finite,
     .name = "check_finite",
     .elements = reals | complexes,
     .checks = true,
     .elementwise = true,
     .piecewise = true,
     .spreads = propagation::first,
     .overwrites = 0},
    {.kind = op::count_not_finite, .name = "count_not_finite", .counts_devices = true},
    {.kind = op::sum_of_squares, .name = "sum_of_squares", .counts_devices = true},
    {.kind = op::reshape,
     .name = "reshape",
     .elements = all_elements,
     .by_size = true,
     .alias = true,
     .repeatable = true,
     .windowed = 1,
     .spreads = propagation::first,
     .linear = linearity::always},
    {.kind = op::annotate,
     .name = "annotate",
     .elements = all_elements,
     .by_size = true,
     .alias = true,
     .annotates = true,
     .spreads = propagation::first},
    {.kind = op::strided_slice,
     .name = "strided_slice",
     .elements = all_elements,
     .by_size = true,
     .only_moves = true,
     .repeatable = true,
     .windowed = 1,
     .linear = linearity::one_operand},
    {.kind = op::pad,
     .name = "pad",
     .elements = all_elements,
     .by_size = true,
     .only_moves = true,
     .repeatable = true,
     .windowed = 1,
     .linear = linearity::one_operand},
    {.kind = op::reverse,
     .name = "reverse",
     .elements = all_elements,
     .by_size = true,
     .only_moves = true,
     .repeatable = true,
     .windowed = 1,
     .linear = linearity::one_operand},
    {.kind = op::roll,
     .name = "roll",
     .elements = all_elements,
     .by_size = true,
     .only_moves = true,
     .repeatable = true,
     .windowed = 1,
     .linear = linearity::one_operand},
    {.kind = op::permute,
     .name = "permute",
     .elements = all_elements,
     .by_size = true,
     .only_moves = true,
     .windowed = 1,
     .linear = linearity::one_operand},
    {.kind = op::concat, .name = "concat", .elements = all_elements, .by_size = true, .only_moves = true, .repeatable = true},
    {.kind = op::convolution, .name = "convolution", .product = true, .windowed = 1, .taps = true},
    {.kind = op::pool, .name = "pool", .windowed = 1},
    {.kind = op::pool_grad, .name = "pool_grad", .windowed = 2},
    {.kind = op::per_shard, .name = "per_shard", .follows_result = true, .declares_result = true, .user_code = true},
    {.kind = op::custom, .name = "custom", .elements = all_elements, .user_code = true},
    {.kind = op::dropout,
     .name = "dropout",
     .elementwise = true,
     .spreads = propagation::first,
     .linear = linearity::one_operand,
     .overwrites = 0},
    {.kind = op::random, .name = "random"},
    {.kind = op::top_k_gating, .name = "top_k_gating", .routes = true, .gates = true},
    {.kind = op::top_k_gating_grad, .name = "top_k_gating_grad", .routes = true, .gates = true},
    {.kind = op::expert_group_slots, .name = "expert_group_slots", .routes = true},
    {.kind = op::expert_group_slots_grad, .name = "expert_group_slots_grad", .routes = true},
    {.kind = op::expert_rows, .name = "expert_rows", .routes = true},
    {.kind = op::grouped_product, .name = "grouped_product", .routes = true, .product = true, .grouped = true},
    {.kind = op::grouped_weight_grad, .name = "grouped_weight_grad", .routes = true, .product = true, .grouped = true},
    {.kind = op::one_hot, .name = "one_hot", .routes = true},
    {.kind = op::one_hot_grad, .name = "one_hot_grad", .routes = true},
    {.kind = op::dispatch, .name = "dispatch", .routes = true, .fills_slots = true},
    {.kind = op::combine, .name = "combine", .routes = true},
    {.kind = op::combine_weight_grad, .name = "combine_weight_grad", .routes = true},
    {.kind = op::feedback, .name = "feedback", .of_addends = true},
    {.kind = op::adam, .name = "adam"},
    {.kind = op::carry, .name = "carry", .elements = all_elements, .by_size = true, .annotates = true, .spreads = propagation::first},
    {.kind = op::loop_begin, .name = "loop_begin", .control = true, .nesting = 1},
    {.kind = op::loop_test, .name = "loop_test", .control = true},
    {.kind = op::loop_end, .name = "loop_end", .control = true, .nesting = -1},
    {.kind = op::slice, .name = "slice", .reshards = true, .reads_what_it_writes = true},
    {.kind = op::all_gather, .name = "all_gather", .collective = true, .reshards = true, .in_rings = true, .one_call = true},
    {.kind = op::all_reduce,
     .name = "all_reduce",
     .collective = true,
     .reshards = true,
     .sums = true,
     .in_rings = true,
     .one_call = true},
    {.kind = op::reduce_scatter, .name = "reduce_scatter", .collective = true, .reshards = true, .sums = true, .in_rings = true},
    {.kind = op::all_to_all, .name = "all_to_all", .collective = true, .reshards = true},
    {.kind = op::ragged_all_to_all, .name = "ragged_all_to_all", .collective = true, .reshards = true, .ragged = true},
    {.kind = op::collective_permute, .name = "collective_permute", .collective = true, .reshards = true},
    {.kind = op::looped_einsum,
     .name = "looped_einsum",
     .elements = reals | complexes | integers,
     .collective = true,
     .product = true},
};

constexpr const op_traits& traits(op kind) { return op_table[std::size_t(kind)]; }
constexpr std::string_view name(op kind) { return traits(kind).name; }
/// True if an operation takes tensors of an element type.
constexpr bool supports(op kind, dtype type) { return (traits(kind).elements >> int(type)) & 1u; }
/// True if an operation may fail on one device alone: where ids or numbers are checked, and in the user's functions of shards.
constexpr bool may_fail(op kind) { return traits(kind).user_code || traits(kind).checks || traits(kind).ids >= 0; }
/// True for the nodes of a while loop: its control, and the values that it carries. @see trace/loop.hpp
constexpr bool is_of_loop(op kind) { return kind == op::carry || traits(kind).control; }
/// True for an einsum that exchanges blocks while it computes.
constexpr bool is_looped_product(op kind) { return traits(kind).collective && traits(kind).product; }

static_assert([] {
  for (std::size_t i = 0; i < std::size_t(op::count_); ++i)
    if (op_table[i].kind != op(i)) return false;
  return sizeof op_table == std::size_t(op::count_) * sizeof(op_traits);
}());

}}  // namespace gshard::v0
