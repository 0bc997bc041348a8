// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "plan/commands.hpp"
#include "plan/facts.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Requests as the command line writes them.
namespace requests {

namespace pl = planning;
namespace gs = gshard;

inline pl::setting on(std::string_view mesh, gs::dtype type = gs::dtype::f32) { return {pl::parse_mesh(mesh), type}; }

inline pl::request einsum(std::string_view mesh, const std::string& equation, const std::vector<std::string>& in,
                          const std::optional<std::string>& out = {}) {
  return pl::einsum_request(on(mesh), equation, in, out);
}
inline pl::request reshard(std::string_view mesh, const std::string& from, const std::string& to) {
  return pl::reshard_request(on(mesh), from, to);
}

inline pl::plan_facts facts(const pl::request& r) { return pl::facts_of(pl::make_plan(r)); }

inline std::string kinds(const pl::plan_facts& f) {
  std::string s;
  for (const pl::step_facts& step : f.steps) s += (s.empty() ? "" : " ") + std::string(gs::name(step.kind));
  return s;
}

/// What a refused request is told.
template <class F>
std::string refused(F f) {
  try {
    f();
  } catch (const pl::refusal& e) {
    return e.what();
  }
  return "not refused";
}

}  // namespace requests
