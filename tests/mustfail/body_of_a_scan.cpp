// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bodies of scans and of a pipeline that take or return wrong tensors: one sentence each.
// expect: gshard: the body of a scan takes the index of the step, then the states, then a row of each stacked tensor
// expect: tensors_passed<3>
// expect: gshard: the body of a scan takes the index of the step, then the states, then a row of each stacked tensor
// expect: tensors_passed<2>
// expect: gshard: the body of a scan returns the next states, then its outputs: a tensor, or a tuple or array of tensors
// expect: gshard: the body of a scan returns the next states, then its outputs: a tensor, or a tuple or array of tensors
// expect: gshard: the body of a pipeline takes the tensor that passes its stages, then the weights
// expect: gshard: the body of a pipeline returns one tensor
#include <gshard/models/pipeline.hpp>
#include <gshard/plan.hpp>

#include <array>
#include <tuple>

namespace gs = gshard;

inline constexpr auto model = [](auto& m, auto h, auto xs, auto w) {
#if defined(MUST_FAIL)
  const auto [last, all] = gs::scan([](auto s, auto x) { return std::tuple(s + x, s); }, h, xs);
  const auto twice = gs::scan<3>([](auto s) { return s + s; }, h);
  const auto [first, second] = gs::scan([](auto, auto s, auto t, auto x) { return s + x + t; }, std::array{h, h}, xs);
  const auto none = gs::scan([](auto, auto s, auto x) { (void)(s + x); }, h, xs);
  const auto piped = gs::nn::pipeline(m, {}, [](auto y) { return y; }, xs, w);
  const auto two = gs::nn::pipeline(m, {}, [](auto y, auto) { return std::tuple(y, y); }, xs, w);
#else
  const auto [last, all] = gs::scan([](auto, auto s, auto x) { return std::tuple(s + x, s); }, h, xs);
  const auto twice = gs::scan<3>([](auto, auto s) { return s + s; }, h);
  const auto [first, second] = gs::scan([](auto, auto s, auto t, auto x) { return std::tuple(s + x, t); }, std::array{h, h}, xs);
  const auto [none] = gs::scan([](auto, auto s, auto x) { return s + x; }, h, xs);
  const auto piped = gs::nn::pipeline(m, {}, [](auto y, auto v) { return y + v; }, xs, w);
  const auto two = piped;
#endif
  return last + gs::sum(all) + twice + first + second + none + gs::sum(piped) + gs::sum(two);
};
static_assert(gs::program<model, gs::mesh<gs::axis<"data">>, gs::in<"">, gs::in<"T">, gs::in<"S">, gs::extent<'T', 4>, gs::extent<'S', 2>>::
                  plan.collectives() == 0);
