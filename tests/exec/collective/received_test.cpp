// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/all_operations.hpp>
#include <gshard/exec/collective/received.hpp>

#include "../run_graph.hpp"

#include <memory>
#include <random>
#include <span>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::symbol;
using run_graph::lay_out;

// Extents are multiples of all axes, so nothing is rounded.
TEST_CASE("moves that are combined receive, kind by kind, what the plan says") {
  const run_graph::traced t = run_graph::trace({{"AB"}, {"BC"}, {"CA"}, {"AC"}}, [](const gs::parameter_scope&, std::span<const symbol> x) {
    gs::list<symbol> results;
    for (const symbol& s : x) results.push_back(lay_out(s));
    return results;
  });
  const gs::dims dims{{'A', 36}, {'B', 12}, {'C', 24}};
  const std::vector<std::vector<int>> meshes{{2}, {3}, {2, 2}, {2, 3}};
  std::mt19937 gen(5);
  int several = 0;
  for (int turn = 0; turn < 2000; ++turn) {
    run_graph::setting s{.mesh = meshes[gen() % meshes.size()], .dims = dims, .layouts = {}};
    const auto layouts = run_graph::all_layouts(2, int(s.mesh.size()));
    for (std::size_t i = 0; i < t.free.size(); ++i) s.layouts.push_back(layouts[gen() % layouts.size()]);
    const gs::plan_tables p = run_graph::plan(t, s);
    int kinds = 0;
    for (const gs::op_ref kind : gs::all_operations) kinds += kind->collective ? p.view().count(kind) : 0;
    if (kinds == p.view().collectives()) continue;  // no step has several kinds
    ++several;
    const gs::any_cluster on(run_graph::mesh_of_rank(s.mesh.size()), std::make_shared<gs::simulated>(s.mesh));
    gs::executor run(p.view(), gs::all_kernels, on, dims, gs::parameter_store(on));
    for (int calls = 1; calls <= 2; ++calls) {
      run.run({});
      bool same = true;
      std::int64_t total = 0;
      for (const gs::op_ref kind : gs::all_operations) {
        same = same && run.received(kind).calls == calls * (kind->collective ? p.view().count(kind) : 0) &&
               run.received(kind).bytes == calls * p.view().bytes_received(kind, run.sizes());
        total += run.received(kind).bytes;
      }
      if (!same || total != calls * p.view().bytes_received(run.sizes())) FAIL_CHECK(run_graph::text_of(s));
    }
  }
  CHECK(several > 100);
}
