// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations that repeat data: no plan receives more than the plan of the same program with reshards before the operation.
#include "run_graph.hpp"

#include <gshard/core/trace/broadcast.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/index/one_hot.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/pad.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::symbol;
using run_graph::input, run_graph::lay_out;

namespace {

/// Reshards a tensor, or returns it.
using reshard = std::function<symbol(symbol)>;
/// A program that passes each operand of the operations that repeat data through `before`.
using repeats = std::function<symbol(std::span<const symbol> x, const reshard& before)>;

std::int64_t bytes_of(const run_graph::traced& t, const run_graph::setting& s) {
  const gs::plan_tables tables = run_graph::plan(t, s);
  const gs::plan_view plan = tables.view();
  return plan.bytes_received(plan.bind(s.dims, s.mesh));
}

using meshes = std::vector<std::vector<int>>;
const meshes one_axis{{4}, {3}, {7}}, one_or_two{{4}, {3}, {7}, {2, 2}, {2, 3}};

/// The first plan, of random shardings, that receives more than the plan with reshards before. With two axes, a plan may receive half as
/// much again if it computes each element on one device and the other plan on several. `fewer`: counts plans that receive less.
std::string costs_more(const std::vector<input>& inputs, const repeats& f, const gs::dims& dims, const meshes& on, int& fewer) {
  const auto traced_with = [&](const reshard& before) {
    return run_graph::trace(inputs, [&](const gs::parameter_scope&, std::span<const symbol> x) {
      return gs::list<symbol>(1, lay_out(f(x, before)));
    });
  };
  const run_graph::traced after = traced_with([](symbol x) { return x; }), before = traced_with(lay_out);
  std::mt19937 gen(11);
  for (const std::vector<int>& mesh : on)
    for (int n = 0; n < 1000; ++n) {
      run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {}, .options = {.known = dims, .start_bytes = 0}};
      for (const std::int32_t v : before.free) {
        const std::size_t i = s.layouts.size();
        const bool may_be_partial = i < inputs.size() && inputs[i].type != gs::dtype::i32 && mesh.size() == 1;
        const auto all = run_graph::all_layouts(before.graph.at(v).rank(), int(mesh.size()), may_be_partial);
        s.layouts.push_back(all[gen() % all.size()]);
      }
      const std::int64_t written = bytes_of(before, s);
      const std::string text = text_of(s);
      s.layouts.erase(s.layouts.begin() + std::ptrdiff_t(inputs.size()), s.layouts.end() - 1);  // the layouts of inputs and result stay
      const std::int64_t found = bytes_of(after, s);
      const std::int64_t most = written + (mesh.size() > 1 ? written / 2 : written / 1000);
      if (found > most) return std::to_string(found) + " bytes, and " + std::to_string(written) + " with " + text;
      fewer += found < written;
    }
  return "";
}

/// No sum of these tensors is so small that it is gathered in one call.
const std::vector<gs::dims> extents{{{'A', 4800}, {'B', 1200}, {'C', 7200}}, {{'A', 12001}, {'B', 25007}, {'C', 3001}}};

void check_repeats(const std::vector<input>& inputs, const repeats& f, const meshes& on = one_or_two) {
  int fewer = 0;
  for (const gs::dims& dims : extents) CHECK(costs_more(inputs, f, dims, on, fewer) == "");
  CHECK(fewer > 0);
}

}  // namespace

TEST_CASE("plans reshard what is repeated, before the operation that repeats it") {
  const input ids{"A", gs::dtype::i32, 'C'}, rows{"AB"}, row{"A"};
  SUBCASE("broadcast") {
    check_repeats({row, rows}, [](auto x, const reshard& before) { return gs::broadcast<"A,AB->AB">(before(x[0]), x[1]); });
  }
  SUBCASE("broadcast, and maps of it") {
    check_repeats({row, rows}, [](auto x, const reshard& before) { return gs::relu(2 * gs::broadcast<"A,AB->AB">(before(x[0]), x[1])); });
  }
  SUBCASE("one_hot") {
    check_repeats({ids, rows}, [](auto x, const reshard& before) {
      return gs::detail::emit_equal_index(before(x[0]), x[1].get().dims[1], gs::dtype::f64);
    });
  }
  SUBCASE("outer product") {
    check_repeats({row, {"B"}}, [](auto x, const reshard& before) { return gs::einsum<"A,B->AB">(before(x[0]), before(x[1])); });
  }
  SUBCASE("cast to a wider type") {
    check_repeats({{"AB", gs::dtype::f32}}, [](auto x, const reshard& before) { return gs::cast<double>(before(x[0])); });
  }
  SUBCASE("pad") {
    check_repeats({rows}, [](auto x, const reshard& before) { return gs::pad(before(x[0]), 1, 3, 20); });
  }
  SUBCASE("concat of broadcasts") {
    check_repeats({row, {"B"}, rows}, [](auto x, const reshard& before) {
      return gs::concat({gs::broadcast<"A,AB->AB">(before(x[0]), x[2]), gs::broadcast<"B,AB->AB">(before(x[1]), x[2])}, 1);
    });
  }
  SUBCASE("lookup") {  // with two axes, the sharding that propagates to its result may not be the cheapest
    check_repeats({{"CB"}, ids}, [](auto x, const reshard& before) { return gs::gather(x[0], before(x[1])); }, one_axis);
  }
}
