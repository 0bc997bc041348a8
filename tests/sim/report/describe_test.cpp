// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/report/describe.hpp>

#include <gshard/core/program/program.hpp>
#include <gshard/core/trace/assignment.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/loop/loop.hpp>
#include <gshard/ops/shards/collectives.hpp>
#include <gshard/ops/shards/per_shard.hpp>
#include <gshard/ops/window/convolution.hpp>
#include <gshard/ops/window/pool.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/ops/window/roll.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <tuple>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

namespace {

inline constexpr auto layer = [](auto& m, auto x) {
  auto w = m.param("w", "BC", P<"model", none>{}, gs::init::normal(1));
  auto y = gs::annotate<P<"data", "model">>(gs::einsum<"ab,bc->ac">(x, w));
  return gs::merge_dims<0>(y);
};
using program =
    gs::program<layer, gs::mesh<gs::axis<"data">, gs::axis<"model", 4>>, in<"AB", P<"data", "model">>>;

}  // namespace

TEST_CASE("a plan as text: mesh, inputs, parameters, steps with their layouts, outputs") {
  const std::string text = gs::describe(program::plan);
  const auto has = [&](const char* line) { return text.find(line) != std::string::npos; };
  INFO(text);
  CHECK(has("mesh data model=4; "));
  CHECK(has("  input %"));
  CHECK(has("f32[A@data,B@model]\n"));
  CHECK(has("f32[B@model,C] w\n"));
  CHECK(has("-> "));
  CHECK(has("f32[A@data,C]+model\n"));
  CHECK(has("reduce_scatter over model"));
  CHECK(has("f32[AC@data]\n"));
  CHECK(has("  output %"));
}

TEST_CASE("a permutation of shards tells its pairs") {
  constexpr auto permuted = [](auto&, auto x) {
    return gs::per_shard<"data", P<"data">>([](auto t) { return gs::collective_permute<"data", gs::device_pairs({{0, 2}, {1, 0}})>(t); }, x);
  };
  using permutation = gs::program<permuted, gs::mesh<gs::axis<"data", 4>>, in<"A", P<"data">>>;
  const std::string text = gs::describe(permutation::plan);
  INFO(text);
  CHECK(text.find("collective_permute over data") != std::string::npos);
  CHECK(text.find("@data{0>2,1>0}") != std::string::npos);
}

TEST_CASE("the steps of a loop are indented") {
  constexpr auto repeated = [](auto&, auto x, auto n) {
    return gs::repeat(n, [n](auto s) { return gs::repeat(n, [](auto t) { return t + t; }, s); }, x);
  };
  const std::string text = gs::describe(gs::program<repeated, gs::mesh<gs::axis<"x">>, in<"A">, in<"">>::plan);
  INFO(text);
  for (const char* line : {"\n  loop_begin\n    map ", "\n    loop_test                %", "\n    loop_begin\n      map ",
                           "\n    loop_end\n    carry ", "\n  loop_end\n  output"})
    CHECK(text.find(line) != std::string::npos);
}

TEST_CASE("communication as text: kinds, counts and bytes") {
  const std::string text = gs::describe_communication(
      program::plan, program::plan.bind({{'A', 8}, {'B', 16}, {'C', 32}}, std::array{2, 4}));
  INFO(text);
  // The partial sum is [4,32] on a device; 3/4 of it go to others.
  CHECK(text.find("reduce_scatter      1     384 B\n") != std::string::npos);
  CHECK(gs::describe_communication(gs::plan_view{}, {}) == "  nothing is sent\n");
}

TEST_CASE("bytes") {
  CHECK(gs::describe_bytes(0) == "0 B");
  CHECK(gs::describe_bytes(1023) == "1023 B");
  CHECK(gs::describe_bytes(1536) == "1.5 KiB");
  CHECK(gs::describe_bytes(std::int64_t(1) << 30) == "1.0 GiB");
  CHECK(gs::describe_bytes(std::int64_t(5000) << 40) == "5000.0 TiB");
}

TEST_CASE("windows as text: the elements that a device holds outside of its block") {
  constexpr auto windows = [](auto&, auto x, auto w) {
    return std::tuple{gs::conv<"BX,x->BX">(x, w, {{.low = 1, .high = 1}}), gs::roll(x, 1, 3),
                      gs::sum_pool(x, {{1, 3, {.stride = 2, .low = 1, .high = 1, .dilation = 2}}}), gs::reverse(x, 1)};
  };
  const auto& plan = gs::program<windows, gs::mesh<gs::axis<"x", 2>>, in<"BH", P<none, "x">>, in<"W">, gs::combine_up_to<0>>::plan;
  const std::string text = gs::describe(plan);
  INFO(text);
  for (const char* what :
       {"f32[B,H@x] -> %", "H@x{i-1..i+W-2 of H-W+3}", "H@x{i-3 wrapped}", "H@x{(2i-1..2i+1)/2 of (2H)/2}", "H@x{-i+H-1}"})
    CHECK(text.find(what) != std::string::npos);
}

TEST_CASE("moves of several kinds that are combined as text") {
  constexpr auto mixed = [](auto&, auto x, auto y) { return std::tuple{gs::annotate<P<none, none>>(x), gs::annotate<P<none, "d">>(y)}; };
  using combined = gs::program<mixed, gs::mesh<gs::axis<"d", 2>>, in<"AB", P<"d", none>>, in<"AB", P<"d", none>>>;
  CHECK(gs::describe(combined::plan).find("  all_gather+all_to_all over d ") != std::string::npos);
  const std::string text = gs::describe_communication(combined::plan, combined::plan.bind({{'A', 8}, {'B', 4}}, std::array{2}));
  INFO(text);
  CHECK(text == "  all_gather          1     64 B\n  all_to_all          1     32 B\n");
}

TEST_CASE("an order of the devices as text") {
  constexpr auto model = [](auto&, auto x) { return gs::assign(x, {4, 1}, {0, 2, 1, 3}); };
  const std::string text = gs::describe(gs::program<model, gs::mesh<gs::axis<"x", 4>>, gs::in<"AB", gs::P<"x", gs::none>>>::plan);
  INFO(text);
  CHECK(text.find("collective_permute over x %0 f32[A@x,B] -> %1 f32[A@x,B]+order(0,2,1,3)") != std::string::npos);
}
