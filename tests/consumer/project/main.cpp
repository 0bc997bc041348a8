// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#if __has_include(<gshard/plan.hpp>)
#include <gshard/plan.hpp>
#endif

#if defined(EXPECTED_MPI)
static_assert(GSHARD_HAS_MPI == EXPECTED_MPI);
#endif

int main() {}
