// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/process/error.hpp>
#include "translation_model.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plan_run {

namespace gs = gshard;

/// A model of arXiv 2006.16668, tables 1 and 3.
struct named_model {
  std::string_view name;
  int layers;
  std::int64_t experts, tokens;
  double steps_a_second;  // as measured, with one core per expert; 0: not reported
};
inline constexpr std::array<named_model, 7> models{{{"1T", 60, 2048, 4 << 20, 0},
                                                    {"600B", 36, 2048, 4 << 20, 0.72},
                                                    {"200B", 12, 2048, 4 << 20, 2.15},
                                                    {"150B", 36, 512, 1 << 20, 1.05},
                                                    {"50B", 12, 512, 1 << 20, 3.28},
                                                    {"37B", 36, 128, 1 << 20, 0.67},
                                                    {"12.5B", 12, 128, 1 << 20, 2.16}}};

/// "1T, 600B, ..."
inline std::string model_names() {
  std::string s;
  for (const named_model& m : models) s += (s.empty() ? "" : ", ") + std::string(m.name);
  return s;
}
inline std::optional<translation_model> find_model(std::string_view name) {
  for (const named_model& m : models) {
    if (m.name != name) continue;
    translation_model model;
    model.layers = m.layers;
    model.experts = model.groups = m.experts;
    model.tokens = m.tokens;
    return model;
  }
  return std::nullopt;
}

/// The same model with at least one group per device, and sentences no longer than the tokens of a group. Throws gshard::error if there are
/// too few tokens.
inline translation_model with_groups(translation_model m, std::int64_t devices) {
  m.groups = std::max(m.groups, devices);
  if (m.tokens < 2 * m.groups)
    throw gs::error("a step of " + std::to_string(m.tokens) + " tokens, source and target, has not one of each for each of " +
                    std::to_string(m.groups) + " groups");
  m.sequence = std::max<std::int64_t>(1, std::min(m.sequence, m.tokens / 2 / m.groups));
  return m;
}

}  // namespace plan_run
