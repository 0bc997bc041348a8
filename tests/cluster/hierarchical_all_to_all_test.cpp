// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/hierarchical_all_to_all.hpp>

#include "../exec/backend/random_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::detail::node_routes, gs::detail::packet, gs::detail::hierarchical_all_to_all;

namespace {

/// Assignments of p members to nodes: full nodes in order, and random nodes.
std::vector<std::vector<int>> placements(std::size_t p, std::uint64_t seed) {
  std::vector<std::vector<int>> all;
  for (std::size_t size = 1; size <= p; ++size) {
    all.emplace_back();
    for (std::size_t m = 0; m < p; ++m) all.back().push_back(int(m / size));
  }
  cases::rng r(seed);
  for (int i = 0; i < 5; ++i) {
    all.emplace_back();
    const std::int64_t nodes = 1 + cases::below(r, std::int64_t(p));
    for (std::size_t m = 0; m < p; ++m) all.back().push_back(7 * int(cases::below(r, nodes)));
  }
  return all;
}

std::vector<node_routes> routes_of(const std::vector<int>& nodes) {
  std::vector<node_routes> all;
  for (std::size_t m = 0; m < nodes.size(); ++m) all.emplace_back(nodes, int(m));
  return all;
}

/// An exchange of p members in one process. `loses(step, from, to)`: true for a packet that does not arrive.
template <class Loses>
std::vector<std::string> exchange(const std::vector<node_routes>& routes, std::vector<hierarchical_all_to_all>& members,
                                  cases::exchange_case& x, std::int64_t block_bytes, Loses loses) {
  const std::size_t p = routes.size();
  const auto move = [&](int step, auto to, auto from) {
    for (std::size_t m = 0; m < p; ++m)
      for (const packet& sent : (members[m].*to)()) {
        int found = 0;
        for (packet& got : (members[std::size_t(sent.member())].*from)()) {
          if (got.member() != int(m)) continue;
          CHECK(got.room().size() == sent.room().size());
          ++found;
          REQUIRE(sent.bytes().size() <= got.room().size());
          std::ranges::copy(sent.bytes(), got.room().begin());
          got.arrived(loses(step, int(m), sent.member()) ? 0 : sent.bytes().size());
        }
        CHECK(found == 1);
      }
  };
  std::vector<gs::exchange_part> parts;
  for (std::size_t m = 0; m < p; ++m) parts.push_back(x.part(int(m)));
  for (std::size_t m = 0; m < p; ++m) members[m].begin(routes[m], parts[m], block_bytes);
  move(0, &hierarchical_all_to_all::to_mates, &hierarchical_all_to_all::from_mates);
  for (hierarchical_all_to_all& m : members) m.gather();
  move(1, &hierarchical_all_to_all::to_relays, &hierarchical_all_to_all::from_relays);
  for (hierarchical_all_to_all& m : members) m.scatter();
  move(2, &hierarchical_all_to_all::passed_on, &hierarchical_all_to_all::from_here);
  std::vector<std::string> said;
  for (hierarchical_all_to_all& m : members) said.push_back(m.deliver());
  return said;
}
constexpr auto nothing_is_lost = [](int, int, int) { return false; };

/// Puts each device's own block, which start() leaves alone.
void put_own(cases::exchange_case& x) {
  for (std::size_t m = 0; m < x.recv.size(); ++m)
    std::copy_n(x.expected[m].begin() + x.recv_offset[m][m], x.recv_bytes[m][m], x.recv[m].begin() + x.recv_offset[m][m]);
}

}  // namespace

TEST_CASE("two levels: one member of a node is the relay for each other node, and all are relays of as many") {
  for (std::size_t p = 1; p <= 12; ++p)
    for (const std::vector<int>& nodes : placements(p, p)) {
      CAPTURE(nodes);
      const std::vector<node_routes> routes = routes_of(nodes);
      int most = 0;
      for (std::size_t m = 0; m < p; ++m) {
        const node_routes& r = routes[m];
        REQUIRE(r.mates()[r.place()] == int(m));
        CHECK(std::ranges::all_of(r.mates(), [&](int mate) { return nodes[std::size_t(mate)] == nodes[m]; }));
        CHECK(r.nodes() == int(r.peers().size()) + 1);
        std::vector<int> members{r.mates()};
        std::vector<int> relays(r.peers().size(), -1);
        std::size_t least = r.peers().size(), largest = 0;
        for (std::size_t k = 0; k < r.mates().size(); ++k) {
          CHECK(r.relayed(k) == routes[std::size_t(r.mates()[k])].relayed(k));
          least = std::min(least, r.relayed(k).size());
          largest = std::max(largest, r.relayed(k).size());
          for (const std::size_t o : r.relayed(k)) {
            CHECK(relays[o] == -1);
            relays[o] = r.mates()[k];
          }
        }
        CHECK(largest - least <= 1);
        for (std::size_t o = 0; o < relays.size(); ++o) {
          const node_routes::peer& other = r.peers()[o];
          members.insert(members.end(), other.members.begin(), other.members.end());
          const node_routes& there = routes[std::size_t(other.relay)];
          CHECK(other.members == there.mates());
          const auto is_relayed_by_other = [&](std::size_t k) { return there.peers()[k].relay == relays[o]; };
          CHECK(std::ranges::count_if(there.relayed(there.place()), is_relayed_by_other) == 1);
        }
        std::ranges::sort(members);
        REQUIRE(members.size() == p);
        for (std::size_t k = 0; k < p; ++k) CHECK(members[k] == int(k));
        most = std::max(most, int(r.relayed(r.place()).size()));
      }
      for (const node_routes& r : routes) CHECK(r.messages() == most);
    }
  std::vector<int> sixteen;  // 4 nodes of 4
  for (int m = 0; m < 16; ++m) sixteen.push_back(m / 4);
  CHECK(node_routes(sixteen, 5).messages() == 1);
  CHECK(node_routes(sixteen, 5).most_mates() == 3);
  CHECK(node_routes(sixteen, 5).most_blocks() == 16);
}

TEST_CASE("two levels: every block arrives, whatever the sizes and the nodes") {
  for (std::size_t p = 1; p <= 9; ++p)
    for (const std::vector<int>& nodes : placements(p, p)) {
      const std::vector<node_routes> routes = routes_of(nodes);
      std::vector<hierarchical_all_to_all> members(p);
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        CAPTURE(nodes);
        CAPTURE(seed);
        cases::exchange_case x({int(p)}, 1, seed);
        put_own(x);
        for (const std::string& said : exchange(routes, members, x, 39 + std::int64_t(seed), nothing_is_lost)) CHECK(said == "");
        CHECK(x.recv == x.expected);
      }
    }
}

TEST_CASE("two levels: blocks of a packet that is lost are missed by those who expect them, and all others arrive") {
  const std::vector<int> nodes{0, 1, 0, 1, 2, 0};
  const std::vector<node_routes> routes = routes_of(nodes);
  const auto is_relay = [&](int which, int of) {  // relays of the node of member `of`
    const node_routes& r = routes[std::size_t(which)];
    return std::ranges::any_of(r.relayed(r.place()), [&](std::size_t o) { return std::ranges::count(r.peers()[o].members, of) == 1; });
  };
  for (const int step : {0, 1, 2})
    for (int from = 0; from < 6; ++from)
      for (int to = 0; to < 6; ++to) {
        std::vector<hierarchical_all_to_all> members(6);
        cases::exchange_case x({6}, 1, 1);
        put_own(x);
        const auto said = exchange(routes, members, x, 40, [&](int s, int f, int t) { return s == step && f == from && t == to; });
        for (int at = 0; at < 6; ++at) {
          const bool mates = nodes[std::size_t(from)] == nodes[std::size_t(to)] && from != to;
          bool missed = false;
          for (int m = 0; m < 6; ++m) {
            const auto same_node = [&](int one, int other) { return nodes[std::size_t(one)] == nodes[std::size_t(other)]; };
            const bool in_packet = step == 0   ? mates && m == from && (at == to || is_relay(to, at))
                                   : step == 1 ? is_relay(from, to) && is_relay(to, from) && same_node(m, from) && same_node(at, to)
                                               : mates && at == to && is_relay(from, m);
            missed = missed || in_packet;
            const auto i = std::size_t(at), j = std::size_t(m);
            const std::int64_t at_byte = x.recv_offset[i][j];
            const bool arrived =
                std::equal(x.recv[i].begin() + at_byte, x.recv[i].begin() + at_byte + x.recv_bytes[i][j], x.expected[i].begin() + at_byte);
            CHECK((arrived || in_packet));
          }
          CHECK(said[std::size_t(at)].empty() == !missed);
          if (missed) CHECK(said[std::size_t(at)].find("which cannot be heard") != std::string::npos);
        }
      }
}

TEST_CASE("two levels: a size that does not match is told by the one that expects another, with the sender's name") {
  for (const std::vector<int>& nodes : {std::vector{0, 0, 1, 1}, {0, 1, 2, 3}, {0, 0, 0, 0}}) {
    const std::vector<node_routes> routes = routes_of(nodes);
    std::vector<hierarchical_all_to_all> members(4);
    for (std::size_t from = 0; from < 4; ++from)
      for (std::size_t to = 0; to < 4; ++to)
        for (const int more : {1, -1}) {
          cases::exchange_case x({4}, 1, 2);
          if (from == to || x.recv_bytes[to][from] + more < 0) continue;
          put_own(x);
          x.recv_bytes[to][from] += more;
          x.recv[to].resize(x.recv[to].size() + 1);
          const auto said = exchange(routes, members, x, 40, nothing_is_lost);
          for (std::size_t m = 0; m < 4; ++m)
            CHECK(said[m] == (m == to ? gs::detail::unexpected(int(to), 4, std::size_t(x.recv_bytes[to][from]), int(from),
                                                               "sent " + std::to_string(x.send_bytes[from][to]))
                                      : ""));
        }
  }
}

TEST_CASE("two levels: a packet that was cut off gives its first blocks") {
  std::vector<std::byte> room(packet::most_bytes(3, 8)), block(8, std::byte{5});
  packet sent(0, room, 3), got(0, room, 3);
  for (int i = 0; i < 3; ++i) sent.put(block);
  got.arrived(sent.bytes().size() - 1);
  CHECK(got.take()->size() == 8);
  CHECK(got.take()->size() == 8);
  CHECK(!got.take());
  packet empty(0, room, 3);
  empty.arrived(0);
  CHECK(!empty.take());
}
