// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The einsum verb: contractions, sums, means, transpositions and diagonals in numpy's notation.

#include <gshard/core/base/fixed_string.hpp>
#include <gshard/core/base/list_view.hpp>
#include <gshard/core/ir/equation.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/contraction_order.hpp>
#include <gshard/core/trace/map.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace gshard { inline namespace v0 {

namespace detail {

/// The program fails if two letters name one dim, and each is in one operand alone and not in the result. One of them is a typo: the einsum
/// would be a product of two sums.
constexpr void check_lone_letters(builder& b, list_view<symbol> operands, const equation& e, std::string_view text) {
  if (b.failed() || operands.size() < 2) return;
  std::uint32_t once = 0, more = e.output.mask();  // letters of one operand, and of several or the result
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::uint32_t here = e.operand(int(i)).mask();
    more |= once & here;
    once |= here;
  }
  const std::uint32_t lone = once & ~more;
  if ((lone & (lone - 1)) == 0) return;  // fewer than two
  int dim_of[short_list::largest + 1], operand_of[short_list::largest + 1]{};
  for (int& dim : dim_of) dim = -1;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const short_list& letters = e.operand(int(i));
    if (!b.has(operands[i]) || letters.size() != operands[i].rank()) return;  // another fault
    for (int d = 0; d < letters.size(); ++d) {
      const int f = letters[d], dim = operands[i].get().dims[d];
      if (((lone >> f) & 1u) == 0) continue;
      for (int g = 0; g <= short_list::largest; ++g)
        if (dim_of[g] == dim && operand_of[g] != int(i)) {
          const char both[] = {e.letters[std::size_t(g)], ',', ' ', e.letters[std::size_t(f)]};
          return b.fail(fault::letters_of_one_dim, text, {both, sizeof both});
        }
      dim_of[f] = dim;
      operand_of[f] = int(i);
    }
  }
}

/// A factor of a product. With `bf16_products`, it is cast from bf16 to float.
constexpr symbol emit_factor(symbol x) {
  builder& b = *x.owner;
  return b.options.bf16_products && b.has(x) && x.get().type == dtype::bf16 ? emit_cast(x, dtype::f32) : x;
}

/// op::einsum of one or two operands: out[o] = sum over the factors that o lacks of the product of the operands.
constexpr symbol emit_einsum(builder& b, list_view<symbol> operands, list_view<short_list> factors,
                             const short_list& output, std::string_view text = "einsum") {
  const std::size_t count = operands.size();
  const bool casts = b.options.bf16_products && count == 2;
  const symbol factor[2]{casts ? emit_factor(operands[0]) : b.nothing(), casts ? emit_factor(operands[1]) : b.nothing()};
  const symbol* const given = casts ? factor : operands.data();
  for (std::size_t i = 0; i < count; ++i)
    if (!b.has(given[i])) return b.nothing();
  const value* const values = b.program.values.data();
  const dtype type = values[given[0].id].type;
  int dim_of[short_list::largest + 1]{};
  std::uint32_t known = 0;  // factors that have a dim, a bit each
  sharding_rule rule;
  std::int32_t ids[2]{};
  for (std::size_t i = 0; i < count; ++i) {
    const value& v = values[given[i].id];
    const short_list letters = rule.in[i] = factors.data()[i];
    const dim_list dims = v.dims;
    ids[i] = given[i].id;
    if (v.type != type || (count > 1 && !has_sums(type))) b.fail_type(text, int(i), v.type, i == 0 ? types_with(has_sums) : only(type));
    if (dims.count != letters.count) b.fail_rank(text, int(i), letters.count, dims.count);
    if (b.failed()) return b.nothing();
    std::uint32_t here = 0;
    for (int d = 0; d < dims.count; ++d) {
      const int f = letters[d], dim = dims[d];
      const bool is_other = ((known >> f) & 1u) && dim_of[f] != dim;
      if (is_other && !b.same_extent(dim_of[f], dim)) {
        diagnostic none;
        const equation e = parse_equation(text, none, equation_form::numpy);
        const char letter = f < e.factors ? e.letters[std::size_t(f)] : '.';
        b.fail(fault::dims_differ, text, {&letter, 1}, int(i), d);
        return b.nothing();
      }
      if ((here >> f) & 1u) rule.block(f);  // a diagonal: one axis cannot shard two dims
      here |= 1u << f;
      known |= 1u << f;
      dim_of[f] = is_other ? b.better_named(dim_of[f], dim) : dim;
    }
  }
  const auto result = std::int32_t(b.program.values.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t tensor = ids[i];
    ids[i] = before_conjugations(b.program, tensor);
    if (const std::int32_t input = b.column_major_input(ids[i]); input >= 0) {
      ids[i] = input;
      rule.in[i] = rule.in[i].reversed();
    }
    if (ids[i] != tensor) b.bypasses.push_back({result, tensor, int(i), factors[i], op::einsum});
  }
  if (!has_sums(type) && (known & ~output.mask()) != 0) {
    b.fail_type(text, 0, type, types_with(has_sums));
    return b.nothing();
  }
  dim_list dims;
  for (int d = 0; d < output.count; ++d) dims.push_back(dim_of[output[d]]);
  if (const std::int32_t maker = given[0].get().producer; count == 2 && maker >= 0)
    if (const auto& with = b.program.rules_of(b.program.nodes[std::size_t(maker)].kind).einsum_with)
      if (const symbol s = with(list_view(given, count), factors, output, dims); s.id >= 0) return s;
  rule.out[0] = output;
  const bool rounds = b.options.bf16_products && count == 2 && type == dtype::f32;
  return {&b, b.add_node(op::einsum, list_view(ids, count), rule, {.rounds_to_bf16 = rounds}, {{dims, type}})};
}

/// A column-major input with its dims in the model's order. Einsums read the input itself.
constexpr symbol emit_reversed(builder& b, symbol input, std::string_view text) {
  if (b.failed()) return input;
  const short_list factors = counting(input.rank()), in_memory = factors.reversed();
  const symbol s = emit_einsum(b, list_view(&input, 1), list_view(&in_memory, 1), factors, text);
  if (!b.failed()) b.transposed_inputs.push_back(s.id);
  return s;
}

/// The extent that contraction orders are compared with: 64 if it is not known while tracing.
constexpr std::int64_t expected_extent(const builder& b, int d) {
  const std::int64_t known = b.known_extent(d);
  return known > 0 ? known : 64;
}

constexpr symbol emit_contracted(builder& b, const contraction_order& order, unsigned set, list_view<symbol> operands,
                                 list_view<short_list> factors, std::string_view text) {
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (set == 1u << i) return operands[i];
  const unsigned left = order.left(set), right = set & ~left;
  const symbol pair[2]{emit_contracted(b, order, left, operands, factors, text), emit_contracted(b, order, right, operands, factors, text)};
  const auto factors_of = [&](unsigned part) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (part == 1u << i) return factors[i];
    return order.kept(part);
  };
  const short_list both[2]{factors_of(left), factors_of(right)};
  return emit_einsum(b, list_view(pair, 2), list_view(both, 2), order.kept(set), text);
}

/// An einsum of any number of operands, contracted two at a time in the cheapest order.
constexpr symbol emit_einsum_of_many(builder& b, list_view<symbol> operands, list_view<short_list> factors, const short_list& output,
                                     std::string_view text) {
  if (operands.size() <= 2 || b.failed()) return emit_einsum(b, operands, factors, output, text);
  std::int64_t extents[equation::most_factors + 1]{};
  std::array<symbol, equation::most_operands> of_one_type{};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!b.has(operands[i])) return b.nothing();
    const value& v = (of_one_type[i] = emit_factor(operands[i])).get();
    const dtype type = of_one_type[0].get().type;
    if (v.type != type || !has_sums(type)) b.fail_type(text, int(i), v.type, i == 0 ? types_with(has_sums) : only(type));
    const dim_list& dims = v.dims;
    if (dims.size() != factors[i].size()) b.fail_rank(text, int(i), factors[i].size(), dims.size());
    for (int d = 0; d < dims.size() && !b.failed(); ++d) extents[factors[i][d]] = expected_extent(b, dims[d]);
  }
  if (b.failed()) return b.nothing();
  const contraction_order order(factors, output, extents);
  if (!order.possible()) b.fail(fault::rank_mismatch, text, {}, max_rank, max_rank + 1);
  return emit_contracted(b, order, (1u << operands.size()) - 1u, list_view(of_one_type.data(), operands.size()), factors, text);
}

}  // namespace detail

namespace detail {
/// One equation, parsed before any tensor is known.
template <fixed_string Equation, equation_form Form = equation_form::letters>
struct parsed_equation {
 private:
  struct parse_result {
    equation value;
    diagnostic problem;
  };
  static constexpr parse_result result = [] {
    parse_result r;
    r.value = parse_equation(Equation.view(), r.problem, Form);
    return r;
  }();

 public:
  static constexpr equation value = result.value;
  static constexpr diagnostic problem = result.problem;
};

/// Reports the faults of an equation, and a wrong number of operands.
constexpr void check_equation(builder& b, const equation& e, const diagnostic& problem, std::string_view text, int given) {
  if (problem && !b.failed()) {
    b.program.problem = problem;
    b.program.problem.name_place(b.place.line, b.place.scope);
  }
  if (e.count != given) b.fail(fault::operand_count, text, {}, e.count, given);
}

/// The equation of a call with `given` operands, checked.
template <fixed_string Equation, equation_form Form = equation_form::letters>
constexpr const equation& checked_equation(builder& b, int given) {
  using parsed = parsed_equation<Equation, Form>;
  check_equation(b, parsed::value, parsed::problem, Equation.view(), given);
  return parsed::value;
}
/// The same for a text that is known at run time.
constexpr equation checked_equation(builder& b, std::string_view text, int given, equation_form form = equation_form::letters) {
  diagnostic problem;
  const equation e = parse_equation(text, problem, form);
  check_equation(b, e, problem, text, given);
  return e;
}

/// An einsum whose equation may have "...", which is replaced by the further dims of the operands.
constexpr symbol emit_einsum_call(builder& b, list_view<symbol> operands, const equation& e, std::string_view text) {
  if (e.has_ellipsis && !b.failed()) {
    int ranks[equation::most_operands]{};
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!b.has(operands[i])) return b.nothing();
      ranks[i] = operands[i].rank();
      if (const int letters = e.operand(int(i)).size(); ranks[i] < letters) b.fail_rank(text, int(i), letters, ranks[i]);
    }
    if (b.failed()) return b.nothing();
    diagnostic problem;
    const equation all = without_ellipses(e, ranks, text, problem);
    check_equation(b, all, problem, text, all.count);
    return emit_einsum_call(b, operands, all, text);
  }
  check_lone_letters(b, operands, e, text);
  return emit_einsum_of_many(b, operands, list_view(e.operands.data(), operands.size()), e.output, text);
}
}  // namespace detail

/// einsum<"GSM,ME->GSE">(x, w): numpy's einsum. Letters are local to the equation. An index that the output lacks is summed; in several
/// operands it is contracted. One operand: transposition, sums and diagonals. Up to 16 operands are contracted two at a time: up to six in
/// the order with the fewest multiplications (by the extents known while tracing, see `extent`). With more, each next pair leaves the
/// fewest elements. As in numpy, `einsum<"BM,MH">(x, w)` has as output the indices that occur once, in alphabetical order. "..." means
/// further dims, matched from the last one on: `einsum<"...M,MH->...H">(x, w)`.
/// Shapes: as the equation says.
/// Communicates: nothing if the operands shard a common index alike. An axis that shards a contracted index leaves a partial sum, completed
/// by an all_reduce or reduce_scatter where it is used. Otherwise the cheapest reshards of operands and result (arXiv 2006.16668 section
/// 3.3).
/// Compile time: the equation, with the column of a mistake; ranks; that one letter names one dim; that two letters which each sum one
/// operand alone name different dims.
/// Throws: nothing.
/// @see reshard, broadcast, sum
template <fixed_string Equation, class... Symbols>
  requires(std::same_as<Symbols, symbol> && ...)
constexpr symbol einsum(here first, Symbols... rest) {
  const equation& e = detail::checked_equation<Equation, equation_form::numpy>(*first.owner, 1 + int(sizeof...(rest)));
  const std::array<symbol, 1 + sizeof...(rest)> operands{first, rest...};
  return detail::emit_einsum_call(*first.owner, operands, e, Equation.view());
}

/// einsum("GSM,ME->GSE", {x, w}): the same for programs that are built at run time, with at least one operand. Mistakes in the text or the
/// operands become the program's `problem`, which `compile` passes on. All verbs with an equation have this form: reduce_max("GSE->GS", x),
/// conv("BXI,xIO->BXO", x, w), broadcast("Q,QK->QK", {x, like}), ...
/// Shapes: as the equation says.
/// Communicates: as above.
/// Compile time: nothing, unless the program is built at compile time.
/// Throws: nothing.
/// @see builder, compile
constexpr symbol einsum(std::string_view text, list_view<symbol> operands, std::uint32_t line = __builtin_LINE(),
                        const char* file = __builtin_FILE()) {
  builder& b = *here(operands[0], line, file).owner;
  const equation e = detail::checked_equation(b, text, int(operands.size()), equation_form::numpy);
  return detail::emit_einsum_call(b, operands, e, text);
}
constexpr symbol einsum(std::string_view text, std::initializer_list<symbol> operands, std::uint32_t line = __builtin_LINE(),
                        const char* file = __builtin_FILE()) {
  return einsum(text, list_view(operands.begin(), operands.size()), line, file);
}

/// full_precision([](auto x, auto w) { return einsum<"GSM,ME->GSE">(x, w); }, x, w): calls the function with the symbols. Its einsums and
/// their gradients round nothing, even in a program with `bf16_products`. For small products with a large effect, such as a router's.
/// Shapes: the shape of the function's result.
/// Communicates: as the function.
/// Compile time: the checks of the function.
/// Throws: nothing.
/// @see bf16_products
template <class F, class... Symbols>
  requires(std::is_class_v<F> && !std::is_base_of_v<symbol, F> && (std::same_as<Symbols, symbol> && ...))
constexpr auto full_precision(const F& f, symbol first, Symbols... rest) {
  if (first.owner->failed()) return f(first, rest...);
  trace_options& options = first.owner->options;
  const bool before = options.bf16_products;
  options.bf16_products = false;
  const auto result = f(first, rest...);
  options.bf16_products = before;
  return result;
}

namespace detail {
/// The sum of x over all dims except `keep` (ascending positions).
constexpr symbol emit_sum(symbol x, const short_list& keep) {
  builder& b = *x.owner;
  if (b.failed()) return b.nothing();
  const short_list all = counting(x.rank());
  return emit_einsum(b, list_view(&x, 1), list_view(&all, 1), keep, "sum");
}
/// The dims of x whose factors are not in `kept`, one for each factor.
constexpr dim_list dims_lacking(symbol x, const short_list& factors, const short_list& kept) {
  dim_list left;
  for (int d = 0; d < x.rank(); ++d)
    if (!kept.contains(factors[d]) && factors.find(factors[d]) == d) left.push_back(x.get().dims[d]);
  return left;
}
constexpr symbol emit_mean(symbol x, const equation& e, std::string_view text) {
  const symbol total = emit_einsum(*x.owner, list_view(&x, 1), list_view(e.operands.data(), 1), e.output, text);
  if (x.owner->failed()) return x.owner->nothing();
  return emit_scale(total, 1, dims_lacking(x, e.operands[0], e.output), -1);
}
}  // namespace detail

/// sum(x): the sum over all dims.
/// Shapes: any -> a scalar.
/// Communicates: an all_reduce of one number, if x is sharded.
/// Compile time: a real element type.
/// Throws: nothing.
/// @see mean, einsum
constexpr symbol sum(here x) { return detail::emit_sum(x, {}); }

/// sum<"GSE->E">(x): the sum over the indices that the output lacks.
template <fixed_string Equation>
constexpr symbol sum(here x) {
  const equation& e = detail::checked_equation<Equation>(*x.owner, 1);
  return detail::emit_einsum(*x.owner, list_view<symbol>(&x, 1), list_view(e.operands.data(), 1), e.output, Equation.view());
}
/// sum("GSE->E", x): the same with an equation that is known at run time.
constexpr symbol sum(std::string_view text, here x) {
  const equation e = detail::checked_equation(*x.owner, text, 1);
  return detail::emit_einsum(*x.owner, list_view<symbol>(&x, 1), list_view(e.operands.data(), 1), e.output, text);
}

/// mean<"GSE->GE">(x): the sum over the indices that the output lacks, divided by the extents of their dims. mean(x): over all dims.
/// Shapes: as the equation says.
/// Communicates: as sum.
/// Compile time: the equation; a real element type.
/// Throws: nothing.
/// @see sum
template <fixed_string Equation>
constexpr symbol mean(here x) {
  return detail::emit_mean(x, detail::checked_equation<Equation>(*x.owner, 1), Equation.view());
}
/// mean("GSE->GE", x): the same with an equation that is known at run time.
constexpr symbol mean(std::string_view text, here x) { return detail::emit_mean(x, detail::checked_equation(*x.owner, text, 1), text); }
constexpr symbol mean(here x) {
  symbol total = sum(x);
  if (x.owner->failed()) return x.owner->nothing();
  return detail::emit_scale(total, 1, x.get().dims, -1);
}

template <fixed_string Equation = "", class... Given>
  requires(detail::left_out<Equation> ? !detail::call<2, std::string_view, detail::list_of<symbol>>::fits<Given...>
                                      : !detail::tensors_of_any_kind<1, 16>::fits<Given...>)
constexpr auto einsum(const Given&... given) {
  static_assert(detail::accepts<Given...>,
                "gshard: einsum<\"GSM,ME->GSE\">(x, w, ...) takes an equation and one to 16 tensors of a program");
  return detail::refused(given...);
}
GSHARD_TAKES(full_precision, (detail::before_tensors<6, detail::function>::fits<Given...>),
             "full_precision(f, x, ...) takes a function and the tensors of a program that it is called with")
GSHARD_TAKES_REDUCTION(sum)
GSHARD_TAKES_REDUCTION(mean)

}}  // namespace gshard::v0
