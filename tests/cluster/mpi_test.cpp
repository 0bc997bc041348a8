// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/mpi.hpp>
#include <gshard/exec/backend/balanced_extents.hpp>
#include <gshard/exec/backend/loopback.hpp>
#include <gshard/exec/backend/simulated.hpp>
#include <gshard/exec/reduce/reduce.hpp>

#include "../exec/backend/random_cases.hpp"

#include <doctest/doctest.h>

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace gs = gshard;

// Counts the messages in flight. One message can be made to fail when it starts. Uses MPI's profiling interface.
namespace under_way {
int now = 0, all = 0;
int until_failure = -1;  // messages that still start successfully; -1: all
bool fails() { return until_failure >= 0 && until_failure-- == 0; }
}  // namespace under_way

extern "C" {
int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
  if (under_way::fails()) return MPI_ERR_OTHER;
  ++under_way::now;
  ++under_way::all;
  return PMPI_Irecv(data, count, type, from, tag, comm, request);
}
int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  if (under_way::fails()) {
    PMPI_Send(data, count, type, to, tag, comm);  // the receiver must not wait forever
    return MPI_ERR_OTHER;
  }
  ++under_way::now;
  ++under_way::all;
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  if (*request != MPI_REQUEST_NULL) --under_way::now;
  return PMPI_Wait(request, status);
}
int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
  const bool started = *request != MPI_REQUEST_NULL;
  const int code = PMPI_Test(request, done, status);
  if (started && *request == MPI_REQUEST_NULL) --under_way::now;
  return code;
}
}

namespace {

int size_of(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

int rank_of(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

/// Every mesh of n devices with up to three axes.
std::vector<std::vector<int>> meshes(int n) {
  std::vector<std::vector<int>> all{{n}};
  for (int a = 1; a <= n; ++a) {
    if (n % a != 0) continue;
    all.push_back({a, n / a});
    for (int b = 1; b <= n / a; ++b)
      if (n / a % b == 0) all.push_back({a, b, n / a / b});
  }
  return all;
}

/// All collectives on one mesh. Under MPI, this device receives the same data as in the simulation, and the expected data.
void compare_with_simulation(MPI_Comm comm, const std::vector<int>& extents,
                             const gs::mpi_options& options = {}) {
  gs::mpi_backend mpi(comm, extents, options);
  gs::simulated sim(extents);
  const auto me = std::size_t(rank_of(comm));
  REQUIRE(mpi.devices().size() == 1);
  REQUIRE(mpi.devices()[0] == int(me));
  CHECK(mpi.leader() == (me == 0));
  const bool small_messages = options.message_limit < 1000;
  const std::vector<std::int64_t> lengths = small_messages
                                                ? std::vector<std::int64_t>{1, 17, 2000}
                                                : std::vector<std::int64_t>{0, 1, 2, 3, 5, 7, 12, 17, 5000};
  gs::detail::reducer mpi_reduce(4096), sim_reduce(4096);

  for (std::uint32_t axes = 0; axes < cases::n_masks(extents); ++axes) {
    CAPTURE(gs::detail::mesh_text(extents));
    CAPTURE(axes);
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      CAPTURE(seed);
      cases::exchange_case x(extents, axes, seed), x_sim = x;
      mpi.exchange(axes, cases::parts(x, mpi.devices()));
      sim.exchange(axes, cases::parts(x_sim, sim.devices()));
      CHECK(x.recv[me] == x_sim.recv[me]);
      CHECK(x.recv[me] == x.expected[me]);

      cases::gather_case g(extents, axes, seed), g_sim = g;
      mpi.all_gather(axes, cases::parts(g, mpi.devices()));
      sim.all_gather(axes, cases::parts(g_sim, sim.devices()));
      CHECK(g.recv[me] == g_sim.recv[me]);
      CHECK(g.recv[me] == g.expected[me]);
    }
    for (const std::int64_t n : lengths) {
      CAPTURE(n);
      cases::sum_case<float> c(extents, axes, n, std::uint64_t(n)), c_sim = c;
      mpi_reduce.all_reduce({gs::dtype_of<float>, gs::reduction::sum}, mpi, axes, cases::readers(c.data, mpi.devices()),
                                   cases::pointers(c.data, mpi.devices()), cases::on_each(mpi, n), n);
      sim_reduce.all_reduce({gs::dtype_of<float>, gs::reduction::sum}, sim, axes, cases::readers(c_sim.data, sim.devices()),
                                   cases::pointers(c_sim.data, sim.devices()), cases::on_each(sim, n), n);
      CHECK(cases::same_bits(c.data[me], c_sim.data[me]));
      CHECK(cases::same_bits(c.data[me], c.expected[me]));
    }
  }
  CHECK(mpi.received()[0] == sim.received()[me]);
}

/// The number of ranks that threw, and the text on this one.
struct outcome {
  int n_throws = 0;
  std::string text;
};

template <class F>
outcome on_all_ranks(F f) {
  outcome o;
  try {
    f();
  } catch (const gs::error& e) {
    o = {1, e.what()};
  }
  MPI_Allreduce(MPI_IN_PLACE, &o.n_throws, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return o;
}

class split_comm {
 public:
  split_comm(int color, int key) { MPI_Comm_split(MPI_COMM_WORLD, color, key, &comm_); }
  split_comm(const split_comm&) = delete;
  split_comm& operator=(const split_comm&) = delete;
  ~split_comm() { MPI_Comm_free(&comm_); }
  MPI_Comm get() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace

TEST_CASE("mpi: every collective on every mesh of this size is bit for bit the simulated one") {
  for (const std::vector<int>& extents : meshes(size_of(MPI_COMM_WORLD)))
    for (const int small_block : {0, 20, 4096}) compare_with_simulation(MPI_COMM_WORLD, extents, {.small_block = small_block});
}

TEST_CASE("mpi: messages cut into pieces, and exchanges into rounds, arrive whole") {
  const std::vector<int> extents = gs::balanced_extents(size_of(MPI_COMM_WORLD), std::vector(2, gs::dynamic));
  for (const int limit : {1, 7, 64})
    for (const int window : {1, 2, 32})
      for (const int small_block : {0, 20}) compare_with_simulation(MPI_COMM_WORLD, extents, {limit, window, small_block});
}

TEST_CASE("mpi: two halves of the world work on their own, with ranks in reverse") {
  const int rank = rank_of(MPI_COMM_WORLD);
  const split_comm half(rank % 2, -rank);
  for (const std::vector<int>& extents : meshes(size_of(half.get())))
    compare_with_simulation(half.get(), extents);
}

TEST_CASE("mpi: a group may have nothing to exchange where others have, also the first time") {
  const int rank = rank_of(MPI_COMM_WORLD);
  for (const std::vector<int>& extents : meshes(size_of(MPI_COMM_WORLD)))
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      gs::mpi_backend b(MPI_COMM_WORLD, extents);
      for (std::uint32_t axes = 1; axes < cases::n_masks(extents); ++axes) {
        CAPTURE(gs::detail::mesh_text(extents));
        CAPTURE(axes);
        cases::rng of_group(seed * 1000 + axes * 100 + std::uint64_t(gs::device_group(extents, axes, rank).device(0)));
        if (cases::below(of_group, 2) == 0) continue;
        cases::gather_case c(extents, axes, seed);
        b.all_gather(axes, cases::parts(c, b.devices()));
        CHECK(c.recv[std::size_t(rank)] == c.expected[std::size_t(rank)]);
      }
    }
}

TEST_CASE("mpi: broadcast and gather_to_leader move the data of processes") {
  const int n = size_of(MPI_COMM_WORLD), rank = rank_of(MPI_COMM_WORLD);
  for (const int limit : {5, 1 << 30}) {
    gs::mpi_backend b(MPI_COMM_WORLD, {n}, {.message_limit = limit});
    for (const std::int64_t length : {0, 1, 5, 1234}) {
      cases::rng r(std::uint64_t(length) + 1);
      const cases::bytes truth = cases::random_bytes(r, length);
      cases::bytes data = rank == 0 ? truth : cases::bytes(truth.size());
      b.broadcast(data);
      CHECK(data == truth);

      std::vector<cases::bytes> all;
      for (int k = 0; k < n; ++k) all.push_back(cases::random_bytes(r, length * k));
      const std::vector<cases::bytes> got = b.gather_to_leader(all[std::size_t(rank)]);
      CHECK(got == (rank == 0 ? all : std::vector<cases::bytes>{}));
    }
  }
}

TEST_CASE("mpi: a mesh that does not fit the communicator throws on every rank") {
  const int n = size_of(MPI_COMM_WORLD), rank = rank_of(MPI_COMM_WORLD);
  const outcome wrong = on_all_ranks([&] { gs::mpi_backend(MPI_COMM_WORLD, {n, 2}); });
  CHECK(wrong.n_throws == n);
  CHECK(wrong.text == "mpi_backend: a mesh of " + std::to_string(n) + "x2 needs " + std::to_string(2 * n) +
                          " processes, but the communicator has " + std::to_string(n));
  CHECK(on_all_ranks([&] { gs::mpi_backend(MPI_COMM_WORLD, {n, 0}); }).n_throws == n);
  CHECK(on_all_ranks([&] { gs::mpi_backend(MPI_COMM_WORLD, {n}, {.in_flight = 0}); }).n_throws == n);
  CHECK(on_all_ranks([&] { gs::mpi_backend(MPI_COMM_WORLD, {n}, {.node_piece = 0}); }).n_throws == n);
  CHECK(on_all_ranks([&] { gs::mpi_backend(MPI_COMM_NULL, {n}); }).n_throws == n);
  if (n < 2) return;
  const outcome differ = on_all_ranks([&] {
    gs::mpi_backend(MPI_COMM_WORLD, rank == 0 ? std::vector{n} : std::vector{n, 0});
  });
  CHECK(differ.n_throws == n);
  CHECK(differ.text == "making a cluster of MPI processes: the processes disagree on the mesh: rank 0 has " + std::to_string(n) + ", rank" +
                           (n == 2 ? " 1 has " : n == 3 ? "s 1 and 2 have " : "s 1 to 3 have ") + std::to_string(n) + "x0");
  const outcome options = on_all_ranks([&] { gs::mpi_backend(MPI_COMM_WORLD, {n}, {.in_flight = rank == 0 ? 3 : 4}); });
  CHECK(options.n_throws == n);
  CHECK(options.text.find("disagree on mpi_options::in_flight: rank 0 has 3, rank") != std::string::npos);
  const outcome problem = on_all_ranks([&] { gs::mpi_backend(MPI_COMM_WORLD, {n}, {}, {.problem = rank == n - 1 ? "no such mesh" : ""}); });
  CHECK(problem.n_throws == n);
  CHECK(problem.text == (rank == n - 1 ? "" : "rank " + std::to_string(n - 1) + " failed: ") + std::string("no such mesh"));
}

TEST_CASE("mpi: sizes that do not match are errors where they are seen") {
  if (size_of(MPI_COMM_WORLD) != 2) return;
  const auto rank = std::size_t(rank_of(MPI_COMM_WORLD));
  for (const std::int64_t sent : {4, 12}) {
    gs::mpi_backend b(MPI_COMM_WORLD, {2});
    cases::bytes send(12), recv(8);
    std::vector<std::span<const std::byte>> to(2);
    std::vector<std::span<std::byte>> from(2);
    if (rank == 0) to[1] = std::span(send).first(std::size_t(sent));
    if (rank == 1) from[0] = recv;
    const gs::exchange_part part{to, from};
    const outcome o = on_all_ranks([&] { b.exchange(1, {&part, 1}); });
    CHECK(o.n_throws == 1);
    if (rank == 1)
      CHECK(o.text.find(sent == 4 ? "expects 8 bytes from member 0, which sent 4" : "MPI_ERR_TRUNCATE") !=
            std::string::npos);
  }
}

TEST_CASE("mpi: when a message cannot be started, none is under way any more when the error is thrown") {
  const int n = size_of(MPI_COMM_WORLD), rank = rank_of(MPI_COMM_WORLD);
  for (int at = 0; at < 2 * (n - 1); ++at) {
    gs::mpi_backend b(MPI_COMM_WORLD, {n});
    cases::exchange_case x({n}, 1, 3);
    for (auto& sizes : x.send_bytes) std::fill(sizes.begin(), sizes.end(), 8);
    for (auto& sizes : x.recv_bytes) std::fill(sizes.begin(), sizes.end(), 8);
    for (cases::bytes* all : {x.send.data(), x.recv.data()})
      for (int d = 0; d < n; ++d) all[d].resize(1000);
    under_way::now = 0;
    under_way::until_failure = rank == 0 ? at : -1;
    const outcome o = on_all_ranks([&] { b.exchange(1, cases::parts(x, b.devices())); });
    under_way::until_failure = -1;
    CHECK(o.n_throws == 1);
    CHECK(o.text.empty() == (rank != 0));
    CHECK(under_way::now == 0);
  }
}

TEST_CASE("mpi: node by node, processes have fewer messages; exchanges for which that saves little go straight") {
  if (size_of(MPI_COMM_WORLD) != 4) return;
  const auto messages = [](const gs::mpi_options& options, const gs::exchange_bounds& known) {
    gs::mpi_backend b(MPI_COMM_WORLD, {4}, options);
    cases::bytes from(32), to(32);
    const std::vector<std::span<const std::byte>> send(4, std::span(from).first(8));
    std::vector<std::span<std::byte>> recv;
    for (std::size_t m = 0; m < 4; ++m) recv.push_back(std::span(to).subspan(8 * m, 8));
    const gs::exchange_part part{send, recv};
    under_way::all = 0;
    b.exchange(1, {&part, 1}, known);
    return under_way::all;
  };
  using enum gs::node_routing;
  const gs::exchange_bounds known{8, 3}, few{8, 2};
  CHECK(messages({}, known) == 6);  // these processes share memory
  CHECK(messages({.by_node = never, .node_size = 2}, known) == 6);
  const int by_node = rank_of(MPI_COMM_WORLD) % 2 == 0 ? 5 : 3;  // ranks 0 and 2 relay
  CHECK(messages({.by_node = always, .node_size = 2}, known) == by_node);
  CHECK(messages({.by_node = always, .node_size = 2}, {}) == 6);
  CHECK(messages({.message_limit = 40, .by_node = always, .node_size = 2}, known) == 6);  // 4 blocks of 12 bytes with their sizes
  CHECK(messages({.by_node = where_it_saves, .node_size = 2}, few) == 6);
  CHECK(messages({.by_node = where_it_saves, .node_size = 2}, known) == by_node);
  CHECK(messages({.by_node = where_it_saves, .node_block = 7, .node_size = 2}, known) == 6);
}

TEST_CASE("mpi: blocks for other nodes travel in small pieces, in at most 512 of them") {
  const int n = size_of(MPI_COMM_WORLD), rank = rank_of(MPI_COMM_WORLD);
  const auto messages = [&](const gs::mpi_options& options, std::size_t bytes) {
    gs::mpi_backend b(MPI_COMM_WORLD, {n}, options);
    cases::rng r(std::uint64_t(rank) + 1);
    const auto members = std::size_t(n);
    const cases::bytes from = cases::random_bytes(r, std::int64_t(bytes * members));
    cases::bytes to(from.size());
    std::vector<std::span<const std::byte>> send;
    std::vector<std::span<std::byte>> recv;
    for (std::size_t m = 0; m < members; ++m) {
      send.push_back(std::span(from).subspan(bytes * m, bytes));
      recv.push_back(std::span(to).subspan(bytes * m, bytes));
    }
    const gs::exchange_part part{send, recv};
    under_way::all = 0;
    b.exchange(1, {&part, 1}, {});
    const int all = under_way::all;
    for (std::size_t m = 0; m < members; ++m) {
      cases::rng of_m(m + 1);
      const cases::bytes sent = cases::random_bytes(of_m, std::int64_t(bytes * members));
      CHECK(std::ranges::equal(recv[m], std::span(sent).subspan(bytes * std::size_t(rank), bytes)));
    }
    return all;
  };
  const auto both_ways = [](int pieces_here, int here, int pieces_beyond, int beyond) {
    return 2 * (pieces_here * here + pieces_beyond * beyond);
  };
  const int mates = n % 2 == 0 || rank + 1 < n ? 1 : 0, beyond = n - 1 - mates;  // in nodes of two ranks
  CHECK(messages({.node_piece = 3}, 8) == both_ways(1, n - 1, 0, 0));  // these processes share memory
  CHECK(messages({.node_size = 2, .node_piece = 3}, 8) == both_ways(1, mates, 3, beyond));
  CHECK(messages({.message_limit = 2, .node_size = 2, .node_piece = 3}, 8) == both_ways(4, mates, 4, beyond));
  CHECK(messages({.node_size = 2, .node_piece = 1}, 2000) == both_ways(1, mates, 500, beyond));  // of four bytes
}

TEST_CASE(
    "mpi: when a message of an exchange node by node cannot be started, members whose blocks were in it get the error, and none waits") {
  const int n = size_of(MPI_COMM_WORLD), rank = rank_of(MPI_COMM_WORLD);
  const auto me = std::size_t(rank);
  for (const int size : {1, 2, 3, 4})
    for (int at = 0; at < 2 * n; ++at) {
      gs::mpi_backend b(MPI_COMM_WORLD, {n}, {.by_node = gs::node_routing::always, .node_size = size});
      cases::exchange_case x({n}, 1, 3);
      under_way::now = 0;
      under_way::until_failure = rank == 0 ? at : -1;
      const outcome o = on_all_ranks([&] { b.exchange(1, cases::parts(x, b.devices()), {40, n - 1}); });
      int failed = under_way::until_failure < 0 && rank == 0 ? 1 : 0;
      MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
      under_way::until_failure = -1;
      CHECK((o.n_throws > 0) == (failed != 0));
      if (rank == 0) CHECK(o.text.empty() == (failed == 0));
      else CHECK((o.text.empty() || o.text.find("which cannot be heard") != std::string::npos));
      if (o.text.empty()) CHECK(x.recv[me] == x.expected[me]);
      CHECK(under_way::now == 0);
    }
}

TEST_CASE("mpi: several exchanges under way, each rank finishes them in its own order") {
  const int rank = rank_of(MPI_COMM_WORLD);
  for (const std::vector<int>& extents : meshes(size_of(MPI_COMM_WORLD)))
    for (const gs::mpi_options& options : {gs::mpi_options{}, gs::mpi_options{.message_limit = 7, .in_flight = 1},
                                           gs::mpi_options{.node_size = 1, .node_piece = 7}}) {
      if (gs::device_count(extents) == 1) continue;
      gs::mpi_backend b(MPI_COMM_WORLD, extents, options);
      const auto me = std::size_t(rank);
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        CAPTURE(gs::detail::mesh_text(extents));
        CAPTURE(seed);
        cases::several_exchanges x(extents, 5, seed);
        cases::rng same(seed), mine(seed * 100 + me);
        const auto all_axes = cases::n_masks(extents) - 1;
        for (std::size_t i = 0; i < x.all.size(); ++i) {
          x.start(b, i);
          cases::exchange_case between(extents, all_axes, seed);
          cases::gather_case gathered(extents, all_axes, seed);
          switch (cases::below(same, 3)) {
            case 0:
              b.exchange(all_axes, cases::parts(between, b.devices()));
              CHECK(between.recv[me] == between.expected[me]);
              break;
            case 1:
              b.all_gather(all_axes, cases::parts(gathered, b.devices()));
              CHECK(gathered.recv[me] == gathered.expected[me]);
              break;
            default: break;
          }
        }
        x.finish_all(mine);
        for (cases::exchange_case& c : x.all) CHECK(c.recv[me] == c.expected[me]);
      }
    }
}

TEST_CASE("mpi: of several exchanges under way, one that fails tells it when it is finished, and the others arrive") {
  const int n = size_of(MPI_COMM_WORLD), rank = rank_of(MPI_COMM_WORLD);
  if (n < 2) return;
  const auto me = std::size_t(rank);
  for (const std::size_t fails : {std::size_t(0), std::size_t(1), std::size_t(2)})
    for (int at = 0; at < 2 * (n - 1); ++at) {
      gs::mpi_backend b(MPI_COMM_WORLD, {n});
      cases::several_exchanges x({n}, 3, 3);
      for (cases::exchange_case& c : x.all)
        for (int d = 0; d < n; ++d) {
          c.send_bytes[std::size_t(d)] = c.recv_bytes[std::size_t(d)] = cases::sizes(std::size_t(n), 8);
          c.send_offset[std::size_t(d)] = c.recv_offset[std::size_t(d)] = cases::sizes(std::size_t(n), 0);
          for (std::size_t j = 0; j < std::size_t(n); ++j)
            c.send_offset[std::size_t(d)][j] = c.recv_offset[std::size_t(d)][j] = std::int64_t(8 * j);
          c.send[std::size_t(d)] = cases::bytes(std::size_t(8 * n), std::byte(d));
          c.recv[std::size_t(d)].assign(std::size_t(8 * n), std::byte(d));
        }
      under_way::now = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        under_way::until_failure = rank == 0 && i == fails ? at : -1;
        x.start(b, i);
      }
      under_way::until_failure = -1;
      for (const std::size_t i : {std::size_t(2), std::size_t(0), std::size_t(1)}) {
        const outcome o = on_all_ranks([&] { x.pending[i].finish(); });
        CHECK(o.n_throws == (i == fails ? 1 : 0));
        CHECK(o.text.empty() == (i != fails || rank != 0));
        if (i == fails) continue;
        for (std::size_t j = 0; j < std::size_t(8 * n); ++j) CHECK(x.all[i].recv[me][j] == std::byte(j / 8));
      }
      CHECK(under_way::now == 0);
    }
}

TEST_CASE("mpi: sizes that do not match are told when an exchange under way is finished") {
  if (size_of(MPI_COMM_WORLD) != 2) return;
  const auto rank = std::size_t(rank_of(MPI_COMM_WORLD));
  for (const std::size_t sent : {std::size_t(4), std::size_t(12)}) {
    gs::mpi_backend b(MPI_COMM_WORLD, {2});
    cases::bytes send(12), recv(8);
    std::vector<std::span<const std::byte>> to(2);
    std::vector<std::span<std::byte>> from(2);
    if (rank == 0) to[1] = std::span(send).first(sent);
    if (rank == 1) from[0] = recv;
    const gs::exchange_part part{to, from};
    gs::pending_exchange under_way = b.start(1, {&part, 1});
    const outcome o = on_all_ranks([&] { under_way.finish(); });
    CHECK(o.n_throws == 1);
    if (rank == 1)
      CHECK(o.text.find(sent == 4 ? "expects 8 bytes from member 0, which sent 4" : "MPI_ERR_TRUNCATE") != std::string::npos);
  }
}

TEST_CASE("mpi: the application's communicator keeps its error handler and its messages") {
  const int n = size_of(MPI_COMM_WORLD), rank = rank_of(MPI_COMM_WORLD);
  MPI_Errhandler before, after;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  int received = -1;
  MPI_Request any;
  MPI_Irecv(&received, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any);
  compare_with_simulation(MPI_COMM_WORLD, {n}, {.message_limit = 64});
  MPI_Send(&rank, 1, MPI_INT, (rank + 1) % n, 0, MPI_COMM_WORLD);
  MPI_Wait(&any, MPI_STATUS_IGNORE);
  CHECK(received == (rank + n - 1) % n);
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &after);
  CHECK((before == after));
  MPI_Errhandler_free(&before);
  MPI_Errhandler_free(&after);
}

TEST_CASE("mpi: processes that share the cores of this one") {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const gs::mpi_backend all(MPI_COMM_WORLD, {ranks});
  CHECK(all.processes_here() == ranks);  // all ranks of a test are on one node, and are not bound to cores
  CHECK(gs::loopback().processes_here() == 1);
}
