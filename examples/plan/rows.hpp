// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"

#include <gshard/core/trace/broadcast.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/reduce/argmax.hpp>
#include <gshard/ops/reduce/logsumexp.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/rows/layer_norm.hpp>
#include <gshard/ops/rows/softmax.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// Subcommands that compute element by element or row by row: map, reduce, softmax, layer-norm.
namespace planning {

namespace detail {

/// The extents of a broadcast result: dims of extent 1, and leading dims that an operand lacks, are repeated.
inline std::vector<std::int64_t> broadcast(const std::vector<shape>& operands, const gs::mesh_shape& mesh) {
  std::size_t rank = 0;
  for (const shape& s : operands) rank = std::max(rank, s.extents.size());
  std::vector<std::int64_t> result(rank, 1);
  for (const shape& s : operands)
    for (std::size_t d = 0; d < s.extents.size(); ++d) {
      std::int64_t& whole = result[rank - s.extents.size() + d];
      if (s.extents[d] != 1 && whole != 1 && s.extents[d] != whole)
        throw refusal("dim " + std::to_string(d) + " of \"" + text_of(s, mesh) + "\" meets extent " + std::to_string(whole) +
                      " of another operand: let them be the same, or one of them 1 (dims are lined up from the last)");
      if (s.extents[d] != 1) whole = s.extents[d];
    }
  return result;
}

/// The sum of all operands, element by element.
inline gs::symbol sum_of(std::span<const gs::symbol> operands, const std::vector<shape>& shapes, const std::vector<std::int64_t>& result) {
  std::vector<gs::symbol> x(operands.begin(), operands.end());
  std::vector<std::string> letters(x.size());  // letters of the result's dims, from 'a'
  std::string all;
  for (std::size_t d = 0; d < result.size(); ++d) all += char('a' + int(d));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::vector<std::int64_t>& own = shapes[i].extents;
    const std::size_t missing = result.size() - own.size();
    for (std::size_t d = own.size(); d-- > 0;) {
      if (own[d] == result[missing + d]) letters[i].insert(0, 1, all[missing + d]);
      else x[i] = gs::squeeze(x[i], int(d));
    }
  }
  gs::symbol sum;
  for (std::size_t i = 0; i < x.size(); ++i) {  // the other operands give the dims that it lacks
    std::vector<gs::symbol> with{x[i]};
    std::string text = letters[i];
    for (std::size_t other = 0; other < x.size(); ++other)
      if (other != i) {
        with.push_back(x[other]);
        text += "," + letters[other];
      }
    const gs::symbol whole = gs::broadcast(text + "->" + all, with);
    sum = i == 0 ? whole : sum + whole;
  }
  return sum;
}

}  // namespace detail

inline command map_command() {
  return {"map",
          "the sum of tensors, element by element; numpy's broadcasting",
          "--mesh x=2 --in 8@x,6 --in 6 --in 8,1",
          {operands_option("shape of an operand; once per operand"), output_option()},
          [](const arguments& a) {
            const std::vector<shape> operands = a.tensors("in");
            constexpr std::size_t most = gs::equation::most_operands;  // a broadcast is an equation of one operand and all others
            if (operands.size() > most)
              throw refusal("map takes at most " + std::to_string(most) + " operands, not " + std::to_string(operands.size()));
            request r = detail::start(a, operands);
            r.body = [operands, result = detail::broadcast(operands, a.on.mesh)](gs::builder&, std::span<const gs::symbol> x) {
              return std::vector{detail::sum_of(x, operands, result)};
            };
            return r;
          }};
}

namespace detail {

enum class reduced { sum, mean, max, min, prod, argmax, argmin, logsumexp };

/// The dims of a tensor that a reduction keeps.
inline std::vector<int> others(const std::vector<int>& dims, int rank) {
  std::vector<int> kept;
  for (int d = 0; d < rank; ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) kept.push_back(d);
  return kept;
}

inline gs::symbol reduction_of(reduced kind, const std::string& equation, gs::symbol x) {
  switch (kind) {
    case reduced::sum:
      return gs::sum(equation, x);
    case reduced::mean:
      return gs::mean(equation, x);
    case reduced::max:
      return gs::reduce_max(equation, x);
    case reduced::min:
      return gs::reduce_min(equation, x);
    case reduced::prod:
      return gs::reduce_prod(equation, x);
    case reduced::argmax:
      return gs::argmax(equation, x);
    case reduced::argmin:
      return gs::argmin(equation, x);
    case reduced::logsumexp:
      return gs::logsumexp(equation, x);
  }
  return x;
}

}  // namespace detail

inline command reduce_command() {
  return {"reduce",
          "one number of all along some dims; argmax and argmin, of one dim: the first index that has it",
          "--kind max --mesh x=2 --in 8@x,6 --dims 0",
          {{"--kind,--op", "sum, mean, max, min, prod, argmax, argmin or logsumexp (sum)"},
           operand_option(),
           dims_option("the dims that are reduced (all)"),
           output_option()},
          [](const arguments& a) {
            const auto kind = detail::reduced(a.choice("kind", {"sum", "mean", "max", "min", "prod", "argmax", "argmin", "logsumexp"}, 0));
            const shape x = a.tensor("in");
            const std::vector<int> dims = a.dims("dims", x.rank());
            if ((kind == detail::reduced::argmax || kind == detail::reduced::argmin) && dims.size() != 1)
              throw refusal("--kind " + a.text("kind") + " is along one dim: say which with --dims");
            request r = detail::start(a, {x});
            r.rounds = kind == detail::reduced::mean || kind == detail::reduced::logsumexp;
            r.multiplies = kind == detail::reduced::prod;
            const std::string equation = detail::equation_of(x.rank(), detail::others(dims, x.rank()));
            r.body = [kind, equation](gs::builder&, std::span<const gs::symbol> in) {
              return std::vector{detail::reduction_of(kind, equation, in[0])};
            };
            return r;
          }};
}

inline command softmax_command() {
  return {"softmax",
          "exp(x) by its sum over the last dim",
          "--mesh x=2,y=2 --in 8@x,100@y",
          {operand_option(), output_option()},
          [](const arguments& a) {
            request r = detail::start(a, {a.tensor("in")});
            if (r.inputs[0].is.rank() == 0) throw refusal("a softmax is along the last dim: give --in at least one extent");
            r.rounds = true;
            r.body = [](gs::builder&, std::span<const gs::symbol> in) { return std::vector{gs::softmax(in[0])}; };
            return r;
          }};
}

inline command layer_norm_command() {
  return {
      "layer-norm",
      "(x - mean) / deviation * gamma + beta over the last dim",
      "--mesh x=2,y=2 --in 8@x,100@y",
      {operand_option(),
       {"--gamma,--scale", "shape of gamma (the last dim, lying as in the operand)"},
       {"--beta,--bias", "shape of beta (as that of gamma)"},
       output_option()},
      [](const arguments& a) {
        const shape x = a.tensor("in");
        if (x.rank() == 0) throw refusal("a layer norm is along the last dim: give --in at least one extent");
        shape last{{x.extents.back()}, gs::sharding::replicated(1)};
        last.layout[0] = x.layout[x.rank() - 1];
        std::vector<shape> operands{x, last, last};
        for (std::size_t i : {std::size_t(1), std::size_t(2)})
          if (const char* key = i == 1 ? "gamma" : "beta"; a.has(key)) {
            operands[i] = a.tensor(key);
            if (operands[i].extents != last.extents)
              throw refusal("--" + std::string(key) + " " + a.text(key) + ": give it one dim of extent " + std::to_string(last.extents[0]));
          }
        request r = detail::start(a, operands);
        r.rounds = true;
        r.body = [](gs::builder&, std::span<const gs::symbol> in) { return std::vector{gs::layer_norm(in[0], in[1], in[2])}; };
        return r;
      }};
}

}  // namespace planning
