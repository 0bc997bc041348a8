// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/report/auto_shard.hpp>

#include <gshard/core/trace/einsum.hpp>
#include <gshard/sim/search/auto_shard.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include <string>

namespace gs = gshard;
using gs::extent, gs::in, gs::none, gs::P;

namespace {

inline constexpr auto train = [](auto& m, auto x, auto rate) {
  auto y = gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", gs::init::fan_in("M")));
  gs::adam{}.minimize(m, gs::sum(y * y), rate);
};
using step = gs::auto_shard<train, gs::mesh<gs::axis<"x", 4>>, in<"BM", P<none, none>>, in<"">, extent<'B', 64>, extent<'M', 1024>,
                            extent<'H', 1024>, gs::memory_limit<8 << 20>>;

}  // namespace

TEST_CASE("what was chosen, and why, as text") {
  const std::string text = gs::describe(step::choice, step::plan);
  INFO(text);
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  CHECK(has("a step takes "));
  CHECK(has(" us sending; as annotated "));
  CHECK(has("a device holds "));
  CHECK(has("parameters 3.0 MiB, inputs "));
  CHECK(has("; allowed 8.0 MiB\n"));
  CHECK(has("\n3 plans: all there are\n"));
  CHECK(has("  input  f32[B,M] "));
  CHECK(has("no choice\n"));
  CHECK(has("  param  f32[M,H@x] "));
  CHECK(has(" w                best of 3; next f32[M@x,H] +"));
  CHECK(has(" adam.m.w         as w\n"));
}

TEST_CASE("what was chosen, as annotations") {
  CHECK(gs::annotations(step::choice, gs::mesh<gs::axis<"x", 4>>::shape) == "in BM: P<none, none>\nin : P<>\nw: P<none, \"x\">\n");
  gs::layout_choice both;
  both.name = "b";
  both.layout = gs::sharding::replicated(2);
  both.layout[0].push_back(1);
  both.layout[0].push_back(0);
  gs::shard_choice_view choice;
  choice.tensors = {&both, 1};
  CHECK(gs::annotations(choice, gs::mesh<gs::axis<"r", 2>, gs::axis<"c", 2>>::shape) == "in b: P<axes<\"c\", \"r\">, none>\n");
}

TEST_CASE("seconds") {
  CHECK(gs::describe_seconds(0) == "0 ns");
  CHECK(gs::describe_seconds(2.5) == "2.5 s");
  CHECK(gs::describe_seconds(0.0123) == "12.3 ms");
  CHECK(gs::describe_seconds(4e-5) == "40 us");
}
