// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/core_kernels/map_kernel.hpp>

#include "../../exec/kernel/support.hpp"

using namespace test;

namespace {

// x0 + 2 x1 + 3 x2 + ...: distinguishes all operands.
template <int Operands>
void row(const double* const* in, double* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int o = 0; o < Operands; ++o) sum += (o + 1) * in[o][i];
    out[i] = sum;
  }
}

template <int Operands>
void check(int rank, const ks::index_array& extent, const std::vector<unsigned>& present, std::mt19937& gen) {
  std::vector<std::vector<double>> data;
  std::vector<const double*> in;
  std::vector<ks::index_array> stride;
  for (int o = 0; o < Operands;
       ++o) {  // bit d of present: the operand has dim d, otherwise it is broadcast over it
    ks::index_array own = extent;
    for (std::size_t d = 0; d < static_cast<std::size_t>(rank); ++d)
      if ((present[static_cast<std::size_t>(o)] >> d & 1U) == 0) own[d] = 1;
    stride.push_back(ks::row_major_strides(rank, own));
    for (std::size_t d = 0; d < static_cast<std::size_t>(rank); ++d)
      if (own[d] != extent[d]) stride.back()[d] = 0;
    data.push_back(random_values(ks::element_count(rank, own), gen));
  }
  for (const auto& d : data) in.push_back(d.data());
  std::vector<double> out(static_cast<std::size_t>(ks::element_count(rank, extent)), 7), expected;
  for_each_index(rank, extent, [&](const ks::index_array& index, std::int64_t) {
    double sum = 0;
    for (std::size_t o = 0; o < Operands; ++o)
      sum += static_cast<double>(o + 1) * in[o][offset_of(rank, index, stride[o])];
    expected.push_back(sum);
  });
  ks::apply_rows<double>(row<Operands>, Operands, in.data(), stride.data(), out.data(), extent, rank);
  CHECK(out == expected);
}

}  // namespace

TEST_CASE("apply_rows: every broadcast pattern of two operands over rank 3") {
  std::mt19937 gen(1);
  for (const ks::index_array& extent : {ks::index_array{2, 3, 4}, {3, 1, 5}, {1, 4, 1}, {2, 0, 3}})
    for (unsigned a = 0; a < 8; ++a)
      for (unsigned b = 0; b < 8; ++b) check<2>(3, extent, {a, b}, gen);
}

TEST_CASE("apply_rows: other ranks and numbers of operands") {
  std::mt19937 gen(2);
  check<1>(0, {}, {0}, gen);
  check<6>(4, {2, 3, 2, 3}, {15, 1, 2, 4, 8, 0}, gen);
  check<3>(8, {2, 1, 2, 1, 2, 1, 2, 3}, {255, 85, 170}, gen);
}

TEST_CASE("apply_rows: dims that all operands can walk as one make one row") {
  static std::vector<std::int64_t> rows;
  rows.clear();
  const gshard::row_function<float> note = [](const float* const*, float*, std::int64_t n) { rows.push_back(n); };
  std::vector<float> x(24), y(24);
  const std::vector<const float*> in{x.data(), x.data()};
  const ks::index_array full{12, 4, 1}, bias{0, 0, 1};
  const std::vector<ks::index_array> same{full, full}, per_row{full, {3, 1, 0}}, per_column{full, bias};
  ks::apply_rows(note, 2, in.data(), same.data(), y.data(), {2, 3, 4}, 3);
  CHECK(rows == std::vector<std::int64_t>{24});
  rows.clear();
  ks::apply_rows(note, 2, in.data(), per_row.data(), y.data(), {2, 3, 4}, 3);
  CHECK(rows == std::vector<std::int64_t>(6, 4));
  rows.clear();
  ks::apply_rows(note, 2, in.data(), per_column.data(), y.data(), {2, 3, 4}, 3);
  CHECK(rows == std::vector<std::int64_t>(6, 4));
}

TEST_CASE("apply_rows: rows with any strides, shorter and longer than a block") {
  std::mt19937 gen(3);
  for (const std::int64_t n : {1, 255, 256, 257, 700})
    for (const std::int64_t a : {-2, 0, 1, 3})
      for (const std::int64_t b : {0, 1, 2}) {
        CAPTURE(n);
        CAPTURE(a);
        CAPTURE(b);
        const std::vector<double> x = random_values(3 * n, gen), y = random_values(2 * n, gen);
        const std::vector<const double*> in{a < 0 ? x.data() + 2 * (n - 1) : x.data(), y.data()};
        const std::vector<ks::index_array> stride{{a}, {b}};
        std::vector<double> out(static_cast<std::size_t>(n)), expected;
        for (std::int64_t i = 0; i < n; ++i) expected.push_back(in[0][i * a] + 2 * in[1][i * b]);
        ks::apply_rows<double>(row<2>, 2, in.data(), stride.data(), out.data(), {n}, 1);
        CHECK(out == expected);
      }
}
