// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/collective/moves.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace gs = gshard;
using gs::kernel::placement;

namespace {

/// A random block of a tensor of up to four dims.
placement random_block(std::mt19937& gen, const placement& in) {
  placement p = in;
  p.global = in.global;
  for (std::size_t d = 0; d < std::size_t(in.rank); ++d) {
    const auto begin = std::int64_t(gen() % std::uint32_t(in.extent[d]));
    p.offset[d] = in.offset[d] + begin;
    p.extent[d] = 1 + std::int64_t(gen() % std::uint32_t(in.extent[d] - begin));
    if (gen() % 2) p.offset[d] = in.offset[d], p.extent[d] = in.extent[d];
  }
  return p;
}
placement random_tensor(std::mt19937& gen) {
  placement t;
  t.rank = 1 + int(gen() % 4);
  for (std::size_t d = 0; d < std::size_t(t.rank); ++d) t.extent[d] = t.global[d] = 1 + std::int64_t(gen() % 7);
  return t;
}
std::int64_t count(const placement& p) { return gs::kernel::element_count(p.rank, p.extent); }

/// The elements of a block, in order, as indices in the shard at `home`.
std::vector<std::int64_t> places(const placement& home, const placement& block) {
  std::vector<std::int64_t> numbers(std::size_t(count(home))), found(std::size_t(count(block)));
  std::iota(numbers.begin(), numbers.end(), 0);
  gs::detail::pack(reinterpret_cast<const std::byte*>(numbers.data()), home, reinterpret_cast<std::byte*>(found.data()), block, 8);
  return found;
}

}  // namespace

TEST_CASE("moves: a block is a run if its elements are contiguous") {
  std::mt19937 gen(1);
  int runs = 0;
  for (int turn = 0; turn < 4000; ++turn) {
    const placement tensor = random_tensor(gen), home = random_block(gen, tensor), block = random_block(gen, home);
    const std::vector<std::int64_t> at = places(home, block);
    CHECK(at[0] == gs::detail::inside(home, block));
    const bool in_a_row = at.back() - at.front() + 1 == std::int64_t(at.size());
    CHECK(gs::detail::is_run(home, block) == in_a_row);
    runs += in_a_row;
  }
  CHECK(runs > 1000);
  CHECK(runs < 3900);
}

TEST_CASE("moves: portions hold every element once, in the order of the pieces, and no more than they may") {
  std::mt19937 gen(2);
  for (int turn = 0; turn < 2000; ++turn) {
    const placement tensor = random_tensor(gen);
    std::vector<gs::detail::piece> pieces;
    std::vector<std::int64_t> expected;
    for (std::size_t k = 0; k < 3; ++k) {
      const placement block = random_block(gen, tensor);
      pieces.push_back({k, block, block, count(block)});
      const auto at = places(tensor, block);
      expected.insert(expected.end(), at.begin(), at.end());
    }
    const auto most = 1 + std::int64_t(gen() % 40);
    const std::size_t whole = gen() % 4;  // this tensor must not be split; 3: none
    std::vector<std::int64_t> got;
    for (const gs::detail::portion& p : gs::detail::portions_of(pieces, most, [&](const auto& b) { return b.tensor == whole; })) {
      std::int64_t elements = 0;
      bool uncut = false;
      for (const gs::detail::piece& b : p.pieces) {
        const auto at = places(tensor, b.from);
        got.insert(got.end(), at.begin(), at.end());
        elements += b.elements;
        uncut = uncut || b.tensor == whole;
        CHECK(b.elements == count(b.from));
        CHECK(gs::detail::is_run(pieces[b.tensor].from, b.from));
      }
      CHECK(p.elements == elements);
      CHECK((elements <= most || (uncut && p.pieces.size() == 1)));
    }
    CHECK(got == expected);
  }
}

TEST_CASE("moves: what is packed is unpacked to where it was") {
  std::mt19937 gen(3);
  for (int turn = 0; turn < 500; ++turn) {
    const placement home = random_block(gen, random_tensor(gen)), block = random_block(gen, home);
    std::vector<float> shard(std::size_t(count(home))), row(std::size_t(count(block))), back(shard.size(), -1.0f);
    std::iota(shard.begin(), shard.end(), 0.0f);
    gs::detail::pack(reinterpret_cast<const std::byte*>(shard.data()), home, reinterpret_cast<std::byte*>(row.data()), block, 4);
    gs::detail::unpack(reinterpret_cast<const std::byte*>(row.data()), block, reinterpret_cast<std::byte*>(back.data()), home, 4);
    std::int64_t moved = 0;
    for (std::size_t k = 0; k < shard.size(); ++k) moved += back[k] == shard[k];
    CHECK(moved == count(block));
  }
}

TEST_CASE("moves: every missing element comes from a device that has it; replicas share the sending") {
  // Three members with the whole tensor, and one with nothing. Two members need a half, the last one among them.
  placement all;
  all.rank = 1;
  all.extent[0] = all.global[0] = 10;
  placement none = all, half = all;
  none.extent[0] = 0;
  half.extent[0] = 5;
  half.offset[0] = 5;
  using pairs = std::vector<std::pair<std::size_t, std::size_t>>;
  const auto moves = [&](const std::vector<int>& node) {
    pairs found;
    gs::detail::for_each_origin(0, {all, all, all, none}, {half, none, all, half}, node, gs::detail::hop::only,
                                [&](std::size_t from, std::size_t to, const auto&) { found.emplace_back(from, to); });
    return found;
  };
  CHECK(moves({0, 0, 0, 0}) == pairs{{0, 0}, {2, 2}, {0, 3}});
  CHECK(moves({0, 1, 0, 1}) == pairs{{0, 0}, {2, 2}, {1, 3}});  // the member on its node sends
  CHECK(moves({0, 0, 0, 1}) == pairs{{0, 0}, {2, 2}, {0, 3}});
}

TEST_CASE("moves: members of a node with equal new shards get a share each in the first hop, and pass it on in the second") {
  std::mt19937 gen(4);
  for (int turn = 0; turn < 500; ++turn) {
    const placement tensor = random_tensor(gen);
    placement none = tensor;
    for (std::size_t d = 0; d < std::size_t(none.rank); ++d) none.extent[d] = 0;
    const placement shard = random_block(gen, tensor);
    // Member 0 has all. Members 1 to 3 are on one node and need the same block. Member 4 on another node and member 5 on the node of member
    // 0 need it as well.
    const std::vector<placement> before{tensor, none, none, none, none, none}, after{none, shard, shard, shard, shard, shard};
    const std::vector<int> node{0, 1, 1, 1, 2, 0};
    std::vector<std::int64_t> first(6), second(6);
    std::vector<std::vector<int>> seen(6, std::vector<int>(std::size_t(count(shard))));
    const auto take = [&](std::vector<std::int64_t>& bytes, std::size_t to, const std::vector<gs::detail::piece>& pieces) {
      for (const gs::detail::piece& p : pieces) {
        bytes[to] += p.elements;
        for (const std::int64_t at : places(shard, p.to)) ++seen[to][std::size_t(at)];
      }
    };
    gs::detail::for_each_origin(0, before, after, node, gs::detail::hop::first, [&](std::size_t from, std::size_t to, const auto& pieces) {
      CHECK(from == 0);
      take(first, to, pieces);
    });
    gs::detail::for_each_origin(0, before, after, node, gs::detail::hop::second, [&](std::size_t from, std::size_t to, const auto& pieces) {
      CHECK(node[from] == node[to]);
      CHECK(from != to);
      take(second, to, pieces);
    });
    CHECK(first[1] + first[2] + first[3] == count(shard));  // once to the node
    for (const std::size_t whole : {4u, 5u}) {
      CHECK(first[whole] == count(shard));
      CHECK(second[whole] == 0);
    }
    for (std::size_t m = 1; m < 6; ++m) CHECK(std::ranges::all_of(seen[m], [](int times) { return times == 1; }));
  }
}

TEST_CASE("moves: unequal, overlapping blocks for the members of a node travel once to the node, also around the end of a dim") {
  std::mt19937 gen(9);
  int twice = 0;
  for (int turn = 0; turn < 500; ++turn) {
    const placement tensor = random_tensor(gen);
    placement none = tensor;
    for (std::size_t d = 0; d < std::size_t(none.rank); ++d) none.extent[d] = 0;
    // Members 0 and 1 have all, each on its own node. Members 2 to 4 share a node.
    const std::vector<placement> before{tensor, tensor, none, none, none};
    std::vector<placement> after{none, none};
    for (int m = 2; m < 5; ++m) {
      placement& p = after.emplace_back(random_block(gen, tensor));
      if (const std::size_t last = std::size_t(p.rank) - 1; p.rank > 0 && gen() % 2 == 0) {
        p.offset[last] = std::min(p.offset[last] + std::int64_t(gen() % 3), tensor.extent[last] - 1);
        p.extent[last] = std::min(p.extent[last] + std::int64_t(gen() % 4), 2 * tensor.extent[last] - p.offset[last]);
        twice += p.extent[last] > tensor.extent[last];
      }
    }
    const std::vector<int> node{0, 1, 2, 2, 2};
    std::vector<std::vector<int>> seen;
    for (const placement& p : after) seen.emplace_back(std::size_t(count(p)), 0);
    std::set<std::int64_t> lacked, sent;
    std::int64_t elements = 0;
    for (std::size_t to = 2; to < 5; ++to)
      for (const gs::detail::piece& p : gs::detail::common(0, tensor, after[to]))
        for (const std::int64_t at : places(tensor, p.from)) lacked.insert(at);
    for (const auto hop : {gs::detail::hop::first, gs::detail::hop::second})
      gs::detail::for_each_origin(0, before, after, node, hop, [&](std::size_t from, std::size_t to, const auto& pieces) {
        CHECK((hop == gs::detail::hop::first) == (from < 2));
        for (const gs::detail::piece& p : pieces) {
          if (from < 2) {
            elements += p.elements;
            for (const std::int64_t at : places(tensor, p.from)) sent.insert(at);
          } else {
            for (const std::int64_t at : places(after[from], p.from)) CHECK(seen[from][std::size_t(at)] > 0);  // it arrived before
          }
          for (const std::int64_t at : places(after[to], p.to)) ++seen[to][std::size_t(at)];
        }
      });
    CHECK(sent == lacked);
    CHECK(elements == std::int64_t(lacked.size()));
    for (const std::vector<int>& times : seen) CHECK(std::ranges::all_of(times, [](int n) { return n == 1; }));
  }
  CHECK(twice > 5);
}
