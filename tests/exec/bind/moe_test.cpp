// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/moe.hpp>

#include "serial_run.hpp"

#include <gshard/trace/einsum.hpp>
#include <gshard/trace/gating.hpp>

namespace gs = gshard;
using run_graph::array, run_graph::arrays, run_graph::given, run_graph::scope, run_graph::serial_run;
using symbols = gs::list<gs::symbol>;

TEST_CASE("tokens reach their experts, and come back weighted") {
  // Tokens 0 and 2 prefer expert 1, token 1 expert 0; the second choices are taken, too.
  const arrays y = serial_run({{"GSE"}, {"GSM"}}, {{'G', 1}, {'S', 3}, {'E', 2}, {'M', 1}}, {{0.25, 0.75, 1, 0, 0.5, 0.5}, {1, 2, 4}},
                              [](const scope&, given x) {
                                const gs::gating_result r = gs::top2_gating(x[0], gs::capacity{4}, gs::second_expert::always);
                                const gs::symbol sent = gs::einsum<"GSEC,GSM->EGCM">(r.dispatch, x[1]);
                                return symbols{r.load, r.overflow, gs::einsum<"EGCM->EM">(sent),
                                               gs::einsum<"GSEC,EGCM->GSM">(r.combine, sent)};
                              });
  CHECK(y[1] == array{0});
  CHECK(y[2].size() == 2);
  CHECK(y[3] == array{1, 2, 4});  // the weights of a token add up to 1
}
