// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/sim/report/reason.hpp>

#include <gshard/plan.hpp>
#include <gshard/sim/report/describe.hpp>

#include <doctest/doctest.h>

#include <string>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

namespace {

constexpr std::size_t line = __LINE__;
inline constexpr auto model = [](auto&, auto x, auto w, auto y) {
  auto h = gs::einsum<"AB,BC->AC">(x, w);
  auto s = gs::softmax(gs::relu(h) + y);
  return gs::roll(gs::annotate<P<none, "x">>(s), 1, 1);
};
using program = gs::program<model, gs::mesh<gs::axis<"x">>, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>, in<"AC", P<"x", none>>>;

std::string reason_for(gs::op_ref kind, int nth = 0) {
  for (std::size_t i = 0; i < program::plan.steps.size(); ++i)
    if (program::plan.steps[i].kind == kind && nth-- == 0) return gs::describe_reason(program::plan, i);
  return "no such step";
}
std::string at(std::size_t after) { return " at reason_test.cpp:" + std::to_string(line + after); }

}  // namespace

TEST_CASE("every move names the operation and the line that it serves, and why") {
  INFO(gs::describe(program::plan));
  CHECK(reason_for(gs::op::reduce_scatter) == "for map" + at(3) + ": completes the sum of einsum" + at(2));
  CHECK(reason_for(gs::op::all_to_all) == "for annotate" + at(4) + ": as annotated");
  CHECK(reason_for(gs::op::collective_permute) == "for roll" + at(4) + ": fetches the halo of its windows");
  CHECK(gs::describe(program::plan).find("  for annotate at reason_test.cpp:") != std::string::npos);
}

TEST_CASE("an einsum that loops says what is too large, and moves serve it as they serve others") {
  using sums = gs::program<model, gs::mesh<gs::axis<"x">>, in<"AB", P<none, "x">>, in<"BC", P<"x", none>>, in<"AC", P<"x", none>>,
                           gs::extent<'A', 64>, gs::extent<'C', 64>, gs::loop_above<0>>;
  const std::string too_large = ": its sums exceed loop_above, so blocks travel while it computes\n";
  CHECK(gs::describe(sums::plan).find("  for einsum" + at(2) + too_large) != std::string::npos);
  constexpr auto product = [](auto&, auto x, auto y) { return gs::einsum<"AB,BC->AC">(gs::annotate<P<"x", none>>(x), y); };
  using operand = gs::program<product, gs::mesh<gs::axis<"x">>, in<"AB", P<none, "x">>, in<"BC", P<none, "x">>, gs::extent<'A', 4096>,
                              gs::extent<'B', 64>, gs::extent<'C', 64>, gs::loop_above<0>>;
  CHECK(gs::describe(operand::plan).find(": operand 1 exceeds loop_above, so blocks travel while it computes\n") != std::string::npos);
}

TEST_CASE("loop-carried values keep one sharding") {
  constexpr auto turned = [](auto&, auto x, auto n) { return gs::repeat(n, [](auto s) { return gs::annotate<P<none, "x">>(s); }, x); };
  const std::string carry = "  for carry at reason_test.cpp:" + std::to_string(__LINE__ - 1);
  using loop = gs::program<turned, gs::mesh<gs::axis<"x">>, in<"AB", P<"x", none>>, in<"">>;
  CHECK(gs::describe(loop::plan).find(carry + ": loop-carried values keep one sharding\n") != std::string::npos);
}

TEST_CASE("steps that move nothing have no reason") {
  for (std::size_t i = 0; i < program::plan.steps.size(); ++i)
    CHECK(gs::describe_reason(program::plan, i).empty() == !gs::traits(program::plan.steps[i].kind).collective);
}
