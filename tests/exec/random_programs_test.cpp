// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs of random operations with their gradients, in random layouts on random meshes, against one device.
#include "run_graph.hpp"

#include <gshard/pass/differentiate.hpp>
#include <gshard/trace/einsum.hpp>
#include <gshard/trace/map.hpp>
#include <gshard/trace/random.hpp>
#include <gshard/trace/rows.hpp>
#include <gshard/trace/shape.hpp>

#include <algorithm>
#include <optional>

namespace gs = gshard;
using gs::exp, gs::tanh;
using gs::short_list, gs::symbol;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;

namespace {

class program_writer {
 public:
  program_writer(std::uint32_t seed, const gs::dims& dims) : gen_(seed), dims_(dims) {}

  /// A dozen operations on the inputs: the results that nobody uses, and the gradients of the sum of them.
  symbols write(given inputs) {
    all_.append(inputs.data(), inputs.size());
    used_.assign(all_.size(), false);
    for (int made = 0, tries = 0; made < 12 && tries < 200; ++tries)
      if (const std::optional<symbol> s = operation()) {
        all_.push_back(*s);
        used_.push_back(false);
        ++made;
      }
    symbols results = maxima_;
    std::optional<symbol> loss;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (used_[i]) continue;
      results.push_back(all_[i]);
      const symbol term = gs::sum(gs::map<[](auto v) { return tanh(v); }>(all_[i]));
      loss = loss ? *loss + term : term;
    }
    for (const symbol& g : gs::gradients(*loss, inputs)) results.push_back(g);
    return results;
  }

 private:
  std::mt19937 gen_;
  gs::dims dims_;
  symbols all_, maxima_;
  std::vector<char> used_;

  int below(int n) { return int(gen_() % unsigned(n)); }
  symbol any() {
    const auto i = std::size_t(below(int(all_.size())));
    used_[i] = true;
    return all_[i];
  }
  double size(const gs::dim_list& list, const gs::builder& b) const {
    double n = 1;
    for (int d = 0; d < list.size(); ++d) n *= size(b.program.dims, list[d]);
    return n;
  }
  double size(gs::list_view<gs::dim> table, int d) const {
    const gs::dim& whole = table[std::size_t(d)];
    return whole.what == gs::dim::kind::product ? size(table, whole.first) * size(table, whole.second)
                                                : double(dims_.find(whole.letter));
  }

  std::optional<symbol> operation() {
    switch (below(10)) {
      case 0:
      case 1:
      case 2:
        return einsum(2);
      case 3:
        return einsum(1);
      case 4:
        return elementwise();
      case 5:
        return gs::map<[](auto v) { return tanh(v); }>(any());
      case 6:
        return rows();
      case 7:
        return reshape();
      case 8:
        return run_graph::lay_out(any());
      default:
        return below(2) ? gs::dropout(any(), 0.3) : 0.5 * any();
    }
  }
  std::optional<symbol> einsum(int count) {
    symbols operands;
    std::vector<short_list> factors;
    std::vector<int> dim_of;
    for (int i = 0; i < count; ++i) {
      operands.push_back(any());
      short_list mine;
      for (int d = 0; d < operands.back().rank(); ++d) {
        const int dim = operands.back().get().dims[d];
        int factor = -1;
        if (below(4) > 0)
          for (int f = 0; f < int(dim_of.size()); ++f)
            if (dim_of[std::size_t(f)] == dim && !mine.contains(f)) factor = f;
        if (factor < 0) {
          factor = int(dim_of.size());
          dim_of.push_back(dim);
        }
        if (factor >= 8) return {};
        mine.push_back(factor);
      }
      factors.push_back(mine);
    }
    std::vector<int> order;
    for (int f = 0; f < int(dim_of.size()); ++f)
      if (below(3) > 0) order.push_back(f);
    std::shuffle(order.begin(), order.end(), gen_);
    short_list output;
    gs::dim_list dims;
    for (const int f : order)
      if (output.size() < 4) {
        output.push_back(f);
        dims.push_back(dim_of[std::size_t(f)]);
      }
    if (size(dims, *operands[0].owner) > 3000) return {};
    return gs::detail::emit_einsum(*operands[0].owner, operands, factors, output);
  }
  std::optional<symbol> elementwise() {
    const symbol a = any(), b = any();
    short_list lined_up;
    const bool fits = a.rank() >= b.rank() ? gs::detail::line_up(b.get().dims, a.get().dims, lined_up)
                                           : gs::detail::line_up(a.get().dims, b.get().dims, lined_up);
    if (!fits) return {};
    switch (below(3)) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      default:
        return gs::map<[](auto v, auto w) { return v * tanh(w) + w; }>(a, b);
    }
  }
  std::optional<symbol> rows() {
    const symbol x = any();
    if (x.rank() == 0) return {};
    if (below(3) > 0) return gs::softmax(x);
    gs::rule loops;
    loops.in[0] = gs::detail::counting(x.rank());
    loops.out[0] = gs::detail::counting(x.rank() - 1);
    loops.block(x.rank() - 1);
    gs::dim_list dims = x.get().dims;
    dims.pop_back();
    // A result only: where two elements are equal up to rounding, the gradient of the maximum is anybody's
    // guess.
    maxima_.push_back(
        {x.owner, x.owner->add_node(gs::op::reduce, {x.id}, loops, {}, {{dims, x.get().type}})});
    return {};
  }
  std::optional<symbol> reshape() {
    const symbol x = any();
    for (int d = 0; d < x.rank(); ++d)
      if (x.owner->program.dims[std::size_t(x.get().dims[d])].what == gs::dim::kind::product)
        return gs::detail::emit_split(x, d);
    if (x.rank() < 2) return {};
    return gs::detail::emit_merge(x, below(x.rank() - 1));
  }
};

/// A layout that is wholly fixed, partly open, or open.
gs::sharding random_layout(int rank, int axes, std::mt19937& gen) {
  const auto all = run_graph::all_layouts(rank, axes);
  gs::sharding s = gen() % 4 == 0 ? gs::sharding::replicated(rank) : all[gen() % all.size()];
  if (gen() % 3 == 0) s.open = std::uint8_t(gen() & ((1u << rank) - 1u));
  return s;
}

}  // namespace

TEST_CASE("random programs and their gradients are the same on every mesh") {
  const std::vector<std::vector<int>> meshes{{2},    {3},    {4},    {5},       {2, 2},
                                             {2, 3}, {3, 2}, {4, 2}, {2, 2, 2}, {1, 3, 2}};
  int steps = 0, collectives = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    std::mt19937 gen(seed);
    gs::dims dims;
    for (const char letter : {'A', 'B', 'C', 'D'}) dims.set(letter, 1 + std::int64_t(gen() % 7));
    std::vector<run_graph::input> inputs;
    const std::vector<std::string_view> shapes{"AB", "BC", "ABC", "CDA", "D", "CD", "AAB", ""};
    for (int i = 0; i < 3; ++i) inputs.push_back({shapes[gen() % shapes.size()]});
    const run_graph::traced t = run_graph::trace(
        inputs, [&](const gs::parameter_scope&, given x) { return program_writer(seed, dims).write(x); });

    run_graph::arrays sources = run_graph::random_sources(t, dims, seed);
    for (run_graph::array& a : sources)
      for (double& v : a) v += double(gen() % 1000) * 1e-4;
    const run_graph::arrays expected = run_graph::run(t, run_graph::serial(t, dims), sources);
    for (int n = 0; n < 4; ++n) {
      run_graph::setting s{.mesh = meshes[gen() % meshes.size()], .dims = dims, .layouts = {}};
      for (const std::int32_t v : t.free)
        s.layouts.push_back(random_layout(t.graph.at(v).rank(), int(s.mesh.size()), gen));
      // Plans depend on which extents they expect.
      if (n % 2) s.options.known = dims;
      const gs::plan_tables p = run_graph::plan(t, s);
      steps += int(p.steps.size());
      collectives += p.view().collectives();
      double d = std::numeric_limits<double>::infinity();
      std::string said;
      try {
        d = run_graph::distance(run_graph::run(t, s, sources), expected);
      } catch (const gs::error& e) {
        said = e.what();
      }
      if (!(d < 1e-10))
        FAIL_CHECK("seed " << seed << ", " << run_graph::text_of(s) << ": differs by " << d << " " << said);
    }
  }
  // The programs are not trivial.
  CHECK(steps > 400 * 4 * 20);
  CHECK(collectives > 400 * 4);
}
