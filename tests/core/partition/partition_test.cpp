// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls the planner at run time, on random programs with random annotations: every plan is sound.
#include <gshard/plan.hpp>
#include <gshard/train/adam.hpp>

#include "../../static/soundness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::symbol;

namespace {

class random_program {
 public:
  explicit random_program(unsigned seed) : draw_(seed) {
    b_.mesh = std::array{gs::mesh<gs::axis<"x">>::shape, gs::mesh<gs::axis<"x">, gs::axis<"y", 2>>::shape,
                         gs::mesh<gs::axis<"x">, gs::axis<"y">, gs::axis<"z">>::shape}[std::size_t(pick(3))];
    b_.options.sparse_one_hot = pick(2);
    for (int i = 0; i < 4; ++i) {
      const symbol s{&b_, b_.add_value(b_.dims_of(letters(1 + pick(3)), "input"), gs::dtype::f32)};
      b_.program.inputs.push_back({gs::tensor_name("input"), s.id});
      annotate(s, true);
      pool_.push_back(s);
    }
    for (int i = 0; i < 3; ++i) {
      const std::string name = "w" + std::to_string(i);
      const symbol s = m_.param(name, letters(1 + pick(3)), gs::init::zeros());
      annotate(s, false);
      pool_.push_back(s);
    }
    const std::string of_variables = letters(1 + pick(3));
    for (int i = 0; i < 2; ++i) {
      variables_.push_back(m_.variable("v" + std::to_string(i), of_variables, gs::init::zeros()));
      annotate(variables_.back(), false);
      pool_.push_back(variables_.back());
    }
    const int verbs = 3 + pick(12);
    for (int i = 0; i < verbs; ++i) add_verb();
  }

  /// With the gradients and the update of the parameters, or only the forward pass.
  gs::plan_tables plan(bool train) {
    if (train) {
      const symbol rate{&b_, b_.add_value({}, gs::dtype::f32)};
      b_.program.inputs.push_back({gs::tensor_name("rate"), rate.id});
      symbol loss = gs::sum(pool_.back());
      for (std::size_t i = pool_.size() - 1; i-- > pool_.size() - 3;)
        loss = loss + gs::sum(pool_[i] * pool_[i]);
      const gs::list<symbol> dx = gs::gradients(loss, std::array{pool_[0], pool_[1]});
      for (const symbol& d : dx) output(d);
      const gs::list<symbol> parameters = gs::trainable(m_);
      if (!parameters.empty() && !gs::detail::depends_on(b_.program, loss.id, parameters)) loss = loss + gs::sum(parameters[0]);
      gs::adam{}.minimize(m_, loss, rate);
      output(loss);
    } else {
      for (int i = 0; i < 3; ++i) output(pool_[pool_.size() - 1 - std::size_t(i)]);
    }
    for (std::size_t i = 0; i < next_.size(); ++i) m_.update(variables_[i], next_[i]);
    gs::compile_options options;
    options.partial_outputs = !train && pick(2);
    return gs::compile(b_.program, b_.mesh, options);
  }

 private:
  std::mt19937 draw_;
  gs::builder b_;
  gs::parameter_scope m_{b_};
  std::vector<symbol> pool_, variables_, next_;  // next_: the final values of the first variables

  int pick(int n) { return int(draw_() % unsigned(n)); }
  symbol any() { return pool_[std::size_t(pick(int(pool_.size())))]; }
  void output(symbol s) { b_.program.outputs.push_back({gs::tensor_name("result"), s.id}); }
  std::string letters(int n) {
    std::string all = "ABCD";
    std::string s;
    for (int i = 0; i < n; ++i) s += pick(8) == 0 && !s.empty() ? s[0] : all[std::size_t(pick(4))];
    return s;
  }
  /// Shards random dims over random axes and opens random dims. Sometimes leaves everything to propagation.
  void annotate(symbol s, bool may_be_pending) {
    gs::sharding& layout = b_.program.at(s.id).layout;
    if (pick(3) == 0) return;
    layout.open = std::uint8_t(draw_() & ((1u << layout.rank) - 1u));
    for (int a = 0; a < b_.mesh.rank(); ++a) {
      const int where = pick(6);
      if (where < layout.rank)
        layout[where].insert(pick(layout[where].size() + 1), a);
      else if (where == 5 && may_be_pending)
        layout.partial = std::uint8_t(layout.partial | (1u << a));
    }
  }

  /// An einsum of one or two operands. Its factors are dims, so letters always fit. The output has any of them, in any order.
  void add_einsum() {
    const std::array<symbol, 2> operands{any(), any()};
    const auto count = std::size_t(1 + pick(2));
    std::array<gs::short_list, 2> factors;
    gs::short_list all;
    std::vector<int> dim_of;
    for (std::size_t i = 0; i < count; ++i)
      for (int d = 0; d < operands[i].rank(); ++d) {
        const int dim = operands[i].get().dims[d];
        int f = -1;
        for (std::size_t k = 0; k < dim_of.size(); ++k)
          if (dim_of[k] == dim && pick(4) != 0 && !factors[i].contains(int(k))) f = int(k);
        if (f < 0) {
          f = int(dim_of.size());
          dim_of.push_back(dim);
          all.push_back(f);
        }
        factors[i].push_back(f);
      }
    gs::short_list out;
    for (int i = 0; i < all.size(); ++i)
      if (out.size() < 4 && pick(3) != 0) out.insert(pick(out.size() + 1), all[i]);
    pool_.push_back(gs::detail::emit_einsum(b_, gs::list_view(operands.data(), count),
                                            gs::list_view(factors.data(), count), out));
  }
  void add_annotation() {
    const symbol x = any();
    gs::sharding_rule rule;
    rule.in[0] = rule.out[0] = gs::detail::counting(x.rank());
    const symbol y{&b_, b_.add_node(op::annotate, {x.id}, rule, {}, {{x.get().dims, gs::dtype::f32}})};
    annotate(y, false);
    pool_.push_back(y);
  }
  void add_map() {
    const symbol x = any();
    // A partner that broadcasts: the same dims, or the last ones, or none.
    const int keep = pick(x.rank() + 1);
    gs::short_list last;
    for (int d = x.rank() - keep; d < x.rank(); ++d) last.push_back(d);
    const symbol y = gs::detail::emit_sum(x, last);
    const int kind = pick(4);
    gs::short_list none;
    if (gs::detail::line_up(*x.owner, y.get().dims, x.get().dims, none) != 1) return;
    pool_.push_back(kind == 0 ? x + y : kind == 1 ? y - x : kind == 2 ? x * y : gs::relu(x));
  }
  void add_verb() {
    const symbol x = any();
    switch (pick(11)) {
      case 9:  // before other verbs read the variable; a new value may be the old value of another variable
        return next_.size() == variables_.size() ? void()
               : pick(2) ? next_.push_back(variables_[1 - next_.size()])
                         : next_.push_back(gs::relu(variables_[next_.size()]));
      case 0:
      case 1:
      case 2:
        return add_einsum();
      case 3:
        return add_annotation();
      case 4:
      case 5:
        return add_map();
      case 6:
        return x.rank() > 0 ? pool_.push_back(gs::softmax(x)) : void();
      case 7:
        return x.rank() > 1 ? pool_.push_back(gs::detail::emit_merge(x, pick(x.rank() - 1))) : void();
      case 8:
        return pool_.push_back(pick(2) ? gs::dropout(x, 0.5) : 3.0 * x);
      default: {
        if (x.rank() != 3) return;
        const gs::gating_result r = gs::top2_gating(gs::softmax(x));
        pool_.push_back(gs::einsum<"GSEC,GSE->CGE">(r.combine, x));
        pool_.push_back(gs::einsum<"GSEC,GSM->EGCM">(r.dispatch, x));
        pool_.push_back(gs::einsum<"GSEC,EGCM->GSM">(r.combine, pool_.back()));
        pool_.push_back(r.aux);
      }
    }
  }
};

/// True if no step reads memory that was overwritten by another tensor, and all parameters have their final values at the end. Not for
/// loops.
bool reads_what_was_written(const gs::plan_view& p) {
  std::vector<std::int32_t> content(p.values.size()), memory(p.values.size(), -1);  // by value: its content; by storage: the same
  const auto holds = [&](std::int32_t v) -> std::int32_t& { return memory[std::size_t(p.lifetimes[std::size_t(v)].root)]; };
  const auto is_there = [&](std::int32_t v) { return holds(v) == content[std::size_t(v)]; };
  const auto write = [&](std::int32_t v) { holds(v) = content[std::size_t(v)] = v; };
  for (const gs::port& q : p.inputs) write(q.value);
  for (const gs::parameter& q : p.parameters) write(q.value);
  for (const gs::node& s : p.steps) {
    for (int i = 0; i < s.inputs; ++i)
      if (!is_there(s.input(i))) return false;
    for (int o = 0; o < s.outputs; ++o)
      if (gs::traits(s.kind).alias && o == 0) content[std::size_t(s.output())] = content[std::size_t(s.input(0))];
      else write(s.output(o));
  }
  for (const gs::port& q : p.outputs)
    if (!is_there(q.value)) return false;
  return std::ranges::all_of(p.parameters, [&](const gs::parameter& q) { return q.updated < 0 || is_there(q.updated); });
}

TEST_CASE("partition: plans of random programs are sound") {
  int in_place = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    for (const bool train : {false, true}) {
      const gs::plan_tables p = random_program(seed).plan(train);
      CAPTURE(train);
      CAPTURE(int(p.problem.what));
      CAPTURE(std::string(p.problem.subject.view()));
      REQUIRE(!p.problem);
      REQUIRE(soundness::is_sound(p.view()));
      REQUIRE(soundness::sends_once(p.view()));
      REQUIRE(reads_what_was_written(p.view()));
      for (const gs::parameter& q : p.view().parameters)
        in_place += q.updated >= 0 && !q.trainable && !q.of_optimizer && p.lifetimes[std::size_t(q.updated)].root == q.value;
    }
  }
  CHECK(in_place > 100);  // variables that are updated in place
}

TEST_CASE("partition: parameters of many layers are updated after the last step that reads them") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 draw(seed);
    gs::builder b;
    b.mesh = gs::mesh<gs::axis<"x", 2>>::shape;
    const gs::parameter_scope m{b};
    symbol x{&b, b.add_value(b.dims_of("BM", "input"), gs::dtype::f32)};
    b.program.inputs.push_back({gs::tensor_name("x"), x.id});
    const symbol rate{&b, b.add_value({}, gs::dtype::f32)};
    b.program.inputs.push_back({gs::tensor_name("rate"), rate.id});
    std::vector<symbol> weights;
    for (int layer = 0; layer < 20; ++layer) {
      if (weights.empty() || draw() % 4 != 0) weights.push_back(m.param("w" + std::to_string(layer), "MF", gs::init::zeros()));
      const symbol up = weights[draw() % 3 == 0 ? draw() % weights.size() : weights.size() - 1];
      const symbol down = m.param("v" + std::to_string(layer), "FM", gs::init::zeros());
      x = gs::einsum<"BF,FM->BM">(gs::relu(gs::einsum<"BM,MF->BF">(x, up)), down);
    }
    symbol loss = gs::sum(x * x);
    if (seed % 2 == 0) {
      gs::adam{}.minimize(m, loss, rate);
    } else {  // all parameters are read once more after all gradients have been computed
      const gs::list<symbol> parameters = gs::trainable(m), gradients = gs::gradients(loss, parameters);
      for (const symbol& w : parameters) loss = loss + gs::sum(w * w);
      for (std::size_t i = 0; i < parameters.size(); ++i) gs::adam{}.update(m, parameters[i], gradients[i], rate);
    }
    b.program.outputs.push_back({gs::tensor_name("result"), loss.id});
    const gs::plan_tables p = gs::compile(b.program, b.mesh, {});
    CAPTURE(int(p.problem.what));
    REQUIRE(!p.problem);
    CHECK(soundness::is_sound(p.view()));
    CHECK(reads_what_was_written(p.view()));
  }
}

}  // namespace
