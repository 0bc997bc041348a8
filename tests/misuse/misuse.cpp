// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs in which ranks disagree, fail or stop. Each must end within 10 s, with a text that names the reason.
// usage: misuse [--only=CASE] RANKS LAUNCHER...    runs all cases; LAUNCHER... starts the ranks, such as "mpirun -n 2"
#include <gshard/gshard.hpp>
#include <gshard/exec/tensor/local_blocks.hpp>
#include <gshard/io.hpp>

#include "../effort.hpp"
#include "../keep_loaded.hpp"
#include "launch.hpp"

#include <cmath>
#include <csignal>
#include <cstdio>
#include <functional>
#include <iostream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::in, gs::none, gs::P;

namespace {

// Available to all cases.
int rank = 0, ranks = 1;
bool odd = false;  // this rank is the one that differs
std::filesystem::path dir;
std::string other_build;
constexpr gs::wait_deadlines soon{.warn = 0.7, .fail = 1.5};

using mesh = gs::mesh<gs::axis<"x">>;
using two_axes = gs::mesh<gs::axis<"a">, gs::axis<"b">>;
using floats = std::vector<float>;

template <class Mesh = mesh>
gs::cluster<Mesh> cluster(const std::vector<int>& extents = {}, gs::mpi_options options = {}) {
  if (options.deadlines == gs::wait_deadlines()) options.deadlines = soon;
  return gs::on_mpi<Mesh>(MPI_COMM_WORLD, extents, options);
}

template <int Times, int Start = 1, gs::fixed_string Name = "w">
inline constexpr auto dense = [](auto& m, auto x, auto rate) {
  auto y = gs::einsum<"BM,MH->BH">(double(Times) * x, m.param(Name.view(), "MH", P<none, "x">{}, gs::init::constant(Start)));
  return gs::annotate<P<none, none>>(gs::map<[](auto a, auto r) { return a * r; }>(y, rate));
};
template <int Times>
inline constexpr auto mapped = [](auto& m, auto x, auto rate) {
  auto y = gs::einsum<"BM,MH->BH">(x, m.param("v", "MH", P<none, "x">{}, gs::init::constant(1)));
  return gs::annotate<P<none, none>>(gs::map<[](auto a, auto r) { return decltype(a)(Times) * a * r; }>(y, rate));
};
inline constexpr auto by_rows = [](auto& m, auto x, auto rate) {
  auto y = gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", P<"x", none>{}, gs::init::constant(1)));
  return gs::annotate<P<none, none>>(gs::map<[](auto a, auto r) { return a * r; }>(y, rate));
};
template <int Beta>
inline constexpr auto trained = [](auto& m, auto x, auto rate) {
  auto y = gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", P<none, "x">{}, gs::init::normal(1)));
  auto loss = gs::mean(y * y);
  gs::adam{.beta1 = Beta * 0.01}.minimize(m, loss, rate);
  return loss;
};
template <auto F>
inline constexpr auto on_shards = [](auto&, auto x) { return gs::annotate<P<none, none>>(gs::call_on_shards<F, "B@x,M">(x)); };
constexpr auto twice_of = [](auto x, auto y) { for (std::int64_t i = 0; i < y.size(); ++i) y.data[i] = 2 * x.data[i]; };
constexpr auto three_of = [](auto x, auto y) { for (std::int64_t i = 0; i < y.size(); ++i) y.data[i] = 3 * x.data[i]; };

template <auto Model>
using program = gs::program<Model, mesh, in<"BM", P<"x", none>>, in<"">>;
using once = program<dense<1>>;
using twice = program<dense<2>>;
using of_double = gs::program<dense<1>, mesh, in<"BM", P<"x", none>, double>, in<"", P<>, double>, gs::element<double>>;
using training = program<trained<90>>;
using replicated_input = gs::program<dense<1>, mesh, in<"BM", P<none, none>>, in<"">>;
template <auto F>
using shard_program = gs::program<on_shards<F>, mesh, in<"BM", P<"x", none>>>;
using rows = gs::tensor<float, P<"x", none>>;

const gs::dims sizes{{'B', 12}, {'M', 8}, {'H', 24}}, other_sizes{{'B', 12}, {'M', 8}, {'H', 36}};
const floats ones(12 * 8, 1.0f), rate{0.5f}, other_rate{0.25f};
floats numbers(float first) {
  floats x(12 * 8);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = first + float(i);
  return x;
}
floats but_one(float value) {
  floats x = ones;
  x[37] = value;
  return x;
}

void fail(const char* text) { throw std::runtime_error(text); }
void fail_uncaught() noexcept { fail("nobody catches this"); }

/// The result of a harmless case: the same on all ranks.
void result(double value) { std::printf("result %.17g\n", value); }
template <class T, class Spec>
void result(const gs::tensor<T, Spec>& t) {
  double sum = 0, weight = 0;
  for (const T x : gs::to_global(t)) sum += double(x) * ++weight;
  result(sum);
}
template <class Program, class On>
gs::executable<Program> made(const On& on, const gs::dims& with = sizes) {
  return {on, with};
}

struct misuse {
  const char* name;
  void (*run)();
  std::vector<std::string> words;  // expected in the text of the ranks; none: the case is harmless
  double continue_after = 0;       // seconds, for a stopped rank
  bool other_build = false;        // the odd rank runs the other build
  bool only_odd = false;           // the other ranks have already finished
};

using words = std::vector<std::string>;
const words harmless;

const std::vector<misuse> cases{
    // The program.
    {"other program", [] {
       const auto on = cluster();
       if (odd) made<twice>(on)(ones, rate);
       else made<once>(on)(ones, rate);
     }, {"the processes disagree", "step 0 of a program", "factor 2"}},
    {"map function", [] {
       const auto on = cluster();
       if (odd) made<program<mapped<2>>>(on)(ones, rate);
       else made<program<mapped<1>>>(on)(ones, rate);
     }, {"the values of the function of step"}},
    {"function of shards", [] {
       const auto on = cluster();
       if (odd) made<shard_program<three_of>>(on)(ones);
       else made<shard_program<twice_of>>(on)(ones);
     }, {"the processes disagree on the function of step"}},
    {"initial value", [] {
       const auto on = cluster();
       if (odd) made<program<dense<1, 2>>>(on)(ones, rate);
       else made<once>(on)(ones, rate);
     }, {"the initial values of parameter \"w\"", "constant 1", "constant 2"}},
    {"name of a parameter", [] {
       const auto on = cluster();
       if (odd) made<program<dense<1, 1, "u">>>(on)(ones, rate);
       else made<once>(on)(ones, rate);
     }, {"parameter \"w\"", "parameter \"u\""}},
    {"sharding of a parameter", [] {
       const auto on = cluster();
       if (odd) made<program<by_rows>>(on)(ones, rate);
       else made<once>(on)(ones, rate);
     }, {"the processes disagree on parameter \"w\""}},
    {"optimizer setting", [] {
       const auto on = cluster();
       if (odd) made<program<trained<80>>>(on)(ones, rate);
       else made<training>(on)(ones, rate);
     }, {"adam", "beta1 0.8", "beta1 0.9"}},
    {"element type", [] {
       const auto on = cluster();
       if (odd) made<of_double>(on)(std::vector<double>(96, 1), std::vector<double>{0.5});
       else made<once>(on)(ones, rate);
     }, {"the processes disagree on input 0", "f32", "f64"}},
    {"extents", [] {
       const auto on = cluster();
       made<once>(on, odd ? other_sizes : sizes)(ones, rate);
     }, {"the processes disagree on the extent of dim 'H'", "24", "36"}},
    {"missing extent", [] {
       const auto on = cluster();
       made<once>(on, odd ? gs::dims{{'B', 12}, {'M', 8}} : sizes)(ones, rate);
     }, {"dim 'H' is given no extent"}},
    {"order of construction", [] {
       const auto on = cluster();
       if (odd) made<twice>(on), made<once>(on);
       else made<once>(on), made<twice>(on);
     }, {"call 2 on their cluster", "step 0 of a program"}},
    {"other build", [] { cluster(); }, {"the compile options that change results"}, 0, true},

    // The steps.
    {"one step more", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       for (int i = 0; i < (odd ? 4 : 3); ++i) step(ones, rate);
     }, {"has destroyed its cluster, so that it makes no further call after call 5"}, 0, false, true},
    {"step skipped, replicated input", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       for (int i = 0; i < 3; ++i)
         if (!odd || i != 1) step(ones, floats{float(i)});
     }, {"the processes disagree on element 0 of input 1"}},
    {"step skipped, sharded input", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       for (int i = 0; i < 3; ++i)
         if (!odd || i != 1) step(numbers(float(i)), rate);
     }, {"call 4 on their cluster", "element 0 of input 0 (BM)"}},
    {"step skipped, equal inputs", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       for (int i = 0; i < 3; ++i)
         if (!odd || i != 1) step(ones, rate);
     }, {"has destroyed its cluster, so that it makes no further call after call 4"}},
    {"step skipped, new tensor each step", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       for (int i = 0; i < 3; ++i) {
         const auto x = gs::from_global<float, P<"x", none>>(on, {12, 8}, numbers(float(i)));
         if (!odd || i != 1) step(x, rate);
       }
     }, {"the processes disagree on the tensor of input 0 (BM)"}},
    {"order of two programs", [] {
       const auto on = cluster();
       auto a = made<once>(on);
       auto b = made<twice>(on);
       if (odd) b(ones, rate), a(ones, rate);
       else a(ones, rate), b(ones, rate);
     }, {"a run of the program made in call 2", "a run of the program made in call 3"}},
    {"order with other extents", [] {
       const auto on = cluster();
       auto a = made<once>(on);
       auto b = made<once>(on, other_sizes);
       if (odd) b(ones, rate), a(ones, rate);
       else a(ones, rate), b(ones, rate);
     }, {"a run of the program made in call 2", "a run of the program made in call 3"}},
    {"one start more", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       rows x(on, {12, 8});
       gs::for_each_local_shard(x, [](auto s) { std::ranges::fill(s.span(), 1.0f); });
       floats r = rate;
       step.bind_input<0>(x);
       step.bind_input<1>(r);
       for (int i = 0; i < 2; ++i) step.start_bound(), step.wait();
       if (odd) step.start_bound();
       made<twice>(on);
     }, {"the processes make different calls", "making a program", "a run of the program made in call"}},
    {"left the loop", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       for (int i = 0; i < 5; ++i) {
         if (odd && i == 2) break;
         step(ones, rate);
       }
     }, {"has destroyed its cluster, so that it makes no further call after call 4"}},
    {"seed of a run", [] {
       const auto on = cluster();
       auto step = made<training>(on);
       if (odd) step.seed = 7;
       step(ones, rate);
     }, {"the processes disagree on the seed of a run"}},
    {"seed of a store", [] {
       const auto on = cluster();
       gs::executable<training> step(on, sizes, gs::parameter_store(on, odd ? 7 : 0));
     }, {"the processes disagree on the seed of a program's parameters"}},
    {"another store", [] {
       const auto on = cluster();
       gs::parameter_store store(on), other(on);
       gs::executable<once> a(on, sizes, store), b(on, sizes, other);
       gs::executable<twice> step(on, sizes, odd ? other : store);
     }, {"the processes disagree on the store of a program's parameters"}},
    {"step count", [] {
       const auto on = cluster();
       auto step = made<training>(on);
       step(ones, rate);
       if (odd) step.executor().store().set_steps(5);
       step(ones, rate);
     }, {"the processes disagree on the step of a run"}},
    {"hook on one rank", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       if (odd) step.executor().hook = [](const gs::node&, bool) {};
       result(step(ones, rate));
     }, harmless},
    {"threads", [] {
       const auto on = cluster();
       auto step = made<training>(on);
       step.threads(odd ? 3 : 1);
       step(ones, rate);
       result(step(ones, rate));
     }, harmless},
    {"bound input", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       floats r = rate;
       if (odd) {
         step.bind_input<1>(r);
         step(ones, gs::bound);
       } else {
         step(ones, rate);
       }
     }, {"the processes make different calls", "making a program", "a run of the program"}},

    // Inputs.
    {"input length", [] {
       const auto on = cluster();
       made<once>(on)(odd ? floats(95, 1.0f) : ones, rate);
     }, {"input 0 (BM) has 95 elements, its dims make 96"}},
    {"replicated input", [] {
       const auto on = cluster();
       made<replicated_input>(on)(odd ? but_one(2) : ones, rate);
     }, {"the processes disagree on element 37 of input 0 (BM)"}},
    {"rate", [] {
       const auto on = cluster();
       made<once>(on)(ones, odd ? other_rate : rate);
     }, {"the processes disagree on element 0 of input 1", "0.5", "0.25"}},
    {"NaN in a replicated input", [] {
       const auto on = cluster();
       made<replicated_input>(on)(odd ? but_one(std::numeric_limits<float>::quiet_NaN()) : ones, rate);
     }, {"the processes disagree on element 37 of input 0 (BM)", "nan"}},
    {"NaN in a sharded input", [] {
       const auto on = cluster();
       made<once>(on)(odd ? but_one(std::numeric_limits<float>::quiet_NaN()) : ones, rate);
     }, {"element 37 of input 0 (BM)", "nan"}},
    {"tensors of equal size exchanged", [] {
       const auto on = cluster();
       const auto a = gs::from_global<float, P<"x", none>>(on, {12, 8}, ones), b = gs::from_global<float, P<"x", none>>(on, {12, 8}, ones);
       made<once>(on)(odd ? b : a, rate);
     }, {"call 3 on their cluster", "the processes disagree on the tensor of input 0 (BM)"}},
    {"tensors made in another order", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       std::optional<rows> a, b;
       const auto make = [&](std::optional<rows>& t, float value) {
         t.emplace(on, std::vector<std::int64_t>{12, 8});
         gs::for_each_local_shard(*t, [&](auto s) { std::ranges::fill(s.span(), value); });
       };
       if (odd) make(b, 2), make(a, 1);
       else make(a, 1), make(b, 2);
       step(*a, rate);
     }, {"the processes disagree on the tensor of input 0 (BM)", "tensor 1 made after call 2", "tensor 2 made after call 2"}},
    {"array of from_global", [] {
       const auto on = cluster();
       const auto x = gs::from_global<float, P<"x", none>>(on, {12, 8}, numbers(odd ? 1 : 0));
       made<once>(on)(x, rate);
     }, {"the processes disagree on the array of the tensor of input 0 (BM)"}},
    {"operands exchanged", [] {
       const auto on = cluster();
       const rows a = gs::from_global<float, P<"x", none>>(on, {12, 8}, ones);
       const rows b = gs::from_global<float, P<"x", none>>(on, {12, 8}, numbers(0));
       if (odd) gs::einsum<"AB,CB->AC">(b, a);
       else gs::einsum<"AB,CB->AC">(a, b);
     }, {"AB,CB->AC on tensors", "the processes disagree on the tensor of operand 0"}},
    {"extents of an operand", [] {
       const auto on = cluster();
       const rows a = gs::from_global<float, P<"x", none>>(on, {12, 8}, ones), b = gs::from_global<float, P<"x", none>>(on, {8, 12}, ones);
       gs::softmax(odd ? b : a);
     }, {"softmax on tensors", "the processes disagree on the extent of dim 'A'"}},
    {"constant of a comparison", [] {
       const auto on = cluster();
       const rows t = gs::from_global<float, P<"x", none>>(on, {12, 8}, ones);
       gs::to_global(t < (odd ? 3 : 2));
     }, {"compare on tensors", "the number 2", "the number 3"}},
    {"resharded to another sharding", [] {
       const auto on = cluster();
       const rows t = gs::from_global<float, P<"x", none>>(on, {12, 8}, ones);
       if (odd) gs::reshard<P<none, "x">>(t);
       else gs::reshard<P<none, none>>(t);
     }, {"reshard on tensors", "the processes disagree"}},
    {"operation on one rank", [] {
       const auto on = cluster();
       const rows t = gs::from_global<float, P<"x", none>>(on, {12, 8}, ones);
       if (odd) gs::softmax(t);
       made<once>(on);
     }, {"the processes make different calls", "softmax on tensors", "making a program"}},
    {"local blocks of another array", [] {
       const auto on = cluster();
       floats block(96, 1.0f);
       const std::int64_t height = odd ? 24 : 12, mine = 12 / ranks;
       gs::from_local_blocks<P<"x", none>>(on, {height, 8}, {gs::local_block<float>(block.data(), {rank * mine, 0}, {mine, 8})});
     }, {"the processes disagree on the extents of the array", "[12,8]", "[24,8]"}},
    {"local blocks that overlap", [] {
       const auto on = cluster();
       floats block(96, 1.0f);
       const std::int64_t mine = 12 / ranks, at = odd ? (rank + 1) % ranks : rank;
       gs::from_local_blocks<P<"x", none>>(on, {12, 8}, {gs::local_block<float>(block.data(), {at * mine, 0}, {mine, 8})});
     }, {"local blocks do not tile the array [12,8]"}},

    // Parameters and files.
    {"set_global with other values", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       gs::set_global<float>(step.executor().store(), "w", floats(8 * 24, odd ? 2.0f : 1.0f));
     }, {"set_global of parameter \"w\"", "element 0 of the array"}},
    {"set_global with another length", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       gs::set_global<float>(step.executor().store(), "w", floats(odd ? 7 : 8 * 24, 1.0f));
     }, {"parameter \"w\": 7 elements for a tensor of 192"}},
    {"set_global on one rank", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       if (odd) gs::set_global<float>(step.executor().store(), "w", floats(8 * 24, 1.0f));
       step(ones, rate);
     }, {"set_global of parameter \"w\"", "a run of the program made in call 2"}},
    {"to_global on one rank", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       if (odd) gs::to_global<float>(step.executor().store(), "w");
       step(ones, rate);
     }, {"to_global of parameter \"w\"", "a run of the program made in call 2"}},
    {"to_global on one rank, at the end", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       if (odd) gs::to_global<float>(step.executor().store(), "w");
     }, {"has destroyed its cluster, so that it makes no further call after call 2"}, 0, false, true},
    {"to_global of another name", [] {
       const auto on = cluster();
       gs::parameter_store store(on);
       gs::executable<once> a(on, sizes, store);
       gs::executable<program<mapped<1>>> b(on, sizes, store);
       gs::to_global<float>(store, odd ? "v" : "w");
     }, {"to_global of parameter \"w\"", "to_global of parameter \"v\""}},
    {"load of another file", [] {  // the leader's path is used
       const auto on = cluster();
       auto step = made<once>(on);
       gs::parameter_store& store = step.executor().store();
       gs::save(store, dir / "a");
       gs::set_global<float>(store, "w", floats(8 * 24, 3.0f));
       gs::save(store, dir / "b");
       gs::load(store, odd ? dir / "b" : dir / "a");
       result(step(ones, rate));
     }, harmless},
    {"load of files of other content", [] {  // each rank's own disk: the leader's is used
       const auto on = cluster();
       auto step = made<once>(on);
       gs::parameter_store& store = step.executor().store();
       std::filesystem::create_directories(dir / std::to_string(rank));
       for (int of = 0; of < ranks; ++of) {
         gs::set_global<float>(store, "w", floats(8 * 24, float(of)));
         gs::save(store, dir / std::to_string(of) / "c");
       }
       gs::load(store, dir / std::to_string(rank) / "c");
       result(step(ones, rate));
     }, harmless},
    {"load of a missing file", [] {
       const auto on = cluster();
       gs::load(made<once>(on).executor().store(), dir / (odd ? "missing" : "missing, too"));
     }, {"missing", "No such file"}},
    {"options of load", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       gs::save(step.executor().store(), dir / "a");
       gs::load(step.executor().store(), dir / "a", {.scope = odd ? gs::checkpoint_scope::everything : gs::checkpoint_scope::parameters});
     }, {"the processes disagree on checkpoint_options::scope"}},
    {"save on one rank", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       if (odd) gs::save(step.executor().store(), dir / "a");
       step(ones, rate);
     }, {"save of a checkpoint", "a run of the program made in call 2"}},
    {"load on one rank, at the end", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       gs::save(step.executor().store(), dir / "a");
       if (odd) gs::load(step.executor().store(), dir / "a");
     }, {"has destroyed its cluster, so that it makes no further call after call 3"}, 0, false, true},
    {"save against load", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       gs::save(step.executor().store(), dir / "a");
       if (odd) gs::load(step.executor().store(), dir / "a");
       else gs::save(step.executor().store(), dir / "a");
     }, {"save of a checkpoint", "load of a checkpoint"}},
    {"load_npy of files of other content", [] {
       const auto on = cluster();
       const rows t = gs::from_global<float, P<"x", none>>(on, {12, 8}, ones);
       const rows u = gs::from_global<float, P<"x", none>>(on, {12, 8}, numbers(0));
       gs::save_npy(dir / "a.npy", t);
       gs::save_npy(dir / "b.npy", u);
       const std::filesystem::path mine = dir / std::to_string(rank);
       std::filesystem::create_directory(mine);
       std::filesystem::copy(dir / (odd ? "b.npy" : "a.npy"), mine / "c.npy");
       std::filesystem::current_path(mine);
       gs::load_npy<float, P<"x", none>>(on, "c.npy");
     }, {"load_npy of c.npy", "the file, whose path must name the same content on all processes"}},

    // Clusters.
    {"two clusters made in another order", [] {
       const auto make = [](int extent) { return cluster<two_axes>({extent, ranks / extent}); };
       if (odd) make(ranks), make(1);
       else make(1), make(ranks);
     }, {"making a cluster", "the processes disagree on the mesh"}},
    {"two clusters used in another order", [] {
       const auto a = cluster(), b = cluster();
       auto on_a = made<once>(a), on_b = made<once>(b);
       if (odd) on_b(ones, rate), on_a(ones, rate);
       else on_a(ones, rate), on_b(ones, rate);
     }, {"on another cluster it waits for", "in an agreement of all ranks", "absent: "}},
    {"other communicators", [] {
       const auto on = gs::on_mpi<mesh>(odd ? MPI_COMM_SELF : MPI_COMM_WORLD, {}, {.deadlines = soon});
       made<once>(on)(ones, rate);
     }, {"making a cluster", "some have not made this cluster"}},
    {"no on_mpi", [] {
       if (odd) made<once>(gs::on_one_device<mesh>())(ones, rate);
       else cluster();
     }, {"making a cluster", "some have not made this cluster"}},
    {"mesh extents", [] { cluster<two_axes>(odd ? std::vector{1, ranks} : std::vector{ranks, 1}); },
     {"the processes disagree on the mesh"}},
    {"mesh axis names", [] {
       if (odd) cluster<gs::mesh<gs::axis<"y">>>();
       else cluster();
     }, {"the processes disagree on the axes of the mesh"}},
    {"order of mesh axes", [] {
       if (odd) cluster<gs::mesh<gs::axis<"b">, gs::axis<"a">>>({1, ranks});
       else cluster<two_axes>({1, ranks});
     }, {"the processes disagree on the axes of the mesh", "a x b", "b x a"}},
    {"mesh of another rank", [] {
       if (odd) cluster<two_axes>({1, ranks});
       else cluster();
     }, {"the processes disagree on the mesh"}},
    {"shared memory", [] { cluster({}, {.shared_memory = odd}); }, {"the processes disagree on mpi_options::shared_memory"}},
    {"deadlines", [] { cluster({}, {.deadlines = {.warn = 0.7, .fail = odd ? 1.4 : 1.5}}); },
     {"the processes disagree on mpi_options::deadlines"}},

    // Ranks that fail, leave or stop.
    {"exception in a run_scope", [] {
       const auto on = cluster();
       gs::run_scope(on).run([&] {
         auto step = made<once>(on);
         for (int i = 0; i < 5; ++i) {
           if (odd && i == 2) {
             std::this_thread::sleep_for(std::chrono::milliseconds(500));
             fail("the batch of step 2 is empty");
           }
           step(ones, rate);
         }
       });
     }, {"failed: the batch of step 2 is empty", "in an agreement of all ranks, collective call 5"}},
    {"exception between steps", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       for (int i = 0; i < 5; ++i) {
         if (odd && i == 2) throw std::runtime_error("the batch of step 2 is empty");
         step(ones, rate);
       }
     }, {"has destroyed its cluster, so that it makes no further call after call 4"}},
    {"exception in a hook", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       if (odd) step.executor().hook = [](const gs::node&, bool) { throw std::runtime_error("no room for the timeline"); };
       step(ones, rate);
     }, {"no room for the timeline"}},
    {"exception that nobody catches", [] {
       const auto on = cluster();
       const gs::run_scope scope(on);
       auto step = made<once>(on);
       step(ones, rate);
       if (odd) fail_uncaught();
       step(ones, rate);
     }, {"failed: an exception was not caught: nobody catches this"}},
    {"failure by hand", [] {
       const auto on = cluster();
       gs::run_scope scope(on);
       auto step = made<once>(on);
       if (odd) scope.fail("the disk is full");
       step(ones, rate);
     }, {"failed: the disk is full"}},
    {"exit", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       if (odd) std::exit(0);
       step(ones, rate);
     }, {"has called exit, so that it makes no further call after call 2"}},
    {"MPI_Finalize too early", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       if (odd) {
         MPI_Finalize();
         std::_Exit(0);
       }
       step(ones, rate);
     }, {"has called MPI_Finalize, so that it makes no further call after call 2"}},
    {"killed", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       step(ones, rate);
       if (odd) std::raise(SIGKILL);
       step(ones, rate);
     }, {"does not answer: it has ended, is stopped or cannot be reached", "collective call 4, step", "absent: rank"}},
    {"killed in a run", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       step(ones, rate);
       if (odd) step.executor().hook = [](const gs::node& n, bool before) {
         if (!before && n.kind == gs::op::einsum) std::raise(SIGKILL);
       };
       step(ones, rate);
     }, {"does not answer", "misuse.cpp:", "absent: rank"}},
    {"stopped", [] {
       const auto on = cluster();
       auto step = made<once>(on);
       step(ones, rate);
       if (odd) std::raise(SIGSTOP);
       step(ones, rate);
     }, {"does not answer: it has ended, is stopped or cannot be reached", "collective call 4, step", "absent: rank"}},
    {"stopped for a second", [] {
       const auto on = cluster({}, {.deadlines = {.warn = 0.5, .fail = 6}});
       auto step = made<once>(on);
       if (odd) std::raise(SIGSTOP);
       result(step(ones, rate));
     }, harmless, 1.0},
    {"late by a second", [] {
       const auto on = cluster({}, {.deadlines = {.warn = 0.5, .fail = 6}});
       auto step = made<once>(on);
       if (odd) std::this_thread::sleep_for(std::chrono::seconds(1));
       result(step(ones, rate));
     }, harmless},
};

/// The exit statuses of a rank.
enum ends { finished = 0, threw = 3, threw_other = 4 };

int run_case(const misuse& c, int argc, char** argv) {
  const std::string differs = std::getenv("MISUSE_ODD");
  for (const char* const of_launcher : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
    if (const char* const mine = std::getenv(of_launcher); mine != nullptr && c.other_build && mine == differs)
      ::execl(other_build.c_str(), other_build.c_str(), nullptr);
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  odd = std::to_string(rank) == differs;
  int status = threw_other;
  try {
    c.run();
    MPI_Finalize();
    status = finished;
  } catch (const gs::error& e) {
    std::printf("threw %s\n", e.what());
    status = threw;
  } catch (const std::exception& e) {
    std::printf("threw another exception: %s\n", e.what());
  }
  std::fflush(stdout);
  if (status != finished) std::_Exit(status);  // MPI_Finalize would wait for ranks that have given up
  return status;
}

/// The fault in the outcome of a case, or an empty text.
std::string fault_of(const misuse& c, const launch::outcome& o, int n) {
  if (!o.in_time) return "it did not end within 10 s";
  std::string all;
  int told = 0, results = 0;
  std::string result;
  for (const launch::rank_end& r : o.ranks) {
    all += r.text;
    told += r.status == threw || r.status == gs::wait_deadlines::restart_status ? 1 : 0;
    const std::size_t at = r.text.find("result ");
    if (r.status != finished || at == r.text.npos) continue;
    const std::string mine = r.text.substr(at, r.text.find('\n', at) - at);
    results += result.empty() || mine == result ? 1 : 0;
    result = mine;
  }
  if (c.words.empty()) return results == n ? "" : "the ranks do not have one result";
  if (told < (c.only_odd ? 1 : n - 1)) return "only " + std::to_string(told) + " ranks were told";
  for (const std::string& word : c.words)
    if (all.find(word) == all.npos) return "no rank wrote \"" + word + "\"";
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string self = std::filesystem::canonical("/proc/self/exe");
  other_build = self + "_other_build";
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 4 && arguments[0] == "--rank") {
    const misuse& c = cases.at(std::size_t(std::stoi(arguments[1])));
    dir = arguments[2];
    const std::filesystem::path files = dir / "files";
    launch::run_rank(dir, std::stoi(arguments[3]), c.continue_after, [&] {
      dir = files;
      return run_case(c, argc, argv);
    });
    return 0;
  }
  std::string only;
  if (!arguments.empty() && arguments[0].starts_with("--only=")) {
    only = arguments[0].substr(7);
    arguments.erase(arguments.begin());
  }
  if (arguments.size() < 2) {
    std::cerr << "usage: misuse [--only=CASE] RANKS LAUNCHER...\n";
    return 2;
  }
  const int n = std::stoi(arguments[0]);
  // With an even number of ranks the last one differs, otherwise the first.
  ::setenv("MISUSE_ODD", std::to_string(n % 2 == 0 ? n - 1 : 0).c_str(), 1);
  std::vector<pid_t> launchers;
  std::vector<std::string> scratches;
  int passed = 0, run = 0;
  double longest = 0;
  const bool every = n <= 2 || !only.empty() || repetitions(3, 3) == 3;  // otherwise every third
  for (std::size_t i = 0; i < cases.size(); i += every ? 1 : 3) {
    const misuse& c = cases[i];
    if (!only.empty() && only != c.name) continue;
    std::string scratch = (std::filesystem::temp_directory_path() / "gshard-misuse-XXXXXX").string();
    if (::mkdtemp(scratch.data()) == nullptr) return 2;
    std::filesystem::create_directory(std::filesystem::path(scratch) / "files");
    std::vector<std::string> command(arguments.begin() + 1, arguments.end());
    for (const std::string& a : {self, std::string("--rank"), std::to_string(i), scratch, std::to_string(n)}) command.push_back(a);
    scratches.push_back(scratch);
    const launch::outcome o = launch::run_all(command, scratch, n, launchers);
    const std::string fault = fault_of(c, o, n);
    ++run;
    passed += fault.empty() ? 1 : 0;
    longest = std::max(longest, o.seconds);
    std::printf("%-40s %5.1f s  %s\n", c.name, o.seconds, fault.empty() ? c.words.empty() ? "harmless" : "told" : fault.c_str());
    for (const launch::rank_end& r : o.ranks)
      if (!fault.empty() || !only.empty()) std::printf("  status %d%s: %s\n", r.status, r.stopped ? ", stopped" : "", r.text.c_str());
    if (!fault.empty()) std::printf("  launcher: %s\n", launch::content_of(std::filesystem::path(scratch) / "launcher").c_str());
    std::fflush(stdout);
  }
  launch::wait_for(launchers);
  for (const std::string& scratch : scratches) std::filesystem::remove_all(scratch);
  std::printf("misuse: %d of %d cases on %d ranks; the longest took %.1f s\n", passed, run, n, longest);
  return passed == run && run > 0 ? 0 : 1;
}
