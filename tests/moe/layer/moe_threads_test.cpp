// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whole mixture-of-experts programs, with their gradients, on several threads.
#include <gshard/moe/layer/moe.hpp>

#include <gshard/testing/check_shardings.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::symbol;

namespace {

/// Like gs::testing::run, on a number of threads.
gs::testing::arrays run_on(int threads, const gs::testing::traced& t, const gs::testing::setting& s, const gs::testing::arrays& sources) {
  const gs::plan_tables tables = gs::testing::plan(t, s);
  const gs::any_cluster on(gs::testing::mesh_of_rank(s.mesh.size()), std::make_shared<gs::simulated>(s.mesh));
  gs::executor e(tables.view(), gs::all_kernels, on, s.dims, gs::parameter_store(on));
  e.threads = threads;
  const std::size_t inputs = tables.inputs.size();
  for (std::size_t i = 0; i < inputs; ++i) gs::testing::scatter(on, e.input(i), sources[i]);
  for (std::size_t i = 0; i < tables.parameters.size(); ++i)
    gs::testing::scatter(on, e.store().find(tables.parameters[i].name.view())->value, sources[inputs + i]);
  e.run(s.context);
  gs::testing::arrays results;
  for (std::size_t i = 0; i < tables.outputs.size(); ++i) results.push_back(gs::testing::collect(on, e.output(i)));
  return results;
}

}  // namespace

TEST_CASE("moe: the same bits with every number of threads, results and gradients") {
  using options = gs::nn::moe_options;
  const std::pair<const char*, options> cases[]{
      {"slots", {.biases = true}},
      {"dropless", {.experts = gs::experts::dropless(), .swiglu = true, .biases = true}},
      {"dropless in groups, few rows", {.routing = {.k = 3}, .experts = gs::experts::dropless(3, {1})}},
  };
  // Without shared experts: on several threads, Eigen's products larger than 128^3 are rounded differently. See executor::threads. Uneven,
  // and so large that threads share rows, tokens and products.
  const gs::dims dims{{'G', 3}, {'S', 211}, {'M', 67}, {'E', 7}, {'F', 93}};
  for (const auto& [name, o] : cases) {
    CAPTURE(std::string(name));
    const gs::testing::traced t =
        gs::testing::trace({{"GSM"}, {"GS"}}, [&, o = o](const gs::parameter_scope& m, std::span<const symbol> x) {
          const gs::nn::moe_result r = gs::nn::moe<"x">(m, x[0], x[1], o);
          const symbol loss = m.objective(gs::mean(r.y * r.y), 0.1);
          gs::list<symbol> wanted{x[0]}, results{r.y, r.load, r.overflow, loss};
          for (const gs::parameter& p : m.owner().program.parameters) wanted.push_back({&m.owner(), p.value});
          for (const symbol& g : gs::gradients(loss, gs::list_view(wanted.data(), wanted.size()))) results.push_back(g);
          return results;
        });
    gs::testing::arrays sources = gs::testing::random_sources(t, dims, 3);
    for (std::size_t i = 0; i < sources[0].size(); ++i) sources[0][i] = std::sin(1.7 * double(i));
    for (std::size_t i = 0; i < sources[1].size(); ++i) sources[1][i] = i % 9 == 4 ? 0 : 1;
    for (std::size_t p = 2; p < sources.size(); ++p)
      for (std::size_t i = 0; i < sources[p].size(); ++i) sources[p][i] = 0.3 * std::cos(0.9 * double(i + p));
    gs::testing::setting s = gs::testing::serial(t, dims);
    for (const int devices : {1, 2}) {
      s.mesh = {devices};
      if (devices > 1) s.layouts[0][0].push_back(0);
      const gs::testing::arrays one = run_on(1, t, s, sources);
      CHECK(one[1] != gs::testing::array(7, 0.0));
      for (const int threads : {2, 3, 5}) {
        CAPTURE(devices);
        CAPTURE(threads);
        const gs::testing::arrays several = run_on(threads, t, s, sources);
        for (std::size_t r = 0; r < one.size(); ++r) {
          CAPTURE(r);
          CHECK(several[r] == one[r]);
        }
      }
    }
  }
}
