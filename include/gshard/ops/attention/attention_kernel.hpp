// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Kernels of attention and its gradient, in blocks of queries and keys (FlashAttention, arXiv 2205.14135).

#include <gshard/core/base/exponential.hpp>
#include <gshard/core/base/random.hpp>
#include <gshard/exec/bind/local_step.hpp>
#include <gshard/exec/kernel/finite.hpp>
#include <gshard/exec/kernel/gemm/gemm.hpp>
#include <gshard/exec/kernel/move/random_fill.hpp>
#include <gshard/exec/kernel/threads.hpp>
#include <gshard/exec/kernel/vector.hpp>
#include <gshard/ops/attention/attention.hpp>
#include <gshard/ops/rows/softmax_kernel.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace gshard { inline namespace v0 { namespace kernel {

/// The extents of an attention on a device. Queries and results: [batch, queries, heads, repeats, depth]. Keys and values: [batch, keys,
/// heads, depth]. Logarithms of sums: [batch, queries, heads, repeats].
struct attention_sizes {
  std::int64_t batch = 1, queries = 1, keys = 1, heads = 1, repeats = 1, depth = 1;
  std::int64_t first_query = 0;  ///< The global index of query 0.
  bool causal = false;           ///< Key j is visible from query j on.
};

/// Dropout of the attention weights. Weight (batch, head, repeat, query, key) has the random number of its global index in that order.
struct attention_dropout {
  double rate = 0;
  random_key key{};
  const std::int64_t* batch = nullptr;  ///< by local batch: its global index
  std::int64_t first_head = 0, first_repeat = 0;
  std::int64_t heads = 1, repeats = 1, queries = 1;  ///< global extents
};

namespace detail {

/// One head of one batch entry, with the memory of a block of scores.
template <class T>
class attention_head {
 public:
  static constexpr std::int64_t block_rows = 128, block_keys = 256;

  attention_head(const attention_sizes& s, const std::int32_t* seen_from, const attention_dropout& drop)
      : s_(s), drop_(drop), seen_(seen_from), scale_(T(1) / std::sqrt(T(std::max<std::int64_t>(s.depth, 1)))) {
    if (s.repeats > 0 && s.queries > 0) queries_ = std::clamp<std::int64_t>(block_rows / s.repeats, 1, s.queries);
    if (s.causal && seen_ == nullptr) {
      own_seen_.resize(std::size_t(s.keys));
      for (std::size_t j = 0; j < own_seen_.size(); ++j) own_seen_[j] = std::int32_t(j);
    }
  }

  std::int64_t query_block() const { return queries_; }
  /// The keys [first, last) of a block. Leading and trailing keys that no query of the block sees are left out.
  struct key_range {
    std::int64_t first, last;
    bool hides;  // true if some query does not see some key
  };

  void go_to(std::int64_t batch, std::int64_t head) {
    batch_ = batch;
    head_ = head;
    from_ = seen_ != nullptr ? seen_ + batch * s_.keys : own_seen_.empty() ? nullptr : own_seen_.data();
  }
  /// Calls f for all blocks of keys that a query in [begin, end) sees.
  template <class F>
  void for_each_key_block(std::int64_t begin, std::int64_t end, F f) const {
    for (std::int64_t first = 0; first < s_.keys; first += block_keys) {
      key_range r{first, std::min(first + block_keys, s_.keys), false};
      if (from_ != nullptr) {
        while (r.first < r.last && from_[r.last - 1] > s_.first_query + end - 1) --r.last;
        while (r.first < r.last && from_[r.first] > s_.first_query + end - 1) ++r.first;
        for (std::int64_t j = r.first; j < r.last; ++j) r.hides |= from_[j] > s_.first_query + begin;
      }
      if (r.first < r.last) f(r);
    }
  }

  // Offsets of rows of `depth` elements.
  std::int64_t query_at(std::int64_t i) const { return ((batch_ * s_.queries + i) * s_.heads + head_) * s_.repeats; }  // in rows
  std::int64_t key_at(std::int64_t j) const { return ((batch_ * s_.keys + j) * s_.heads + head_) * s_.depth; }
  std::int64_t key_stride() const { return s_.heads * s_.depth; }

  /// Copies the rows of queries [begin, end), all repeats.
  void pack(const T* from, std::int64_t begin, std::int64_t end, T* to) const {
    const std::int64_t row = s_.repeats * s_.depth;
    for (std::int64_t i = begin; i < end; ++i) std::copy_n(from + query_at(i) * s_.depth, row, to + (i - begin) * row);
  }

  T scale() const { return scale_; }  ///< 1 / sqrt(depth)

  /// scores = (q k^T) * scale for packed queries, -inf where a query does not see a key and in the columns after the last key. The product
  /// is scaled, not q. A subnormal q times the scale would be 0, and 0 times an infinite key is NaN.
  void score(const T* q, const T* k, std::int64_t begin, std::int64_t end, const key_range& keys, T* scores) const {
    const std::int64_t n = keys.last - keys.first, padded = (n + lanes<T> - 1) / lanes<T> * lanes<T>;
    gemm<T>(false, true, (end - begin) * s_.repeats, n, s_.depth, T(1), q, s_.depth, k + key_at(keys.first), key_stride(), T(0), scores,
            block_keys);
    constexpr T hidden = -std::numeric_limits<T>::infinity();
    T* row = scores;
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t r = 0; r < s_.repeats; ++r, row += block_keys) {
        std::fill(row + n, row + padded, hidden);
        for (std::int64_t j = 0; j < n; ++j) row[j] *= scale_;
        hide(i, keys, hidden, row);
      }
  }
  /// row[j] = x for the keys that a query does not see.
  void hide(std::int64_t query, const key_range& keys, T x, T* row) const {
    if (!keys.hides) return;
    const std::int32_t* const from = from_ + keys.first;
    const auto at = std::int32_t(s_.first_query + query);
    for (std::int64_t j = 0; j < keys.last - keys.first; ++j) row[j] = from[j] > at ? x : row[j];
  }

  /// sums += weights v for the rows of queries [begin, end); v has a row for each key. A key that a query does not see has the weight 0.
  /// Its value adds nothing, even if it is not finite.
  void add_to_queries(const T* weights, const T* v, std::int64_t begin, std::int64_t end, const key_range& keys, T* sums) const {
    const std::int64_t n = keys.last - keys.first, rows = (end - begin) * s_.repeats;
    const T* const first = v + key_at(keys.first);
    if (!keys.hides || are_finite(first, n)) {
      gemm<T>(false, false, rows, s_.depth, n, T(1), weights, block_keys, first, key_stride(), T(1), sums, s_.depth);
      return;
    }
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < n; ++j) {
        if (!sees(begin + r / s_.repeats, keys.first + j)) continue;
        for (std::int64_t d = 0; d < s_.depth; ++d) sums[r * s_.depth + d] += weights[r * block_keys + j] * first[j * key_stride() + d];
      }
  }
  /// sums += weights^T x; x has a row for each query, and sums for each key. A query adds nothing to the keys that it does not see.
  void add_to_keys(const T* weights, const T* x, std::int64_t begin, std::int64_t end, const key_range& keys, T* sums) const {
    const std::int64_t n = keys.last - keys.first, rows = (end - begin) * s_.repeats;
    T* const first = sums + key_at(keys.first);
    if (!keys.hides || all_finite(x, rows * s_.depth)) {
      gemm<T>(true, false, n, s_.depth, rows, T(1), weights, block_keys, x, s_.depth, T(1), first, key_stride());
      return;
    }
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < n; ++j) {
        if (!sees(begin + r / s_.repeats, keys.first + j)) continue;
        for (std::int64_t d = 0; d < s_.depth; ++d) first[j * key_stride() + d] += weights[r * block_keys + j] * x[r * s_.depth + d];
      }
  }
  bool sees(std::int64_t query, std::int64_t key) const { return from_ == nullptr || from_[key] <= s_.first_query + query; }
  bool sees_any(std::int64_t query) const {
    for (std::int64_t j = 0; j < s_.keys; ++j)
      if (sees(query, j)) return true;
    return false;
  }

  /// x = x / (1 - rate) where the weight is kept, else 0, for one query and a block of keys.
  void drop(std::int64_t query, std::int64_t repeat, const key_range& keys, T* x) const {
    const std::int64_t head = drop_.first_head + head_, row = drop_.first_repeat + repeat;
    const std::int64_t line = ((drop_.batch[batch_] * drop_.heads + head) * drop_.repeats + row) * drop_.queries + s_.first_query + query;
    const auto first = std::uint64_t(line * s_.keys + keys.first);
    const T scale = T(1 / (1 - drop_.rate));
    const auto threshold = static_cast<float>(drop_.rate);
    for_uniform01(drop_.key, first, std::uint64_t(keys.last - keys.first), [&](std::uint64_t begin, std::uint64_t n, const float* u) {
      T* const to = x + (begin - first);
      for (std::uint64_t j = 0; j < n; ++j) {
        const T kept = to[j] * scale;
        to[j] = u[j] >= threshold ? kept : T(0);
      }
    });
  }
  bool drops() const { return drop_.rate > 0; }

 private:
  attention_sizes s_;
  attention_dropout drop_;
  const std::int32_t* seen_;
  T scale_;
  std::vector<std::int32_t> own_seen_;
  std::int64_t queries_ = 1;  // of a block
  std::int64_t batch_ = 0, head_ = 0;
  const std::int32_t* from_ = nullptr;

  /// True if the values of n keys are finite.
  bool are_finite(const T* v, std::int64_t n) const {
    for (std::int64_t j = 0; j < n; ++j)
      if (!all_finite(v + j * key_stride(), s_.depth)) return false;
    return true;
  }
};

/// x = exp(x - top) for n elements, a multiple of a vector. Returns the sum.
template <class T>
T exponentials(T* x, std::int64_t n, T top) {
  vector<T> total{};
  for (std::int64_t j = 0; j < n; j += lanes<T>) {
    const vector<T> e = falling_exponential<T>(load<T>(x + j) - top);
    total += e;
    store<T>(e, x + j);
  }
  return across<T>(total, plus)[0];
}

/// Memory of the calling thread, reused by later calls.
template <class T, int Number>
T* attention_room(std::int64_t n) {
  thread_local std::vector<T> room;
  if (room.size() < std::size_t(n)) room.resize(std::size_t(n));
  return room.data();
}

}  // namespace detail

/// y = softmax(q k^T / sqrt(depth)) v per head, and log_sum = log(sum exp(scores)) of every query. Query i sees key j if
/// i >= seen_from[batch, j]. If `seen_from` is null, all keys are visible, or if causal, the keys up to the query. A query that sees no key
/// has the result 0, and the log_sum -infinity. A key or value that a query does not see does not change its result, even if it is NaN.
template <class T>
void attention(const T* q, const T* k, const T* v, const std::int32_t* seen_from, T* y, T* log_sum, const attention_sizes& s,
               const attention_dropout& drop = {}) {
  if (s.batch * s.queries * s.heads * s.repeats == 0) return;
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  constexpr std::int64_t width = detail::attention_head<T>::block_keys;
  const detail::attention_head<T> like(s, seen_from, drop);
  const std::int64_t step = like.query_block(), blocks = (s.queries + step - 1) / step, most = step * s.repeats;
  const std::int64_t cost = most * s.keys * s.depth / 8 + 1, grain = (std::int64_t{1} << 14) / cost + 1;
  parallel_for(s.batch * s.heads * blocks, grain, [&](std::int64_t first, std::int64_t last) {
    detail::attention_head<T> head = like;
    T* const packed = detail::attention_room<T, 0>(2 * most * s.depth), *const sums = packed + most * s.depth;
    T* const scores = detail::attention_room<T, 1>(most * width);
    T* const top = detail::attention_room<T, 2>(2 * most), *const total = top + most;
    for (std::int64_t task = first; task < last; ++task) {
      head.go_to(task / blocks / s.heads, task / blocks % s.heads);
      const std::int64_t begin = task % blocks * step, end = std::min(begin + step, s.queries), n_rows = (end - begin) * s.repeats;
      head.pack(q, begin, end, packed);
      std::fill_n(top, n_rows, lowest);
      std::fill_n(total, n_rows, T(0));
      std::fill_n(sums, n_rows * s.depth, T(0));
      head.for_each_key_block(begin, end, [&](const auto& keys) {
        head.score(packed, k, begin, end, keys, scores);
        const std::int64_t n = keys.last - keys.first, padded = (n + detail::lanes<T> - 1) / detail::lanes<T> * detail::lanes<T>;
        for (std::int64_t r = 0; r < n_rows; ++r) {
          T* const row = scores + r * width;
          const T before = top[r];
          top[r] = std::max(before, detail::across<T>(detail::maxima(padded, row), detail::larger_number)[0]);
          const T base = top[r] == lowest ? T(0) : top[r];
          const T rest = before == lowest ? T(0) : gshard::detail::exponential(before - base);
          total[r] = total[r] * rest + detail::exponentials(row, padded, base);
          if (rest != T(1))
            for (std::int64_t d = r * s.depth; d < (r + 1) * s.depth; ++d) sums[d] *= rest;
          if (head.drops()) head.drop(begin + r / s.repeats, r % s.repeats, keys, row);
        }
        head.add_to_queries(scores, v, begin, end, keys, sums);
      });
      for (std::int64_t i = begin, r = 0; i < end; ++i)
        for (std::int64_t at = head.query_at(i); at < head.query_at(i) + s.repeats; ++at, ++r) {
          const bool all_hidden = total[r] == T(0) && !head.sees_any(i);
          const T share = all_hidden ? T(0) : 1 / total[r];  // if all scores are -infinity, the result is NaN, as for softmax
          for (std::int64_t d = 0; d < s.depth; ++d) y[at * s.depth + d] = sums[r * s.depth + d] * share;
          log_sum[at] = top[r] + std::log(total[r]);
        }
    }
  });
}

/// The gradients of `attention`. A key or value that a query does not see does not change them. The weights are recomputed from q, k and
/// `log_sum`. delta = sum(y * dy) - dlog_sum, by query. Threads share the heads of all batch entries.
template <class T>
void attention_grad(const T* q, const T* k, const T* v, const T* log_sum, const T* delta, const T* dy, const std::int32_t* seen_from,
                    T* dq, T* dk, T* dv, const attention_sizes& s, const attention_dropout& drop = {}) {
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  constexpr std::int64_t width = detail::attention_head<T>::block_keys;
  const detail::attention_head<T> like(s, seen_from, drop);
  const std::int64_t step = like.query_block(), most = step * s.repeats;
  const std::int64_t cost = s.queries * s.repeats * s.keys * s.depth / 4 + 1, grain = (std::int64_t{1} << 14) / cost + 1;
  parallel_for(s.batch * s.heads, grain, [&](std::int64_t first, std::int64_t last) {
    detail::attention_head<T> head = like;
    T* const packed = detail::attention_room<T, 0>(3 * most * s.depth), *const slope = packed + most * s.depth,
      *const sums = slope + most * s.depth;
    T* const weights = detail::attention_room<T, 1>(3 * most * width), *const dweights = weights + most * width,
      *const kept = dweights + most * width;
    for (std::int64_t task = first; task < last; ++task) {
      head.go_to(task / s.heads, task % s.heads);
      for (std::int64_t j = 0; j < s.keys; ++j) {
        std::fill_n(dk + head.key_at(j), s.depth, T(0));
        std::fill_n(dv + head.key_at(j), s.depth, T(0));
      }
      for (std::int64_t begin = 0; begin < s.queries; begin += step) {
        const std::int64_t end = std::min(begin + step, s.queries), n_rows = (end - begin) * s.repeats;
        head.pack(q, begin, end, packed);
        head.pack(dy, begin, end, slope);
        std::fill_n(sums, n_rows * s.depth, T(0));
        head.for_each_key_block(begin, end, [&](const auto& keys) {
          const std::int64_t n = keys.last - keys.first, padded = (n + detail::lanes<T> - 1) / detail::lanes<T> * detail::lanes<T>;
          const std::int64_t at = head.key_at(keys.first), stride = head.key_stride();
          head.score(packed, k, begin, end, keys, weights);
          gemm<T>(false, true, n_rows, n, s.depth, T(1), slope, s.depth, v + at, stride, T(0), dweights, width);
          for (std::int64_t r = 0; r < n_rows; ++r) {
            T *const p = weights + r * width, *const d = dweights + r * width;
            const std::int64_t query = begin + r / s.repeats, row = head.query_at(query) + r % s.repeats;
            const bool all_hidden = log_sum[row] == lowest && !head.sees_any(query);
            const T mean = all_hidden ? T(0) : delta[row];
            detail::exponentials(p, padded, all_hidden ? T(0) : log_sum[row]);
            if (head.drops()) {
              T* const c = kept;  // the factors of dropout
              std::fill_n(c, n, T(1));
              head.drop(query, r % s.repeats, keys, c);
              for (std::int64_t j = 0; j < n; ++j) {
                const T full = p[j];
                p[j] = full * c[j];
                d[j] = full * (d[j] * c[j] - mean) * head.scale();
              }
            } else {
              for (std::int64_t j = 0; j < n; ++j) d[j] = p[j] * (d[j] - mean) * head.scale();
            }
            for (T* const x : {p, d}) head.hide(query, keys, T(0), x);  // hidden entries are NaN if the query has a NaN
          }
          head.add_to_keys(weights, slope, begin, end, keys, dv);
          head.add_to_keys(dweights, packed, begin, end, keys, dk);
          head.add_to_queries(dweights, k, begin, end, keys, sums);
        });
        const std::int64_t row = s.repeats * s.depth;
        for (std::int64_t i = begin; i < end; ++i) std::copy_n(sums + (i - begin) * row, row, dq + head.query_at(i) * s.depth);
      }
    }
  });
}

}}}  // namespace gshard::v0::kernel

namespace gshard { inline namespace v0 { namespace detail {

/// The shapes of an attention on a device, and the positions of its heads and batch entries in the whole tensor.
struct attention_place {
  kernel::attention_sizes sizes;
  double rate = 0;
  std::uint32_t key = 0;
  std::vector<std::int64_t> batch;
  kernel::attention_dropout where;  // without the batch and the key of a run

  template <class T>
  explicit attention_place(const local_step<T>& step)
      : rate(own<attention_attributes>(step.n).dropout), key(std::uint32_t(step.n.attr.key)) {
    const bound_value &q = step.in_value(0), &k = step.in_value(1);
    const kernel::placement& at = step.in_place(0);
    const int batches = k.rank() - 3, heads = batches + 1, last = q.rank() - 1;
    const bool grouped = q.rank() > k.rank();
    const auto extent = [&](int d) { return at.extent[std::size_t(d)]; };
    sizes = {q.span(step.device, 0, batches), extent(batches), k.extent(step.device, batches), extent(heads),
             grouped ? extent(heads + 1) : 1, extent(last),    at.offset[std::size_t(batches)], own<attention_attributes>(step.n).causal};
    check_indices("attention", k.extents[std::size_t(batches)] + q.extents[std::size_t(batches)]);
    where.first_head = at.offset[std::size_t(heads)];
    where.first_repeat = grouped ? at.offset[std::size_t(heads) + 1] : 0;
    where.heads = q.extents[std::size_t(heads)];
    where.repeats = grouped ? q.extents[std::size_t(heads) + 1] : 1;
    where.queries = q.extents[std::size_t(batches)];
    for (std::int64_t b = 0; rate > 0 && b < sizes.batch; ++b) {
      std::int64_t global = 0, rest = b, stride = 1;
      for (int d = batches; d-- > 0; rest /= extent(d), stride *= q.extents[std::size_t(d)])
        global += (rest % extent(d) + at.offset[std::size_t(d)]) * stride;
      batch.push_back(global);
    }
  }
  kernel::attention_dropout dropout(const run_context& run) const {
    kernel::attention_dropout d = where;
    d.rate = rate;
    d.key = random_key{run.seed, run.step, key};
    d.batch = batch.data();
    return d;
  }
};

template <class T>
action bind(kernel_of<op::attention>, const local_step<T>& step) {
  return [q = step.in(0), k = step.in(1), v = step.in(2), seen_from = step.n.inputs > 3 ? step.ids(3) : nullptr, y = step.out(0),
          log_sum = step.out(1), at = attention_place(step)](const run_context& run) {
    kernel::attention<T>(q, k, v, seen_from, y, log_sum, at.sizes, at.dropout(run));
  };
}

template <class T>
action bind(kernel_of<op::attention_grad>, const local_step<T>& step) {
  return [q = step.in(0), k = step.in(1), v = step.in(2), log_sum = step.in(3), delta = step.in(4), dy = step.in(5),
          seen_from = step.n.inputs > 6 ? step.ids(6) : nullptr, dq = step.out(0), dk = step.out(1), dv = step.out(2),
          at = attention_place(step)](const run_context& run) {
    kernel::attention_grad<T>(q, k, v, log_sum, delta, dy, seen_from, dq, dk, dv, at.sizes, at.dropout(run));
  };
}

}}}  // namespace gshard::v0::detail
