// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/ops/rows/softmax.hpp>

namespace gs = gshard;

inline constexpr auto moe_layer = [](auto& m, auto x) {
  auto wg = m.param("wg", "ME", gs::init::fan_in("M"));
  auto wi = m.param("wi", "E@expert,M,H", gs::init::fan_in("M"));
  auto wo = m.param("wo", "EHM", gs::init::fan_in("H"));
  auto route = gs::top2_gating(gs::softmax(gs::einsum<"GSM,ME->GSE">(x, wg)), gs::capacity{2.0});
  auto h = gs::relu(gs::einsum<"EGCM,EMH->EGCH">(gs::einsum<"GSEC,GSM->EGCM">(route.dispatch, x), wi));
  return gs::einsum<"GSEC,GECM->GSM">(route.combine, gs::einsum<"EGCH,EHM->GECM">(h, wo));
};
