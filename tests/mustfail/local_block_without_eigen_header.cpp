// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An Eigen matrix without the header that reads it.
// expect: gshard: a local block is an address with extents, an Eigen matrix, an xtensor array or an mdspan
#include <gshard/exec/tensor/local_block.hpp>

#include <Eigen/Core>

#if !defined(MUST_FAIL)
#include <gshard/exec/tensor/eigen.hpp>
#endif

int main() {
  Eigen::MatrixXd matrix(2, 3);
  const auto block = gshard::local_block(matrix, {0, 0});
  return block.extent.empty() ? 1 : 0;
}
