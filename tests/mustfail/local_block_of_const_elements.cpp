// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: gshard: a local block of const elements is a local_block<const T>
#include <gshard/exec/tensor/eigen.hpp>
#include <gshard/exec/tensor/local_block.hpp>

namespace gs = gshard;

gs::local_block<const float> block(const Eigen::MatrixXf& x) {
#if defined(MUST_FAIL)
  gs::local_block<float> b(x, {0, 0});
#else
  gs::local_block b(x, {0, 0});
#endif
  return {b.data, b.offset, b.extent, b.stride};
}
