// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/broadcast.hpp>

#include <gshard/eager/map.hpp>
#include <gshard/eager/reshard.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::broadcast, gs::none, gs::P, gs::partial, gs::tensor;
using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;

namespace {

std::vector<double> numbers(std::size_t n) {
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = double(i * 5 % 11) - 5;
  return v;
}
const std::vector<std::vector<int>> extents_of_mesh{{1, 1}, {2, 1}, {1, 3}, {2, 2}, {2, 3}};

std::int64_t bytes_received(const auto& on) {
  std::int64_t bytes = 0;
  for (const gs::traffic& t : on.backend().received()) bytes += t.exchange_bytes + t.gather_bytes;
  return bytes;
}

/// Broadcasts x along a dim of [n, m], with any layouts. Nothing is sent.
template <class Spec, class LikeSpec>
void check_lines(const std::vector<int>& extents, std::int64_t n, std::int64_t m) {
  const auto on = gs::simulate<mesh>(extents);
  const std::vector<double> rows = numbers(std::size_t(n)), columns = numbers(std::size_t(m));
  const tensor<float, LikeSpec> like(on, {n, m});
  const auto x = gs::from_global<double, Spec>(on, {n}, rows);
  const auto t = gs::from_global<double, Spec>(on, {m}, columns);
  on.backend().reset_received();
  const auto by_row = broadcast<"q,qk->qk">(x, like);
  const auto by_column = broadcast<"k,qk->qk">(t, like);
  const auto outer = broadcast<"k,q->qk">(t, x);
  CHECK(bytes_received(on) == 0);
  const std::vector<double> a = gs::to_global(by_row), b = gs::to_global(by_column), c = gs::to_global(outer);
  bool right = true;
  for (std::int64_t q = 0; q < n; ++q)
    for (std::int64_t k = 0; k < m; ++k) {
      const auto at = std::size_t(q * m + k);
      right = right && a[at] == rows[std::size_t(q)] && b[at] == columns[std::size_t(k)] && c[at] == b[at];
    }
  CHECK(right);
}

}  // namespace

TEST_CASE("broadcast: along either dim, of any layout, like any other") {
  for (const std::vector<int>& e : extents_of_mesh)
    for (const auto& [n, m] : {std::pair{6, 6}, std::pair{5, 7}, std::pair{1, 4}}) {
      check_lines<P<none>, P<none, none>>(e, n, m);
      check_lines<P<none>, P<"x", "y">>(e, n, m);
      check_lines<P<"x">, P<none, none>>(e, n, m);
      check_lines<P<"x">, P<none, "x">>(e, n, m);
      check_lines<P<"y">, P<"x", "y">>(e, n, m);
      check_lines<P<"y">, P<gs::axes<"y", "x">, none>>(e, n, m);
      check_lines<P<gs::axes<"x", "y">>, P<"x", "y">>(e, n, m);
      check_lines<P<none>, P<none, "x", partial<"y">>>(e, n, m);
    }
}

TEST_CASE("broadcast: the result keeps the axes of what is repeated, and takes free ones of the others") {
  const auto on = gs::simulate<mesh>(std::vector{2, 2});
  const tensor<float, P<none>> plain(on, {4});
  const tensor<float, P<"x">> by_x(on, {4});
  const tensor<float, P<"x", "y">> both(on, {4, 6});
  const tensor<float, P<"y", "x">> crossed(on, {4, 6});
  static_assert(std::is_same_v<decltype(broadcast<"q,qk->qk">(plain, both)), tensor<float, P<"x", "y">>>);
  static_assert(std::is_same_v<decltype(broadcast<"q,qk->qk">(by_x, both)), tensor<float, P<"x", "y">>>);
  static_assert(std::is_same_v<decltype(broadcast<"q,qk->qk">(by_x, crossed)), tensor<float, P<"x", none>>>);
  static_assert(std::is_same_v<decltype(broadcast<"q,qk->kq">(plain, both)), tensor<float, P<"y", "x">>>);
  static_assert(std::is_same_v<decltype(broadcast<"p,q->pq">(by_x, by_x)), tensor<float, P<"x", none>>>);
  static_assert(std::is_same_v<decltype(broadcast<"p,q->pq">(plain, by_x)), tensor<float, P<none, "x">>>);
  static_assert(std::is_same_v<decltype(broadcast<"ab->ba">(both)), tensor<float, P<"y", "x">>>);
}

TEST_CASE("broadcast: rows of a square matrix lose their largest element") {
  const auto on = gs::simulate<mesh>(std::vector{2, 1});
  const auto x = gs::from_global<double, P<"x", none>>(on, {2, 2}, std::vector<double>{0, 1, 5, 2});
  const auto top = gs::from_global<double, P<"x">>(on, {2}, std::vector<double>{1, 5});
  const auto y = gs::map<[](auto v, auto t) { return v - t; }>(x, broadcast<"Q,QK->QK">(top, x));
  CHECK(gs::to_global(y) == std::vector<double>{-1, 0, 0, -3});
}

TEST_CASE("broadcast: scalars, and dims without elements") {
  const auto on = gs::simulate<mesh>(std::vector{2, 1});
  const auto one = gs::from_global<double, P<>>(on, {}, std::vector<double>{3});
  const auto x = gs::from_global<double, P<"x">>(on, {3}, numbers(3));
  CHECK(gs::to_global(broadcast<",a->a">(one, x)) == std::vector<double>{3, 3, 3});
  const tensor<float, P<"x">> empty(on, {0});
  CHECK(gs::to_global(broadcast<"a,b->ab">(x, empty)).empty());
  CHECK(gs::to_global(broadcast<"a,b->ab">(empty, x)).empty());
}

TEST_CASE("broadcast: extents that differ, and clusters") {
  const auto on = gs::simulate<mesh>(std::vector{2, 1});
  const auto x = gs::from_global<double, P<none>>(on, {3}, numbers(3));
  const tensor<float, P<none, none>> other(on, {4, 3});
  CHECK_THROWS_WITH_AS((broadcast<"q,qk->qk">(x, other)), "q,qk->qk: dim 0 of operand 1 has extent 4, an earlier operand has 3 there",
                       gs::error);
  const tensor<float, P<none>> elsewhere(gs::simulate<mesh>(std::vector{1, 1}), {4});
  CHECK_THROWS_WITH_AS((broadcast<"q,k->qk">(x, elsewhere)), "q,k->qk: the operands belong to different clusters", gs::error);
}

TEST_CASE("broadcast: a cluster keeps one program for all calls with these extents") {
  const auto on = gs::simulate<mesh>(std::vector{2, 1});
  const auto x = gs::from_global<double, P<none>>(on, {3}, numbers(3));
  const tensor<float, P<none>> two(on, {2}), four(on, {4});
  const auto spread = [&](const auto& like) { return gs::to_global(broadcast<"q,k->kq">(x, like)).size(); };
  CHECK(spread(two) == 6);
  const std::size_t kept = gs::detail::cluster_access::kept(on).size();
  CHECK(spread(two) == 6);
  CHECK(gs::detail::cluster_access::kept(on).size() == kept);
  CHECK(spread(four) == 12);
  CHECK(spread(two) == 6);
}
