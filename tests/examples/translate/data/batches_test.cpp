// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "data/batches.hpp"

#include <doctest/doctest.h>

#include <map>
#include <utility>

namespace tr = translate;

namespace {

using ids = std::vector<std::int32_t>;

// Pairs with different first source ids, of ascending lengths.
std::vector<tr::encoded_pair> numbered_pairs(int count) {
  std::vector<tr::encoded_pair> pairs;
  for (int i = 0; i < count; ++i) {
    tr::encoded_pair p{ids(static_cast<std::size_t>(1 + i % 13), 5), ids(static_cast<std::size_t>(i % 7), 6)};
    p.source[0] = 100 + i;
    pairs.push_back(std::move(p));
  }
  return pairs;
}

const std::vector<tr::bucket> buckets = {{4, 4, 6}, {8, 8, 4}, {12, 8, 2}};

std::map<std::int32_t, int> times_seen(const tr::batch_stream& stream, std::int64_t first,
                                       std::int64_t last) {
  std::map<std::int32_t, int> seen;
  for (std::int64_t step = first; step < last; ++step) {
    const tr::batch b = stream.at(step);
    const auto width = static_cast<std::size_t>(stream.buckets()[b.bucket].source_length);
    for (std::size_t i = 0; i < b.source.size(); i += width) ++seen[b.source[i]];
  }
  return seen;
}

TEST_CASE("batches: a round has every pair that fits, and repeats fewer than a batch of each bucket") {
  const auto pairs = numbered_pairs(200);
  const tr::batch_stream stream(pairs, buckets, 1);
  std::int64_t fitting = 0;
  for (const auto& p : pairs) fitting += buckets.back().fits(p) || buckets.front().fits(p) ? 1 : 0;
  CHECK(stream.dropped() == 200 - fitting);
  CHECK(stream.dropped() > 0);
  const auto n = stream.batches_per_round();
  for (std::int64_t round = 0; round < 3; ++round) {
    const auto seen = times_seen(stream, round * n, (round + 1) * n);
    CHECK(std::ssize(seen) == fitting);
    int repeats = 0;
    for (const auto& [id, times] : seen) repeats += times - 1;
    CHECK(repeats <= 5 + 3 + 1);
  }
}

TEST_CASE("batches: rows are the pairs, in the first bucket that they fit") {
  const auto pairs = numbered_pairs(200);
  const tr::batch_stream stream(pairs, buckets, 1);
  for (std::int64_t step = 0; step < stream.batches_per_round(); ++step) {
    const tr::batch b = stream.at(step);
    const auto [s, t, n] = stream.buckets()[b.bucket];
    REQUIRE(std::ssize(b.source) == n * s);
    REQUIRE(std::ssize(b.target_in) == n * t);
    REQUIRE(std::ssize(b.target_out) == n * t);
    for (std::int64_t row = 0; row < n; ++row) {
      const auto& p = pairs[static_cast<std::size_t>(b.source[static_cast<std::size_t>(row * s)] - 100)];
      CHECK(stream.buckets()[b.bucket].fits(p));
      for (std::size_t smaller = 0; smaller < b.bucket; ++smaller) CHECK_FALSE(buckets[smaller].fits(p));
      ids source = p.source, in = p.target, out = p.target;
      in.insert(in.begin(), tr::token::begin);
      out.push_back(tr::token::end);
      source.resize(static_cast<std::size_t>(s), tr::token::padding);
      in.resize(static_cast<std::size_t>(t), tr::token::padding);
      out.resize(static_cast<std::size_t>(t), tr::token::padding);
      CHECK(std::equal(source.begin(), source.end(), b.source.begin() + row * s));
      CHECK(std::equal(in.begin(), in.end(), b.target_in.begin() + row * t));
      CHECK(std::equal(out.begin(), out.end(), b.target_out.begin() + row * t));
    }
  }
}

TEST_CASE("batches: seed and step give the batch, whatever came before; seeds and rounds differ") {
  const auto pairs = numbered_pairs(200);
  tr::batch_stream a(pairs, buckets, 1);
  const tr::batch_stream b(pairs, buckets, 1), other(pairs, buckets, 2);
  const auto n = a.batches_per_round();
  int same_as_other = 0, same_as_before = 0;
  for (std::int64_t step = 0; step < 3 * n; ++step) {
    const tr::batch next = a.next();
    CHECK(next == b.at(step));
    same_as_other += next == other.at(step) ? 1 : 0;
    same_as_before += next == b.at(step + n) ? 1 : 0;
  }
  CHECK(same_as_other < n / 4);
  CHECK(same_as_before < n / 4);
}

TEST_CASE("batches: the first rows of a known seed, so that no platform shuffles another way") {
  const tr::batch b = tr::batch_stream(numbered_pairs(200), buckets, 1).at(0);
  CHECK(b.bucket == 2);
  const std::vector<std::int32_t> first_ids = {b.source[0], b.source[12]};
  CHECK(first_ids == ids{150, 212});
}

TEST_CASE("batches: fewer pairs than a batch repeat within it; none that fit are refused") {
  const tr::batch_stream stream(numbered_pairs(1), buckets, 1);
  CHECK(stream.batches_per_round() == 1);
  CHECK(times_seen(stream, 0, 1) == std::map<std::int32_t, int>{{100, 6}});
  CHECK_THROWS_AS(tr::batch_stream({}, buckets, 1), std::runtime_error);
  CHECK_THROWS_AS(tr::batch_stream(numbered_pairs(5), {}, 1), std::runtime_error);
  CHECK_THROWS_AS(tr::batch_stream(numbered_pairs(5), {{4, 4, 0}}, 1), std::runtime_error);
}

TEST_CASE("batches: evaluation keeps the order, cuts what is too long and fills up with the last pair") {
  const std::vector<tr::encoded_pair> pairs = {{{7}, {8}}, {{7, 7, 7}, {8, 9, 10, 11}}, {{5, 6}, {}}};
  const auto batches = tr::evaluation_batches(pairs, {2, 3, 2}, 4);
  REQUIRE(batches.size() == 2);
  CHECK(batches[0] == tr::batch{4, {7, 0, 7, 7}, {1, 8, 0, 1, 8, 9}, {8, 2, 0, 8, 9, 10}});
  CHECK(batches[1] == tr::batch{4, {5, 6, 5, 6}, {1, 0, 0, 1, 0, 0}, {2, 0, 0, 2, 0, 0}});
  CHECK(tr::evaluation_batches({}, {2, 3, 2}).empty());
}

}  // namespace

TEST_CASE("batches: a stream continues where a saved one was") {
  tr::batch_stream whole(numbered_pairs(50), buckets, 7), again(numbered_pairs(50), buckets, 7);
  for (int i = 0; i < 5; ++i) whole.next();
  again.restore(whole.save());
  for (int i = 0; i < 9; ++i) CHECK(again.next() == whole.next());
  for (const char* wrong : {"", "x", "-1", "1x", " 1"}) CHECK_THROWS_AS(again.restore(wrong), std::runtime_error);
  CHECK(again.next() == whole.next());
}
