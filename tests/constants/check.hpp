// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Compares three plans of a program: the constant, the one made at run time, and the one read from a file. The sources that
// tests/constants/write.cpp writes include this file.

#include "../exec/random_program.hpp"
#include "../io/plan/functions_of_plan.hpp"

#include <gshard/core/trace/complex.hpp>
#include <gshard/core/trace/iota.hpp>
#include <gshard/gshard.hpp>
#include <gshard/io/plan/plan_file.hpp>
#include <gshard/runtime.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>

namespace gs = gshard;

namespace constants {

inline int checked = 0, wrong = 0;

/// The text of a plan without source lines, and without the digest, which depends on them. An operation has the line of the call that was
/// evaluated last. g++ evaluates operands in another order at run time.
inline std::string without_lines(const std::string& text) {
  std::string kept;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = std::min({text.find(",\"at\":\"", at), text.find("\"digest\"", at), text.size()});
    kept.append(text, at, next - at);
    if (next == text.size()) break;
    at = text[next] == ',' ? text.find('"', next + 7) + 1 : text.find('\n', next);
  }
  return kept;
}

inline bool check(const gs::plan_view& constant, std::uint32_t seed, const gs::runtime_program& program) {
  const gs::plan_functions functions = functions_of(constant);
  const std::string text = gs::plan_text(constant, functions), expected = without_lines(text);
  const std::string made = without_lines(gs::plan_text(program.plan(), functions));
  const std::string read = without_lines(gs::plan_text(gs::parse_plan(text, "constant", functions).plan(), functions));
  ++checked;
  if (made == expected && read == expected) return true;
  ++wrong;
  std::cout << "seed " << seed << ": the plan that was " << (made == expected ? "read" : "made at run time") << " differs\n"
            << expected << (made == expected ? read : made);
  return false;
}

}  // namespace constants
