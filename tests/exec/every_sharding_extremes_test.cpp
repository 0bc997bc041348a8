// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows near the largest and smallest finite numbers, and infinite ones, compared with a reference of wider range, on every mesh.
#include "run_graph.hpp"

#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/attention/attention.hpp>
#include <gshard/ops/reduce/argmax.hpp>
#include <gshard/ops/reduce/logsumexp.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/ops/rows/softmax.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace extremes {  // compiled together with other tests

namespace gs = gshard;
using gs::symbol;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using scope = gs::parameter_scope;

namespace {

using number = long double;  // the reference: neither differences nor sums of doubles overflow
using row = std::vector<number>;
static_assert(std::numeric_limits<number>::max_exponent > std::numeric_limits<double>::max_exponent);

constexpr number infinity = std::numeric_limits<number>::infinity();
constexpr std::int64_t columns = 5;

/// A row of one kind: ordinary, near the smallest or the largest number, with infinities, all -infinity, or with NaN.
template <class T>
std::vector<double> extreme_row(std::mt19937& gen) {
  using limits = std::numeric_limits<T>;
  const auto any_of = [&](const std::vector<double>& list) { return list[gen() % list.size()]; };
  const double most = limits::max(), inf = limits::infinity(), tiny = limits::denorm_min(), least = limits::min();
  const std::vector<std::vector<double>> kinds{
      {0, 1, -2.5, 3, -0.0, tiny, -least},
      {-most, -most / 2, -most * 0.75, -1e30, -1e31, -1e37},
      {most, most / 2, most * 0.75, 1e30, 1e31, 1e37},
      {-most, most, 0, -inf, 1, -1e31},
      {-inf, -most},
      {-inf},
      {inf, 1, -most, -inf},
      {std::nan(""), -inf, most, 1}};
  const std::vector<double>& kind = kinds[gen() % kinds.size()];
  std::vector<double> x;
  for (std::int64_t k = 0; k < columns; ++k) x.push_back(any_of(kind));
  return x;
}

number maximum(const row& x) {
  number best = -infinity;
  for (const number v : x) {
    if (std::isnan(v)) return v;
    best = std::max(best, v);
  }
  return best;
}
number logsumexp(const row& x) {
  const number top = maximum(x);
  if (!std::isfinite(top)) return top;
  number sum = 0;
  for (const number v : x) sum += std::exp(v - top);
  return top + std::log(sum);
}
row softmax(row x) {
  const number top = maximum(x);
  number sum = 0;
  for (number& v : x) sum += v = std::exp(v - top);
  for (number& v : x) v /= sum;
  return x;
}
row negative(row x) {
  for (number& v : x) v = -v;
  return x;
}
/// Sorts; NaN is the largest number.
row sorted(row x) {
  std::sort(x.begin(), x.end(), [](number a, number b) { return std::isnan(b) ? !std::isnan(a) : a < b; });
  return x;
}

/// A verb and its reference. The results of all rows must agree, up to a rounding relative to the result and to `measure` of the row.
struct verb {
  std::string name;
  std::vector<run_graph::input> more;  // inputs after x [A,B]
  run_graph::model program;
  std::function<row(const row& x, std::size_t at, const run_graph::arrays& sources)> expected;
  number tolerance = 0;
};

template <class T>
void check_rows(const verb& what, std::uint32_t seeds) {
  CAPTURE(what.name);
  std::vector<run_graph::input> inputs{{"AB", std::is_same_v<T, float> ? gs::dtype::f32 : gs::dtype::f64}};
  inputs.insert(inputs.end(), what.more.begin(), what.more.end());
  const run_graph::traced t = run_graph::trace(inputs, what.program);
  constexpr std::int64_t rows = 7;
  const gs::dims dims{{'A', rows}, {'B', columns}, {'Q', 2}, {'H', 1}};
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    run_graph::arrays sources = run_graph::random_sources(t, dims, seed);
    sources[0].clear();
    for (std::int64_t r = 0; r < rows; ++r)
      for (const double v : extreme_row<T>(gen)) sources[0].push_back(double(T(v)));
    // A mask. The log_sum of a part with large scores does not tell their number, so equal scores are in one part.
    if (what.more.size() > 1)
      for (std::size_t i = 0; i < sources[0].size(); ++i) sources[2][i] = double(std::hash<double>()(sources[0][i]) / 7 % 2);
    const auto check = [&](const run_graph::setting& s) {
      CAPTURE(run_graph::text_of(s));
      const run_graph::array found = run_graph::run(t, s, sources)[0];
      const std::size_t each = found.size() / std::size_t(rows);
      for (std::size_t r = 0; r < std::size_t(rows); ++r) {
        const row x(sources[0].begin() + std::ptrdiff_t(r) * columns, sources[0].begin() + std::ptrdiff_t(r + 1) * columns);
        row expected = what.expected(x, r, sources);
        for (number& v : expected)
          if (std::abs(v) > number(std::numeric_limits<T>::max())) v = v > 0 ? infinity : -infinity;
        REQUIRE(expected.size() == each);
        for (std::size_t e = 0; e < each; ++e) {
          const number v = found[r * each + e];
          const bool agrees = (std::isnan(v) && std::isnan(expected[e])) || v == expected[e] ||
                              std::abs(v - expected[e]) <= what.tolerance * number(std::numeric_limits<T>::epsilon()) *
                                                               std::max<number>(1, std::abs(expected[e]));
          CAPTURE(r);
          CAPTURE(e);
          CAPTURE(double(x[0]));
          CAPTURE(double(expected[e]));
          CAPTURE(found[r * each + e]);
          CHECK(agrees);
        }
      }
    };
    check(run_graph::serial(t, dims));
    for (const std::vector<int>& mesh : {std::vector{2}, {3}, {2, 2}}) {
      const std::vector<gs::sharding> layouts = run_graph::all_layouts(2, int(mesh.size()));
      for (const gs::sharding& layout : layouts) {
        run_graph::setting s = run_graph::serial(t, dims);
        s.mesh = mesh;
        s.layouts[0] = layout;
        s.options.uneven = true;
        check(s);
      }
    }
  }
}
void check(const verb& what, std::uint32_t seeds = 12) {
  check_rows<float>(what, seeds);
  check_rows<double>(what, seeds);
}

verb of_row(const char* name, std::function<symbol(symbol)> f, std::function<row(const row&)> expected, number tolerance = 0) {
  return {name, {}, [f](const scope&, given x) { return symbols{f(x[0])}; },
          [expected](const row& x, std::size_t, const run_graph::arrays&) { return expected(x); }, tolerance};
}

}  // namespace

TEST_CASE("extreme rows: softmax and logsumexp") {
  check(of_row("softmax", [](symbol x) { return gs::softmax(x); }, softmax, 8));
  check(of_row("logsumexp", [](symbol x) { return gs::logsumexp<"ab->a">(x); }, [](const row& x) { return row{logsumexp(x)}; }, 8));
}

TEST_CASE("extreme rows: extrema and order") {
  check(of_row("reduce_max", [](symbol x) { return gs::reduce_max<"ab->a">(x); }, [](const row& x) { return row{maximum(x)}; }));
  check(of_row("reduce_min", [](symbol x) { return gs::reduce_min<"ab->a">(x); }, [](const row& x) { return row{-maximum(negative(x))}; }));
  const auto first = [](const row& x, number best) {
    const auto at = std::find_if(x.begin(), x.end(), [&](number v) { return std::isnan(best) ? std::isnan(v) : v == best; });
    return row{number(at - x.begin())};
  };
  check(of_row("argmax", [](symbol x) { return gs::argmax<"ab->a">(x); }, [=](const row& x) { return first(x, maximum(x)); }));
  check(of_row("argmin", [](symbol x) { return gs::argmin<"ab->a">(x); }, [=](const row& x) { return first(x, -maximum(negative(x))); }));
  check(of_row("sort", [](symbol x) { return gs::sort(x, 1).values; }, sorted));
  check(of_row("top_k", [](symbol x) { return gs::top_k(x, 2).values; }, [](const row& x) {
    const row all = sorted(x);
    return row{all[columns - 1], all[columns - 2]};
  }));
  check(of_row("max_pool", [](symbol x) { return gs::max_pool(x, {{1, 3, {.low = 1, .high = 1}}}); }, [](const row& x) {
    row y;
    for (std::size_t i = 0; i < x.size(); ++i)
      y.push_back(maximum(row(x.begin() + std::ptrdiff_t(i > 0 ? i - 1 : 0), x.begin() + std::ptrdiff_t(std::min(i + 2, x.size())))));
    return y;
  }));
}

TEST_CASE("extreme rows: cross_entropy") {
  // A float tolerance: a loss is a difference of two numbers as large as the row.
  check({"cross_entropy", {{"A", gs::dtype::i32, 'B', -1}}, [](const scope&, given x) { return symbols{gs::cross_entropy(x[0], x[1])}; },
         [](const row& x, std::size_t r, const run_graph::arrays& sources) {
           if (sources[1][r] < 0) return row{0};
           return row{logsumexp(x) - x[std::size_t(sources[1][r])]};
         },
         8});
}

namespace {

/// Attention with scores x [A,B]: over the keys whose mask [A,B] is not 0, or merged from these, the other keys, and no keys.
verb attention_of_parts(bool merged) {
  const auto masked = [](given x, symbol mask) {
    const auto with_heads = [](symbol s) { return gs::expand_dims(gs::expand_dims(s, 2), 3); };
    const symbol k = with_heads(x[0]), v = with_heads(gs::cast(x[1], x[0].get().type));
    const symbol one = gs::cast(gs::expand_dims(gs::expand_dims(x[3], 2), 3), x[0].get().type);
    return gs::partial_attention(one, k, v, {.mask = mask});
  };
  return {merged ? "merge_attention" : "attention",
          {{"AB"}, {"AB", gs::dtype::i32, 'Q'}, {"AQ"}},
          [=](const scope&, given in) {
            // x[3] is all ones: queries of depth 1
            std::array<symbol, 4> x{in[0], in[1], in[2], in[3] * 0.0 + 1.0};
            if (!merged) return symbols{masked(x, x[2]).y};
            const symbol second = 1 - x[2];
            const gs::attention_part a = masked(x, x[2]), b = masked(x, second), none = masked(x, x[2] * 0);
            return symbols{gs::merge_attention(none, gs::merge_attention(gs::merge_attention(a, none), b)).y};
          },
          [=](const row& x, std::size_t r, const run_graph::arrays& sources) {
            row seen, values;
            for (std::size_t k = 0; k < x.size(); ++k)
              if (merged || sources[2][r * std::size_t(columns) + k] != 0) {
                seen.push_back(x[k]);
                values.push_back(sources[1][r * std::size_t(columns) + k]);
              }
            const row weights = softmax(seen);
            number y = 0;
            for (std::size_t k = 0; k < seen.size(); ++k) y += weights[k] * values[k];
            return row{y, y};  // two queries
          },
          16};
}

}  // namespace

TEST_CASE("extreme rows: attention, also in parts of which some hide all keys") {
  check(attention_of_parts(false));
  check(attention_of_parts(true));
}

}  // namespace extremes
