// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/all_operations.hpp>
#include <gshard/exec/collective/make_collective.hpp>

#include "../run_graph.hpp"
#include "on_devices.hpp"

#include <gshard/core/trace/einsum.hpp>
#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/rows/softmax.hpp>

#include <algorithm>
#include <numeric>
#include <random>

namespace gs = gshard;
using gs::symbol;
using run_graph::every_sharding, run_graph::trace, run_graph::lay_out;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {
const std::vector<gs::dims> all_sizes{
    {{'A', 6}, {'B', 12}, {'C', 6}}, {{'A', 5}, {'B', 7}, {'C', 3}}, {{'A', 2}, {'B', 1}, {'C', 4}}};
}

TEST_CASE("every layout to every layout, through every sequence of moves") {
  for (const bool pending : {false, true}) {
    const run_graph::sweep how{.dims = all_sizes, .pending_sources = pending, .most = 1000};
    every_sharding(trace({{"A"}}, [](const scope&, given x) { return symbols{lay_out(x[0])}; }), how);
    every_sharding(trace({{"AB"}}, [](const scope&, given x) { return symbols{lay_out(x[0])}; }), how);
    every_sharding(trace({{"ABC"}},
                         [](const scope&, given x) {
                           return symbols{lay_out(x[0]), lay_out(lay_out(x[0]))};
                         }),
                   how);
  }
  every_sharding(
      trace({{"AB", gs::dtype::i32, 'A'}}, [](const scope&, given x) { return symbols{lay_out(x[0])}; }),
      {all_sizes});
}

TEST_CASE("layouts on three axes") {
  const run_graph::traced t = trace({{"AB"}}, [](const scope&, given x) { return symbols{lay_out(x[0])}; });
  const auto from = run_graph::all_layouts(2, 3, true), to = run_graph::all_layouts(2, 3);
  for (const std::vector<int>& mesh : {std::vector{2, 2, 2}, std::vector{3, 1, 2}})
    for (const gs::dims& dims : {gs::dims{{'A', 24}, {'B', 12}}, gs::dims{{'A', 11}, {'B', 3}}}) {
      const run_graph::arrays whole = run_graph::random_sources(t, dims, 2);
      int wrong = 0;
      for (const gs::sharding& f : from)
        for (const gs::sharding& g : to) {
          const run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {f, g}};
          if (run_graph::run(t, s, whole) != whole && ++wrong <= 3) FAIL_CHECK(run_graph::text_of(s));
        }
      CHECK(wrong == 0);
    }
}

TEST_CASE("every layout in every order of the devices to every other") {
  run_graph::traced t = trace({{"AB"}}, [](const scope&, given x) { return symbols{lay_out(x[0])}; });
  std::mt19937 gen(3);
  for (const std::vector<int>& mesh : {std::vector{2}, {3}, {4}, {2, 2}, {2, 3}}) {
    // The mesh's own order, and up to six others.
    const int devices = gs::device_count(mesh);
    std::vector<int> order(static_cast<std::size_t>(devices));
    std::iota(order.begin(), order.end(), 0);
    t.graph.orders = {};
    int orders = 1;
    for (int i = 0; i < (devices == 2 ? 1 : devices == 3 ? 5 : 6); ++i, ++orders) {
      if (devices < 4) std::next_permutation(order.begin(), order.end());
      else std::shuffle(order.begin(), order.end(), gen);
      t.graph.orders.append(order.data(), order.size());
    }
    const auto all = run_graph::all_layouts(2, int(mesh.size()));
    for (const gs::dims& dims : {gs::dims{{'A', 12}, {'B', 12}}, gs::dims{{'A', 5}, {'B', 3}}}) {
      const run_graph::arrays whole = run_graph::random_sources(t, dims, 2);
      int wrong = 0;
      for (gs::sharding from : run_graph::all_layouts(2, int(mesh.size()), true))
        for (gs::sharding to : all)
          for (int f = 0; f < (from.used() && !from.partial ? orders : 1); ++f)
            for (int g = 0; g < (to.used() ? orders : 1); ++g) {
              if (devices > 4 && gen() % 8) continue;
              from.order = std::uint8_t(f);
              to.order = std::uint8_t(g);
              run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {from, to}, .known_axes = "xy"};
              s.options.uneven = true;
              if (gen() % 2) s.options.known = dims;
              const gs::plan_tables p = run_graph::plan(t, s);
              const gs::any_cluster on(run_graph::mesh_of_rank(mesh.size()), std::make_shared<gs::simulated>(mesh));
              gs::executor e(p.view(), gs::all_kernels, on, dims, gs::parameter_store(on));
              run_graph::scatter(on, e.input(0), whole[0]);
              e.run({});
              std::int64_t received = 0;
              for (const gs::op_ref kind : gs::all_operations) received += e.received(kind).bytes;
              const bool exact = dims.find('A') == 12 || (!from.partial && (f || g));  // sums, and the mesh's order: if extents divide
              const bool alone = from.order != to.order && from.axes[0] == to.axes[0] && from.axes[1] == to.axes[1] && !from.partial;
              if ((alone && (p.view().collectives() != 1 || p.view().count(gs::op::collective_permute) != 1)) ||
                  run_graph::collect(on, e.output(0)) != whole[0] || (exact && received != p.view().bytes_received(e.sizes())))
                if (++wrong <= 3)
                  FAIL_CHECK(run_graph::text_of(s) << " orders " << f << " " << g << ": received " << received << ", planned "
                                                   << p.view().bytes_received(e.sizes()));
            }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("operations on tensors in other orders of the devices") {
  for (const std::vector<int>& mesh : {std::vector{4}, {2, 2}}) {
    run_graph::traced t = trace({{"AB"}, {"BC"}}, [](const scope&, given x) {
      const symbol y = lay_out(gs::einsum<"AB,BC->AC">(x[0], lay_out(x[1])));
      return symbols{y, gs::softmax(y), gs::cumsum(lay_out(y), 0)};
    });
    t.graph.orders = {3, 2, 1, 0, 0, 2, 1, 3};
    const gs::dims dims{{'A', 7}, {'B', 4}, {'C', 6}};
    const run_graph::arrays sources = run_graph::random_sources(t, dims, 3),
                            expected = run_graph::run(t, run_graph::serial(t, dims), sources);
    const auto all = run_graph::all_layouts(2, int(mesh.size()));
    std::mt19937 gen(9);
    for (int i = 0; i < 300; ++i) {
      run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {}, .known_axes = "xy"};
      s.options.uneven = true;
      for (std::size_t k = 0; k < t.free.size(); ++k) {
        s.layouts.push_back(all[gen() % all.size()]);
        if (s.layouts.back().used()) s.layouts.back().order = std::uint8_t(gen() % 3);
      }
      CHECK(run_graph::distance(run_graph::run(t, s, sources), expected) <= 1e-12);
    }
  }
}

namespace {

/// The outputs' bits on every device, and the traffic.
struct outcome {
  std::vector<std::vector<std::byte>> bits;
  std::int64_t calls = 0, bytes = 0, planned = 0;
};
outcome run_on_devices(const run_graph::traced& t, const run_graph::setting& s, const run_graph::arrays& sources) {
  const gs::plan_tables p = run_graph::plan(t, s);
  const gs::any_cluster on(run_graph::mesh_of_rank(s.mesh.size()), std::make_shared<gs::simulated>(s.mesh));
  gs::executor e(p.view(), gs::all_kernels, on, s.dims, gs::parameter_store(on));
  for (std::size_t i = 0; i < p.inputs.size(); ++i) run_graph::scatter(on, e.input(i), sources[i]);
  e.run(s.context);
  outcome result;
  for (std::size_t o = 0; o < p.outputs.size(); ++o)
    for (std::size_t d = 0; d < on.devices().size(); ++d)
      result.bits.emplace_back(e.output(o).data[d], e.output(o).data[d] + e.output(o).bytes(d));
  for (const gs::op_ref kind : gs::all_operations) {
    result.calls += e.received(kind).calls;
    result.bytes += e.received(kind).bytes;
  }
  result.planned = p.view().bytes_received(e.sizes());
  return result;
}

}  // namespace

TEST_CASE("tensors that go together are the same bits as one by one") {
  const run_graph::traced t = trace({{"AB"}, {"BC"}, {"CA"}, {"AC", gs::dtype::f32}, {"BA", gs::dtype::f32}, {"AB", gs::dtype::i32, 'A'}},
                                    [](const scope&, given x) {
                                      symbols tenths, results;
                                      for (const symbol& s : x) tenths.push_back(s.get().type == gs::dtype::i32 ? s : 0.1 * s);
                                      for (const symbol& s : tenths) results.push_back(lay_out(s));
                                      return results;
                                    });
  std::mt19937 gen(11);
  int wrong = 0, fewer = 0;
  for (int turn = 0; turn < 1500; ++turn) {
    const std::vector<std::vector<int>> meshes{{2}, {4}, {2, 3}, {3, 1}};
    run_graph::setting s{.mesh = meshes[gen() % meshes.size()], .dims = all_sizes[gen() % all_sizes.size()], .layouts = {}};
    const bool divides = s.mesh.size() == 1 ? s.mesh[0] == 2 && s.dims.find('A') == 6 : s.mesh[1] == 3 && s.dims.find('A') == 6;
    const auto from = run_graph::all_layouts(2, int(s.mesh.size()), gen() % 2 == 0), to = run_graph::all_layouts(2, int(s.mesh.size()));
    // Only a few layouts per program, so that many moves are equal.
    const gs::sharding froms[] = {from[gen() % from.size()], from[gen() % from.size()]},
                       tos[] = {to[gen() % to.size()], to[gen() % to.size()]};
    for (std::size_t i = 0; i < t.free.size(); ++i) s.layouts.push_back(i < t.sources() ? froms[gen() % 2] : tos[gen() % 2]);
    s.layouts[5].partial = 0;
    if (gen() % 2) {
      s.options.known = s.dims;
      s.options.uneven = true;
      s.known_axes = "xy";
    }
    const run_graph::arrays sources = run_graph::random_sources(t, s.dims, std::uint32_t(turn));
    const outcome together = run_on_devices(t, s, sources);
    s.options.combine_bytes = 0;
    const outcome alone = run_on_devices(t, s, sources);
    fewer += together.calls < alone.calls;
    const bool counted = !divides || together.bytes == together.planned;
    if ((together.bits != alone.bits || together.calls > alone.calls || !counted) && ++wrong <= 3) FAIL_CHECK(run_graph::text_of(s));
  }
  CHECK(wrong == 0);
  CHECK(fewer > 500);
}

TEST_CASE("what is no collective is refused") {
  const gs::any_cluster on(run_graph::mesh_of_rank(1), std::make_shared<gs::simulated>(std::vector{2}));
  const gs::detail::bound_value v;
  CHECK_THROWS_WITH_AS(gs::detail::step_moves(gs::op::softmax, on, 1, {{v, v}}),
                       "executor: a plan step of kind softmax cannot be run", gs::error);
}

TEST_CASE("every kind of step runs in its own way") {
  using namespace gs::detail;
  const auto kind_of = [](const on_devices::cluster& c, gs::op_ref kind, std::pair<std::int64_t, std::int64_t> extents, int from, int to,
                          bool early = false) {
    const on_devices::matrix in(c, extents, {from, -1}, kind == gs::op::all_reduce || kind == gs::op::reduce_scatter),
        out(c, extents, {-1, to});
    return make_collective(collectives_for<all_move_kinds>, step_moves(kind, c.on, 1, {{in.value, out.value}}),
                           std::make_shared<collective_room>(), early);
  };
  const on_devices::cluster alone({1}), node({4}), nodes({4}, {0, 0, 1, 1});
  CHECK(dynamic_cast<local_copy*>(kind_of(alone, gs::op::all_to_all, {8, 8}, 0, 0).get()));
  CHECK(dynamic_cast<local_copy*>(kind_of(alone, gs::op::all_reduce, {8, 8}, -1, -1).get()));
  CHECK(dynamic_cast<local_copy*>(kind_of(node, gs::op::slice, {8, 8}, -1, 0).get()));
  CHECK(dynamic_cast<exchange_in_rounds*>(kind_of(node, gs::op::all_to_all, {8, 8}, 0, 0).get()));
  CHECK(dynamic_cast<gather_at_once*>(kind_of(node, gs::op::all_gather, {8, 8}, 0, -1).get()));
  CHECK(dynamic_cast<exchange_in_rounds*>(kind_of(node, gs::op::all_gather, {8, 8}, 0, -1, true).get()));
  CHECK(dynamic_cast<gather_by_node*>(kind_of(nodes, gs::op::all_gather, {8, 8}, 0, -1).get()));
  CHECK(dynamic_cast<reduce_scatter_step*>(kind_of(nodes, gs::op::reduce_scatter, {8, 8}, -1, 0).get()));
  CHECK(dynamic_cast<all_reduce_step*>(kind_of(nodes, gs::op::all_reduce, {8, 8}, -1, -1).get()));
}

TEST_CASE("a table has the kinds of its program only, and every program may copy on one device") {
  using namespace gs::detail;
  constexpr const collective_table& sums = collectives_for<1u << unsigned(move_kind::all_reduce)>;
  static_assert(sums.make[std::size_t(move_kind::all_reduce)] == &make_all_reduce);
  static_assert(sums.make[std::size_t(move_kind::ragged)] == nullptr);
  static_assert(move_kind_of(gs::op::collective_permute) == move_kind::exchange);
  static_assert(move_kind_of(gs::op::ragged_all_to_all) == move_kind::ragged);
  const on_devices::cluster c({2});
  const on_devices::matrix whole(c, {4, 4}, {-1, -1}), rows(c, {4, 4}, {0, -1});
  const auto room = std::make_shared<collective_room>();
  CHECK(make_collective(sums, step_moves(gs::op::slice, c.on, 1, {{whole.value, rows.value}}), room) != nullptr);
  CHECK_THROWS_WITH_AS(make_collective(sums, step_moves(gs::op::all_gather, c.on, 1, {{rows.value, whole.value}}), room),
                       "executor: no collective of this program runs a step of kind all_gather", gs::error);
}
