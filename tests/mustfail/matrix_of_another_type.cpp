// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: gshard: whole data have another element type than the tensor
#include <gshard/exec/tensor/eigen.hpp>
#include <gshard/gshard.hpp>

namespace gs = gshard;
using mesh = gs::mesh<gs::axis<"x">>;

int main() {
#if defined(MUST_FAIL)
  const Eigen::MatrixXd x = Eigen::MatrixXd::Zero(1, 3);
#else
  const Eigen::MatrixXf x = Eigen::MatrixXf::Zero(1, 3);
#endif
  gs::from_global<float, gs::P<"x">>(gs::on_one_device<mesh>(), {3}, x);
}
