// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A dry run: the same plan on 2048 TPU v3 cores, with shapes only. It estimates the time of every step, and the memory of each core.
#include <gshard/moe/layer/moe.hpp>
#include <gshard/plan.hpp>
#include <gshard/sim/run/dry_run.hpp>

#include <array>
#include <cstdio>
#include <string>

namespace gs = gshard;
using gs::in;
using cores = gs::mesh<gs::axis<"expert">>;

inline constexpr auto layer = [](auto& m, auto x, auto mask) { return gs::nn::moe<"expert">(m, x, mask).y; };
using program = gs::program<layer, cores, in<"G@expert,S,M">, in<"G@expert,S">>;

int main() {
  const gs::hardware pod = gs::parse_hardware("tpu-v3:32x32");  // 1024 chips of two cores
  const int devices = pod.devices();
  const gs::dims sizes{{'G', devices}, {'S', 1024}, {'M', 1024}, {'E', devices}, {'F', 8192}};
  const gs::run_record run = gs::dry_run(program::plan, program::plan.bind(sizes, std::array{devices}), pod);
  std::printf("one MoE layer with %d experts on %d cores: %.1f ms\n", devices, devices, 1e3 * run.seconds);
  for (const gs::step_part part : {gs::step_part::moe_feed_forward, gs::step_part::gate_einsum, gs::step_part::dispatch_combine})
    std::printf("  %-17s %4.1f %%\n", std::string(gs::name(part)).c_str(), 100 * run.parts[std::size_t(part)] / run.seconds);
}
