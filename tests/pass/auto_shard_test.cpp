// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts chosen at run time: the plans that an expert would write, and what trying everything finds.
#include <gshard/optim/adam.hpp>
#include <gshard/pass/auto_shard.hpp>
#include <gshard/plan.hpp>

#include "../static/soundness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace gs = gshard;
using gs::op, gs::symbol;

namespace {
class random_model {
 public:
  explicit random_model(unsigned seed) : draw_(seed) {
    b_.mesh = pick(2) ? gs::mesh<gs::axis<"x", 4>>::shape : gs::mesh<gs::axis<"x", 2>, gs::axis<"y", 4>>::shape;
    const bool two = b_.mesh.count == 2;
    for (const char c : std::string("ABCD")) known.set(c, std::int64_t(4) << (2 * pick(5)));
    symbol x = input(letters(1 + pick(two ? 2 : 3)));
    const int verbs = 1 + pick(two ? 2 : 4);
    for (int i = 0; i < verbs; ++i) {
      switch (pick(6)) {
        case 0: x = gs::relu(x); break;
        case 1: x = x.rank() > 0 ? gs::softmax(x) : x; break;
        default: x = times_weight(x, i);
      }
    }
    if (pick(2)) {
      for (const symbol& g : gs::gradients(gs::sum(x * x), gs::trainable(m_))) output(g);
    }
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
    std::shuffle(all.begin(), all.end(), draw_);
    return all.substr(0, std::size_t(n));
  }
  symbol input(const std::string& dims) {
    const symbol s{&b_, b_.add_value(b_.dims_of(dims, "input"), gs::dtype::f32)};
    b_.program.inputs.push_back({gs::tensor_name(dims), s.id});
    return s;
  }
  void output(symbol s) { b_.program.outputs.push_back({gs::tensor_name("result"), s.id}); }
  symbol times_weight(symbol x, int i) {
    const int d = pick(x.rank());
    const char in = b_.program.dims[std::size_t(x.get().dims[d])].letter;
    char out = 'A';
    for (;; out = letters(1)[0]) {
      bool there = false;
      for (int k = 0; k < x.rank(); ++k) there = there || b_.program.dims[std::size_t(x.get().dims[k])].letter == out;
      if (!there) break;
    }
    const symbol w = m_.param("w" + std::to_string(i), std::string{in, out}, gs::init::zeros());
    gs::short_list fx = gs::detail::counting(x.rank()), fw, fo = fx;
    fw.push_back(d), fw.push_back(x.rank());
    fo.set(d, x.rank());
    const std::array operands{x, w};
    const std::array factors{fx, fw};
    return gs::detail::emit_einsum(b_, operands, factors, fo);
  }
};
}
TEST_CASE("beam") {
  int equal = 0, n = 0; double worst = 1; long long be = 0, ee = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    random_model r(seed);
    CAPTURE(seed);
    gs::search_options o;
    o.compile.known = r.known;
    o.evaluations = 20000;
    REQUIRE(!r.program().problem);
    auto all = gs::search_shardings(r.program(), r.mesh(), o);
    REQUIRE(!all.problem);
    if (!all.summary.exact || all.summary.evaluations < 20) continue;
    if (seed % 2) o.memory_limit = all.summary.price.bytes() * 9 / 10;
    if (seed % 2) all = gs::search_shardings(r.program(), r.mesh(), o);
    o.evaluations = all.summary.evaluations - 1;
    auto some = gs::search_shardings(r.program(), r.mesh(), o);
    CHECK(!some.summary.exact);
    ++n; be += some.summary.evaluations; ee += all.summary.evaluations;
    if (all.problem) { MESSAGE("seed " << seed << " does not fit " << all.summary.price.bytes() << " " << some.summary.price.bytes()); continue; }
    double ratio = some.problem ? 1e9 : some.summary.price.seconds() / all.summary.price.seconds();
    equal += ratio < 1 + 1e-9;
    if (ratio > 1 + 1e-9) MESSAGE("seed " << seed << " ratio " << ratio << " nodes " << r.program().nodes.size() << " eval " << some.summary.evaluations << "/" << all.summary.evaluations);
    worst = std::max(worst, ratio);
  }
  MESSAGE(equal << " of " << n << " equal, worst " << worst << " evaluations " << be << " of " << ee);
}
