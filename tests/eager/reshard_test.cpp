// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/reshard.hpp>

#include <gshard/eager/einsum.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace gs = gshard;
using gs::axes, gs::none, gs::P, gs::partial, gs::tensor;
using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;

namespace {

std::vector<float> numbers(std::int64_t n) {
  std::vector<float> v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = float(i % 97) - 40;
  return v;
}

/// Checks that every shard has the part of the whole that its offsets state.
template <class T, class Spec>
bool holds_parts_of(const tensor<T, Spec>& t, const std::vector<T>& whole) {
  bool same = true;
  gs::for_each_local_shard(t, [&](const gs::shard_view<const T>& s) {
    gs::kernel::for_each_run(s.at, [&](std::int64_t local, std::int64_t global, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) same = same && s.data[local + i] == whole[std::size_t(global + i)];
    });
  });
  return same;
}

template <class... Specs>
struct list {};
using layouts = list<P<none, none>, P<"x", none>, P<none, "x">, P<"y", "x">, P<"x", "y">,
                     P<axes<"x", "y">, none>, P<axes<"y", "x">, none>, P<none, axes<"x", "y">>>;

const std::vector<std::vector<int>> extents_of_mesh{{1, 1}, {1, 2}, {3, 1}, {2, 2}, {2, 3}};
const std::vector<std::vector<std::int64_t>> sizes{{6, 12}, {5, 7}, {1, 3}};

template <class From, class... To>
void from_one_to_all(list<To...>) {
  for (const std::vector<int>& e : extents_of_mesh) {
    const auto on = gs::simulate<mesh>(e);
    for (const std::vector<std::int64_t>& size : sizes) {
      const std::vector<float> whole = numbers(size[0] * size[1]);
      const auto t = gs::from_global<float, From>(on, size, whole);
      CHECK(holds_parts_of(t, whole));
      CHECK(gs::to_global(t) == whole);
      const std::vector<bool> same{holds_parts_of(gs::reshard<To>(t), whole)...};
      CHECK(same == std::vector<bool>(sizeof...(To), true));
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("reshard: from every layout to every layout is the same tensor", From, P<none, none>,
                   P<"x", none>, P<"x", "y">, P<axes<"x", "y">, none>, P<none, axes<"y", "x">>) {
  from_one_to_all<From>(layouts{});
}

TEST_CASE("reshard completes partial sums") {
  for (const std::vector<int>& e : extents_of_mesh) {
    const auto on = gs::simulate<mesh>(e);
    const std::vector<float> a = numbers(5 * 6), b = numbers(6 * 4);
    const auto left = gs::from_global<float, P<none, axes<"x", "y">>>(on, {5, 6}, a);
    const auto right = gs::from_global<float, P<axes<"x", "y">, none>>(on, {6, 4}, b);
    const tensor<float, P<none, none, partial<"x", "y">>> sum = gs::einsum<"ab,bc->ac">(left, right);
    std::vector<float> whole(5 * 4, 0.0f);
    for (std::size_t i = 0; i < 5; ++i)
      for (std::size_t j = 0; j < 4; ++j)
        for (std::size_t k = 0; k < 6; ++k) whole[i * 4 + j] += a[i * 6 + k] * b[k * 4 + j];
    CHECK(gs::to_global(sum) == whole);
    CHECK(holds_parts_of(gs::reshard<P<"x", "y">>(sum), whole));
    CHECK(holds_parts_of(gs::reshard<P<none, "y">>(sum), whole));
    CHECK(holds_parts_of(gs::reshard<P<none, axes<"y", "x">>>(sum), whole));
  }
}

TEST_CASE("all_to_all moves the minor-most axis of a dim") {
  for (const std::vector<int>& e : extents_of_mesh) {
    const auto on = gs::simulate<mesh>(e);
    for (const std::vector<std::int64_t>& size : sizes) {
      const std::vector<float> whole = numbers(size[0] * size[1]);
      const auto rows = gs::from_global<float, P<"x", none>>(on, size, whole);
      const auto columns = gs::all_to_all<0, 1>(rows);
      static_assert(std::is_same_v<decltype(columns), const tensor<float, P<none, "x">>>);
      CHECK(holds_parts_of(columns, whole));
      const auto both = gs::from_global<float, P<axes<"x", "y">, none>>(on, size, whole);
      const auto one_each = gs::all_to_all<0, 1>(both);
      static_assert(std::is_same_v<decltype(one_each), const tensor<float, P<"x", "y">>>);
      CHECK(holds_parts_of(one_each, whole));
      const auto exchanged = gs::all_to_all<0, 1>(one_each);
      static_assert(std::is_same_v<decltype(exchanged), const tensor<float, P<none, axes<"y", "x">>>>);
      CHECK(holds_parts_of(exchanged, whole));
    }
  }
}

TEST_CASE("reshard of integers and doubles") {
  const auto on = gs::simulate<mesh>(std::vector{2, 3});
  const std::vector<std::int32_t> ids{3, 1, 4, 1, 5, 9, 2};
  CHECK(gs::to_global(gs::reshard<P<"y">>(gs::from_global<std::int32_t, P<"x">>(on, {7}, ids))) == ids);
  const std::vector<double> numbers{0.1, 0.2, 0.3};
  CHECK(gs::to_global(gs::from_global<double, P<axes<"y", "x">>>(on, {3}, numbers)) == numbers);
}

TEST_CASE("scalars") {
  const auto on = gs::simulate<mesh>(std::vector{2, 2});
  const auto t = gs::from_global<float, P<>>(on, {}, std::vector{2.5f});
  CHECK(t.item() == 2.5f);
  CHECK(gs::to_global(t) == std::vector{2.5f});
}

TEST_CASE("reshard names an axis that the cluster lacks") {
  const auto on = gs::simulate<gs::mesh<gs::axis<"y">>>(3);
  const auto t = gs::from_global<float, P<"y", none>>(on, {4, 2}, numbers(8));
  CHECK_THROWS_WITH_AS((gs::reshard<P<"x", none>>(t)), "reshard: the cluster has no mesh axis called \"x\"",
                       gs::error);
}
