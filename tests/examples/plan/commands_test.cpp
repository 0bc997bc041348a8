// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/commands.hpp"

#include "requests.hpp"

namespace {
using namespace requests;
using texts = std::vector<std::string>;

std::string said(const std::string& equation, const texts& in, const std::optional<std::string>& out = {}) {
  return refused([&] { pl::make_plan(einsum("x=2,y=2", equation, in, out)); });
}
std::string said_of_reshard(const std::string& from, const std::string& to) {
  return refused([&] { pl::make_plan(reshard("x=2,y=2", from, to)); });
}
bool has(const std::string& all, const char* part) { return all.find(part) != std::string::npos; }
}  // namespace

TEST_CASE("plan: einsums that are refused") {
  CHECK(has(said("AB,B1->A", {"4,6", "6"}), "malformed einsum equation"));
  CHECK(has(said("AB,B1->A", {"4,6", "6"}), "column 4"));
  CHECK(has(said("AB,BC-AC", {"4,6", "6"}), "column 5"));
  CHECK(has(said("ABCDEFGHI->A", {"1"}), "15 different indices, and 8 for each operand and the output"));
  CHECK(has(said("A,A,A,A,A,A,A,A,A,A,A,A,A,A,A,A,A->A", {"4"}), "at most 16 operands"));
  CHECK(has(said("AB,BC->AD", {"4,6", "6,4"}), "\"D\" in \"AB,BC->AD\", column 8"));
  CHECK(has(said("AB,BC->AA", {"4,6", "6,4"}), "occurs twice"));
  CHECK(has(said("...A->A", {"2,3"}), "..."));
  CHECK(said("AB,BC->AC", {"4,6"}) == "the equation \"AB,BC->AC\" has 2 operands, not 1: give one --in per operand");
  CHECK(has(said("AB,BC->AC", {"4,6", "6,4,1"}), "(\"6,4,1\": 2 expected, 3 given); give one extent per dim"));
  CHECK(said("AB,BC->AC", {"4,6@x", "7@x,4"}) == "index 'B' has extent 6 before and 7 in \"7@x,4\": give it one extent");
  CHECK(said("AA->A", {"4,6"}) == "index 'A' has extent 4 before and 6 in \"4,6\": give it one extent");
  CHECK(has(said("AB,BC->AC", {"4,6", "6,4"}, "4"), "(\"4\": 2 expected, 1 given)"));
  CHECK(said("AB,BC->AC", {"4,6", "6,4"}, "4,5@x") == "dim 1 of the output \"4,5@x\" has extent 4 by the inputs: give it that");
  CHECK(has(said("AB,BC->AC", {"4000000000,1", "1,4000000000"}), "too large to count its bytes"));
}

TEST_CASE("plan: a partial sum that the inputs cannot give is refused") {
  const char* remedy = "; leave +partial out, or let its axes shard a summed index of the inputs or, with one input, be pending in it";
  CHECK(said_of_reshard("8,4", "8,4+partial(x)") ==
        "a sharding asks for a partial sum that the tensor does not have (\"8,4+partial(x)\")" + std::string(remedy));
  CHECK(has(said_of_reshard("8,4+partial(x)", "8,4+partial(x,y)"), remedy));
  CHECK(has(said("AB,BC->AC", {"4,6@x", "6@x,4"}, "4,4+partial(y)"), remedy));
  CHECK(has(said("AB,BC->AC", {"4@x,6", "6,4"}, "4,4+partial(x)"), remedy));
  CHECK(said_of_reshard("8,4+partial(x,y)", "8,4@x+partial(y)") == "not refused");
  CHECK(said("AB,BC->AC", {"4,6@x", "6@x,4"}, "4,4@y+partial(x)") == "not refused");
}

TEST_CASE("plan: a reshard that is refused") {
  CHECK(has(said_of_reshard("8,4", "8"), "2 expected, 1 given"));
  CHECK(has(said_of_reshard("8,4", "8,5"), "dim 1 of the output \"8,5\" has extent 4"));
  CHECK(refusal_of("reduce --mesh x=2 --in 8,4 --out 1") == "the result has no dims: write --out scalar in place of \"1\"");
}

TEST_CASE("plan: kinds, bytes and shapes of einsums") {
  SUBCASE("all local") {
    const pl::plan_facts f = facts(einsum("x=2", "BMK,BNK->BMN", {"4@x,24,100", "4@x,32,100"}, "4@x,24,32"));
    CHECK(kinds(f) == "einsum");
    CHECK(f.bytes == 0);
    CHECK(f.flops == 2 * 2 * 24 * 32 * 100);
  }
  SUBCASE("the contracted dim is sharded: the sums are scattered where the output is sharded") {
    const pl::plan_facts f = facts(einsum("x=2", "AB,BC->AC", {"8,6@x", "6@x,4"}, "8,4@x"));
    CHECK(kinds(f) == "einsum reduce_scatter");
    CHECK(f.bytes == 8 * 2 * 4);
    CHECK(f.flops == 2 * 8 * 3 * 4);
    CHECK(f.steps[1].moves.at(0).from == pl::axis_move::sums);
    CHECK(f.steps[1].moves.at(0).to == 1);
    CHECK(f.steps[0].out[0].whole.layout.partial == 1);
  }
  SUBCASE("partial sums are completed unless they may stay") {
    pl::request r = einsum("x=2,y=3", "AB,BC->AC", {"64,600@x", "600@x,64"});
    CHECK(facts(r).outputs[0].whole.layout.partial == 0);
    r.keep_partial = true;
    const pl::plan_facts f = facts(r);
    CHECK(kinds(f) == "einsum");
    CHECK(pl::text_of(f.outputs[0].whole, f.mesh) == "64,64+partial(x)");
  }
  SUBCASE("a sum that shall stay pending decides how the work is shared, also where gathering is cheaper") {
    CHECK(kinds(facts(einsum("x=4", "AB,BC->AC", {"512,4@x", "4@x,512"}))) == "all_gather einsum");
    CHECK(kinds(facts(einsum("x=4", "AB,BC->AC", {"512,4@x", "4@x,512"}, "512,512+partial(x)"))) == "einsum");
  }
  SUBCASE("one operand: an addition an element; its partial sum goes through") {
    const pl::plan_facts f = facts(einsum("x=2,y=2", "AB->BA", {"6,4@y+partial(x)"}, "4@y,6+partial(x)"));
    CHECK(kinds(f) == "einsum");
    CHECK(f.flops == 6 * 2);
  }
  SUBCASE("three operands: two at a time, the cheaper pair first") {
    const pl::plan_facts f = facts(einsum("x=2", "AB,BC,CD->AD", {"40@x,40", "40,2", "2,40"}));
    CHECK(kinds(f) == "einsum einsum");
    CHECK(f.bytes == 0);
    CHECK(f.flops == 2 * (20 * 40 * 2 + 20 * 2 * 40));
    CHECK(right(einsum("x=2,y=3", "AB,BC,CD,DA->BD", {"4@x,5", "5@y,3", "3,7@(x,y)", "7,4@y"}, "5@x,7")));
  }
  SUBCASE("a diagonal counts its index once") { CHECK(facts(einsum("x=2", "AA->A", {"6,6"})).flops == 6); }
}

TEST_CASE("plan: kinds, bytes and groups of reshards") {
  const auto one = [](const char* from, const char* to, const char* kind, std::int64_t bytes) {
    const pl::plan_facts f = facts(reshard("x=2,y=2", from, to));
    CAPTURE(from);
    CAPTURE(to);
    CHECK(kinds(f) == kind);
    CHECK(f.bytes == bytes);
  };
  one("8,4", "8,4", "", 0);
  one("8,4", "8@x,4", "slice", 0);
  one("8@x,4", "8,4", "all_gather", 4 * 4 * 4);
  one("8@x,4", "8,4@x", "all_to_all", 8 * 4);
  one("8@x,4", "8@y,4", "collective_permute", 4 * 4 * 4);
  one("8,4+partial(x)", "8,4", "all_reduce", 8 * 4 * 4);
  one("8,4+partial(x)", "8@x,4", "reduce_scatter", 4 * 4 * 4);
  one("7,5@x", "7@x,5", "all_to_all", (3 * 5 - 3 * 2) * 4);

  const pl::plan_facts f = facts(reshard("x=2,y=2,z=2", "16@(x,z),8", "16,8@x"));
  REQUIRE(f.steps.size() == 1);
  const pl::step_facts& s = f.steps[0];
  CHECK(s.groups == 2);
  CHECK(s.group_size == 4);
  CHECK(s.members == std::vector<std::vector<int>>{{0, 1, 4, 5}, {2, 3, 6, 7}});
  REQUIRE(s.moves.size() == 2);
  CHECK(s.moves[0].from == 0);
  CHECK(s.moves[0].to == 1);
  CHECK(s.moves[1].to == pl::axis_move::copies);
  CHECK(s.in[0].local == std::vector<std::int64_t>{4, 8});
  CHECK(s.out[0].local == std::vector<std::int64_t>{16, 4});
  CHECK(facts(reshard("x=8,y=4", "8@x", "8@y")).steps[0].members.empty());
}

TEST_CASE("plan: wider elements are more bytes") {
  const std::string line = "reshard --mesh x=2 --from 8@x --to 8";
  CHECK(facts(line + " --dtype f64").bytes == 2 * facts(line).bytes);
}

TEST_CASE("plan: the example of every subcommand is right") {
  for (const pl::command& c : pl::commands()) CHECK(right(c.name + " " + c.example));
}

TEST_CASE("plan: options of a subcommand have one name each, and those of its example are among them") {
  for (const pl::command& c : pl::commands()) {
    std::string names = ",";
    for (const pl::option& o : c.options) {
      CHECK(names.find("," + o.key() + ",") == std::string::npos);
      names += o.key() + ",";
      CHECK(!o.what.empty());
    }
  }
}
