// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/core/ir/dim.hpp>
#include <gshard/gshard.hpp>
#include <gshard/io/plan/plan_file.hpp>

#include "../../complaint.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>

namespace changed_plan {

namespace gs = gshard;

inline constexpr auto model = [](auto& m, auto a, auto b) {
  return gs::einsum<"BM,MH->BH">(a, b) * -1.0 + m.param("w", "BH", gs::init::zeros());
};
using program = gs::program<model, gs::mesh<gs::axis<"data", 2>, gs::axis<"expert">>, gs::in<"B@data,M">, gs::in<"MH">>;

/// The error message for the file of a small plan after a change of its text.
inline std::string problem_after(const std::string& from, const std::string& to) {
  std::string text = gs::plan_text(program::plan);
  const std::size_t at = text.find(from);
  REQUIRE_MESSAGE(at != text.npos, from);
  text.replace(at, from.size(), to);
  return complaint([&] { gs::parse_plan(text, "c.plan", {}, gs::plan_digest::ignored); });
}

}  // namespace changed_plan
