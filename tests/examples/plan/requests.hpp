// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "plan/commands.hpp"
#include "plan/facts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

// Requests as on the command line.
namespace requests {

namespace pl = planning;
namespace gs = gshard;

inline const pl::command& command_of(const std::string& name) {
  static const std::vector<pl::command> all = pl::commands();
  const auto at = std::find_if(all.begin(), all.end(), [&](const pl::command& c) { return c.name == name; });
  REQUIRE(at != all.end());
  return *at;
}

/// The option with this name, or for a word without dashes the first positional argument.
inline const pl::option& option_of(const pl::command& c, const std::string& word) {
  const auto at = std::find_if(c.options.begin(), c.options.end(), [&](const pl::option& o) {
    return word.starts_with("--") ? ("," + o.names + ",").find("," + word + ",") != std::string::npos : !o.names.starts_with("--");
  });
  CAPTURE(word);
  REQUIRE(at != c.options.end());
  return *at;
}

/// "reduce --mesh x=2 --in 8@x,6 --dims 0": the words of a command line, without quotes.
inline pl::request request_of(const std::string& line) {
  std::istringstream words(line);
  std::string name, word, value;
  words >> name;
  const pl::command& c = command_of(name);
  pl::arguments given;
  while (words >> word) {
    if (word == "--mesh" && words >> value) {
      given.on.mesh = pl::parse_mesh(value);
    } else if (word == "--dtype" && words >> value) {
      given.on.type = value == "f64" ? gs::dtype::f64 : gs::dtype::f32;
    } else if (word == "--loop-above" && words >> value) {
      given.on.loop_above = std::stoll(value);
    } else if (word == "--keep-partial") {
      given.on.keep_partial = true;
    } else {
      const pl::option& o = option_of(c, word);
      if (word.starts_with("--") && o.kind != pl::option::takes::nothing)
        words >> value;
      else
        value = word;
      value.erase(std::remove(value.begin(), value.end(), '"'), value.end());
      given.add(o.key(), value);
    }
  }
  return c.make(given);
}

inline pl::request einsum(const std::string& mesh, const std::string& equation, const std::vector<std::string>& in,
                          const std::optional<std::string>& out = {}) {
  std::string line = "einsum " + equation + " --mesh " + mesh;
  for (const std::string& s : in) line += " --in " + s;
  return request_of(line + (out ? " --out " + *out : ""));
}
inline pl::request reshard(const std::string& mesh, const std::string& from, const std::string& to) {
  return request_of("reshard --mesh " + mesh + " --from " + from + " --to " + to);
}

inline pl::plan_facts facts(const pl::request& r) {
  return pl::facts_of(pl::make_plan(r));
}
inline pl::plan_facts facts(const std::string& line) {
  return facts(request_of(line));
}

/// The operations of a plan, and the sharding of its first result.
inline std::string kinds(const pl::plan_facts& f) {
  std::string s;
  for (const pl::step_facts& step : f.steps) s += (s.empty() ? "" : " ") + step.called;
  return s;
}
inline std::string kinds(const std::string& line) {
  return kinds(facts(line));
}
inline std::string output(const std::string& line) {
  const pl::plan_facts f = facts(line);
  return pl::text_of(f.outputs[0].whole, f.mesh);
}

/// True if a plan gives the results of one device. Checks that it moves the stated bytes. Defined in check_test.cpp, because the kernels
/// take long to compile.
bool right(const pl::request& r);
inline bool right(const std::string& line) {
  CAPTURE(line);
  return right(request_of(line));
}

/// The text of the refusal.
template <class F>
std::string refused(F f) {
  try {
    f();
  } catch (const pl::refusal& e) {
    return e.what();
  }
  return "not refused";
}
inline std::string refusal_of(const std::string& line) {
  return refused([&] { pl::make_plan(request_of(line)); });
}

}  // namespace requests
