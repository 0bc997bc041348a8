// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A plan that is made or read when a program runs.

#include <gshard/core/base/compiled.hpp>
#include <gshard/core/ir/graph.hpp>
#include <gshard/core/ir/mesh.hpp>
#include <gshard/core/ir/window.hpp>
#include <gshard/core/plan/plan.hpp>
#include <gshard/core/program/program_options.hpp>
#include <gshard/exec/tensor/tensor_text.hpp>

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

namespace detail {
/// A plan with all that it refers to.
struct plan_contents {
  std::vector<tensor_text> inputs;
  plan_tables planned;
  plan_view plan;
  graph traced;  // the program before any pass; empty if the plan was read from a file
  compile_options options;
  std::deque<std::string> texts;               // names and source files of a plan that was read
  std::deque<std::vector<device_pair>> pairs;  // its permutations
  std::deque<attribute_names> names;           // of its operations' own attributes
  std::shared_ptr<const void> keeps;           // the owner of the names of source lines, if they are not constant
};
}  // namespace detail

/// A plan that exists at run time: of a `runtime_program`, or read from a file. A handle: copies share the plan.
/// @see runtime_executable, read_plan
class runtime_plan {
 public:
  explicit runtime_plan(std::shared_ptr<const detail::plan_contents> made) : made_(std::move(made)) {}

  /// Valid as long as a copy of this object, or an executable of it.
  const plan_view& plan() const { return made_->plan; }
  const mesh_shape& mesh() const { return made_->plan.mesh; }
  /// The inputs, in order.
  std::span<const tensor_text> inputs() const { return made_->inputs; }
  /// Keeps the plan.
  std::shared_ptr<const void> owner() const { return made_; }

 protected:
  const detail::plan_contents& contents() const { return *made_; }

 private:
  friend class runtime_executable;
  std::shared_ptr<const detail::plan_contents> made_;
};

}}  // namespace gshard::v0
