// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Named scopes: names for the parts of a model. The simulator groups the time of a step by these names.

#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/parameter_scope.hpp>

#include <cstddef>

namespace gshard { inline namespace v0 {

/// Names the operations that are added during its lifetime, as jax.named_scope does: `const gs::named_scope part(m, "attention");`. The
/// innermost name counts. It has at most 63 characters. The gradients and collectives of an operation have its name. The simulator groups
/// the time of a training step by these names. @see step_part
class [[nodiscard]] named_scope {
 public:
  template <std::size_t N>
  constexpr named_scope(const parameter_scope& m, const char (&name)[N]) : builder_(m.owner()), outer_(builder_.place.scope) {
    static_assert(N <= sizeof tensor_name{}.text + 1, "gshard: the name of a named_scope has at most 63 characters");
    builder_.place.scope = name;
  }
  constexpr ~named_scope() { builder_.place.scope = outer_; }
  named_scope(const named_scope&) = delete;
  named_scope& operator=(const named_scope&) = delete;

 private:
  builder& builder_;
  const char* outer_;
};

}}  // namespace gshard::v0
