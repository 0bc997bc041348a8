// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Gradient accumulation over micro-batches, with one reduction between devices for all of them.

#include <gshard/core/base/list.hpp>
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/window/slice.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>

namespace gshard { inline namespace v0 {

struct accumulate_options {
  /// [N]: the weight of each micro-batch in the mean, such as its number of labels. Without weights, all weights are equal.
  symbol weights{};
};

/// The mean loss of the micro-batches and its gradients. @see accumulate
struct accumulated {
  symbol loss;
  list<symbol> parameters;  ///< all trainable parameters
  list<symbol> gradients;   ///< of the parameters, in this order
};

namespace detail {

inline constexpr auto share_of_weights = [](auto one, auto all) { return all == 0 ? all : one / all; };
/// w / sum(w): the shares of the micro-batches, without a gradient. If all weights are 0, all shares are 0.
constexpr symbol emit_shares(symbol weights, dtype type, int leading) {
  builder& b = *weights.owner;
  if (!b.has(weights)) return b.nothing();
  if (weights.rank() != 1) b.fail(fault::rank_mismatch, "accumulate", {}, 1, weights.rank());
  else if (!b.same_extent(weights.get().dims[0], leading)) b.fail(fault::dims_differ, "accumulate", ".weights", diagnostic::no_number, 0);
  if (b.failed()) return b.nothing();
  const symbol w = cast(stop_gradient(weights), type);
  return map<share_of_weights>(w, sum(w));
}

/// loss * share. An einsum, because its gradient with respect to the loss needs the share alone.
constexpr symbol emit_share(symbol loss, symbol share) {
  return full_precision([](symbol a, symbol b) { return einsum<",->">(a, b); }, loss, share);
}

}  // namespace detail

/// accumulate(m, body, x, ...): the mean of body(x[0], ...), body(x[1], ...), ..., and its gradients. The leading dim of the inputs counts
/// the micro-batches. Its extent must be known when the program is compiled: `extent<'N', 4>`. Each micro-batch is complete, forward and
/// backward, before the next one begins, so activations take the memory of one micro-batch. The result is given to `adam{}.minimize`, or
/// used by hand.
///
/// accumulate(m, {.weights = counts}, body, x, ...): the weighted mean. If body returns the mean over its labels, and counts are the
/// numbers of labels, the result does not depend on the split.
/// Shapes: x [N, A...] -> body gets [A...], and returns a scalar; weights [N], real or integer.
/// Communicates: as the body does; with weights, also their sum. Gradients that are partial sums are added as such, and completed once, not
/// once for each micro-batch.
/// Compile time: the extent of the leading dim; that it is the same for all inputs. The plan has the steps of all N micro-batches: its
/// length and the compiler's time grow with N.
/// Throws: nothing.
/// @see adam, gradients
template <class Body, class... Symbols>
  requires(std::same_as<Symbols, symbol> && ...)
constexpr accumulated accumulate(const parameter_scope& m, const accumulate_options& options, const Body& body, here first,
                                 Symbols... rest) {
  builder& b = m.owner();
  accumulated sum{b.nothing(), {}, {}};
  int operand = 0;
  for (const symbol& x : {symbol(first), rest...}) {
    if (!b.has(x)) return sum;
    if (x.rank() == 0) b.fail(fault::rank_mismatch, "accumulate", {}, 1, 0);
    else if (!b.same_extent(x.get().dims[0], first.get().dims[0])) b.fail(fault::dims_differ, "accumulate", {}, operand, 0);
    if (b.failed()) return sum;
    ++operand;
  }
  const int leading = first.get().dims[0];
  const std::int64_t count = b.known_extent(leading);
  const char letter = b.program.dims[std::size_t(leading)].letter;
  if (count < 1) b.fail(fault::unknown_count, "accumulate", {&letter, 1});
  const code_place place = b.place;
  const list<symbol> losses = b.losses;
  symbol shares;
  for (int i = 0; i < int(count) && !b.failed(); ++i) {
    const auto part = [&](symbol x) {
      b.place = place;
      const line_of_call kept(b);
      return squeeze<0>(slice(x, 0, i, i + 1));
    };
    b.losses = {};  // auxiliary losses of this micro-batch
    const std::array<symbol, 1 + sizeof...(rest)> parts{part(first), part(rest)...};
    const symbol loss = std::apply(body, parts);
    if (!b.has(loss)) break;
    b.place = place;
    const line_of_call kept(b);
    if (i == 0 && options.weights.owner) shares = detail::emit_shares(options.weights, loss.get().type, leading);
    const symbol share = shares.owner ? detail::emit_share(loss, part(shares))
                         : count == 1 ? loss
                                      : detail::emit_scale(loss, 1 / double(count));
    sum.parameters = trainable(m);
    const list<symbol> gradient = detail::gradients_to_train(share, sum.parameters, "accumulate");
    sum.loss = i == 0 ? share : sum.loss + share;
    for (std::size_t k = 0; k < gradient.size() && !b.failed(); ++k) {
      if (i == 0) sum.gradients.push_back(gradient[k]);
      else sum.gradients[k] = sum.gradients[k] + gradient[k];
    }
  }
  b.losses = losses;
  return sum;
}
template <class Body, class... Symbols>
  requires(std::same_as<Symbols, symbol> && ...)
constexpr accumulated accumulate(const parameter_scope& m, const Body& body, here first, Symbols... rest) {
  return accumulate(m, accumulate_options{}, body, first, rest...);
}

}}  // namespace gshard::v0
