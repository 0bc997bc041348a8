// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/placement/placed_experts.hpp>

#include <gshard/exec/program/parameter_access.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../../complaint.hpp"
#include "../../exec/experts_in_training.hpp"

namespace {

using namespace experts_in_training;

const auto nothing = [](auto&&...) {};

}  // namespace

TEST_CASE("training with replicas, moved every other step, has the losses of training without, on any mesh") {
  const auto one = gs::simulate<expert_mesh>({1, 1});
  gs::parameter_store plain(one, 8);
  const std::vector<double> expected = train<false>(one, plain, 8, nothing);
  for (const std::array mesh : {std::array{1, 1}, std::array{1, 4}, std::array{2, 2}, std::array{1, 3}, std::array{2, 1}})
    for (const bool moves : {false, true}) {
      CAPTURE(mesh[0]);
      CAPTURE(mesh[1]);
      const auto on = gs::simulate<expert_mesh>({mesh[0], mesh[1]});
      gs::parameter_store store(on, 8);
      std::vector<double> sums(E, 0);
      int moved = 0;
      const auto balance = [&](int step, auto& run, const std::vector<double>& demand) {
        for (std::size_t e = 0; e < E; ++e) sums[e] += demand[e];
        if (moves && step % 2 == 0) {
          gs::placed_experts experts(run.executor(), "moe");
          const double before = experts.placement().imbalance(sums);
          moved += experts.balance(sums, 1);
          CHECK(experts.placement().imbalance(sums) <= before);
        }
        if (step < 8) return;
        gs::placed_experts experts(run.executor(), "moe");
        CHECK(experts.tensors().size() == 6);  // two weights, two moments of each
        for (const std::string name : {"moe.wi", "moe.wo", "adam.m.moe.wi", "adam.v.moe.wo"}) {
          const std::vector<double> of_plain = gs::to_global<double>(plain, name);
          const auto rows = rows_of_experts(store, name, experts.placement().expert());
          for (std::size_t e = 0; e < E; ++e)
            for (std::size_t i = 0; i < rows[e].size(); ++i) CHECK(rows[e][i] == doctest::Approx(of_plain[e * M * F + i]).epsilon(1e-6));
        }
      };
      const std::vector<double> losses = train<true>(on, store, 8, balance);
      REQUIRE(losses.size() == expected.size());
      for (std::size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(1e-9));
      if (moves && mesh[1] > 1) CHECK(moved > 0);
    }
}

TEST_CASE("optimizer state that is sharded over another axis moves with its experts, as planned") {
  const auto one = gs::simulate<expert_mesh>({1, 1});
  const std::vector<double> expected = train<false>(one, gs::parameter_store(one, 8), 6, nothing);
  for (const std::vector<int>& nodes : {std::vector<int>{}, {0, 0, 1, 1, 0, 0, 1, 1}}) {
    CAPTURE(nodes.size());
    const auto on = nodes.empty() ? gs::simulate<expert_mesh>({2, 4}) : gs::simulate<expert_mesh>({2, 4}, {nodes});
    gs::parameter_store store(on, 8);
    const auto rotate = [&](int, auto& run, const auto&) {
      gs::placed_experts experts(run.executor(), "moe");
      std::vector<int> expert = experts.placement().expert();
      std::ranges::rotate(expert, expert.begin() + 5);
      const auto to = gs::expert_placement::of(expert, int(E), experts.on());
      const std::vector<gs::traffic> planned = experts.planned_traffic(to);
      store.cluster().backend().reset_received();
      CHECK(experts.move(to) > 0);
      CHECK(std::ranges::equal(planned, store.cluster().backend().received()));
    };
    const std::vector<double> losses = train<true, true>(on, store, 6, rotate);
    REQUIRE(losses.size() == expected.size());
    for (std::size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(1e-9));
    // Devices in one row of the mesh hold other parts of a state than devices in the other row.
    const gs::detail::bound_value& moment = store.find("adam.m.moe.wi")->value;
    CHECK(gs::detail::place(moment, on.backend().extents(), 0).extent[1] < std::int64_t(M));
  }
}

TEST_CASE("the initial rows of replicas are those of experts without replicas") {
  const auto on = gs::simulate<expert_mesh>({1, 4});
  gs::parameter_store plain(on, 3), store(on, 3);
  gs::executable<layer_program<false>> without(on, sizes, plain);
  gs::executable<layer_program<true>> with(on, sizes, store);
  gs::placed_experts experts(with.executor(), "moe");
  CHECK(experts.placement() == gs::expert_placement::even(int(E), {4, 3}));
  const auto rows = rows_of_experts(store, "moe.wi", experts.placement().expert());
  const std::vector<double> of_plain = gs::to_global<double>(plain, "moe.wi");
  for (std::size_t e = 0; e < E; ++e) CHECK(std::equal(rows[e].begin(), rows[e].end(), of_plain.begin() + std::ptrdiff_t(e * M * F)));
}

TEST_CASE("replicas with few slots drop choices, which are counted") {
  static constexpr auto forward = [](auto& m, auto x, auto mask) {
    const auto r = gs::nn::moe<"expert">(m, x, mask, {.routing = {.slots = {8}}, .experts = gs::experts::with_replicas({0.1})});
    return std::tuple{r.overflow, r.load};
  };
  using program = gs::program<forward, expert_mesh, in<"GSM", by_both, double>, in<"GS", P<gs::axes<"data", "expert">, none>, double>,
                              gs::element<double>>;
  double expected = -1;
  for (const int devices : {1, 2, 4}) {
    const auto on = gs::simulate<expert_mesh>({1, devices});
    gs::executable<program> run(on, sizes, gs::parameter_store(on, 8));
    const auto [overflow, load] = run(tokens(), mask_of_tokens());
    double choices = 0;
    for (const double x : gs::to_global(load)) choices += x;
    CHECK(overflow.item() > 0);
    CHECK(overflow.item() >= choices - double(G * R));  // a slot in each group
    if (expected >= 0) CHECK(overflow.item() == expected);
    expected = overflow.item();
  }
  const gs::dims few{{'G', G}, {'S', S}, {'E', E}, {'M', M}, {'F', F}, {'R', E - 1}};
  CHECK(complaint([&] { gs::executable<program>(gs::simulate<expert_mesh>({1, 1}), few); }) ==
        "parameter \"expert_of\": 7 replicas of 8 experts; each needs one at least");
}

TEST_CASE("demand counts choices that full experts refuse: placement, bias and measures of balance see an expert that is 10 times as hot") {
  static constexpr auto forward = [](auto& m, auto x, auto mask) {
    constexpr gs::routing_options routing{.k = 1, .slots = {1.25}, .norm = gs::gate_norm::off, .balance = gs::balance::bias()};
    const auto r = gs::nn::moe<"expert">(m, x, mask, {.routing = routing, .experts = gs::experts::with_replicas()});
    const auto b = gs::nn::measure_balance(r.demand, r.overflow);
    return std::tuple{r.demand, r.load, r.overflow, b.busiest, b.refused};
  };
  using program = gs::program<forward, expert_mesh, in<"GSM", by_both, double>, in<"GS", P<gs::axes<"data", "expert">, none>, double>,
                              gs::element<double>>;
  // In each group, 10 tokens choose expert 0, 2 choose expert 1, and one chooses each other expert. An expert accepts 3.
  constexpr std::size_t tokens_of_group = 18;
  const gs::dims few{{'G', G}, {'S', tokens_of_group}, {'E', E}, {'M', E}, {'F', 4}, {'R', R}};
  const std::array<std::size_t, tokens_of_group> wanted{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7};
  std::vector<double> x(G * tokens_of_group * E, 0), wg(E * E, 0);
  for (std::size_t i = 0; i < G * tokens_of_group; ++i) x[i * E + wanted[i % tokens_of_group]] = 1;
  for (std::size_t e = 0; e < E; ++e) wg[e * E + e] = 5;
  for (const std::array mesh : {std::array{1, 1}, std::array{1, 4}, std::array{2, 2}}) {
    CAPTURE(mesh[1]);
    const auto on = gs::simulate<expert_mesh>({mesh[0], mesh[1]});
    gs::parameter_store store(on, 8);
    gs::executable<program> run(on, few, store);
    gs::set_global<double>(store, "wg", wg);
    const auto [demand, load, overflow, busiest, refused] = run(x, std::vector<double>(G * tokens_of_group, 1));
    const std::vector<double> choices = gs::to_global(demand);
    CHECK(choices == std::vector<double>{40, 8, 4, 4, 4, 4, 4, 4});
    CHECK(gs::to_global(load) == std::vector<double>{12, 8, 4, 4, 4, 4, 4, 4});
    CHECK(overflow.item() == 28);
    CHECK(busiest.item() == doctest::Approx(40 / 9.0));
    CHECK(refused.item() == doctest::Approx(28 / 72.0));
    // Expert 1 has more load than the mean load, 5.5, but less demand than the mean demand, 9.
    const std::vector<double> bias = gs::to_global<double>(store, "bias");
    for (std::size_t e = 0; e < E; ++e) CHECK((e == 0 ? bias[e] < 0 : bias[e] > 0));
    gs::placed_experts experts(run.executor());
    CHECK(experts.balance(choices) == (mesh[1] > 1));
    if (mesh[1] == 4) CHECK(experts.placement().replicas(0) == 4);
  }
}

TEST_CASE("errors of placed_experts") {
  const auto on = gs::simulate<expert_mesh>({1, 4});
  gs::executable<layer_program<false>> without(on, sizes);
  CHECK(complaint([&] { gs::placed_experts(without.executor(), "moe"); }) ==
        "placed_experts: the program has no variable \"moe.expert_of\"; nn::moe makes one for experts::with_replicas()");
  gs::executable<layer_program<true>> run(on, sizes);
  CHECK(contains(complaint([&] { gs::placed_experts(run.executor()); }), "\"expert_of\""));
  CHECK(contains(complaint([&] { gs::placed_experts(run.executor(), "moe", 3); }), "on 3 nodes"));
  gs::placed_experts experts(run.executor(), "moe");
  const gs::expert_placement of_two(std::vector<double>(E, 1.0), {2, 6});
  const std::string unlike = "placed_experts: the placement has other devices or experts than \"moe.expert_of\"";
  CHECK(complaint([&] { experts.move(of_two); }) == unlike);
  CHECK(complaint([&] { (void)experts.planned_traffic(of_two); }) == unlike);
  gs::dims uneven = sizes;
  uneven = {{'G', G}, {'S', S}, {'E', E}, {'M', M}, {'F', F}, {'R', 10}};
  gs::executable<layer_program<true>> other(on, uneven);
  CHECK(contains(complaint([&] { gs::placed_experts(other.executor(), "moe"); }), "different numbers of replicas"));
}
