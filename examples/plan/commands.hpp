// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "request.hpp"

#include <gshard/ir/equation.hpp>
#include <gshard/trace/einsum.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

// One function per subcommand: from its texts to a request.
namespace planning {

/// What all subcommands share.
struct setting {
  gs::mesh_shape mesh;
  gs::dtype type = gs::dtype::f32;
  bool keep_partial = false;
};

namespace detail {
inline request start(const setting& s, const std::optional<std::string>& output) {
  request r;
  r.mesh = s.mesh;
  r.type = s.type;
  r.keep_partial = s.keep_partial;
  if (output) r.output = parse_shape(*output, s.mesh);
  return r;
}
}  // namespace detail

/// einsum "BMK,BNK->BMN" of one or two operands.
inline request einsum_request(const setting& s, const std::string& equation, const std::vector<std::string>& inputs,
                              const std::optional<std::string>& output) {
  request r = detail::start(s, output);
  gs::diagnostic problem;
  const gs::equation e = gs::parse_equation(equation, problem);
  const auto commas = std::count(equation.begin(), equation.end(), ',');
  if (commas > 1)
    throw refusal("the equation \"" + equation + "\" has " + std::to_string(commas + 1) +
                  " operands: plan it as einsums of one or two, one after the other");
  refuse(problem, s.mesh);
  if (int(inputs.size()) != e.count)
    throw refusal("the equation \"" + equation + "\" has " + std::to_string(e.count) + " operands, not " + std::to_string(inputs.size()) +
                  ": give one --in per operand");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const gs::short_list& factors = e.operands[i];
    request::operand o{{}, parse_shape(inputs[i], s.mesh)};
    if (o.is.rank() != factors.size()) problem.report(gs::fault::rank_mismatch, inputs[i], {}, factors.size(), o.is.rank());
    refuse(problem, s.mesh);
    for (int d = 0; d < factors.size(); ++d) o.letters += e.letters[std::size_t(factors[d])];
    r.inputs.push_back(o);
  }
  r.body = [e, equation](gs::builder& b, std::span<const gs::symbol> operands) {
    return gs::detail::emit_einsum(b, operands, gs::list_view(e.operands.data(), operands.size()), e.output, equation);
  };
  return r;
}

/// One tensor from one layout to another.
inline request reshard_request(const setting& s, const std::string& from, const std::string& to) {
  request r = detail::start(s, to);
  request::operand o{{}, parse_shape(from, s.mesh)};
  for (int d = 0; d < o.is.rank(); ++d) o.letters += char('A' + d);
  r.inputs.push_back(o);
  r.body = [](gs::builder&, std::span<const gs::symbol> operands) { return operands[0]; };
  return r;
}

}  // namespace planning
