// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/memory/arena.hpp>

#include <gshard/core/plan/lifetime.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace gs = gshard;

TEST_CASE("blocks that are taken never overlap, and what is given back is used again") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    gs::detail::first_fit memory;
    std::map<std::int64_t, std::int64_t> held;  // offset -> bytes
    std::int64_t most = 0, now = 0;
    for (int n = 0; n < 300; ++n) {
      if (held.empty() || gen() % 2) {
        const std::int64_t bytes = std::int64_t(gen() % 8 ? gen() % 1000 : 0);
        const std::int64_t offset = memory.take(bytes);
        CHECK(offset % std::int64_t(gs::buffer::alignment) == 0);
        CHECK(offset + bytes <= memory.size());
        if (bytes == 0) {
          memory.give_back(offset, bytes);
          continue;
        }
        const auto next = held.lower_bound(offset);
        CHECK((next == held.end() || offset + bytes <= next->first));
        CHECK((next == held.begin() || std::prev(next)->first + std::prev(next)->second <= offset));
        held[offset] = bytes;
        now += (bytes + 63) / 64 * 64;
        most = std::max(most, now);
      } else {
        const auto block = std::next(held.begin(), std::ptrdiff_t(gen() % held.size()));
        memory.give_back(block->first, block->second);
        now -= (block->second + 63) / 64 * 64;
        held.erase(block);
      }
    }
    CHECK(memory.size() >= most);
    while (!held.empty()) {
      memory.give_back(held.begin()->first, held.begin()->second);
      held.erase(held.begin());
    }
    // All of it is one gap again.
    const std::int64_t size = memory.size();
    CHECK(memory.take(size) == 0);
    CHECK(memory.size() == size);
  }
}

namespace {

/// Random plans: steps read values and write new ones, with aliases, in-place updates, unused results and unused inputs.
struct random_plan {
  gs::list<gs::value> values;
  gs::list<gs::node> steps;
  gs::list<gs::parameter> parameters;
  gs::list<gs::port> inputs, outputs;
  gs::list<gs::lifetime> lifetimes;
  std::vector<std::int64_t> bytes;

  explicit random_plan(std::uint32_t seed) {
    std::mt19937 gen(seed);
    const auto below = [&](std::size_t n) { return std::size_t(gen() % n); };
    for (std::size_t i = below(4) + 1; i-- > 0;) inputs.push_back({{}, add()});
    for (std::size_t i = below(3); i-- > 0;) {
      gs::parameter p;
      p.value = add();
      parameters.push_back(p);
    }
    for (std::size_t i = below(40); i-- > 0;) {
      gs::node n;
      n.kind = below(5) == 0 ? gs::op::reshape : gs::op::map;
      n.inputs = std::uint8_t(n.kind == gs::op::reshape ? 1 : below(4));
      for (std::size_t k = 0; k < n.inputs; ++k) n.in[k] = std::int32_t(below(values.size()));
      n.outputs = std::uint8_t(n.kind == gs::op::reshape ? 1 : below(3) + 1);
      for (std::size_t o = 0; o < n.outputs; ++o) n.out[o] = add();
      steps.push_back(n);
    }
    for (std::size_t i = below(4); i-- > 0;) outputs.push_back({{}, std::int32_t(below(values.size()))});
    lifetimes = gs::detail::lifetimes(values, steps, parameters, inputs, outputs);
    for (std::size_t v = 0; v < values.size(); ++v) bytes.push_back(std::int64_t(below(300)));
    for (std::size_t v = 0; v < values.size(); ++v) bytes[v] = bytes[std::size_t(lifetimes[v].root)];
  }
  std::int32_t add() {
    values.push_back({});
    return std::int32_t(values.size()) - 1;
  }
  gs::detail::memory_map lay_out(const std::vector<std::int64_t>& bytes_of) const {
    return gs::detail::lay_out(std::span(lifetimes.data(), lifetimes.size()), steps.size(), bytes_of);
  }
  gs::detail::memory_map lay_out() const { return lay_out(bytes); }
};

}  // namespace

TEST_CASE("values that are needed at one time never share bytes") {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    const random_plan p(seed);
    const gs::detail::memory_map m = p.lay_out();

    // Runs the plan on the memory. A write leaves the number of its value, and a read must find it.
    std::vector<std::int32_t> memory(std::size_t(m.size), -1);
    const auto root = [&](std::int32_t v) { return p.lifetimes[std::size_t(v)].root; };
    const auto persistent = [&](std::int32_t v) { return p.lifetimes[std::size_t(root(v))].persistent; };
    const auto bytes_of = [&](std::int32_t v) {
      return std::span(memory).subspan(std::size_t(m.offset[std::size_t(root(v))]),
                                       std::size_t(p.bytes[std::size_t(root(v))]));
    };
    const auto write = [&](std::int32_t v) {
      if (!persistent(v) && root(v) == v) std::ranges::fill(bytes_of(v), v);
    };
    const auto intact = [&](std::int32_t v) {
      return persistent(v) ||
             std::ranges::all_of(bytes_of(v), [&](std::int32_t mark) { return mark == root(v); });
    };
    for (const gs::port& q : p.inputs) write(q.value);
    for (const gs::node& n : p.steps) {
      // Results are written while operands are read.
      for (int o = 0; o < n.outputs; ++o) write(n.output(o));
      for (int i = 0; i < n.inputs; ++i) CHECK(intact(n.input(i)));
    }
    for (const gs::port& q : p.outputs) CHECK(intact(q.value));
  }
}

TEST_CASE("a chain of steps needs two blocks, however long it is") {
  random_plan p(0);
  p.values = {}, p.steps = {}, p.parameters = {}, p.inputs = {}, p.outputs = {};
  p.inputs.push_back({{}, p.add()});
  for (int i = 0; i < 20; ++i) {
    gs::node n;
    n.kind = gs::op::map;
    n.inputs = n.outputs = 1;
    n.in[0] = std::int32_t(p.values.size()) - 1;
    n.out[0] = p.add();
    p.steps.push_back(n);
  }
  p.outputs.push_back({{}, std::int32_t(p.values.size()) - 1});
  p.lifetimes = gs::detail::lifetimes(p.values, p.steps, p.parameters, p.inputs, p.outputs);
  CHECK(p.lay_out(std::vector<std::int64_t>(21, 640)).size == 2 * 640);
}
