// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A distributed FFT by transposition. Each device transforms its rows by a serial library. One all_to_all gives it columns, which it
// transforms as well. Eigen's FFT uses FFTW with -DEIGEN_FFTW_DEFAULT -lfftw3 -lfftw3f.
//
//   18_fft                4 simulated devices
//   mpirun -n 3 18_fft    one device per process
#include <gshard/gshard.hpp>

#include <unsupported/Eigen/FFT>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <string_view>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::in;
using mesh = gs::mesh<gs::axis<"x">>;

// Transforms n complex numbers at data[0], data[stride], ...
template <class T>
void transform(Eigen::FFT<T>& library, std::complex<T>* data, std::int64_t n, std::int64_t stride) {
  std::vector<std::complex<T>> line(std::size_t(n), 0), result;
  for (std::int64_t i = 0; i < n; ++i) line[std::size_t(i)] = data[i * stride];
  library.fwd(result, line);
  for (std::int64_t i = 0; i < n; ++i) data[i * stride] = result[std::size_t(i)];
}

// The FFT along dim 0 or 1 of a complex matrix. That dim must be whole; the other may be sharded.
template <int Dim>
struct fft_along {
  static constexpr std::string_view name = Dim == 0 ? "fft_of_columns" : "fft_of_rows";
  static constexpr std::string_view rule = "XY->XY";
  static constexpr std::string_view whole = Dim == 0 ? "X" : "Y";
  template <class T>
  using element = std::complex<T>;

  template <class T>
  static void run(gs::local_shard<const std::complex<T>> x, gs::local_shard<std::complex<T>> y) {
    std::copy_n(x.data, x.size(), y.data);
    const auto rows = y.extent(0), columns = y.extent(1);
    Eigen::FFT<T> library;
    if constexpr (Dim == 0)
      for (std::int64_t j = 0; j < columns; ++j) transform(library, y.data + j, rows, columns);
    else
      for (std::int64_t i = 0; i < rows; ++i) transform(library, y.data + i * columns, columns, 1);
  }
};

inline constexpr auto transform_2d = [](auto&, auto x) { return gs::custom<fft_along<0>>(gs::custom<fft_along<1>>(x)); };
// The planner knows the extents. It would gather a matrix of a few kilobytes instead, in one step of lower latency.
constexpr int height = 240, width = 336;
using fft = gs::program<transform_2d, mesh, in<"X@x,Y", std::complex<double>>, gs::extent<'X', height>, gs::extent<'Y', width>>;
static_assert(fft::plan.count(op::all_to_all) == 1 && fft::plan.collectives() == 1);

void run(const gs::cluster<mesh>& cluster) {
  // A wave with 3 periods along the columns and 5 along the rows, plus another pattern.
  const double turn = 2 * std::acos(-1.0);
  std::vector<std::complex<double>> wave(height * width);
  for (int i = 0; i < height; ++i)
    for (int j = 0; j < width; ++j)
      wave[std::size_t(i * width + j)] = std::polar(1.0, turn * (3.0 * i / height + 5.0 * j / width)) + 0.1 * ((i * j) % 7);

  gs::executable<fft> run_fft(cluster, {{'X', height}, {'Y', width}});
  const auto result = run_fft(wave);  // tensor<std::complex<double>, P<none, "x">>: sharded by columns
  const std::vector<std::complex<double>> found = gs::to_global(result);

  std::vector<std::complex<double>> serial = wave;
  Eigen::FFT<double> library;
  for (int i = 0; i < height; ++i) transform(library, &serial[std::size_t(i * width)], width, 1);
  for (int j = 0; j < width; ++j) transform(library, &serial[std::size_t(j)], height, width);
  bool equal = true;
  std::size_t peak = 0;
  for (std::size_t i = 0; i < serial.size(); ++i) {
    equal = equal && std::abs(found[i] - serial[i]) <= 1e-12 * height * width;
    if (std::abs(found[i]) > std::abs(found[peak])) peak = i;
  }
  if (!cluster.backend().leader()) return;
  std::printf("the largest coefficient has the wave numbers %d and %d\n", int(peak) / width, int(peak) % width);
  std::printf("equal to the serial FFT to 1e-12: %s\n", equal ? "yes" : "no");
}

int main(int argc, char** argv) {
#if GSHARD_HAS_MPI
  MPI_Init(&argc, &argv);
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  run(ranks > 1 ? gs::on_mpi<mesh>(MPI_COMM_WORLD) : gs::simulate<mesh>(4));
  MPI_Finalize();
#else
  static_cast<void>(argc), static_cast<void>(argv);
  run(gs::simulate<mesh>(4));
#endif
}
