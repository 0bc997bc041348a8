// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "beam.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace tr = translate;

namespace {

using ids = std::vector<std::int32_t>;

// A language in which the next piece depends on the last one. The special pieces are likely: a search that
// may write them would.
struct markov_model {
  static constexpr std::size_t size = tr::token::specials + 3;
  std::vector<float> log_probability;

  explicit markov_model(std::uint32_t seed) {
    std::mt19937 gen(seed);
    std::uniform_real_distribution<float> uniform(-4, -0.1F);
    for (std::size_t i = 0; i < size * size; ++i) log_probability.push_back(uniform(gen));
    for (std::size_t last = 0; last < size; ++last)
      for (std::int32_t id : {tr::token::padding, tr::token::begin, tr::token::unknown})
        log_probability[last * size + std::size_t(id)] = 0;
  }
  double next(std::int32_t last, std::int32_t id) const {
    return double(log_probability[std::size_t(last) * size + std::size_t(id)]);
  }
  std::vector<tr::hypothesis> advance(const std::vector<tr::hypothesis>& beam, std::size_t width) const {
    std::vector<float> rows;
    for (const tr::hypothesis& h : beam) {
      const auto row = log_probability.begin() + h.ids.back() * std::ptrdiff_t(size);
      rows.insert(rows.end(), row, row + std::ptrdiff_t(size));
    }
    return tr::advance(beam, width, rows, size);
  }
  std::vector<tr::hypothesis> search(std::size_t width, int steps) const {
    std::vector<tr::hypothesis> beam(1);
    for (; steps > 0; --steps) beam = advance(beam, width);
    return beam;
  }
  /// All that can be written in so many steps.
  void write_all(const ids& text, double log_probability_so_far, int steps,
                 std::map<ids, double>& all) const {
    if (steps == 0) {
      all[text] = log_probability_so_far;
      return;
    }
    ids ended = text;
    ended.push_back(tr::token::end);
    all[ended] = log_probability_so_far + next(text.back(), tr::token::end);
    for (std::int32_t id = tr::token::specials; id < std::int32_t(size); ++id) {
      ids longer = text;
      longer.push_back(id);
      write_all(longer, log_probability_so_far + next(text.back(), id), steps - 1, all);
    }
  }
};

}  // namespace

TEST_CASE("beam: what is found are different texts with their probabilities, the best one first") {
  constexpr int steps = 4;
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    const markov_model model(seed);
    std::map<ids, double> all;
    model.write_all({tr::token::begin}, 0, steps, all);
    double best = -1e9;
    for (const auto& [text, log_probability] : all) best = std::max(best, log_probability);
    for (std::size_t width : {std::size_t{1}, std::size_t{3}, all.size()}) {
      CAPTURE(width);
      const auto found = model.search(width, steps);
      REQUIRE(found.size() == width);
      std::map<ids, double> seen;
      for (const tr::hypothesis& h : found) {
        ids text = h.ids;
        if (h.ended) text.push_back(tr::token::end);
        REQUIRE(all.count(text) == 1);  // nothing with padding, begin or unknown
        CHECK(h.log_probability == doctest::Approx(all[text]));
        CHECK(h.log_probability <= found[0].log_probability);
        seen[text] = h.log_probability;
      }
      CHECK(seen.size() == width);
      if (width == all.size()) CHECK(found[0].log_probability == doctest::Approx(best));
    }
  }
}

TEST_CASE("beam: a width of 1 takes the likeliest piece each time") {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    const markov_model model(seed);
    tr::hypothesis expected;
    for (int step = 0; step < 6 && !expected.ended; ++step) {
      std::int32_t likeliest = tr::token::end;
      for (std::int32_t id = tr::token::specials; id < std::int32_t(markov_model::size); ++id)
        if (model.next(expected.ids.back(), id) > model.next(expected.ids.back(), likeliest)) likeliest = id;
      if (likeliest == tr::token::end)
        expected.ended = true;
      else
        expected.ids.push_back(likeliest);
    }
    CHECK(model.search(1, 6)[0].ids == expected.ids);
    CHECK(model.search(1, 6)[0].ended == expected.ended);
  }
}

TEST_CASE("beam: every hypothesis says which one it continues") {
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    const markov_model model(seed);
    std::vector<tr::hypothesis> beam(1);
    for (int step = 0; step < 5; ++step) {
      const std::vector<tr::hypothesis> next = model.advance(beam, 4);
      for (const tr::hypothesis& h : next) {
        REQUIRE(h.parent < beam.size());
        ids before = h.ids;
        if (!h.ended) before.pop_back();
        CHECK(before == beam[h.parent].ids);
      }
      beam = next;
    }
  }
}

TEST_CASE("beam: what has ended stays as it is, while nothing better is written") {
  const markov_model model(1);
  const tr::hypothesis ended{{tr::token::begin, 5}, -0.05, true}, open{{tr::token::begin, 4}, -0.01, false};
  std::vector<tr::hypothesis> beam{open, ended};
  for (int step = 0; step < 5; ++step) {
    beam = model.advance(beam, 4);
    CHECK(beam[0].ids == ended.ids);
    CHECK(beam[0].log_probability == ended.log_probability);
    CHECK(beam[0].ended);
  }
  beam = model.advance({{ended.ids, -1e6, true}, open}, 1);
  CHECK(beam[0].ids.front() == tr::token::begin);
  CHECK(beam[0].log_probability > -1e6);
}
