// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Rematerialization scopes: the backward pass recomputes their activations instead of keeping them.

#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/parameter_scope.hpp>

#include <cstdint>

namespace gshard { inline namespace v0 {

/// remat(m, saved): tensors made during its lifetime are not kept for the gradient, but recomputed from the tensors that the scope reads:
/// `const gs::remat layer(m, gs::remat_policy::products);`. Tensors that are read after the scope, and tensors of `saved`, are kept. As
/// jax.checkpoint, it trades time for memory: usually one scope per layer. Each tensor is recomputed when the backward pass first needs it.
/// Values and gradients have the same bits as without the scope: the same steps run again, with the same random numbers and order of sums.
/// In nested scopes, the outermost decides; `remat_policy::everything` turns a scope off. The body of a scan is a scope with the `saved` of
/// the scan. A stage of nn::pipeline is a scope with the `saved` of its options.
/// Communicates: the collectives of recomputed tensors run again, unless `saved` includes `remat_policy::collectives`.
/// Compile time: nothing; the results of a loop inside the scope are kept.
/// Throws: nothing.
/// @see remat_policy, gradients
class [[nodiscard]] remat {
 public:
  constexpr explicit remat(const parameter_scope& m, remat_policy saved = remat_policy::nothing)
      : builder_(m.owner()), outer_(builder_.place.remat) {
    if (outer_ != 0 || saved == remat_policy::everything) return;
    builder_.program.remats.push_back(saved);
    builder_.place.remat = std::int32_t(builder_.program.remats.size());
  }
  constexpr ~remat() { builder_.place.remat = outer_; }
  remat(const remat&) = delete;
  remat& operator=(const remat&) = delete;

 private:
  builder& builder_;
  std::int32_t outer_;
};

}}  // namespace gshard::v0
