// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Runs a model that is traced at run time, with any sharding of its tensors on any simulated mesh, and collects complete results.

#include <gshard/all_kernels.hpp>
#include <gshard/core/base/compiled.hpp>
#include <gshard/core/program/compile.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/exec/bind/shards.hpp>
#include <gshard/exec/program/executor.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/core/base/hash.hpp>
#include <gshard/exec/backend/device_group.hpp>
#include <gshard/exec/backend/simulated.hpp>
#include <gshard/exec/kernel/element.hpp>
#include <gshard/exec/kernel/move/cast.hpp>
#include <gshard/exec/process/diagnostic.hpp>
#include <gshard/exec/reduce/combine.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#endif

namespace gshard { inline namespace v0 {

namespace detail {

/// Part k of the `count` parts that a pending reduction combines to the element. The parts of a sum are made up, except the first, if they
/// add up to the element exactly. In a maximum, minimum or product, one part is the element, up to the sign. `unit`: made-up parts are
/// multiples of it.
double part_of(reduction what, const std::vector<double>& whole, std::size_t element, int k, int count, double unit);

std::int64_t element_count_of(const bound_value& v);

/// Throws `gshard::error` if a condition for the caller does not hold.
void require(bool holds, const char* otherwise);

}  // namespace detail

/// Tensors are passed and returned complete, row-major, as doubles, in which int32 is exact. For complex tensors, these are the real parts.
namespace testing {

using array = std::vector<double>;
using arrays = std::vector<array>;

struct input {
  std::string_view letters;
  dtype type = dtype::f64;
  char below = 0;  // i32: ids below the extent of this letter
  int least = 0;   // i32: the least id
};

using model = std::function<gshard::list<symbol>(const parameter_scope&, std::span<const symbol>)>;

/// A program and its free values, whose shardings a test chooses: inputs, parameters, then the tensors that `lay_out` marked.
struct traced {
  gshard::graph graph;
  std::vector<input> inputs;
  std::vector<std::int32_t> free;

  std::size_t sources() const { return graph.inputs.size() + graph.parameters.size(); }
};

inline constexpr std::string_view axis_letters = "xyzw";
mesh_shape mesh_of_rank(std::size_t rank);

/// Throws `gshard::error` if a fault was reported.
void check(const diagnostic& problem, const std::string& during);

/// Marks a tensor whose sharding a test chooses: an `annotate` that gets its sharding later.
symbol lay_out(symbol x);

traced trace(std::vector<input> inputs, const model& f, trace_options options = {});

/// A sharding of every free value, a mesh, and the extents of the dims.
struct setting {
  std::vector<int> mesh;
  gshard::dims dims;
  std::vector<sharding> layouts;
  std::string known_axes{};  // axes whose extents the compiler knows
  compile_options options{};
  run_context context{.seed = 5, .step = 3};
  int steps = 1;  // runs, one after another
  /// Is called with the program after every pass. @see compile
  std::function<void(std::string_view, const plan_view&)> observer = no_observer;
};

plan_tables plan(const traced& t, const setting& s);

/// Writes the shards of a whole tensor. Shards of a partial tensor get parts that its pending reduction combines to the tensor.
void scatter(const any_cluster& on, const detail::bound_value& to, const array& whole);

/// The whole tensor from its shards. Copies of an element must be equal, and every element must be on a device.
array collect(const any_cluster& on, const detail::bound_value& from);

std::string text_of(const sharding& s);
std::string text_of(const setting& s);

/// One node, or up to three nodes with arbitrary devices. Depends on the setting alone.
node_map some_nodes(const setting& s);

/// Plans the program and runs it `steps` times. Returns the outputs of the last run, then the parameters.
arrays run(const traced& t, const setting& s, const arrays& sources);

/// Extents of a value's dims, including derived dims.
std::vector<std::int64_t> extents_of(const traced& t, std::int32_t v, const gshard::dims& bound);

std::size_t element_count(const traced& t, std::int32_t v, const gshard::dims& bound);

/// Values for the inputs and parameters. Multiples of 1/4, so that sums of products are exact in any order.
arrays random_sources(const traced& t, const gshard::dims& bound, std::uint32_t seed);

/// The largest difference of two lists of tensors, relative to the largest element of each tensor; infinite if an element is finite in only
/// one of them.
double distance(const arrays& a, const arrays& b);

setting serial(const traced& t, const gshard::dims& dims);

}  // namespace testing

#if GSHARD_HAS_BODIES

namespace detail {

GSHARD_INLINE double part_of(reduction what, const std::vector<double>& whole, std::size_t element, int k, int count, double unit) {
  const auto made_up = [&](int j) { return (int(element % 7) - 3 + j % 5) * unit; };
  const bool has_it = k == int(element % std::size_t(count));
  switch (what) {
    case reduction::max: return has_it ? whole[element] : whole[element] - std::abs(made_up(k));
    case reduction::min: return has_it ? whole[element] : whole[element] + std::abs(made_up(k));
    case reduction::prod: return has_it ? (count % 2 ? 1 : -1) * whole[element] : -1;
    case reduction::sum: break;
  }
  double first = whole[element], sum = 0;
  for (int j = 1; j < count; ++j) first -= made_up(j);
  for (int j = 0; j < count; ++j) sum += j == 0 ? first : made_up(j);
  if (sum != whole[element]) return k == 0 ? whole[element] : 0;
  return k == 0 ? first : made_up(k);
}

GSHARD_INLINE std::int64_t element_count_of(const bound_value& v) {
  std::int64_t n = 1;
  for (const std::int64_t e : v.extents) n *= e;
  return n;
}

GSHARD_INLINE void require(bool holds, const char* otherwise) {
  if (!holds) throw error(std::string("check_shardings: ") + otherwise);
}

}  // namespace detail

namespace testing {

GSHARD_INLINE mesh_shape mesh_of_rank(std::size_t rank) {
  mesh_shape m;
  for (std::size_t a = 0; a < rank; ++a) m.push_back({&axis_letters[a], 1}, dynamic);
  return m;
}

GSHARD_INLINE void check(const diagnostic& problem, const std::string& during) {
  if (problem) throw error(during + ": " + describe(problem));
}

GSHARD_INLINE symbol lay_out(symbol x) {
  if (x.id < 0) return x;  // refused: the builder has the reason
  sharding_rule rule;
  rule.in[0] = rule.out[0] = detail::counting(x.rank());
  return {x.owner, x.owner->add_node(op::annotate, {x.id}, rule, {}, {{x.get().dims, x.get().type}})};
}

GSHARD_INLINE traced trace(std::vector<input> inputs, const model& f, trace_options options) {
  builder b;
  b.mesh = mesh_of_rank(4);
  b.options = options;
  const parameter_scope m(b, dtype::f64);
  gshard::list<symbol> symbols;
  for (const input& i : inputs) {
    symbols.push_back({&b, b.add_value(b.dims_of(i.letters, i.letters), i.type)});
    b.program.inputs.push_back({tensor_name(i.letters), symbols.back().id});
  }
  for (const symbol& s : f(m, symbols)) b.program.outputs.push_back({tensor_name("result"), s.id});
  check(b.program.problem, "tracing");
  traced t{b.program, std::move(inputs), {}};
  for (const port& p : t.graph.inputs) t.free.push_back(p.value);
  for (const parameter& p : t.graph.parameters) t.free.push_back(p.value);
  for (const node& n : t.graph.nodes)
    if (n.kind == op::annotate) t.free.push_back(n.output());
  return t;
}

GSHARD_INLINE plan_tables plan(const traced& t, const setting& s) {
  graph g = t.graph;
  for (std::size_t i = 0; i < t.free.size(); ++i) g.at(t.free[i]).layout = s.layouts[i];
  mesh_shape mesh = mesh_of_rank(s.mesh.size());
  for (const char a : s.known_axes)
    if (const std::size_t i = axis_letters.find(a); i < s.mesh.size()) mesh.extents[i] = s.mesh[i];
  plan_tables p = compile(g, mesh, s.options, s.observer);
  check(p.problem, "planning");
  return p;
}

GSHARD_INLINE void scatter(const any_cluster& on, const detail::bound_value& to, const array& whole) {
  gshard::detail::require(std::int64_t(whole.size()) == detail::element_count_of(to), "an array has another size than its tensor");
  for (std::size_t i = 0; i < to.data.size(); ++i) {
    const device_group group(on.backend().extents(), to.layout.partial, on.devices()[i]);
    const double unit = is_real(to.type) ? 0.25 : 1;
    detail::with_element(to.type, [&]<class T>(T*) {
      kernel::for_each_element(to.places[i], [&](std::size_t global, std::size_t local) {
        to.as<T>(i)[local] = gshard::kernel::detail::converted<T>(
            to.layout.partial ? detail::part_of(to.layout.pending, whole, global, group.member(), group.size(), unit) : whole[global]);
      });
    });
  }
}

GSHARD_INLINE array collect(const any_cluster& on, const detail::bound_value& from) {
  const auto size = std::size_t(detail::element_count_of(from));
  const auto addends = std::size_t(device_group(on.backend().extents(), from.layout.partial, 0).size());
  std::vector<array> parts(addends, array(size));
  std::vector<std::vector<char>> known(addends, std::vector<char>(size, 0));
  bool copies_agree = true, complete = true;
  for (std::size_t i = 0; i < from.data.size(); ++i) {
    const auto k =
        std::size_t(device_group(on.backend().extents(), from.layout.partial, on.devices()[i]).member());
    detail::with_element(from.type, [&]<class T>(T*) {
      kernel::for_each_element(from.places[i], [&](std::size_t global, std::size_t local) {
        const auto v = gshard::kernel::detail::converted<double>(from.as<T>(i)[local]);
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
      if (k > 0)
        parts[0][e] =
            detail::with_operation<double>(from.layout.pending, [&](auto combine, double) { return combine(parts[0][e], parts[k][e]); });
    }
  if (!copies_agree) throw error("devices hold different copies of one element");
  if (!complete) throw error("an element is on no device");
  return parts[0];
}

GSHARD_INLINE std::string text_of(const sharding& s) {
  std::string t = "[";
  for (int d = 0; d < s.rank; ++d) {
    t += d ? "," : "";
    for (int i = 0; i < s[d].size(); ++i) t += axis_letters[std::size_t(s[d][i])];
    if (s[d].empty()) t += s.is_open(d) ? '*' : '-';
  }
  for (int a = 0; a < max_axes; ++a)
    if (s.is_partial(a)) t += std::string("+") + axis_letters[std::size_t(a)];
  return t + "]";
}

GSHARD_INLINE std::string text_of(const setting& s) {
  std::string t = "mesh " + detail::mesh_text(s.mesh) + ", dims";
  for (std::size_t i = 0; i < s.dims.count; ++i)
    t += std::string(" ") + s.dims.entries[i].letter + "=" + std::to_string(s.dims.entries[i].extent);
  t += ", shardings";
  for (const sharding& l : s.layouts) t += " " + text_of(l);
  return t;
}

GSHARD_INLINE node_map some_nodes(const setting& s) {
  std::mt19937 gen(std::uint32_t(fnv1a<std::uint64_t>().add(text_of(s)).value()));
  node_map nodes;
  if (gen() % 2 == 0) return nodes;
  for (int d = 0; d < device_count(s.mesh); ++d) nodes.node.push_back(int(gen() % 3));
  nodes.sums = gen() % 2 == 0 ? summation::by_member : summation::by_node;
  return nodes;
}

GSHARD_INLINE arrays run(const traced& t, const setting& s, const arrays& sources) {
  const plan_tables tables = plan(t, s);
  const any_cluster on(mesh_of_rank(s.mesh.size()), std::make_shared<simulated>(s.mesh, some_nodes(s)));
  executor e(tables.view(), all_kernels, on, s.dims, parameter_store(on));
  const std::size_t inputs = tables.inputs.size();
  gshard::detail::require(sources.size() == t.sources(), "one array is needed for each input and parameter");
  for (std::size_t i = 0; i < tables.parameters.size(); ++i)
    scatter(on, e.store().find(tables.parameters[i].name.view())->value, sources[inputs + i]);
  run_context context = s.context;
  for (int step = 0; step < s.steps; ++step, ++context.step) {
    for (std::size_t i = 0; i < inputs; ++i) scatter(on, e.input(i), sources[i]);
    e.run(context);
  }
  arrays results;
  for (std::size_t i = 0; i < tables.outputs.size(); ++i) results.push_back(collect(on, e.output(i)));
  for (const parameter& p : tables.parameters)
    results.push_back(collect(on, e.store().find(p.name.view())->value));
  return results;
}

GSHARD_INLINE std::vector<std::int64_t> extents_of(const traced& t, std::int32_t v, const gshard::dims& bound) {
  plan_view p{};
  p.dims = t.graph.dims;
  const extents e = p.bind(bound, {});
  std::vector<std::int64_t> found;
  for (int d = 0; d < t.graph.at(v).rank(); ++d) found.push_back(e.dim(t.graph.at(v).dims[d]));
  return found;
}

GSHARD_INLINE std::size_t element_count(const traced& t, std::int32_t v, const gshard::dims& bound) {
  std::int64_t n = 1;
  for (const std::int64_t e : extents_of(t, v, bound)) n *= e;
  return std::size_t(n);
}

GSHARD_INLINE arrays random_sources(const traced& t, const gshard::dims& bound, std::uint32_t seed) {
  std::mt19937 gen(seed);
  arrays made;
  for (std::size_t i = 0; i < t.sources(); ++i) {
    array a(element_count(t, t.free[i], bound));
    const bool ids = i < t.inputs.size() && t.inputs[i].type == dtype::i32;
    const int high = ids ? int(bound.find(t.inputs[i].below)) - 1 : 8;
    std::uniform_int_distribution<int> pick(ids ? t.inputs[i].least : -8, high);
    for (double& v : a) v = ids ? pick(gen) : double(pick(gen)) / 4;
    made.push_back(std::move(a));
  }
  return made;
}

GSHARD_INLINE double distance(const arrays& a, const arrays& b) {
  gshard::detail::require(a.size() == b.size(), "runs have different numbers of results");
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    gshard::detail::require(a[i].size() == b[i].size(), "runs have results of different sizes");
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

GSHARD_INLINE setting serial(const traced& t, const gshard::dims& dims) {
  setting s{.mesh = {1}, .dims = dims, .layouts = {}};
  for (const std::int32_t v : t.free) s.layouts.push_back(sharding::replicated(t.graph.at(v).rank()));
  return s;
}

}  // namespace testing

#endif

}}  // namespace gshard::v0
