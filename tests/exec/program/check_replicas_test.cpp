// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/check_replicas.hpp>

#include "../replica_cases.hpp"

namespace gs = gshard;

namespace {
template <class F>
void on_meshes_with_copies(F check) {
  for (const std::vector<int>& extents : std::vector<std::vector<int>>{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 1}, {3, 2}, {1, 5}}) {
    CAPTURE(extents[0]);
    CAPTURE(extents[1]);
    check(gs::simulate<replica_cases::mesh>(extents));
  }
}
}  // namespace

TEST_CASE("check_replicas: a flipped bit in any copy of any tensor") { on_meshes_with_copies(replica_cases::check_flipped_bits); }
TEST_CASE("check_replicas: the first element that differs, and the majority") {
  on_meshes_with_copies(replica_cases::check_first_difference);
}
TEST_CASE("check_replicas: no false alarm") { on_meshes_with_copies(replica_cases::check_no_false_alarm); }
TEST_CASE("check_replicas: every n steps of training") { on_meshes_with_copies(replica_cases::check_every_n_steps); }
TEST_CASE("check_replicas: inputs at the first call") { on_meshes_with_copies(replica_cases::check_inputs); }
