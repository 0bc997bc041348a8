// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/check_sizes.hpp>

#include "../../complaint.hpp"

#include <gshard/core/cost/step_time.hpp>
#include <gshard/exec/process/diagnostic.hpp>
#include <gshard/exec/tensor/tensor.hpp>
#include <gshard/plan.hpp>
#include <gshard/sim/report/describe.hpp>
#include <gshard/sim/run/dry_run.hpp>
#include <gshard/sim/search/shard_search.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;

namespace {

inline constexpr auto dense_and_pad = [](auto& m, auto x) {
  auto h = gs::softmax(gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", P<none, "x">{}, gs::init::zeros())));
  return gs::annotate<P<none, none>>(gs::pad(h, 1, 1, 1));
};
using size_mesh = gs::mesh<gs::axis<"x">>;
using size_mesh_of_4 = gs::mesh<gs::axis<"x", 4>>;
using size_input = gs::in<"BM", P<"x", none>>;
const gs::plan_view& size_plan() { return gs::program<dense_and_pad, size_mesh, size_input>::plan; }

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

/// True if B x (H + padding) floats can be counted.
bool counts(std::int64_t b, std::int64_t h, double padding) {
  const double most = double(gs::max_tensor_bytes);
  return b >= 0 && h >= 0 && double(b) <= most && double(h) <= most && 4 * std::max(1.0, double(b)) * std::max(1.0, double(h) + padding) <= most;
}

}  // namespace

TEST_CASE("check_sizes: what cannot be counted is named") {
  const auto problem = [](const gs::dims& given, const std::vector<int>& axes) {
    return complaint([&] { gs::detail::check_sizes(size_plan(), size_plan().bind(given, axes), "a test"); });
  };
  CHECK(problem({{'B', 8}, {'M', 8}, {'H', 4}}, {4}).empty());
  CHECK(problem({{'B', 0}, {'M', 0}, {'H', 0}}, {4}).empty());
  CHECK(problem({{'B', 8}, {'H', 4}}, {4}) == "a test: dim 'M' is given no extent");
  for (const int negative : {-1, -4})
    CHECK(problem({{'B', negative}, {'M', 8}, {'H', 4}}, {4}) == "a test: dim 'B' is given the extent " + std::to_string(negative));
  CHECK(problem({{'B', largest}, {'M', 8}, {'H', 4}}, {4}) ==
        "a test: dim 'B' has the extent 9223372036854775807, and at most 9007199254740992 can be counted");
  CHECK(problem({{'B', 8}, {'M', 1LL << 40}, {'H', 1LL << 32}}, {4}) ==
        "a test: w has 1099511627776 x 4294967296 elements, more than can be counted");
  CHECK(problem({{'B', 1LL << 40}, {'M', 1LL << 32}, {'H', 4}}, {4}) ==
        "a test: the input BM has 1099511627776 x 4294967296 elements, more than can be counted");
  CHECK(problem({{'B', 8}, {'M', 8}, {'H', 4}}, {}) == "a test: axis \"x\" is given no extent");
  CHECK(problem({{'B', 8}, {'M', 8}, {'H', 4}}, {-2}) == "a test: axis \"x\" is given the extent -2");
}

// No entry overflows: each returns the right count, or names the number that it cannot count.
TEST_CASE("extents of any size are counted or refused") {
  const std::int64_t sizes[] = {0,       1,          7,  1 << 20, 1LL << 31, 1LL << 32, 1LL << 40, 1LL << 62,
                                largest, largest - 1, -1, -4,      std::numeric_limits<std::int64_t>::min()};
  const gs::plan_view& plan = size_plan();
  const gs::graph traced = gs::trace<dense_and_pad, size_mesh_of_4, size_input>();
  for (const std::int64_t b : sizes)
    for (const std::int64_t h : sizes)
      for (const int devices : {1, 3, 64}) {
        CAPTURE(b);
        CAPTURE(h);
        CAPTURE(devices);
        const bool fits = counts(b, h, 2), product_fits = counts(b, h, 0), is_empty = b == 0 || h == 0;
        const gs::extents e = plan.bind({{'B', b}, {'M', 1}, {'H', h}}, std::array{devices});
        const std::int64_t bytes = plan.bytes_received(e);
        CHECK((bytes >= 0 && (bytes == gs::uncountable) == !product_fits));
        if (fits && !is_empty && devices > 1) CHECK(double(bytes) >= 2.0 * double(b) * double(h));  // at least half of the result
        const double flops = gs::flops(plan, e);
        CHECK((flops >= 0 && std::isfinite(flops) == product_fits));
        if (fits && !is_empty) CHECK(flops >= 2.0 * double(b) * double(h) / devices);
        const gs::step_price price = gs::price(plan, e, gs::machine{.node_devices = 8});
        CHECK((price.seconds() >= 0 && std::isfinite(price.seconds()) == fits && price.bytes() >= 0 && gs::bytes_touched(plan, e) >= 0));

        double seconds = 0;
        CHECK(complaint([&] { seconds = gs::dry_run(plan, e, gs::machine{}, gs::machine{}).seconds; }).empty() == fits);
        CHECK((fits ? is_empty || seconds > 0 : seconds == 0));
        CHECK(complaint([&] { gs::describe_communication(plan, e); }).empty() == fits);

        gs::search_options search;
        search.compile.uneven = true;
        search.compile.known = {{'B', b}, {'M', 4}, {'H', h}};
        const gs::shard_choice found = gs::search_shardings(traced, size_mesh_of_4::shape, search);
        CHECK(bool(found.problem) == (!fits || is_empty));
        gs::graph g = traced;
        gs::compile_options options;
        options.uneven = true;
        options.known = {{'B', b}, {'H', h}};
        CHECK(bool(gs::compile(g, size_mesh_of_4::shape, options).problem) == !fits);

        std::byte nothing{};  // not allocated
        const std::vector<bool*> lent(std::size_t(devices), reinterpret_cast<bool*>(&nothing));
        std::string refused = complaint([&] {
          const gs::tensor<bool, P<"x", none>> t(gs::simulate<size_mesh>(devices), {b, h}, std::span<bool* const>(lent));
          std::int64_t elements = 0;
          for (std::size_t i = 0; i < t.local_shards(); ++i) {
            CHECK((t.local_shard(i).extent(0) >= 0 && t.local_shard(i).offset(0) >= 0));
            elements += t.local_shard(i).size();
          }
          CHECK(elements == t.size());
        });
        if (fits) CHECK(refused.empty());
        if (b < 0 || h < 0 || b > gs::max_tensor_bytes || h > gs::max_tensor_bytes) CHECK(!refused.empty());
      }
}

TEST_CASE("extents that are not known, together with large ones, do not make a plan wrap") {
  gs::graph g = gs::trace<dense_and_pad, size_mesh, size_input>();
  gs::compile_options options;
  options.known = {{'B', 1LL << 50}};
  CHECK(gs::describe(gs::compile(g, size_mesh::shape, options).problem) == "");
}

// Prices of large tensors on large meshes do not overflow. Their time does not depend on the number of devices.
TEST_CASE("moves and sums on meshes of millions of devices are priced") {
  constexpr auto sums = [](auto&, auto x, auto w) {
    const auto h = gs::einsum<"BM,MH->BH">(x, w);
    return std::array{gs::annotate<P<none, none>>(h), gs::annotate<P<none, "x">>(h), gs::annotate<P<"x", none>>(gs::einsum<"BM,BH->MH">(x, h))};
  };
  using between_axes = gs::mesh<gs::axis<"x">, gs::axis<"y">>;
  constexpr auto turns = [](auto&, auto x) { return gs::annotate<P<"y", "x">>(gs::relu(x)); };
  const gs::plan_view& of_sums = gs::program<sums, size_mesh, gs::in<"BM", P<none, "x">>, gs::in<"MH", P<"x", none>>>::plan;
  const gs::plan_view& of_turn = gs::program<turns, between_axes, gs::in<"BH", P<"x", "y">>>::plan;
  const gs::dims largest_sizes{{'B', 1 << 25}, {'M', 1 << 26}, {'H', 1 << 25}};  // 2^52 and 2^53 bytes
  for (const int devices : {2, 1 << 10, 1 << 16, 1 << 20, 1 << 30}) {
    CAPTURE(devices);
    const std::int64_t summed = of_sums.bytes_received(of_sums.bind(largest_sizes, std::array{devices}));
    CHECK((summed > (std::int64_t(1) << 51) && summed <= gs::uncountable));
    CHECK(std::isfinite(gs::price(of_sums, of_sums.bind(largest_sizes, std::array{devices}), gs::machine{}).seconds()));
  }
  for (const int side : {2, 64, 256, 1 << 12, 1 << 15}) {
    CAPTURE(side);
    const std::int64_t moved = of_turn.bytes_received(of_turn.bind(largest_sizes, std::array{side, side}));
    CHECK(moved == (std::int64_t(1) << 52) / side / side);  // a device receives its whole shard
  }
}

TEST_CASE("simulated devices of one process are limited") {
  CHECK(complaint([] { gs::simulate<size_mesh>(std::numeric_limits<int>::max()); }) ==
        "simulated: a process simulates at most 1048576 devices, not 2147483647");
  CHECK(complaint([] { gs::simulate<gs::mesh<gs::axis<"x">, gs::axis<"y">>>(std::numeric_limits<int>::max()); }) ==
        "simulated: a process simulates at most 1048576 devices, not 2147483647");
  CHECK(complaint([] { gs::simulate<gs::mesh<gs::axis<"x">, gs::axis<"y">>>({1 << 20, 1 << 20}); }) ==
        "mesh 1048576x1048576 has too many devices");
}
