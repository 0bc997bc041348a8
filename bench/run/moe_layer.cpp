// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The mixture-of-experts layer on one device, forward and with all gradients, in turn: gshard's plans with slots and without (dropless),
// and a layer with slots by hand.
// usage: bench_moe_layer [rounds]
#include <gshard/core/base/build_options.hpp>
#include <gshard/gshard.hpp>

#include "moe_floor.hpp"
#include "timing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

namespace gs = gshard;

namespace {

using mesh = gs::mesh<gs::axis<"expert">>;

struct layer {
  gs::symbol y, wg, wi, wo;
};
constexpr layer moe(const gs::parameter_scope& m, gs::symbol x) {
  const gs::symbol wg = m.param("wg", "ME", gs::init::fan_in("M"));
  const gs::symbol wi = m.param("wi", "EMF", gs::init::fan_in("M")), wo = m.param("wo", "EFM", gs::init::fan_in("F"));
  const gs::symbol gates = gs::softmax(gs::einsum<"GSM,ME->GSE">(x, wg));
  const gs::gating_result route = gs::top_k_gating(gates, {.k = 2});
  const gs::symbol h = gs::relu(gs::einsum<"EGCM,EMF->EGCF">(gs::einsum<"GSEC,GSM->EGCM">(route.dispatch, x), wi));
  return {gs::einsum<"GSEC,GECM->GSM">(route.combine, gs::einsum<"EGCF,EFM->GECM">(h, wo)), wg, wi, wo};
}
/// The same layer without slots: experts get all choices.
constexpr layer dropless(const gs::parameter_scope& m, gs::symbol x) {
  const gs::symbol wg = m.param("wg", "ME", gs::init::fan_in("M")), gates = gs::softmax(gs::einsum<"GSM,ME->GSE">(x, wg));
  const gs::gating_result route = gs::top_k_gating(gates, {.k = 2, .slots = gs::capacity::unlimited()});
  const gs::expert_row_routing r = gs::send_rows(route, x, 1);
  const gs::symbol wi = gs::expert_param(m, r, "wi", "MF", gs::init::fan_in("M"));
  const gs::symbol wo = gs::expert_param(m, r, "wo", "FM", gs::init::fan_in("F"));
  return {gs::combine_rows(r, gs::grouped_product(r, gs::relu(gs::grouped_product(r, r.rows, wi)), wo)), wg, wi, wo};
}
template <auto Layer>
inline constexpr auto forward = [](auto& m, auto x) { return Layer(m, x).y; };
template <auto Layer>
inline constexpr auto with_gradients = [](auto& m, auto x, auto dy) {
  const layer l = Layer(m, x);
  const auto d = gs::gradients(gs::sum(l.y * dy), std::array{x, l.wg, l.wi, l.wo});
  return std::tuple{l.y, d[0], d[1], d[2], d[3]};
};
template <auto Layer>
using forward_program = gs::program<forward<Layer>, mesh, gs::in<"GSM">>;
template <auto Layer>
using training_program = gs::program<with_gradients<Layer>, mesh, gs::in<"GSM">, gs::in<"GSM">>;

/// Writes the inputs of a program and runs its steps. The results are not copied.
template <class Program>
struct prepared {
  gs::executable<Program> program;
  std::vector<std::vector<float>> inputs;

  void operator()() {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      std::copy(inputs[i].begin(), inputs[i].end(), program.executor().input(i).template as<float>(0));
    program.executor().run({});
  }
};

template <class Program>
void copy_parameters(prepared<Program>& p, const bench::moe_floor& floor) {
  const auto put = [&](const char* name, const std::vector<float>& from) {
    const gs::executor& run = p.program.executor();
    std::copy(from.begin(), from.end(), run.value(run.plan().find(name)->value).template as<float>(0));
  };
  put("wg", floor.wg);
  put("wi", floor.wi);
  put("wo", floor.wo);
}

double difference(const std::vector<float>& a, const float* b) {
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, double(std::abs(a[i] - b[i])));
    largest = std::max(largest, double(std::abs(a[i])));
  }
  return worst / largest;
}

void run(std::int64_t M, std::int64_t F, std::int64_t E, int rounds) {
  constexpr std::int64_t tokens = 2048;
  bench::moe_floor floor(tokens, M, F, E);
  std::uint32_t key = 0;
  const auto draw = [&](std::vector<float>& v, double deviation) {
    gs::kernel::fill_normal(v.data(), gs::kernel::whole(1, {std::int64_t(v.size())}), deviation, {1, ++key, 3});
  };
  draw(floor.x, 1);
  draw(floor.dy, 1);
  draw(floor.wg, 1 / std::sqrt(double(M)));
  draw(floor.wi, 1 / std::sqrt(double(M)));
  draw(floor.wo, 1 / std::sqrt(double(F)));

  const auto on = gs::on_one_device<mesh>();
  const gs::dims extents{{'G', 1}, {'S', tokens}, {'E', E}, {'M', M}, {'F', F}};
  prepared<forward_program<&moe>> plain{{on, extents}, {floor.x}};
  prepared<training_program<&moe>> training{{on, extents}, {floor.x, floor.dy}};
  prepared<forward_program<&dropless>> plain_rows{{on, extents}, {floor.x}};
  prepared<training_program<&dropless>> training_rows{{on, extents}, {floor.x, floor.dy}};
  copy_parameters(plain, floor);
  copy_parameters(training, floor);
  copy_parameters(plain_rows, floor);
  copy_parameters(training_rows, floor);

  const gs::kernel::use_threads sharing(gs::kernel::default_threads(1));
  floor.forward();
  floor.backward();
  training();
  const gs::executor& done = training.program.executor();
  std::size_t i = 0;
  for (const std::vector<float>* expected : {&floor.y, &floor.dx, &floor.dwg, &floor.dwi, &floor.dwo})
    if (const double d = difference(*expected, done.output(i++).as<float>(0)); d > 1e-4) {
      std::fprintf(stderr, "result %zu differs by %g\n", i - 1, d);
      std::exit(1);
    }

  const std::string size = "M" + std::to_string(M) + " F" + std::to_string(F) + " E" + std::to_string(E);
  bench::compare("moe forward " + size,
                 {{"gshard", [&] { plain(); }}, {"dropless", [&] { plain_rows(); }}, {"by hand", [&] { floor.forward(); }}}, rounds);
  const auto by_hand = [&] {
    floor.forward();
    floor.backward();
  };
  bench::compare("moe gradients " + size,
                 {{"gshard", [&] { training(); }}, {"dropless", [&] { training_rows(); }}, {"by hand", by_hand}}, rounds);
}

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 9;
  std::fprintf(stderr, "matrix products by %s\n", GSHARD_MATRIX_LIBRARIES);
  run(128, 512, 16, rounds);
  run(512, 2048, 8, rounds);
}
