// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/reduce/sum_order.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {

std::string text(const gs::sum_order& order, gs::sum_order::subtree_id t) {
  if (t.is_operand()) return std::to_string(t.operand());
  return "(" + text(order, order.left(t)) + " " + text(order, order.right(t)) + ")";
}
std::string text(const gs::sum_order& order) {
  return text(order, order.root());
}
std::string at(const std::vector<std::uint32_t>& positions) {
  return text(gs::sum_order(positions));
}

}  // namespace

TEST_CASE("sum_order: every aligned block of 2^k positions is a subtree") {
  CHECK(text(gs::sum_order(1)) == "0");
  CHECK(text(gs::sum_order(2)) == "(0 1)");
  CHECK(text(gs::sum_order(3)) == "((0 1) 2)");
  CHECK(text(gs::sum_order(7)) == "(((0 1) (2 3)) ((4 5) 6))");
  CHECK(gs::sum_order(7).operands() == 7);
  CHECK(at({1, 0, 2, 3}) == "((1 0) (2 3))");
  CHECK(at({0, 4, 1, 5}) == "((0 2) (1 3))");
  CHECK(at({1, 2}) == "(0 1)");
  CHECK(at({0, 100, 101}) == "(0 (1 2))");
}

TEST_CASE("sum_order: the parts of several owners") {
  const auto split = [](const gs::sum_order& order, const std::vector<int>& owner) {
    const gs::sum_order::parts parts = order.split(owner);
    std::string all;
    for (const auto& p : parts.all) all += text(order, p.subtree) + "@" + std::to_string(p.owner) + " ";
    return all + text(parts.between);
  };
  CHECK(split(gs::sum_order(4), {7, 7, 8, 8}) == "(0 1)@7 (2 3)@8 (0 1)");
  CHECK(split(gs::sum_order(4), {7, 7, 7, 7}) == "((0 1) (2 3))@7 0");
  CHECK(split(gs::sum_order(4), {7, 8, 7, 8}) == "0@7 1@8 2@7 3@8 ((0 1) (2 3))");
  CHECK(split(gs::sum_order(6), {1, 1, 1, 2, 2, 2}) == "(0 1)@1 2@1 3@2 (4 5)@2 ((0 (1 2)) 3)");
  CHECK(split(gs::sum_order(std::vector<std::uint32_t>{0, 1, 2, 4, 5, 6}), {1, 1, 1, 2, 2, 2}) == "((0 1) 2)@1 ((3 4) 5)@2 (0 1)");
}

TEST_CASE("sum_order: wrong positions") {
  CHECK_THROWS_WITH_AS(gs::sum_order(std::vector<std::uint32_t>{}), "sum_order: a sum without operands", gs::error);
  CHECK_THROWS_WITH_AS(gs::sum_order(std::vector<std::uint32_t>{3, 1, 3}), "sum_order: two operands have position 3", gs::error);
}
