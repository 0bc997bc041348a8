// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Rotary position embeddings (arXiv 2104.09864) and RMS normalization (arXiv 1910.07467), as decoder-only language models use them.

#include <gshard/core/base/math.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/iota.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/window/reverse.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gshard { inline namespace v0 { namespace nn {

namespace detail {
inline constexpr auto rotary_log = [](auto v) { return log(v); };
inline constexpr auto rotary_exp = [](auto v) { return exp(v); };
inline constexpr auto rotary_cosine = [](auto position, auto frequency) { return cos(position * frequency); };
inline constexpr auto rotary_sine = [](auto position, auto frequency) { return sin(position * frequency); };
inline constexpr auto rotary_turn = [](auto v, auto other, auto c, auto s, auto sign) { return v * c + sign * other * s; };
inline constexpr auto rms_normalized = [](auto v, auto mean_square, auto gamma) { return v / sqrt(mean_square) * gamma; };
}  // namespace detail

/// rotary(x, positions, at, base): rotates the pairs (x[i], x[i + D/2]) of the last dim by the angle position * base^(-2i/D). Products of
/// rotated queries and keys then depend on the distance of their positions. The pairs are those of Hugging Face's Llama.
/// Shapes: x [A..., T, heads..., D] with T at dim `at`; int32 positions [T]; D even -> the shape of x.
/// Communicates: nothing if D is not sharded.
/// Compile time: ranks and dims; real elements; int32 positions; that D is even, if it is known.
/// Throws: `gshard::error` when the program is bound, if D is odd.
/// @see gshard::attention, nn::language_model
template <class Used = void>
constexpr symbol rotary(here x, symbol positions, int at, double base = 10000) {
  namespace d = gshard::detail;
  builder& b = *x.owner;
  const line_of_call kept(b);
  if (!d::require_real(b, "rotary", {x}) || !b.has(positions) || !d::check_dim(x, at, "rotary")) return b.nothing();
  const int last = x.rank() - 1;
  if (!(base > 0)) b.fail_range("rotary", "base");
  if (positions.get().type != dtype::i32) b.fail_type("rotary", 1, positions.get().type, only(dtype::i32));
  else if (positions.rank() != 1 || at == last || !b.same_extent(positions.get().dims[0], x.get().dims[at]))
    b.fail(fault::dims_differ, "rotary", {}, 1, 0);
  if (b.failed()) return b.nothing();
  const int whole = x.get().dims[last], two = b.fixed_dim(2), half = b.ratio_dim(1, whole, two);
  if (const std::int64_t known = b.known_extent(whole); known > 0 && known % 2 == 1) {
    const char letter = b.program.dims[std::size_t(whole)].letter;
    b.fail(fault::odd_extent, "rotary", {&letter, letter ? 1u : 0u}, int(known));
  }
  const symbol pairs = d::emit_split(x, last, two, half);
  if (b.failed()) return b.nothing();
  b.program.nodes.back().attr.label = "rotary";
  // [T,D/2]: cosine and sine of each angle.
  dim_list of_angles, of_half, of_two;
  of_angles.push_back(x.get().dims[at]);
  of_angles.push_back(half);
  of_half.push_back(half);
  of_two.push_back(two);
  dim_list over;
  over.push_back(whole);
  const symbol part = d::emit_scale(cast(d::emit_iota(b, of_half, 0), x.get().type), -2, over, -1);  // -2i/D
  const symbol log_base = map<when_used<Used, detail::rotary_log>>(here(d::emit_filled(part, base)));
  const symbol frequency = map<when_used<Used, detail::rotary_exp>>(here(part * log_base));
  const symbol shape = d::emit_iota(b, of_angles, 0);
  if (b.failed()) return b.nothing();
  const auto angle = [&](const pointwise& f) {
    const symbol at_position = cast(positions, x.get().type), like = cast(shape, x.get().type);
    return d::emit_map_of(f, std::array{at_position, frequency}, std::array{d::counting(1), d::counting(1, 1)}, like);
  };
  const symbol cosine = angle(pointwise_of<when_used<Used, detail::rotary_cosine>, 2>);
  const symbol sine = angle(pointwise_of<when_used<Used, detail::rotary_sine>, 2>);
  const symbol sign = here(cast(d::emit_iota(b, of_two, 0), x.get().type)) * 2.0 - 1.0;
  const symbol others = reverse(here(pairs), last);
  if (b.failed()) return b.nothing();
  short_list angles = d::counting(1, at);
  angles.push_back(last + 1);
  const short_list all = d::counting(last + 2);
  const symbol turned = d::emit_map_of(pointwise_of<when_used<Used, detail::rotary_turn>, 5>, std::array{pairs, others, cosine, sine, sign},
                                       std::array{all, all, angles, angles, d::counting(1, last)}, pairs);
  return d::emit_merge(turned, last, whole);
}

/// rms_norm(x, gamma, epsilon) = x / sqrt(mean(x^2) + epsilon) * gamma over the last dim.
/// Shapes: x [..., M], gamma [M] -> the shape of x.
/// Communicates: nothing, or, if M is sharded, a sum per row.
/// Compile time: dims; real elements.
/// Throws: nothing.
/// @see layer_norm
template <class Used = void>
constexpr symbol rms_norm(here x, symbol gamma, double epsilon = 1e-5) {
  namespace d = gshard::detail;
  builder& b = *x.owner;
  const line_of_call kept(b);
  if (!d::require_real(b, "rms_norm", {x, gamma})) return b.nothing();
  const int last = x.rank() - 1;
  if (last < 0) b.fail(fault::rank_mismatch, "rms_norm", {}, 1, 0);
  else if (gamma.rank() != 1 || !b.same_extent(gamma.get().dims[0], x.get().dims[last])) b.fail(fault::dims_differ, "rms_norm", {}, 1, 0);
  if (b.failed()) return b.nothing();
  const short_list all = d::counting(last + 1), rows = d::counting(last);
  const std::array<symbol, 2> both{x, x};
  const std::array<short_list, 2> factors{all, all};
  dim_list over;
  over.push_back(x.get().dims[last]);
  const symbol squares = d::emit_einsum(b, list_view(both.data(), 2u), list_view(factors.data(), 2u), rows);
  const symbol mean_square = here(d::emit_scale(squares, 1, over, -1)) + epsilon;
  if (b.failed()) return b.nothing();
  return d::emit_map_of(pointwise_of<when_used<Used, detail::rms_normalized>, 3>, std::array{symbol(x), mean_square, gamma},
                        std::array{all, rows, d::counting(1, last)}, x);
}

}}}  // namespace gshard::v0::nn
