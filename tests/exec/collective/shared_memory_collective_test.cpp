// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Devices as threads of one process, which read one another's memory: the same bits as with simulated messages.
#include "../run_graph.hpp"

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace gs = gshard;
using gs::symbol;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

/// The shared state of the threads.
struct team {
  explicit team(std::vector<int> m) : mesh(std::move(m)), all(gs::device_count(mesh)), shown(std::size_t(gs::device_count(mesh))) {}
  std::vector<int> mesh;
  std::barrier<> all;
  std::vector<std::vector<const std::byte*>> shown;
};

/// One device of the team. It has no messages: a step that sends one fails the test.
class thread_backend final : public gs::backend {
 public:
  thread_backend(team& others, int device) : backend(others.mesh, {device}), team_(others) {}
  bool shares_memory() const override { return true; }
  std::shared_ptr<std::byte> share(std::int64_t bytes) override {
    auto memory = std::make_shared<gs::buffer>(bytes);
    return {memory, memory->data()};
  }
  std::vector<const std::byte*> find_shared(std::span<const std::byte* const> mine) override {
    team_.shown[std::size_t(devices()[0])].assign(mine.begin(), mine.end());
    team_.all.arrive_and_wait();
    std::vector<const std::byte*> all;
    for (const auto& of_one : team_.shown) all.insert(all.end(), of_one.begin(), of_one.end());
    team_.all.arrive_and_wait();
    return all;
  }
  void barrier(std::uint32_t) override { team_.all.arrive_and_wait(); }

 private:
  std::size_t do_start(std::uint32_t, std::span<const gs::exchange_part>, const gs::exchange_bounds&, bool) override {
    throw gs::error("an exchange was started");
  }
  void do_finish(std::size_t) override {}
  void do_all_gather(std::uint32_t, std::span<const gs::gather_part>) override { throw gs::error("an all_gather was made"); }
  team& team_;
};

struct device_outcome {
  std::vector<std::vector<std::byte>> bits;
  gs::traffic received;
  std::string problem;
};

device_outcome run(const gs::plan_tables& p, const run_graph::setting& s, const run_graph::arrays& sources, const gs::any_cluster& on,
                   std::size_t device) {
  device_outcome r;
  r.problem = gs::detail::problem_of([&] {
    gs::executor e(p.view(), gs::all_kernels, on, s.dims, gs::parameter_store(on));
    for (int turn = 0; turn < 3; ++turn) {
      for (std::size_t i = 0; i < sources.size(); ++i) run_graph::scatter(on, e.input(i), sources[i]);
      e.run({});
    }
    for (std::size_t d = 0; d < on.devices().size(); ++d)
      for (std::size_t o = 0; o < p.outputs.size(); ++o)
        r.bits.emplace_back(e.output(o).data[d], e.output(o).data[d] + e.output(o).bytes(d));
    r.received = on.backend().received()[device];
  }).text;
  return r;
}

}  // namespace

TEST_CASE("shared steps: every layout to every layout, alone and together, to the bits and bytes of messages") {
  const run_graph::traced t = run_graph::trace({{"AB"}, {"BA"}}, [](const scope&, given x) {
    return symbols{run_graph::lay_out(0.1 * x[0]), run_graph::lay_out(0.1 * x[1])};
  });
  std::mt19937 gen(7);
  int wrong = 0, moved = 0;
  for (const std::vector<int>& mesh : {std::vector{2}, {3}, {4}}) {  // one axis: all threads are in one group
    const auto from = run_graph::all_layouts(2, 1, true), to = run_graph::all_layouts(2, 1);
    for (const gs::dims& dims : {gs::dims{{'A', 7}, {'B', 3}}, gs::dims{{'A', 48}, {'B', 36}}, gs::dims{{'A', 300}, {'B', 517}}})
      for (std::size_t i = 0; i < from.size() * to.size(); ++i) {
        run_graph::setting s{.mesh = mesh,
                             .dims = dims,
                             .layouts = {from[i / to.size()], from[gen() % from.size()], to[i % to.size()], to[gen() % to.size()]}};
        if (gen() % 2) s.layouts = {s.layouts[0], s.layouts[0], s.layouts[2], s.layouts[2]};
        // Sums of few elements would be sent as messages.
        if (dims.find('A') == 7) for (gs::sharding& l : s.layouts) l.partial = 0;
        const run_graph::arrays sources = run_graph::random_sources(t, dims, std::uint32_t(i));
        const gs::plan_tables p = run_graph::plan(t, s);
        const gs::any_cluster simulated(run_graph::mesh_of_rank(1), std::make_shared<gs::simulated>(mesh));
        const device_outcome expected = run(p, s, sources, simulated, 0);
        REQUIRE(expected.problem == "");
        team all(mesh);
        const auto n = std::size_t(gs::device_count(mesh));
        std::vector<device_outcome> got(n);
        std::vector<std::thread> threads;
        for (std::size_t d = 0; d < n; ++d)
          threads.emplace_back([&, d] {
            const gs::any_cluster on(run_graph::mesh_of_rank(1), std::make_shared<thread_backend>(all, int(d)));
            got[d] = run(p, s, sources, on, 0);
          });
        for (std::thread& one : threads) one.join();
        bool same = true;
        for (std::size_t d = 0; d < n; ++d) {
          same =
              same && got[d].problem.empty() && got[d].received == simulated.backend().received()[d] &&
              got[d].bits.size() == p.outputs.size();
          for (std::size_t o = 0; same && o < p.outputs.size(); ++o) same = got[d].bits[o] == expected.bits[d * p.outputs.size() + o];
          moved += got[d].received.exchanges > 0 || got[d].received.gathers > 0;
        }
        if (!same && ++wrong <= 3) FAIL_CHECK(run_graph::text_of(s) << ": " << got[0].problem);
      }
  }
  CHECK(wrong == 0);
  CHECK(moved > 100);
}
