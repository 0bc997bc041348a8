// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../mpi_world.hpp"
#include "on_mesh.hpp"

#include <gshard/cluster/mpi.hpp>
#include <gshard/exec/kernel/move/cast.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Runs one program on MPI ranks and on as many simulated devices: the same bits.
namespace on_ranks {

namespace gs = gshard;
using mpi_world::ranks;

/// One backend for every mesh, with messages or shared memory, because creating communicators takes long.
inline std::shared_ptr<gs::backend> backend_on(const std::vector<int>& mesh, bool shared_memory) {
  static std::map<std::pair<std::vector<int>, bool>, std::shared_ptr<gs::backend>> known;
  std::shared_ptr<gs::backend>& b = known[{mesh, shared_memory}];
  if (!b) b = std::make_shared<gs::mpi_backend>(MPI_COMM_WORLD, mesh, gs::mpi_options{.shared_memory = shared_memory});
  return b;
}

/// The bytes that this rank has received in all programs so far.
inline std::int64_t received = 0;

/// A program, bound to ranks and to as many simulated devices.
class both {
 public:
  both(on_mesh::prepared p, bool shared_memory)
      : program_(std::move(p)),
        plan_(run_graph::plan(program_.program, program_.setting)),
        real_(plan_, backend_on(program_.setting.mesh, shared_memory), program_.setting.dims),
        simulated_(plan_, std::make_shared<gs::simulated>(program_.setting.mesh), program_.setting.dims) {}

  void run() { real_.run(program_); }

  /// The first difference between the last run and the simulation on this rank, or nothing. All NaNs are equal. Also compares the received
  /// bytes.
  std::string difference() {
    simulated_.run(program_);
    const auto device = std::size_t(real_.on.devices()[0]);
    const std::int64_t here = real_.executor.received_in_run()[0], counted = simulated_.executor.received_in_run()[device];
    received += here;
    if (here != counted)
      return "device " + std::to_string(device) + " receives " + std::to_string(here) + " bytes, simulated " + std::to_string(counted);
    const std::size_t outputs = plan_.outputs.size();
    for (std::size_t i = 0; i < outputs + plan_.parameters.size(); ++i) {
      const auto mine = elements(real_.result(i, outputs), 0), there = elements(simulated_.result(i, outputs), device);
      if (const std::string said = on_mesh::difference(mine, there, on_mesh::same_bits); !said.empty())
        return "device " + std::to_string(device) + ", result " + std::to_string(i) + ": " + said;
    }
    return {};
  }

 private:
  struct bound {
    gs::any_cluster on;
    gs::executor executor;
    decltype(gs::plan_tables::parameters) names;

    bound(const gs::plan_tables& p, std::shared_ptr<gs::backend> b, const gs::dims& dims)
        : on(p.mesh, std::move(b)), executor(p.view(), gs::all_kernels, on, dims, gs::parameter_store(on)), names(p.parameters) {}
    void run(const on_mesh::prepared& p) {
      const std::size_t inputs = p.program.inputs.size();
      for (std::size_t i = inputs; i < p.sources.size(); ++i) run_graph::scatter(on, parameter(i - inputs), p.sources[i]);
      gs::run_context context = p.setting.context;
      for (int step = 0; step < p.setting.steps; ++step, ++context.step) {
        for (std::size_t i = 0; i < inputs; ++i) run_graph::scatter(on, executor.input(i), p.sources[i]);
        executor.run(context);
      }
    }
    const gs::detail::bound_value& parameter(std::size_t i) { return executor.store().find(names[i].name.view())->value; }
    const gs::detail::bound_value& result(std::size_t i, std::size_t outputs) {
      return i < outputs ? executor.output(i) : parameter(i - outputs);
    }
  };

  on_mesh::prepared program_;
  gs::plan_tables plan_;
  bound real_, simulated_;

  static run_graph::array elements(const gs::detail::bound_value& v, std::size_t i) {
    run_graph::array list;
    gs::detail::with_element(v.type, [&]<class T>(T*) {
      for (std::int64_t e = 0; e < v.elements(i); ++e) list.push_back(gs::kernel::detail::converted<double>(v.as<T>(i)[e]));
    });
    return list;
  }
};

/// The text of the first rank with a non-empty text, on all ranks.
inline std::string of_all_ranks(const std::string& mine) {
  int first = mine.empty() ? ranks() : mpi_world::rank();
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == ranks()) return {};
  std::string text = mine;
  int size = int(text.size());
  MPI_Bcast(&size, 1, MPI_INT, first, MPI_COMM_WORLD);
  text.resize(std::size_t(size));
  MPI_Bcast(text.data(), size, MPI_CHAR, first, MPI_COMM_WORLD);
  return "rank " + std::to_string(first) + ": " + text;
}

}  // namespace on_ranks
