// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The graph of a traced program: nodes, values and parameters, and the rule (index letters) of each node.

#include <gshard/core/base/list.hpp>
#include <gshard/core/base/name.hpp>
#include <gshard/core/base/packed_list.hpp>
#include <gshard/core/ir/attributes.hpp>
#include <gshard/core/ir/dim.hpp>
#include <gshard/core/ir/dtype.hpp>
#include <gshard/core/ir/fault.hpp>
#include <gshard/core/ir/op.hpp>
#include <gshard/core/ir/operation_rules.hpp>
#include <gshard/core/ir/sharding.hpp>
#include <gshard/core/ir/window.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>

namespace gshard { inline namespace v0 {

struct symbol;

/// The rule of a node: the factor (index letter) of each dim of each operand and result. An axis that shards a factor shards all dims that
/// carry it. A result that lacks the factor is then a partial sum over that axis. Propagation and partitioning know operations only by
/// their rules.
struct sharding_rule {
  static constexpr int most_in = 7, most_out = 6;

  short_list in[most_in]{};  // not std::array, as in a sharding
  short_list out[most_out]{};
  std::uint16_t blocked = 0;  // factors that no axis may shard, a bit each
  /// The windows through which operands are read, as rows of the graph's table (0: none). Indexed by dim; for a concat, by operand. A
  /// device that computes a block of the factor needs the elements that the block reads.
  dim_list windows;

  constexpr void set_operands(std::initializer_list<short_list> lists) {
    int i = 0;
    for (const short_list& l : lists) in[i++] = l;
  }
  constexpr void set_results(std::initializer_list<short_list> lists) {
    int o = 0;
    for (const short_list& l : lists) out[o++] = l;
  }
  constexpr bool is_blocked(int factor) const { return (blocked >> factor) & 1u; }
  constexpr void block(int factor) { blocked = std::uint16_t(blocked | (1u << factor)); }
};

/// The tensors that a remat scope keeps for the gradient. Its other tensors are recomputed. @see remat
enum class remat_policy : std::uint8_t {
  nothing = 0,
  products = 1,     ///< results of einsums of two operands without a batch index: products with weights, not products of attention
  collectives = 2,  ///< results of collectives, so that no communication is repeated
  everything = 255,
};
constexpr remat_policy operator|(remat_policy a, remat_policy b) { return remat_policy(int(a) | int(b)); }
constexpr bool includes(remat_policy all, remat_policy one) { return (int(all) & int(one)) == int(one); }

/// Which implicit reshards a program allows.
enum class strictness : std::uint8_t {
  automatic,  // everything
  visible,    // everything except gathers
  strict,     // nothing: every operand has the sharding that its operation takes, every sum is completed by an annotation
};

/// The source line of an operation. Nodes of gradients have the line of the node that they differentiate.
struct code_place {
  const char* file = nullptr;
  std::uint32_t line = 0;
  bool gradient = false;
  bool is_explicit = false;  // the program allows operands to be resharded implicitly
  bool recomputed = false;   // the step repeats a step of the forward pass for the gradient
  std::int32_t remat = 0;    // the number of the remat scope around it; 0: none
  std::int32_t position = 0;  // in the order in which devices run nodes; -1: they do not run it
  const char* scope = nullptr;  // the innermost named_scope around it
};

/// One operation: in a program over global tensors, in a plan over shards.
struct node {
  op_ref kind{};
  std::uint8_t inputs = 0, outputs = 0;
  /// The number of leading results that overwrite the operands at the same positions.
  std::uint8_t in_place = 0;
  std::int32_t in[sharding_rule::most_in]{};
  std::int32_t out[sharding_rule::most_out]{};
  sharding_rule rule;
  attributes attr;
  code_place place;

  constexpr std::int32_t input(int i) const { return in[i]; }
  constexpr std::int32_t output(int i = 0) const { return out[i]; }
};

template <class T>
constexpr T own(const node& n) {
  return own<T>(n.attr);
}

/// The name of a node's operation: the name of its kind, or of the user's operation.
constexpr std::string_view name_of(const node& n) { return n.kind->custom ? n.attr.custom->name : name(n.kind); }

/// True for an einsum of two operands.
constexpr bool is_contraction(const node& n) { return n.kind == op::einsum && n.inputs == 2; }
/// True if both operands and the result of an einsum have an index in common.
constexpr bool has_batch_factor(const node& n) { return (n.rule.in[0].mask() & n.rule.in[1].mask() & n.rule.out[0].mask()) != 0; }
/// True if the results of a node are kept under a policy.
constexpr bool is_saved(const node& n, remat_policy saved) {
  if (saved == remat_policy::everything) return true;
  if (includes(saved, remat_policy::collectives) && traits(n.kind).collective) return true;
  return includes(saved, remat_policy::products) && traits(n.kind).product && n.inputs == 2 && !has_batch_factor(n);
}

/// The loop depth of a node's results, relative to the node. A carry of at most one operand is a state in the loop that follows. A carry of
/// more operands is the state after the loop.
constexpr int nesting_of_results(const node& n) { return n.kind != op::carry ? 0 : n.inputs <= 1 ? 1 : -1; }
/// True for a carry that writes a row of a state.
constexpr bool writes_row(const node& n) { return n.kind == op::carry && n.inputs == 3; }

/// True if a node overwrites parameters. A loop overwrites its carried values as well, but these belong to the loop.
constexpr bool updates_parameters(const node& n) { return n.in_place > 0 && n.kind != op::carry; }

/// One tensor: in a graph the global tensor, in a plan its shards in one sharding.
struct value {
  dim_list dims;
  dtype type = dtype::f32;
  sharding layout;
  dim_list windows;  // by dim, if not empty: the window (halo) through which a device holds the dim (0: its block)
  std::int32_t producer = -1;   // node, or -1: input or parameter
  std::uint8_t priority = 0;    // of its annotation: 0 propagates first
  bool bf16_on_wire = false;    // devices exchange its elements rounded to bf16
  bool fits_bf16 = false;       // its elements are numbers of bf16, so devices exchange them in bf16
  std::int32_t parameter = -1;  // its row in the table of parameters, if it is one

  constexpr int rank() const { return dims.count; }
};

/// The tensor that devices exchange when they reshard a tensor: its elements may be rounded. @see on_wire
constexpr value sent(value v) {
  if ((v.bf16_on_wire || v.fits_bf16) && is_real(v.type)) v.type = dtype::bf16;
  return v;
}

/// The initial values of a parameter. Random ones are drawn from counters keyed by (seed, name, global index), so they are the same on
/// every mesh.
struct initializer {
  enum class kind : std::uint8_t {
    zeros,
    constant,
    normal,
    row,  ///< An element is the number of its row, counted as in `parameter::copies_of`.
  };
  kind what = kind::zeros;
  /// The constant, or the standard deviation, divided by the square root of the product of the extents of `fan_in`.
  double scale = 0;
  dim_list fan_in;

  constexpr bool operator==(const initializer&) const = default;
};

/// A tensor that is kept from run to run, and its row in checkpoints.
struct parameter {
  tensor_name name;
  std::int32_t value = -1;
  std::int32_t updated = -1;  // the value that it holds after the run, or -1
  initializer init;
  bool trainable = true;       // optimizers train it
  bool of_optimizer = false;  // state of an optimizer, which is no part of the model
  bool is_cache = false;      // a variable that checkpoints leave out
  /// Its rows along dim 0 are copies of the rows of a tensor with this dim 0. Initially, row r of R is a copy of row floor(r * E / R). -1:
  /// no copies. @see moe/routing/expert_replicas.hpp
  int copies_of = -1;
  std::int32_t placed_by = -1;  ///< The row of the parameter [R] with the original row of each copy, or -1.
  /// The sum of a gradient over the copies of each row. Set if it is trainable and has copies.
  symbol (*sum_copies)(const symbol& gradient, const symbol& placed_by) = nullptr;
};

/// A tensor that is sharded as the tensor `like`, and over one more mesh axis. `dims`: the dims of `like` that it has. @see shard_further
struct sharded_further {
  std::int32_t value = -1, like = -1;
  int axis = 0;
  short_list dims;
};

/// A named input or output.
struct port {
  tensor_name name;
  std::int32_t value = -1;
  bool is_loss = false;  // for an output: a run in which it is not finite throws not_finite_error
  bool is_column_major = false;  // for an input: its dims are in the opposite order of those that its name lists
};

/// True if devices pass the partial sums of a looped einsum to each other; otherwise they pass blocks of an operand. The passed tensor is
/// sharded over the axes of the step.
constexpr bool ring_carries_sum(const node& n) { return n.attr.ring_operand == n.inputs; }
constexpr std::int32_t ring_operand(const node& n) { return ring_carries_sum(n) ? n.output() : n.input(n.attr.ring_operand); }

/// The most moves in one communication step.
inline constexpr int most_moves = 5;
/// The operation that moves operand i in a communication step. A combined step has one for each operand in `moves`, six bits each: its
/// index in `move_operations`. Its own kind is all_to_all if these differ.
constexpr op_ref operation_of_move(const node& n, int i) {
  return n.attr.moves != 0 ? move_operations[(n.attr.moves >> (6 * i)) & 63u] : n.kind;
}
constexpr void set_operation_of_move(node& n, int i, op_ref moves) { n.attr.moves |= std::uint32_t(moves->move) << (6 * i); }
static_assert(6 * most_moves <= 32 && std::size(move_operations) <= 64);
static_assert(most_moves <= sharding_rule::most_in && most_moves <= sharding_rule::most_out);

/// True if a step performs an operation, perhaps among others.
constexpr bool performs(const node& n, op_ref kind) {
  if (n.inputs == 0 || n.attr.moves == 0) return n.kind == kind;
  for (int i = 0; i < n.inputs; ++i)
    if (operation_of_move(n, i) == kind) return true;
  return false;
}

/// The row of the window through which a node reads a dim of an operand, or 0.
constexpr int window_row(const node& n, int operand, int d) {
  if (n.rule.windows.empty()) return 0;
  if (n.kind->windows_of_operands) return n.rule.in[std::size_t(operand)][d] == n.attr.dim ? n.rule.windows[operand] : 0;
  return operand < traits(n.kind).windowed && d < n.rule.windows.size() ? n.rule.windows[d] : 0;
}

/// The factor of the taps at which a node reads a dim of an operand, if another tensor has that factor; otherwise -1. An axis that shards
/// the factor also shards that dim, because a device needs the elements that its block of taps reads.
constexpr int tap_factor(const node& n, int operand, int d) {
  return traits(n.kind).taps && n.inputs > 1 && operand == 0 ? n.attr.dims[d] - 1 : -1;
}

/// The row of a window in a program's table. Adds the window if it is missing. 0: the table is full.
constexpr int row_of(list<window>& windows, const window& w) {
  for (std::size_t i = 1; i < windows.size(); ++i)
    if (windows[i] == w) return int(i);
  if (windows.size() > std::size_t(dim_list::largest)) return 0;
  windows.push_back(w);
  return int(windows.size()) - 1;
}

/// A traced program. Its nodes are in an order in which they can run.
struct graph {
  list<dim> dims;
  list<value> values;
  list<node> nodes;
  list<window> windows = {window{}};
  list<int> orders;  // device orders: rows of device_orders
  list<parameter> parameters;
  list<port> inputs, outputs;
  list<sharded_further> further;  // states and gradients of optimizers
  std::int32_t while_loops = 0;  // the number of while loops, which are numbered from 1
  list<remat_policy> remats;     // the policy of each remat scope; scopes are numbered from 1
  list<const operation_rules*> rules;  // by operation::id; empty ones until a verb adds the operation
  diagnostic problem;

  constexpr const value& at(std::int32_t id) const { return values[std::size_t(id)]; }
  constexpr value& at(std::int32_t id) { return values[std::size_t(id)]; }
  constexpr const operation_rules& rules_of(op_ref kind) const {
    const auto row = std::size_t(kind->id);
    return row < rules.size() ? *rules[row] : detail::no_rules;
  }
  constexpr void set_rules(const operation_rules& those) {
    const auto row = std::size_t(those.of->id);
    while (rules.size() <= row) rules.push_back(&detail::no_rules);
    rules[row] = &those;
  }
};

namespace detail {
/// The tensor that v annotates, or v. The states of loops are not followed: their values change.
constexpr std::int32_t without_annotations(const graph& g, std::int32_t v) {
  for (;;) {
    const std::int32_t maker = g.at(v).producer;
    if (maker < 0 || g.nodes[std::size_t(maker)].kind != op::annotate) return v;
    v = g.nodes[std::size_t(maker)].in[0];
  }
}
}  // namespace detail

}}  // namespace gshard::v0
