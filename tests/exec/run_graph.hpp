// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/exec/bind/all_kernels.hpp>
#include <gshard/exec/executor.hpp>
#include <gshard/pass/compile.hpp>
#include <gshard/report/describe.hpp>
#include <gshard/trace/parameter_scope.hpp>

#include "../static/layouts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Programs that are traced once, at run time, and then planned and run with any layouts on any simulated
// mesh. Tensors go in and come out whole, as doubles (integers are exact in them).
namespace run_graph {

namespace gs = gshard;

using array = std::vector<double>;
using arrays = std::vector<array>;

struct input {
  std::string_view letters;
  gs::dtype type = gs::dtype::f64;
  char below = 0;  // i32: ids below the extent of this letter
  int least = 0;   // i32: the least id
};

using model = std::function<gs::list<gs::symbol>(const gs::parameter_scope&, std::span<const gs::symbol>)>;

/// A program and the values whose layouts may be chosen: inputs, parameters, then what `lay_out` marked.
struct traced {
  gs::graph graph;
  std::vector<input> inputs;
  std::vector<std::int32_t> free;

  std::size_t sources() const { return graph.inputs.size() + graph.parameters.size(); }
};

inline constexpr std::string_view axis_letters = "xyzw";
inline gs::mesh_shape mesh_of_rank(std::size_t rank) {
  gs::mesh_shape m;
  for (std::size_t a = 0; a < rank; ++a) m.push_back({&axis_letters[a], 1}, gs::dynamic);
  return m;
}

inline void check(const gs::diagnostic& problem, const std::string& during) {
  if (problem) throw gs::error(during + ": fault " + std::to_string(int(problem.what)) + " " + std::string(problem.subject.view()));
}

/// Marks a tensor whose layout a test chooses: an `annotate` that gets its layout later.
inline gs::symbol lay_out(gs::symbol x) {
  gs::rule loops;
  loops.in[0] = loops.out[0] = gs::detail::counting(x.rank());
  return {x.owner, x.owner->add_node(gs::op::annotate, {x.id}, loops, {}, {{x.get().dims, x.get().type}})};
}

inline traced trace(std::vector<input> inputs, const model& f, gs::trace_options options = {}) {
  gs::builder b;
  b.mesh = mesh_of_rank(4);
  b.options = options;
  const gs::parameter_scope m(b, gs::dtype::f64);
  gs::list<gs::symbol> symbols;
  for (const input& i : inputs) {
    symbols.push_back({&b, b.add_value(b.dims_of(i.letters, i.letters), i.type)});
    b.program.inputs.push_back({gs::tensor_name(i.letters), symbols.back().id});
  }
  for (const gs::symbol& s : f(m, symbols)) b.program.outputs.push_back({gs::tensor_name("result"), s.id});
  check(b.program.problem, "tracing");
  traced t{b.program, std::move(inputs), {}};
  for (const gs::port& p : t.graph.inputs) t.free.push_back(p.value);
  for (const gs::parameter& p : t.graph.parameters) t.free.push_back(p.value);
  for (const gs::node& n : t.graph.nodes)
    if (n.kind == gs::op::annotate) t.free.push_back(n.output());
  return t;
}

/// A layout of all free values, a mesh, and the extents of the dims.
struct setting {
  std::vector<int> mesh;
  gs::dims dims;
  std::vector<gs::sharding> layouts;
  std::string known_axes{};  // to the compiler
  gs::compile_options options{};
  gs::run_context context{.seed = 5, .step = 3};
};

/// The plan. Prints every pass if the environment has GSHARD_PRINT_PASSES.
inline gs::plan_tables plan(const traced& t, const setting& s) {
  gs::graph g = t.graph;
  for (std::size_t i = 0; i < t.free.size(); ++i) g.at(t.free[i]).layout = s.layouts[i];
  gs::mesh_shape mesh = mesh_of_rank(s.mesh.size());
  for (const char a : s.known_axes)
    if (const std::size_t i = axis_letters.find(a); i < s.mesh.size()) mesh.extents[i] = s.mesh[i];
  gs::plan_tables p = gs::compile(g, mesh, s.options, [](std::string_view pass, const gs::plan_view& program) {
    if (std::getenv("GSHARD_PRINT_PASSES")) std::cout << "after " << pass << ": " << gs::describe(program);
  });
  check(p.problem, "planning");
  return p;
}

namespace detail {

// The addends of a pending sum: made up for all but the first device of the group, if the sum of them is the element to the last bit.
inline double addend(const array& whole, std::size_t element, int k, int count) {
  const auto made_up = [&](int j) { return double(int(element % 7) - 3 + 2 * j) / 4; };
  double first = whole[element], sum = 0;
  for (int j = 1; j < count; ++j) first -= made_up(j);
  for (int j = 0; j < count; ++j) sum += j == 0 ? first : made_up(j);
  if (sum != whole[element]) return k == 0 ? whole[element] : 0;
  return k == 0 ? first : made_up(k);
}

inline std::int64_t size_of(const gs::detail::bound_value& v) {
  std::int64_t n = 1;
  for (const std::int64_t e : v.extents) n *= e;
  return n;
}

}  // namespace detail

/// Writes the shards of a whole tensor.
inline void scatter(const gs::any_cluster& on, const gs::detail::bound_value& to, const array& whole) {
  REQUIRE(std::int64_t(whole.size()) == detail::size_of(to));
  for (std::size_t i = 0; i < to.data.size(); ++i) {
    const gs::device_group group(on.on().extents(), to.layout.partial, on.devices()[i]);
    gs::detail::with_element(to.type, [&]<class T>(T*) {
      gs::kernel::for_each_element(to.places[i], [&](std::size_t global, std::size_t local) {
        to.as<T>(i)[local] = T(to.layout.partial ? detail::addend(whole, global, group.member(), group.size())
                                                 : whole[global]);
      });
    });
  }
}

/// The whole tensor from its shards. Copies of an element must be the same bits, and every element must be
/// somewhere.
inline array collect(const gs::any_cluster& on, const gs::detail::bound_value& from) {
  const auto size = std::size_t(detail::size_of(from));
  const auto addends = std::size_t(gs::device_group(on.on().extents(), from.layout.partial, 0).size());
  std::vector<array> parts(addends, array(size));
  std::vector<std::vector<char>> known(addends, std::vector<char>(size, 0));
  bool copies_agree = true, complete = true;
  for (std::size_t i = 0; i < from.data.size(); ++i) {
    const auto k =
        std::size_t(gs::device_group(on.on().extents(), from.layout.partial, on.devices()[i]).member());
    gs::detail::with_element(from.type, [&]<class T>(T*) {
      gs::kernel::for_each_element(from.places[i], [&](std::size_t global, std::size_t local) {
        const auto v = double(from.as<T>(i)[local]);
        if (known[k][global] && parts[k][global] != v && !(std::isnan(v) && std::isnan(parts[k][global])))
          copies_agree = false;
        parts[k][global] = v;
        known[k][global] = 1;
      });
    });
  }
  for (std::size_t k = 0; k < addends; ++k)
    for (std::size_t e = 0; e < size; ++e) {
      complete = complete && known[k][e];
      if (k > 0) parts[0][e] = 
          gs::detail::with_operation<double>(from.layout.pending, [&](auto combine, double) { return combine(parts[0][e], parts[k][e]); });
    }
  if (!copies_agree) throw gs::error("devices hold different copies of one element");
  if (!complete) throw gs::error("an element is on no device");
  return parts[0];
}

/// Plans and runs the program once: its outputs, then its parameters after the run.
inline arrays run(const traced& t, const setting& s, const arrays& sources) {
  const gs::plan_tables tables = plan(t, s);
  const gs::any_cluster on(mesh_of_rank(s.mesh.size()), std::make_shared<gs::simulated>(s.mesh));
  gs::executor e(tables.view(), gs::all_kernels, on, s.dims, gs::parameter_store(on));
  const std::size_t inputs = tables.inputs.size();
  REQUIRE(sources.size() == t.sources());
  for (std::size_t i = 0; i < inputs; ++i) scatter(on, e.input(i), sources[i]);
  for (std::size_t i = 0; i < tables.parameters.size(); ++i)
    scatter(on, e.store().find(tables.parameters[i].name.view())->value, sources[inputs + i]);
  e.run(s.context);
  arrays results;
  for (std::size_t i = 0; i < tables.outputs.size(); ++i) results.push_back(collect(on, e.output(i)));
  for (const gs::parameter& p : tables.parameters)
    results.push_back(collect(on, e.store().find(p.name.view())->value));
  return results;
}

/// Extents of a value's dims; derived ones included.
inline std::vector<std::int64_t> extents_of(const traced& t, std::int32_t v, const gs::dims& bound) {
  gs::plan_view p{};
  p.dims = t.graph.dims;
  const gs::extents e = p.bind(bound, {});
  std::vector<std::int64_t> list;
  for (int d = 0; d < t.graph.at(v).rank(); ++d) list.push_back(e.dim(t.graph.at(v).dims[d]));
  return list;
}

inline std::size_t element_count(const traced& t, std::int32_t v, const gs::dims& bound) {
  std::int64_t n = 1;
  for (const std::int64_t e : extents_of(t, v, bound)) n *= e;
  return std::size_t(n);
}

/// Values for the inputs and parameters. Multiples of 1/4, so that sums of products are exact in any order.
inline arrays random_sources(const traced& t, const gs::dims& bound, std::uint32_t seed) {
  std::mt19937 gen(seed);
  arrays list;
  for (std::size_t i = 0; i < t.sources(); ++i) {
    array a(element_count(t, t.free[i], bound));
    const bool ids = i < t.inputs.size() && t.inputs[i].type == gs::dtype::i32;
    const int high = ids ? int(bound.find(t.inputs[i].below)) - 1 : 8;
    std::uniform_int_distribution<int> pick(ids ? t.inputs[i].least : -8, high);
    for (double& v : a) v = ids ? pick(gen) : double(pick(gen)) / 4;
    list.push_back(std::move(a));
  }
  return list;
}

inline std::vector<gs::sharding> all_layouts(int rank, int axes, bool pending = false) { return layouts::all(rank, axes, pending); }

inline std::string text_of(const gs::sharding& s) {
  std::string t = "[";
  for (int d = 0; d < s.rank; ++d) {
    t += d ? "," : "";
    for (int i = 0; i < s[d].size(); ++i) t += axis_letters[std::size_t(s[d][i])];
    if (s[d].empty()) t += s.is_open(d) ? '*' : '-';
  }
  for (int a = 0; a < gs::max_axes; ++a)
    if (s.is_partial(a)) t += std::string("+") + axis_letters[std::size_t(a)];
  return t + "]";
}
inline std::string text_of(const setting& s) {
  std::string t = "mesh " + gs::detail::mesh_text(s.mesh) + ", dims";
  for (std::size_t i = 0; i < s.dims.count; ++i)
    t += std::string(" ") + s.dims.entries[i].letter + "=" + std::to_string(s.dims.entries[i].extent);
  t += ", layouts";
  for (const gs::sharding& l : s.layouts) t += " " + text_of(l);
  return t;
}

/// The largest difference of two lists of tensors, relative to the tensor's largest element; infinite if one alone
/// is not a number or infinite.
inline double distance(const arrays& a, const arrays& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].size() == b[i].size());
    double scale = 1;
    for (const double v : b[i])
      if (std::isfinite(v)) scale = std::max(scale, std::abs(v));
    for (std::size_t e = 0; e < a[i].size(); ++e) {
      if (a[i][e] == b[i][e] || (std::isnan(a[i][e]) && std::isnan(b[i][e]))) continue;
      const double d = std::abs(a[i][e] - b[i][e]) / scale;
      worst = d <= worst ? worst : std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
    }
  }
  return worst;
}

inline setting serial(const traced& t, const gs::dims& dims) {
  setting s{.mesh = {1}, .dims = dims, .layouts = {}};
  for (const std::int32_t v : t.free) s.layouts.push_back(gs::sharding::replicated(t.graph.at(v).rank()));
  return s;
}

inline const std::vector<std::vector<int>> meshes{{1}, {2}, {3}, {2, 2}, {2, 3}};

struct sweep {
  /// Extents to try: divisible by every axis, not divisible, smaller than an axis.
  std::vector<gs::dims> dims;
  double tolerance = 0;
  bool pending_sources = false;
  /// More layouts than this on one mesh are sampled.
  std::size_t most = 1000;
  gs::compile_options options{};
  /// What the inputs are made of, if not of multiples of 1/4.
  std::function<void(arrays&)> prepare{};
};

/// Runs the program with every layout of its free values on every mesh, and holds the results against those
/// of one device.
inline void every_sharding(const traced& t, const sweep& how) {
  std::int64_t runs = 0, wrong = 0;
  for (const gs::dims& dims : how.dims) {
    arrays sources = random_sources(t, dims, 1);
    if (how.prepare) how.prepare(sources);
    const arrays expected = run(t, serial(t, dims), sources);
    for (const std::vector<int>& mesh : meshes) {
      std::vector<std::vector<gs::sharding>> choices;
      std::size_t all = 1;
      for (std::size_t i = 0; i < t.free.size(); ++i) {
        const bool pending = how.pending_sources && i < t.inputs.size() && t.inputs[i].type == gs::dtype::f64;
        choices.push_back(all_layouts(t.graph.at(t.free[i]).rank(), int(mesh.size()), pending));
        all = all > 1000000 ? all : all * choices.back().size();
      }
      std::mt19937 gen(7);
      for (std::size_t n = 0; n < std::min(all, how.most); ++n) {
        setting s{.mesh = mesh, .dims = dims, .layouts = {}, .options = how.options};
        std::size_t rest = n;
        for (const auto& c : choices) {
          s.layouts.push_back(c[all <= how.most ? rest % c.size() : gen() % c.size()]);
          rest /= c.size();
        }
        // Plans depend on which extents they expect.
        if (n % 2) s.options.known = dims;
        ++runs;
        double d = std::numeric_limits<double>::infinity();
        std::string said;
        try {
          d = distance(run(t, s, sources), expected);
        } catch (const gs::error& e) {
          said = e.what();
        }
        if (d <= how.tolerance) continue;
        if (++wrong <= 3) FAIL_CHECK(text_of(s) << ": differs by " << d << " " << said);
      }
    }
  }
  CHECK(runs > 0);
  CHECK(wrong == 0);
}

}  // namespace run_graph
