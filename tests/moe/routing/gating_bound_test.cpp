// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/routing/gating_kernel.hpp>

#include "../../exec/bind/serial_run.hpp"

#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/moe/routing/gating.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gs = gshard;
using run_graph::array, run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
using symbols = gs::list<gs::symbol>;

TEST_CASE("tokens reach their experts, and come back weighted") {
  // Tokens 0 and 2 prefer expert 1, token 1 expert 0. The second choices are used as well.
  const arrays y = serial_run({{"GSE"}, {"GSM"}}, {{'G', 1}, {'S', 3}, {'E', 2}, {'M', 1}}, {{0.25, 0.75, 1, 0, 0.5, 0.5}, {1, 2, 4}},
                              [](const scope&, given x) {
                                const gs::gating_result r = gs::top_k_gating(x[0], {.k = 2, .slots = {4}});
                                const gs::symbol sent = gs::einsum<"GSEC,GSM->EGCM">(r.dispatch, x[1]);
                                return symbols{r.load, r.overflow, gs::einsum<"EGCM->EM">(sent),
                                               gs::einsum<"GSEC,EGCM->GSM">(r.combine, sent)};
                              });
  CHECK(y[1] == array{0});
  CHECK(y[2].size() == 2);
  CHECK(y[3] == array{1, 2, 4});  // the weights of a token add up to 1
}

TEST_CASE("top_k_gating of more choices than experts: a token chooses all, and nothing counts its other choices") {
  const array gates{0.25, 0.75, 0.9, 0.1, 0.5, 0.5}, dy{1, 2, 3, 4, 5, 6};
  const auto routed = [&](gs::routing_options options) {
    return serial_run({{"GSE"}, {"GSE"}}, {{'G', 1}, {'S', 3}, {'E', 2}}, {gates, dy}, [=](const scope&, given x) {
      const gs::gating_result r = gs::top_k_gating(x[0], options);
      const gs::symbol weights = gs::einsum<"GSEC->GSE">(r.combine);
      return symbols{weights,    r.aux,    r.load,
                     r.overflow, r.demand, gs::gradients(gs::sum(weights * x[1]) + r.aux, std::array{x[0]})[0]};
    });
  };
  for (const double slots : {1.0, 2.0, 3.0}) {
    const arrays both = routed({.k = 2, .slots = {slots}});
    CHECK(both[4] == array{3, 3});
    CHECK(routed({.k = 3, .slots = {slots}}) == both);
    CHECK(routed({.k = 5, .slots = {slots}}) == both);
  }
}

TEST_CASE("gating refuses to be bound without experts, and names the dim") {
  const auto routed = [](bool experts_choose, std::int64_t experts) {
    return serial_run({{"GSE"}}, {{'G', 1}, {'S', 3}, {'E', experts}}, {array(std::size_t(3 * experts), 0.5)},
                      [=](const scope&, given x) {
                        const gs::choice choice = experts_choose ? gs::choice::by_experts : gs::choice::top_k;
                        return symbols{gs::top_k_gating(x[0], {.choice = choice}).load};
                      });
  };
  CHECK(routed(false, 2)[0].size() == 2);
  CHECK_THROWS_WITH_AS(routed(false, 0), doctest::Contains("top_k_gating: dim 'E' has extent 0"), gs::error);
  CHECK_THROWS_WITH_AS(routed(true, 0), doctest::Contains("top_k_gating: dim 'E' has extent 0"), gs::error);
}
