// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/program/executable.hpp>
#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/exec/tensor/eigen.hpp>
#include <gshard/plan.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace parameter_access {

namespace gs = gshard;
using gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"x">>;

inline constexpr auto model = [](auto& m, auto x) {
  auto h = gs::einsum<"BM,MH->BH">(x, m.param("in", "MH", P<none, "x">{}, gs::init::fan_in("M")));
  return gs::einsum<"BH,HM->BM">(h, m.scope("out").param("w", "HM", gs::init::constant(2)));
};
using program = gs::program<model, mesh, gs::in<"BM">>;

template <class Cluster>
void check(const Cluster& on) {
  gs::parameter_store store(on, 3);
  const gs::dims sizes{{'B', 2}, {'M', 3}, {'H', 5}};
  CHECK_THROWS_WITH_AS(gs::to_global<float>(store, "in"), "parameter \"in\": no program on this store has made it yet", gs::error);
  gs::executable<program> run(on, sizes, store);
  CHECK(gs::to_global<float>(store, "out.w") == std::vector<float>(15, 2));

  // as on one device, in any sharding
  gs::parameter_store alone(gs::on_one_device<mesh>(), 3);
  gs::executable<program> reference(alone.cluster(), sizes, alone);
  CHECK(gs::to_global<float>(store, "in") == gs::to_global<float>(alone, "in"));

  std::vector<float> data(15);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = float(i);
  gs::set_global<float>(store, "in", data);
  CHECK(gs::to_global<float>(store, "in") == data);
  CHECK_THROWS_WITH_AS(gs::set_global<float>(store, "in", std::vector<float>(14)), "parameter \"in\": 14 elements for a tensor of 15",
                       gs::error);
  const Eigen::MatrixXf columns = Eigen::Map<const Eigen::Matrix<float, 3, 5, Eigen::RowMajor>>(data.data());
  gs::set_global<float>(store, "in", 2 * columns);
  CHECK(gs::to_global<float>(store, "in")[1] == 2.0f);
  CHECK_THROWS_WITH_AS(gs::set_global<float>(store, "in", columns.transpose()), "parameter \"in\": an array [5,3] for a tensor of [3,5]",
                       gs::error);
  gs::set_global<float>(store, "in", columns);
  CHECK_THROWS_WITH_AS(gs::to_global<double>(store, "in"), "parameter \"in\": its elements are float, not double", gs::error);
  CHECK(gs::to_global<float>(store, "in") == data);
}
}  // namespace parameter_access
