// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/tensor/tensor_text.hpp>

#include <gshard/core/ir/spec.hpp>

#include "../../complaint.hpp"

#include <doctest/doctest.h>

#include <string>

namespace gs = gshard;

namespace {
/// The sharding that a text states, on a mesh with the axes x and y.
gs::sharding on_mesh(const gs::tensor_text& t) {
  gs::diagnostic problem;
  const gs::sharding s = gs::resolve(t.dims.sharding, gs::mesh<gs::axis<"x">, gs::axis<"y">>::shape, "t", problem);
  REQUIRE(!problem);
  return s;
}
}  // namespace

TEST_CASE("the text of a tensor has its element type, dims and sharding") {
  const gs::tensor_text whole("f64[G@x@y,S,M]");
  CHECK(whole.type == gs::dtype::f64);
  CHECK(whole.dims.letters.view() == "GSM");
  CHECK(whole.dims.is_sharded);
  CHECK(on_mesh(whole)[0].size() == 2);

  const gs::tensor_text free("i32[GS]");
  CHECK(free.type == gs::dtype::i32);
  CHECK(!free.dims.is_sharded);
  CHECK(gs::tensor_text("GSM").type == gs::dtype::f32);
  CHECK(gs::tensor_text("G@x,S").dims.is_sharded);
  CHECK(gs::tensor_text(std::string("bool[G,]")).dims.letters.view() == "G");

  CHECK(on_mesh("f32[B,H]+x").is_partial(0));
  CHECK(on_mesh("f32[B@x]+y").is_partial(1));
  CHECK(gs::tensor_text("f64[]").dims.letters.view().empty());
  CHECK(gs::tensor_text("").type == gs::dtype::f32);
  CHECK(gs::tensor_text("BM", gs::column_major{}).is_column_major);
  CHECK(!gs::tensor_text("BM").is_column_major);
}

TEST_CASE("texts that are no tensor") {
  const auto of = [](const char* text) { return complaint([&] { gs::tensor_text t(text); }); };
  for (const char* text : {"f32[G", "f32[G]x", "f32[G] "})
    CHECK(contains(of(text), "is not the text of a tensor, such as \"f32[B@data,M]\""));
  for (const char* text : {"f23[G]", "[G]", "F32[G]", "f32 [G]"}) CHECK(contains(of(text), "has none of the element types"));
  for (const char* text : {"f32[[G]", "G1", "f32[G,SM]", "f32[G@,S]", "f32[ABCDEFGHI]", "f32[G,2]", "G S", "f32[BH]+x"})
    CHECK(contains(of(text), "has other dims than at most 8 letters"));
}

TEST_CASE("the partition spec of a sharding") {
  constexpr gs::mesh_shape mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>::shape;
  for (const char* text : {"f32[A@x,B@y]", "f32[A@y@x,B]", "f32[A@y,B]+x", "f32[A,B]", "f32[A,B]+x,y"}) {
    gs::tensor_text again(text);
    again.dims.sharding = gs::detail::spec_of_sharding(on_mesh(text), mesh, {});
    CHECK(on_mesh(again).same_layout(on_mesh(text)));
  }
}
