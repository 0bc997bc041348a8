// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/program/export_cpp.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <string>

namespace on = gshard::onnx;
using namespace onnx_tests;

TEST_CASE("a model as C++: letters for dims, and the names of parameters") {
  graph g;
  g.inputs.push_back({"x", on::element::f32, {"4", "2"}});
  g.initializers = {{"layer.weight", f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {"layer.bias", f32({3}, {1, 0, 2})}};
  g.nodes = {{"Gemm", {"x", "layer.weight", "layer.bias"}, {"h"}}, {"LeakyRelu", {"h"}, {"y"}, {{"alpha", 0.5}}}};
  g.outputs.push_back({"y"});
  const std::string text = on::cpp_of(on::import_program(model_of(g), "x"), "dense");
  CAPTURE(text);
  const auto has = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  CHECK(has("namespace dense {"));
  CHECK(has("inline constexpr auto model = [](auto& m, auto x0) {"));
  CHECK(has("m.param(\"layer.weight\", \"BC\", gshard::init::zeros())"));
  CHECK(has("gshard::einsum<\""));
  CHECK(has("gshard::map([](auto a) { return a < 0.0 ? 0.5 * a : 1.0 * a; }, "));
  CHECK(
      has("using program = gshard::program<model, Mesh, gshard::in<\"AB\">, gshard::extent<'B', 2>, gshard::extent<'C', 3>, "
          "gshard::extent<'A', 4>>;"));
}
