// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The same plans under MPI, one device per process, and simulated: the same bits on every device.
#include "../../mpi_world.hpp"
#include "../../effort.hpp"
#include "../run_graph.hpp"

#include <gshard/cluster/mpi.hpp>
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/loop/loop.hpp>
#include <gshard/ops/loop/scan.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/random/random.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/shards/collectives.hpp>
#include <gshard/ops/shards/per_shard.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/pool.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/ops/window/roll.hpp>
#include <gshard/train/adam.hpp>

#include <cstring>
#include <tuple>

namespace gs = gshard;
using gs::symbol;
using mpi_world::ranks;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

/// Every mesh of all processes with up to two axes.
std::vector<std::vector<int>> meshes() {
  std::vector<std::vector<int>> all{{ranks()}};
  for (int a = 1; a <= ranks(); ++a)
    if (ranks() % a == 0) all.push_back({a, ranks() / a});
  return all;
}

/// A program bound to a cluster.
struct bound {
  gs::any_cluster on;
  gs::executor run;

  bound(const gs::plan_tables& p, std::shared_ptr<gs::backend> b, const gs::dims& dims)
      : on(p.mesh, std::move(b)), run(p.view(), gs::all_kernels, on, dims, gs::parameter_store(on, 17)) {}
  /// One run on these inputs.
  void step(const run_graph::arrays& inputs, std::uint32_t number) {
    for (std::size_t i = 0; i < inputs.size(); ++i) run_graph::scatter(on, run.input(i), inputs[i]);
    run.run({.seed = 3, .step = number});
  }
};

/// True if this process's shard of a tensor under MPI has the same bits as its device's shard in the simulation.
bool same_bits(const gs::detail::bound_value& mpi, const gs::detail::bound_value& simulated, int device) {
  const auto i = std::size_t(device);
  return mpi.bytes(0) == simulated.bytes(i) &&
         (mpi.bytes(0) == 0 || std::memcmp(mpi.data[0], simulated.data[i], std::size_t(mpi.bytes(0))) == 0);
}

/// Backends that send messages: directly, in two levels, and while steps compute. The last one shares memory.
using backends = std::vector<std::shared_ptr<gs::mpi_backend>>;
backends all_on(const std::vector<int>& mesh) {
  backends all;
  for (const gs::mpi_options& how : {gs::mpi_options{}, gs::mpi_options{.by_node = gs::node_routing::always, .node_size = 2},
                                     gs::mpi_options{.node_size = 1}, gs::mpi_options{.shared_memory = true}})
    all.push_back(std::make_shared<gs::mpi_backend>(MPI_COMM_WORLD, mesh, how));
  return all;
}

/// Runs some steps of a program under MPI and simulated. Compares outputs, parameters and traffic. `real` uses the setting's mesh, because
/// creating communicators takes long.
void compare(const backends& real, const run_graph::traced& t, const run_graph::setting& s, const run_graph::arrays& inputs,
             std::uint32_t steps) {
  INFO(run_graph::text_of(s));
  const gs::plan_tables p = run_graph::plan(t, s);
  bound simulated(p, std::make_shared<gs::simulated>(s.mesh), s.dims);
  std::vector<std::unique_ptr<bound>> all;
  for (const std::shared_ptr<gs::mpi_backend>& b : real) {
    all.push_back(std::make_unique<bound>(p, b, s.dims));
    b->reset_received();
    REQUIRE(all.back()->on.devices().size() == 1);
  }
  const int me = all[0]->on.devices()[0];
  for (std::uint32_t i = 0; i < steps; ++i) {
    simulated.step(inputs, i);
    for (const std::unique_ptr<bound>& mpi : all) {
      CAPTURE(mpi->on.backend().shares_memory());
      mpi->step(inputs, i);
      for (std::size_t o = 0; o < p.outputs.size(); ++o)
        CHECK(same_bits(mpi->run.output(o), simulated.run.output(o), me));
      for (const auto& [name, e] : mpi->run.store().entries())
        CHECK(same_bits(e.value, simulated.run.store().find(name)->value, me));
    }
  }
  // A gather in two levels counts as an exchange. tests/exec/reduce/reduce_mpi_test.cpp compares the bytes between nodes.
  const auto bytes = [](const gs::traffic& received) { return received.exchange_bytes + received.gather_bytes; };
  for (const std::shared_ptr<gs::mpi_backend>& b : real)
    CHECK(bytes(b->received()[0]) == bytes(simulated.on.backend().received()[std::size_t(me)]));
}

}  // namespace

namespace {

void compare_training(const gs::nn::moe_options& options) {
  const run_graph::traced t = run_graph::trace({{"GSM"}, {"GS"}, {""}}, [&](const scope& whole, given x) {
    const gs::parameter_scope m(whole.owner(), gs::dtype::f32);
    const symbol input = gs::cast<float>(x[0]), mask = gs::cast<float>(x[1]), rate = gs::cast<float>(x[2]);
    const gs::nn::moe_result r = gs::nn::moe<"x">(m, input, mask, options);
    const symbol error = r.y - 3.0 * input, loss = gs::mean(error * error);
    gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
    return symbols{loss, r.y, r.load, r.overflow};
  });
  for (const std::vector<int>& mesh : meshes()) {
    const backends real = all_on(mesh);
    for (const gs::dims& dims : {gs::dims{{'G', 8}, {'S', 16}, {'E', 8}, {'M', 16}, {'F', 24}},
                                 gs::dims{{'G', 3}, {'S', 5}, {'E', 5}, {'M', 3}, {'F', 4}}})
      for (const bool cut : {true, false}) {
        run_graph::setting s = run_graph::serial(t, dims);
        s.mesh = mesh;
        // Groups and experts over the first axis, or experts only.
        if (cut)
          for (const unsigned input : {0U, 1U}) s.layouts[input][0].push_back(0);
        for (std::size_t i = 0; i < t.graph.parameters.size(); ++i) {
          const std::string_view name = t.graph.parameters[i].name.view();
          if (name.ends_with("wi") || name.ends_with("wo")) s.layouts[t.graph.inputs.size() + i][0].push_back(0);
        }
        run_graph::arrays inputs = run_graph::random_sources(t, dims, 1);
        inputs.resize(3);
        for (std::size_t i = 0; i < inputs[1].size(); ++i) inputs[1][i] = i % 5 != 2;
        inputs[2] = {0.01};
        compare(real, t, s, inputs, 4);
      }
  }
}

}  // namespace

TEST_CASE("mpi: a mixture of experts trains to the same bits as simulated") {
  compare_training({.routing = {.slots = gs::capacity{1.5}}});
}

TEST_CASE("mpi: a mixture of experts in groups trains to the same bits as simulated") {
  compare_training({.routing = {.k = 3}, .experts = gs::experts::in_groups(2)});
  compare_training({.routing = {.k = 3}, .experts = gs::experts::in_groups(3, {1.5})});
}

TEST_CASE("mpi: mixtures of experts with other routers train to the same bits as simulated") {
  using enum gs::gate_score;
  compare_training({.routing = {.k = 3, .score = sigmoid, .balance = gs::balance::bias(), .jitter = 0.1, .gumbel = 0.5}});
  compare_training({.routing = {.choice = gs::choice::by_experts, .norm = gs::gate_norm::off}});
}

TEST_CASE("mpi: every layout to every layout, and sums of any size") {
  const run_graph::traced t = run_graph::trace(
      {{"AB"}}, [](const scope&, given x) { return symbols{run_graph::lay_out(0.1 * x[0])}; });
  for (const std::vector<int>& mesh : meshes()) {
    const backends real = all_on(mesh);
    for (const gs::dims& dims : {gs::dims{{'A', 5}, {'B', 3}}, gs::dims{{'A', 40}, {'B', 30}}})
      for (const gs::sharding& from : run_graph::all_layouts(2, int(mesh.size()), true))
        for (const gs::sharding& to : run_graph::all_layouts(2, int(mesh.size())))
          compare(real, t, {.mesh = mesh, .dims = dims, .layouts = {from, to}},
                  run_graph::random_sources(t, dims, 1), 1);
    // Some moves that take several rounds.
    const gs::dims large{{'A', 400}, {'B', 517}};
    const run_graph::arrays whole = run_graph::random_sources(t, large, 1);
    const auto from = run_graph::all_layouts(2, int(mesh.size()), true), to = run_graph::all_layouts(2, int(mesh.size()));
    for (std::size_t i = 0; i < from.size() * to.size(); i += mesh.size() == 1 ? 2 : 19)
      compare(real, t, {.mesh = mesh, .dims = large, .layouts = {from[i / to.size()], to[i % to.size()]}}, whole, 2);
  }
}

TEST_CASE("mpi: einsums that loop") {
  const run_graph::traced t = run_graph::trace({{"AB"}, {"BC"}}, [](const scope&, given x) {
    return symbols{run_graph::lay_out(gs::einsum<"AB,BC->AC">(0.1 * x[0], 0.3 * x[1]))};
  });
  int loops = 0;
  for (const std::vector<int>& mesh : meshes()) {
    const backends real = all_on(mesh);
    const auto layouts = run_graph::all_layouts(2, int(mesh.size()));
    for (const gs::dims& dims : {gs::dims{{'A', 5}, {'B', 3}, {'C', 7}}, gs::dims{{'A', 24}, {'B', 40}, {'C', 16}}})
      for (std::size_t i = 0; i < layouts.size() * layouts.size(); ++i) {
        run_graph::setting s{.mesh = mesh,
                             .dims = dims,
                             .layouts = {layouts[i / layouts.size()], layouts[i % layouts.size()], layouts[i % 5 % layouts.size()]}};
        s.options = {.known = dims, .uneven = true, .loop_bytes = 0};
        loops += run_graph::plan(t, s).view().count(gs::op::looped_einsum);
        compare({real[i % 2]}, t, s, run_graph::random_sources(t, dims, 1), 2);
      }
  }
  CHECK(loops > 0);
}

TEST_CASE("mpi: tensors that go together") {
  const run_graph::traced t = run_graph::trace({{"AB"}, {"BC"}, {"CA"}, {"AB", gs::dtype::f32}}, [](const scope&, given x) {
    symbols tenths, results;
    for (const symbol& s : x) tenths.push_back(0.1 * s);
    for (const symbol& s : tenths) results.push_back(run_graph::lay_out(s));
    return results;
  });
  std::size_t combined = 0;
  for (const std::vector<int>& mesh : meshes()) {
    const backends real = all_on(mesh);
    const auto from = run_graph::all_layouts(2, int(mesh.size()), true), to = run_graph::all_layouts(2, int(mesh.size()));
    for (const gs::dims& dims : {gs::dims{{'A', 5}, {'B', 3}, {'C', 7}}, gs::dims{{'A', 24}, {'B', 40}, {'C', 16}}})
      for (std::size_t i = 0; i < from.size() * to.size(); i += 3) {
        run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {}};
        for (std::size_t k = 0; k < t.free.size(); ++k) s.layouts.push_back(k < t.sources() ? from[i / to.size()] : to[i % to.size()]);
        const gs::plan_tables p = run_graph::plan(t, s);
        for (const gs::node& n : p.steps) combined += gs::traits(n.kind).collective && n.inputs > 1;
        compare({real[i / 3 % 2]}, t, s, run_graph::random_sources(t, dims, 1), 2);
      }
  }
  CHECK(combined > 0);
}

TEST_CASE("mpi: sums of short shards go the way that those of the largest one go") {
  const run_graph::traced t =
      run_graph::trace({{"A"}}, [](const scope&, given x) { return symbols{run_graph::lay_out(x[0])}; });
  gs::sharding cut = gs::sharding::replicated(1);
  cut[0].push_back(0);
  gs::sharding pending = cut;
  pending.partial = 2;
  for (const std::vector<int>& mesh : meshes()) {
    if (mesh.size() != 2) continue;
    // The first shard of the doubles is the smallest that is not gathered. The last one is shorter.
    const gs::dims dims{{'A', (gs::small_sum_bytes / 8 / mesh[1] + 1) * mesh[0] - 1}};
    compare(all_on(mesh), t, {.mesh = mesh, .dims = dims, .layouts = {pending, cut}},
            run_graph::random_sources(t, dims, 1), 1);
  }
}

TEST_CASE("mpi: processes that bind other extents all throw") {
  int thrown = 0;
  if (ranks() == 1) return;
  const run_graph::traced t =
      run_graph::trace({{"A"}}, [](const scope&, given x) { return symbols{gs::sum(x[0])}; });
  const gs::dims dims{{'A', mpi_world::rank() == 0 ? 4 : 5}};
  const gs::plan_tables p =
      run_graph::plan(t, {.mesh = {ranks()}, .dims = dims, .layouts = {gs::sharding::replicated(1)}});
  try {
    bound(p, std::make_shared<gs::mpi_backend>(MPI_COMM_WORLD, std::vector{ranks()}), dims);
  } catch (const gs::error& e) {
    thrown = std::string_view(e.what()).find("disagree on the extent of dim 'A': rank 0 has 4, rank") !=
             std::string_view::npos;
  }
  CHECK(thrown == 1);
}

TEST_CASE("mpi: windows, order and reductions to the same bits as simulated, also where some devices have nothing") {
  const run_graph::traced t = run_graph::trace({{"AB"}}, [](const scope&, given x) {
    const gs::sorted best = gs::top_k(x[0], 1, 0);
    return symbols{gs::roll(x[0], 0, 2), gs::reverse(x[0], 0), gs::merge_dims<0>(x[0]), gs::cumsum(x[0], 0), best.values, best.ids,
                   gs::reduce_max<"ab->b">(x[0]), gs::max_pool(x[0], {{0, 3, {.low = 1, .high = 1}}})};
  });
  for (const std::vector<int>& mesh : meshes())
    for (const gs::dims& dims : {gs::dims{{'A', 7}, {'B', 1}}, gs::dims{{'A', 8}, {'B', 3}}}) {
      // A separate backend: the first step that needs its communicators creates them, and all processes must reach that step.
      const backends real = all_on(mesh);
      run_graph::setting s = run_graph::serial(t, dims);
      s.mesh = mesh;
      s.layouts[0][0].push_back(0);
      if (mesh.size() > 1) s.layouts[0][1].push_back(1);
      compare(real, t, s, run_graph::random_sources(t, dims, 2), 2);
    }
}

TEST_CASE("mpi: regions of verbs on shards, and their gradients, to the same bits as simulated") {
  const run_graph::traced t = run_graph::trace({{"AB"}}, [](const scope&, given x) {
    const symbol y = gs::per_shard<"x", gs::P<"x", gs::none>>([](symbol s) {
      const symbol h = gs::halo<"x", 1, 1>(s, 1), top = gs::all_reduce<"x">(gs::reduce_max<"XaB->XB">(s), gs::reduction::max);
      const symbol there = gs::all_to_all<"x">(gs::shift<"x">(s, 1), 2, 1);
      const symbol back = gs::all_to_all<"x">(there * there, 1, 2);
      return back + gs::pad(h, 1, 0, -2) + gs::reduce_scatter<"x">(gs::einsum<"AB,XaB->XAB">(gs::all_gather<"x">(s, 1), s), 1) - top;
    }, gs::annotate<gs::P<"x", gs::none>>(x[0]));
    return symbols{y, gs::gradients(gs::sum(y * y), x)[0]};
  });
  const gs::dims dims{{'A', 24}, {'B', 12}};
  for (const std::vector<int>& mesh : meshes()) {
    const backends real = all_on(mesh);
    run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {}};
    for (const std::int32_t v : t.free) s.layouts.push_back(t.graph.at(v).layout);
    compare(real, t, s, run_graph::random_sources(t, dims, 4), 2);
  }
}

TEST_CASE("mpi: shards go from source to target, and some devices get zeros, to the same bits as simulated") {
  const gs::dims dims{{'A', 24}, {'B', 3}};
  for (const std::vector<int>& mesh : meshes()) {
    std::vector<gs::device_pair> pairs;  // mirrored, but one device sends nothing
    for (int i = 0; i < mesh[0]; ++i)
      if (i != 1) pairs.push_back({i, mesh[0] - 1 - i});
    const run_graph::traced t = run_graph::trace({{"AB"}}, [&](const scope&, given x) {
      const symbol y = gs::per_shard<"x", gs::P<"x", gs::none>>([&](symbol s) {
        return gs::detail::emit_permute(s * s, "x", {pairs.data(), pairs.size()});
      }, gs::annotate<gs::P<"x", gs::none>>(x[0]));
      return symbols{y, gs::gradients(gs::sum(y * y), x)[0]};
    });
    const backends real = all_on(mesh);
    run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {}};
    for (const std::int32_t v : t.free) s.layouts.push_back(t.graph.at(v).layout);
    compare(real, t, s, run_graph::random_sources(t, dims, 4), 2);
  }
}

TEST_CASE("mpi: layouts in other orders of the devices, to the same bits as simulated") {
  run_graph::traced t =
      run_graph::trace({{"AB"}}, [](const scope&, given x) { return symbols{run_graph::lay_out(0.1 * run_graph::lay_out(x[0]))}; });
  for (int i = 0; i < ranks(); ++i) t.graph.orders.push_back(ranks() - 1 - i);
  for (int i = 0; i < ranks(); ++i) t.graph.orders.push_back((i + 1) % ranks());
  for (const std::vector<int>& mesh : meshes()) {
    const backends real = all_on(mesh);
    const auto all = run_graph::all_layouts(2, int(mesh.size()));
    for (const gs::dims& dims : {gs::dims{{'A', 5}, {'B', 3}}, gs::dims{{'A', 12}, {'B', 8}}})
      for (std::size_t i = 0; i < all.size() * all.size(); ++i) {
        run_graph::setting s{
            .mesh = mesh, .dims = dims, .layouts = {all[i / all.size()], all[i % all.size()], all[i / all.size()]}, .known_axes = "xy"};
        s.options.uneven = true;
        for (std::size_t k = 0; k < 3; ++k)
          if (s.layouts[k].used()) s.layouts[k].order = std::uint8_t((i + k) % 3);
        compare({real[i % 2]}, t, s, run_graph::random_sources(t, dims, 1), 1);
      }
  }
}
TEST_CASE("mpi: loops with a run-time trip count") {
  const run_graph::traced t = run_graph::trace({{"AB"}, {"B"}, {""}}, [](const scope&, given x) {
    const auto goes_on = [&](symbol, symbol change) { return gs::less(x[2], change); };
    const auto turn = [&](symbol s, symbol) {
      const symbol inner = gs::repeat(x[2], [&](symbol u) { return u + gs::einsum<"ab->b">(u); }, s);
      const symbol next = 0.5 * s + gs::map<[](auto a, auto b) { return a / (1 + b * b); }>(inner, x[1]), change = next - s;
      return std::tuple(0.25 * next, gs::mean(change * change));
    };
    const auto [y, change] = gs::while_loop(goes_on, turn, x[0], gs::map<[](auto v) { return v + 1; }>(x[2]));
    return symbols{run_graph::lay_out(y), change};
  });
  for (const std::vector<int>& mesh : meshes()) {
    const backends real = all_on(mesh);
    const auto layouts = run_graph::all_layouts(2, int(mesh.size()));
    const gs::dims sizes[]{{{'A', 5}, {'B', 3}}, {{'A', 8}, {'B', 12}}};
    const double bounds[]{0.001, 1.5};
    for (std::size_t i = 0; i < layouts.size(); ++i)
      for (std::size_t k = 0; k < std::size_t(repetitions(4, 4)); ++k) {  // one of four: there are many combinations
        const std::size_t kind = (i / 2 + k) % 4;
        const gs::dims& dims = sizes[kind % 2];
        run_graph::setting s = run_graph::serial(t, dims);
        s.mesh = mesh;
        s.layouts[0] = layouts[i];
        s.layouts[3] = layouts[(5 * i + 1) % layouts.size()];
        run_graph::arrays inputs = run_graph::random_sources(t, dims, 1);
        inputs[2] = {bounds[kind / 2]};
        compare({real[i % 2]}, t, s, inputs, 2);
      }
  }
}

TEST_CASE("mpi: a scan and its gradient") {
  const run_graph::traced t = run_graph::trace({{"TAB"}, {"AB"}, {"BB"}}, [](const scope&, given x) {
    const auto [last, all] = gs::scan(
        [&](symbol, symbol s, symbol row) {
          const symbol next = gs::dropout(gs::map<[](auto v) { return gs::tanh(v); }>(gs::einsum<"ab,bc->ac">(s, x[2]) + row), 0.25);
          return std::tuple(next, next * s);
        },
        run_graph::lay_out(x[1]), x[0]);
    symbols results{last, run_graph::lay_out(all)};
    for (const symbol& g : gs::gradients(gs::sum(last * last) + gs::sum(all), x)) results.push_back(g);
    return results;
  });
  for (const std::vector<int>& mesh : meshes()) {
    const backends real = all_on(mesh);
    for (const gs::dims& dims : {gs::dims{{'T', 3}, {'A', 5}, {'B', 3}}, gs::dims{{'T', 0}, {'A', 4}, {'B', 6}}}) {
      const run_graph::arrays inputs = run_graph::random_sources(t, dims, 1);
      for (std::size_t i = 0; i < 12; ++i) {
        run_graph::setting s = run_graph::serial(t, dims);
        s.mesh = mesh;
        for (std::size_t k = 0; k < s.layouts.size(); ++k) {
          const auto layouts = run_graph::all_layouts(int(s.layouts[k].rank), int(mesh.size()));
          s.layouts[k] = layouts[((3 * k + 5) * i) % layouts.size()];
        }
        compare({real[i % 2]}, t, s, inputs, 2);
      }
    }
  }
}

TEST_CASE("mpi: when one process fails in an iteration, or finds another condition, all throw and none waits") {
  // Element i adds row i * iteration of a table with A rows. In some iteration that row does not exist.
  for (const bool in_condition : {false, true}) {
    const run_graph::traced t = run_graph::trace({{"A"}, {"A"}, {""}, {"A"}}, [&](const scope&, given x) {
      const auto rows = [&](symbol n) {
        return gs::gather(x[0], gs::cast<std::int32_t>(gs::map<[](auto first, auto times) { return first * times; }>(x[1], n)));
      };
      const auto goes_on = [&](symbol s, symbol n) {
        const symbol more = gs::less(n, x[2]);
        return in_condition ? more + 0.0 * gs::sum(rows(n) + s) : more;
      };
      const auto turn = [&](symbol s, symbol n) {
        const symbol next = in_condition ? s : s + rows(n);
        return std::tuple(next + 0.0 * gs::map<[](auto a, auto b) { return a - a + b; }>(s, gs::sum(next)),
                          gs::map<[](auto k) { return k + 1; }>(n));
      };
      return symbols{gs::while_loop(goes_on, turn, x[3], x[2] - x[2])[0]};
    });
    const gs::dims dims{{'A', 8}};
    run_graph::setting s = run_graph::serial(t, dims);
    s.mesh = {ranks()};
    s.layouts[1][0].push_back(0);
    s.layouts[3][0].push_back(0);
    const gs::plan_tables p = run_graph::plan(t, s);
    bound b(p, std::make_shared<gs::mpi_backend>(MPI_COMM_WORLD, s.mesh), dims);
    const auto said = [&](const run_graph::arrays& inputs) -> std::string {
      try {
        b.step(inputs, 0);
      } catch (const gs::error& e) {
        return e.what();
      }
      return {};
    };
    const run_graph::array table{1, 2, 3, 4, 5, 6, 7, 8}, zeros(8, 0.0);
    for (const int culprit : {0, 7})
      for (int again = 0; again < 2; ++again) {
        run_graph::array firsts = zeros;
        CHECK(said({table, firsts, {6}, zeros}) == "");
        firsts[std::size_t(culprit)] = 3;
        CHECK(said({table, firsts, {2}, zeros}) == "");
        const std::string text = said({table, firsts, {6}, zeros});
        CHECK(text.find("gather") != std::string::npos);
      }
    // A scalar that should be equal on all ranks.
    const std::string text = said({table, zeros, {double(2 + mpi_world::rank())}, zeros});
    CHECK((text.find("disagree on whether a loop continues after ") != std::string::npos) == (ranks() > 1));
    CHECK(said({table, zeros, {6}, zeros}) == "");
  }
}
