// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/ops/attention/attention_kernel.hpp>

#include "../../exec/kernel/support.hpp"

#include <gshard/core/base/random.hpp>

#include <array>
#include <cmath>

using namespace test;

namespace {

using doubles = std::vector<double>;

/// Results by plain loops over all scores.
struct reference {
  doubles y, log_sum, dq, dk, dv;
};

reference by_loops(const doubles& q, const doubles& k, const doubles& v, const doubles& dy, const std::vector<std::int32_t>& seen,
                   const ks::attention_sizes& s, const ks::attention_dropout& drop) {
  const auto number = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  reference r;
  r.y.assign(q.size(), 0);
  r.dq = r.y;
  r.dk.assign(k.size(), 0);
  r.dv = r.dk;
  r.log_sum.assign(number(s.batch * s.queries * s.heads * s.repeats), -std::numeric_limits<double>::infinity());
  const double scale = 1 / std::sqrt(static_cast<double>(s.depth));
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t g = 0; g < s.repeats; ++g)
        for (std::int64_t i = 0; i < s.queries; ++i) {
          const std::int64_t row = ((b * s.queries + i) * s.heads + h) * s.repeats + g;
          const auto key = [&](std::int64_t j, std::int64_t d) { return number(((b * s.keys + j) * s.heads + h) * s.depth + d); };
          const auto query = [&](std::int64_t d) { return number(row * s.depth + d); };
          doubles weight(number(s.keys), 0), kept(number(s.keys), 1);
          double total = 0;
          for (std::int64_t j = 0; j < s.keys; ++j) {
            const std::int64_t from = !seen.empty() ? seen[number(b * s.keys + j)] : s.causal ? j : 0;
            if (from > s.first_query + i) continue;
            double score = 0;
            for (std::int64_t d = 0; d < s.depth; ++d) score += q[query(d)] * k[key(j, d)];
            total += weight[number(j)] = std::exp(score * scale);
          }
          if (total == 0) continue;
          r.log_sum[number(row)] = std::log(total);
          double mean = 0;
          for (std::int64_t j = 0; j < s.keys; ++j) {
            const std::int64_t line =
                (((drop.rate > 0 ? drop.batch[b] : 0) * drop.heads + drop.first_head + h) * drop.repeats + drop.first_repeat + g) *
                    drop.queries + s.first_query + i;
            if (drop.rate > 0)
              kept[number(j)] = static_cast<double>(gshard::uniform01(drop.key, static_cast<std::uint64_t>(line * s.keys + j))) >=
                                        static_cast<double>(static_cast<float>(drop.rate))
                                    ? 1 / (1 - drop.rate)
                                    : 0;
            weight[number(j)] /= total;
            for (std::int64_t d = 0; d < s.depth; ++d) {
              r.y[query(d)] += weight[number(j)] * kept[number(j)] * v[key(j, d)];
              r.dv[key(j, d)] += weight[number(j)] * kept[number(j)] * dy[query(d)];
              mean += weight[number(j)] * kept[number(j)] * v[key(j, d)] * dy[query(d)];
            }
          }
          for (std::int64_t j = 0; j < s.keys; ++j) {
            double slope = 0;
            for (std::int64_t d = 0; d < s.depth; ++d) slope += v[key(j, d)] * dy[query(d)];
            const double ds = weight[number(j)] * (slope * kept[number(j)] - mean) * scale;
            for (std::int64_t d = 0; d < s.depth; ++d) {
              r.dq[query(d)] += ds * k[key(j, d)];
              r.dk[key(j, d)] += ds * q[query(d)];
            }
          }
        }
  return r;
}

template <class T>
double distance(const std::vector<T>& a, const doubles& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (static_cast<double>(a[i]) != b[i]) worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]) / (1 + std::abs(b[i])));
  return worst;
}

template <class T>
void check_attention(const ks::attention_sizes& s, const std::vector<std::int32_t>& seen, double rate, std::mt19937& gen) {
  CAPTURE(s.queries);
  CAPTURE(s.keys);
  const std::int64_t of_q = s.batch * s.queries * s.heads * s.repeats * s.depth, of_k = s.batch * s.keys * s.heads * s.depth;
  const auto q = random_values<T>(of_q, gen, -2, 2), k = random_values<T>(of_k, gen, -2, 2), v = random_values<T>(of_k, gen, -2, 2),
             dy = random_values<T>(of_q, gen, -1, 1);
  std::vector<std::int64_t> batch(static_cast<std::size_t>(s.batch));
  for (std::size_t b = 0; b < batch.size(); ++b) batch[b] = 2 * static_cast<std::int64_t>(b) + 1;
  ks::attention_dropout drop;
  drop.rate = rate;
  drop.key = {7, 3, 2};
  drop.batch = batch.data();
  drop.first_head = 1;
  drop.heads = s.heads + 2;
  drop.repeats = s.repeats;
  drop.queries = s.queries + s.first_query;
  const auto wide = [](const std::vector<T>& x) { return doubles(x.begin(), x.end()); };
  const reference expected = by_loops(wide(q), wide(k), wide(v), wide(dy), seen, s, drop);
  std::vector<T> y(q.size() + 1, T(7)), log_sum(expected.log_sum.size()), delta(log_sum.size()), dq(q.size()), dk(k.size(), T(9)),
      dv(k.size());
  const std::int32_t* const from = seen.empty() ? nullptr : seen.data();
  ks::attention(q.data(), k.data(), v.data(), from, y.data(), log_sum.data(), s, drop);
  CHECK(y.back() == T(7));
  y.pop_back();
  const double tolerance = 200 * static_cast<double>(std::numeric_limits<T>::epsilon());
  CHECK(distance(y, expected.y) < tolerance);
  CHECK(distance(log_sum, expected.log_sum) < tolerance);
  for (std::size_t i = 0; i < delta.size(); ++i)
    for (std::size_t d = i * static_cast<std::size_t>(s.depth); d < (i + 1) * static_cast<std::size_t>(s.depth); ++d)
      delta[i] += y[d] * dy[d];
  ks::attention_grad(q.data(), k.data(), v.data(), log_sum.data(), delta.data(), dy.data(), from, dq.data(), dk.data(), dv.data(), s, drop);
  CHECK(distance(dq, expected.dq) < tolerance);
  CHECK(distance(dk, expected.dk) < tolerance);
  CHECK(distance(dv, expected.dv) < tolerance);
}

}  // namespace

TEST_CASE("attention: blocks of every size equal plain loops") {
  std::mt19937 gen(1);
  for (const bool causal : {false, true})
    for (const auto& [queries, keys] : {std::pair{1, 1}, {1, 300}, {5, 7}, {130, 270}, {257, 17}})
      for (const int repeats : {1, 3}) {
        const ks::attention_sizes s{2, queries, keys, 2, repeats, 5, 0, causal};
        check_attention<float>(s, {}, 0, gen);
        check_attention<double>(s, {}, 0.3, gen);
      }
}

TEST_CASE("attention: keys that are seen from a query on") {
  std::mt19937 gen(2);
  for (int trial = 0; trial < 8; ++trial) {
    const ks::attention_sizes s{2, 20, 290, 1, 2, 8, 5 * trial, false};
    std::vector<std::int32_t> seen(580);
    for (std::int32_t& from : seen) {
      const auto n = static_cast<std::int32_t>(gen() % 60);
      from = trial == 7 ? 2147483647 : n < 20 ? 2147483647 : trial % 2 ? n - 30 : 0;
    }
    check_attention<float>(s, seen, 0.5, gen);
    check_attention<double>(s, seen, 0, gen);
  }
}

TEST_CASE("attention: empty shards") {
  for (const auto& [batch, queries, heads, repeats] : {std::array{0, 2, 2, 1}, {1, 0, 2, 1}, {1, 2, 0, 1}, {1, 2, 2, 0}}) {
    const ks::attention_sizes s{batch, queries, 3, heads, repeats, 2, 0, true};
    const std::vector<double> some(24, 1.0);
    std::vector<double> y(24, 7.0), log_sum(24, 7.0), dk(24, 7.0), dv(24, 7.0);
    ks::attention(some.data(), some.data(), some.data(), nullptr, y.data(), log_sum.data(), s);
    ks::attention_grad(some.data(), some.data(), some.data(), some.data(), some.data(), some.data(), nullptr, y.data(), dk.data(),
                       dv.data(), s);
    CHECK(y == std::vector<double>(24, 7.0));
    const auto keys = static_cast<std::size_t>(batch * 3 * heads * 2);  // without a query, the gradients of keys are 0
    for (std::size_t i = 0; i < 24; ++i) CHECK(dk[i] == (i < keys ? 0.0 : 7.0));
    CHECK(dk == dv);
  }
}

TEST_CASE("attention: NaN is a result") {
  const ks::attention_sizes s{1, 2, 20, 1, 1, 2, 0, false};
  std::vector<float> q(4, 1.0F), k(40, 0.5F), v(40, 1.0F), y(4), log_sum(2);
  q[2] = std::numeric_limits<float>::quiet_NaN();
  ks::attention(q.data(), k.data(), v.data(), nullptr, y.data(), log_sum.data(), s);
  CHECK(y[0] == 1.0F);
  CHECK(std::isnan(y[2]));
  CHECK(std::isnan(log_sum[1]));
}

TEST_CASE("attention: what a query does not see does not reach it, even if it is not a number") {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  std::mt19937 gen(4);
  for (const double bad : {nan, inf})
    for (const int first_query : {0, 150}) {
      const ks::attention_sizes s{1, 150, 300, 2, 1, 3, first_query, false};
      const auto q = random_values<double>(900, gen, -2, 2);
      auto k = random_values<double>(1800, gen, -2, 2), v = random_values<double>(1800, gen, -2, 2);
      std::vector<std::int32_t> seen(300);
      for (std::size_t j = 0; j < seen.size(); ++j) seen[j] = j % 7 == 3 ? 2147483647 : static_cast<std::int32_t>(j);
      std::vector<double> expected(900), y(900), sums(300);
      ks::attention(q.data(), k.data(), v.data(), seen.data(), expected.data(), sums.data(), s);
      // Keys that are hidden from all queries, and the first head of a key that is hidden from some of them.
      for (std::size_t j = 3; j < 300; j += 7)
        for (std::size_t d = 0; d < 6; ++d) k[j * 6 + d] = v[j * 6 + d] = bad;
      const std::size_t later = static_cast<std::size_t>(first_query) + 72;
      v[later * 6] = bad;
      ks::attention(q.data(), k.data(), v.data(), seen.data(), y.data(), sums.data(), s);
      for (std::size_t i = 0; i < 900; ++i)
        if (i >= 72 * 6 && i % 6 == 0) CHECK_FALSE(std::isfinite(y[i]));
        else CHECK(std::abs(y[i] - expected[i]) < 1e-13);
    }
}

TEST_CASE("attention: what a query does not see does not reach gradients, nor does the query, even if it is not a number") {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  std::mt19937 gen(5);
  constexpr std::size_t n = 150, depth = 3;
  const ks::attention_sizes s{1, n, n, 1, 1, depth, 0, true};
  const auto q = random_values<double>(n * depth, gen, -2, 2), k = random_values<double>(n * depth, gen, -2, 2),
             v = random_values<double>(n * depth, gen, -2, 2), dy = random_values<double>(n * depth, gen, -1, 1);
  const auto gradients = [&](const doubles& queries, const doubles& keys, const doubles& values, const doubles& slopes) {
    doubles y(n * depth), log_sum(n), delta(n), dq(n * depth), dk(n * depth), dv(n * depth);
    ks::attention(queries.data(), keys.data(), values.data(), nullptr, y.data(), log_sum.data(), s);
    for (std::size_t i = 0; i < y.size(); ++i) delta[i / depth] += y[i] * slopes[i];
    ks::attention_grad(queries.data(), keys.data(), values.data(), log_sum.data(), delta.data(), slopes.data(), nullptr, dq.data(),
                       dk.data(), dv.data(), s);
    return std::array{dq, dk, dv};
  };
  const auto same = [](double a, double b) { return std::abs(a - b) < 1e-13; };
  const auto finite = gradients(q, k, v, dy);
  for (const double bad : {nan, inf}) {
    // The first query sees only the first key.
    doubles without = dy;
    for (std::size_t d = 0; d < depth; ++d) without[d] = 0;
    const auto expected = gradients(q, k, v, without);
    for (const bool in_query : {true, false}) {
      doubles queries = q, slopes = dy;
      (in_query ? queries : slopes)[0] = bad;
      const auto [dq, dk, dv] = gradients(queries, k, v, slopes);
      CHECK_FALSE(std::isfinite(dq[0]));
      CHECK_FALSE(std::isfinite((in_query ? dk : dv)[0]));
      int wrong = 0;
      for (std::size_t i = depth; i < n * depth; ++i) wrong += !(same(dk[i], expected[1][i]) && same(dv[i], expected[2][i]));
      CHECK(wrong == 0);
    }
    // Only the last query sees the last key.
    for (const bool in_key : {true, false}) {
      doubles keys = k, values = v;
      (in_key ? keys : values)[(n - 1) * depth] = bad;
      const auto [dq, dk, dv] = gradients(q, keys, values, dy);
      CHECK_FALSE(std::isfinite(dq[(n - 1) * depth]));
      int wrong = 0;
      for (std::size_t i = 0; i < (n - 1) * depth; ++i) wrong += !same(dq[i], finite[0][i]);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("attention: scores that are all -infinity are not the same as no keys") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const ks::attention_sizes s{1, 2, 3, 1, 1, 1, 0, false};
  const std::vector<double> q{1, 1}, k{-inf, -inf, 5}, v{1, 2, 3};
  const std::vector<std::int32_t> seen{1, 1, 9};
  std::vector<double> y(2), log_sum(2);
  ks::attention(q.data(), k.data(), v.data(), seen.data(), y.data(), log_sum.data(), s);
  CHECK(y[0] == 0);
  CHECK(log_sum[0] == -inf);
  CHECK(std::isnan(y[1]));
  CHECK(log_sum[1] == -inf);
}

TEST_CASE("attention: the least query and the most negative key have a score") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const ks::attention_sizes s{1, 1, 2, 1, 1, 9, 0, false};
  std::vector<double> q(9, 0.0), k(18, 0.0), v(18, 1.0), y(9), log_sum(1);
  q[0] = std::numeric_limits<double>::denorm_min();
  k[0] = -inf;  // the scores are -infinity and 0
  std::fill(v.begin(), v.begin() + 9, 5.0);
  ks::attention(q.data(), k.data(), v.data(), nullptr, y.data(), log_sum.data(), s);
  CHECK(y == std::vector<double>(9, 1.0));
  CHECK(log_sum[0] == 0);
}

TEST_CASE("attention: the same bits with every number of threads") {
  std::mt19937 gen(3);
  const ks::attention_sizes s{3, 140, 140, 2, 1, 16, 0, true};
  const auto x = random_values<float>(3 * 140 * 2 * 16, gen, -1, 1);
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 3}) {
    const ks::use_threads use(threads);
    std::vector<float> y(x.size()), log_sum(3 * 140 * 2), dq(x.size()), dk(x.size()), dv(x.size());
    ks::attention(x.data(), x.data(), x.data(), nullptr, y.data(), log_sum.data(), s);
    ks::attention_grad(x.data(), x.data(), x.data(), log_sum.data(), log_sum.data(), x.data(), nullptr, dq.data(), dk.data(), dv.data(), s);
    for (const auto& part : {log_sum, dq, dk, dv}) y.insert(y.end(), part.begin(), part.end());
    results.push_back(y);
  }
  CHECK(results[0] == results[1]);
}
