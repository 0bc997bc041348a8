// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels that do little arithmetic per byte, on arrays of 64 MiB, compared with a plain loop that copies. Each copies as many bytes as the
// kernel reads and writes, so the ratio of the times is the ratio of the bandwidths.
// usage: bench_bandwidth [rounds]
#include <gshard/exec/kernel/move/fill.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/tensor/buffer.hpp>
#include <gshard/ops/rows/cross_entropy_kernel.hpp>
#include <gshard/ops/rows/layer_norm_kernel.hpp>
#include <gshard/ops/rows/softmax_kernel.hpp>
#include <gshard/train/adam_kernel.hpp>

#include "timing.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

namespace ks = gshard::kernel;

constexpr std::int64_t count = 1 << 24;  // floats per array
constexpr double array_bytes = 4.0 * double(count);

// A loop of loads and stores, as in STREAM. Without the attribute, compilers would call memcpy.
#if defined(__clang__)
[[clang::no_builtin("memcpy", "memmove")]]
#else
[[gnu::optimize("no-tree-loop-distribute-patterns")]]
#endif
void copy(const float* __restrict from, float* __restrict to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = from[i];
}

/// Memory as an executor allocates it, aligned to a cache line.
struct array {
  gshard::buffer memory;

  array(std::int64_t n, std::uint32_t key) : memory(4 * n) { ks::fill_normal(data(), ks::whole(1, {n}), 1.0, {1, key, 3}); }
  array(std::int64_t n, float value) : memory(4 * n) { std::fill_n(data(), n, value); }
  float* data() { return reinterpret_cast<float*>(memory.data()); }
};

struct arrays {
  array x{count, 1u}, y{count, 2u}, dy{count, 3u}, dx{count, 4u}, small{count, 1e-3f};
  array gamma{512, 1.5f}, beta{512, 0.5f}, dgamma{512, 0.f}, dbeta{512, 0.f}, losses{count / 8192, 1.f};
  std::vector<std::int32_t> labels = std::vector<std::int32_t>(std::size_t(count / 8192), 3);
};

/// `halves`: the number of arrays that the kernel reads and writes.
void measure(arrays& a, const std::string& what, int halves, std::function<void()> kernel, int rounds) {
  const auto copies = [&a, halves] {
    for (int left = halves; left > 0; left -= 2)
      ks::parallel_for(left == 1 ? count / 2 : count, 1 << 14,
                       [&a](std::int64_t begin, std::int64_t end) { copy(a.dy.data() + begin, a.dx.data() + begin, end - begin); });
  };
  const auto sides = bench::compare(what, {{"gshard", std::move(kernel)}, {"copy, plain loop", copies}}, rounds);
  const auto rate = [&](std::size_t side) { return 1e-9 * array_bytes * halves / bench::median(sides[side].seconds); };
  std::printf("{\"case\": \"%s\", \"side\": \"gshard\", \"GB/s\": %.1f, \"GB/s of the copy\": %.1f, \"of the copy\": %.2f}\n", what.c_str(), rate(0),
              rate(1), rate(0) / rate(1));
  std::fflush(stdout);
}

void run(int rounds) {
  const ks::use_threads sharing(ks::default_threads(1));
  arrays a;
  const auto case_of = [&](const std::string& what, int halves, std::function<void()> kernel) {
    measure(a, what, halves, std::move(kernel), rounds);
  };
  std::int64_t step = 0;
  case_of("adam", 7, [&] { ks::adam(a.x.data(), a.dy.data(), a.y.data(), a.small.data(), count, 1e-3, 0.9, 0.98, 1e-9, 0.01, ++step); });
  for (const std::int64_t cols : {8, 512}) {
    const std::string rows = ", rows of " + std::to_string(cols);
    case_of("softmax" + rows, 2, [&a, cols] { ks::softmax(a.x.data(), a.y.data(), count / cols, cols); });
    case_of("softmax gradient" + rows, 3, [&a, cols] { ks::softmax_grad(a.y.data(), a.dy.data(), a.dx.data(), count / cols, cols); });
  }
  case_of("layer norm, rows of 512", 2,
          [&] { ks::layer_norm(a.x.data(), a.gamma.data(), a.beta.data(), a.y.data(), count / 512, 512, 1e-5f); });
  case_of("layer norm gradient, rows of 512", 3, [&] {
    ks::layer_norm_grad(a.x.data(), a.gamma.data(), a.dy.data(), a.dx.data(), a.dgamma.data(), a.dbeta.data(), count / 512, 512, 1e-5f);
  });
  case_of("cross entropy, rows of 8192", 1,
          [&] { ks::cross_entropy(a.x.data(), a.labels.data(), a.losses.data(), count / 8192, 8192, 0.1f); });
  case_of("cross entropy gradient, rows of 8192", 2, [&] {
    ks::cross_entropy_grad(a.x.data(), a.labels.data(), a.losses.data(), a.y.data(), count / 8192, 8192, 0.1f);
  });
}

}  // namespace

int main(int arguments, char** values) { run(arguments > 1 ? std::atoi(values[1]) : 9); }
