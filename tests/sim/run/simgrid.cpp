// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compares the event simulation with SimGrid's, if that is installed: flows share links by max-min fairness. SimGrid would weight them by
// latency, so its links have none. Senders wait for the hops instead.
#include <gshard/sim/network/collective_messages.hpp>
#include <gshard/sim/network/events.hpp>

#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace gs = gshard;
namespace sg = simgrid::s4u;
using gs::all_to_all_scheme, gs::gather_scheme, gs::tie_policy;

namespace {

/// A torus of d times d chips in both simulators. SimGrid numbers its hosts differently: its x is dimension 1.
struct torus_pair {
  int d;
  gs::torus topology;
  std::vector<sg::Host*> hosts;

  explicit torus_pair(int extent) : d(extent) {
    topology.dims = 2;
    topology.extents = {d, d, 1};
    topology.ties = tie_policy::one_way;
    const auto host = [this](sg::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
      hosts.push_back(zone->create_host(name() + "_" + std::to_string(id), "1Gf")->seal());
      return std::pair<simgrid::kernel::routing::NetPoint*, simgrid::kernel::routing::NetPoint*>(hosts.back()->get_netpoint(), nullptr);
    };
    const auto n = static_cast<unsigned long>(d);
    sg::create_torus_zone(name(), sg::Engine::get_instance()->get_netzone_root(), {n, n}, sg::ClusterCallbacks(host),
                          topology.link_bytes, 0, sg::Link::SharingPolicy::SPLITDUPLEX)
        ->seal();
  }
  std::string name() const { return std::to_string(d) + "x" + std::to_string(d); }
  sg::Host* host(int chip) const { return hosts[std::size_t(chip % d * d + chip / d)]; }
};

/// The seconds in SimGrid if all pairs send bytes(from, to) at once.
template <class Bytes>
double send_all(const torus_pair& torus, Bytes bytes) {
  const gs::torus_links links(torus.topology);
  std::vector<sg::CommPtr> under_way;
  const double begin = sg::Engine::get_clock();
  for (int h = 1; h <= torus.d; ++h) {
    sg::this_actor::sleep_until(begin + h * torus.topology.hop);
    for (int from = 0; from < torus.topology.chips(); ++from)
      for (int to = 0; to < torus.topology.chips(); ++to)
        if (links.hops(from, to) == h && bytes(from, to) > 0)
          under_way.push_back(sg::Comm::sendto_async(torus.host(from), torus.host(to), std::uint64_t(bytes(from, to))));
  }
  sg::Comm::wait_all(under_way);
  return sg::Engine::get_clock() - begin;
}

/// The seconds in SimGrid if rings along dimension 1 pass pieces on.
double gather_rows(const torus_pair& torus, double piece) {
  const double begin = sg::Engine::get_clock();
  std::vector<sg::ActorPtr> members;
  for (int chip = 0; chip < torus.topology.chips(); ++chip)
    members.push_back(sg::Actor::create("member", torus.host(chip), [&torus, chip, piece] {
      const auto box = [&](int row, int place, int step) {
        return sg::Mailbox::by_name(torus.name() + " " + std::to_string(row) + " " + std::to_string(place % torus.d) + " " +
                                    std::to_string(step));
      };
      static int payload = 0;
      for (int step = 1; step < torus.d; ++step) {
        sg::this_actor::sleep_for(torus.topology.hop);
        const sg::CommPtr sent = box(chip / torus.d, chip % torus.d + 1, step)->put_async(&payload, std::uint64_t(piece));
        box(chip / torus.d, chip % torus.d, step)->get<int>();
        sent->wait();
      }
    }));
  for (const sg::ActorPtr& m : members) m->join();
  return sg::Engine::get_clock() - begin;
}

bool all_good = true;

void compare(const char* what, const torus_pair& torus, double ours, double theirs) {
  const bool good = std::abs(ours - theirs) <= std::max(0.02 * theirs, 2e-6);
  std::printf("%s, %s: %.2f us, SimGrid %.2f us%s\n", what, torus.name().c_str(), 1e6 * ours, 1e6 * theirs, good ? "" : " DIFFERS");
  all_good = all_good && good;
}

void compare_collectives(const torus_pair& torus) {
  const gs::torus_mesh mesh(torus.topology), rows(torus.topology, {torus.d, torus.d});
  for (const double bytes : {65536.0, 8388608.0, 33554432.0}) {
    const double part = bytes / torus.topology.chips(), piece = bytes / torus.d;
    compare("all-to-all", torus,
            gs::simulate(mesh, gs::all_to_all_messages(mesh, 1, bytes, all_to_all_scheme::direct, tie_policy::one_way)).seconds,
            send_all(torus, [&](int, int) { return part; }));
    compare("all-gather", torus, gs::simulate(rows, gs::all_gather_messages(rows, 2, bytes, gather_scheme::one_way)).seconds,
            gather_rows(torus, piece));
  }
}

/// Some messages of any size. On an odd torus no two routes have the same length: SimGrid breaks ties differently.
void compare_random(const torus_pair& torus, std::uint32_t seed) {
  std::mt19937 random(seed);
  const int n = torus.topology.chips();
  std::vector<double> bytes(std::size_t(n * n), 0.0);
  for (double& b : bytes) b = random() % 3 == 0 ? double(1 + random() % 4000000) : 0;
  const auto sent = [&](int from, int to) { return from == to ? 0 : bytes[std::size_t(from * n + to)]; };
  gs::message_list list;
  for (int from = 0; from < n; ++from)
    for (int to = 0; to < n; ++to)
      if (sent(from, to) > 0) list.add({.from = from, .to = to, .bytes = sent(from, to)});
  compare("random messages", torus, gs::simulate(gs::torus_mesh(torus.topology), list).seconds, send_all(torus, sent));
}

}  // namespace

int main(int argc, char** argv) {
  sg::Engine engine(&argc, argv);
  for (const char* setting : {"network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0"}) sg::Engine::set_config(setting);
  sg::create_full_zone("all");
  const torus_pair small(4), large(8), odd(5);
  engine.get_netzone_root()->seal();
  sg::Actor::create("all", small.host(0), [&] {
    compare_collectives(small);
    compare_collectives(large);
    for (const std::uint32_t seed : {1u, 2u, 3u}) compare_random(odd, seed);
  });
  engine.run();
  return all_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
