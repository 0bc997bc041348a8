// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "case_text.hpp"
#include "case_verbs.hpp"

#include <gshard/core/base/hash.hpp>
#include <gshard/testing/check_shardings.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

// Runs a case. Compares its results on one device with the right numbers, and the results on every mesh with every sharding with those of
// one device.
namespace cases {

namespace gt = gshard::testing;

/// The expectation of a line: numbers, another result, or the result of one device.
struct comparison {
  int line = 0;
  bool exact = false;   // equal to the last bit
  bool same = false;    // equal to one device to the last bit
  int left = -1, right = -1;  // indices of results; right -1: numbers, if given
  bool given = false;
  gt::array numbers{};
  int varied = -1;  // an input that must not influence the result
  std::vector<std::pair<int, int>> gradients{};  // of the result: an input, and the result that is its gradient
};

/// A case with the extents of its dims: the traced program and its inputs.
struct prepared_case {
  gt::traced program;
  gs::dims dims;
  gt::arrays sources;
  std::vector<comparison> comparisons;
};

namespace detail {

inline gt::array numbers_of(const expression& e) {
  if (e.what == expression::kind::number) return {e.number};
  gt::array list;
  for (const expression& p : e.parts) {
    const gt::array inner = numbers_of(p);
    list.insert(list.end(), inner.begin(), inner.end());
  }
  return list;
}
inline bool is_number(const expression& e) {
  return e.what == expression::kind::number ||
         (e.what == expression::kind::list && std::all_of(e.parts.begin(), e.parts.end(), is_number));
}
inline const expression* parameter_after(const expression& e) {
  return e.what == expression::kind::call && e.word == "after" && e.parts.size() == 1 ? e.parts.data() : nullptr;
}

/// The given numbers of an input, repeated, or random numbers.
inline gt::array elements_of(const declared& in, std::size_t count, const gs::dims& dims) {
  gt::array a(count);
  if (in.given) {
    const gt::array given = numbers_of(in.data);
    if (given.empty()) throw bad_case(in.name + " is given no number");
    if (given.size() > 1 && given.size() != count)
      throw bad_case(in.name + " has " + std::to_string(count) + " elements, " + std::to_string(given.size()) + " are given");
    for (std::size_t i = 0; i < count; ++i) a[i] = given[i % given.size()];
    return a;
  }
  std::mt19937 gen(gs::fnv1a<std::uint32_t>().add(in.name).value());
  const bool ids = in.type == "i32";
  const int least = ids ? in.least : -8, most = ids && in.below ? int(dims.find(in.below)) - 1 : 8;
  if (most < least) throw bad_case(in.name + ": no number is from " + std::to_string(least) + " to " + std::to_string(most));
  std::uniform_int_distribution<int> pick(least, most);
  for (double& v : a) v = ids ? pick(gen) : double(pick(gen)) / 4;
  return a;
}

}  // namespace detail

/// Throws `bad_case`, and `gshard::error` if the program is refused.
inline prepared_case prepare(const text_case& c, const std::vector<std::pair<char, long>>& sizes) {
  prepared_case p;
  for (const auto& [letter, extent] : sizes) p.dims.set(letter, extent);
  std::vector<gt::input> inputs;
  std::vector<const declared*> given, parameters;
  for (const line& l : c.lines) {
    if (l.what != line::kind::input) continue;
    for (const char letter : l.in.letters + (l.in.below ? std::string(1, l.in.below) : ""))
      if (p.dims.find(letter) < 0) throw bad_case("line " + std::to_string(l.number) + ": letter " + letter + " has no size");
    (l.in.parameter ? parameters : given).push_back(&l.in);
    if (!l.in.parameter) inputs.push_back({.letters = l.in.letters, .type = dtype_called(l.in.type)});
  }
  p.program = gt::trace(inputs, [&](const gs::parameter_scope& m, std::span<const symbol> x) {
    evaluator evaluate(m, c);
    gs::list<symbol> results;
    const auto result = [&](const term& t) {
      if (t.what != term::kind::tensor) throw bad_case("a result is not a tensor");
      results.push_back(gt::lay_out(t.tensor));
      return int(results.size()) - 1;
    };
    for (std::size_t i = 0; i < x.size(); ++i) evaluate.set(given[i]->name, x[i]);
    for (const declared* d : parameters)
      evaluate.set(d->name, m.param(d->name, d->letters, gs::init::zeros(), dtype_called(d->type)));
    for (const line& l : c.lines) {
      try {
        switch (l.what) {
          case line::kind::assign: evaluate.set(l.name, evaluate(l.left)); break;
          case line::kind::update: evaluate(l.left); break;
          case line::kind::differentiable: {
            const term y = evaluate(l.left);
            if (y.what != term::kind::tensor) throw bad_case("a result is not a tensor");
            const symbol loss = gs::sum(y.tensor * y.tensor);
            comparison q{.line = l.number, .left = result(loss)};
            for (std::size_t i = 0; i < given.size(); ++i) {
              if (given[i]->type != "f64") continue;
              q.gradients.push_back({int(i), result(gs::gradients(loss, {x[i]})[0])});
              p.comparisons.push_back({.line = l.number, .left = q.gradients.back().second});
            }
            if (q.gradients.empty()) throw bad_case("no input is f64");
            p.comparisons.push_back(std::move(q));
            break;
          }
          case line::kind::show:
          case line::kind::same:
          case line::kind::unaffected:
          case line::kind::equal:
          case line::kind::near: {
            comparison q{.line = l.number, .exact = l.what == line::kind::equal, .same = l.what == line::kind::same};
            if (const expression* parameter = detail::parameter_after(l.left)) {
              for (std::size_t i = 0; i < parameters.size(); ++i)
                if (parameters[i]->name == parameter->word) q.left = -2 - int(i);
              if (q.left == -1) throw bad_case("no parameter " + parameter->word);
            } else {
              q.left = result(evaluate(l.left));
            }
            if (l.what == line::kind::equal || l.what == line::kind::near) {
              q.given = detail::is_number(l.right);
              if (q.given) q.numbers = detail::numbers_of(l.right);
              else q.right = result(evaluate(l.right));
            }
            for (std::size_t i = 0; i < given.size(); ++i)
              if (l.what == line::kind::unaffected && given[i]->name == l.name) q.varied = int(i);
            if (l.what == line::kind::unaffected && q.varied < 0) throw bad_case("no input " + l.name);
            p.comparisons.push_back(q);
            break;
          }
          case line::kind::input:
          case line::kind::function:
          case line::kind::error: break;
        }
      } catch (const bad_case& e) {
        throw bad_case("line " + std::to_string(l.number) + ": " + e.what());
      }
    }
    for (comparison& q : p.comparisons)
      if (q.left <= -2) q.left = int(results.size()) - 2 - q.left;
    return results;
  });
  for (std::size_t i = 0; i < p.program.sources(); ++i) {
    const std::size_t count = gt::element_count(p.program, p.program.free[i], p.dims), first = given.size();
    const declared* of = i < first ? given[i] : i - first < parameters.size() ? parameters[i - first] : nullptr;
    p.sources.push_back(of ? detail::elements_of(*of, count, p.dims) : gt::array(count, 0.0));
  }
  return p;
}

/// The difference of two tensors as text, or nothing. All NaNs are equal.
inline std::string difference(const gt::array& a, const gt::array& b, bool exact, double tolerance, double least_scale = 1) {
  if (a.size() != b.size() && b.size() != 1) return std::to_string(a.size()) + " elements, expected " + std::to_string(b.size());
  double scale = least_scale;
  for (const double v : b)
    if (std::isfinite(v)) scale = std::max(scale, std::abs(v));
  if (scale == 0) scale = 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double right = b[b.size() == 1 ? 0 : i];
    if (a[i] == right || (std::isnan(a[i]) && std::isnan(right))) continue;
    if (!exact && std::abs(a[i] - right) <= tolerance * scale) continue;
    char text[120];
    std::snprintf(text, sizeof text, "element %zu is %.17g, expected %.17g", i, a[i], right);
    return text;
  }
  return {};
}

/// The relative tolerance of a result, by its element type.
inline double tolerance_of(const prepared_case& p, int result) {
  const gs::graph& g = p.program.graph;
  const std::size_t outputs = g.outputs.size(), at = std::size_t(result);
  switch (g.at(at < outputs ? g.outputs[at].value : g.parameters[at - outputs].value).type) {
    case gs::dtype::f64: return 1e-12;
    case gs::dtype::f32: return 1e-5;
    case gs::dtype::f16:
    case gs::dtype::bf16: return 1e-2;
    default: return 0;
  }
}

/// The first difference between the results of a run and the expected ones as text, or nothing.
inline std::string difference(const prepared_case& p, const gt::arrays& made, const gt::arrays& expected) {
  for (const comparison& q : p.comparisons) {
    const gt::array& left = made[std::size_t(q.left)];
    const double tolerance = tolerance_of(p, q.left);
    std::string said = difference(left, expected[std::size_t(q.left)], q.same, tolerance);
    if (said.empty() && q.given) said = difference(left, q.numbers, q.exact, tolerance, 0);
    if (said.empty() && q.right >= 0) said = difference(left, made[std::size_t(q.right)], q.exact, tolerance);
    if (!said.empty()) return "line " + std::to_string(q.line) + ": " + said;
  }
  for (std::size_t i = p.program.graph.outputs.size(); i < made.size(); ++i)  // parameters after the run
    if (const std::string said = difference(made[i], expected[i], false, tolerance_of(p, int(i))); !said.empty())
      return "parameter " + std::to_string(i - p.program.graph.outputs.size()) + ": " + said;
  return {};
}

/// Runs the steps of a case from step 0 on.
inline void run_steps(const text_case& c, gt::setting& s) {
  s.steps = c.steps;
  s.context.step = 0;
}

/// The shardings to try on a mesh: all, or a random sample.
inline std::vector<gt::setting> settings(const text_case& c, const prepared_case& p, const std::vector<int>& mesh) {
  const gt::traced& t = p.program;
  std::vector<std::vector<gs::sharding>> choices;
  std::size_t all = 1;
  for (std::size_t i = 0; i < t.free.size(); ++i) {
    const bool pending = i < t.inputs.size() && gs::has_sums(t.inputs[i].type);
    choices.push_back(gt::all_shardings(t.graph.at(t.free[i]).rank(), int(mesh.size()), pending));
    all = all > 1000000 ? all : all * choices.back().size();
  }
  std::mt19937 gen(7);
  std::vector<gt::setting> list;
  const std::size_t most = mesh.size() == 1 && mesh[0] == 1 ? 1 : std::size_t(c.most);
  for (std::size_t n = 0; n < std::min(all, most); ++n) {
    gt::setting s{.mesh = mesh, .dims = p.dims, .layouts = {}};
    std::size_t rest = n;
    for (const auto& of : choices) {
      s.layouts.push_back(of[all <= most ? rest % of.size() : gen() % of.size()]);
      rest /= of.size();
    }
    run_steps(c, s);
    if (n % 2) s.options.known = p.dims;
    list.push_back(std::move(s));
  }
  return list;
}

/// The first result that depends on an input although it must not, as text, or nothing.
inline std::string influence(const prepared_case& p, const gt::setting& s, const gt::arrays& made) {
  for (const comparison& q : p.comparisons) {
    if (q.varied < 0) continue;
    for (const bool constant : {false, true}) {
      gt::arrays others = p.sources;
      gt::array& varied = others[std::size_t(q.varied)];
      const bool are_ones = std::all_of(varied.begin(), varied.end(), [](double v) { return v == 1; });
      std::reverse(varied.begin(), varied.end());
      for (double& v : varied) v = !constant ? 1 - v : are_ones ? 0 : 1;
      const gt::arrays again = gt::run(p.program, s, others);
      if (const std::string said = difference(again[std::size_t(q.left)], made[std::size_t(q.left)], true, 0); !said.empty())
        return "line " + std::to_string(q.line) + ": with another input, " + said;
    }
  }
  return {};
}

/// The first gradient that differs from the central difference of its loss along a direction, as text, or nothing. The inputs are moved a
/// little, away from ties.
inline std::string wrong_gradient(const prepared_case& p, const gt::setting& alone) {
  constexpr double h = 1e-5;
  for (const comparison& q : p.comparisons) {
    if (q.gradients.empty()) continue;
    gt::arrays at = p.sources;
    for (const auto& [input, gradient] : q.gradients)
      for (std::size_t k = 0; k < at[std::size_t(input)].size(); ++k) at[std::size_t(input)][k] += 0.05 * std::sin(1.0 + 3.0 * double(k));
    const auto along = [](std::size_t k) { return std::cos(1.0 + 5.0 * double(k)); };
    const auto moved = [&](int input, double by) {
      gt::arrays there = at;
      for (std::size_t k = 0; k < there[std::size_t(input)].size(); ++k) there[std::size_t(input)][k] += by * along(k);
      return gt::run(p.program, alone, there)[std::size_t(q.left)][0];
    };
    const gt::arrays here = gt::run(p.program, alone, at);
    for (const auto& [input, gradient] : q.gradients) {
      double found = 0;
      for (std::size_t k = 0; k < here[std::size_t(gradient)].size(); ++k) found += here[std::size_t(gradient)][k] * along(k);
      const double expected = (moved(input, h) - moved(input, -h)) / (2 * h);
      if (!(std::abs(found - expected) <= 1e-6 * std::max(1.0, std::abs(expected))))
        return "line " + std::to_string(q.line) + ": the slope along input " + std::to_string(input) + " is " + std::to_string(found) +
               ", of differences " + std::to_string(expected);
    }
  }
  return {};
}

inline const std::vector<std::vector<int>> usual_meshes{{1}, {2}, {3}, {4}, {8}, {2, 2}, {2, 3}};

/// The text that the error of this case must contain, or nothing.
inline std::string expected_error(const text_case& c) {
  for (const line& l : c.lines)
    if (l.what == line::kind::error) return l.name;
  return {};
}

/// The failures of a case, one per line; empty if there are none. `runs` counts the sharded runs.
inline std::string wrong(const text_case& c, std::size_t& runs) {
  std::string text;
  const std::string refused = expected_error(c);
  const auto say = [&](const std::string& where, const std::string& what) {
    if (std::count(text.begin(), text.end(), '\n') < 4) text += c.place() + ": " + where + ": " + what + "\n";
  };
  for (const auto& sizes : c.sizes) {
    prepared_case p;
    gt::arrays expected;
    try {
      p = prepare(c, sizes);
      if (p.comparisons.empty() && refused.empty()) throw bad_case("it compares nothing");
      gt::setting alone = gt::serial(p.program, p.dims);
      run_steps(c, alone);
      expected = gt::run(p.program, alone, p.sources);
      if (!refused.empty()) say("one device", "no error");
      if (const std::string said = wrong_gradient(p, alone); !said.empty()) say("one device", said);
    } catch (const bad_case& e) {  // a fault of the case refuses nothing
      say("one device", e.what());
      continue;
    } catch (const std::exception& e) {
      if (refused.empty() || std::string_view(e.what()).find(refused) == std::string_view::npos) say("one device", e.what());
      continue;
    }
    for (const std::vector<int>& mesh : c.meshes.empty() ? usual_meshes : c.meshes)
      for (const gt::setting& s : settings(c, p, mesh)) {
        ++runs;
        try {
          const gt::arrays made = gt::run(p.program, s, p.sources);
          std::string said = difference(p, made, expected);
          if (said.empty()) said = influence(p, s, made);
          if (!said.empty()) say(gt::text_of(s), said);
        } catch (const std::exception& e) {
          say(gt::text_of(s), e.what());
        }
      }
  }
  return text;
}

}  // namespace cases
