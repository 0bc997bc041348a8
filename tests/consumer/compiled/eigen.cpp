// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A user's program that multiplies matrices by Eigen itself, and by gshard. They are so large that Eigen allocates blocks on the heap.
#include <gshard/exec/tensor/eigen.hpp>
#include <gshard/gshard.hpp>

#include <Eigen/Core>

#include <cstdio>

namespace gs = gshard;
using gs::none;
using gs::P;

constexpr auto product = [](auto&, auto x, auto w) { return gs::einsum<"BM,MH->BH">(x, w); };
using mesh = gs::mesh<gs::axis<"x">>;
using program = gs::program<product, mesh, gs::in<"BM">, gs::in<"MH", P<none, "x">>>;

int main() {
  const Eigen::MatrixXf ones = Eigen::MatrixXf::Ones(400, 800), more = Eigen::MatrixXf::Ones(800, 800);
  const Eigen::MatrixXf product_of_eigen = ones * ones.transpose();
  const auto on = gs::simulate<mesh>(2);
  gs::executable<program> run(on, {{'B', 400}, {'M', 800}, {'H', 800}});
  double sum = product_of_eigen.sum();
  for (const float v : gs::to_global(run(ones, more))) sum += double(v);
  std::printf("sum %.0f\n", sum);
  return sum == 400.0 * 400 * 800 + 400.0 * 800 * 800 ? 0 : 1;
}
