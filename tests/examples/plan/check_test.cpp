// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/check.hpp"

#include "requests.hpp"

#include <cstdint>
#include <random>

bool requests::right(const pl::request& r) {
  const pl::planned p = pl::make_plan(r);
  const pl::comparison c = pl::compare(r, p);
  CHECK(c.received == pl::facts_of(p).bytes);
  return c.equal();
}

namespace {
using namespace requests;

/// Each axis shards a dim, holds copies, or has a pending sum if that is allowed.
gs::sharding random_layout(int rank, int axes, unsigned may_be_pending, std::mt19937& gen) {
  gs::sharding s = gs::sharding::replicated(rank);
  for (int a = 0; a < axes; ++a) {
    const int choice = int(gen() % unsigned(rank + 2));
    if (choice < rank) s[choice].insert(int(gen() % unsigned(s[choice].size() + 1)), a);
    else if (choice == rank && ((may_be_pending >> a) & 1u)) s.partial = std::uint8_t(s.partial | (1u << a));
  }
  return s;
}
}  // namespace

TEST_CASE("plan: what a plan computes is what one device computes, uneven shapes and partial sums included") {
  CHECK(right(einsum("x=2,y=2", "BMK,BNK->BMN", {"4@x,24,100@y", "4,32@x,100@y"}, "4@x,24@y,32")));
  CHECK(right(einsum("x=3,y=2", "BMK,BNK->BMN", {"5@x,7,10@y", "5,9@x,10@y"}, "5@x,7@y,9")));
  CHECK(right(einsum("x=3,y=2", "AB,BC->AC", {"5,2@x", "2@x,7@y"})));
  CHECK(right(einsum("x=3,y=2", "AB,BC->AC", {"5,7@x", "7@x,7@y"}, "5,7+partial(x)")));
}

TEST_CASE("plan: scalars, diagonals and pending operands") {
  CHECK(right(einsum("x=4,y=2", "A,A->", {"10@x", "10@(y,x)"})));
  CHECK(right(einsum("x=3,y=2", "...AB,BC", {"4@y,5,7@x", "7@x,6@y"})));
  CHECK(right(einsum("x=3,y=2", "...A,A...->...", {"3@y,5,7@x", "7@x,5@y"}, "3@x,5@y")));
  CHECK(right(einsum("x=4,y=2", "AA->A", {"10@x,10@y"}, "10@(x,y)")));
  CHECK(right(einsum("x=4,y=2", "A,A->A", {"10+partial(x)", "10@y+partial(x)"})));
  CHECK(right(einsum("x=4,y=2", "A->", {"10+partial(x,y)"}, "scalar+partial(y)")));
  CHECK(right(reshard("x=4,y=2", "scalar+partial(x,y)", "scalar+partial(x)")));
  CHECK(right(reshard("x=4,y=2", "3@(x,y)", "3@(y,x)")));
}

TEST_CASE("plan: random reshards on 2x2x2") {
  std::mt19937 gen(1);
  for (int i = 0; i < 200; ++i) {
    pl::request r = reshard("x=2,y=2,z=2", "5,8,3", "5,8,3");
    r.inputs[0].is.layout = random_layout(3, 3, 7u, gen);
    r.output->layout = random_layout(3, 3, r.inputs[0].is.layout.partial, gen);
    CAPTURE(pl::text_of(r.inputs[0].is, r.mesh));
    CAPTURE(pl::text_of(*r.output, r.mesh));
    CHECK(right(r));
  }
}

TEST_CASE("plan: an axis of one device: whatever it cuts or sums, nothing is sent for it") {
  std::mt19937 gen(3);
  for (int i = 0; i < 100; ++i) {
    pl::request r = reshard("x=2,one=1,z=2", "5,8", "5,8");
    r.inputs[0].is.layout = random_layout(2, 3, 7u, gen);
    r.output->layout = random_layout(2, 3, r.inputs[0].is.layout.partial, gen);
    CAPTURE(pl::text_of(r.inputs[0].is, r.mesh));
    CAPTURE(pl::text_of(*r.output, r.mesh));
    CHECK(right(r));
  }
  CHECK(facts(reshard("x=4,one=1", "16@x,8@one", "16@(one,x),8")).bytes == 0);
  CHECK(kinds(facts(reshard("x=4,one=1", "16@x,8@one", "16@(one,x),8"))) == "slice");
  CHECK(kinds(facts(reshard("x=4,one=1", "16@x,8+partial(one)", "16,8@one"))) == "all_gather");
}

TEST_CASE("plan: random einsums on 2x2x2") {
  std::mt19937 gen(2);
  for (int i = 0; i < 100; ++i) {
    pl::request r = einsum("x=2,y=2,z=2", "BMK,BKN->NBM", {"3,4,5", "3,5,6"}, "6,3,4");
    for (pl::request::operand& o : r.inputs) o.is.layout = random_layout(3, 3, 7u, gen);
    r.output->layout = random_layout(3, 3, 0u, gen);
    if (i % 3 == 0) r.output.reset();
    r.keep_partial = i % 2 == 0;
    CAPTURE(pl::text_of(r.inputs[0].is, r.mesh));
    CAPTURE(pl::text_of(r.inputs[1].is, r.mesh));
    CHECK(right(r));
  }
}

TEST_CASE("plan: a plan that computes something else is found out") {
  const std::vector<std::string> in{"4,4@x", "4@x,4"};
  const pl::request product = einsum("x=2", "AB,BC->AC", in), other = einsum("x=2", "AB,CB->AC", in);
  CHECK(pl::compare(product, pl::make_plan(product)).equal());
  CHECK(!pl::compare(product, pl::make_plan(other)).equal());
}

TEST_CASE("plan: what cannot be simulated here is refused") {
  CHECK(refused([] { right(reshard("x=64", "100000000@x,10", "100000000,10@x")); }).find("check smaller extents") != std::string::npos);
  CHECK(refused([] { right(reshard("x=5000", "8@x", "8")); }) == "--check simulates at most 512 devices: check a smaller mesh");
}

TEST_CASE("plan: pending maxima, minima and products are taken and left") {
  for (const char* what : {"max", "min", "prod"})
    for (const char* to : {"5,3", "5@x,3", "5,3@(y,x)"}) CHECK(right(reshard("x=3,y=2", std::string("5,3+") + what + "(x)", to)));
  CHECK(right("reduce --kind max --mesh x=3 --in 7@x,4 --dims 0 --keep-partial"));
  CHECK(output("reduce --kind max --mesh x=3 --in 7000@x,4000 --dims 0 --keep-partial") == "4000+max(x)");
  CHECK(right("reduce --kind prod --mesh x=3 --in 70@x,4 --dims 0 --keep-partial"));
}

TEST_CASE("plan: what rounds may differ by as much, what does not may not") {
  const auto compared = [](const std::string& line) {
    const pl::request r = request_of(line);
    return pl::compare(r, pl::make_plan(r));
  };
  const pl::comparison single = compared("softmax --mesh x=2 --in 4,9@x"), wide = compared("softmax --mesh x=2 --in 4,9@x --dtype f64");
  CHECK(single.allowed > 0);
  CHECK(single.allowed <= 2e-5);
  CHECK(single.equal());
  CHECK(wide.allowed < 1e-11);
  CHECK(wide.equal());
  CHECK(compared("cumsum --mesh x=2 --in 4,9@x").allowed == 0);
}
