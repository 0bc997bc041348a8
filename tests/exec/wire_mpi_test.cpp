// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors that are sent in bf16 between MPI ranks: the bits and bytes of simulated devices, with shared memory or messages, on any nodes.
#include "../mpi_world.hpp"
#include "run_graph.hpp"

#include <gshard/cluster/mpi.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/wire.hpp>
#include <gshard/exec/backend/simulated.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/ops/window/roll.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::dtype, gs::symbol;
using mpi_world::ranks;

namespace {

/// A plan on a backend. Inputs are random numbers that are not exact in bf16. Each device always gets the same ones.
class wire_run {
 public:
  wire_run(const gs::plan_tables& p, std::shared_ptr<gs::backend> b, const gs::dims& dims)
      : on_(p.mesh, std::move(b)), run_(p.view(), gs::all_kernels, on_, dims, gs::parameter_store(on_)), outputs_(p.outputs.size()) {
    for (std::size_t k = 0; k < p.inputs.size(); ++k)
      for (std::size_t i = 0; i < on_.devices().size(); ++i) {
        const gs::detail::bound_value& v = run_.input(k);
        // Copies of a shard are equal on all devices.
        std::uint64_t seed = 100 * k;
        for (int d = 0; d < v.rank(); ++d) seed = seed * 31 + std::uint64_t(v.places[i].offset[std::size_t(d)]);
        if (v.layout.partial) seed = seed * 31 + std::uint64_t(on_.devices()[i]);
        std::mt19937 gen{std::uint32_t(seed)};
        std::uniform_real_distribution<float> uniform(-1, 1);
        for (std::int64_t e = 0; e < v.elements(i); ++e) v.as<float>(i)[e] = uniform(gen);
      }
    run_.run({});
  }
  std::size_t outputs() const { return outputs_; }
  std::string bytes(std::size_t output, int device) const {
    const gs::detail::bound_value& v = run_.output(output);
    for (std::size_t i = 0; i < on_.devices().size(); ++i)
      if (on_.devices()[i] == device) return {reinterpret_cast<const char*>(v.data[i]), std::size_t(v.bytes(i))};
    return "no such device";
  }

 private:
  gs::any_cluster on_;
  gs::executor run_;
  std::size_t outputs_;
};

}  // namespace

TEST_CASE("on_wire, mpi: the bits and bytes of simulated devices") {
  const int me = mpi_world::rank();
  const run_graph::traced t = run_graph::trace({{"AB", dtype::f32}}, [](const gs::parameter_scope&, std::span<const symbol> x) {
    const symbol y = gs::on_wire<gs::bfloat16>(x[0]);
    return gs::list<symbol>{run_graph::lay_out(y), gs::on_wire<gs::bfloat16>(gs::einsum<"AB->B">(y)), gs::roll(y, 0, 1)};
  });
  std::vector<std::vector<int>> meshes{{ranks()}};
  if (ranks() == 4) meshes.push_back({2, 2});
  for (const std::vector<int>& mesh : meshes)
    for (const bool shared : {false, true})
      for (const int node_size : {0, 2}) {
        if (shared && node_size != 0) continue;
        const auto real =
            std::make_shared<gs::mpi_backend>(MPI_COMM_WORLD, mesh, gs::mpi_options{.node_size = node_size, .shared_memory = shared});
        const auto from = run_graph::all_layouts(2, int(mesh.size()), true), to = run_graph::all_layouts(2, int(mesh.size()));
        for (const gs::dims& dims : std::vector<gs::dims>{{{'A', 8}, {'B', 12}}, {{'A', 7}, {'B', 3}}, {{'A', 301}, {'B', 257}}})
          for (std::size_t i = 0; i < from.size() * to.size(); i += 1 + std::size_t(dims.find('A') == 301) * 2) {
            const run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {from[i / to.size()], to[i % to.size()]}};
            CAPTURE(run_graph::text_of(s));
            CAPTURE(shared);
            CAPTURE(node_size);
            const gs::plan_tables plan = run_graph::plan(t, s);
            const auto alike = std::make_shared<gs::simulated>(mesh, real->nodes());
            real->reset_received();
            const wire_run here(plan, real, dims), there(plan, alike, dims);
            for (std::size_t o = 0; o < here.outputs(); ++o) CHECK((here.bytes(o, me) == there.bytes(o, me)));
            const gs::traffic &a = real->received()[0], &b = alike->received()[std::size_t(me)];
            CHECK(a.exchange_bytes + a.gather_bytes == b.exchange_bytes + b.gather_bytes);
            if (!shared) CHECK(a.between_nodes == b.between_nodes);
          }
      }
}
