// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/program/program_options.hpp>

#include <gshard/core/program/program.hpp>
#include <gshard/core/program/runs_on.hpp>

#include <doctest/doctest.h>

namespace gs = gshard;

TEST_CASE("options of a program as types set the same values") {
  constexpr gs::program_options none = gs::detail::options_of<>();
  CHECK(none.element == gs::dtype::f32);
  CHECK(none.trace().sparse_one_hot);
  CHECK(!none.trace().bf16_products);
  CHECK(none.compile.implicit_moves == gs::strictness::automatic);

  const gs::program_options all =
      gs::detail::options_of<gs::element<double>, gs::extent<'B', 64>, gs::dense_one_hot, gs::bf16_products, gs::strict, gs::loop_above<7>,
                             gs::combine_up_to<9>, gs::partial_outputs, gs::runs_on<gs::machine{}>>();
  CHECK(all.element == gs::dtype::f64);
  CHECK(all.compile.known.find('B') == 64);
  CHECK(all.trace().known.find('B') == 64);
  CHECK(!all.trace().sparse_one_hot);
  CHECK(all.trace().bf16_products);
  CHECK(all.compile.implicit_moves == gs::strictness::strict);
  CHECK(all.compile.loop_bytes == 7);
  CHECK(all.compile.combine_bytes == 9);
  CHECK(all.compile.partial_outputs);
  CHECK(!all.compile.only_partial_sums);
  CHECK(gs::detail::options_of<gs::visible>().compile.implicit_moves == gs::strictness::visible);
  CHECK(gs::detail::options_of<gs::extent<'B', 2>, gs::extent<'B', 3>>().compile.known.twice == 'B');
}
