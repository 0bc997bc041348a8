// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiled with OpenMP and without. Without it, everything runs on one thread.
#include <gshard/exec/kernel/threads.hpp>

#include <gshard/exec/kernel/gemm/contract.hpp>
#include <gshard/exec/kernel/move/copy.hpp>
#include <gshard/moe/routing/routing_kernel.hpp>
#include <gshard/ops/along/cumsum_kernel.hpp>
#include <gshard/ops/along/sort_kernel.hpp>
#include <gshard/exec/core_kernels/map_kernel.hpp>
#include <gshard/ops/index/gather_kernel.hpp>
#include <gshard/ops/random/dropout_kernel.hpp>
#include <gshard/ops/reduce/reduce_kernel.hpp>
#include <gshard/ops/rows/cross_entropy_kernel.hpp>
#include <gshard/ops/rows/layer_norm_kernel.hpp>
#include <gshard/ops/rows/softmax_kernel.hpp>
#include <gshard/ops/window/convolution_kernel.hpp>
#include <gshard/ops/window/pool_kernel.hpp>
#include <gshard/train/adam_kernel.hpp>

#include "support.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

using namespace test;

namespace {

/// The results of `kernel` in `size` floats on 1 thread and on more.
template <class Kernel>
void check_bits(const char* what, std::int64_t size, Kernel kernel) {
  CAPTURE(what);
  std::vector<float> one(static_cast<std::size_t>(size), 7.0F);
  kernel(one.data());
  for (const int threads : {2, 3, 5}) {
    const ks::use_threads here(threads);
    std::vector<float> several(one.size(), -7.0F);
    kernel(several.data());
    CHECK(several == one);
  }
}

constexpr auto affine = [](auto x, auto y) { return x * y + x; };

}  // namespace

TEST_CASE("parallel_for: every index once, in ranges that are worth a thread") {
  for (const int threads : {1, 2, 3, 8}) {
    const ks::use_threads here(threads);
    for (const std::int64_t n : {0, 1, 5, 100, 1001})
      for (const std::int64_t grain : {0, 1, 7, 60, 2000}) {
        std::vector<int> visits(static_cast<std::size_t>(n));
        std::atomic<int> ranges = 0;
        ks::parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
          ++ranges;
          CHECK(ks::threads() == (end - begin == n ? threads : 1));
          for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
        });
        CHECK(visits == std::vector<int>(visits.size(), 1));
        CHECK(ranges <= std::max<std::int64_t>(1, std::min<std::int64_t>(threads, n / std::max<std::int64_t>(grain, 1))));
      }
  }
}

TEST_CASE("parallel_for: throws what the first range threw, and threads go on") {
  const ks::use_threads here(3);
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::string what;
    try {
      ks::parallel_for(300, 1, [](std::int64_t begin, std::int64_t) { throw gshard::error("from " + std::to_string(begin)); });
    } catch (const gshard::error& e) {
      what = e.what();
    }
    CHECK(what == "from 0");
    CHECK(ks::threads() == 3);
  }
}

TEST_CASE("use_threads: restores what was") {
  CHECK(ks::threads() == 1);
#if defined(_OPENMP)
  const int libraries = omp_get_max_threads();
#endif
  {
    const ks::use_threads two(2);
    CHECK(ks::threads() == 2);
    {
      const ks::use_threads three(3);
      CHECK(ks::threads() == 3);
    }
    CHECK(ks::threads() == 2);
#if defined(_OPENMP)
    CHECK(omp_get_max_threads() == 2);
#endif
  }
  CHECK(ks::threads() == 1);
#if defined(_OPENMP)
  CHECK(omp_get_max_threads() == libraries);
#endif
  CHECK(ks::default_threads(1) >= 1);
  CHECK(ks::default_threads(1000000) >= 1);
}

TEST_CASE("kernels: the same bits on any number of threads") {
  std::mt19937 gen(1);
  for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>{20000, 8}, {7000, 12}, {701, 123}, {97, 1000}}) {
    CAPTURE(rows);
    CAPTURE(cols);
    const std::int64_t n = rows * cols;
    const auto x = random_values<float>(n, gen), y = random_values<float>(n, gen), gamma = random_values<float>(cols, gen);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] = static_cast<std::int32_t>(i * 7 % static_cast<std::size_t>(cols)) - (i % 11 == 0 ? 1 : 0);

    check_bits("softmax", n, [&](float* to) { ks::softmax(x.data(), to, rows, cols); });
    check_bits("softmax_grad", n, [&](float* to) { ks::softmax_grad(x.data(), y.data(), to, rows, cols); });
    check_bits("layer_norm", n, [&](float* to) { ks::layer_norm(x.data(), gamma.data(), gamma.data(), to, rows, cols, 1e-5F); });
    check_bits("layer_norm_grad", n + 2 * cols, [&](float* to) {
      ks::layer_norm_grad(x.data(), gamma.data(), y.data(), to, to + n, to + n + cols, rows, cols, 1e-5F);
    });
    check_bits("cross_entropy", rows, [&](float* to) { ks::cross_entropy(x.data(), labels.data(), to, rows, cols, 0.1F); });
    check_bits("cross_entropy_grad", n, [&](float* to) {
      ks::cross_entropy_grad(x.data(), labels.data(), y.data(), to, rows, cols, 0.1F);
    });
    check_bits("adam", 3 * n, [&](float* to) {
      for (std::int64_t i = 0; i < 3 * n; ++i) to[i] = std::abs(x[static_cast<std::size_t>(i % n)]);
      ks::adam(to, y.data(), to + n, to + 2 * n, n, 1e-3, 0.9, 0.98, 1e-9, 0.01, 3);
    });
    check_bits("dropout", n, [&](float* to) {
      ks::dropout(x.data(), to, {3, {1, rows, cols}, {2, 3, 1}, {4, rows + 5, cols + 2}}, 0.3, {1, 2, 3});
    });
    check_bits("map, rows and a broadcast", n, [&](float* to) {
      const float* const in[] = {x.data(), gamma.data()};
      const ks::index_array strides[] = {{cols, 1}, {0, 1}};
      ks::apply_rows<float>(gshard::pointwise_of<affine, 2>.f32, 2, in, strides, to, {rows, cols}, 2);
    });
    check_bits("map, one row", n, [&](float* to) {
      const float* const in[] = {x.data(), y.data()};
      const ks::index_array strides[] = {{cols, 1}, {cols, 1}};
      ks::apply_rows<float>(gshard::pointwise_of<affine, 2>.f32, 2, in, strides, to, {rows, cols}, 2);
    });
    const ks::operand_dims matrix{2, {0, 1}, {rows, cols}}, turned{2, {1, 0}, {cols, rows}}, row{1, {1}, {cols}}, column{1, {0}, {rows}};
    check_bits("transposition", n, [&](float* to) { ks::contraction<float>(matrix, turned).run(x.data(), to); });
    check_bits("sums of rows", rows, [&](float* to) { ks::contraction<float>(matrix, column).run(x.data(), to); });
    check_bits("sums of columns", cols, [&](float* to) { ks::contraction<float>(matrix, row).run(x.data(), to); });
    check_bits("products without sums", n, [&](float* to) { ks::contraction<float>(matrix, row, matrix).run(x.data(), gamma.data(), to); });
    check_bits("maxima of rows", rows, [&](float* to) {
      ks::reduction_kernel<float>(gshard::reduction::max, matrix, column).run(x.data(), to);
    });
    check_bits("products of columns", cols, [&](float* to) {
      ks::reduction_kernel<float>(gshard::reduction::prod, matrix, row).run(x.data(), to);
    });
    const auto block = [&](float* to, std::int64_t width) {
      ks::copy_block(reinterpret_cast<const std::byte*>(x.data()), {cols, 1}, reinterpret_cast<std::byte*>(to), {width, 1}, {rows, width},
                     2, 4);
    };
    check_bits("copy", n, [&](float* to) { block(to, cols); });
    check_bits("copy of a part of the columns", rows * (cols - 1), [&](float* to) { block(to, cols - 1); });
    for (const bool reverse : {false, true})
      check_bits("cumsum", 4 * (rows / 4) * cols,
                 [&](float* to) { ks::cumsum(x.data(), y.data(), to, 4, rows / 4, cols, reverse, reverse); });
    check_bits("cumsum of rows", n, [&](float* to) { ks::cumsum<float>(x.data(), nullptr, to, rows, cols, 1, false, false); });
    check_bits("block_sum", rows, [&](float* to) { ks::block_sum(x.data(), to, rows, cols, 1); });
    std::vector<std::int32_t> best(static_cast<std::size_t>(3 * rows));
    check_bits("top_k", 3 * rows, [&](float* to) {
      ks::top_k<float>(x.data(), nullptr, 0, to, best.data(), rows, cols, 1, 3, true);
      for (std::size_t i = 0; i < best.size(); ++i) to[i] += 100 * static_cast<float>(best[i]);
    });
    check_bits("scatter_along", n, [&](float* to) { ks::scatter_along(best.data(), y.data(), to, rows, 3, 1, 1, cols); });
    std::vector<std::int32_t> ids(static_cast<std::size_t>(2 * rows));
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * i % static_cast<std::size_t>(rows));
    check_bits("gather", 2 * n, [&](float* to) { ks::gather_along(x.data(), ids.data(), to, 1, {1, rows - 2, rows}, cols, 2 * rows); });
    check_bits("scatter_add", n, [&](float* to) { ks::scatter_add_along(ids.data(), x.data(), to, 1, {0, rows, rows}, cols, rows); });
  }
}

TEST_CASE("windows: the same bits on any number of threads") {
  std::mt19937 gen(4);
  const std::int64_t images = 9, width = 5000, channels = 3, features = 4;
  const auto x = random_values<float>(images * width * channels, gen), w = random_values<float>(5 * channels * features, gen);
  ks::windowed_dims a{
      .at = ks::whole(3, {images, width, channels}), .indices = ks::whole(3, {images, width, channels}), .factor = {0, 1, 2}};
  a.windows[1] = {.low = -2, .taps = 5};
  a.tap_factor[1] = 3;
  const ks::operand_dims taps{3, {3, 2, 4}, {5, channels, features}}, y{3, {0, 1, 4}, {images, width, features}};
  check_bits("convolution", images * width * features, [&](float* to) {  // by image
    ks::convolution<float>(a, taps, y, 1 << 18).run(x.data(), w.data(), to);
  });
  const auto dy = random_values<float>(images * width * features, gen);
  check_bits("the gradient of its taps", 5 * channels * features, [&](float* to) {
    ks::convolution<float>(a, y, taps, 1 << 18).run(x.data(), dy.data(), to);
  });
  std::vector<std::int32_t> tap(x.size());
  check_bits("pooling", images * width * channels, [&](float* to) {
    ks::pooling(a.at, a.indices, a.windows).run(gshard::reduction::max, x.data(), to, tap.data());
    for (std::size_t i = 0; i < tap.size(); ++i) to[i] += 100 * static_cast<float>(tap[i]);
  });
  check_bits("pooling_grad", images * width * channels, [&](float* to) {
    ks::pooling_grad(a.indices, a.indices, a.at, a.windows).run(tap.data(), x.data(), to);
  });
}

TEST_CASE("contraction: whole products for threads, and what is left over, are those of one thread") {
  std::mt19937 gen(3);
  const std::int64_t batch = 7, m = 40, k = 65, n = 50, more = 3;
  const auto a = random_values<float>(batch * more * m * k, gen), b = random_values<float>(batch * more * k * n, gen);
  // b[1, 3, 2, 4] is packed, and the sum over 1 runs around the products.
  const ks::contraction<float> sums({4, {0, 1, 2, 3}, {batch, more, m, k}}, {4, {1, 3, 0, 4}, {more, k, batch, n}},
                                    {3, {0, 2, 4}, {batch, m, n}});
  std::vector<float> one(static_cast<std::size_t>(batch * m * n));
  sums.run(a.data(), b.data(), one.data());
  for (const int threads : {2, 3, 4, 8}) {
    CAPTURE(threads);
    const ks::use_threads here(threads);
    std::vector<float> several(one.size(), 9.0F);
    sums.run(a.data(), b.data(), several.data());
    float worst = 0;
    for (std::size_t i = 0; i < one.size(); ++i) worst = std::max(worst, std::abs(one[i] - several[i]));
    CHECK(worst < 1e-4F);
  }
}

TEST_CASE("contraction: what is not finite meets empty places alike on any number of threads") {
  constexpr std::int64_t n = 256;
  const ks::operand_dims x{2, {0, 1}, {n, n}}, turned{2, {1, 0}, {n, n}}, y{2, {1, 2}, {n, n}}, z{2, {0, 2}, {n, n}};
  for (const std::int64_t last : {std::int64_t{128}, n})
    for (const ks::operand_dims& left : {x, turned}) {
      std::vector<float> a(n * n, 1.0F), b(n * n, 1.0F);
      std::fill(a.begin() + 100 * n, a.begin() + last * n, 0.0F);
      b[0] = b[120 * n] = std::numeric_limits<float>::infinity();
      const auto nans = [&](int threads) {
        const ks::use_threads here(threads);
        std::vector<float> c(n * n);
        ks::contraction<float>(left, y, z).run(a.data(), b.data(), c.data());
        std::vector<bool> found;
        for (const float v : c) found.push_back(v != v);
        return found;
      };
      for (const int threads : {2, 3, 5}) CHECK(nans(threads) == nans(1));
    }
}

TEST_CASE("routing: the same bits on any number of threads") {
  std::mt19937 gen(2);
  const ks::gating_sizes sizes{13, 500, 8, 70};
  const std::int64_t model = 40, tokens = sizes.groups * sizes.tokens, places = sizes.experts * sizes.groups * sizes.capacity;
  auto gates = random_values<float>(tokens * sizes.experts, gen);
  ks::softmax(gates.data(), gates.data(), tokens, sizes.experts);
  std::vector<std::int32_t> slot(static_cast<std::size_t>(2 * tokens));
  std::vector<float> weight(slot.size());
  ks::top_k_gating<float>(gates.data(), nullptr, slot.data(), weight.data(), nullptr, nullptr, nullptr, nullptr, sizes, true, {1, 2, 3}, 0);
  check_bits("top2_gating", 4 * tokens + 2 * sizes.groups * (1 + sizes.experts), [&](float* to) {
    std::vector<std::int32_t> taken(slot.size());
    float *const aux = to + 4 * tokens, *const load = aux + sizes.groups, *const overflow = load + sizes.groups * sizes.experts;
    float* const demand = overflow + sizes.groups;
    ks::top_k_gating<float>(gates.data(), nullptr, taken.data(), to, aux, load, overflow, demand, sizes, true, {1, 2, 3}, 0);
    for (std::size_t i = 0; i < taken.size(); ++i) to[2 * tokens + static_cast<std::int64_t>(i)] = static_cast<float>(taken[i]);
  });
  check_bits("top_k_gating_grad", tokens * sizes.experts, [&](float* to) {
    ks::top_k_gating_grad<float>(gates.data(), nullptr, slot.data(), weight.data(), gates.data(), to, sizes);
  });
  const auto x = random_values<float>(tokens * model, gen), h = random_values<float>(places * model, gen);
  const auto buffers = [&](auto* data) {
    return ks::expert_buffers<std::remove_pointer_t<decltype(data)>>{
        data, sizes.groups * sizes.capacity * model, sizes.capacity * model, model, 0, sizes.experts, model};
  };
  check_bits("dispatch", places * model, [&](float* to) { ks::dispatch<float>(slot.data(), nullptr, x.data(), buffers(to), sizes); });
  check_bits("dispatch, weighted", places * model,
             [&](float* to) { ks::dispatch<float>(slot.data(), weight.data(), x.data(), buffers(to), sizes); });
  check_bits("combine", tokens * model, [&](float* to) { ks::combine<float>(slot.data(), weight.data(), buffers(h.data()), to, sizes); });
  check_bits("combine_weight_grad", 2 * tokens,
             [&](float* to) { ks::combine_weight_grad<float>(slot.data(), buffers(h.data()), x.data(), to, sizes); });
  check_bits("one_hot", tokens * 5 * sizes.capacity, [&](float* to) { ks::one_hot<float>(slot.data(), weight.data(), to, sizes, 2, 5); });
  const auto d = random_values<float>(tokens * 5 * sizes.capacity, gen);
  check_bits("one_hot_grad", 2 * tokens, [&](float* to) { ks::one_hot_grad<float>(slot.data(), d.data(), to, sizes, 2, 5); });
}

TEST_CASE("kernels on several threads: the first bad label is named") {
  const ks::use_threads here(3);
  const std::int64_t rows = 3000, cols = 100;
  const std::vector<float> x(static_cast<std::size_t>(rows * cols));
  std::vector<float> loss(static_cast<std::size_t>(rows));
  std::vector<std::int32_t> labels(loss.size(), 0);
  labels[1500] = 100;
  labels[2900] = 200;
  CHECK_THROWS_WITH_AS(ks::cross_entropy(x.data(), labels.data(), loss.data(), rows, cols, 0.0F),
                       "cross_entropy: label 100 of row 1500 is not one of 100 classes", gshard::error);
}
