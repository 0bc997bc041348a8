// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/exec/bind/finite_checks.hpp>
#include <gshard/exec/program/check_replicas.hpp>
#include <gshard/exec/program/executable.hpp>
#include <gshard/exec/program/parameter_access.hpp>
#include <gshard/exec/tensor/tensor.hpp>
#include <gshard/train/adam.hpp>

#include "../complaint.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Copies of shards that differ, on simulated devices and on MPI ranks.
namespace replica_cases {

namespace gs = gshard;
using gs::none, gs::P;
using mesh = gs::mesh<gs::axis<"data">, gs::axis<"model">>;

inline constexpr auto model = [](auto& m, auto x, auto rate) {
  const auto w = m.param("whole", "MH", gs::init::fan_in("M"));
  const auto c = m.param("columns", "HO", P<none, "model">{}, gs::init::fan_in("H"));
  const auto r = m.param("rows", "OM", P<"data", none>{}, gs::init::fan_in("O"));
  const auto b = m.param("bias", "", gs::init::constant(1));
  const auto y = gs::einsum<"BH,HO->BO">(gs::einsum<"BM,MH->BH">(x, w), c);
  const auto z = gs::einsum<"BO,OM->BM">(gs::map<[](auto v) { return gs::tanh(v); }>(y + b), r) - x;
  const auto loss = gs::mean(z * z);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using training = gs::program<model, mesh, gs::in<"BM", P<"data", none>>, gs::in<"">>;
inline const gs::dims sizes{{'B', 4}, {'M', 9}, {'H', 17}, {'O', 11}};
inline const std::vector<float> rate{0.05f};
inline std::vector<float> batch(int n) {
  std::vector<float> x(4 * 9);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(float(i) + float(n));
  return x;
}

/// Flips a bit of element i of the copy on a device, if this process holds it. Returns the global index of the element as text.
inline std::string flip(const gs::any_cluster& on, const gs::detail::bound_value& v, int device, std::int64_t i, int bit) {
  for (std::size_t d = 0; d < on.devices().size(); ++d)
    if (on.devices()[d] == device) v.as<std::uint32_t>(d)[i] ^= 1u << bit;
  return gs::detail::global_index_text(gs::detail::place(v, on.backend().extents(), device), i);
}

/// A flipped bit in one copy of each tensor, on each device in turn, is found and reported on every process.
inline void check_flipped_bits(const gs::any_cluster& on) {
  gs::executable<training> run(on, sizes, gs::parameter_store(on, 3));
  const gs::parameter_store& store = run.executor().store();
  run(batch(0), rate);
  CHECK(complaint([&] { gs::check_replicas(store); }) == "");
  std::uint32_t random = 1;
  for (const auto& [name, entry] : store.entries()) {
    const gs::detail::bound_value& v = entry.value;
    CAPTURE(name);
    for (int device = 0; device < on.size(); ++device) {
      const gs::kernel::placement at = gs::detail::place(v, on.backend().extents(), device);
      const std::int64_t n = gs::kernel::element_count(at.rank, at.extent);
      if (n == 0) continue;
      for (int turn = 0; turn < 3; ++turn) {
        random = random * 1664525u + 1013904223u;
        const std::int64_t i = turn == 0 ? 0 : turn == 1 ? n - 1 : std::int64_t(random >> 8) % n;
        const int bit = int(random >> 5) % 32;
        const std::string index = flip(on, v, device, i, bit);
        const std::string said = complaint([&] { gs::check_replicas(store); });
        flip(on, v, device, i, bit);
        if (!gs::detail::has_copies(v, on.backend().extents())) {
          CHECK(said == "");
          continue;
        }
        const std::string tensor = "the copies of \"" + name + "\" ";
        CHECK_MESSAGE(said.starts_with(tensor), said);
        CHECK_MESSAGE(contains(said, " differ: element " + index + " is "), said);
        CHECK_MESSAGE(contains(said, " on device " + std::to_string(device)), said);
        CHECK(contains(said, " and "));
      }
    }
  }
  CHECK(complaint([&] { gs::check_replicas(store); }) == "");
}

/// The first of several differences is reported, in any element and on any number of devices. The majority is right.
inline void check_first_difference(const gs::any_cluster& on) {
  gs::executable<training> run(on, sizes, gs::parameter_store(on, 3));
  const gs::parameter_store& store = run.executor().store();
  if (on.size() < 3) return;
  const gs::detail::bound_value& v = store.find("whole")->value;  // on all devices
  const int bad = on.size() - 1;
  const auto both = [&] {
    flip(on, v, bad, 150, 3);
    flip(on, v, bad, 77, 30);
  };
  both();
  const std::string said = complaint([&] { gs::check_replicas(store); });
  CHECK_MESSAGE(contains(said, "differ: element [4,9] is "), said);  // 77 = 4 * 17 + 9
  const std::string last = std::to_string(bad), of = " of " + std::to_string(on.size()) + " copies differ from the others: device ";
  CHECK_MESSAGE(contains(said, " on device 0 and "), said);
  CHECK_MESSAGE(said.ends_with("1" + of + last), said);
  both();
  if (on.size() == 3) return;
  for (const int device : {0, 2}) flip(on, v, device, 0, 22);
  const std::string two = complaint([&] { gs::check_replicas(store); });
  CHECK_MESSAGE(two.ends_with("2 of " + std::to_string(on.size()) + (on.size() > 4 ? " copies differ from the others: devices 0 and 2"
                                                                            : " copies differ from that of device 0: devices 1 and 3")),
                two);
}

/// No false alarm: in training, and for NaN with equal bits. NaN with different bits is reported.
inline void check_no_false_alarm(const gs::any_cluster& on) {
  gs::executable<training> run(on, sizes, gs::parameter_store(on, 3));
  gs::parameter_store& store = run.executor().store();
  run.check_replicas_every = 1;
  for (int n = 0; n < 5; ++n) CHECK(complaint([&] { run(batch(n), rate); }) == "");
  gs::set_global<float>(store, "whole", std::vector<float>(9 * 17, std::bit_cast<float>(0x7fc00000u)));
  CHECK(complaint([&] { gs::check_replicas(store); }) == "");
  if (on.size() == 1) return;
  flip(on, store.find("whole")->value, on.size() - 1, 20, 0);
  const std::string said = complaint([&] { gs::check_replicas(store); });
  CHECK_MESSAGE(contains(said, "element [1,3] is nan (bits 0x7fc0000"), said);
  CHECK_MESSAGE(contains(said, "nan (bits 0x7fc00001)"), said);
}

/// A training program compares copies by itself.
inline void check_every_n_steps(const gs::any_cluster& on) {
  gs::executable<training> run(on, sizes, gs::parameter_store(on, 3));
  CHECK(run.check_replicas_every == gs::detail::steps_between_replica_checks);
  run.check_replicas_every = 3;
  const gs::parameter_store& store = run.executor().store();
  run(batch(0), rate);
  flip(on, store.find("adam.v.whole")->value, on.size() - 1, 5, 20);
  CHECK(complaint([&] { run(batch(1), rate); }) == "");
  const std::string said = complaint([&] { run(batch(2), rate); });
  CHECK(contains(said, "the copies of \"adam.v.whole\"") == (on.size() > 1));
  CHECK(store.steps() == 3);
  CHECK(complaint([&] { run(batch(3), rate); }) == "");  // not a multiple of 3
}

/// Copies of input tensors are compared in the first call.
inline constexpr auto sum_of_inputs = [](auto&, auto x, auto y) { return gs::sum(x * y); };
inline void check_inputs(const gs::any_cluster& on) {
  using both = gs::program<sum_of_inputs, mesh, gs::in<"AB", P<none, "model">>, gs::in<"AB", P<"data", "model">>>;
  gs::executable<both> run(on, {{'A', 4}, {'B', 7}});
  gs::tensor<float, P<none, "model">> x(on, {4, 7});
  gs::tensor<float, P<"data", "model">> y(on, {4, 7});
  for (std::size_t d = 0; d < on.devices().size(); ++d) {
    std::fill_n(x.local_shard(d).data, x.local_shard(d).size(), 1.0f);
    std::fill_n(y.local_shard(d).data, y.local_shard(d).size(), float(on.devices()[d]));
  }
  const bool has_copies = on.extent(0) > 1;
  const int last = on.size() - 1;
  const auto spoil = [&](float number) {
    for (std::size_t d = 0; d < on.devices().size(); ++d)
      if (on.devices()[d] == last) x.local_shard(d).data[0] = number;
  };
  spoil(1.5f);
  const std::string said = complaint([&] { run(x, y); });
  CHECK_MESSAGE(contains(said, "the copies of input 0 ") == has_copies, said);
  if (has_copies) CHECK_MESSAGE(contains(said, " 1.5 on device " + std::to_string(last)), said);
  spoil(1.0f);
  CHECK(complaint([&] { run(x, y); }) == "");
  spoil(1.5f);  // later calls are not compared
  CHECK(complaint([&] { run(x, y); }) == "");
}

}  // namespace replica_cases
