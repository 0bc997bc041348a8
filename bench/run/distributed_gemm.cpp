// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// C = A B of square matrices whose rows are sharded over the ranks: gshard's plans, a ring of messages by hand, ScaLAPACK, and the local
// products alone as the lower bound. A run of a side ends when all ranks are done.
// usage: mpirun -n 2 bench_distributed_gemm [rounds] [extent]
#include <gshard/cluster/mpi_cluster.hpp>
#include <gshard/gshard.hpp>

#include "timing.hpp"

#include <mpi.h>

#ifndef GSHARD_BENCH_SCALAPACK
#define GSHARD_BENCH_SCALAPACK 0
#endif
#if GSHARD_BENCH_SCALAPACK
#include "../peers/scalapack_gemm.hpp"
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gs = gshard;

namespace {

using mesh = gs::mesh<gs::axis<"rows">>;
using by_rows = gs::P<"rows", gs::none>;

inline constexpr auto product = [](auto& m) {
  return gs::einsum<"MK,KN->MN">(m.param("a", "MK", by_rows{}, {}), m.param("b", "KN", by_rows{}, {}));
};
template <class T, std::int64_t N, class... Options>
using program = gs::program<product, mesh, gs::element<T>, gs::extent<'M', N>, gs::extent<'K', N>, gs::extent<'N', N>, Options...>;
template <class T, std::int64_t N>
using gathered = program<T, N>;
template <class T, std::int64_t N>
using looped = program<T, N, gs::loop_above<0>>;
static_assert(gathered<float, 1024>::plan.count(gs::op::all_gather) == 1 && gathered<float, 1024>::plan.steps.size() == 2);
static_assert(looped<float, 1024>::plan.count(gs::op::looped_einsum) == 1 && looped<float, 1024>::plan.steps.size() == 1);

template <class T>
T number(std::uint64_t key, std::int64_t i, std::int64_t j) {
  return T(gs::fnv1a<std::uint64_t>().add(key).add(std::uint64_t(i)).add(std::uint64_t(j)).value() % 2001) / T(1000) - T(1);
}
template <class T>
T a_at(std::int64_t i, std::int64_t j) {
  return number<T>(1, i, j);
}
template <class T>
T b_at(std::int64_t i, std::int64_t j) {
  return number<T>(2, i, j);
}

/// The rows of the three matrices on this rank.
template <class T>
struct rows_of_ranks {
  int ranks = 1, rank = 0;
  std::int64_t n = 0;
  const T *a = nullptr, *b = nullptr;

  std::int64_t begin(int of) const { return std::min(n, of * ((n + ranks - 1) / ranks)); }
  std::int64_t begin() const { return begin(rank); }
  std::int64_t count(int of) const { return begin(of + 1) - begin(of); }
  std::int64_t count() const { return count(rank); }
};

/// Sends the current block of B on and receives the next one while it is multiplied.
template <class T>
class ring_by_hand {
 public:
  explicit ring_by_hand(const rows_of_ranks<T>& of) : of_(of), c(std::size_t(of.count() * of.n)) {
    for (auto& r : room_) r.resize(std::size_t(of.count(0) * of.n));
  }

  void run() {
    const MPI_Datatype type = std::is_same_v<T, float> ? MPI_FLOAT : MPI_DOUBLE;
    const int before = (of_.rank + of_.ranks - 1) % of_.ranks, after = (of_.rank + 1) % of_.ranks;
    const T* here = of_.b;
    for (int turn = 0; turn < of_.ranks; ++turn) {
      const int whose = (of_.rank + turn) % of_.ranks, next = (whose + 1) % of_.ranks;
      const bool travels = turn + 1 < of_.ranks;
      T* const room = room_[turn % 2].data();
      MPI_Request under_way[2];
      if (travels) {
        MPI_Irecv(room, int(of_.count(next) * of_.n), type, after, 0, MPI_COMM_WORLD, &under_way[0]);
        MPI_Isend(here, int(of_.count(whose) * of_.n), type, before, 0, MPI_COMM_WORLD, &under_way[1]);
      }
      gs::kernel::gemm<T>(false, false, of_.count(), of_.n, of_.count(whose), 1, of_.a + of_.begin(whose), of_.n, here, of_.n,
                          turn == 0 ? T(0) : T(1), c.data(), of_.n);
      if (travels) MPI_Waitall(2, under_way, MPI_STATUSES_IGNORE);
      here = room;
    }
  }

 private:
  rows_of_ranks<T> of_;
  std::vector<T> room_[2];

 public:
  std::vector<T> c;
};

/// This rank's rows of C. The rank has all of B.
template <class T>
class local_product {
 public:
  explicit local_product(const rows_of_ranks<T>& of) : of_(of), b_(std::size_t(of.n * of.n)), c(std::size_t(of.count() * of.n)) {
    for (std::int64_t i = 0; i < of.n; ++i)
      for (std::int64_t j = 0; j < of.n; ++j) b_[std::size_t(i * of.n + j)] = b_at<T>(i, j);
  }
  void run() {
    gs::kernel::gemm<T>(false, false, of_.count(), of_.n, of_.n, 1, of_.a, of_.n, b_.data(), of_.n, 0, c.data(), of_.n);
  }

 private:
  rows_of_ranks<T> of_;
  std::vector<T> b_;

 public:
  std::vector<T> c;
};

/// A side of the comparison. `for_each` calls f(row, column, element) for the elements of the result on this rank.
template <class T>
struct competitor {
  using visitor = std::function<void(std::int64_t, std::int64_t, T)>;
  std::string name;
  std::function<void()> run;
  std::function<void(const visitor&)> for_each;
};

/// Checks C w = A (B w) for a vector w.
template <class T>
void verify(const competitor<T>& side, std::int64_t n, int rank) {
  const auto w = [](std::int64_t j) { return number<double>(3, j, j); };
  const auto add = [](auto& sums) { MPI_Allreduce(MPI_IN_PLACE, sums.data(), int(sums.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); };
  std::vector<double> found(std::size_t(n), 0), bw(found), expected(found);
  side.for_each([&](std::int64_t i, std::int64_t j, T c) { found[std::size_t(i)] += double(c) * w(j); });
  add(found);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) bw[std::size_t(i)] += double(b_at<T>(i, j)) * w(j);
  double worst = 0, largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double& e = expected[std::size_t(i)];
    for (std::int64_t j = 0; j < n; ++j) e += double(a_at<T>(i, j)) * bw[std::size_t(j)];
    worst = std::max(worst, std::abs(e - found[std::size_t(i)]));
    largest = std::max(largest, std::abs(e));
  }
  if (worst <= (std::is_same_v<T, float> ? 1e-5 : 1e-13) * largest) return;
  if (rank == 0) std::fprintf(stderr, "%s, %lld: differs by %g of %g\n", side.name.c_str(), static_cast<long long>(n), worst, largest);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

template <class T>
auto visit_rows(const rows_of_ranks<T>& of, const T* c) {
  return [of, c](const typename competitor<T>::visitor& f) {
    for (std::int64_t i = 0; i < of.count(); ++i)
      for (std::int64_t j = 0; j < of.n; ++j) f(of.begin() + i, j, c[i * of.n + j]);
  };
}

template <class T, std::int64_t n>
void run(const gs::cluster<mesh>& on, int rank, int rounds) {
  gs::parameter_store store(on);
  const gs::dims extents{{'M', n}, {'K', n}, {'N', n}};
  gs::executable<gathered<T, n>> gathers(on, extents, store);
  gs::executable<looped<T, n>> loops(on, extents, store);
  const auto fill = [&](const char* name, T (*at)(std::int64_t, std::int64_t)) {
    const auto& v = store.find(name)->value;
    for (std::int64_t i = 0; i < v.extent(0, 0); ++i)
      for (std::int64_t j = 0; j < n; ++j) v.as<T>(0)[i * n + j] = at(v.places[0].offset[0] + i, j);
    return v.as<T>(0);
  };
  const rows_of_ranks<T> of{on.size(), rank, n, fill("a", a_at<T>), fill("b", b_at<T>)};
  ring_by_hand<T> ring(of);
  local_product<T> local(of);
  std::vector<competitor<T>> all{
      {"gshard", [&] { gathers.executor().run({}); }, visit_rows(of, gathers.executor().output(0).template as<T>(0))},
      {"gshard, looped", [&] { loops.executor().run({}); }, visit_rows(of, loops.executor().output(0).template as<T>(0))},
      {"ring by hand", [&] { ring.run(); }, visit_rows(of, ring.c.data())},
      {"local product", [&] { local.run(); }, visit_rows(of, local.c.data())}};
#if GSHARD_BENCH_SCALAPACK
  const int ranks = on.size();
  bench::scalapack_gemm<T> flat(1, ranks, int(n), a_at<T>, b_at<T>), tall(ranks, 1, int(n), a_at<T>, b_at<T>);
  const auto visit = [](const auto& side) { return [&side](const auto& f) { side.for_each(f); }; };
  all.push_back({"ScaLAPACK, 1x" + std::to_string(ranks), [&] { flat.run(); }, visit(flat)});
  all.push_back({"ScaLAPACK, " + std::to_string(ranks) + "x1", [&] { tall.run(); }, visit(tall)});
#endif
  std::vector<bench::side> sides;
  for (const competitor<T>& c : all) {
    sides.push_back({c.name, [&c] {
                       c.run();
                       MPI_Barrier(MPI_COMM_WORLD);
                     }});
    c.run();
    verify(c, n, rank);
  }
  bench::compare((std::is_same_v<T, float> ? "gemm f32 " : "gemm f64 ") + std::to_string(n) + ", " + std::to_string(on.size()) + " ranks",
                 std::move(sides), rounds, rank == 0);
}

}  // namespace

int main(int count, char** arguments) {
  const int rounds = count > 1 ? std::atoi(arguments[1]) : 5, only = count > 2 ? std::atoi(arguments[2]) : 0;
  MPI_Init(&count, &arguments);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  {
    const auto on = gs::on_mpi<mesh>(MPI_COMM_WORLD);
    const auto both = [&]<std::int64_t N>(std::integral_constant<std::int64_t, N>, int times) {
      if (only != 0 && only != N) return;
      run<float, N>(on, rank, times);
      run<double, N>(on, rank, times);
    };
    both(std::integral_constant<std::int64_t, 1024>(), rounds);
    both(std::integral_constant<std::int64_t, 2048>(), rounds);
    both(std::integral_constant<std::int64_t, 4096>(), std::min(rounds, 2));
  }
  MPI_Finalize();
}
