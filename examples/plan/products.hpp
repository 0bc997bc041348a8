// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"

#include <gshard/core/ir/equation.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/ops/window/convolution.hpp>
#include <gshard/ops/window/pool.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

// Subcommands that are equations between letters, and windows that sum: einsum, conv, pool.
namespace planning {

namespace detail {

/// An equation and the tensors of its operands, each with an extent per letter.
struct equation_request {
  gs::equation equation;
  std::vector<shape> operands;
};

inline equation_request read_equation(const arguments& a, gs::equation_form form = gs::equation_form::letters) {
  const std::string& text = a.text("equation");
  gs::diagnostic problem;
  equation_request r{gs::parse_equation(text, problem, form), {}};
  refuse(problem, a.on.mesh);
  const int count = r.equation.count;
  r.operands = a.tensors("in");
  if (r.operands.size() != std::size_t(count))
    throw refusal("the equation \"" + text + "\" has " + std::to_string(count) + (count == 1 ? " operand" : " operands") + ", not " +
                  std::to_string(r.operands.size()) + ": give one --in per operand");
  if (r.equation.has_ellipsis) {
    std::vector<int> ranks;
    for (const shape& s : r.operands) ranks.push_back(s.rank());
    r.equation = gs::without_ellipses(r.equation, ranks.data(), text, problem);
    refuse(problem, a.on.mesh);
  }
  std::map<int, std::int64_t> known;
  for (std::size_t i = 0; i < r.operands.size(); ++i) {
    const shape& s = r.operands[i];
    const gs::short_list& letters = r.equation.operands[i];
    const std::string given = text_of(s, a.on.mesh);
    if (s.rank() != letters.size()) problem.report(gs::fault::rank_mismatch, given, {}, letters.size(), s.rank());
    refuse(problem, a.on.mesh);
    for (int d = 0; d < s.rank(); ++d) {
      const std::int64_t extent = s.extents[std::size_t(d)], before = known.emplace(letters[d], extent).first->second;
      if (before != extent)
        throw refusal(std::string("index '") + r.equation.letters[std::size_t(letters[d])] + "' has extent " + std::to_string(before) +
                      " before and " + std::to_string(extent) + " in \"" + given + "\": give it one extent");
    }
  }
  return r;
}

inline option equation_option(const std::string& example) {
  return {"equation", "such as \"" + example + "\"", option::takes::text, true};
}

/// The options of windows, per spatial dim.
inline std::vector<option> window_options() {
  return {{"--stride,--strides", "how far windows are apart, one number or one per spatial dim (1)"},
          {"--pad,--padding", "padding on both sides, one number or one per spatial dim; or same, or valid (0)"},
          {"--low", "padding before the first element, as --pad"},
          {"--high", "padding after the last element, as --pad"},
          {"--window-dilation,--rhs-dilation,--dilation", "how far the taps of a window are apart (1)"},
          {"--base-dilation,--lhs-dilation", "how far the elements of the operand are apart (1)"}};
}

/// Windows of `taps` over dims of these extents, from the options above.
inline std::vector<gs::conv_window> read_windows(const arguments& a, const std::vector<std::int64_t>& extents,
                                                   const std::vector<std::int64_t>& taps) {
  std::vector<int> wide;  // the dims to which a single number applies
  for (std::size_t d = 0; d < taps.size(); ++d)
    if (taps[d] > 1) wide.push_back(int(d));
  const auto per_dim = [&](const char* key, const std::vector<std::int64_t>& otherwise, std::int64_t least) {
    return a.per_dim(key, otherwise, least, most_of_window, wide);
  };
  const auto all = [&](std::int64_t n) { return std::vector<std::int64_t>(extents.size(), n); };
  const auto at_least_one = [&](const char* key) { return per_dim(key, all(1), 1); };
  const auto stride = at_least_one("stride"), step = at_least_one("window-dilation"), dilation = at_least_one("base-dilation");
  const bool same = a.has("pad") && (a.text("pad") == "same" || a.text("pad") == "SAME");
  const bool valid = a.has("pad") && (a.text("pad") == "valid" || a.text("pad") == "VALID");
  const auto pad = same || valid ? all(0) : per_dim("pad", all(0), -most_of_window);
  const auto low = per_dim("low", pad, -most_of_window), high = per_dim("high", pad, -most_of_window);
  std::vector<gs::conv_window> windows;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (double(extents[i]) * double(dilation[i]) > 1e15 || double(taps[i]) * double(step[i]) > 1e15)
      throw refusal("a window or a dim is too large when it is dilated: make the extents smaller");
    gs::conv_window w{int(stride[i]), int(low[i]), int(high[i]), int(step[i]), int(dilation[i])};
    if (same) {
      const std::int64_t whole = (extents[i] - 1) * dilation[i] + 1, positions = (whole + stride[i] - 1) / stride[i];
      const std::int64_t missing = std::max<std::int64_t>(0, (positions - 1) * stride[i] + (taps[i] - 1) * step[i] + 1 - whole);
      if (missing > most_of_window) throw refusal("--pad same would need too much padding: make the window smaller");
      w.low = int(missing / 2);
      w.high = int(missing - missing / 2);
    }
    windows.push_back(w);
  }
  return windows;
}

}  // namespace detail

inline command einsum_command() {
  return {"einsum",
          "sums of products of tensors, in numpy's notation; three and more are multiplied two at a time, in the cheapest order",
          "\"BMK,BNK->BMN\" --mesh x=2,y=2 --in 4,24@x,100@y --in 4@x,32,100@y --out 4@x,24@y,32",
          {detail::equation_option("BMK,BNK->BMN"), operands_option("shape of an operand; once per operand"), output_option()},
          [](const arguments& a) {
            const detail::equation_request e = detail::read_equation(a, gs::equation_form::numpy);
            request r = detail::start(a, e.operands);
            r.multiplies = e.operands.size() > 2;
            r.body = [text = a.text("equation")](gs::builder&, std::span<const gs::symbol> x) {
              return std::vector{gs::einsum(text, x)};
            };
            return r;
          }};
}

inline command conv_command() {
  std::vector<option> options{detail::equation_option("BIXY,xyIO->BOXY"), operands_option("shape of the operand, then that of the taps"),
                              output_option()};
  options[0].what += ": x and y are the taps of the windows that move over X and Y";
  for (const option& o : detail::window_options()) options.push_back(o);
  return {"conv", "a convolution: an einsum in which a lower-case letter of the second operand is a tap of the upper-case one",
          "\"BIXY,xyIO->BOXY\" --mesh x=2,y=2 --in 8,3,32@x,32@y --in 3,3,3,16 --stride 2,2 --pad 1", options, [](const arguments& a) {
            const detail::equation_request e = detail::read_equation(a);
            if (e.operands.size() != 2) throw refusal("a convolution has two operands: give the equation and --in for both");
            std::vector<std::int64_t> extents, taps;
            for (int d = 0; d < e.operands[0].rank(); ++d) {
              const int tap = gs::tap_of(e.equation, d);
              if (tap < 0) continue;
              extents.push_back(e.operands[0].extents[std::size_t(d)]);
              taps.push_back(e.operands[1].extents[std::size_t(e.equation.operand(1).find(tap))]);
            }
            if (extents.empty())
              throw refusal("the equation \"" + a.text("equation") +
                            "\" has no window: let a lower-case letter of the second operand be a tap of an "
                            "upper-case one of the first and of the result, as in \"BIXY,xyIO->BOXY\"");
            const auto windows = detail::read_windows(a, extents, taps);
            request r = detail::start(a, e.operands);
            r.body = [windows, text = a.text("equation")](gs::builder&, std::span<const gs::symbol> x) {
              return std::vector{gs::conv(text, x[0], x[1], windows)};
            };
            return r;
          }};
}

inline command pool_command() {
  std::vector<option> options{{"--kind", "max, min, sum or mean (max)"},
                              operand_option(),
                              {"--window", "taps, one number per dim; or with --dims for these", option::takes::text, true},
                              dims_option("the dims that the windows are for; all others are left alone"),
                              output_option()};
  for (const option& o : detail::window_options()) options.push_back(o);
  return {"pool", "the maximum, minimum, sum or mean of every window; zeros of the padding count in a mean",
          "--kind max --mesh x=2 --in 8,32@x,32,16 --window 1,3,3,1 --stride 1,2,2,1 --pad same", options, [](const arguments& a) {
            const std::size_t kind = a.choice("kind", {"max", "min", "sum", "mean"}, 0);
            const shape x = a.tensor("in");
            const auto taps = a.per_dim("window", std::vector<std::int64_t>(x.extents.size(), 1), 1, most_of_window);
            const auto how = detail::read_windows(a, x.extents, taps);
            std::vector<gs::pool_window> windows;
            double largest = 1;
            for (std::size_t d = 0; d < taps.size(); ++d) {
              largest *= double(taps[d]);
              if (taps[d] != 1 || how[d].stride != 1 || how[d].low != 0 || how[d].high != 0 || how[d].dilation != 1)
                windows.push_back({int(d), int(taps[d]), how[d]});
            }
            if (largest > double(most_of_window)) throw refusal("--window " + a.text("window") + ": make the window smaller");
            if (windows.size() + x.extents.size() > 15)
              throw refusal("--window " + a.text("window") + ": of 8 dims at most 7 may have windows");
            request r = detail::start(a, {x});
            r.rounds = kind == 3;
            r.body = [kind, windows](gs::builder&, std::span<const gs::symbol> in) {
              const gs::list_view<gs::pool_window> over(windows);
              if (windows.empty()) return std::vector{in[0]};
              return std::vector{kind == 0   ? gs::max_pool(in[0], over)
                                 : kind == 1 ? gs::min_pool(in[0], over)
                                 : kind == 2 ? gs::sum_pool(in[0], over)
                                             : gs::mean_pool(in[0], over)};
            };
            return r;
          }};
}

}  // namespace planning
