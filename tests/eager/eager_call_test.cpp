// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/eager_call.hpp>

#include <gshard/eager/einsum.hpp>
#include <gshard/eager/reshard.hpp>

#include "../complaint.hpp"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::axes, gs::none, gs::P;

// An operation is planned on a mesh with the axes that its specs name, each once, for any other axes of the cluster.
using three_axes = gs::detail::mesh_of<P<axes<"b", "a">, none>, P<none, "a">, P<"c">>;
static_assert(three_axes::shape.rank() == 3 && three_axes::shape.name(0) == "b" &&
              three_axes::shape.name(1) == "a" && three_axes::shape.name(2) == "c");
static_assert(gs::detail::mesh_of<P<none, none>>::shape.rank() == 0);
static_assert(gs::detail::letters_of_factors<gs::detail::counting(3, 1)>().view() == "BCD");

TEST_CASE("letters are bound to extents, each to one") {
  const auto on = gs::simulate<gs::mesh<gs::axis<"a">>>(2);
  const gs::tensor<float, P<none, none>> s(on, {2, 3}), t(on, {3, 5}), u(on, {4, 5});
  const auto bind = [](const auto& x, const auto& y) {
    return gs::detail::bind_letters("op", std::array{gs::detail::operand_of("AB", x), gs::detail::operand_of("BC", y)});
  };
  const gs::dims d = bind(s, t);
  CHECK(d.find('A') == 2);
  CHECK(d.find('B') == 3);
  CHECK(d.find('C') == 5);
  CHECK_THROWS_WITH_AS(bind(s, u),
                       "op: dim 0 of operand 1 has extent 4, an earlier operand has 3 there", gs::error);
}

TEST_CASE("axes are found by name, in whatever order the cluster has them, among others") {
  std::vector<float> a(6 * 4), b(4 * 6);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = float(i % 5), b[i] = float(i % 7);
  const auto product_on = [&](const auto& cluster) {
    const auto x = gs::from_global<float, P<"x", "y">>(cluster, {6, 4}, a);
    const auto y = gs::from_global<float, P<"y", none>>(cluster, {4, 6}, b);
    return gs::to_global(gs::einsum<"AB,BC->AC">(x, y));
  };
  const std::vector<float> expected = product_on(gs::on_one_device<gs::mesh<gs::axis<"x">, gs::axis<"y">>>());
  CHECK(product_on(gs::simulate<gs::mesh<gs::axis<"x">, gs::axis<"y">>>({2, 3})) == expected);
  CHECK(product_on(gs::simulate<gs::mesh<gs::axis<"y">, gs::axis<"x">>>({2, 3})) == expected);
  CHECK(product_on(gs::simulate<gs::mesh<gs::axis<"y">, gs::axis<"other">, gs::axis<"x">>>({2, 3, 2})) ==
        expected);
}

namespace {

using line = gs::mesh<gs::axis<"x">>;

/// Products with matrices of ones are the sums of rows.
bool is_product(const auto& on, std::int64_t rows, std::int64_t inner, float scale) {
  const std::vector<float> a(std::size_t(rows * inner), scale), ones(std::size_t(inner * 3), 1.0f);
  const auto x = gs::from_global<float, P<none, "x">>(on, {rows, inner}, a);
  const auto y = gs::from_global<float, P<"x", none>>(on, {inner, 3}, ones);
  return gs::to_global(gs::einsum<"AB,BC->AC">(x, y)) == std::vector(std::size_t(rows * 3), scale * float(inner));
}

}  // namespace

TEST_CASE("a cluster keeps the programs of operations, one for all calls with operands of the same extents") {
  const auto on = gs::simulate<line>(2);
  CHECK(is_product(on, 4, 6, 1));
  const std::size_t kept = gs::detail::cluster_access::kept(on).size();
  CHECK(kept == 2);  // the einsum and the reshard of its result
  CHECK(is_product(on, 4, 6, 2));
  CHECK(gs::detail::cluster_access::kept(on).size() == kept);
  CHECK(is_product(on, 4, 7, 2));
  CHECK(gs::detail::cluster_access::kept(on).size() == kept + 1);  // another einsum, with a result of the same extents
  for (std::int64_t rows = 1; rows < 100; ++rows) CHECK(is_product(on, rows, 5, 2));
  CHECK(gs::detail::cluster_access::kept(on).size() <= gs::detail::lru_cache::most);
  CHECK(is_product(gs::simulate<line>(3), 4, 6, 1));  // a program is bound to its cluster
}

TEST_CASE("results own their memory, and hold their cluster, whatever is kept") {
  std::weak_ptr<gs::backend> alive;
  {
    const auto first = [&] {
      const auto made = std::make_shared<gs::simulated>(std::vector{2});
      alive = made;
      const gs::cluster<line> on(made);
      const auto x = gs::from_global<float, P<"x", none>>(on, {2, 2}, std::vector{1.0f, 2.0f, 3.0f, 4.0f});
      auto once = gs::einsum<"AB->BA">(x);
      const auto twice = gs::einsum<"AB->BA">(gs::from_global<float, P<"x", none>>(on, {2, 2}, std::vector(4, 9.0f)));
      CHECK(gs::to_global(twice) == std::vector(4, 9.0f));
      return once;
    }();
    CHECK(!alive.expired());
    CHECK(gs::to_global(first) == std::vector{1.0f, 3.0f, 2.0f, 4.0f});
    CHECK(gs::detail::cluster_access::kept(first.cluster()).size() == 2);
  }
  CHECK(alive.expired());  // kept programs do not keep the cluster alive
}

TEST_CASE("threads may work on one device at the same time") {
  const auto on = gs::on_one_device<line>();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) wrong += !is_product(on, 2 + i % 3, 5, float(t + 1));
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("threads that work on several devices at the same time get right results, or the rule that they break") {
  const auto on = gs::simulate<line>(3);
  CHECK(is_product(on, 2, 5, 1));
  std::vector<float> whole(7 * 5);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = float(i);
  const auto is_right = [&](float scale, std::int64_t rows) {
    const auto by_rows = gs::from_global<float, P<"x", none>>(on, {7, 5}, whole);
    return is_product(on, rows, 5, scale) && gs::to_global(gs::reshard<P<none, "x">>(by_rows)) == whole;
  };
  std::atomic<int> wrong = 0, others = 0, refused = 0, right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const std::string said = complaint([&] { ++(is_right(float(t + 1), 2 + i % 3) ? right : wrong); });
        if (said == "cluster: one thread at a time may use it; two do at the same time") ++refused;
        else if (!said.empty()) ++others;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(others == 0);
  CHECK(right + refused == 2000);
  CHECK(is_product(on, 2, 5, 1));
}

TEST_CASE("one program that two threads run at the same time, on one device or on several") {
  using doubled = gs::program<[](auto&, auto x) { return x + x; }, line, gs::in<"A", P<"x">>>;
  for (const int devices : {1, 2}) {
    const auto on = devices == 1 ? gs::on_one_device<line>() : gs::simulate<line>(devices);
    gs::executable<doubled> run(on, {{'A', 4}});
    std::string said;
    bool tried = false;
    run.executor().hook = [&](const gs::node&, bool) {
      if (!std::exchange(tried, true)) std::thread([&] { said = complaint([&] { run(std::vector(4, 9.0f)); }); }).join();
    };
    CHECK(gs::to_global(run(std::vector(4, 3.0f))) == std::vector(4, 6.0f));  // its input is unchanged
    CHECK(said == std::string(devices == 1 ? "program" : "cluster") + ": one thread at a time may use it; two do at the same time");
  }
}

TEST_CASE("a hook of a run may use its own cluster and others, on its thread") {
  const auto on = gs::simulate<line>(2), other = gs::simulate<line>(3);
  using doubled = gs::program<[](auto&, auto x) { return x + x; }, line, gs::in<"A", P<"x">>>;
  gs::executable<doubled> run(on, {{'A', 4}});
  int right = 0;
  run.executor().hook = [&](const gs::node&, bool) { right += is_product(on, 4, 6, 1) && is_product(other, 4, 6, 2); };
  CHECK(gs::to_global(run(std::vector(4, 3.0f))) == std::vector(4, 6.0f));
  CHECK(right > 0);
}

TEST_CASE("an operation that failed is none to be used again") {
  const auto on = gs::on_one_device<line>();
  const auto a = gs::from_global<float, P<none, none>>(on, {2, 3}, std::vector(6, 1.0f));
  const auto b = gs::from_global<float, P<none, none>>(on, {4, 2}, std::vector(8, 1.0f));
  for (int i = 0; i < 2; ++i) CHECK_THROWS_AS((gs::einsum<"AB,BC->AC">(a, b)), gs::error);
  CHECK(gs::detail::cluster_access::kept(on).size() == 0);
}
