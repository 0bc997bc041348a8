// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checks that the rows of a plan file fit together, before anything else reads them.

#include <gshard/core/ir/equation.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/io/json_field.hpp>
#include <gshard/runtime/plan_functions.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// Checks that the rows of a plan fit together: every value is made once, before it is read; ranks, factors, functions and loops match.
/// Throws `gshard::error` that names the step. The plan of a program passes. Whether a step computes what its author wants is not checked.
class plan_check {
 public:
  plan_check(const plan_tables& plan, const json_field& file) : plan_(plan), file_(file), made_(plan.values.size(), 0) {}

  void run() {
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i) make(plan_.inputs[i].value, "inputs", i);
    for (std::size_t i = 0; i < plan_.parameters.size(); ++i) make(plan_.parameters[i].value, "parameters", i);
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      check_operands(i);
      check_rule(i);
      check_attributes(i);
      check_kind(i);
      check_loop(i);
      for (int o = 0; o < plan_.steps[i].outputs; ++o) make(plan_.steps[i].output(o), "steps", i);
    }
    if (!loops_.empty()) file_["steps"].fail("begin a loop that does not end");
    for (std::size_t i = 0; i < plan_.outputs.size(); ++i) read(plan_.outputs[i].value, "outputs", i);
    for (std::size_t i = 0; i < plan_.parameters.size(); ++i)
      if (plan_.parameters[i].updated >= 0) read(plan_.parameters[i].updated, "parameters", i);
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i) check_input(i);
  }

 private:
  const plan_tables& plan_;
  const json_field& file_;
  std::vector<char> made_;           // by value
  std::vector<std::size_t> loops_;  // the first steps of the open ones

  [[noreturn]] void fail(const char* list, std::size_t row, const std::string& what) const { file_[list][row].fail(what); }
  void refuse_unless(bool holds, std::size_t step, const char* what) const {
    if (!holds) fail("steps", step, what);
  }
  const value& at(std::int32_t v) const { return plan_.values[std::size_t(v)]; }

  void make(std::int32_t v, const char* list, std::size_t row) {
    if (std::exchange(made_[std::size_t(v)], 1) != 0) fail(list, row, "makes value " + std::to_string(v) + ", which is made already");
  }
  void read(std::int32_t v, const char* list, std::size_t row) const {
    if (!made_[std::size_t(v)]) fail(list, row, "reads value " + std::to_string(v) + ", which is not made before");
  }
  void check_operands(std::size_t i) const {
    const node& n = plan_.steps[i];
    for (int k = 0; k < n.inputs; ++k) read(n.input(k), "steps", i);
    const int shared = n.kind->alias ? 1 : n.in_place;
    refuse_unless(shared <= n.inputs && shared <= n.outputs, i, "has too few tensors for a view");
    for (int o = 0; o < shared; ++o)
      refuse_unless(at(n.input(o)).type == at(n.output(o)).type, i, "has a result of another type in the place of its operand");
    if (n.kind->collective || n.kind->reshards) refuse_unless(n.inputs > 0 && n.outputs > 0, i, "moves no tensor");
    if (n.kind->reshards && !n.kind->ragged) {
      refuse_unless(n.inputs == n.outputs && n.inputs <= most_moves, i, "has not a result for each operand");
      for (int k = 0; k < n.inputs; ++k) refuse_unless(at(n.input(k)).dims == at(n.output(k)).dims, i, "changes the dims that it moves");
    }
  }
  void check_rule(std::size_t i) const {
    const node& n = plan_.steps[i];
    const auto fits = [&](int count, const std::int32_t* ids, const short_list* lists) {
      for (int k = 0; k < count; ++k)
        refuse_unless((lists[k].empty() && !n.kind->product) || lists[k].size() == at(ids[k]).rank(), i,
                      "has a rule with another number of dims than its tensors");
    };
    fits(n.inputs, n.in, n.rule.in);
    fits(n.outputs, n.out, n.rule.out);
  }
  void check_attributes(std::size_t i) const {
    const attributes& a = plan_.steps[i].attr;
    const node& n = plan_.steps[i];
    refuse_unless(a.dim >= 0 && a.dim <= max_rank, i, "works along a dim that no tensor has");
    refuse_unless((a.axes >> plan_.mesh.count) == 0, i, "has axes that the mesh does not have");
    refuse_unless(a.window >= 0 && std::size_t(a.window) < plan_.windows.size(), i, "reads through a window that there is not");
    refuse_unless(a.ring_operand >= 0 && a.ring_operand <= n.inputs, i, "passes on an operand that it does not have");
    refuse_unless(a.loop >= 0, i, "is of a loop that there is not");
    if (n.kind->taps) refuse_unless(n.inputs > 0 && a.dims.size() == at(n.input(0)).rank(), i, "has not the taps of each dim");
    if (a.moves == 0) return;
    refuse_unless(n.kind->collective, i, "combines moves, and is no collective");
    for (int k = 0; k < n.inputs; ++k)
      refuse_unless(((a.moves >> (6 * k)) & 63u) < std::size(move_operations), i, "combines moves of an unknown kind");
  }
  void check_kind(std::size_t i) const {
    const node& n = plan_.steps[i];
    const pointwise* const f = n.attr.function;
    const bool of_shards = n.kind->user_code && !n.kind->custom;
    refuse_unless(!n.kind->custom || n.attr.custom, i, "has no custom operation");
    if (n.kind->linear == linearity::of_function || of_shards) {
      const bool is_known = f && f->arity != plan_functions::any_arity;
      refuse_unless(f && (!is_known || f->arity == n.inputs) && n.outputs == 1, i, "has no function of its operands");
      refuse_unless(!is_known || of_shards == (f->shards_f32 != nullptr), i, "has a function of another kind");
      const dtype type = at(n.output()).type;
      refuse_unless(((f->types >> int(type)) & 1u) && (f->own >= 0 || is_real(type)), i, "has a function of other element types");
    }
    if (is_looped_product(n.kind)) refuse_unless(n.inputs == 2 && n.outputs == 1, i, "is not a product of two tensors");
    if (n.kind->ragged) refuse_unless(n.inputs == 2 && n.outputs > 0, i, "has no counts of its rows");
    if (n.kind == op::einsum) refuse_unless(n.inputs > 0 && n.inputs <= 2 && n.outputs == 1, i, "is not an einsum of one or two tensors");
  }
  void check_loop(std::size_t i) {
    const int nesting = plan_.steps[i].kind->nesting;
    if (nesting > 0) loops_.push_back(i);
    if (nesting >= 0) return;
    refuse_unless(!loops_.empty(), i, "ends a loop that does not begin");
    loops_.pop_back();
  }
  void check_input(std::size_t i) const {
    const port& p = plan_.inputs[i];
    const std::string_view letters = p.name.view();
    bool fits = letters.size() == std::size_t(at(p.value).rank());
    for (const char c : letters) fits = fits && is_letter(c);
    if (!fits) fail("inputs", i, "is not named by the letters of its dims");
    if (at(p.value).parameter >= 0) fail("inputs", i, "is a parameter");
  }
};

}}}  // namespace gshard::v0::detail
