// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Einsum of one or two operands on one device, by matrix products or by loop nests.

#include <gshard/exec/kernel/element.hpp>
#include <gshard/exec/kernel/gemm/contract_plan.hpp>
#include <gshard/exec/kernel/gemm/factors.hpp>
#include <gshard/exec/kernel/gemm/filled_rows.hpp>
#include <gshard/exec/kernel/gemm/gemm.hpp>
#include <gshard/exec/kernel/gemm/gemm_bf16.hpp>
#include <gshard/exec/kernel/gemm/nest.hpp>
#include <gshard/exec/kernel/move/copy_words.hpp>
#include <gshard/exec/kernel/threads.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace kernel {

/// The precision to which the factors of products are rounded.
enum class precision : std::uint8_t { full, bf16 };

/// An einsum of one or two operands, prepared once and run many times: out[o] = alpha * sum of a * b over the factors that are not in the
/// result. With one operand it is a transposition, a sum over dims, a diagonal, or a combination of these. A sum over an empty range is
/// zero.
///
/// Sums of products become matrix products as large as the layouts allow, batched over strides. Operands are packed only if necessary.
/// Blocks of zero rows at the end of an operand (empty expert slots) are skipped, unless they meet a number that is not finite. (0 * inf
/// and 0 * NaN are NaN.) A contraction with `adds` adds to `out`, which may be a block of a larger tensor. Other results are contiguous.
/// With precision::bf16, products of floats use gemm_bf16.
///
/// The order of each sum is a function of the extents and strides of all factors but `batch`. Therefore an einsum has the same bits if it
/// is computed whole, or for some indices of the batch at a time. `batch` is the leading factor of the result, and both operands have it.
/// Throws gshard::error at construction if a factor has two extents, or a factor of the result is in no operand.
template <class T>
class contraction {
 public:
  contraction(const operand_dims& a, const operand_dims& b, const operand_dims& out, double alpha = 1, bool adds = false,
              precision rounds = precision::full, std::optional<int> batch = {})
      : alpha_(gshard::detail::element_from<T>(alpha)),
        adds_(adds),
        rounds_(std::is_same_v<T, float> ? rounds : precision::full),
        size_(element_count(out.rank, out.extent)) {
    detail::loop_nest<3> nest = detail::loops_of<3>("contraction", {a, b, out});
    std::optional<loop> of_batch;
    if (batch) {
      const std::size_t at = detail::loop_of_factor<3>(*batch, {a, b, out});
      of_batch = nest.at[at];
      nest.erase(at);
    }
    prepare(nest, of_batch);
  }
  contraction(const operand_dims& a, const operand_dims& out, double alpha = 1)
      : alpha_(gshard::detail::element_from<T>(alpha)), size_(element_count(out.rank, out.extent)) {
    const auto loops = detail::loops_of<2>("contraction", {a, out});
    detail::loop_nest<3> nest;
    for (std::size_t i = 0; i < loops.count; ++i)
      nest.push({loops.at[i].extent, {loops.at[i].stride[0], 0, loops.at[i].stride[1]}});
    prepare_one(nest);
  }

  /// Two operands. `out` must not overlap them.
  void run(const T* a, const T* b, T* out) const {
    thread_local std::vector<T> a_sums, b_sums;
    if (done_if_empty(out)) return;
    a = sum_first(a_sum_, a, a_sums);
    b = sum_first(b_sum_, b, b_sums);
    if constexpr (!std::is_integral_v<T>)
      if (gemm_) return run_gemm(a, b, out);
    detail::run_nest(nest_, alpha_, a, b, out, size_, adds_);
  }

  /// One operand. `out` must not overlap it.
  void run(const T* a, T* out) const {
    if (done_if_empty(out)) return;
    if (copy_)
      detail::copy_words<word>(reinterpret_cast<const std::byte*>(a), reinterpret_cast<std::byte*>(out),
                               *copy_);
    else
      detail::run_nest(nest_, alpha_, a, &one, out, size_);
  }

 private:
  using word = detail::word_of_size<sizeof(T)>;
  using loop = detail::loop<3>;
  static constexpr T one{1};

  // The sum of an operand over factors that no other tensor has.
  struct lone_sum {
    detail::nest_plan plan;
    std::int64_t size = 1;
  };

  bool done_if_empty(T* out) const {
    if (empty_ && !adds_) std::fill_n(out, size_, T(0));
    return empty_;
  }

  void prepare(detail::loop_nest<3> nest, std::optional<loop> batch) {
    empty_ = nest.iterations() == 0 || (batch && batch->extent == 0);
    if (empty_) return;
    a_sum_ = take_lone_sum(nest, batch, 0, 1);
    b_sum_ = take_lone_sum(nest, batch, 1, 0);
    detail::merge_loops(nest);
    nest_ = detail::plan_nest(nest, batch);
    if constexpr (std::is_integral_v<T>) return;  // products of integers are loops
    detail::gemm_plan plan = detail::plan_contraction(nest);
    if (rounds_ != precision::bf16 && (nest.count == 0 || plan.cost >= nest_.cost)) return;
    if (batch) plan.outer.push(*batch);
    detail::sort_loops(plan.outer, 2);
    gemm_ = plan;
  }

  void prepare_one(detail::loop_nest<3> nest) {
    empty_ = nest.iterations() == 0;
    if (empty_) return;
    detail::merge_loops(nest);
    nest_ = detail::plan_nest(nest, {});
    detail::loop_nest<2> copy;
    for (std::size_t i = 0; i < nest.count; ++i) {
      if (detail::is_sum(nest.at[i])) return;
      copy.push({nest.at[i].extent, {nest.at[i].stride[0], nest.at[i].stride[2]}});
    }
    detail::sort_loops(copy, 1);
    if (alpha_ == T(1)) copy_ = copy;
  }

  /// Removes the loops of operand `mine` that no other tensor has. The other loops then get the strides of the sum, in which the batch is
  /// outermost.
  static std::optional<lone_sum> take_lone_sum(detail::loop_nest<3>& nest, std::optional<loop>& batch, std::size_t mine,
                                               std::size_t other) {
    detail::loop_nest<3> loops;
    std::int64_t size = 1;
    bool found = false;
    detail::merge_loops(nest);
    detail::sort_loops(nest, mine);
    for (std::size_t i = nest.count; i-- > 0;) {
      detail::loop<3>& l = nest.at[i];
      if (l.stride[mine] == 0) continue;
      if (l.stride[other] == 0 && l.stride[2] == 0) {
        found = true;
        loops.push({l.extent, {l.stride[mine], 0, 0}});
      } else {
        loops.push({l.extent, {l.stride[mine], 0, size}});
        size *= l.extent;
      }
    }
    if (!found) return std::nullopt;
    for (std::size_t i = nest.count, kept = 0; i-- > 0;) {
      if (nest.at[i].stride[mine] == 0) continue;
      const detail::loop<3>& l = loops.at[kept++];
      if (l.stride[2] == 0)
        nest.erase(i);
      else
        nest.at[i].stride[mine] = l.stride[2];
    }
    std::optional<loop> batch_of_sum;
    if (batch) {
      batch_of_sum = loop{batch->extent, {batch->stride[mine], 0, size}};
      batch->stride[mine] = size;
      size *= batch->extent;
    }
    detail::merge_loops(loops);
    return lone_sum{detail::plan_nest(loops, batch_of_sum), size};
  }

  static const T* sum_first(const std::optional<lone_sum>& sum, const T* x, std::vector<T>& scratch) {
    if (!sum) return x;
    scratch.resize(std::size_t(sum->size));
    detail::run_nest(sum->plan, T(1), x, &one, scratch.data(), sum->size);
    return scratch.data();
  }

  /// Each thread computes complete blocks of the result. This is faster than sharing every product. All threads share the products of the
  /// remaining blocks.
  void run_gemm(const T* a, const T* b, T* out) const {
    const detail::loop_nest<3>& outer = gemm_->outer;
    std::int64_t sums = 1;  // products that add to one block
    for (std::size_t i = 0; i < outer.count; ++i) sums *= outer.at[i].stride[2] == 0 ? outer.at[i].extent : 1;
    const std::int64_t blocks = outer.iterations() / sums, even = blocks - blocks % threads();
    const std::int64_t size = std::max({gemm_->m * gemm_->n, gemm_->m * gemm_->k, gemm_->k * gemm_->n});
    parallel_rows(even, sums * size, [&](std::int64_t begin, std::int64_t end) { run_products(begin * sums, end * sums, a, b, out); });
    run_products(even * sums, blocks * sums, a, b, out);
  }
  void run_products(std::int64_t begin, std::int64_t end, const T* a, const T* b, T* out) const {
    thread_local std::array<std::vector<T>, 3> scratch;
    const auto& [left, right, result] = gemm_->side;
    for (std::size_t o = 0; o < 3; ++o)
      if (gemm_->side[o].packed) scratch[o].resize(std::size_t(gemm_->side[o].size));
    std::array<std::int64_t, 3> last{-1, -1, -1};
    const auto operand = [&](std::size_t o, const T* x, std::int64_t at) {
      if (!gemm_->side[o].packed) return x + at;
      if (last[o] != at)
        detail::copy_words<word>(reinterpret_cast<const std::byte*>(x + at),
                                 reinterpret_cast<std::byte*>(scratch[o].data()), gemm_->side[o].pack);
      last[o] = at;
      return static_cast<const T*>(scratch[o].data());
    };
    detail::for_each_offset(gemm_->outer, begin, end, [&](const auto& at) {
      const T *x = operand(0, a, at[0]), *y = operand(1, b, at[1]);
      T* z = result.packed ? scratch[2].data() : out + at[2];
      const T beta = adds_ || at[2] == last[2] ? T(1) : T(0);
      if (result.packed && adds_)
        detail::copy_words<word>(reinterpret_cast<const std::byte*>(out + at[2]), reinterpret_cast<std::byte*>(z), result.pack);
      if (result.transposed)
        multiply(!right.transposed, !left.transposed, gemm_->n, gemm_->m, gemm_->k, y, right.ld, x, left.ld, beta, z, result.ld);
      else
        multiply(left.transposed, right.transposed, gemm_->m, gemm_->n, gemm_->k, x, left.ld, y, right.ld, beta, z, result.ld);
      if (result.packed) unpack(scratch[2].data(), out + at[2]);
      last[2] = at[2];
    });
  }

  /// C = alpha * A B + beta * C, A being m x k.
  struct matrix_product {
    bool trans_a, trans_b;
    std::int64_t m, n, k;
    const T* a;
    std::int64_t lda;
    const T* b;
    std::int64_t ldb;
    T beta;
    T* c;
    std::int64_t ldc;

    /// Sets rows [from, to) of the result to zero, if beta is 0.
    void clear(std::int64_t from, std::int64_t to) const {
      for (std::int64_t i = from; i < to && beta == T(0); ++i) std::fill_n(c + i * ldc, n, T(0));
    }
    /// True if the columns [begin, end) of A have only small elements. The next function is the same for rows of B.
    bool has_small_columns(std::int64_t begin, std::int64_t end) const {
      return trans_a ? detail::are_small(a + begin * lda, end - begin, m, lda) : detail::are_small(a + begin, m, end - begin, lda);
    }
    bool has_small_rows(std::int64_t begin, std::int64_t end) const {
      return trans_b ? detail::are_small(b + begin, n, end - begin, ldb) : detail::are_small(b + begin * ldb, end - begin, n, ldb);
    }
  };
  using ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

  void multiply(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda, const T* b,
                std::int64_t ldb, T beta, T* c, std::int64_t ldc) const {
    const matrix_product p{trans_a, trans_b, m, n, k, a, lda, b, ldb, beta, c, ldc};
    if constexpr (std::is_floating_point_v<T>) multiply_filled(p);
    else share_rows(m, n, k, [&](std::int64_t first, std::int64_t end) { multiply_some(p, first, end, 0, k, beta); });
  }
  /// Zero rows are searched in complete operands, so that all threads of a product find the same zero rows.
  void multiply_filled(const matrix_product& p) const {
    const auto& [trans_a, trans_b, m, n, k, a, lda, b, ldb, beta, c, ldc] = p;
    constexpr std::int64_t large = 32 * 32 * 32;
    const bool may_skip = m * n * k >= large;
    if (may_skip && !trans_a && detail::ends_in_zeros(a, m, k, lda))
      return share_rows(m, n, k, [&](std::int64_t first, std::int64_t end) { multiply_filled_rows(p, first, end); });
    const bool a_ends = may_skip && trans_a && detail::ends_in_zeros(a, k, m, lda);
    if (!a_ends && !(may_skip && !trans_b && detail::ends_in_zeros(b, k, n, ldb)))
      return share_rows(m, n, k, [&](std::int64_t first, std::int64_t end) { multiply_some(p, first, end, 0, k, beta); });
    const ranges& terms = filled_terms(p, a_ends);
    share_rows(m, n, k, [&](std::int64_t first, std::int64_t end) {
      T keeps = beta;
      for (const auto& [from, to] : terms) {
        multiply_some(p, first, end, from, to, keeps);
        keeps = 1;
      }
      if (terms.empty()) p.clear(first, end);
    });
  }
  /// The terms [begin, end) of the sums in rows [first, last) of the result.
  void multiply_some(const matrix_product& p, std::int64_t first, std::int64_t last, std::int64_t begin, std::int64_t end, T keeps) const {
    product(p.trans_a, p.trans_b, last - first, p.n, end - begin,
            p.a + first * (p.trans_a ? 1 : p.lda) + begin * (p.trans_a ? p.lda : 1), p.lda,
            p.b + begin * (p.trans_b ? 1 : p.ldb), p.ldb, keeps, p.c + first * p.ldc, p.ldc);
  }
  /// Rows [first, last) of a product whose A has zero rows. These give zeros if B is small. A small row of the result proves that B is
  /// small.
  void multiply_filled_rows(const matrix_product& p, std::int64_t first, std::int64_t last) const {
    thread_local ranges filled;
    filled.clear();
    detail::for_each_filled(p.a + first * p.lda, last - first, p.k, p.lda, grain,
                            [&](std::int64_t from, std::int64_t to) { filled.emplace_back(first + from, first + to); });
    for (const auto& [from, to] : filled) multiply_some(p, from, to, 0, p.k, p.beta);
    const bool b_is_small = filled.empty() ? p.has_small_rows(0, p.k) : detail::are_small(p.c + filled[0].first * p.ldc, 1, p.n, p.ldc);
    std::int64_t next = first;
    const auto empty_until = [&](std::int64_t end) {
      if (b_is_small) p.clear(next, end);
      else if (next < end) multiply_some(p, next, end, 0, p.k, p.beta);
    };
    for (const auto& [from, to] : filled) {
      empty_until(from);
      next = to;
    }
    empty_until(last);
  }
  /// The ranges of terms that are not all zeros, if rows of A^T or rows of B are zero.
  static const ranges& filled_terms(const matrix_product& p, bool a_has_empty) {
    thread_local ranges terms;
    terms.clear();
    std::int64_t next = 0;
    const auto skip_until = [&](std::int64_t end) {
      if (next < end && !(a_has_empty ? p.has_small_rows(next, end) : p.has_small_columns(next, end))) terms.emplace_back(next, end);
    };
    const auto keep = [&](std::int64_t begin, std::int64_t end) {
      skip_until(begin);
      terms.emplace_back(begin, end);
      next = end;
    };
    if (a_has_empty) detail::for_each_filled(p.a, p.k, p.m, p.lda, grain, keep);
    else detail::for_each_filled(p.b, p.k, p.n, p.ldb, grain, keep);
    skip_until(p.k);
    return terms;
  }
  /// Calls f(begin, end) for all rows of a result. Threads share the rows of a large product as they do in other operations, so that a
  /// thread finds its operands in its cache. A single thread with an interlude computes in pieces, but only with Eigen, where pieces have
  /// the same bits.
  static void share_rows(std::int64_t m, std::int64_t n, std::int64_t k, range_function f) {
    constexpr std::int64_t large = 128 * 128 * 128, least = 4;
    if (m * n * k < large) return f(std::int64_t(0), m);
    if (threads() == 1) {
      constexpr std::int64_t piece = 1 << 26, fewest = 192;  // multiplications of a piece; its rows, because B is packed for every piece
      constexpr bool same_bits = !GSHARD_HAS_BLAS && !GSHARD_HAS_ONEDNN;
      const std::int64_t rows = std::max(fewest, piece / (n * k)) / grain * grain;
      if (!same_bits || m < rows + fewest) return f(std::int64_t(0), m);
      const std::int64_t last = (m - fewest) / rows * rows;  // no piece is shorter than `fewest`
      in_pieces(0, last, rows, f);
      return f(last, m);
    }
    parallel_for((m + grain - 1) / grain, least, [=](std::int64_t begin, std::int64_t end) { f(begin * grain, std::min(end * grain, m)); });
  }
  void product(bool trans_a, bool trans_b, std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda, const T* b,
               std::int64_t ldb, T beta, T* c, std::int64_t ldc) const {
    if constexpr (std::is_same_v<T, float>)
      if (rounds_ == precision::bf16) return gemm_bf16(trans_a, trans_b, m, n, k, alpha_, a, lda, b, ldb, beta, c, ldc);
    gemm(trans_a, trans_b, m, n, k, alpha_, a, lda, b, ldb, beta, c, ldc);
  }

  void unpack(const T* from, T* out) const {
    detail::loop_nest<2> nest = gemm_->side[2].pack;
    for (std::size_t i = 0; i < nest.count; ++i) std::swap(nest.at[i].stride[0], nest.at[i].stride[1]);
    detail::copy_words<word>(reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(out),
                             nest);
  }

  static constexpr std::int64_t grain = 16;  // rows that are skipped or computed together

  T alpha_;
  bool adds_ = false;
  precision rounds_ = precision::full;
  std::int64_t size_;
  bool empty_ = false;
  detail::nest_plan nest_;
  std::optional<detail::gemm_plan> gemm_;
  std::optional<detail::loop_nest<2>> copy_;
  std::optional<lone_sum> a_sum_, b_sum_;
};

}}}  // namespace gshard::v0::kernel
