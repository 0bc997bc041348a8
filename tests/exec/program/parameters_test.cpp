// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/program/parameters.hpp>

#include "../run_graph.hpp"

#include <gshard/core/trace/einsum.hpp>
#include <gshard/exec/kernel/move/fill.hpp>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::symbol;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

constexpr gs::dims dims{{'A', 7}, {'B', 5}, {'C', 4}};

/// A program with only these parameters, planned and bound.
struct bound_program {
  run_graph::traced program;
  gs::plan_tables tables;
  gs::executor run;

  bound_program(const run_graph::model& f, const gs::any_cluster& on, gs::parameter_store& store,
                std::vector<gs::sharding> layouts, const gs::dims& extents = dims)
      : program(run_graph::trace({}, f)),
        tables(run_graph::plan(program,
                               {.mesh = std::vector<int>(on.backend().extents().begin(), on.backend().extents().end()),
                                .dims = extents,
                                .layouts = std::move(layouts)})),
        run(tables.view(), gs::all_kernels, on, extents, store) {}
};

gs::any_cluster simulate(const std::vector<int>& mesh) {
  return {run_graph::mesh_of_rank(mesh.size()), std::make_shared<gs::simulated>(mesh)};
}
const auto whole = gs::sharding::replicated;

symbols weights(const scope& m, given) {
  const symbol w = m.param("w", "AB", gs::init::normal(2)),
               fan = m.scope("layer").param("w", "ABC", gs::init::fan_in("AB"));
  const symbol ones = m.param("ones", "B", gs::init::constant(1.5)),
               zeros = m.param("zeros", "", gs::init::zeros());
  return {w, fan, ones, zeros};
}

}  // namespace

// A const store has no functions that change it, and no copies that could.
template <class Store>
constexpr bool can_change = requires(Store& s, const gs::parameter& p, const gs::detail::bound_value& v, const gs::extents& e) {
  s.demand(p, v, e);
} || requires(Store& s) { s.set_steps(1); } || requires(Store& s) { s.set_number(1); } || requires(Store& s) { s.forget("w"); } ||
  requires(Store& s) { s.find("w")->shards.clear(); } || std::is_constructible_v<gs::parameter_store, Store&>;
static_assert(can_change<gs::parameter_store> && !can_change<const gs::parameter_store>);

TEST_CASE("parameters start from the same numbers in every layout on every mesh") {
  const gs::any_cluster one = simulate({1});
  gs::parameter_store reference(one, 42);
  const bound_program alone(weights, one, reference, {whole(2), whole(3), whole(1), whole(0)});
  std::map<std::string, run_graph::array> expected;
  for (const auto& [name, e] : reference.entries()) expected[name] = run_graph::collect(one, e.value);
  CHECK(expected.size() == 4);
  CHECK(expected["ones"] == run_graph::array(5, 1.5));
  CHECK(expected["zeros"] == run_graph::array(1, 0.0));

  for (const std::vector<int>& mesh : run_graph::meshes)
    for (const gs::sharding& l : run_graph::all_layouts(2, int(mesh.size())))
      for (const gs::sharding& m : run_graph::all_layouts(3, int(mesh.size()))) {
        const gs::any_cluster on = simulate(mesh);
        gs::parameter_store store(on, 42);
        const bound_program p(weights, on, store, {l, m, whole(1), whole(0)});
        bool same = true;
        for (const auto& [name, e] : store.entries())
          same = same && run_graph::collect(on, e.value) == expected[name];
        CHECK(same);
      }
}

TEST_CASE("initial numbers depend on the seed and the name, and have the given deviation") {
  const gs::any_cluster one = simulate({1});
  const gs::dims large{{'A', 40}, {'B', 50}, {'C', 30}};
  const auto values = [&](std::uint64_t seed, const char* name) {
    gs::parameter_store store(one, seed);
    const bound_program p(weights, one, store, {whole(2), whole(3), whole(1), whole(0)}, large);
    return run_graph::collect(one, store.find(name)->value);
  };
  CHECK(values(1, "w") == values(1, "w"));
  CHECK(values(1, "w") != values(2, "w"));
  const auto deviation = [](const run_graph::array& a) {
    double mean = 0, square = 0;
    for (const double v : a) mean += v / double(a.size());
    for (const double v : a) square += (v - mean) * (v - mean) / double(a.size());
    return std::sqrt(square);
  };
  CHECK(deviation(values(1, "w")) == doctest::Approx(2).epsilon(0.05));
  CHECK(deviation(values(1, "layer.w")) == doctest::Approx(1 / std::sqrt(40.0 * 50)).epsilon(0.02));
  CHECK(values(1, "layer.w")[0] / values(1, "w")[0] != doctest::Approx(1 / std::sqrt(40.0 * 50) / 2));
}

TEST_CASE("parameters of every element type start from their numbers, and no other memory is written") {
  gs::detail::bound_value wanted;
  wanted.extents = {3, 5};
  wanted.layout = whole(2);
  const auto bytes_of = [&](const gs::parameter_store::entry& e) {
    return std::vector<std::byte>(e.value.data[0], e.value.data[0] + e.value.bytes(0));
  };
  for (int t = 0; t < gs::element_types; ++t)
    for (const auto& [what, scale] : {std::pair{gs::initializer::kind::zeros, 0.0}, {gs::initializer::kind::constant, 1.0},
                                      {gs::initializer::kind::constant, 0.5}, {gs::initializer::kind::normal, 2.0}}) {
      const auto type = gs::dtype(t);
      const gs::arithmetic_of arithmetic = gs::traits(type).arithmetic;
      CAPTURE(gs::name(type));
      CAPTURE(int(what));
      gs::parameter_store store(simulate({2}), 42);
      wanted.type = type;
      wanted.places.assign(2, gs::detail::place(wanted, store.cluster().backend().extents(), 0));
      wanted.data.assign(2, nullptr);
      gs::parameter p;
      p.name = gs::tensor_name("w");
      p.init.what = what;
      p.init.scale = scale;
      const bool is_whole = arithmetic == gs::arithmetic_of::integer || arithmetic == gs::arithmetic_of::logical;
      if (what == gs::initializer::kind::normal ? is_whole || gs::is_complex(type) : is_whole && scale == 0.5) {
        const std::string start = what == gs::initializer::kind::normal ? "normal random numbers" : "0.5";
        CHECK_THROWS_WITH_AS(
            store.demand(p, wanted, {}),
            ("parameter \"w\": its elements are " + std::string(gs::cpp_name(type)) + ", which cannot start as " + start).c_str(),
            gs::error);
        CHECK(store.entries().empty());
        continue;
      }
      const gs::parameter_store::entry& e = store.demand(p, wanted, {});
      CHECK(bytes_of(e).size() == 15 * std::size_t(gs::size_of(type)));
      gs::detail::with_element(type, [&]<class T>(T*) {
        if constexpr (std::is_floating_point_v<T> || gs::traits(gs::dtype_of<T>).arithmetic == gs::arithmetic_of::storage)
          if (what == gs::initializer::kind::normal) {
            std::vector<T> numbers(15);
            gs::kernel::fill_normal<T>(numbers.data(), wanted.places[0], scale,
                                       {42, 0xffffffffu, gs::fnv1a<std::uint32_t>().add("w").value()});
            CHECK(std::memcmp(numbers.data(), e.value.data[0], 15 * sizeof(T)) == 0);
            return;
          }
        for (int i = 0; i < 15; ++i) CHECK(e.value.as<T>(0)[i] == gs::detail::element_from<T>(scale));
      });
      CHECK(bytes_of(e) == std::vector<std::byte>(e.value.data[1], e.value.data[1] + e.value.bytes(1)));
    }
}

TEST_CASE("programs on one store share the parameters that they name alike") {
  const gs::any_cluster on = simulate({2});
  gs::parameter_store store(on);
  gs::sharding rows = whole(2);
  rows[0].push_back(0);
  const auto w = [](const scope& m, given) { return symbols{m.param("w", "AB", gs::init::normal(1))}; };
  const bound_program first(w, on, store, {rows}), second(w, on, store, {rows});
  CHECK(first.run.output(0).data == second.run.output(0).data);
  CHECK(store.entries().size() == 1);
  CHECK(store.find("w")->trainable);
  CHECK(store.find("v") == nullptr);
}

TEST_CASE("conflicts between programs on one store are named") {
  const gs::any_cluster on = simulate({2});
  gs::parameter_store store(on);
  gs::sharding rows = whole(2);
  rows[0].push_back(0);
  const auto w = [](const scope& m, given) {
    return symbols{m.scope("a").param("w", "AB", gs::init::normal(1))};
  };
  const bound_program first(w, on, store, {rows});
  CHECK_THROWS_WITH_AS(
      bound_program(w, on, store, {whole(2)}),
      "parameter \"a.w\": another program on this store has it in another layout; annotate it in both alike",
      gs::error);
  CHECK_THROWS_WITH_AS(
      bound_program(w, on, store, {rows}, {{'A', 7}, {'B', 6}, {'C', 4}}),
      "parameter \"a.w\": another program on this store has it as f64[7@x,5], this one as f64[7@x,6]",
      gs::error);
  const auto kept = [](const scope& m, given) { return symbols{m.cache("c", "AB", gs::init::zeros())}; };
  const bound_program with_cache(kept, on, store, {rows});
  CHECK(store.find("c")->is_cache);
  CHECK(store.saved().size() == 1);
  const auto variable = [](const scope& m, given) { return symbols{m.variable("c", "AB", gs::init::zeros())}; };
  CHECK_THROWS_WITH_AS(bound_program(variable, on, store, {rows}), "parameter \"c\": another program on this store has it as a cache",
                       gs::error);
  const auto cached = [](const scope& m, given) { return symbols{m.scope("a").cache("w", "AB", gs::init::zeros())}; };
  CHECK_THROWS_WITH_AS(bound_program(cached, on, store, {rows}), "parameter \"a.w\": another program on this store has it not as a cache",
                       gs::error);
  const auto other_rank = [](const scope& m, given) {
    return symbols{m.scope("a").param("w", "A", gs::init::normal(1))};
  };
  CHECK_THROWS_AS(bound_program(other_rank, on, store, {whole(1)}), gs::error);
  CHECK(store.entries().size() == 2);
}

TEST_CASE("a store belongs to one cluster") {
  gs::parameter_store store(simulate({2}));
  const auto w = [](const scope& m, given) { return symbols{m.param("w", "AB", gs::init::normal(1))}; };
  CHECK_THROWS_WITH_AS(bound_program(w, simulate({2}), store, {whole(2)}),
                       "program: its parameter store belongs to another cluster", gs::error);
}
