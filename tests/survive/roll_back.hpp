// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/gshard.hpp>
#include <gshard/survive/checkpoint/checkpointer.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// A training whose batches may have non-finite numbers. In this case it rolls back.
namespace roll_back {

namespace gs = gshard;
using gs::P, gs::none;

inline constexpr auto regression = [](auto& m, auto x, auto y, auto rate) {
  auto h = gs::einsum<"BM,MH->BH">(x, m.param("w1", "MH", P<none, "model">{}, gs::init::fan_in("M")));
  h = gs::dropout(gs::relu(h), 0.3);
  auto error = gs::einsum<"BH,HO->BO">(h, m.param("w2", "HO", gs::init::fan_in("H"))) - y;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"model">>;
using training = gs::program<regression, mesh, gs::in<"BM", P<"data", none>>, gs::in<"BO", P<"data", none>>, gs::in<"">>;

struct options {
  std::uint32_t steps = 20;
  std::set<int> absent{};                                             // batches that are left out from the beginning
  std::function<bool(int)> is_bad = [](int) { return false; };        // true if a batch has a NaN now
  bool leaves_out = false;                                            // skips batches with which a step has failed
  bool waits = true;                                                  // waits for saves, so that all due saves are made
  gs::checkpointer_options saving{.every_steps = 3};
};
struct outcome {
  std::vector<std::string> tensors;  // by tensor: its bits
  std::vector<float> losses;         // by step
  std::vector<std::uint32_t> back;   // the steps to which it rolled back

  bool operator==(const outcome& o) const { return tensors == o.tensors && losses == o.losses; }
};

inline outcome train(const gs::any_cluster& on, const std::string& directory, options o = {}) {
  gs::parameter_store store(on, 42);
  gs::executable<training> step(on, {{'B', 12}, {'M', 5}, {'H', 9}, {'O', 1}}, store);
  int next = 0;
  o.saving.report = [](const std::string&) {};
  gs::checkpointer checkpoints(store, directory, o.saving);
  checkpoints.keep_state("next", [&] { return std::to_string(next); }, [&](std::string_view t) { next = std::stoi(std::string(t)); });
  checkpoints.resume();
  outcome result;
  const float rate = 0.05f;
  while (store.steps() < o.steps) {
    while (o.absent.contains(next)) ++next;
    const int batch = next++;
    std::mt19937_64 random{std::uint64_t(batch)};
    std::vector<float> x(12 * 5), y(12);
    for (float& v : x) v = float(random() % 1000) / 500 - 1;
    for (float& v : y) v = float(random() % 1000) / 500 - 1;
    if (o.is_bad(batch)) x[7] = std::numeric_limits<float>::quiet_NaN();
    result.losses.resize(store.steps());
    try {
      result.losses.push_back(step(x, y, std::span(&rate, 1)).item());
    } catch (const gs::not_finite_error& e) {
      if (o.leaves_out) o.absent.insert(batch);
      result.back.push_back(checkpoints.roll_back(e).step);
      continue;
    }
    checkpoints.after_step();
    while (o.waits && checkpoints.in_flight()) checkpoints.after_step();
  }
  checkpoints.finish();
  for (const auto& [name, entry] : store.entries())
    for (std::size_t i = 0; i < entry.value.data.size(); ++i)
      result.tensors.push_back(name +
                               std::string(reinterpret_cast<const char*>(entry.value.data[i]), std::size_t(entry.value.bytes(i))));
  return result;
}

/// A batch that is bad this many times.
inline auto bad(std::set<int> batches, int times) {
  return [batches = std::move(batches), times, seen = std::vector<int>(100)](int batch) mutable {
    return batches.contains(batch) && seen[std::size_t(batch)]++ < times;
  };
}

}  // namespace roll_back
