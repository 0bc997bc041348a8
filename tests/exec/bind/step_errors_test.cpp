// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/bind/step_errors.hpp>

#include <gshard/exec/program/executable.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/core/trace/named_scope.hpp>
#include <gshard/core/trace/shape.hpp>

#include <doctest/doctest.h>

#include "../../complaint.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"x">>;

namespace {

constexpr int line = __LINE__ + 4;
inline constexpr auto look_up = [](auto& m, auto ids) {
  const auto table = m.param("table", "VM", P<none, "x">{}, gs::init::normal(1));
  const gs::named_scope named(m, "embedding");
  return gs::gather(gs::annotate<P<none, none>>(table), ids);
};
inline constexpr auto halves = [](auto&, auto x) { return gs::split_dim<0>(x, "BC"); };
inline constexpr auto renamed = [](auto&, auto x) { return gs::rename_dims<"BA">(x); };
using lookup = gs::program<look_up, mesh, in<"T", P<none>, std::int32_t>>;

}  // namespace

TEST_CASE("an error of a kernel tells the operands of its step, the tensor before reshards, and the line") {
  for (const int devices : {1, 2}) {
    CAPTURE(devices);
    const auto on = gs::simulate<mesh>(devices);
    gs::executable<lookup> run(on, {{'V', 5}, {'M', 4}, {'T', 3}}, gs::parameter_store(on, 1));
    CHECK(complaint([&] { run(std::vector<std::int32_t>{0, 5, 1}); }) ==
          "gather: id 5 at position 1 is outside a table of 5 rows, in gather(parameter \"table\" [V=5,M=4], input 0 [T=3]) at "
          "step_errors_test.cpp:" + std::to_string(line) + " in \"embedding\"");
    CHECK_NOTHROW(run(std::vector<std::int32_t>{0, 4, 1}));
  }
}

TEST_CASE("an error of a step that is bound tells the operands, too") {
  const auto on = gs::simulate<mesh>(1);
  using program = gs::program<halves, mesh, in<"A">>;
  const std::string said =
      complaint([&] { gs::executable<program> run(on, {{'A', 6}, {'B', 2}, {'C', 4}}, gs::parameter_store(on, 1)); });
  CHECK(said == "reshape: dim 'A' of extent 6 is not the product of 2 and 4, in reshape(input 0 [A=6]) at step_errors_test.cpp:" +
                    std::to_string(line + 2));
}

TEST_CASE("a dim is renamed to one of its extent; the error tells both") {
  using program = gs::program<renamed, mesh, in<"AC">>;
  for (const int devices : {1, 2}) {
    const auto on = gs::simulate<mesh>(devices);
    gs::executable<program> whole(on, {{'A', 2}, {'B', 2}, {'C', 2}}, gs::parameter_store(on, 1));
    CHECK(gs::to_global(whole(std::vector<float>{1, 2, 3, 4})) == std::vector<float>{1, 2, 3, 4});
    const std::string said =
        complaint([&] { gs::executable<program> run(on, {{'A', 2}, {'B', 2}, {'C', 3}}, gs::parameter_store(on, 1)); });
    CHECK(said == "rename_dims: dim 1, 'C' of extent 3, cannot be dim 'A' of extent 2, in reshape(input 0 [A=2,C=3]) at "
                  "step_errors_test.cpp:" + std::to_string(line + 3));
  }
}
