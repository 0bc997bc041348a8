// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "scalapack_gemm.hpp"

#include <cstddef>
#include <type_traits>

extern "C" {
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridinfo(int context, int* rows, int* columns, int* row, int* column);
void Cblacs_gridexit(int context);
int numroc_(const int* n, const int* block, const int* me, const int* first, const int* processes);
void descinit_(int* layout, const int* m, const int* n, const int* row_block, const int* column_block, const int* first_row,
               const int* first_column, const int* context, const int* leading, int* problem);
void psgemm_(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k, const float* alpha, const float* a,
             const int* row_a, const int* column_a, const int* layout_a, const float* b, const int* row_b, const int* column_b,
             const int* layout_b, const float* beta, float* c, const int* row_c, const int* column_c, const int* layout_c);
void pdgemm_(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k, const double* alpha, const double* a,
             const int* row_a, const int* column_a, const int* layout_a, const double* b, const int* row_b, const int* column_b,
             const int* layout_b, const double* beta, double* c, const int* row_c, const int* column_c, const int* layout_c);
}

namespace bench {

namespace {
constexpr int block = 256, zero = 0, one = 1;

std::int64_t global(int i, int me, int processes) {
  return std::int64_t(i / block * processes + me) * block + i % block;
}
}  // namespace

template <class T>
scalapack_gemm<T>::scalapack_gemm(int rows, int columns, int n, element a, element b) : n_(n), rows_(rows), columns_(columns) {
  Cblacs_get(-1, 0, &context_);
  Cblacs_gridinit(&context_, "Row", rows, columns);
  Cblacs_gridinfo(context_, &rows, &columns, &row_, &column_);
  height_ = numroc_(&n_, &block, &row_, &zero, &rows_);
  width_ = numroc_(&n_, &block, &column_, &zero, &columns_);
  const int leading = height_ > 0 ? height_ : 1;
  int problem = 0;
  descinit_(layout_.data(), &n_, &n_, &block, &block, &zero, &zero, &context_, &leading, &problem);
  for (auto* m : {&a_, &b_, &c_}) m->resize(std::size_t(height_) * std::size_t(width_));
  for (int j = 0; j < width_; ++j)
    for (int i = 0; i < height_; ++i) {
      const std::size_t at = std::size_t(j) * std::size_t(height_) + std::size_t(i);
      a_[at] = a(global_row(i), global_column(j));
      b_[at] = b(global_row(i), global_column(j));
    }
}

template <class T>
scalapack_gemm<T>::~scalapack_gemm() {
  Cblacs_gridexit(context_);
}

template <class T>
std::int64_t scalapack_gemm<T>::global_row(int i) const {
  return global(i, row_, rows_);
}
template <class T>
std::int64_t scalapack_gemm<T>::global_column(int j) const {
  return global(j, column_, columns_);
}

template <class T>
void scalapack_gemm<T>::run() {
  const T alpha = 1, beta = 0;
  const auto multiply = [&](auto gemm) {
    gemm("N", "N", &n_, &n_, &n_, &alpha, a_.data(), &one, &one, layout_.data(), b_.data(), &one, &one, layout_.data(), &beta, c_.data(),
         &one, &one, layout_.data());
  };
  if constexpr (std::is_same_v<T, double>) multiply(pdgemm_);
  else multiply(psgemm_);
}

template <class T>
void scalapack_gemm<T>::for_each(const std::function<void(std::int64_t, std::int64_t, T)>& f) const {
  for (int j = 0; j < width_; ++j)
    for (int i = 0; i < height_; ++i) f(global_row(i), global_column(j), c_[std::size_t(j) * std::size_t(height_) + std::size_t(i)]);
}

template class scalapack_gemm<float>;
template class scalapack_gemm<double>;

}  // namespace bench
