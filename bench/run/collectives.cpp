// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The communication of programs, compared with MPI's own calls for the same bytes, on the ranks that mpirun starts.
// usage: mpirun -n 2 bench_collectives [rounds]
#include <gshard/cluster/mpi.hpp>
#include <gshard/gshard.hpp>
#include <gshard/exec/tensor/local_blocks.hpp>

#include "timing.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {

using mesh = gs::mesh<gs::axis<"x">>;
using rows = gs::P<"x", gs::none>;
using columns = gs::P<gs::none, "x">;

template <class To>
inline constexpr auto move = [](auto&, auto x) { return gs::annotate<To>(x); };
using reshard = gs::program<move<columns>, mesh, gs::in<"AB", rows>>;
using reduce_scatter = gs::program<move<gs::P<"x">>, mesh, gs::in<"A", gs::P<gs::none, gs::partial<"x">>>>;
using all_reduce = gs::program<move<gs::P<gs::none>>, mesh, gs::in<"A", gs::P<gs::none, gs::partial<"x">>>>;
static_assert(reshard::plan.count(gs::op::all_to_all) == 1 && reduce_scatter::plan.count(gs::op::reduce_scatter) == 1 &&
              all_reduce::plan.count(gs::op::all_reduce) == 1);

constexpr std::int64_t MiB = 1 << 20;

/// Runs a program repeatedly on its first input: element i of every rank's shard is i % 1000.
template <class Program>
class runner {
 public:
  runner(const gs::any_cluster& on, const gs::dims& dims)
      : run_(std::make_shared<gs::executor>(Program::plan, gs::kernels_of<Program>, on, dims, gs::parameter_store(on))) {
    run_->agreed_by_caller();
    for (std::int64_t i = 0; i < run_->input(0).elements(0); ++i) run_->input(0).template as<float>(0)[i] = float(i % 1000);
  }
  void operator()() const { run_->run({}); }

 private:
  std::shared_ptr<gs::executor> run_;
};

class contest {
 public:
  contest(int ranks, int rank, int rounds)
      : ranks_(ranks), rank_(rank), rounds_(rounds), messages_(gs::on_mpi<mesh>(MPI_COMM_WORLD)),
        shared_(gs::on_mpi<mesh>(MPI_COMM_WORLD, {}, {.shared_memory = true})) {}

  /// Reshards an n x n matrix from rows to columns. Rank r has the n / ranks rows from r n / ranks on, and then the columns with these
  /// indices.
  void rows_to_columns(std::int64_t n) {
    const std::int64_t part = n / ranks_, block = part * part;
    std::vector<float> from(std::size_t(part * n), 1.0f), to(from.size()), packed(from.size()), received(from.size());
    const auto pack = [&](std::int64_t m) {
      for (std::int64_t i = 0; i < part; ++i)
        std::copy_n(&from[std::size_t(i * n + m * part)], part, &packed[std::size_t(m * block + i * part)]);
    };
    const int count = int(block);
    MPI_Datatype columns_of_block, one_block;
    MPI_Type_vector(int(part), int(part), int(n), MPI_FLOAT, &columns_of_block);
    MPI_Type_create_resized(columns_of_block, 0, MPI_Aint(part) * MPI_Aint(sizeof(float)), &one_block);
    MPI_Type_commit(&one_block);
    compare("reshard " + std::to_string(n) + "^2 f32, row to column",
            both<reshard>({{'A', n}, {'B', n}}),
            {{"MPI_Sendrecv",
              [&] {
                for (std::int64_t i = 0; i < part; ++i)
                  std::copy_n(&from[std::size_t(i * n + rank_ * part)], part, &to[std::size_t(rank_ * block + i * part)]);
                for (int k = 1; k < ranks_; ++k) {
                  const int next = (rank_ + k) % ranks_, before = (rank_ - k + ranks_) % ranks_;
                  pack(next);
                  MPI_Sendrecv(&packed[std::size_t(next * block)], count, MPI_FLOAT, next, 0, &to[std::size_t(before * block)], count, MPI_FLOAT,
                               before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                }
              }},
             {"MPI_Alltoall, derived types", [&] { MPI_Alltoall(from.data(), 1, one_block, to.data(), count, MPI_FLOAT, MPI_COMM_WORLD); }},
             {"MPI_Alltoall, packed",
              [&] {
                for (int m = 0; m < ranks_; ++m) pack(m);
                MPI_Alltoall(packed.data(), count, MPI_FLOAT, to.data(), count, MPI_FLOAT, MPI_COMM_WORLD);
              }}},
            rounds_ * 5);
    MPI_Type_free(&one_block);
    MPI_Type_free(&columns_of_block);
  }

  void sums(std::int64_t bytes) {
    const std::int64_t n = bytes / std::int64_t(sizeof(float));
    const int part = int(n / ranks_);
    std::vector<float> from(std::size_t(n), 1.0f), to(from.size()), pairwise(from), sum(from.size() / std::size_t(ranks_)), received(sum.size());
    compare("reduce-scatter, " + text(bytes), both<reduce_scatter>({{'A', n}}),
            {{"MPI_Reduce_scatter_block", [&] { MPI_Reduce_scatter_block(from.data(), to.data(), part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }},
             {"MPI_Sendrecv, then added",
              [&] {
                const float* so_far = &pairwise[std::size_t(rank_) * std::size_t(part)];
                for (int k = 1; k < ranks_; ++k) {
                  const int next = (rank_ + k) % ranks_, before = (rank_ - k + ranks_) % ranks_;
                  MPI_Sendrecv(&pairwise[std::size_t(next) * std::size_t(part)], part, MPI_FLOAT, next, 0, received.data(), part, MPI_FLOAT, before, 0,
                               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = so_far[i] + received[i];
                  so_far = sum.data();
                }
              }}},
            times(bytes));
    if (bytes != MiB && bytes != 16 * MiB) return;
    compare("all-reduce, " + text(bytes), both<all_reduce>({{'A', n}}),
            {{"MPI_Allreduce", [&] { MPI_Allreduce(from.data(), to.data(), int(n), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }}}, times(bytes));
  }

  void blocks(std::int64_t bytes) {
    const std::int64_t n = bytes / std::int64_t(sizeof(float));
    std::vector<float> from(std::size_t(n), 1.0f), to(from.size());
    compare("all-to-all, " + text(bytes) + " per rank", both<reshard>({{'A', ranks_}, {'B', n}}),
            {{"MPI_Alltoall",
              [&] { MPI_Alltoall(from.data(), int(n / ranks_), MPI_FLOAT, to.data(), int(n / ranks_), MPI_FLOAT, MPI_COMM_WORLD); }}},
            times(bytes));
  }

  /// Copies in both directions between row blocks of an application, with 1, 2, ... shares of the rows, and equal row blocks of a tensor.
  void local_blocks(std::int64_t bytes) {
    const std::int64_t width = 1024, n = bytes / width / std::int64_t(sizeof(float)), shares = ranks_ * (ranks_ + 1) / 2;
    const auto given = [&](std::int64_t r) { return n * (r * (r + 1) / 2) / shares; };  // the first row of rank r
    const auto wanted = [&](std::int64_t r) { return std::min(n, r * ((n + ranks_ - 1) / ranks_)); };
    const auto common = [&](auto from, std::int64_t r, auto to, std::int64_t q) {
      return std::max<std::int64_t>(0, std::min(from(r + 1), to(q + 1)) - std::max(from(r), to(q)));
    };
    const std::int64_t rows_here = given(rank_ + 1) - given(rank_);
    std::vector<float> mine(std::size_t(rows_here * width), 1.0f);
    gs::local_blocks<float, rows> exchange(messages_, {n, width}, {{mine.data(), {given(rank_), 0}, {rows_here, width}}});
    gs::tensor<float, rows> t(messages_, {n, width});
    std::vector<float> shard(std::size_t(t.local_shard(0).size()), 1.0f);
    std::vector<int> send, recv, sent(1), received(1);
    for (int r = 0; r < ranks_; ++r) {
      send.push_back(int(common(given, rank_, wanted, r) * width));
      recv.push_back(int(common(given, r, wanted, rank_) * width));
      sent.push_back(sent.back() + send.back());
      received.push_back(received.back() + recv.back());
    }
    compare("local blocks to shards, " + text(bytes),
            {{"gshard", [&] { exchange.copy_to(t); }}},
            {{"MPI_Alltoallv",
              [&] {
                MPI_Alltoallv(mine.data(), send.data(), sent.data(), MPI_FLOAT, shard.data(), recv.data(), received.data(), MPI_FLOAT,
                              MPI_COMM_WORLD);
              }}},
            times(bytes));
    compare("shards to local blocks, " + text(bytes),
            {{"gshard", [&] { exchange.copy_from(t); }}},
            {{"MPI_Alltoallv",
              [&] {
                MPI_Alltoallv(shard.data(), recv.data(), received.data(), MPI_FLOAT, mine.data(), send.data(), sent.data(), MPI_FLOAT,
                              MPI_COMM_WORLD);
              }}},
            times(bytes));
  }

 private:
  int ranks_, rank_, rounds_;
  gs::cluster<mesh> messages_, shared_;

  template <class Program>
  std::vector<bench::side> both(const gs::dims& dims) {
    return {{"gshard", runner<Program>(messages_, dims)}, {"gshard, shared memory", runner<Program>(shared_, dims)}};
  }
  void compare(const std::string& what, std::vector<bench::side> ours, const std::vector<bench::side>& theirs, int rounds) {
    ours.insert(ours.end(), theirs.begin(), theirs.end());
    bench::compare(what + ", " + std::to_string(ranks_) + " ranks", std::move(ours), rounds, rank_ == 0, [] { MPI_Barrier(MPI_COMM_WORLD); });
  }
  static std::string text(std::int64_t bytes) { return bytes < MiB ? std::to_string(bytes >> 10) + " KiB" : std::to_string(bytes / MiB) + " MiB"; }
  int times(std::int64_t bytes) const { return rounds_ * (bytes <= MiB ? 50 : 5); }
};

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 3;
  MPI_Init(&count, &arguments);
  int ranks = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  {
    contest all(ranks, rank, rounds);
    all.rows_to_columns(4096);
    for (const std::int64_t mib : {1, 4, 16, 64}) all.sums(mib * MiB);
    for (const std::int64_t kib : {64, 1024, 16384}) all.blocks(kib << 10);
    all.local_blocks(64 * MiB);
  }
  MPI_Finalize();
}
