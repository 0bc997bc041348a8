// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/models/decode/beam_search.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../../complaint.hpp"

namespace gs = gshard;

namespace {

using ids = std::vector<std::int32_t>;
constexpr float no_number = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();

/// A language in which all earlier tokens determine the probabilities of the next one. Token 0 is padding, with a high probability: a
/// search that may choose it would do so.
struct language {
  std::uint32_t seed;
  std::size_t vocabulary = 5;
  static constexpr std::int32_t end = 1;

  std::vector<float> next(const ids& before) const {
    std::uint64_t hash = seed;
    for (const std::int32_t id : before) hash = (hash ^ std::uint64_t(id + 1)) * 0x9e3779b97f4a7c15u + (hash >> 29);
    std::mt19937_64 gen(hash);
    std::uniform_real_distribution<double> uniform(-3, 0);
    std::vector<double> logits(vocabulary);
    for (double& x : logits) x = uniform(gen);
    logits[0] = 1;
    double total = 0;
    for (const double x : logits) total += std::exp(x);
    std::vector<float> result;
    for (const double x : logits) result.push_back(float(x - std::log(total)));
    return result;
  }
  /// All sequences of this many steps, with the log probability of their chosen tokens.
  void add_all(const ids& before, double so_far, int steps, std::map<ids, double>& all) const {
    if (steps == 0) {
      all[before] = so_far;
      return;
    }
    const std::vector<float> p = next(before);
    for (std::int32_t id = 1; id < std::int32_t(vocabulary); ++id) {
      ids longer = before;
      longer.push_back(id);
      add_all(longer, so_far + double(p[std::size_t(id)]), id == end ? 0 : steps - 1, all);
    }
  }
};

/// Decodes with caches: each row has the tokens that it was fed, and continues another row of its group. Rows that were fed padding have no
/// numbers.
class decoder {
 public:
  decoder(const language& of, std::size_t groups, std::size_t rows) : of_(of), group_size_(rows), rows_(groups * rows) {}

  std::vector<float> operator()(const gs::beam_search& search) {
    const std::vector<ids> before = rows_;
    std::vector<float> log_probabilities;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      REQUIRE(std::size_t(search.order()[row]) < group_size_);
      rows_[row] = before[row / group_size_ * group_size_ + std::size_t(search.order()[row])];
      rows_[row].push_back(search.ids()[row]);
      CHECK(rows_[row].size() == std::size_t(search.position()) + 1);
      const bool padded = std::ranges::count(rows_[row], 0) > 0;
      const std::vector<float> next = padded ? std::vector<float>(of_.vocabulary, no_number) : of_.next(rows_[row]);
      log_probabilities.insert(log_probabilities.end(), next.begin(), next.end());
    }
    return log_probabilities;
  }

 private:
  const language& of_;
  std::size_t group_size_;
  std::vector<ids> rows_;
};

gs::beam_search decode(const language& of, const std::vector<ids>& beginnings, std::size_t groups, std::size_t rows,
                       gs::beam_options options, int steps) {
  decoder step(of, groups, rows);
  gs::beam_search search(beginnings, {groups, rows}, std::move(options));
  while (!search.done() && search.position() < steps) search.advance(step(search));
  return search;
}

}  // namespace

TEST_CASE("beam_search: finds different sequences with their probabilities, and with a wide beam the best of all") {
  constexpr int steps = 4;
  for (std::uint32_t seed = 0; seed < 20; ++seed)
    for (const double exponent : {0.0, 0.6, 1.0, 2.0}) {
      CAPTURE(seed);
      CAPTURE(exponent);
      const language of{seed};
      const ids beginning = seed % 2 == 0 ? ids{2} : ids{3, 2, 4};
      std::map<ids, double> all;
      of.add_all(beginning, 0, steps, all);
      double best = -1e9;
      const auto score = [&](const auto& h) { return h.second / std::pow(double(h.first.size() - beginning.size()), exponent); };
      for (const auto& h : all) best = std::max(best, score(h));
      for (const std::size_t width : {std::size_t(1), std::size_t(3), all.size(), all.size() + 5}) {
        CAPTURE(width);
        const gs::beam_search search =
            decode(of, {beginning}, 1, width, {.width = width, .end = language::end, .length_exponent = exponent},
                   steps + int(beginning.size()) - 1);
        REQUIRE(search.sequences() == 1);
        REQUIRE(search.beam(0).size() == std::min(width, all.size()));
        std::map<ids, double> seen;
        double before = 0;
        for (const gs::beam_hypothesis& h : search.beam(0)) {
          REQUIRE(all.count(h.ids) == 1);  // neither padding nor tokens after the end
          CHECK(h.log_probability == doctest::Approx(all[h.ids]));
          CHECK(h.score == doctest::Approx(score(*all.find(h.ids))));
          CHECK(h.ended == (h.ids.back() == language::end));
          CHECK(h.score <= before);
          before = h.score;
          seen[h.ids] = h.score;
        }
        CHECK(seen.size() == search.beam(0).size());
        if (width >= all.size()) CHECK(search.best(0).score == doctest::Approx(best));
        CHECK(&search.best(0) == &search.beam(0).front());
      }
    }
}

TEST_CASE("beam_search: a width of 1 chooses the most probable token, and ends") {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    const language of{seed};
    ids expected{3};
    for (int step = 0; step < 8 && expected.back() != language::end; ++step) {
      const std::vector<float> p = of.next(expected);
      expected.push_back(std::int32_t(std::max_element(p.begin() + 1, p.end()) - p.begin()));
    }
    const gs::beam_search search = decode(of, {{3}}, 1, 1, {.width = 1, .end = language::end}, 8);
    CHECK(search.best(0).ids == expected);
    CHECK(search.done() == (expected.back() == language::end));
  }
}

TEST_CASE("beam_search: sequences of a batch, with beginnings of several lengths, are those of one each") {
  const std::vector<ids> beginnings{{2}, {3, 4, 2}, {4, 1}, {2, 2, 2, 2}, {1}};  // an end token in a prompt ends nothing
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    const language of{seed};
    const gs::beam_options options{.width = 3, .end = language::end, .length_exponent = 1};
    using batch = std::pair<std::size_t, std::size_t>;
    for (const auto& [groups, rows] : std::vector<batch>{{1, 15}, {3, 7}, {5, 3}, {2, 11}}) {  // some rows are unused
      CAPTURE(groups);
      const gs::beam_search together = decode(of, beginnings, groups, rows, options, 9);
      for (std::size_t s = 0; s < beginnings.size(); ++s) {
        const gs::beam_search alone = decode(of, {beginnings[s]}, 1, 3, options, 9);
        REQUIRE(together.beam(s).size() == alone.beam(0).size());
        for (std::size_t k = 0; k < 3; ++k) {
          CHECK(together.beam(s)[k].ids == alone.beam(0)[k].ids);
          CHECK(together.beam(s)[k].score == alone.beam(0)[k].score);
        }
      }
    }
  }
}

TEST_CASE("beam_search: hypotheses that have ended stay until better ones are found, and the search is done when all have ended") {
  gs::beam_search search({{2}}, {1, 2}, {.width = 2, .end = 1});
  search.advance(std::vector<double>{-9, -0.5, -1, -9, 0, 0, 0, 0});
  REQUIRE(search.beam(0).size() == 2);
  CHECK(search.best(0).ids == ids{2, 1});
  CHECK(search.best(0).ended);
  CHECK(search.ids() == ids{0, 2});
  CHECK(search.order() == ids{0, 0});
  CHECK(!search.done());
  search.advance(std::vector<float>{no_number, no_number, no_number, no_number, -9, -3, -2, -0.25});  // an ended row is not read
  CHECK(search.best(0).ids == ids{2, 1});
  CHECK(search.beam(0)[1].ids == ids{2, 2, 3});
  CHECK(search.beam(0)[1].log_probability == -1.25);
  CHECK(search.ids() == ids{0, 3});
  CHECK(search.order() == ids{0, 1});
  search.advance(std::vector<float>{no_number, no_number, no_number, no_number, -9, -1, -2, -3});
  CHECK(search.beam(0)[1].ids == ids{2, 2, 3, 1});
  CHECK(search.done());
  CHECK(search.ids() == ids{0, 0});
  search.advance(std::vector<float>(8, no_number));
  CHECK(search.best(0).ids == ids{2, 1});
  CHECK(search.best(0).log_probability == -0.5);
  CHECK(search.beam(0)[1].ids == ids{2, 2, 3, 1});

  gs::beam_search displaced({{2}}, {1, 1}, {.width = 1, .end = 1, .length_exponent = 1});
  displaced.advance(std::vector<float>{0, -2, -1, -3});
  displaced.advance(std::vector<float>{0, -2, -0.5, -3});
  CHECK(displaced.best(0).ids == ids{2, 2, 2});
  CHECK(displaced.best(0).score == -0.75);

  // With the mean over their tokens, longer hypotheses replace a short one.
  for (const double exponent : {0.0, 1.0}) {
    gs::beam_search normalized({{2}}, {1, 2}, {.width = 2, .end = 1, .length_exponent = exponent});
    normalized.advance(std::vector<float>{0, -1, -1.25, -9, 0, 0, 0, 0});
    CHECK(normalized.best(0).ended);
    normalized.advance(std::vector<float>{0, 0, 0, 0, 0, -9, -0.25, -0.5});
    CHECK(normalized.best(0).ended == (exponent == 0));
    CHECK(normalized.best(0).ids == (exponent == 0 ? ids{2, 1} : ids{2, 2, 2}));
    CHECK(normalized.beam(0)[1].ids == (exponent == 0 ? ids{2, 2, 2} : ids{2, 2, 3}));
  }
}

TEST_CASE("beam_search: of equal scores, the continuation of the better hypothesis is first, then the smaller token") {
  gs::beam_search search({{1}}, {1, 3}, {.width = 3, .excluded = {}});
  search.advance(std::vector<float>(12, -1));
  REQUIRE(search.beam(0).size() == 3);
  for (std::size_t k = 0; k < 3; ++k) CHECK(search.beam(0)[k].ids == ids{1, std::int32_t(k)});
  search.advance(std::vector<float>{-4, -3, -3, -3, -5, -5, -3, -4, -3, -9, -9, -9});
  CHECK(search.beam(0)[0].ids == ids{1, 0, 1});
  CHECK(search.beam(0)[1].ids == ids{1, 0, 2});
  CHECK(search.beam(0)[2].ids == ids{1, 0, 3});
  CHECK(search.order() == ids{0, 0, 0});
  search.advance(std::vector<float>{-2, -9, -9, -9, -9, -2, -9, -9, -9, -1, -9, -2});
  CHECK(search.beam(0)[0].ids == ids{1, 0, 3, 1});
  CHECK(search.beam(0)[1].ids == ids{1, 0, 1, 0});
  CHECK(search.beam(0)[2].ids == ids{1, 0, 2, 1});
  CHECK(search.order() == ids{2, 0, 1});
}

TEST_CASE("beam_search: tokens of probability 0 are not chosen") {
  gs::beam_search search({{1}}, {1, 4}, {.width = 4, .end = 2});
  std::vector<float> p(20, -infinity);
  p[2] = -0.5f;
  p[4] = -1.5f;
  search.advance(p);
  REQUIRE(search.beam(0).size() == 2);
  CHECK(search.beam(0)[0].ids == ids{1, 2});
  CHECK(search.beam(0)[1].ids == ids{1, 4});
  search.advance(std::vector<float>(20, -infinity));  // the second one cannot be continued
  CHECK(search.beam(0).size() == 1);
  CHECK(search.done());
}

TEST_CASE("beam_search: wrong options, sizes and numbers are errors, which choose nothing") {
  const std::vector<ids> one{{1}};
  const auto made = [](const std::vector<ids>& beginnings, std::size_t groups, std::size_t rows, const gs::beam_options& options) {
    return complaint([&] { gs::beam_search(beginnings, {groups, rows}, options); });
  };
  CHECK(made(one, 1, 4, {.width = 0}) == "beam_search: the width is 0");
  CHECK(made(one, 0, 4, {}) == "beam_search: a batch of 0 groups of 4 rows has no rows");
  CHECK(made(one, 2, 3, {.width = 4}) ==
        "beam_search: 1 sequences of width 4 in a batch of 2 groups of 3 rows, which has room for 0");
  CHECK(made({{1}, {1}, {1}}, 2, 7, {.width = 4}) ==
        "beam_search: 3 sequences of width 4 in a batch of 2 groups of 7 rows, which has room for 2");
  CHECK(made({{1}, {}}, 2, 4, {}) == "beam_search: the beginning of sequence 1 has no token");
  CHECK(made({{1, -3}}, 2, 4, {}) == "beam_search: the beginning of sequence 0 has the negative token -3");
  CHECK(made(one, 1, 4, {.excluded = {-1}}) == "beam_search: the excluded token -1 is negative");
  CHECK(made(one, 1, 4, {.end = 0}) == "beam_search: the end token 0 is excluded");
  for (const double exponent : {-1.0, double(no_number), double(infinity)})
    CHECK(contains(made(one, 1, 4, {.length_exponent = exponent}), "beam_search: the length exponent is "));
  CHECK(made({}, 1, 4, {}).empty());

  gs::beam_search search({{2}, {3}}, {2, 3}, {.width = 2, .end = 1});
  const auto advanced = [&](const gs::beam_search& from, const std::vector<float>& p) {
    gs::beam_search copy = from;
    const std::string text = complaint([&] { copy.advance(p); });
    if (!text.empty()) {
      CHECK(copy.position() == from.position());
      CHECK(copy.ids() == from.ids());
      CHECK(copy.best(0).ids == from.best(0).ids);
    }
    return text;
  };
  CHECK(advanced(search, {}) == "beam_search: 0 log probabilities for 2 groups of 3 rows");
  CHECK(advanced(search, std::vector<float>(25, -1)) == "beam_search: 25 log probabilities for 2 groups of 3 rows");
  CHECK(advanced(search, std::vector<float>(6, -1)) == "beam_search: the end token 1 is not in a vocabulary of 1");
  CHECK(advanced(gs::beam_search({{2}}, {1, 1}, {.width = 1, .excluded = {0, 9}}), std::vector<float>(9, -1)) ==
        "beam_search: the excluded token 9 is not in a vocabulary of 9");
  CHECK(advanced(search, std::vector<float>(24, -infinity)) ==
        "beam_search: at position 0 no token can continue sequence 0: each is excluded or has probability 0");
  std::vector<float> p(24, -1);
  CHECK(advanced(search, p).empty());
  for (const std::size_t token : {std::size_t(0), std::size_t(3)}) {  // also of token 0, which is excluded
    p[12 + token] = no_number;
    CHECK(advanced(search, p) ==
          "beam_search: at position 0 the log probability of token " + std::to_string(token) + " in row 0 of group 1 is " +
              std::to_string(no_number));
    p[12 + token] = 2;
    CHECK(contains(advanced(search, p), "in row 0 of group 1 is 2.000000, above 0: logits less their logsumexp are log probabilities"));
    p[12 + token] = infinity;
    CHECK(contains(advanced(search, p), "is inf, above 0"));
    p[12 + token] = 1e-4f;  // within rounding
    CHECK(advanced(search, p).empty());
    p[12 + token] = -1;
  }
  for (std::size_t row = 1; row < 3; ++row) p[12 + 4 * row] = no_number;  // rows without a hypothesis
  CHECK(advanced(search, p).empty());
  search.advance(p);
  CHECK(contains(advanced(search, p), "at position 1 the log probability of token 0 in row 1 of group 1 is "));
}
