// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/process/diagnostic.hpp>

#include <gshard/core/ir/equation.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <string_view>

namespace gs = gshard;
using gs::fault;

namespace {

gs::diagnostic problem(fault what, std::string_view about, std::string_view word = {}, int a = gs::diagnostic::no_number,
                       int b = gs::diagnostic::no_number) {
  gs::diagnostic d;
  d.report(what, about, word, a, b);
  return d;
}

}  // namespace

TEST_CASE("a fault as text: its sentence, then its words") {
  CHECK(gs::describe(gs::diagnostic{}) == "");
  CHECK(gs::describe(problem(fault::unknown_axis, "wi", "exprt")) ==
        "a partition spec names an axis that the mesh does not have (\"exprt\" in \"wi\")");
  CHECK(gs::describe(problem(fault::rank_mismatch, "BM,MH->BH", {}, 2, 3)) ==
        "a tensor has another number of dims than its partition spec, equation or operation expects (\"BM,MH->BH\": 2 "
        "expected, 3 given)");
  CHECK(gs::describe(problem(fault::rank_mismatch, "BM,MH->BH", "1", 2, 3)) ==
        "a tensor has another number of dims than its partition spec, equation or operation expects (\"BM,MH->BH\", operand 1: 2 "
        "expected, 3 given)");
  CHECK(gs::describe(problem(fault::not_the_product, "split_dim", "M", 32, 36)) ==
        "the extents of the two dims that split_dim makes have another product than the extent of the dim (\"split_dim\", dim \"M\": 32 "
        "and 36)");
  CHECK(gs::describe(problem(fault::does_not_divide, "x", "A", 18, 4)) ==
        "a static extent is not a multiple of the static extents of the mesh axes that shard it (dim \"A\" of \"x\": 18 "
        "divided by 4)");
  CHECK(gs::describe(problem(fault::dims_differ, "AB,BC->AC", "B", 1, 0)) ==
        "one index or operation has two different dims (\"AB,BC->AC\", operand 1, dim 0, index \"B\")");
  CHECK(gs::describe(problem(fault::options_conflict, "moe", ".dropless and .routing.evaluation_slots")) ==
        "an option has no effect together with another one, or with a second mesh axis (.dropless and .routing.evaluation_slots in \"moe\")");
  CHECK(gs::describe(problem(fault::uneven_chunks, "moe", "G", 4, 3)) ==
        "the number of chunks of token groups does not divide the number of token groups (\"moe\", dim \"G\": 4 divided by 3)");
  const std::string range = "invalid range, count, window or priority: reversed, out of bounds, or given twice (";
  CHECK(gs::describe(problem(fault::bad_range, "top_k_gating", ".k", 0)) == range + ".k = 0 in \"top_k_gating\")");
  CHECK(gs::describe(problem(fault::bad_range, "scope", "index", -1)) == range + "index = -1 in \"scope\")");
  CHECK(gs::describe(problem(fault::bad_range, "slice", "start, stop", 3, 2)) == range + "start, stop = 3, 2 in \"slice\")");
  CHECK(gs::describe(problem(fault::bad_range, "route", ".jitter")) == range + ".jitter in \"route\")");
  CHECK(gs::describe(problem(fault::sum_not_pending, "annotate")) ==
        "a sharding asks for a partial sum that the tensor does not have (\"annotate\")");
}

TEST_CASE("a fault as text: element types") {
  gs::diagnostic d = problem(fault::wrong_type, "param", "moe.wi");
  d.given = gs::dtype::i32;
  d.taken = gs::reals;
  CHECK(gs::describe(d) ==
        "an operand has another element type than the operation takes (\"param\", \"moe.wi\": f32, f64 expected, i32 given)");
}

TEST_CASE("a fault as text: its line and the scope around it") {
  gs::diagnostic d = problem(fault::wrong_type, "map", {}, 1);
  d.given = gs::dtype::f64;
  d.taken = gs::only(gs::dtype::f32);
  d.name_place(12, "attention");
  d.name_place(13, "feed-forward");  // the first place remains
  CHECK(gs::describe(d) ==
        "an operand has another element type than the operation takes (\"map\", operand 1: f32 expected, f64 given, line 12 in \"attention\")");
  gs::diagnostic of_long_scope = problem(fault::wrong_type, "map", {}, 1);
  of_long_scope.name_place(12, "the cross attention of the third decoder layer");
  CHECK(gs::describe(of_long_scope).ends_with("line 12 in \"the cross attention of the third decoder layer\")"));
}

TEST_CASE("a fault as text: what the equation's reader reports") {
  const auto said = [](std::string_view equation) {
    gs::diagnostic d;
    gs::parse_equation(equation, d);
    return gs::describe(d);
  };
  CHECK(said("AB,BC->AC") == "");
  CHECK(said("AB,B1->A") ==
        "malformed einsum equation: expected index letters, one ',' between operands and one '->' (\"AB,B1->A\", column 4)");
  CHECK(said("AB->AC") == "an output index of the einsum equation is in no operand (\"C\" in \"AB->AC\", column 5)");
  CHECK(said("AB->AA") == "an output index of the einsum equation occurs twice (\"A\" in \"AB->AA\", column 5)");
}

TEST_CASE("a fault as text: every fault has a sentence of its own") {
  std::set<std::string> seen;
  for (auto f = fault::unknown_axis; f <= fault::odd_extent; f = fault(int(f) + 1)) {
    const std::string sentence(gs::detail::sentence(f));
    CAPTURE(sentence);
    CHECK(seen.insert(sentence).second);
  }
}
