// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/inferred_extents.hpp>

#include <gshard/exec/program/executable.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/exec/tensor/eigen.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>

#include <doctest/doctest.h>

#include <Eigen/Core>

#include <vector>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"x">>;

namespace {

inline constexpr auto affine = [](auto& m, auto x, auto bias) {
  return gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", gs::init::constant(1))) + bias;
};
using program = gs::program<affine, mesh, in<"B@x,M">, in<"H">>;

inline constexpr auto twice = [](auto&, auto x) { return x + x; };
template <class Order>
using of_order = gs::program<twice, mesh, in<"A@x,B", double, Order>>;
using of_three = gs::program<twice, mesh, in<"A@x,B,C">>;

template <class Program, class... Given>
auto inferred(const gs::dims& stated, const Given&... given) {
  return gs::detail::infer_extents<Program>(stated, given...);
}

}  // namespace

TEST_CASE("an executable has the extents of its inputs") {
  const auto cluster = gs::simulate<mesh>(2);
  const Eigen::MatrixXf x = Eigen::MatrixXf::Constant(3, 4, 0.5f);
  const std::vector<float> bias{1, 2, 3, 4, 5};
  gs::executable<program> run(cluster, x, bias);
  const auto stated = gs::executable<program>(cluster, {{'B', 3}, {'M', 4}, {'H', 5}})(x, bias);
  CHECK(gs::to_global(run(x, bias)) == gs::to_global(stated));

  gs::parameter_store store(cluster, 7);
  gs::executable<program> of_store(cluster, store, x, bias), with_store(cluster, {{'M', 4}}, store, x, bias);
  CHECK(of_store.seed == 7);
  CHECK(gs::to_global(with_store(x, bias)) == gs::to_global(stated));

  const gs::tensor<float, P<"x", none>> t = gs::from_global<float, P<"x", none>>(cluster, {3, 4}, x);
  CHECK(gs::to_global(gs::executable<program>(cluster, t, bias)(t, bias)) == gs::to_global(stated));
}

TEST_CASE("the shapes of arrays") {
  const auto cluster = gs::simulate<mesh>(2);
  const Eigen::MatrixXd a(2, 3);
  CHECK(inferred<of_order<gs::row_major>>({}, a).all.find('A') == 2);
  CHECK(inferred<of_order<gs::column_major>>({}, a).all.find('A') == 2);
  CHECK(inferred<of_order<gs::column_major>>({}, gs::tensor<double, P<none, "x">>(cluster, {3, 2})).all.find('A') == 2);
  // A range has no shape, and a matrix has the last dim of an input of three.
  const std::vector<float> range(24);
  CHECK(inferred<of_three>({{'A', 2}, {'B', 3}}, range).all.find('C') == -1);
  const Eigen::MatrixXf rows(6, 4);
  CHECK(inferred<of_three>({{'A', 2}, {'B', 3}}, rows).all.find('C') == 4);
  CHECK(inferred<of_three>({{'A', 2}}, rows).all.find('B') == -1);
}

TEST_CASE("inputs that contradict extents") {
  const auto cluster = gs::simulate<mesh>(2);
  const Eigen::MatrixXf x(3, 4);
  const std::vector<float> bias(5);
  CHECK_THROWS_WITH_AS(gs::executable<program>(cluster, {{'M', 5}}, x, bias),
                       doctest::Contains("executable: input 0 (BM) has extent 4 along M, which is 5 elsewhere"), gs::error);
  using squares = gs::program<twice, mesh, in<"AA">>;
  CHECK_THROWS_WITH_AS(gs::executable<squares>(cluster, x),
                       doctest::Contains("executable: input 0 (AA) has extent 4 along A, which is 3 elsewhere"), gs::error);
  CHECK_THROWS_WITH_AS(gs::executable<of_three>(cluster, Eigen::MatrixXf(6, 4)), doctest::Contains("is given no extent"), gs::error);
}
