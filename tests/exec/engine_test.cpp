// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/engine.hpp>

#include "run_graph.hpp"

#include <gshard/trace/map.hpp>

#include <memory>
#include <span>
#include <vector>

namespace gs = gshard;

TEST_CASE("an engine calls the hook of its owner, which may change between runs") {
  const run_graph::traced t = run_graph::trace(
      {{"A"}}, [](const gs::parameter_scope&, std::span<const gs::symbol> x) { return gs::list<gs::symbol>{gs::relu(x[0])}; });
  const run_graph::setting s = run_graph::serial(t, {{'A', 3}});
  const gs::plan_tables p = run_graph::plan(t, s);
  const gs::any_cluster on(run_graph::mesh_of_rank(s.mesh.size()), std::make_shared<gs::simulated>(s.mesh));
  gs::executor run(p.view(), gs::all_kernels, on, s.dims, gs::parameter_store(on));
  CHECK(run.threads >= 1);
  int before = 0, after = 0;
  run.run({});
  run.hook = [&](const gs::node& n, bool begins) {
    CHECK(n.kind == gs::op::map);
    ++(begins ? before : after);
  };
  run.run({});
  run.hook = nullptr;
  run.run({});
  CHECK(before == 1);
  CHECK(after == 1);
  CHECK(run.runs() == 3);
}
