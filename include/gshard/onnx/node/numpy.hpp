// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Verbs with numpy's rules on tensors of a program whose extents are all known: dims match by position, not by name.
//
// All dims are fixed ones, so two dims of equal extent are the same dim. A fault of a verb is thrown at once.

#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/exec/process/diagnostic.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/slice.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

using extent_list = std::vector<std::int64_t>;

/// Throws the fault of the program, if it has one.
inline symbol checked(symbol s) {
  if (s.owner->failed()) throw error("cannot be a verb of gshard: " + describe(s.owner->program.problem));
  return s;
}

inline extent_list extents_of(symbol s) {
  checked(s);
  extent_list all;
  for (int d = 0; d < s.rank(); ++d) all.push_back(s.owner->derived_known_extent(s.get().dims[d]));
  return all;
}
inline std::int64_t count_elements(const extent_list& extents) {
  std::int64_t n = 1;
  for (const std::int64_t e : extents) n *= e;
  return n;
}
inline std::int64_t elements_of(symbol s) {
  return count_elements(extents_of(s));
}
inline std::string text_of(std::span<const std::int64_t> extents) {
  std::string text = "[";
  for (const std::int64_t e : extents) text.append(text.size() > 1 ? "," : "") += std::to_string(e);
  return text + "]";
}

inline dim_list fixed_dims(builder& b, std::span<const std::int64_t> extents) {
  if (extents.size() > std::size_t(max_rank))
    throw error("makes a tensor of " + std::to_string(extents.size()) + " dims; gshard has at most " + std::to_string(max_rank));
  dim_list dims;
  for (const std::int64_t e : extents) dims.push_back(b.fixed_dim(e));
  checked(b.nothing());
  return dims;
}

/// A tensor of equal numbers.
inline symbol filled(builder& b, dtype type, std::span<const std::int64_t> extents, double number) {
  const dim_list dims = fixed_dims(b, extents);
  if (number == 0) return checked(detail::emit_constant(b, detail::pointwise_constant<0>, dims, type));
  if (type == dtype::boolean) return checked(detail::emit_constant(b, detail::pointwise_constant<1>, dims, type));
  if (is_real(type) || traits(type).arithmetic == arithmetic_of::integer) {
    const symbol ones = detail::emit_constant(b, detail::pointwise_constant<1>, dims, type);
    return number == 1 ? checked(ones) : checked(detail::emit_scale(ones, number));
  }
  return checked(cast(filled(b, dtype::f32, extents, number), type));
}
inline symbol scalar(builder& b, dtype type, double number) {
  return filled(b, type, {}, number);
}
inline symbol scalar_like(symbol s, double number) {
  return scalar(*checked(s).owner, s.get().type, number);
}

inline symbol without_dim(symbol x, int at) {
  return checked(squeeze(x, at));
}
inline symbol with_dim(symbol x, int at) {
  return checked(expand_dims(x, at));
}

/// The letters of the dims of x: "abc".
inline std::string letters_of(int rank) {
  return std::string("abcdefghijklmnop").substr(0, std::size_t(rank));
}

/// x with its dims in this order.
inline symbol transposed(symbol x, const std::vector<int>& order) {
  const std::string own = letters_of(checked(x).rank());
  std::string to;
  for (const int d : order) to += own[std::size_t(d)];
  return to == own ? x : checked(einsum(own + "->" + to, {x}));
}
/// x with dim `from` moved to place `to`.
inline symbol moved_dim(symbol x, int from, int to) {
  std::vector<int> order;
  for (int d = 0; d < checked(x).rank(); ++d)
    if (d != from) order.push_back(d);
  order.insert(order.begin() + to, from);
  return transposed(x, order);
}

/// x with these extents, and its elements in the same order.
inline symbol reshaped(symbol x, const extent_list& to) {
  builder& b = *checked(x).owner;
  extent_list from = extents_of(x);
  if (from == to) return x;
  fixed_dims(b, to);
  if (count_elements(from) != count_elements(to))
    throw error("makes " + text_of(to) + " of a tensor " + text_of(from) + ", which has another number of elements");
  if (count_elements(from) == 0) return filled(b, x.get().type, to, 0);
  // Dims of extent 1 are removed and added. Between them, runs of dims with equal products are merged and split.
  for (int d = int(from.size()); d-- > 0;)
    if (from[std::size_t(d)] == 1) x = without_dim(x, d);
  extent_list own = extents_of(x), wanted;
  for (const std::int64_t e : to)
    if (e != 1) wanted.push_back(e);
  std::size_t i = 0;
  for (int at = 0; i < wanted.size(); ++at) {
    std::int64_t whole = own[std::size_t(at)], product = wanted[i];
    std::size_t last = i + 1;
    while (whole != product) {
      if (whole < product) {
        whole *= own[std::size_t(at) + 1];
        x = checked(detail::emit_merge(x, at, b.fixed_dim(whole)));
        own[std::size_t(at)] = whole;
        own.erase(own.begin() + at + 1);
      } else {
        product *= wanted[last++];
      }
    }
    for (; i + 1 < last; ++i, ++at) {
      const std::int64_t rest = own[std::size_t(at)] / wanted[i];
      x = checked(detail::emit_split(x, at, b.fixed_dim(wanted[i]), b.fixed_dim(rest)));
      own[std::size_t(at)] = wanted[i];
      own.insert(own.begin() + at + 1, rest);
    }
    ++i;
  }
  for (std::size_t d = 0; d < to.size(); ++d)
    if (to[d] == 1) x = with_dim(x, int(d));
  return x;
}

/// numpy's broadcast extents. Throws if they do not match.
inline extent_list broadcast_extents(const extent_list& a, const extent_list& b) {
  extent_list both(std::max(a.size(), b.size()), 1);
  for (std::size_t d = 0; d < both.size(); ++d) {
    const std::size_t lacks_a = both.size() - a.size(), lacks_b = both.size() - b.size();
    const std::int64_t x = d < lacks_a ? 1 : a[d - lacks_a], y = d < lacks_b ? 1 : b[d - lacks_b];
    if (x != y && x != 1 && y != 1) throw error("has operands " + text_of(a) + " and " + text_of(b) + ", which do not broadcast");
    both[d] = x == 1 ? y : x;
  }
  return both;
}

namespace shapes {
/// x without its dims of extent 1 that are larger in the result; and the result's dim of each of its dims.
struct aligned {
  symbol x;
  short_list dims;
};
inline aligned align(symbol x, const extent_list& result) {
  const extent_list own = extents_of(x);
  const int lacks = int(result.size()) - int(own.size());
  aligned a{x, {}};
  int removed = 0;
  for (int d = 0; d < int(own.size()); ++d) {
    if (own[std::size_t(d)] == 1 && result[std::size_t(d + lacks)] != 1)
      a.x = without_dim(a.x, d - removed++);
    else
      a.dims.push_back(d + lacks);
  }
  return a;
}
}  // namespace shapes

/// x, broadcast to these extents as by numpy.expand.
inline symbol expanded(symbol x, const extent_list& to) {
  if (extents_of(x) == to) return x;
  builder& b = *x.owner;
  const dim_list dims = fixed_dims(b, to);
  const shapes::aligned a = shapes::align(x, to);
  sharding_rule rule;
  rule.in[0] = a.dims;
  rule.out[0] = detail::counting(int(to.size()));
  return checked({&b, b.add_node(op::map, {a.x.id}, rule, {.function = &pointwise_identity}, {{dims, x.get().type}})});
}

/// x with each element along a dim so many times, one after the other.
inline symbol repeated(symbol x, int dim, std::int64_t times) {
  extent_list to = extents_of(x);
  const std::int64_t own = to[std::size_t(dim)];
  to.insert(to.begin() + dim + 1, times);
  x = expanded(with_dim(x, dim + 1), to);
  to.erase(to.begin() + dim);
  to[std::size_t(dim)] = own * times;
  return reshaped(x, to);
}

/// f of operands of one type, broadcast as by numpy.
inline symbol mapped(const pointwise& f, const std::vector<symbol>& operands) {
  builder& b = *checked(operands[0]).owner;
  extent_list result;
  for (const symbol& x : operands) result = broadcast_extents(result, extents_of(x));
  const dim_list dims = fixed_dims(b, result);
  const dtype type = operands[0].get().type;
  sharding_rule rule;
  std::array<std::int32_t, sharding_rule::most_in> ids{};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].get().type != type || !contains(f.types, type))
      throw error("gets elements of type " + std::string(gshard::name(operands[i].get().type)) + ", which it does not take here");
    const shapes::aligned a = shapes::align(operands[i], result);
    ids[i] = a.x.id;
    rule.in[i] = a.dims;
  }
  rule.out[0] = detail::counting(int(result.size()));
  return checked({&b, b.add_node(op::map, list_view(ids.data(), operands.size()), rule, {.function = &f}, {{dims, type}})});
}
/// The same for a function of numbers.
template <auto F, int Count>
symbol mapped(const std::array<symbol, std::size_t(Count)>& operands) {
  return mapped(undifferentiated<F, Count>, std::vector<symbol>(operands.begin(), operands.end()));
}

/// f(x, v, ...) where the vectors v have a number for each index of dim `at` of x.
inline symbol mapped_along(const pointwise& f, symbol x, int at, const std::vector<symbol>& vectors) {
  builder& b = *checked(x).owner;
  sharding_rule rule;
  rule.in[0] = rule.out[0] = detail::counting(x.rank());
  std::vector<std::int32_t> ids{x.id};
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const symbol v = reshaped(vectors[i], {extents_of(x)[std::size_t(at)]});
    if (v.get().type != x.get().type) throw error("has vectors of another element type");
    ids.push_back(v.id);
    rule.in[i + 1].push_back(at);
  }
  return checked({&b, b.add_node(op::map, list_view(ids.data(), ids.size()), rule, {.function = &f}, {{x.get().dims, x.get().type}})});
}

inline symbol sum_of(symbol a, symbol b) {
  return mapped(pointwise_add, {a, b});
}
inline symbol difference(symbol a, symbol b) {
  return mapped(pointwise_subtract, {a, b});
}
inline symbol product(symbol a, symbol b) {
  return mapped(detail::own_function<detail::arithmetic::multiply>, {a, b});
}
inline symbol quotient(symbol a, symbol b) {
  return mapped(detail::own_function<detail::arithmetic::divide>, {a, b});
}
/// a where the condition (of their type) is not 0, else b.
inline symbol chosen(symbol condition, symbol a, symbol b) {
  if (condition.get().type != a.get().type) condition = checked(cast(condition, a.get().type));
  return mapped(detail::own_function<detail::arithmetic::choose>, {condition, a, b});
}
/// 1 where a < b, else 0.
inline symbol less_than(symbol a, symbol b) {
  return mapped(detail::own_function<detail::arithmetic::less>, {a, b});
}
inline symbol equals(symbol a, symbol b) {
  return mapped(detail::own_function<detail::arithmetic::equal>, {a, b});
}
inline symbol scaled(symbol x, double by) {
  return by == 1 ? x : checked(detail::emit_scale(checked(x), by));
}

/// The reduction of x over these dims, in any order. `keeps`: as dims of extent 1.
inline symbol reduced(symbol x, reduction what, std::vector<int> over, bool keeps) {
  if (over.empty()) return x;
  std::sort(over.begin(), over.end());
  const std::string own = letters_of(checked(x).rank());
  std::string to;
  for (int d = 0; d < x.rank(); ++d)
    if (!std::binary_search(over.begin(), over.end(), d)) to += own[std::size_t(d)];
  symbol y = checked(what == reduction::sum ? sum(own + "->" + to, here(x)) : reduce(own + "->" + to, here(x), what));
  for (const int d : over)
    if (keeps) y = with_dim(y, d);
  return y;
}
inline symbol summed(symbol x, const std::vector<int>& over, bool keeps) {
  return reduced(x, reduction::sum, over, keeps);
}
inline symbol averaged(symbol x, const std::vector<int>& over, bool keeps) {
  double count = 1;
  for (const int d : over) count *= double(extents_of(x)[std::size_t(d)]);
  return scaled(summed(x, over, keeps), 1 / count);
}

/// The elements [start, stop) along a dim.
inline symbol sliced(symbol x, int dim, std::int64_t start, std::int64_t stop, std::int64_t stride = 1) {
  if (start == 0 && stop == extents_of(x)[std::size_t(dim)] && stride == 1) return x;
  return checked(slice(x, dim, start, stop, stride));
}
/// Any number of tensors, one after the other along a dim.
inline symbol joined(std::vector<symbol> parts, int dim) {
  const symbol first = parts[0];
  std::erase_if(parts, [&](symbol s) { return extents_of(s)[std::size_t(dim)] == 0; });
  if (parts.empty()) return first;
  while (parts.size() > 1) {
    std::vector<symbol> fewer;
    for (std::size_t i = 0; i < parts.size(); i += sharding_rule::most_in) {
      const std::size_t n = std::min(parts.size() - i, std::size_t(sharding_rule::most_in));
      fewer.push_back(n == 1 ? parts[i] : checked(concat(list_view(parts.data() + i, n), dim)));
    }
    parts = fewer;
  }
  return parts[0];
}

}}}  // namespace gshard::v0::onnx
