// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts found for random programs, compared with an exhaustive search.
#include <gshard/sim/search/shard_search.hpp>

#include "../../effort.hpp"

#include <gshard/plan.hpp>
#include <gshard/testing/all_shardings.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::symbol;

namespace {

/// A chain: an input, then products with weights and operations along rows. Half of the programs compute the gradients of the weights.
class random_chain {
 public:
  explicit random_chain(unsigned seed) : draw_(seed) {
    const bool two = pick(2);
    b_.mesh = two ? gs::mesh<gs::axis<"x", 2>, gs::axis<"y", 4>>::shape : gs::mesh<gs::axis<"x", 4>>::shape;
    for (const char c : std::string("ABCD")) known.set(c, std::int64_t(4) << (2 * pick(5)));
    const std::string dims = letters(1 + pick(two ? 2 : 3));
    symbol x{&b_, b_.add_value(b_.dims_of(dims, "input"), gs::dtype::f32)};
    b_.program.inputs.push_back({gs::tensor_name(dims), x.id});
    const int verbs = 1 + pick(two ? 2 : 4);
    for (int i = 0; i < verbs; ++i) {
      switch (pick(6)) {
        case 0: x = gs::relu(x); break;
        case 1: x = gs::softmax(x); break;
        default: x = times_weight(x, i);
      }
    }
    if (pick(2))
      for (const symbol& g : gs::gradients(gs::sum(x * x), gs::trainable(m_))) output(g);
    output(x);
  }
  const gs::graph& program() const { return b_.program; }
  const gs::mesh_shape& mesh() const { return b_.mesh; }
  gs::dims known;

 private:
  std::mt19937 draw_;
  gs::builder b_;
  gs::parameter_scope m_{b_};

  int pick(int n) { return int(draw_() % unsigned(n)); }
  std::string letters(int n) {
    std::string all = "ABCD";
    for (int i = 3; i > 0; --i) std::swap(all[std::size_t(i)], all[std::size_t(pick(i + 1))]);
    return all.substr(0, std::size_t(n));
  }
  char letter(symbol x, int d) const { return b_.program.dims[std::size_t(x.get().dims[d])].letter; }
  void output(symbol s) { b_.program.outputs.push_back({gs::tensor_name("result"), s.id}); }
  /// Replaces one dim of x by another letter.
  symbol times_weight(symbol x, int i) {
    const int d = pick(x.rank());
    std::string others = letters(4);
    for (int k = 0; k < x.rank(); ++k) others.erase(others.find(letter(x, k)), 1);
    const symbol w = m_.param("w" + std::to_string(i), std::string{letter(x, d), others[0]}, gs::init::zeros());
    gs::short_list of_x = gs::detail::counting(x.rank()), of_w, of_y = of_x;
    of_w.push_back(d);
    of_w.push_back(x.rank());
    of_y.set(d, x.rank());
    return gs::detail::emit_einsum(b_, std::array{x, w}, std::array{of_x, of_w}, of_y);
  }
};

gs::search_options options_for(const random_chain& r) {
  gs::search_options o;
  o.compile.known = r.known;
  return o;
}

struct least_price {
  double seconds = -1;
  std::int64_t bytes = 0;  // of the smallest plan with exactly this time
};
/// The least price of all layouts of inputs and parameters. -1 if there are more than `most`, or if none fits.
least_price least_of_all(const random_chain& r, const gs::search_options& o, std::int64_t most) {
  gs::graph g = r.program();
  const gs::extents e = gs::detail::assume_extents(g.dims, r.mesh(), o.compile.known);
  std::vector<std::int32_t> unknowns;
  for (const gs::port& p : g.inputs) unknowns.push_back(p.value);
  for (const gs::parameter& p : g.parameters) unknowns.push_back(p.value);
  std::vector<std::vector<gs::sharding>> ways;
  std::int64_t count = 1;
  for (const std::int32_t v : unknowns) {
    ways.emplace_back();
    for (const gs::sharding& s : gshard::testing::all_shardings(g.at(v).rank(), r.mesh().count, false)) {
      bool divides = true;
      for (int d = 0; d < s.rank; ++d)
        divides = divides && e.dim(g.at(v).dims[d]) % e.devices(s[d].empty() ? 0 : s[d].mask()) == 0;
      if (divides) ways.back().push_back(s);
    }
    count *= std::int64_t(ways.back().size());
  }
  if (count > most) return {};
  least_price least;
  for (std::int64_t way = 0; way < count; ++way) {
    g = r.program();
    std::int64_t rest = way;
    for (std::size_t i = 0; i < unknowns.size(); ++i) {
      g.at(unknowns[i]).layout = ways[i][std::size_t(rest % std::int64_t(ways[i].size()))];
      rest /= std::int64_t(ways[i].size());
    }
    const gs::step_price p = gs::price(gs::compile(g, r.mesh(), o.compile).view(), e, o.on);
    if (o.memory_limit > 0 && p.bytes() > o.memory_limit) continue;
    const bool is_less = p.seconds() < least.seconds || (p.seconds() == least.seconds && p.bytes() < least.bytes);
    if (least.seconds < 0 || is_less) least = {p.seconds(), p.bytes()};
  }
  return least;
}

constexpr double rounding = 1 + 1e-9;

}  // namespace

TEST_CASE("search: where all can be tried, nothing is faster, and of what is as fast nothing is smaller") {
  int ties = 0;
  for (unsigned seed = 0; seed < repetitions(300u); ++seed) {
    CAPTURE(seed);
    const random_chain r(seed);
    gs::search_options o = options_for(r);
    for (const bool tight : {false, true}) {
      CAPTURE(tight);
      const auto [least, bytes] = least_of_all(r, o, o.evaluations);
      if (least < 0) break;
      const gs::shard_choice found = gs::search_shardings(r.program(), r.mesh(), o);
      REQUIRE(!found.problem);
      CHECK(found.summary.exact);
      CHECK(found.summary.price.seconds() <= least * rounding);
      CHECK(found.summary.price.seconds() * rounding >= least);
      if (found.summary.price.seconds() == least) {
        ++ties;
        CHECK(found.summary.price.bytes() <= bytes);
      }
      o.memory_limit = found.summary.price.bytes() * 9 / 10;
    }
  }
  CHECK(ties > repetitions(100));
}

TEST_CASE("search: where not all can be tried, the best is nearly always found") {
  int equal = 0, cases = 0;
  double worst = 1;
  for (unsigned seed = 0; seed < repetitions(600u); ++seed) {
    CAPTURE(seed);
    const random_chain r(seed);
    gs::search_options o = options_for(r);
    for (const bool tight : {false, true}) {
      o.evaluations = 4096;
      const gs::shard_choice all = gs::search_shardings(r.program(), r.mesh(), o);
      if (!all.summary.exact || all.summary.evaluations < 20 || all.problem) break;
      o.evaluations = all.summary.evaluations - 1;
      const gs::shard_choice some = gs::search_shardings(r.program(), r.mesh(), o);
      CHECK(!some.summary.exact);
      CHECK(!some.problem);
      const double ratio = some.summary.price.seconds() / all.summary.price.seconds();
      CHECK(ratio * rounding >= 1);
      ++cases;
      equal += ratio <= rounding;
      worst = std::max(worst, ratio);
      o.memory_limit = all.summary.price.bytes() * 9 / 10;
      if (tight) break;
    }
  }
  MESSAGE(equal << " of " << cases << " found; the worst takes " << worst << " times as long");
  CHECK(cases > repetitions(300));
  CHECK(equal >= cases * (cases > 300 ? 98 : 96) / 100);  // with fewer programs, chance has more influence
}

TEST_CASE("search: whenever it ends, no layout that it lists is better than the one it keeps") {
  int unfinished = 0, tight = 0;
  for (unsigned seed = 0; seed < repetitions(400u); ++seed) {
    CAPTURE(seed);
    const random_chain r(seed);
    gs::search_options o = options_for(r);
    const gs::shard_choice whole = gs::search_shardings(r.program(), r.mesh(), o);
    REQUIRE(!whole.problem);
    for (const std::int64_t limit : {std::int64_t(0), whole.summary.price.bytes() * 9 / 10})
      for (const std::int64_t evaluations : {1, 2, 3, 5, 8, 13, 21, 34, 4096}) {
        CAPTURE(limit);
        CAPTURE(evaluations);
        o.memory_limit = limit;
        o.evaluations = evaluations;
        o.beam = 1 + int(seed % 4);
        const gs::shard_choice found = gs::search_shardings(r.program(), r.mesh(), o);
        const gs::shard_choice_view kept = found.view();
        const double seconds = kept.price.seconds();
        const std::int64_t bytes = kept.price.bytes();
        for (const gs::layout_choice& t : kept.tensors) {
          if (t.next_seconds < 0) continue;
          if (!kept.fits(bytes)) CHECK(!kept.fits(t.next_bytes));
          else if (kept.fits(t.next_bytes)) CHECK(t.next_seconds * rounding >= seconds);
        }
        unfinished += !kept.exact;
        tight += limit > 0;
      }
  }
  CHECK(unfinished > repetitions(2000));
  CHECK(tight > repetitions(2000));
}

TEST_CASE("search: if it ends within its budget, no other sharding of one tensor is better") {
  int finished = 0;
  for (unsigned seed = 0; seed < repetitions(200u); ++seed) {
    CAPTURE(seed);
    const random_chain r(seed);
    gs::search_options o = options_for(r);
    o.restarts = 0;
    o.beam = 1;
    const gs::shard_choice all = gs::search_shardings(r.program(), r.mesh(), o);
    o.evaluations = all.summary.evaluations - 1;
    const gs::shard_choice found = gs::search_shardings(r.program(), r.mesh(), o);
    if (found.summary.evaluations >= o.evaluations) continue;
    ++finished;
    const gs::graph given = r.program();
    const gs::extents e = gs::detail::assume_extents(given.dims, r.mesh(), o.compile.known);
    for (const gs::layout_choice& t : found.tensors)
      for (const gs::sharding& other : gs::detail::shard_candidates(given.at(t.value), r.mesh(), e, false)) {
        gs::graph g = given;
        found.apply_to(g);
        g.at(t.value).layout = other;
        const gs::step_price p = gs::price(gs::compile(g, r.mesh(), o.compile).view(), e, o.on);
        CHECK(p.seconds() * rounding >= found.summary.price.seconds());
      }
  }
  CHECK(finished > repetitions(20));
}

namespace {

/// y = x w, and then w is updated: x [B,M], w [M,H].
gs::builder dense(const gs::mesh_shape& mesh) {
  gs::builder b;
  b.mesh = mesh;
  const gs::parameter_scope m(b);
  const symbol x{&b, b.add_value(b.dims_of("BM", "x"), gs::dtype::f32)};
  b.program.inputs.push_back({gs::tensor_name("x"), x.id});
  const symbol y = gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", gs::init::zeros()));
  b.program.outputs.push_back({gs::tensor_name("y"), y.id});
  return b;
}
constexpr gs::mesh_shape four = gs::mesh<gs::axis<"x", 4>>::shape;

}  // namespace

TEST_CASE("search: extents that are not known, and memory that is not enough, are told") {
  gs::search_options o;
  o.compile.known = {{'B', 8}, {'M', 1 << 14}};
  const gs::builder b = dense(four);
  gs::diagnostic problem = gs::search_shardings(b.program, four, o).problem;
  CHECK(problem.what == gs::fault::unknown_extent);
  CHECK(problem.word.view() == "H");
  o.compile.known.set('H', 1 << 14);
  problem = gs::search_shardings(b.program, gs::mesh<gs::axis<"y">>::shape, o).problem;
  CHECK(problem.what == gs::fault::unknown_extent);
  CHECK(problem.word.view() == "y");

  CHECK(!gs::search_shardings(b.program, four, o).problem);
  o.memory_limit = 100 << 20;  // a quarter of w is 256 MiB
  const gs::shard_choice found = gs::search_shardings(b.program, four, o);
  CHECK(found.problem.what == gs::fault::too_little_memory);
  CHECK(found.problem.first >= 256);
  CHECK(found.problem.second == 100);
  CHECK(found.tensors[1].layout.used() == 1);  // the best possible
}

TEST_CASE("search: of plans that take equally long the smallest is kept: what nobody reads is sharded") {
  gs::builder b = dense(four);
  const gs::parameter_scope m(b);
  (void)m.param("spare", "HM", gs::init::zeros());
  gs::search_options o;
  o.compile.known = {{'B', 8}, {'M', 64}, {'H', 64}};
  const gs::shard_choice found = gs::search_shardings(b.program, four, o);
  REQUIRE(!found.problem);
  CHECK(found.summary.exact);
  REQUIRE(found.tensors[2].name.view() == "spare");
  CHECK(found.tensors[2].layout.used() == 1);
}

TEST_CASE("search: layers whose names differ in numbers get one layout where not all can be tried") {
  gs::builder b;
  b.mesh = four;
  const gs::parameter_scope m(b);
  symbol x{&b, b.add_value(b.dims_of("BM", "x"), gs::dtype::f32)};
  b.program.inputs.push_back({gs::tensor_name("x"), x.id});
  for (int i = 0; i < 8; ++i) {
    const gs::parameter_scope layer = m.scope(std::to_string(i));
    x = x + gs::einsum<"BH,HM->BM">(gs::relu(gs::einsum<"BM,MH->BH">(x, layer.param("wi", "MH", gs::init::zeros()))),
                                    layer.param("wo", "HM", gs::init::zeros()));
  }
  b.program.outputs.push_back({gs::tensor_name("y"), x.id});
  gs::search_options o;
  o.compile.known = {{'B', 64}, {'M', 1024}, {'H', 4096}};
  o.memory_limit = 100 << 20;  // all weights: 256 MiB
  const gs::shard_choice found = gs::search_shardings(b.program, four, o);
  REQUIRE(!found.problem);
  CHECK(!found.summary.exact);
  CHECK(found.summary.evaluations <= o.evaluations + std::int64_t(found.tensors.size()));
  for (const gs::layout_choice& t : found.tensors)
    if (t.is_parameter) CHECK(t.layout.dim_of(0) == (t.name.view().substr(2) == "wi" ? 1 : 0));
  gs::graph g = b.program;
  found.apply_to(g);
  const gs::plan_tables plan = gs::compile(g, four, o.compile);
  CHECK(plan.view().count(gs::op::all_reduce) == 8);
  CHECK(plan.view().collectives() == 8);
}
