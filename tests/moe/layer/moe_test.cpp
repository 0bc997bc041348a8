// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/moe/layer/moe.hpp>

#include "../../exec/planned_program.hpp"

#include <gshard/moe/routing/routing.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/train/adam.hpp>
#include <gshard/testing/check_shardings.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <vector>

namespace gs = gshard;
using gs::in, gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"expert">>;

namespace {

/// Layer and training step: learns to return a multiple of its input.
inline constexpr auto step = [](auto& m, auto x, auto mask, auto rate) {
  const gs::nn::moe_result r = gs::nn::moe<"expert">(m, x, mask, {.routing = {.slots = gs::capacity{1.5}}});
  auto error = r.y - 3.0 * x;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return std::tuple{loss, r.y, r.load, r.overflow};
};
using tokens = in<"GSM", P<"expert", none, none>, double>;
using by_index = gs::program<step, mesh, tokens, in<"GS", P<"expert", none>, double>, in<"", void, double>,
                             gs::element<double>>;
using dense = gs::program<step, mesh, tokens, in<"GS", P<"expert", none>, double>, in<"", void, double>,
                          gs::element<double>, gs::dense_one_hot>;

template <class Program>
int count(gs::op_ref kind) {
  return planned::plan_of<Program>().count(kind);
}

constexpr std::size_t G = 4, S = 6, E = 3, M = 5, F = 7;
const gs::dims extents{{'G', G}, {'S', S}, {'E', E}, {'M', M}, {'F', F}};

struct result {
  std::vector<double> losses, y, load, overflow;
};

template <class Program, class Mesh>
result train(const gs::cluster<Mesh>& on, const gs::dims& sizes, int steps) {
  planned::executable<Program> run(on, sizes, gs::parameter_store(on, 8));
  run.seed = 4;
  std::vector<double> x(G * S * M), mask(G * S);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(2.3 * double(i));
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = i % 5 == 2 ? 0 : 1;
  result r;
  for (int i = 0; i < steps; ++i) {
    const planned::results found = run(x, mask, std::array{0.01});
    r.losses.push_back(found.item());
    r.y = found.all[1];
    r.load = found.all[2];
    r.overflow.push_back(found.item(3));
  }
  return r;
}

template <class Program>
result train(int devices, int steps) {
  return train<Program>(gs::simulate<mesh>(devices), extents, steps);
}

void check_same(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-9));
}

void check_same(const result& a, const result& b) {
  check_same(a.losses, b.losses);
  check_same(a.y, b.y);
  CHECK(a.load == b.load);
  CHECK(a.overflow == b.overflow);
}

}  // namespace

TEST_CASE(
    "moe: by index and by dense one-hot einsums is one layer, with one gradient, on any number of devices") {
  CHECK((count<by_index>(gs::op::one_hot) == 0 && count<by_index>(gs::op::dispatch) > 0));
  CHECK((count<dense>(gs::op::dispatch) == 0 && count<dense>(gs::op::one_hot) > 0));
  CHECK(same_plan::at_run_time<by_index>({{2}, extents}) == "");
  const result expected = train<by_index>(1, 15);
  CHECK(expected.losses.back() < 0.9 * expected.losses.front());
  CHECK(std::any_of(expected.overflow.begin(), expected.overflow.end(), [](double n) { return n > 0; }));
  for (const int devices : {1, 2, 3, 4, 5}) {
    const result index = train<by_index>(devices, 15), einsums = train<dense>(devices, 15);
    for (const result* r : {&index, &einsums}) {
      check_same(r->losses, expected.losses);
      check_same(r->y, expected.y);
      CHECK(r->load == expected.load);
      CHECK(r->overflow == expected.overflow);
    }
  }
}

TEST_CASE("moe: padding comes out as zero, and every kept choice is in the load") {
  const result r = train<by_index>(2, 1);
  for (std::size_t t = 0; t < G * S; ++t) {
    const bool zero = std::all_of(r.y.begin() + std::ptrdiff_t(t * M),
                                  r.y.begin() + std::ptrdiff_t((t + 1) * M), [](double v) { return v == 0; });
    if (t % 5 == 2) CHECK(zero);
  }
  const double routed = std::accumulate(r.load.begin(), r.load.end(), 0.0);
  CHECK(routed <= double(E * G * 3));  // capacity: ceil(1.5 * 6 / 3)
  CHECK(routed + r.overflow[0] <= 2.0 * double(G * S));
  CHECK(routed > 0);
}

namespace {

/// The training step with three experts per token, in this many groups and chunks. `Rows`: the rows of each group, as a capacity factor.
template <int Groups, int Rows, int Chunks>
inline constexpr auto grouped_step = [](auto& m, auto x, auto mask, auto rate) {
  const gs::nn::moe_options options{
      .routing = {.k = 3, .slots = {2.5}}, .experts = gs::experts::in_groups(Groups, {double(Rows)}), .chunks = Chunks};
  const gs::nn::moe_result r = gs::nn::moe<"node", "expert">(m, x, mask, options);
  auto error = r.y - 3.0 * x;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return std::tuple{loss, r.y, r.load, r.overflow};
};
using grid = gs::mesh<gs::axis<"node">, gs::axis<"expert">>;
template <int Groups, int Rows = 0, int Chunks = 1>
using on_grid = gs::program<grouped_step<Groups, Rows, Chunks>, grid, in<"GSM", P<gs::axes<"expert", "node">, none, none>, double>,
                            in<"GS", P<gs::axes<"expert", "node">, none>, double>, in<"", void, double>, gs::element<double>>;

template <class Program>
result train_on_grid(const std::vector<int>& devices, int steps = 6) {
  return train<Program>(gs::simulate<grid>(devices), {{'G', G}, {'S', S}, {'E', 6}, {'M', M}, {'F', F}}, steps);
}

}  // namespace

namespace {

/// The training step of experts that choose tokens, in this many groups, or with replicas.
template <int Groups, bool Replicas>
inline constexpr auto choosing_step = [](auto& m, auto x, auto mask, auto rate) {
  const gs::nn::moe_options options{.routing = {.slots = {2}, .choice = gs::choice::by_experts, .norm = gs::gate_norm::off},
                                    .experts = Replicas ? gs::experts::with_replicas() : gs::experts::in_groups(Groups)};
  const gs::nn::moe_result r = gs::nn::moe<"node", "expert">(m, x, mask, options);
  auto error = r.y - 3.0 * x;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return std::tuple{loss, r.y, r.load, r.overflow};
};
template <int Groups, bool Replicas = false>
using choosing = gs::program<choosing_step<Groups, Replicas>, grid, in<"GSM", P<gs::axes<"expert", "node">, none, none>, double>,
                             in<"GS", P<gs::axes<"expert", "node">, none>, double>, in<"", void, double>, gs::element<double>>;

}  // namespace

TEST_CASE("moe: experts that choose tokens may be in groups, or have replicas; results do not change") {
  const gs::dims sizes{{'G', G}, {'S', S}, {'E', 6}, {'M', M}, {'F', F}, {'R', 9}};
  const auto train_choosing = [&]<class Program>(std::type_identity<Program>, const std::vector<int>& devices) {
    return train<Program>(gs::simulate<grid>(devices), sizes, 6);
  };
  const result expected = train_choosing(std::type_identity<choosing<1>>{}, {1, 1});
  for (const std::vector<int>& devices : std::vector<std::vector<int>>{{1, 1}, {2, 1}, {2, 3}}) {
    check_same(train_choosing(std::type_identity<choosing<2>>{}, devices), expected);
    check_same(train_choosing(std::type_identity<choosing<1, true>>{}, devices), expected);
  }
}

TEST_CASE("moe: experts in groups are the layer of one group, with its gradient, on any number of nodes and devices") {
  const result expected = train_on_grid<on_grid<1>>({1, 1});
  CHECK(expected.losses.back() < 0.9 * expected.losses.front());
  for (const std::vector<int>& devices : std::vector<std::vector<int>>{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 1}, {2, 3}, {4, 2}}) {
    CAPTURE(devices[0]);
    CAPTURE(devices[1]);
    check_same(train_on_grid<on_grid<1>>(devices), expected);
    check_same(train_on_grid<on_grid<2>>(devices), expected);
    check_same(train_on_grid<on_grid<3>>(devices), expected);
  }
}

namespace {

/// The training step with two experts per token, without slots. `Rows`: the rows of each group, as a capacity factor in quarters.
template <int Groups, int Rows>
inline constexpr auto dropless_step = [](auto& m, auto x, auto mask, auto rate) {
  const gs::nn::moe_options options{.experts = gs::experts::dropless(Groups, {Rows / 4.0}), .swiglu = true, .biases = true};
  const gs::nn::moe_result r = gs::nn::moe<"expert">(m, x, mask, options);
  auto error = r.y - 3.0 * x;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return std::tuple{loss, r.y, r.load, r.overflow};
};
template <int Groups, int Rows = 0>
using without_slots = gs::program<dropless_step<Groups, Rows>, mesh, tokens, in<"GS", P<"expert", none>, double>, in<"", void, double>,
                                  gs::element<double>>;
/// The same with a slot for every token at every expert.
inline constexpr auto unlimited_step = [](auto& m, auto x, auto mask, auto rate) {
  const gs::nn::moe_options options{.routing = {.slots = gs::capacity::unlimited()}, .swiglu = true, .biases = true};
  const gs::nn::moe_result r = gs::nn::moe<"expert">(m, x, mask, options);
  auto error = r.y - 3.0 * x;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return std::tuple{loss, r.y, r.load, r.overflow};
};
using in_all_slots = gs::program<unlimited_step, mesh, tokens, in<"GS", P<"expert", none>, double>, in<"", void, double>,
                                 gs::element<double>>;

}  // namespace

TEST_CASE("moe: a dropless layer is that with slots for all tokens, with its gradient, on any number of devices") {
  const result expected = train<in_all_slots>(1, 8);
  CHECK(expected.losses.back() < expected.losses.front());
  CHECK(expected.overflow[0] == 0);
  for (const int devices : {1, 2, 3, 4}) {
    CAPTURE(devices);
    check_same(train<without_slots<1>>(devices, 8), expected);
    check_same(train<without_slots<2>>(devices, 8), expected);
    check_same(train<without_slots<3>>(devices, 8), expected);
  }
}

TEST_CASE("moe: choices for which a group of a dropless layer has no row are counted, on any number of devices") {
  const result expected = train<without_slots<3, 5>>(1, 3);
  CHECK(expected.overflow[0] > 0);
  for (const int devices : {2, 3, 4}) check_same(train<without_slots<3, 5>>(devices, 3), expected);
}

namespace {

/// The training step with two experts per token. The slots are exchanged in chunks.
template <int Chunks>
inline constexpr auto chunked_step = [](auto& m, auto x, auto mask, auto rate) {
  const gs::nn::moe_result r = gs::nn::moe<"expert">(m, x, mask, {.routing = {.slots = {2.5}}, .swiglu = true, .chunks = Chunks});
  auto error = r.y - 3.0 * x;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return std::tuple{loss, r.y, r.load, r.overflow};
};
template <int Chunks>
using in_chunks = gs::program<chunked_step<Chunks>, mesh, tokens, in<"GS", P<"expert", none>, double>, in<"", void, double>,
                              gs::element<double>>;

}  // namespace

TEST_CASE("moe: a layer in chunks of slots is the layer in one, with its gradient, on any number of devices") {
  CHECK(count<in_chunks<2>>(gs::op::all_to_all) == 2 * count<in_chunks<1>>(gs::op::all_to_all));
  const result expected = train<in_chunks<1>>(1, 6);
  CHECK(expected.losses.back() < expected.losses.front());
  for (const int devices : {1, 2, 3, 4}) {
    const result two = train<in_chunks<2>>(devices, 6), four = train<in_chunks<4>>(devices, 6);  // 5 slots: the last chunks have fewer
    for (const result* r : {&two, &four}) {
      check_same(*r, expected);
      if (devices == 1) CHECK(r->losses.front() == expected.losses.front());  // before the first update: the same sums of two
    }
  }
}

TEST_CASE("moe: groups in chunks of token groups have the bits of groups in one, and their gradient, on any number of devices") {
  const auto check = []<class One, class Two, class Four>(std::type_identity<One>, std::type_identity<Two>, std::type_identity<Four>) {
    CHECK(count<Two>(gs::op::all_to_all) == 2 * count<One>(gs::op::all_to_all));
    CHECK(count<Four>(gs::op::all_to_all) == 4 * count<One>(gs::op::all_to_all));
    const result first = train_on_grid<One>({1, 1}, 1), expected = train_on_grid<One>({1, 1});
    for (const std::vector<int>& devices : std::vector<std::vector<int>>{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 1}, {2, 3}, {4, 2}}) {
      CAPTURE(devices[0]);
      CAPTURE(devices[1]);
      CHECK(train_on_grid<Two>(devices, 1).y == first.y);  // before the first update
      CHECK(train_on_grid<Four>(devices, 1).y == first.y);
      check_same(train_on_grid<Two>(devices), expected);
      check_same(train_on_grid<Four>(devices), expected);
    }
    return expected;
  };
  using std::type_identity;
  check(type_identity<on_grid<3>>{}, type_identity<on_grid<3, 0, 2>>{}, type_identity<on_grid<3, 0, 4>>{});
  const result refused = check(type_identity<on_grid<3, 1>>{}, type_identity<on_grid<3, 1, 2>>{}, type_identity<on_grid<3, 1, 4>>{});
  CHECK(refused.overflow[0] > train_on_grid<on_grid<3>>({1, 1}).overflow[0]);
}

TEST_CASE("moe: a number of chunks that does not divide the token groups is refused when the program is bound") {
  CHECK_THROWS_WITH_AS((train_on_grid<on_grid<2, 0, 3>>({1, 1})),
                       doctest::Contains("chunks_of_token_groups: dim 'G' of extent 4 is not a multiple of 3"), gs::error);
}

namespace {

/// All kinds of experts: gated or not, with biases or not, and shared ones.
struct kind_of_experts {
  bool swiglu, biases;
  int shared = 0, groups = 1, chunks = 1;
};
template <kind_of_experts Kind>
inline constexpr auto step_of_kind = [](auto& m, auto x, auto mask, auto rate) {
  const gs::nn::moe_options options{.routing = {.slots = {1.5}}, .experts = gs::experts::in_groups(Kind.groups), .swiglu = Kind.swiglu,
                                    .biases = Kind.biases, .chunks = Kind.chunks, .shared_experts = Kind.shared};
  const gs::nn::moe_result r = gs::nn::moe<"node", "expert">(m, x, mask, options);
  auto error = r.y - 3.0 * x;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return std::tuple{loss, r.y, r.load, r.overflow};
};
/// The same by einsums over all experts and tokens, with the weights of the gating.
template <kind_of_experts Kind>
inline constexpr auto dense_step_of_kind = [](auto& m, auto x, auto mask, auto rate) {
  const auto product = [&](auto name, auto dims, auto fan_in) { return m.param(name, dims, gs::init::fan_in(fan_in)); };
  const auto bias = [&](auto y, auto name, auto dims) { return Kind.biases ? y + m.param(name, dims, gs::init::zeros()) : y; };
  const auto silu = [](auto v) { return gs::map<[](auto u) { return u / (1 + gs::exp(-u)); }>(v); };
  const auto gates = gs::softmax(gs::einsum<"GSM,ME->GSE">(x, product("wg", "ME", "M")));
  const auto route = gs::top2_gating(gates, mask, gs::capacity{1.5});
  m.loss(route.aux);
  const auto all = gs::einsum<"GSM,EMF->GSEF">(x, product("wi", "EMF", "M"));
  auto h = bias(all, "bi", "EF");
  if (Kind.swiglu) h = silu(bias(gs::einsum<"GSM,EMF->GSEF">(x, product("wi_gate", "EMF", "M")), "bi_gate", "EF")) * h;
  else h = gs::relu(h);
  const auto out = bias(gs::einsum<"GSEF,EFM->GSEM">(h, product("wo", "EFM", "F")), "bo", "EM");
  auto y = gs::einsum<"GSE,GSEM->GSM">(gs::sum<"GSEC->GSE">(route.combine), out);
  for (int i = 0; i < Kind.shared; ++i) {
    const auto one = m.scope("shared").scope(i);
    const auto weight = [&](auto name, auto dims, auto fan_in) { return one.param(name, dims, gs::init::fan_in(fan_in)); };
    const auto add = [&](auto v, auto name, auto dims) { return Kind.biases ? v + one.param(name, dims, gs::init::zeros()) : v; };
    auto of_one = add(gs::einsum<"GSM,MF->GSF">(x, weight("wi", "MF", "M")), "bi", "F");
    if (Kind.swiglu) of_one = silu(add(gs::einsum<"GSM,MF->GSF">(x, weight("wi_gate", "MF", "M")), "bi_gate", "F")) * of_one;
    else of_one = gs::relu(of_one);
    y = y + add(gs::einsum<"GSF,FM->GSM">(of_one, weight("wo", "FM", "F")), "bo", "M");
  }
  auto error = y - 3.0 * x;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, m.objective(loss, 0.1), rate);
  return std::tuple{loss, y, gs::sum<"GE->E">(route.load), gs::sum(route.overflow)};
};
template <auto Step>
using of_kind = gs::program<Step, grid, in<"GSM", P<gs::axes<"expert", "node">, none, none>, double>,
                            in<"GS", P<gs::axes<"expert", "node">, none>, double>, in<"", void, double>, gs::element<double>>;

template <kind_of_experts Kind>
void check_kind() {
  const result expected = train_on_grid<of_kind<dense_step_of_kind<Kind>>>({1, 1});
  for (const std::vector<int>& devices : std::vector<std::vector<int>>{{1, 1}, {2, 1}, {2, 2}, {1, 3}}) {
    CAPTURE(devices[0]);
    CAPTURE(devices[1]);
    check_same(train_on_grid<of_kind<step_of_kind<Kind>>>(devices), expected);
  }
}

}  // namespace

TEST_CASE("moe: gated experts, biases and shared experts equal their dense formulation in training, on any number of devices") {
  check_kind<kind_of_experts{.swiglu = true, .biases = false}>();
  check_kind<kind_of_experts{.swiglu = false, .biases = true, .shared = 1}>();
  check_kind<kind_of_experts{.swiglu = true, .biases = true, .shared = 2}>();
}

TEST_CASE("moe: gated experts with biases in groups are those of one group, in chunks, too") {
  constexpr kind_of_experts one{.swiglu = true, .biases = true}, grouped{.swiglu = true, .biases = true, .groups = 3};
  constexpr kind_of_experts chunked{.swiglu = true, .biases = true, .groups = 3, .chunks = 2};
  const result expected = train_on_grid<of_kind<step_of_kind<one>>>({1, 1});
  for (const std::vector<int>& devices : std::vector<std::vector<int>>{{1, 1}, {2, 1}, {3, 2}}) {
    check_same(train_on_grid<of_kind<step_of_kind<grouped>>>(devices), expected);
    check_same(train_on_grid<of_kind<step_of_kind<chunked>>>(devices), expected);
  }
}

TEST_CASE("moe: the gradients of feed-forward layers are central differences, with every sharding as on one device") {
  const auto model = [](auto&, auto x, auto wi, auto gate, auto wo, auto bi, auto bi_gate, auto bo) {
    const gs::nn::detail::feed_forward_weights w{wi, gate, wo, bi, bi_gate, bo};
    return gs::nn::detail::apply_feed_forward<"ESM,EMF->ESF", "ESF,EFM->ESM">(x, w);
  };
  CHECK(gs::check_shardings(model, {"ESM", "EMF", "EMF", "EFM", "EF", "EF", "EM"},
                            {.sizes = {{{'E', 3}, {'S', 4}, {'M', 2}, {'F', 5}}}}) == "");
}

TEST_CASE("moe: choices that a full group refuses are counted, on any number of nodes and devices") {
  const result all = train_on_grid<on_grid<3>>({1, 1}), expected = train_on_grid<on_grid<3, 1>>({1, 1});
  CHECK(expected.overflow[0] > all.overflow[0]);
  for (const std::vector<int>& devices : std::vector<std::vector<int>>{{2, 2}, {3, 1}, {1, 3}}) {
    CAPTURE(devices[0]);
    CAPTURE(devices[1]);
    check_same(train_on_grid<on_grid<3, 1>>(devices), expected);
  }
}
