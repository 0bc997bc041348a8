// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The builder of a traced program: symbols, the nodes that verbs append, dims and faults.

#include <gshard/core/base/hash.hpp>
#include <gshard/core/base/list.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/device_order.hpp>
#include <gshard/core/ir/equation.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/ir/spec.hpp>
#include <gshard/core/trace/records.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <utility>

namespace gshard { inline namespace v0 {

class builder;

namespace detail {
template <class T>
inline constexpr bool has_numbers = false;
// Its result type is deduced, so that the assertion fires at the condition.
template <class T>
constexpr auto refuse_condition() {
  static_assert(has_numbers<T>, "gshard: a tensor of a program has no numbers yet: use select or while_loop in place of if");
  return true;
}
}  // namespace detail

/// A tensor of a program that is being traced. The lambda of a model computes with symbols in place of numbers.
struct symbol {
  builder* owner = nullptr;
  std::int32_t id = -1;

  constexpr const value& get() const;
  constexpr int rank() const { return get().rank(); }

  /// Refused: `if (a > b)` has no answer while a program is traced.
  template <class T>
    requires(std::same_as<T, bool>)
  constexpr explicit operator T() const noexcept(detail::refuse_condition<T>());

  // Structured bindings: a tensor decomposes into itself alone, so `auto [y, z] = f(x)` does not compile if f has one result.
  template <std::size_t I>
    requires(I == 0)
  friend constexpr symbol get(symbol s) {
    return s;
  }
};

/// A symbol as the parameter of a verb. It records the line that calls the verb, for the nodes that the verb adds.
struct here : symbol {
  constexpr here(symbol s, std::uint32_t line = __builtin_LINE(), const char* file = __builtin_FILE());
  /// For a verb that calls another verb: keeps the line of the outer call.
  constexpr here(symbol s, const here&) : symbol(s) {}
};

struct trace_options {
  /// einsum over a one-hot operand becomes an index gather or scatter: the same numbers without the O(S E C M) work.
  bool sparse_one_hot = true;
  /// einsums of two float operands round them to bf16.
  bool bf16_products = false;
  /// Extents that are known while tracing, by letter.
  gshard::dims known{};
};

/// The program that the verbs append to. Once a fault is reported, every further verb is a no-op that returns an empty symbol.
class builder {
 public:
  graph program;
  mesh_shape mesh;
  trace_options options;
  list<symbol> losses;  // terms that layers add to the objective
  list<std::int32_t> checked_losses;  // losses of optimizers and their terms: as outputs they must be finite
  list<std::int32_t> transposed_inputs;  // values that are a column-major input with its dims reversed
  list<scan_record> scans;
  list<bypass> bypasses;  // in any order
  list<split_dims> splits;
  symbol skipped;       // a scalar that is not 0 if an optimizer skips its updates; empty: never
  code_place place;     // source line of the nodes that are added
  bool keeps_place = false;  // verbs do not set `place`: added nodes implement another node, or belong to a layer

  /// The nodes that are added next, and faults, have this line.
  constexpr void set_place(std::uint32_t line, const char* file) {
    if (!keeps_place) place = {.file = file, .line = line, .remat = place.remat, .scope = place.scope};
  }

  constexpr bool failed() const { return bool(program.problem); }
  constexpr void fail(fault f, std::string_view about, std::string_view word = {}, int a = diagnostic::no_number,
                      int b = diagnostic::no_number) {
    if (failed()) return;
    program.problem.report(f, about, word, a, b);
    program.problem.name_place(place.line, place.scope);
  }
  /// Reports an operand, by its number, with a rank that the operation does not take.
  constexpr void fail_rank(std::string_view operation, int operand, int expected, int given) {
    const char digits[]{char('0' + operand / 10), char('0' + operand % 10)};
    const std::string_view two(digits, 2);
    fail(fault::rank_mismatch, operation, two.substr(operand < 10 ? 1 : 0), expected, given);
  }
  /// Reports options or arguments of a verb that are out of range. `names`: "start, stop". `first`, `second`: their values, if integers.
  constexpr void fail_range(std::string_view verb, std::string_view names, std::int64_t first = diagnostic::no_number,
                            std::int64_t second = diagnostic::no_number) {
    fail(fault::bad_range, verb, names, diagnostic::nearest(first), diagnostic::nearest(second));
  }
  /// Reports an operand, by its number, with an element type that the operation does not take.
  constexpr void fail_type(std::string_view operation, int operand, dtype given, element_set taken) {
    fail_type(operation, {}, operand, given, taken);
  }
  /// The same for a parameter or an option, by its name.
  constexpr void fail_type(std::string_view operation, std::string_view operand, dtype given, element_set taken) {
    fail_type(operation, operand, diagnostic::no_number, given, taken);
  }
  /// The program fails unless a parameter or an option, by its name, has these dims.
  constexpr void require_dims(std::string_view operation, std::string_view operand, symbol s, const dim_list& expected) {
    if (failed()) return;
    const dim_list& given = s.get().dims;
    if (given.size() != expected.size())
      return fail(fault::rank_mismatch, tensor_name(operand).append(" of ").append(operation).view(), {}, expected.size(), given.size());
    for (int d = 0; d < given.size(); ++d)
      if (!same_extent(given[d], expected[d])) fail(fault::dims_differ, operation, operand, diagnostic::no_number, d);
  }
  constexpr symbol nothing() { return {this, -1}; }
  /// True if a verb can use an operand. False if this program has failed, or if the operand is the result of a refused call.
  constexpr bool has(symbol s) {
    if (s.id < 0) fail(fault::refused_call, {});
    return !failed();
  }

  constexpr std::int32_t add_value(const dim_list& dims, dtype type, std::int32_t producer = -1) {
    value v;
    v.dims = dims;
    v.type = type;
    v.layout.rank = dims.count;
    v.layout.open = std::uint8_t((1u << dims.count) - 1u);
    v.producer = producer;
    program.values.push_back(v);
    return std::int32_t(program.values.size()) - 1;
  }

  /// Adds a tensor that is kept from run to run.
  constexpr symbol add_parameter(parameter p, const dim_list& dims, dtype type) {
    p.value = add_value(dims, type);
    const auto row = std::int32_t(program.parameters.size());
    program.at(p.value).parameter = row;
    program.parameters.push_back(p);
    std::int32_t& last = last_named_[bucket_of(p.name)];
    named_before_.push_back(last - 1);
    last = row + 1;
    return {this, p.value};
  }
  /// The row of the parameter named `name`, or -1.
  constexpr std::int32_t find_parameter(const tensor_name& name) const {
    std::int32_t row = last_named_[bucket_of(name)] - 1;
    while (row >= 0 && !(program.parameters[std::size_t(row)].name == name)) row = named_before_[std::size_t(row)];
    return row;
  }

  struct result {
    dim_list dims;
    dtype type;
  };
  /// Appends a node with new values as results; `rule` lists the factors of operands and results in order.
  constexpr std::int32_t add_node(op_ref kind, std::initializer_list<std::int32_t> in, const sharding_rule& rule, const attributes& attr,
                                  std::initializer_list<result> out) {
    return add_node(kind, list_view(in.begin(), in.size()), rule, attr, out);
  }
  constexpr std::int32_t add_node(op_ref kind, list_view<std::int32_t> in, const sharding_rule& rule, const attributes& attr,
                                  std::initializer_list<result> out) {
    node n;
    n.kind = kind;
    n.rule = rule;
    n.attr = attr;
    n.place = place;
    n.inputs = std::uint8_t(in.size());
    for (int i = 0; i < n.inputs; ++i) n.in[i] = in.data()[i];
    for (const result& r : out) n.out[n.outputs++] = add_value(r.dims, r.type, std::int32_t(program.nodes.size()));
    program.nodes.push_back(n);
    return n.out[0];
  }
  /// Registers rules with the program. Returns their operation.
  constexpr op_ref use(const operation_rules& rules) {
    program.set_rules(rules);
    return rules.of;
  }
  /// The column-major input that a value transposes, or -1.
  constexpr std::int32_t column_major_input(std::int32_t v) const {
    for (const std::int32_t t : transposed_inputs)
      if (t == v) return program.nodes[std::size_t(program.at(v).producer)].input(0);
    return -1;
  }
  /// True if a symbol is the result of may_move.
  constexpr bool says_may_move(symbol s) const {
    const std::int32_t maker = program.at(s.id).producer;
    return maker >= 0 && program.nodes[std::size_t(maker)].attr.may_move;
  }
  /// Result i of the node that was appended last.
  constexpr symbol result_of_last(int i) { return {this, program.nodes.back().output(i)}; }

  /// Sets the value that a parameter holds after the run.
  constexpr void set_updated(symbol p, symbol updated) {
    if (p.get().parameter < 0) return;
    parameter& kept = program.parameters[std::size_t(p.get().parameter)];
    if (kept.updated >= 0) fail(fault::updated_twice, kept.name.view());
    kept.updated = updated.id;
  }

  constexpr int bound_dim(char letter) {
    dim d;
    d.letter = letter;
    return intern(d);
  }
  constexpr int fixed_dim(std::int64_t extent) {
    dim d;
    d.what = dim::kind::fixed;
    d.number = extent;
    return intern(d);
  }
  constexpr int product_dim(int a, int b) {
    dim d;
    d.what = dim::kind::product;
    d.first = std::uint8_t(a);
    d.second = std::uint8_t(b);
    return intern(d);
  }
  /// The dim of extent ceil(factor * a / b), at least 1. @see nearest_fraction
  constexpr int ratio_dim(double factor, int a, int b) {
    const fraction times = nearest_fraction(factor);
    dim d;
    d.what = dim::kind::ratio;
    d.first = std::uint8_t(a);
    d.second = std::uint8_t(b);
    d.number = times.number;
    d.divisor = times.divisor;
    return intern(d);
  }
  /// The dim of extent max(minimum, a), rounded up to a multiple of `multiple`.
  constexpr int rounded_dim(int a, int minimum, int multiple) {
    if (minimum == 0 && multiple == 1) return a;
    dim d;
    d.what = dim::kind::rounded;
    d.first = std::uint8_t(a);
    d.number = minimum;
    d.divisor = multiple;
    return intern(d);
  }
  /// The extent of a dim, or -1 if it is not known while tracing.
  constexpr std::int64_t known_extent(int i) const {
    const dim& d = program.dims[std::size_t(i)];
    return d.what == dim::kind::fixed ? d.number : d.what == dim::kind::bound ? options.known.find(d.letter) : -1;
  }
  /// The extent of a dim, or -1 if it is not known while tracing. The extents of derived dims are computed.
  constexpr std::int64_t derived_known_extent(int i) const {
    dim d = program.dims[std::size_t(i)];
    if (d.what == dim::kind::fixed || d.what == dim::kind::bound) return known_extent(i);
    if (d.what == dim::kind::blocks) return -1;
    const bool has_second = d.what == dim::kind::product || d.what == dim::kind::ratio || d.second_times != 0;
    const std::int64_t parts[2]{derived_known_extent(d.first), has_second ? derived_known_extent(d.second) : 0};
    if (parts[0] < 0 || parts[1] < 0) return -1;
    d.first = 0;
    d.second = 1;
    return derived_extent(d, list_view(parts, 2));
  }
  /// True if two dims surely have equal extents and are interchangeable. Two letters are not: users write rename_dims for that.
  constexpr bool same_extent(int a, int b) const {
    if (a == b) return true;
    const dim &x = program.dims[std::size_t(a)], &y = program.dims[std::size_t(b)];
    if (x.what == dim::kind::bound && y.what == dim::kind::bound) return false;
    for (const split_dims& s : splits)
      for (const auto& [whole, parts] : {std::pair(a, &y), std::pair(b, &x)})
        if (s.whole == whole && parts->what == dim::kind::product && parts->first == s.first && parts->second == s.second) return true;
    const std::int64_t known = derived_known_extent(a);
    return known >= 0 && known == derived_known_extent(b);
  }
  constexpr bool same_extents(const dim_list& a, const dim_list& b) const { return a.same(b) || first_difference(a, b) == max_rank; }
  /// The first dim in which two tensors differ, or the lower of their ranks; max_rank: they do not differ.
  constexpr int first_difference(const dim_list& a, const dim_list& b) const {
    int d = 0;
    while (d < a.count && d < b.count && same_extent(a[d], b[d])) ++d;
    return d == a.count && d == b.count ? max_rank : d;
  }
  /// The dim that results take if operands have two dims of equal extents: a letter, if one of the dims is a letter.
  constexpr int better_named(int a, int b) const { return program.dims[std::size_t(b)].what == dim::kind::bound ? b : a; }
  /// The dim of extent max(0, floor((first_times * first + second_times * second + number) / divisor)). If one of the two dims equals it,
  /// returns that dim.
  constexpr int linear_dim(int first, int first_times, int second, int second_times, std::int64_t number, std::int64_t divisor = 1) {
    dim d;
    d.what = dim::kind::linear;
    d.first = std::uint8_t(first);
    d.first_times = first_times;
    d.second = std::uint8_t(second_times ? second : 0);
    d.second_times = second_times;
    d.number = number;
    d.divisor = divisor;
    const auto fold = [&](std::uint8_t& at, std::int32_t& times, std::int64_t extent) {
      if (times == 0 || extent < 0) return;
      d.number += times * extent;
      times = 0;
      at = 0;
    };
    // The first dim stays a dim if possible, even if its extent is known: the result may be that dim itself.
    fold(d.second, d.second_times, known_extent(d.second));
    if (program.dims[d.first].what == dim::kind::fixed) fold(d.first, d.first_times, known_extent(d.first));
    if (d.first_times == 0) {
      d.first = d.second;
      d.first_times = d.second_times;
      d.second = 0;
      d.second_times = 0;
    }
    if (d.first_times == 0) return fixed_dim(d.number > 0 ? d.number / d.divisor : 0);
    if (const dim inner = program.dims[d.first]; d.second_times == 0 && inner.what == dim::kind::linear && inner.divisor == 1 &&
                                                 inner.second_times == 0 && inner.first_times > 0 && inner.number >= 0) {
      d.number += d.first_times * inner.number;  // addition and subtraction cancel: the result may be the dim itself
      d.first_times *= inner.first_times;
      d.first = inner.first;
    }
    if (d.first_times == 1 && d.second_times == 0 && d.number == 0 && d.divisor == 1) return d.first;
    return intern(d);
  }
  /// The dim with `each` entries for every block over the axes of a mask.
  constexpr int blocks_dim(std::uint32_t axes, std::int64_t each) {
    dim d;
    d.what = dim::kind::blocks;
    d.first = std::uint8_t(axes);
    d.number = each;
    return intern(d);
  }
  /// The row of a window in the table of windows.
  constexpr int row_of(const window& w) {
    const int row = gshard::row_of(program.windows, w);
    if (row == 0) fail(fault::too_many_dims, "window");
    return row;
  }
  /// The number by which shardings refer to a device order. The extents of the mesh must be static.
  constexpr std::uint8_t order_of(list_view<int> devices) {
    bool own = true;
    for (std::size_t i = 0; i < devices.size(); ++i) own = own && devices[i] == int(i);
    if (own) return 0;
    const auto known = int(program.orders.size() / devices.size());
    const device_orders table{program.orders, int(devices.size())};
    for (int k = 1; k <= known; ++k) {
      bool same = true;
      for (std::size_t i = 0; i < devices.size(); ++i) same = same && table[k][i] == devices[i];
      if (same) return std::uint8_t(k);
    }
    if (known == 255) {
      fail(fault::no_such_assignment, "order");
      return 0;
    }
    program.orders.append(devices.data(), devices.size());
    return std::uint8_t(known + 1);
  }
  /// Resolves a spec to the sharding of a tensor of the program.
  constexpr sharding resolve(const named_sharding& named, std::string_view tensor) {
    sharding s = gshard::resolve(named, mesh, tensor, program.problem);
    program.problem.name_place(place.line, place.scope);
    if (named.order.empty() || failed()) return s;
    if (!is_order(named.order, int(mesh.static_devices()))) fail(fault::no_such_order, tensor);
    else if (s.partial) fail(fault::incomplete_output, tensor);
    else if (s.used()) s.order = order_of(named.order);
    return s;
  }
  /// The dims of a declaration such as "GSM".
  constexpr dim_list dims_of(std::string_view letters, std::string_view tensor) {
    dim_list list;
    for (char c : letters) {
      if (!is_letter(c) || list.full()) {
        fail(fault::unknown_letter, tensor, letters);
        break;
      }
      list.push_back(bound_dim(c));
    }
    return list;
  }

  /// A number for each random operation, in program order: part of the key of its random numbers.
  constexpr std::int32_t next_random_key() { return random_keys_++; }

 private:
  constexpr void fail_type(std::string_view operation, std::string_view name, int operand, dtype given, element_set taken) {
    if (failed()) return;
    program.problem.given = given;
    program.problem.taken = taken;
    fail(fault::wrong_type, operation, name, operand);
  }

  std::int32_t random_keys_ = 0;
  // Parameters by hash of their name. Comparing every new name with all earlier ones would dominate the tracing of models with many layers.
  static constexpr std::uint32_t buckets = 1024;
  std::int32_t last_named_[buckets]{};  // row + 1
  list<std::int32_t> named_before_;     // by row: the row before it with the same hash, or -1

  static constexpr std::uint32_t bucket_of(const tensor_name& name) { return fnv1a<std::uint32_t>().add(name.view()).value() % buckets; }

  constexpr int intern(const dim& d) {
    const dim* const known = program.dims.data();
    for (std::size_t i = 0; i < program.dims.size(); ++i)
      if (known[i].letter == d.letter && known[i] == d) return int(i);
    if (program.dims.size() == std::size_t(dim_list::largest) + 1) {
      fail(fault::too_many_dims, std::string_view(&d.letter, d.letter ? 1 : 0));
      return 0;
    }
    program.dims.push_back(d);
    return int(program.dims.size()) - 1;
  }
};

constexpr const value& symbol::get() const { return owner->program.at(id); }
template <class T>
  requires(std::same_as<T, bool>)
constexpr symbol::operator T() const noexcept(detail::refuse_condition<T>()) {
  owner->fail(fault::refused_call, {});
  return false;
}
constexpr here::here(symbol s, std::uint32_t line, const char* file) : symbol(s) {
  owner->set_place(line, file);
}

/// While it lives, added nodes and faults keep the line of the outer call, whichever verbs add them. The nodes of a layer therefore name
/// the line that calls the layer.
class line_of_call {
 public:
  constexpr explicit line_of_call(builder& b) : builder_(b), kept_(b.keeps_place) {
    if (!kept_) b.keeps_place = true;  // detail::failed_program keeps its place already, and is constant
  }
  constexpr ~line_of_call() {
    if (!kept_) builder_.keeps_place = false;
  }
  line_of_call(const line_of_call&) = delete;
  line_of_call& operator=(const line_of_call&) = delete;

 private:
  builder& builder_;
  bool kept_;
};

namespace detail {
/// True if all operands have one element type of the set. Reports the first operand that does not.
constexpr bool require_elements(builder& b, element_set types, std::string_view operation, std::initializer_list<symbol> operands) {
  if (b.failed()) return false;
  for (const symbol& s : operands)
    if (!b.has(s)) return false;
  const value* const values = b.program.values.data();
  const dtype type = values[operands.begin()->id].type;
  int at = 0;
  for (const symbol& s : operands) {
    if (values[s.id].type != type || !contains(types, type)) b.fail_type(operation, at, values[s.id].type, at == 0 ? types : only(type));
    ++at;
  }
  return !b.failed();
}
/// The same for the element types that an operation takes, and for real ones.
constexpr bool require_elements(builder& b, op_ref kind, std::string_view operation, std::initializer_list<symbol> operands) {
  return require_elements(b, traits(kind).elements, operation, operands);
}
constexpr bool require_real(builder& b, std::string_view operation, std::initializer_list<symbol> operands) {
  return require_elements(b, reals, operation, operands);
}

/// True if x has a dim `at`; reports if not.
constexpr bool check_dim(symbol x, int at, std::string_view operation) {
  builder& b = *x.owner;
  if (!b.failed() && (at < 0 || at >= x.rank())) b.fail(fault::no_such_dim, operation, {}, at, x.rank());
  return !b.failed();
}

/// Factors 0, 1, ... rank-1: the rule of an operation that treats every dim alone.
constexpr short_list counting(int rank, int from = 0) {
  constexpr std::uint64_t all = 0xFEDCBA9876543210u;  // as packed: entry i in bits [4i, 4i + 4)
  short_list l;
  l.bits = std::uint32_t((all >> (4 * from)) & ((std::uint64_t(1) << (4 * rank)) - 1));
  l.count = std::uint8_t(rank);
  return l;
}
}  // namespace detail

}}  // namespace gshard::v0

/// @cond  doxygen does not know the primary templates
template <>
struct std::tuple_size<gshard::symbol> {
  static constexpr std::size_t value = 1;
};
template <>
struct std::tuple_element<0, gshard::symbol> {
  using type = gshard::symbol;
};
/// @endcond
