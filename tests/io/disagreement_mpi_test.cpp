// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranks that make different collective calls: all of them throw, with the difference, before anything is sent, and can continue.
#include <gshard/io/checkpoint.hpp>

#include <gshard/cluster/mpi.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/eager/einsum.hpp>
#include <gshard/eager/map.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/cluster/mpi_cluster.hpp>
#include <gshard/core/trace/einsum.hpp>

#include "../mpi_world.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mpi_world::rank, mpi_world::ranks;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;
using two_axes = gs::mesh<gs::axis<"data">, gs::axis<"model">>;
using turned_axes = gs::mesh<gs::axis<"model">, gs::axis<"data">>;
bool last() { return rank() == ranks() - 1; }
std::string last_has(const std::string& what) { return ", rank " + std::to_string(ranks() - 1) + " has " + what; }

/// Programs with equal traffic.
template <int Times, int Start = 1>
inline constexpr auto scaled = [](auto& m, auto x, auto rate) {
  auto y = gs::einsum<"BM,MH->BH">(double(Times) * x, m.param("w", "MH", P<none, "x">{}, gs::init::constant(Start)));
  return gs::annotate<P<none, none>>(gs::map<[](auto a, auto r) { return a * r; }>(y, rate));
};
template <int Times>
inline constexpr auto mapped = [](auto& m, auto x, auto rate) {
  auto y = gs::einsum<"BM,MH->BH">(x, m.param("v", "MH", P<none, "x">{}, gs::init::constant(1)));
  return gs::annotate<P<none, none>>(gs::map<[](auto a, auto r) { return decltype(a)(Times) * a * r; }>(y, rate));
};
template <auto Model>
using program = gs::program<Model, mesh, in<"BM", P<"x", none>>, in<"">>;
using once = program<scaled<1>>;
using twice = program<scaled<2>>;
const gs::dims sizes{{'B', 12}, {'M', 8}, {'H', 16}};

using floats = std::vector<float>;
const floats ones(12 * 8, 1.0f), rate{1.0f}, other_rate{0.5f};
/// True if the result of a run is `value` everywhere.
template <class Tensor>
bool is_all(const Tensor& y, float value) {
  return gs::to_global(y) == floats(12 * 16, value);
}

/// A cluster, its objects, and every kind of collective call.
class everything {
 public:
  explicit everything(const gs::mpi_options& options)
      : backend_(std::make_shared<gs::mpi_backend>(MPI_COMM_WORLD, std::vector{ranks()}, options)),
        on_(backend_),
        store_(on_),
        other_(on_),
        run_(on_, sizes, store_),
        twice_(on_, sizes, store_),
        elsewhere_(on_, sizes, other_),
        mapped_(on_, sizes, store_),
        rows_(gs::from_global<float, P<"x", none>>(on_, {12, 8}, ones)) {
    if (rank() == 0) dir_.emplace();
    const std::string path = dir_ ? *dir_ / "f" : "/nowhere/f", everything_path = dir_ ? *dir_ / "g" : "/nowhere/g";
    gs::save(store_, path);
    const auto add = [&](auto f) { calls.emplace_back(std::move(f)); };
    add([this] { run_(ones, rate); });
    add([this] { run_(ones, other_rate); });
    add([this] {
      run_.seed = 1;
      struct back {
        std::uint64_t& seed;
        ~back() { seed = 0; }
      } const restore{run_.seed};
      run_(ones, rate);
    });
    add([this] { twice_(ones, rate); });
    add([this] { elsewhere_(ones, rate); });
    add([this] { gs::executable<once>(on_, sizes); });
    add([this] { gs::executable<once>(on_, sizes, gs::parameter_store(on_, 1)); });
    add([this] { gs::executable<once>(on_, sizes, store_); });
    add([this] { gs::executable<once>(on_, {{'B', 12}, {'M', 8}, {'H', 17}}); });
    add([this] { gs::executable<program<scaled<1, 2>>>(on_, sizes); });
    add([this] { gs::executable<program<mapped<1>>>(on_, sizes); });
    add([this] { gs::executable<program<mapped<2>>>(on_, sizes); });
    add([this] { gs::to_global<float>(store_, "w"); });
    add([this] { gs::to_global<float>(store_, "v"); });
    add([this] { gs::to_global<float>(other_, "w"); });
    add([this] { gs::set_global<float>(store_, "w", floats(8 * 16, 1.0f)); });
    add([this] { gs::set_global<float>(store_, "w", floats(8 * 16, 2.0f)); });
    add([this, path] { gs::save(store_, path); });
    add([this, path] { gs::save(store_, path, {}, {.piece_bytes = 100}); });
    add([this, everything_path] { gs::save(store_, everything_path, {}, {.scope = gs::checkpoint_scope::everything}); });
    add([this, path] { gs::load(store_, path); });
    add([this, path] { gs::load(store_, path, {.piece_bytes = 100}); });
    add([this, path] { gs::load_notes(on_, path); });
    add([this] { gs::einsum<"AB,CB->AC">(rows_, rows_); });
    add([this] { gs::einsum<"AB,AC->BC">(rows_, rows_); });
    add([this] { gs::reshard<P<none, "x">>(rows_); });
    add([this] { gs::reshard<P<none, none>>(rows_); });
    add([this] { gs::map<[](auto v) { return v + 1; }>(rows_); });
    add([this] { gs::map<[](auto v) { return v - 1; }>(rows_); });
    add([this] { gs::cluster<mesh>{backend_}; });
    add([this] { gs::cluster<gs::mesh<gs::axis<"y">>>{backend_}; });
  }
  std::vector<std::function<void()>> calls;

  bool works() {
    gs::set_global<float>(store_, "w", floats(8 * 16, 1.0f));
    return is_all(run_(ones, rate), 8) && is_all(twice_(ones, rate), 16) && gs::to_global(rows_) == ones;
  }

 private:
  std::shared_ptr<gs::mpi_backend> backend_;
  gs::cluster<mesh> on_;
  gs::parameter_store store_, other_;
  gs::executable<once> run_;
  gs::executable<twice> twice_;
  gs::executable<once> elsewhere_;
  gs::executable<program<mapped<1>>> mapped_;
  gs::tensor<float, P<"x", none>> rows_;
  std::optional<scratch> dir_;
};

}  // namespace

TEST_CASE("mpi: programs in another order on one rank") {
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  gs::executable<once> first(on, sizes);
  gs::executable<twice> second(on, sizes);
  const auto both = [&](bool turned) {
    if (turned) second(ones, rate);
    auto y = first(ones, rate);
    if (!turned) second(ones, rate);
    return y;
  };
  if (ranks() > 1) {
    const std::string said = complaint([&] { both(last()); });
    CAPTURE(said);
    CHECK(said.starts_with("call 4 on their cluster: the processes make different calls: rank"));
    CHECK(contains(said, "a run of the program made in call 2 (disagreement_mpi_test.cpp:"));
    CHECK(contains(said, last_has("a run of the program made in call 3 (disagreement_mpi_test.cpp:")));
  }
  CHECK(is_all(both(false), 8));
}

TEST_CASE("mpi: mesh axes with other names or in another order on one rank") {
  const std::vector<int> extents = ranks() == 4 ? std::vector{2, 2} : std::vector{1, ranks()};
  const std::string said = complaint([&] {
    if (last() && ranks() > 1) gs::on_mpi<turned_axes>(MPI_COMM_WORLD, extents);
    else gs::on_mpi<two_axes>(MPI_COMM_WORLD, extents);
  });
  CHECK(said.empty() == (ranks() == 1));
  CHECK((ranks() == 1 || contains(said, "making a cluster: the processes disagree on the axes of the mesh: rank")));
  CHECK((ranks() == 1 || contains(said, " data x model" + last_has("model x data"))));

  // One rank cannot create its mesh on these processes.
  using fixed = gs::mesh<gs::axis<"x", 7>>;
  const std::string alone = complaint([&] {
    if (last()) gs::on_mpi<fixed>(MPI_COMM_WORLD);
    else gs::on_mpi<mesh>(MPI_COMM_WORLD);
  });
  CHECK(alone.starts_with("rank " + std::to_string(ranks() - 1) + " failed: ") == !last());
}

TEST_CASE("mpi: a rank that skips a step is told by the input that then differs") {
  if (ranks() == 1) return;
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  gs::executable<once> run(on, sizes);
  const std::string said = complaint([&] {
    for (int step = 0; step < 4; ++step)
      if (!last() || step != 2) run(ones, floats{float(step)});
  });
  CHECK(said.starts_with("call 5 on their cluster: a run of the program made in call 2 (disagreement_mpi_test.cpp:"));
  CHECK(contains(said, "the processes disagree on element 0 of input 1: rank"));
  CHECK(contains(said, " 2" + last_has("3")));
}

TEST_CASE("mpi: inputs are named as they were given, also if steps write over them") {
  if (ranks() == 1) return;
  static constexpr auto model = [](auto& m, auto x) {
    return gs::einsum<"M,BM->">(gs::relu(x), m.param("u", "BM", P<"x", none>{}, gs::init::constant(1)));
  };
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  gs::executable<gs::program<model, mesh, in<"M">>> run(on, {{'B', 12}, {'M', 8}});
  const std::string said = complaint([&] { run(floats(8, last() ? -2.0f : -1.0f)); });
  CHECK(contains(said, "the processes disagree on element 0 of input 0 (M): rank"));
  CHECK(contains(said, " -1" + last_has("-2")));
}

TEST_CASE("mpi: functions, initial values and elements that differ are named with their values") {
  if (ranks() == 1) return;
  const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
  gs::parameter_store store(on);
  const std::string start = complaint([&] {
    if (last()) gs::executable<program<scaled<1, 2>>>(on, sizes, store);
    else gs::executable<once>(on, sizes, store);
  });
  CHECK(contains(start, "making a program (disagreement_mpi_test.cpp:"));
  CHECK(contains(start, "the processes disagree on the initial values of parameter \"w\": rank"));
  CHECK(contains(start, " constant 1" + last_has("constant 2")));
  CHECK(store.entries().empty());

  const std::string function = complaint([&] {
    if (last()) gs::executable<program<mapped<2>>>(on, sizes);
    else gs::executable<program<mapped<1>>>(on, sizes);
  });
  CHECK(contains(function, "the processes disagree on the values of the function of step "));

  gs::executable<once> run(on, sizes, store);
  floats w(8 * 16, 1.0f);
  if (last()) w[17] = 1.5f;
  const std::string elements = complaint([&] { gs::set_global<float>(store, "w", w); });
  CHECK(contains(elements, ": set_global of parameter \"w\": the processes disagree on element 17 of the array: rank"));
  CHECK(contains(elements, " 1" + last_has("1.5")));
  CHECK(gs::to_global<float>(store, "w") == floats(8 * 16, 1.0f));
}

TEST_CASE("mpi: every pair of calls that differ on a random rank throws on all, and the cluster works afterwards") {
  for (const bool shared : {false, true}) {
    everything all({.shared_memory = shared});
    CHECK(all.works());
    std::mt19937 random(7);
    int failures = 0;
    for (std::size_t i = 0; i < all.calls.size(); ++i)
      for (std::size_t j = 0; j < all.calls.size(); ++j) {
        const bool turned = rank() == int(random() % unsigned(ranks()));
        const std::string said = complaint([&] { all.calls[turned ? j : i](); });
        CAPTURE(i);
        CAPTURE(j);
        CAPTURE(said);
        const bool differs = i != j && ranks() > 1;
        CHECK(said.empty() != differs);
        failures += said.empty() == differs;
        if (j % 8 == 0 || failures > 0) REQUIRE(all.works());
      }
  }
}
