// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives of programs on several nodes: in two levels, in one level, and by MPI's own calls. They are compared with a bound: the bytes
// that a node must receive from others, divided by the rate of its link.
// usage: mpirun ... bench_cluster_collectives BIT_PER_SECOND [rounds]
#include <gshard/cluster/mpi.hpp>
#include <gshard/gshard.hpp>

#include "timing.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;
template <class To>
inline constexpr auto move = [](auto&, auto x) { return gs::annotate<To>(x); };
using all_reduce = gs::program<move<gs::P<gs::none>>, mesh, gs::in<"A", gs::P<gs::none, gs::partial<"x">>>>;
using reduce_scatter = gs::program<move<gs::P<"x">>, mesh, gs::in<"A", gs::P<gs::none, gs::partial<"x">>>>;
using all_gather = gs::program<move<gs::P<gs::none>>, mesh, gs::in<"A", gs::P<"x">>>;
using all_to_all = gs::program<move<gs::P<gs::none, "x">>, mesh, gs::in<"AB", gs::P<"x", gs::none>>>;
static_assert(all_reduce::plan.count(gs::op::all_reduce) == 1 && reduce_scatter::plan.count(gs::op::reduce_scatter) == 1 &&
              all_gather::plan.count(gs::op::all_gather) == 1 && all_to_all::plan.count(gs::op::all_to_all) == 1);

class contest {
 public:
  contest(double rate, int rounds)
      : rate_(rate), rounds_(rounds), levels_(gs::on_mpi<mesh>(MPI_COMM_WORLD)),
        flat_(gs::on_mpi<mesh>(MPI_COMM_WORLD, {}, {.by_node = gs::node_routing::never})) {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    node_ = levels_.backend().nodes().node;
    nodes_ = int(std::set<int>(node_.begin(), node_.end()).size());
  }

  void sums(std::int64_t bytes) {
    const std::int64_t n = bytes / std::int64_t(sizeof(float));
    const int part = int(n / ranks_);
    const std::vector<float> from(std::size_t(n), 1.0f);
    std::vector<float> to(from.size());
    const double others = double(nodes_ - 1) / nodes_;  // the share of a tensor on other nodes, if all nodes have as many ranks
    compare<all_reduce>("all_reduce of " + text(bytes), {{'A', n}}, 2 * others * double(bytes),
                        [&] { MPI_Allreduce(from.data(), to.data(), int(n), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); });
    compare<reduce_scatter>("reduce_scatter of " + text(bytes), {{'A', n}}, others * double(bytes),
                            [&] { MPI_Reduce_scatter_block(from.data(), to.data(), part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); });
    compare<all_gather>("all_gather of " + text(bytes), {{'A', n}}, others * double(bytes),
                        [&] { MPI_Allgather(from.data(), part, MPI_FLOAT, to.data(), part, MPI_FLOAT, MPI_COMM_WORLD); });
  }
  /// `block`: the number of elements that a rank sends to each other rank.
  void blocks(std::int64_t block) {
    const std::vector<float> from(std::size_t(block * ranks_), 1.0f);
    std::vector<float> to(from.size());
    const auto p = std::size_t(ranks_);
    std::vector<int> counts(p, int(block)), at(p);
    std::exclusive_scan(counts.begin(), counts.end(), at.begin(), 0);
    const double remote = double(ranks_) / nodes_ * (ranks_ - double(ranks_) / nodes_);  // pairs of a node's ranks and others
    compare<all_to_all>("all_to_all of blocks of " + text(block * 4), {{'A', ranks_}, {'B', block * ranks_}}, remote * double(block) * 4, [&] {
      MPI_Alltoallv(from.data(), counts.data(), at.data(), MPI_FLOAT, to.data(), counts.data(), at.data(), MPI_FLOAT, MPI_COMM_WORLD);
    });
  }

 private:
  static constexpr double short_exchange = 1e5;  // bytes
  double rate_;
  int rounds_, ranks_ = 1, rank_ = 0, nodes_ = 1;
  gs::cluster<mesh> levels_, flat_;
  std::vector<int> node_;  // by rank

  static std::string text(std::int64_t bytes) {
    return bytes < 1024 ? std::to_string(bytes) + " B" : bytes < 1 << 20 ? std::to_string(bytes >> 10) + " KiB" : std::to_string(bytes >> 20) + " MiB";
  }
  template <class Program>
  static std::shared_ptr<gs::executor> bound(const gs::any_cluster& on, const gs::dims& dims) {
    auto run = std::make_shared<gs::executor>(Program::plan, gs::kernels_of<Program>, on, dims, gs::parameter_store(on));
    run->agreed_by_caller();
    std::fill_n(run->input(0).template as<float>(0), run->input(0).elements(0), 1.0f);
    return run;
  }
  /// `least`: the bytes that a node must receive from others.
  template <class Program, class Peer>
  void compare(const std::string& what, const gs::dims& dims, double least, Peer peer) {
    const auto two = bound<Program>(levels_, dims), one = bound<Program>(flat_, dims);
    levels_.backend().reset_received();
    two->run({});
    const std::int64_t most = between_nodes();
    const int rounds = least < short_exchange ? 40 * rounds_ : rounds_;  // short times vary more
    const std::vector<bench::side> sides =
        bench::compare(what, {{"two levels", [&] { two->run({}); }}, {"one level", [&] { one->run({}); }}, {"MPI", peer}}, rounds, false,
                       [] { MPI_Barrier(MPI_COMM_WORLD); });
    std::vector<double> slowest;
    for (const bench::side& s : sides) {
      double mine = bench::median(s.seconds), all = 0;
      MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      slowest.push_back(all);
    }
    if (rank_ != 0) return;
    const double bound_seconds = least * 8 / rate_;
    std::printf("%-34s %2d nodes x %d: %9.2f ms, %5.2f of the bound, %5.2fx one level, %5.2fx MPI; bytes between nodes: %.3f of the least\n",
                what.c_str(), nodes_, ranks_ / nodes_, 1e3 * slowest[0], bound_seconds > 0 ? slowest[0] / bound_seconds : 0.0,
                slowest[1] / slowest[0], slowest[2] / slowest[0], least > 0 ? double(most) / least : 1.0);
    std::fflush(stdout);
  }
  /// The largest number of bytes that a node has received from others.
  std::int64_t between_nodes() {
    std::vector<std::int64_t> received(node_.size(), 0);  // by node
    received[std::size_t(node_[std::size_t(rank_)])] = levels_.backend().received()[0].between_nodes;
    MPI_Allreduce(MPI_IN_PLACE, received.data(), ranks_, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return *std::max_element(received.begin(), received.end());
  }
};

}  // namespace

int main(int count, char** arguments) {
  const double rate = count > 1 ? std::atof(arguments[1]) : 1e9;
  const int rounds = count > 2 ? std::atoi(arguments[2]) : 5;
  MPI_Init(&count, &arguments);
  {
    contest all(rate, rounds);
    for (const std::int64_t mib : {1, 16}) all.sums(mib << 20);
    for (const std::int64_t elements : {16, 256, 65536}) all.blocks(elements);
  }
  MPI_Finalize();
}
