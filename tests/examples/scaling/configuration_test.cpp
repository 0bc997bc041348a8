// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "scaling/configuration.hpp"

#include <gshard/moe/routing/gating.hpp>
#include <gshard/ops/random/dropout.hpp>

#include "scaling/model.hpp"

#include <doctest/doctest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace scaling;

TEST_CASE("scaling: every run has a name of its own, and each model has all seeds") {
  for (const task data : {task::iso_codes, task::catalogues}) {
    std::set<std::string> names;
    std::size_t dense = 0;
    for (const configuration& c : runs_of(data, 3)) {
      CHECK(names.insert(c.name()).second);
      dense += c.is_dense();
    }
    CHECK(dense == 6);                    // two depths, three seeds
    CHECK(names.size() == 30 + 2 + 3 + 4);  // two depths x three seeds x five models; capacities, weights and policies except the defaults
  }
}

TEST_CASE("scaling: runs are chosen by parts of their names; a part that no run has is named, with all runs") {
  CHECK(select_runs(3).size() == 2 * 39);
  CHECK(select_runs(3, {"catalogues"}).size() == 39);
  CHECK(select_runs(1, {"iso-codes-2x2-E2-", "iso-codes-2x2-E128-"}).size() == 2);
  for (const std::vector<std::string>& only : std::vector<std::vector<std::string>>{{"E64"}, {"dense", "E64"}}) {
    std::string message;
    try {
      select_runs(1, only);
    } catch (const std::runtime_error& e) {
      message = e.what();
    }
    CHECK(message.find("--only: no run has 'E64' in its name; the runs are\n  iso-codes-2x2-dense-s1\n") == 0);
    for (const configuration& r : select_runs(1)) CHECK(message.find("\n  " + r.name()) != std::string::npos);
  }
}

TEST_CASE("scaling: the auxiliary loss of equal loads weighs the same for any number of experts") {
  for (const std::int64_t experts : {2, 128}) {
    const configuration c{.experts = experts, .balance = 0.1};
    CHECK(c.auxiliary_weight() / double(experts * experts) == doctest::Approx(0.1));  // 1 / E^2 on the paper's scale
  }
}

TEST_CASE("scaling: the plans of the dense model and of one with experts") {
  for (const std::int64_t experts : {0, 8}) {
    const configuration c{.experts = experts};
    const gs::plan_tables train = training_plan(c), validate = validation_plan(c);
    CHECK(train.outputs.size() == (experts ? 4u : 2u));
    CHECK(validate.outputs.size() == 2);
    CHECK(train.view().count(gs::op::top_k_gating) == (experts ? 2 : 0));  // one in the encoder, one in the decoder
    CHECK(train.view().count(gs::op::dropout) > 0);
    CHECK(validate.view().count(gs::op::dropout) == 0);
  }
}

}  // namespace
