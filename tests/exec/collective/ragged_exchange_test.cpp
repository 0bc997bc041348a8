// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Only used rows are sent: the same bits as on one device, and as many bytes as counted by hand, on any mesh and with any routing.
#include <gshard/exec/collective/ragged_exchange.hpp>

#include <gshard/exec/program/executable.hpp>
#include <gshard/kernel_headers.hpp>
#include <gshard/moe/routing/dropless.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/core/program/program.hpp>
#include <gshard/exec/tensor/tensor.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/shape.hpp>

#include "../backend/failing_exchanges.hpp"
#include "../backend/random_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;

namespace ragged_rows {
namespace {

constexpr int N = 3, K = 2;
using mesh = gs::mesh<gs::axis<"expert">, gs::axis<"model">>;

/// The rows on the devices of their tokens and of their experts, their counts, and the combined results.
template <gs::label Columns, int EighthsOfRows>
inline constexpr auto route = [](auto&, auto gates, auto x) {
  const auto gating = gs::top_k_gating(gates, {.k = K, .slots = gs::capacity::unlimited()});
  const gs::expert_row_routing r = gs::send_rows<"expert">(gating, x, N, {EighthsOfRows / 8.0});
  return std::tuple{gs::annotate<P<none, "expert", none, Columns>>(r.rows), r.rows, r.count, gs::combine_rows(r, r.rows + 2.0 * r.rows)};
};
template <class T, int EighthsOfRows, gs::label Columns>
using program = gs::program<route<Columns, EighthsOfRows>, mesh, gs::in<"GSE", P<"expert", none, none>, T>,
                            gs::in<"GSM", P<"expert", none, Columns>, T>, gs::element<T>>;
constexpr bool sends_rows_alone(const gs::plan_view& p) { return p.count(gs::op::ragged_all_to_all) == 3 && p.collectives() == 3; }
static_assert(sends_rows_alone(program<float, 0, gs::label("model")>::plan));

struct routed {
  std::vector<double> back, at_experts, y;
  std::vector<std::int32_t> count;
  std::int64_t received = 0;  // by the busiest device, in exchanges of rows
  std::vector<std::int64_t> between_nodes;
};
template <class T, int EighthsOfRows, gs::label Columns>
routed run(const std::vector<int>& extents, const gs::dims& sizes, const std::vector<T>& gates, const std::vector<T>& x,
           const gs::node_map& nodes = {}) {
  const gs::cluster<mesh> on(std::make_shared<gs::simulated>(extents, nodes));
  gs::executable<program<T, EighthsOfRows, Columns>> step(on, sizes);
  routed r;
  for (int i = 0; i < 2; ++i) {  // in a second run, the memory contains the rows of the first one
    const auto [back, at_experts, count, y] = step(gates, x);
    const auto numbers = [](const auto& t) {
      const std::vector<T> all = gs::to_global(t);
      return std::vector<double>(all.begin(), all.end());
    };
    r.back = numbers(back);
    r.at_experts = numbers(at_experts);
    r.y = numbers(y);
    r.count = gs::to_global(count);
  }
  r.received = step.executor().received(gs::op::ragged_all_to_all).bytes / 2;
  const auto between = step.executor().between_nodes_in_run();
  r.between_nodes.assign(between.begin(), between.end());
  return r;
}

/// The bytes that devices receive if rows go to their experts once and come back twice: used rows, and the counts of all experts.
struct expected_bytes {
  std::int64_t busiest = 0, between_nodes = 0;

  expected_bytes(const std::vector<int>& extents, const std::vector<int>& node, std::int64_t G, std::int64_t experts, std::int64_t M,
                 std::int64_t width, const std::vector<std::int32_t>& count) {
    const int devices = extents[0], models = extents[1];
    const auto block = [](std::int64_t extent, std::int64_t shards) { return (extent + shards - 1) / shards; };
    std::vector<std::int64_t> there(std::size_t(devices), 0), back = there;
    for (std::int64_t n = 0; n < N; ++n)
      for (std::int64_t g = 0; g < G; ++g) {
        const std::int64_t of_experts = n / block(N, devices), of_tokens = g / block(G, devices), columns = block(M, models);
        if (of_experts == of_tokens) continue;
        std::int64_t rows = 0;
        for (std::int64_t e = 0; e < experts; ++e) rows += count[std::size_t((n * G + g) * experts + e)];
        there[std::size_t(of_experts)] += 4 * experts + rows * columns * width;
        back[std::size_t(of_tokens)] += 4 * experts + rows * columns * width;
        for (int m = 0; m < models && !node.empty(); ++m)
          if (node[std::size_t(of_experts * models + m)] != node[std::size_t(of_tokens * models + m)])
            between_nodes += 3 * (4 * experts + rows * std::max<std::int64_t>(0, std::min(columns, M - m * columns)) * width);
      }
    busiest = *std::ranges::max_element(there) + 2 * *std::ranges::max_element(back);
  }
};

template <class T, int EighthsOfRows, gs::label Columns = gs::label("model")>
void check(cases::rng& random, bool all_to_one) {
  const std::int64_t G = 1 + std::int64_t(cases::below(random, 7)), S = 1 + std::int64_t(cases::below(random, 9));
  const std::int64_t E = N * (1 + std::int64_t(cases::below(random, 3))),
                     M = 1 + std::int64_t(cases::below(random, 3) * cases::below(random, 20));
  const gs::dims sizes{{'G', G}, {'S', S}, {'E', E}, {'M', M}};
  std::vector<T> gates(std::size_t(G * S * E)), x(std::size_t(G * S * M));
  for (std::size_t i = 0; i < gates.size(); ++i) {
    const auto e = std::int64_t(i) % E;
    gates[i] = T(float(all_to_one && e < 2 ? 2000 + e : cases::below(random, 1000) + 1) / 4096.0f);
  }
  for (T& v : x) v = T(float(cases::below(random, 255)) / 64.0f - 2.0f);
  const routed one = run<T, EighthsOfRows, Columns>({1, 1}, sizes, gates, x);
  CHECK(one.received == 0);
  for (const std::vector<int>& extents : {std::vector{2, 1}, {3, 1}, {2, 2}, {3, 2}, {5, 1}}) {
    gs::node_map nodes;
    for (int d = 0; d < extents[0] * extents[1]; ++d) nodes.node.push_back(d / 2);
    const routed many = run<T, EighthsOfRows, Columns>(extents, sizes, gates, x, nodes);
    const std::string here = std::to_string(extents[0]) + " x " + std::to_string(extents[1]) + " devices, G " + std::to_string(G) + ", S " +
                             std::to_string(S) + ", E " + std::to_string(E) + ", M " + std::to_string(M);
    CAPTURE(here);
    CHECK(many.back == one.back);
    CHECK(many.at_experts == one.at_experts);
    CHECK(many.count == one.count);
    CHECK(many.y == one.y);
    const std::int64_t between_nodes = std::reduce(many.between_nodes.begin(), many.between_nodes.end());
    const gs::plan_view& plan = program<T, EighthsOfRows, Columns>::plan;
    CHECK(between_nodes <= gs::bytes_between_nodes(plan, plan.bind(sizes, extents), nodes.node));
    if (Columns.what == none.what) continue;  // the planner may divide work among replicas
    const expected_bytes expected(extents, nodes.node, G, E / N, M, std::int64_t(sizeof(T)), one.count);
    CHECK(many.received == expected.busiest);
    CHECK(between_nodes == expected.between_nodes);
  }
}

}  // namespace
}  // namespace ragged_rows

TEST_CASE("ragged exchanges: rows and counts as on one device, whatever the routing") {
  cases::rng random{11};
  for (int i = 0; i < 6; ++i) {
    ragged_rows::check<float, 0>(random, i % 2 == 1);
    ragged_rows::check<float, 9>(random, i % 2 == 1);
    ragged_rows::check<double, 12>(random, i % 2 == 1);
    ragged_rows::check<float, 12, none>(random, i % 2 == 1);
  }
}

TEST_CASE("ragged exchanges: an error of the counts or of the rows ends the run, and the next run is complete") {
  const auto backend = std::make_shared<failing_exchanges>(std::vector{2, 1});
  const gs::cluster<ragged_rows::mesh> on(backend);
  gs::executable<ragged_rows::program<float, 0, gs::label("model")>> step(on, {{'G', 4}, {'S', 5}, {'E', 6}, {'M', 3}});
  std::vector<float> gates(4 * 5 * 6), x(4 * 5 * 3);
  for (std::size_t i = 0; i < gates.size(); ++i) gates[i] = float(1 + i * 37 % 101);
  std::iota(x.begin(), x.end(), 1.0f);
  const auto run = [&] { return gs::to_global(std::get<3>(step(gates, x))); };
  const std::vector<float> expected = run();
  const std::size_t exchanges = backend->started;
  REQUIRE(exchanges >= 6);  // counts and rows, three times
  for (std::size_t k = 0; k < exchanges; ++k) {
    backend->fails = std::string(backend->finished + k, '-') + "x";
    CHECK_THROWS_WITH_AS(run(), doctest::Contains(" failed"), gs::error);
    CHECK(backend->started == backend->finished);
    CHECK(run() == expected);
  }
}
