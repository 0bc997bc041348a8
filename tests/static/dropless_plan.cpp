// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The communication and memory of a mixture-of-experts layer without slots: as many rows as the program allows, for any routing.
#include <gshard/core/cost/step_time.hpp>
#include <gshard/moe/layer/moe.hpp>
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "soundness.hpp"

#include <array>
#include <cstdint>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

namespace {

constexpr int N = 4, k = 2;
constexpr std::int64_t G = 4, S = 256, E = 16, M = 64, F = 128;
constexpr double factor = 1.25 * k;

template <bool Dropless, bool Biases = false>
constexpr gs::nn::moe_options options() {
  if (Dropless) return {.experts = gs::experts::dropless(N, {factor}), .swiglu = true, .biases = Biases};
  return {.routing = {.slots = {factor}}, .swiglu = true, .biases = Biases};
}
template <bool Dropless>
inline constexpr auto layer = [](auto& m, auto x, auto mask) { return gs::nn::moe<"expert">(m, x, mask, options<Dropless>()).y; };
template <bool Dropless, bool Biases>
inline constexpr auto step = [](auto& m, auto x, auto mask, auto rate) {
  auto error = x + gs::nn::moe<"expert">(m, x, mask, options<Dropless, Biases>()).y - 3.0 * x;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return loss;
};
using mesh = gs::mesh<gs::axis<"expert">>;
using tokens = in<"GSM", P<"expert", none, none>>;
using mask = in<"GS", P<"expert", none>>;
template <bool Dropless>
using forward = gs::program<layer<Dropless>, mesh, tokens, mask>;
template <bool Dropless, bool Biases = false>
using training = gs::program<step<Dropless, Biases>, mesh, tokens, mask, in<"">>;

// Forward, one exchange each way, in which counts are sent before rows. With the gradient of only the weights, one more.
static_assert(forward<true>::plan.count(op::ragged_all_to_all) == 2 && forward<true>::plan.collectives() == 2);
static_assert(forward<true>::plan.count(op::grouped_product) == 3 && soundness::is_sound(forward<true>::plan));
static_assert(training<true>::plan.count(op::ragged_all_to_all) == 3 && soundness::is_sound(training<true>::plan));
static_assert(training<true>::plan.collectives() == training<false>::plan.collectives());
static_assert(training<true, true>::plan.collectives() == training<true>::plan.collectives());

// For any element type, also with a row for every choice: unused rows are not sent.
template <int EighthsOfRows>
inline constexpr auto limited = [](auto& m, auto x, auto padding) {
  return gs::nn::moe<"expert">(m, x, padding, {.experts = gs::experts::dropless(N, {EighthsOfRows / 8.0})}).y;
};
template <class T, int EighthsOfRows>
using of_type = gs::program<limited<EighthsOfRows>, mesh, in<"GSM", P<"expert", none, none>, T>, in<"GS", P<"expert", none>, T>,
                            gs::element<T>>;
constexpr bool sends_rows_alone(const gs::plan_view& p) { return p.count(op::ragged_all_to_all) == 2 && p.collectives() == 2; }
static_assert(sends_rows_alone(of_type<double, 20>::plan) && sends_rows_alone(of_type<float, 20>::plan));
static_assert(sends_rows_alone(of_type<float, 0>::plan) && sends_rows_alone(of_type<double, 0>::plan));

constexpr gs::extents bound(const gs::plan_view& p) {
  const std::array<int, 1> devices{N};
  return p.bind(gs::dims{{'G', G}, {'S', S}, {'E', E}, {'M', M}, {'F', F}}, {devices.data(), 1});
}
// Each device receives at most the rows of 3 of 4 token groups there, and of 3 of 4 expert groups back. From each device it receives E/N
// counts.
constexpr std::int64_t rows = std::int64_t(factor * double(S) / N);
template <class Program>
constexpr std::int64_t received() {
  const gs::extents e = bound(Program::plan);
  std::int64_t bytes = 0;
  for (const gs::node& n : Program::plan.steps) bytes += Program::plan.bytes_received(n, e);
  return bytes;
}
static_assert(received<forward<true>>() == 2 * (3 * rows * M * 4 + 3 * (E / N) * 4));

// A row is multiplied by the matrices of one expert: wi, wi_gate and wo. Slots have the same price.
static_assert(gs::flops(forward<true>::plan, bound(forward<true>::plan)) ==
              2.0 * double(G * rows) * 3 * M * F + 2.0 * double(S) * M * E);
static_assert(gs::flops(forward<true>::plan, bound(forward<true>::plan)) == gs::flops(forward<false>::plan, bound(forward<false>::plan)));

}  // namespace
