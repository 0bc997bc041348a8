// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs on several nodes: training steps of Transformers with and without experts, a mixture-of-experts layer with its gradients, and a
// product of matrices that are sharded along both dims. The product is compared with ScaLAPACK's. Each time is compared with the bytes
// between nodes divided by the rate of a link, with the local steps alone, and with one device.
// usage: mpirun ... bench_cluster_programs BIT_PER_SECOND [rounds] [transformer | moe | product]
#include <gshard/cluster/mpi.hpp>
#include <gshard/gshard.hpp>

#include "timing.hpp"
#include "transformer_program.hpp"

#ifndef GSHARD_BENCH_SCALAPACK
#define GSHARD_BENCH_SCALAPACK 0
#endif
#if GSHARD_BENCH_SCALAPACK
#include "../peers/scalapack_gemm.hpp"
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

namespace gs = gshard;

namespace {

double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
double slowest(double mine) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}
/// The median over rounds of the slowest rank's time.
double median_together(int rounds, const std::function<double()>& once) {
  std::vector<double> all;
  for (int round = 0; round < rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    all.push_back(slowest(once()));
  }
  return bench::median(all);
}

/// A program with its inputs.
struct prepared {
  gs::executor& executor;
  std::function<void()> run;

  /// Runs until the program has chosen whether its collectives overlap.
  void prepare() const {
    do run();
    while (executor.measures_overlap());
  }
  /// The seconds that this process computes in a run, without communication.
  double compute() const {
    double sum = 0;
    std::chrono::steady_clock::time_point start;
    executor.hook = [&](const gs::node& step, bool begins) {
      if (gs::traits(step.kind).collective) return;
      const auto now = std::chrono::steady_clock::now();
      if (begins)
        start = now;
      else
        sum += std::chrono::duration<double>(now - start).count();
    };
    run();
    executor.hook = {};
    return sum;
  }
};

class contest {
 public:
  contest(double rate, int rounds) : rate_(rate), rounds_(rounds) {
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  }
  int ranks() const { return ranks_; }
  int rank() const { return rank_; }

  /// with(cluster, f) calls f with the program prepared on that cluster. Returns the median time on all ranks.
  template <class Mesh, class With>
  double row(const std::string& what, const gs::cluster<Mesh>& on, With with) {
    double time = 0, compute = 0;
    std::int64_t between = 0;
    with(on, [&](const prepared& p) {
      p.prepare();
      between = most_of_a_node(on.backend().nodes().node, p.executor.between_nodes_in_run()[0]);
      time = median_together(rounds_, [&] { return seconds_of(p.run); });
      compute = median_together(rounds_, [&] { return p.compute(); });
    });
    double alone = 0;
    if (rank_ == 0)
      with(gs::on_one_device<Mesh>(), [&](const prepared& p) {
        p.run();
        std::vector<double> all;
        for (int round = 0; round < rounds_; ++round) all.push_back(seconds_of(p.run));
        alone = bench::median(all);
      });
    wait_for_leader();
    if (rank_ == 0) {
      const double wire = double(between) * 8 / rate_;
      std::printf(
          "%-22s %9.1f ms: %6.2f of its bytes between nodes (%.2f MB in %.1f ms), %5.2f of its local steps (%.1f ms), %5.2f of their sum, "
          "%5.2fx one device\n",
          what.c_str(), 1e3 * time, wire > 0 ? time / wire : 0.0, double(between) / 1e6, 1e3 * wire, time / compute, 1e3 * compute,
          time / (wire + compute), alone / time);
      std::fflush(stdout);
    }
    return time;
  }
  void peer(const std::string& name, double ours, const std::function<void()>& run) {
    run();
    const double theirs = median_together(rounds_, [&] { return seconds_of(run); });
    if (rank_ == 0) std::printf("%-22s %9.1f ms: gshard is %.2fx as fast\n", name.c_str(), 1e3 * theirs, theirs / ours);
  }
  /// The same program on a cluster with other options.
  template <class Mesh, class With>
  void peer(const std::string& name, double ours, const gs::cluster<Mesh>& on, With with) {
    with(on, [&](const prepared& p) {
      peer(name, ours, p.run);
      const double compute = median_together(rounds_, [&] { return p.compute(); });
      if (rank_ == 0) std::printf("%-22s %9.1f ms of %.1f ms are not its local steps (%.1f ms)\n", "", 1e3 * (ours - compute), 1e3 * ours, 1e3 * compute);
    });
  }

 private:
  double rate_;
  int rounds_, ranks_ = 1, rank_ = 0;

  /// The largest number of bytes that a node receives from others. `node`: the node of each rank.
  std::int64_t most_of_a_node(const std::vector<int>& node, std::int64_t mine) const {
    std::vector<std::int64_t> received(std::size_t(ranks_), 0);  // by node
    if (!node.empty()) received[std::size_t(node[std::size_t(rank_)])] = mine;
    MPI_Allreduce(MPI_IN_PLACE, received.data(), ranks_, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return *std::max_element(received.begin(), received.end());
  }
  /// A barrier in which the other ranks sleep: the leader has the cores for itself.
  void wait_for_leader() const {
    MPI_Request all;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    for (int done = 0; MPI_Test(&all, &done, MPI_STATUS_IGNORE), done == 0;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
};

/// A Transformer of six layers without experts: its collectives sum gradients.
inline constexpr gs::nn::transformer_options dense_model{
    .encoder_layers = 3, .decoder_layers = 3, .dropout = 0, .moe = {.routing = {.k = 1}}, .dense = true};
template <gs::fixed_string Letters>
using ids = calibrate::token_ids<Letters>;
template <gs::gradient_wire Wire>
using dense_program = gs::program<calibrate::transformer_step<dense_model, Wire>, bench::expert_mesh, ids<"GBS">, ids<"GBT">, ids<"GBT">, gs::in<"">>;

template <class Program>
void transformer(contest& all, const std::string& what, std::int64_t sequences, std::int64_t vocabulary, bool has_experts) {
  using mesh = bench::expert_mesh;
  constexpr std::int64_t length = 32, groups = 8;
  gs::dims extents{{'G', groups}, {'B', sequences}, {'S', length}, {'T', length},     {'M', 256},
                   {'H', 8},      {'D', 32},        {'F', 1024},   {'V', vocabulary}, {'L', length}};
  if (has_experts) extents.set('E', 8);
  const auto tokens = bench::random_tokens(groups * sequences * length, vocabulary);
  const std::vector<float> rate{1e-3f};
  const auto step = [&](const gs::cluster<mesh>& on, const auto& measure) {
    gs::executable<Program> training(on, extents);
    measure(prepared{training.executor(), [&] { training(tokens[0], tokens[1], tokens[2], rate); }});
  };
  const auto with = [](gs::overlap_mode overlap) { return gs::on_mpi<mesh>(MPI_COMM_WORLD, {}, {.overlap = overlap}); };
  const double time = all.row(what, gs::on_mpi<mesh>(MPI_COMM_WORLD), step);
  all.peer("always overlap", time, with(gs::overlap_mode::on), step);
  all.peer("no overlap", time, with(gs::overlap_mode::off), step);
}

// Slots for 1.25 times the choices, in one or two chunks. Or no slots: rows for twice the choices, of which only the used ones are sent.
template <int Chunks>
inline constexpr gs::nn::moe_options slots{.routing = {.k = 2, .slots = {1.25}}, .chunks = Chunks};
inline constexpr gs::nn::moe_options without_slots{.routing = {.k = 2}, .experts = gs::experts::dropless(8, {4})};

template <gs::nn::moe_options Options>
inline constexpr auto moe_with_gradients = [](auto& m, auto x, auto mask, auto dy) {
  const auto y = gs::nn::moe<"expert">(m, x, mask, Options).y;
  const auto d = gs::gradients(gs::sum(y * dy), std::array{x});
  return std::tuple{y, d[0]};
};

template <gs::nn::moe_options Options>
double moe_layer(contest& all, const std::string& what) {
  using mesh = bench::expert_mesh;
  using tokens = gs::in<"GSM", gs::P<"expert", gs::none, gs::none>>;
  using program = gs::program<moe_with_gradients<Options>, mesh, tokens, gs::in<"GS", gs::P<"expert", gs::none>>, tokens>;
  const gs::dims extents{{'G', 8}, {'S', 256}, {'M', 512}, {'F', 2048}, {'E', 8}};
  std::vector<float> x(std::size_t(8 * 256 * 512)), dy(x.size());
  const std::vector<float> mask(std::size_t(8 * 256), 1.0f);
  for (std::uint32_t key = 0; auto* const v : {&x, &dy})
    gs::kernel::fill_normal(v->data(), gs::kernel::whole(1, {std::int64_t(v->size())}), 1, {1, ++key, 3});
  return all.row(what, gs::on_mpi<mesh>(MPI_COMM_WORLD), [&](const gs::cluster<mesh>& on, const auto& measure) {
    gs::executable<program> layer(on, extents);
    measure(prepared{layer.executor(), [&] { layer(x, mask, dy); }});
  });
}
void moe(contest& all) {
  const double whole = moe_layer<slots<1>>(all, "MoE layer"), two = moe_layer<slots<2>>(all, "MoE layer, 2 chunks");
  const double dropless = moe_layer<without_slots>(all, "MoE layer, dropless");
  if (all.rank() == 0) std::printf("%-22s %9.2fx as fast in 2 chunks, %.2fx dropless\n", "", whole / two, whole / dropless);
}

// Eight experts per token: with a row per expert, and with a row per node, where the experts of a node are a group. The latter in two
// chunks as well.
using node_mesh = gs::mesh<gs::axis<"node">, gs::axis<"expert">>;
template <int Groups, int Chunks>
inline constexpr auto eight_experts_with_gradients = [](auto& m, auto x, auto mask, auto dy) {
  const gs::nn::moe_options options{.routing = {.k = 8}, .experts = gs::experts::in_groups(Groups), .chunks = Chunks};
  const auto y = gs::nn::moe<"node", "expert">(m, x, mask, options).y;
  const auto d = gs::gradients(gs::sum(y * dy), std::array{x});
  return std::tuple{y, d[0]};
};

template <int Groups, int Chunks = 1>
double eight_experts(contest& all, const std::string& what, int nodes) {
  using tokens = gs::in<"GSM", gs::P<gs::axes<"expert", "node">, gs::none, gs::none>>;
  using mask_of_tokens = gs::in<"GS", gs::P<gs::axes<"expert", "node">, gs::none>>;
  using program = gs::program<eight_experts_with_gradients<Groups, Chunks>, node_mesh, tokens, mask_of_tokens, tokens>;
  const gs::dims extents{{'G', 8}, {'S', 128}, {'M', 512}, {'F', 256}, {'E', 32}};
  std::vector<float> x(std::size_t(8 * 128 * 512)), dy(x.size());
  const std::vector<float> mask(std::size_t(8 * 128), 1.0f);
  for (std::uint32_t key = 0; auto* const v : {&x, &dy})
    gs::kernel::fill_normal(v->data(), gs::kernel::whole(1, {std::int64_t(v->size())}), 1, {1, ++key, 3});
  return all.row(what, gs::on_mpi<node_mesh>(MPI_COMM_WORLD, {nodes, all.ranks() / nodes}),
                 [&](const gs::cluster<node_mesh>& on, const auto& measure) {
                   gs::executable<program> layer(on, extents);
                   measure(prepared{layer.executor(), [&] { layer(x, mask, dy); }});
                 });
}
void expert_groups(contest& all) {
  const std::vector<int> node = gs::on_mpi<gs::mesh<gs::axis<"x">>>(MPI_COMM_WORLD).backend().nodes().node;  // the node of each rank
  const int nodes = int(std::set<int>(node.begin(), node.end()).size());
  if (nodes != 2 && nodes != 4) return;
  const double rows = eight_experts<1>(all, "MoE, row per expert", nodes);
  const double once = nodes == 2 ? eight_experts<2>(all, "MoE, row per node", nodes) : eight_experts<4>(all, "MoE, row per node", nodes);
  if (all.rank() == 0) std::printf("%-22s %9.2fx as fast with a row per node\n", "", rows / once);
  if (all.ranks() > 4) return;  // otherwise no rank has a multiple of two token groups
  const double chunks = nodes == 2 ? eight_experts<2, 2>(all, "row per node, 2 chunks", nodes)
                                   : eight_experts<4, 2>(all, "row per node, 2 chunks", nodes);
  if (all.rank() == 0) std::printf("%-22s %9.2fx as fast in 2 chunks\n", "", once / chunks);
}

using grid = gs::mesh<gs::axis<"row">, gs::axis<"column">>;
using by_both = gs::P<"row", "column">;
inline constexpr auto product_of_blocks = [](auto& m) {
  return gs::annotate<by_both>(
      gs::einsum<"MK,KN->MN">(m.param("a", "MK", by_both{}, gs::init::fan_in("K")), m.param("b", "KN", by_both{}, gs::init::fan_in("K"))));
};

void product(contest& all) {
  using program = gs::program<product_of_blocks, grid>;
  constexpr std::int64_t n = 2048;
  const int rows = all.ranks() % 4 == 0 ? all.ranks() / 2 : all.ranks(), columns = all.ranks() / rows;
  const double time = all.row("product " + std::to_string(n), gs::on_mpi<grid>(MPI_COMM_WORLD, {rows, columns}),
                              [&](const gs::cluster<grid>& on, const auto& measure) {
                                gs::executable<program> multiply(on, {{'M', n}, {'K', n}, {'N', n}});
                                measure(prepared{multiply.executor(), [&] { multiply.executor().run({}); }});
                              });
#if GSHARD_BENCH_SCALAPACK
  const auto number = [](std::int64_t i, std::int64_t j) { return float((i * 31 + j * 17) % 101) / 101 - 0.5f; };
  bench::scalapack_gemm<float> theirs(rows, columns, int(n), number, number);
  all.peer("product, ScaLAPACK", time, [&] { theirs.run(); });
#else
  (void)time;
#endif
}

}  // namespace

int main(int count, char** arguments) {
  const double rate = count > 1 ? std::atof(arguments[1]) : 1e9;
  const int rounds = count > 2 ? std::atoi(arguments[2]) : 5;
  const std::string_view only = count > 3 ? arguments[3] : "";
  MPI_Init(&count, &arguments);
  {
    contest all(rate, rounds);
    if (only.empty() || only == "transformer") {
      transformer<bench::transformer_program<2>>(all, "Transformer step", 4, 4096, true);
      transformer<dense_program<gs::gradient_wire::full>>(all, "without experts", 16, 512, false);
      transformer<dense_program<gs::gradient_wire::bf16>>(all, "gradients in bf16", 16, 512, false);
    }
    if (only.empty() || only == "moe") {
      moe(all);
      expert_groups(all);
    }
    if (only.empty() || only == "product") product(all);
  }
  MPI_Finalize();
}
