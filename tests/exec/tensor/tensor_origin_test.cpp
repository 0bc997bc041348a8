// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/tensor/tensor_origin.hpp>

#include <gshard/exec/tensor/tensor.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::detail::tensor_origin;

TEST_CASE("tensor_origin: origins that differ have different hashes and facts") {
  std::vector<tensor_origin> all(6);
  for (auto& o : all) o.number = 1;
  all[1].call = 1;
  all[2].number = 2;
  all[3].array = 1;
  all[4].constant = "3";
  all[5].constant = "4";
  std::set<std::uint64_t> hashes, of_facts;
  for (const auto& o : all) {
    std::vector<gs::fact> facts;
    o.add_to(facts, "input 0");
    CHECK(hashes.insert(o.hash()).second);
    CHECK(of_facts.insert(gs::hash_of(facts)).second);
  }
  std::vector<gs::fact> facts;
  all[1].add_to(facts, "input 0");
  CHECK(facts.at(0).what == "the tensor of input 0");
  CHECK(facts.at(0).value == "tensor 1 made after call 1");
}

TEST_CASE("tensor_origin: on one process nothing is compared") {
  const auto on = gs::simulate<gs::mesh<gs::axis<"x">>>(2);
  const auto t = gs::from_global<float, gs::P<"x">>(on, {4}, std::vector<float>(4));
  CHECK(gs::detail::tensor_access::origin(t).number == 0);
  CHECK(gs::detail::tensor_access::origin(t).hash() == 0);
  std::vector<gs::fact> facts;
  gs::detail::tensor_access::origin(t).add_to(facts, "input 0");
  CHECK(facts.empty());
}

TEST_CASE("tensor_origin: samples are in ascending order, with the first and the last elements, and all of small arrays") {
  for (const std::int64_t n : {0, 1, 17, 2048, 2049, 5000, 1 << 20}) {
    std::vector<std::int64_t> samples;
    gs::detail::for_each_sample(n, [&](std::int64_t i) { samples.push_back(i); });
    CAPTURE(n);
    REQUIRE(samples.size() == std::size_t(n <= 2048 ? n : 1024));
    if (n == 0) continue;
    CHECK(samples.front() == 0);
    for (std::size_t i = 1; i < samples.size(); ++i) CHECK(samples[i] > samples[i - 1]);
    CHECK(samples.back() < n);
    CHECK(n - samples.back() <= 64);
  }
}

TEST_CASE("tensor_origin: arrays of any memory order have the hash of the same elements in row-major order") {
  const std::vector<std::int64_t> extents{60, 70};
  const std::vector<float> rows = [] {
    std::vector<float> v(60 * 70);
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = float(i);
    return v;
  }();
  std::vector<float> columns(rows.size());
  for (std::size_t i = 0; i < 60; ++i)
    for (std::size_t j = 0; j < 70; ++j) columns[j * 60 + i] = rows[i * 70 + j];
  const gs::detail::whole_array<float> a{rows.data(), {4200}};
  gs::detail::whole_array<float> b{columns.data(), {4200, 2}};
  b.layout.extent = {60, 70};
  b.layout.stride = {1, 60};
  const auto hash = [&](const auto& of) { return gs::detail::hash_of_samples(of, of.layout.strides_in(extents).value(), extents); };
  CHECK(hash(a) == hash(b));
  std::vector<gs::fact> facts;
  gs::detail::add_samples(facts, "x", b, b.layout.stride, extents);
  REQUIRE(facts.size() == 1024);
  CHECK(facts[16].what == "element " + std::to_string((4200 - 16) / 63) + " of x");
  CHECK(facts[16].value == std::to_string((4200 - 16) / 63));
  columns[60 * 35 + 30] += 1;
  columns[0] += 1;
  CHECK(hash(a) != hash(b));
}
