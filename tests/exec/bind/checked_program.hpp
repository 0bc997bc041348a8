// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/ops/check/check_finite.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

/// A program that checks tensors, one in the middle of a fused chain of elementwise steps.
namespace checked_program {

namespace gs = gshard;
using gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"model">>;

inline constexpr auto model = [](auto& m, auto x, auto rate) {
  const auto w = m.param("w", "AB", P<none, "model">{}, gs::init::constant(1));
  const auto product = gs::check_finite(x * w, "product");
  const auto h = gs::check_finite(gs::map<[](auto v) { return gs::log(v); }>(product + 1.0), "logarithm");
  const auto loss = gs::check_finite(gs::sum(h * h), "sum");
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using program = gs::program<model, mesh, gs::in<"AB", P<"data", "model">>, gs::in<"">>;
static_assert(program::plan.count(gs::op::check_finite) == 3);

/// A bad element at every position of x is reported, equally on every process, and the parameter is not updated.
inline void check_everywhere(const gs::any_cluster& on) {
  constexpr std::int64_t A = 5, B = 7;
  gs::executable<program> run(on, {{'A', A}, {'B', B}});
  const std::vector<float> rate{1e-4f};
  std::uint32_t step = 0;
  struct bad {
    float number;
    std::string named;
  };
  const float infinity = std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < A * B; ++i)
    for (const bad& b : {bad{std::numeric_limits<float>::quiet_NaN(), "product"}, bad{infinity, "product"}, bad{-2, "logarithm"},
                         bad{1e38f, ""}}) {
      std::vector<float> x(A * B, 2.0f);
      x[i] = b.number;
      const std::vector<float> before = gs::to_global<float>(run.executor().store(), "w");
      std::string said;
      try {
        run(x, rate);
        ++step;
      } catch (const gs::not_finite_error& e) {
        said = e.what();
        CHECK(e.step == step);
        CHECK(gs::to_global<float>(run.executor().store(), "w") == before);
      }
      CHECK(run.executor().store().steps() == step);
      if (b.named.empty()) {
        CHECK(said == "");
        continue;
      }
      CHECK(said.starts_with("check_finite \"" + b.named + "\" (checked_program.hpp:"));
      const std::string element = "element [" + std::to_string(i / B) + "," + std::to_string(i % B) + "] is ";
      CHECK_MESSAGE(said.find(element) != std::string::npos, said);
      CHECK(said.find(", in step " + std::to_string(step) + " on device ") != std::string::npos);
    }
}

}  // namespace checked_program
