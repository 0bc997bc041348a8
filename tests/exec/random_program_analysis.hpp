// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program_facts.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace random_program {

/// A program during generation or replay: its steps, traced, with facts about them.
class analysis {
 public:
  explicit analysis(const place& on) : dims_(on.dims) { b_.mesh = run_graph::mesh_of_rank(4); }

  /// Appends a step if it is valid and its result has at most `most_elements` elements. Otherwise returns false and changes nothing.
  bool append(const step& s, std::int64_t most_elements = std::numeric_limits<std::int64_t>::max()) {
    const gs::graph before = b_.program;
    symbols operands;
    std::vector<known> x;
    for (const int i : s.in) {
      operands.push_back({&b_, made_[std::size_t(i)]});
      x.push_back(known_[std::size_t(i)]);
    }
    const symbol made = call(b_, s, operands);
    std::optional<facts> f;
    known y;
    if (!b_.failed()) {
      y = {{}, made.get().type, extents_of(made)};
      f = detail::after(s, x, y, dims_);
    }
    if (f && f->exact && f->digits() > significant_bits(y.type)) f->exact = false;
    // Float, half and bfloat16 are compared exactly, or not at all.
    if (!f || (significant_bits(y.type) < 44 && !f->exact) || y.extents.size() > 6 || y.elements() > most_elements) {
      problem_ = b_.program.problem;
      b_.program = before;
      return false;
    }
    y.of = *f;
    made_.push_back(made.id);
    known_.push_back(y);
    return true;
  }
  std::size_t size() const { return made_.size(); }
  const gs::dim_list& dims(int v) const { return b_.program.at(made_[std::size_t(v)]).dims; }
  const known& about(int v) const { return known_[std::size_t(v)]; }
  const gs::dim& dim(int i) const { return b_.program.dims[std::size_t(i)]; }
  /// The library's reason to refuse the last step, if it did.
  gs::fault problem() const { return problem_.what; }

 private:
  gs::dims dims_;
  gs::builder b_;
  std::vector<std::int32_t> made_;  // values of the graph
  std::vector<known> known_;
  gs::diagnostic problem_;

  std::vector<std::int64_t> extents_of(symbol x) const {
    std::vector<std::int64_t> e, of;
    for (const gs::dim& d : b_.program.dims)
      e.push_back(d.what == gs::dim::kind::bound ? dims_.find(d.letter)
                                                 : gs::derived_extent(d, gs::list_view<std::int64_t>(e.data(), e.size())));
    for (int d = 0; d < x.rank(); ++d) of.push_back(e[std::size_t(x.get().dims[d])]);
    return of;
  }
};

/// True if gradients can be compared. They are sums, and the gradients of a convolution multiply padding by the gradient of its result.
inline bool has_clear_gradients(const recipe& r, const analysis& a) {
  bool huge = false, special = false, padding = false;
  for (std::size_t v = 0; v < r.steps.size(); ++v) {
    huge = huge || a.about(int(v)).of.huge;
    special = special || a.about(int(v)).of.special();
    const step& s = r.steps[v];
    padding = padding || s.what == verb::conv;
  }
  return !huge && !(special && padding);
}

/// The facts about all steps, or nothing if the program is not valid.
inline std::optional<analysis> analysed(const recipe& r) {
  analysis a(r.on);
  for (const step& s : r.steps)
    if (!a.append(s)) return {};
  for (const int v : r.loss)
    if (a.about(v).of.last) return {};
  if (!r.gradients.empty() && !has_clear_gradients(r, a)) return {};
  return a;
}

/// The required agreement of two runs, for every result.
inline std::string agreement(const recipe& r, const analysis& a) {
  std::string how;
  for (const result& y : r.results) {
    const facts& f = a.about(y.of).of;
    how += f.blurred ? on_mesh::finite_alike
           : f.fixed && !f.zero_added ? on_mesh::same_bits
           : f.fixed || f.exact       ? on_mesh::same_values
                                      : on_mesh::nearly;
  }
  bool infinite = false;
  for (std::size_t v = 0; v < a.size(); ++v) infinite = infinite || a.about(int(v)).of.infinite;
  how.append(r.gradients.size(), infinite ? on_mesh::finite_alike : on_mesh::nearly);
  return how;
}

}  // namespace random_program
