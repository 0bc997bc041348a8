// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/trace/contraction_order.hpp>

#include <array>

using gshard::short_list, gshard::detail::contraction_order;

namespace {

constexpr short_list list(std::initializer_list<int> values) {
  short_list l;
  for (const int v : values) l.push_back(v);
  return l;
}

// A chain of matrices ab, bc, cd: first the pair with the smallest result.
constexpr unsigned first_pair(std::array<std::int64_t, 4> extents) {
  const std::array operands{list({0, 1}), list({1, 2}), list({2, 3})};
  const contraction_order order(operands, list({0, 3}), extents.data());
  const unsigned left = order.left(7), right = 7 & ~left;
  return (left & (left - 1)) != 0 ? left : right;
}
static_assert(first_pair({2, 100, 100, 100}) == 3 && first_pair({100, 100, 100, 2}) == 6);

// Indices that other operands need are kept, in order of appearance.
constexpr std::array operands{list({0, 1}), list({1, 2}), list({1, 3})};
constexpr std::array<std::int64_t, 4> extents{4, 4, 4, 4};
constexpr contraction_order order(operands, list({3, 0}), extents.data());
static_assert(order.kept(7) == list({3, 0}) && order.kept(3) == list({0, 1}) && order.kept(6) == list({1, 3}));

// Also for more than six operands: a chain of vectors and matrices is contracted starting from the vector, never as outer products.
constexpr bool from_the_vector(int matrices) {
  std::array<short_list, 16> chain{list({0})};
  std::array<std::int64_t, 16> sizes{};
  for (std::int64_t& n : sizes) n = 8;
  for (int i = 0; i < matrices; ++i) chain[std::size_t(i) + 1] = list({i, i + 1});
  const contraction_order o({chain.data(), std::size_t(matrices) + 1}, list({matrices}), sizes.data());
  bool linear = o.possible();
  for (unsigned set = (2u << matrices) - 1u; (set & (set - 1)) != 0 && linear;) {
    const unsigned left = o.left(set), right = set & ~left;
    linear = left != 0 && right != 0 && ((left & (left - 1)) == 0 || (right & (right - 1)) == 0) && o.kept(set).size() == 1;
    set = (left & (left - 1)) != 0 ? left : right;
  }
  return linear;
}
static_assert(from_the_vector(6) && from_the_vector(14));
}  // namespace
