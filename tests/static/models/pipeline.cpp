// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ticks of pipelines, refused pipelines, and the communication of three plans. More plans: tests/models/pipeline_plan_test.cpp.
#include "../../models/trained_pipeline.hpp"
#include "../soundness.hpp"
#include "../tracing.hpp"

#include <cstdint>

namespace gs = gshard;
namespace nn = gshard::nn;
namespace op = gs::op;
using gs::builder, gs::extent, gs::fault, gs::none, gs::P, gs::remat_policy, gs::symbol;
using tracing::fails, tracing::input;

// The share of idle ticks is (S - 1) / (R M + S - 1).
static_assert(nn::pipeline_options{}.ticks(4, 8) == 11 && nn::pipeline_options{}.bubble(4, 8) == 3.0 / 11);
static_assert(nn::pipeline_options{2}.ticks(4, 8) == 19 && nn::pipeline_options{2}.bubble(4, 8) == 3.0 / 19);
static_assert(nn::pipeline_options{}.bubble(1, 8) == 0);

// By default GPipe is a loop, and the circular schedule is not.
static_assert(nn::pipeline_options{}.is_loop() && !nn::pipeline_options{2}.is_loop());

namespace {

/// A tick has one permute, and one in the gradient. In addition, there are the sums of the results, of the loss and of the weights'
/// gradients. Devices add the gradients of all ticks before they sum them once. The plan has the stage's product, and two for its gradient.
template <class Program>
constexpr bool one_tick_in_plan(int recomputed = 0) {
  constexpr trained_pipeline::counts n = trained_pipeline::count(Program::plan);
  return n.permutes == 2 && n.collectives == 2 + 3 && n.products == 3 + recomputed && n.in_order;
}
/// The same with all ticks in the plan. There the circular schedule sums weights' gradients in several ticks.
template <class Program>
constexpr bool all_ticks_in_plan(int rounds, int microbatches) {
  constexpr trained_pipeline::counts n = trained_pipeline::count(Program::plan);
  const int ticks = int(nn::pipeline_options{rounds}.ticks(4, microbatches));
  return n.permutes == 2 * (ticks - 1) && (rounds > 1 || n.collectives <= 2 * (ticks - 1) + 3) && n.in_order &&
         soundness::is_sound(Program::plan);
}

}  // namespace

static_assert(one_tick_in_plan<trained_pipeline::program<1, 8>>());
static_assert(one_tick_in_plan<trained_pipeline::program<2, 8, remat_policy::nothing>>(1));
static_assert(all_ticks_in_plan<trained_pipeline::program<1, 2, remat_policy::everything, nn::pipeline_plan::all_ticks>>(1, 2));

namespace {

constexpr bool refused(std::string_view weights, gs::dims known, int rounds, fault expected = fault::pipeline_extents) {
  return fails(expected, "pipeline", [&](builder& b, auto& m) {
    b.options.known = known;
    nn::pipeline(m, {rounds}, [](symbol y, symbol) { return y; }, input(b, "MBF"), input(b, weights));
  });
}

}  // namespace

static_assert(refused("SFF", {{'S', 4}}, 1));                                 // the number of microbatches is unknown
static_assert(refused("SFF", {{'M', 4}}, 1));                                 // the number of stages is unknown
static_assert(refused("RSFF", {{'S', 4}, {'M', 3}, {'R', 2}}, 2));            // circular, with fewer microbatches than stages
static_assert(refused("RSFF", {{'S', 4}, {'M', 8}, {'R', 3}}, 2));            // the weights have another number of rounds
static_assert(refused("SFF", {{'S', 4}, {'M', 8}}, 0));

namespace {

/// The fault of a pipeline over x and a weight. It names them, not the verbs of the pipeline's ticks.
template <class Body>
constexpr gs::diagnostic problem(Body body, std::string_view x, gs::dtype of_x, std::string_view w, gs::dtype of_w = gs::dtype::f32,
                                 nn::pipeline_options options = {}) {
  return tracing::problem_of([&](builder& b, auto& m) {
    b.options.known = {{'S', 4}, {'M', 8}, {'R', 2}};
    nn::pipeline(m, options, body, input(b, x, of_x), input(b, w, of_w));
  });
}
constexpr bool names(const gs::diagnostic& d, fault what, std::string_view subject, int first,
                     int second = gs::diagnostic::no_number) {
  return d.what == what && d.subject.view() == subject && d.first == first && d.second == second;
}
constexpr auto same = [](symbol y, symbol) { return y; };
constexpr auto f32 = gs::dtype::f32, f64 = gs::dtype::f64, bf16 = gs::dtype::bf16;
constexpr nn::pipeline_options circular{2}, circular_loop{2, remat_policy::everything, nn::pipeline_plan::loop};

}  // namespace

static_assert(names(problem(same, "", f32, "SFF"), fault::no_such_dim, "x of pipeline", 0, 0));
static_assert(names(problem(same, "MBF", f32, ""), fault::no_such_dim, "a weight of pipeline", 0, 0));
static_assert(names(problem(same, "MBF", bf16, "SFF"), fault::wrong_type, "pipeline", 0));
static_assert(names(problem(same, "MBF", f32, "RSFF", f64, circular), fault::wrong_type, "pipeline", 1));
static_assert(!problem(same, "MBF", f32, "RSFF", f64, circular_loop));
// The fault of a body that changes its arguments names them as well.
constexpr std::string_view of_body = "result of the body of pipeline";
static_assert(names(problem([](symbol y, symbol) { return gs::einsum<"SBF->SFB">(y); }, "MBF", f32, "SFF"), fault::dims_differ, of_body, 0,
                    1));
static_assert(names(problem([](symbol y, symbol) { return gs::sum<"SBF->SB">(y); }, "MBF", f32, "SFF"), fault::rank_mismatch, of_body, 3,
                    2));
static_assert(names(problem([](symbol y, symbol) { return gs::cast(y, f64); }, "MBF", f32, "SFF"), fault::wrong_type, of_body, 0));
