// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "bound_program.hpp"
#include "collectives.hpp"
#include "sampler.hpp"

#include <gshard/gshard.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>

// The share of a collective that overlaps with products that do not need it.
namespace calibrate {

inline constexpr auto chain = [](auto x, auto w) {
  for (int i = 0; i < 3; ++i) x = gs::einsum<"NH,MH->NM">(gs::relu(gs::einsum<"NM,MH->NH">(x, w)), w);
  return gs::sum(x);
};
inline constexpr auto sum_only = [](auto&, auto a) { return gs::annotate<gs::P<gs::none>>(a); };
inline constexpr auto products_only = [](auto&, auto x, auto w) { return chain(x, w); };
inline constexpr auto both_at_once = [](auto&, auto a, auto x, auto w) { return std::tuple{chain(x, w), gs::annotate<gs::P<gs::none>>(a)}; };

using partial_sum = gs::in<"A", gs::P<gs::none, gs::partial<"node", "rank">>>;
using sum_program = gs::program<sum_only, cluster_mesh, partial_sum>;
using products_program = gs::program<products_only, cluster_mesh, gs::in<"NM">, gs::in<"MH">>;
using both_program = gs::program<both_at_once, cluster_mesh, partial_sum, gs::in<"NM">, gs::in<"MH">>;

class overlap_points {
 public:
  /// `bytes` of the sum and `rows` of the products: chosen so that both take about as long.
  overlap_points(sampler& samples, const gs::any_cluster& on, int threads, std::int64_t bytes, std::int64_t rows) : samples_(samples) {
    const gs::dims products{{'N', rows}, {'M', 256}, {'H', 256}};
    gs::dims both = products;
    both.set('A', bytes / 4);
    const auto add = [&](const char* name, const auto& run) { return samples.add(name, [run] { run->run({}); }); };
    sum_ = add("sum", bound_program<sum_program>(on, {{'A', bytes / 4}}, threads));
    products_ = add("products", bound_program<products_program>(on, products, threads));
    both_ = add("both", bound_program<both_program>(on, both, threads));
  }
  /// Negative if products and collectives slow each other down, as on cores that all ranks share.
  double hidden() const {
    const double a = samples_.of(sum_).typical, b = samples_.of(products_).typical, c = samples_.of(both_).typical;
    return std::clamp((a + b - c) / std::min(a, b), -1.0, 1.0);
  }

 private:
  sampler& samples_;
  std::size_t sum_ = 0, products_ = 0, both_ = 0;
};

}  // namespace calibrate
