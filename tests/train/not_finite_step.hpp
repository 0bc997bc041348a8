// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../exec/planned_program.hpp"

#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/random/random.hpp>
#include <gshard/train/adafactor.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Training steps with non-finite numbers, on simulated devices and on MPI ranks.
namespace not_finite_step {

namespace gs = gshard;
using gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"model">>;

inline constexpr auto loss_of = [](auto& m, auto x, auto y, auto n1, auto n2, auto extra) {
  const auto w1 = m.param("w1", "MH", P<none, "model">{}, gs::init::fan_in("M"));
  const auto w2 = m.scope("deep").param("w2", "H", gs::init::normal(0.5));
  const auto h = gs::dropout(gs::map<[](auto v) { return gs::tanh(v); }>(gs::einsum<"BM,MH->BH">(x, w1)), 0.25);
  const auto error = gs::einsum<"BH,H->B">(h, w2) - y;
  // The gradients with respect to w1 and w2 have n1 and n2 as terms. `extra` is a term of only the loss.
  const auto square = gs::mean(error * error), first = gs::sum(w1 * n1), second = gs::sum(w2 * n2);  // in one order
  return square + first + second + extra;
};
template <gs::not_finite Policy, bool Factored>
inline constexpr auto model = [](auto& m, auto x, auto y, auto n1, auto n2, auto extra, auto rate) {
  const auto loss = loss_of(m, x, y, n1, n2, extra);
  if constexpr (Factored) gs::adafactor{.beta1 = 0.5, .weight_decay = 0.1, .if_not_finite = Policy}.minimize(m, loss, rate);
  else gs::adam{.if_not_finite = Policy}.minimize(m, loss, rate);
  return loss;
};
template <gs::not_finite Policy, bool Factored = false>
using program = gs::program<model<Policy, Factored>, mesh, gs::in<"BM", P<"data", none>>, gs::in<"B", P<"data">>, gs::in<"MH">, gs::in<"H">,
                            gs::in<"">, gs::in<"">>;

inline constexpr std::int64_t B = 12, M = 5, H = 12;
inline const gs::dims sizes{{'B', B}, {'M', M}, {'H', H}};

struct batch {
  std::vector<float> x, y, n1 = std::vector<float>(M * H), n2 = std::vector<float>(H), extra{0}, rate{0.05f};

  explicit batch(int number) {
    for (std::int64_t i = 0; i < B * M; ++i) x.push_back(float(std::sin(double(i + 100 * number))));
    for (std::int64_t i = 0; i < B; ++i) y.push_back(float(std::cos(double(3 * i + number))));
  }
};

template <class Program>
class trainer {
 public:
  explicit trainer(const gs::any_cluster& on) : store(on, 7), run(on, sizes, store) {}

  float step(const batch& b) { return float(run(b.x, b.y, b.n1, b.n2, b.extra, b.rate).item()); }
  /// The step and text of a step's not_finite_error, if it throws one.
  std::optional<std::pair<std::uint32_t, std::string>> refusal(const batch& b) {
    try {
      step(b);
    } catch (const gs::not_finite_error& e) {
      return std::pair(e.step, std::string(e.what()));
    }
    return std::nullopt;
  }
  /// All tensors of the store.
  std::map<std::string, std::vector<float>> state() const {
    std::map<std::string, std::vector<float>> all;
    for (const auto& [name, entry] : store.entries()) all[name] = gs::to_global<float>(store, name);
    return all;
  }

  gs::parameter_store store;
  planned::executable<Program> run;
};

inline constexpr float infinity = std::numeric_limits<float>::infinity();
inline constexpr std::int64_t row = 3;

/// A batch with a non-finite number, and its name in the error.
struct injection {
  batch bad;
  std::string named;
};
/// `model_devices`: the extent of the axis over which H is sharded. The first devices of the mesh have all of it.
inline std::vector<injection> injections(int model_devices, bool factored) {
  std::vector<injection> all;
  for (const float number : {std::nanf(""), infinity, -infinity})
    for (const std::int64_t h : {std::int64_t(0), H / 2, H - 1}) {
      const std::string text = number != number ? "nan" : number > 0 ? "inf" : "-inf";
      const std::string device = " on device " + std::to_string(model_devices * h / H), column = std::to_string(h);
      const std::string from = factored ? "adafactor: the gradient of parameter " : "adam: the gradient of parameter ";
      injection in_w1{batch(2), {}}, in_w2 = in_w1, in_loss = in_w1, in_rate = in_w1;
      in_w1.bad.n1[std::size_t(row * H + h)] = number;
      in_w1.named = from + "\"w1\"" + (factored ? "" : ": element [3," + column + "] is " + text + ", in step 2" + device);
      in_w2.bad.n2[std::size_t(h)] = number;
      in_w2.named = from + "\"deep.w2\"" + (factored ? "" : ": element [" + column + "] is " + text + ", in step 2" + device);
      in_loss.bad.extra = {number};
      in_loss.named = "the loss is " + text + ", in step 2 on device 0";
      in_rate.bad.rate = {number};
      in_rate.named = "after its update: element [0";
      all.insert(all.end(), {in_w1, in_w2, in_loss, in_rate});
    }
  return all;
}

/// The run of a bad batch throws the same error everywhere. After the earlier state is restored, the losses continue as without the bad
/// batch.
template <bool Factored>
void check_stop(const gs::any_cluster& on) {
  const int model_devices = on.extent(1);
  for (const injection& i : injections(model_devices, Factored)) {
    trainer<program<gs::not_finite::stop, Factored>> t(on);
    for (int n = 0; n < 2; ++n) CHECK(std::isfinite(t.step(batch(n))));
    const auto before = t.state();
    const auto refused = t.refusal(i.bad);
    REQUIRE(refused);
    CHECK(refused->first == 2);
    CHECK_MESSAGE(refused->second.find(i.named) != std::string::npos, refused->second, " / ", i.named);
    CHECK(t.store.steps() == 2);
    CHECK(t.run.skipped_steps() == 0);
    for (const auto& [name, whole] : before) gs::set_global<float>(t.store, name, whole);
    const float loss = t.step(batch(3));
    trainer<program<gs::not_finite::ignore, Factored>> other(on);
    for (int n = 0; n < 2; ++n) other.step(batch(n));
    CHECK(loss == other.step(batch(3)));
    CHECK(t.state() == other.state());
  }
}

/// With bad batches in between, the state and all losses equal those of a run without them, to the bit.
template <bool Factored>
void check_skip(const gs::any_cluster& on) {
  trainer<program<gs::not_finite::skip, Factored>> t(on), other(on);
  std::int64_t skipped = 0;
  int n = 0;
  for (const injection& i : injections(on.extent(1), Factored)) {
    if (i.named.starts_with("after")) continue;  // neither loss nor gradients are bad
    if (n % 3 != 2) {
      CHECK(t.step(batch(n)) == other.step(batch(n)));
      CHECK(!t.run.executor().skipped());
    }
    ++n;
    CHECK(!std::isfinite(t.step(i.bad)));
    CHECK(t.run.executor().skipped());
    CHECK(t.run.skipped_steps() == ++skipped);
    CHECK(t.store.steps() == other.store.steps());
    CHECK(t.state() == other.state());
  }
  CHECK(skipped == 27);
  CHECK(t.store.steps() > 10);
  // An update that made a parameter non-finite cannot be undone.
  batch spoils(0);
  spoils.rate = {infinity};
  const auto refused = t.refusal(spoils);
  REQUIRE(refused);
  CHECK(refused->second.find("after its update") != std::string::npos);
}

/// Every policy gives the same numbers if all are finite.
template <bool Factored>
void check_equal_policies(const gs::any_cluster& on) {
  trainer<program<gs::not_finite::stop, Factored>> stop(on);
  trainer<program<gs::not_finite::skip, Factored>> skip(on);
  trainer<program<gs::not_finite::ignore, Factored>> ignore(on);
  for (int n = 0; n < 5; ++n) {
    const float loss = stop.step(batch(n));
    CHECK(loss == skip.step(batch(n)));
    CHECK(loss == ignore.step(batch(n)));
  }
  CHECK(stop.state() == skip.state());
  CHECK(stop.state() == ignore.state());
  batch bad(5);
  bad.n1[0] = infinity;
  CHECK(!std::isfinite(ignore.step(bad)));
  CHECK(ignore.store.steps() == 6);
}

/// A non-finite parameter is reported, whatever its cause.
inline void check_spoilt_parameter(const gs::any_cluster& on) {
  for (const char* const name : {"w1", "deep.w2"}) {
    trainer<program<gs::not_finite::stop>> t(on);
    t.step(batch(0));
    std::vector<float> w = gs::to_global<float>(t.store, name);
    w.back() = std::nanf("");
    gs::set_global<float>(t.store, name, w);
    const auto refused = t.refusal(batch(1));
    REQUIRE(refused);
    CHECK(refused->second.find(", in step 1 on device ") != std::string::npos);
  }
}

}  // namespace not_finite_step
