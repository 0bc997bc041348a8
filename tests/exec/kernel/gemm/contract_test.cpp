// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/exec/kernel/gemm/contract.hpp>

#include "../einsum_reference.hpp"
#include "../support.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace {

using namespace einsum_reference;
using test::random_values;

template <class T>
void compare(const std::vector<T>& found, const std::vector<double>& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    worst =
        std::max(worst, std::abs(static_cast<double>(found[i]) - expected[i]) / (1 + std::abs(expected[i])));
  CHECK(worst < 200 * static_cast<double>(std::numeric_limits<T>::epsilon()));
}

/// The operand as a block of a tensor that is longer by one in every dim.
template <class T>
struct in_larger {
  ks::operand_dims dims;
  std::vector<std::size_t> at;  // the offsets of the block's elements
  std::vector<T> whole;

  in_larger(const std::string& letters, const extents& sizes, const std::vector<T>& values) : dims(operand(letters, sizes)) {
    ks::index_array longer = dims.extent;
    for (std::size_t d = 0; d < letters.size(); ++d) ++longer[d];
    dims.stride = ks::row_major_strides(dims.rank, longer);
    whole.assign(static_cast<std::size_t>(ks::element_count(dims.rank, longer)), T(1));
    ks::for_each_run({dims.rank, dims.extent, {}, longer}, [&](std::int64_t local, std::int64_t global, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) {
        at.push_back(static_cast<std::size_t>(global + i));
        whole[at.back()] = values[static_cast<std::size_t>(local + i)];
      }
    });
  }
};

/// Adds a sum to blocks of larger tensors. Nothing else in them is changed.
template <class T>
void check_adding(const std::string& a, const std::string& b, const std::string& out, const extents& sizes, double alpha,
                  const std::vector<T>& x, const std::vector<T>& y, const std::vector<double>& expected) {
  const std::vector<T> ones(expected.size(), T(1));
  const in_larger<T> left(a, sizes, x), right(b, sizes, y);
  in_larger<T> result(out, sizes, ones);
  const ks::contraction<T> c(left.dims, right.dims, result.dims, alpha, true);
  for (int repeat = 0; repeat < 2; ++repeat) c.run(left.whole.data(), right.whole.data(), result.whole.data());
  std::vector<double> sum(result.whole.size(), 1);
  for (std::size_t i = 0; i < expected.size(); ++i) sum[result.at[i]] += 2 * expected[i];
  compare(result.whole, sum);
}

template <class T>
void check(const std::string& a, const std::string& b, const std::string& out, const extents& sizes,
           double alpha, std::mt19937& gen) {
  CAPTURE(a);
  CAPTURE(b);
  CAPTURE(out);
  const auto x = random_values<T>(count(a, sizes), gen), y = random_values<T>(count(b, sizes), gen);
  std::vector<T> z(static_cast<std::size_t>(count(out, sizes)), std::numeric_limits<T>::quiet_NaN());
  const ks::contraction<T> c(operand(a, sizes), operand(b, sizes), operand(out, sizes), alpha);
  for (int repeat = 0; repeat < 2; ++repeat) c.run(x.data(), y.data(), z.data());
  const std::vector<double> expected = einsum(a, b, out, sizes, x, y, alpha);
  compare(z, expected);
  check_adding(a, b, out, sizes, alpha, x, y, expected);
}

template <class T>
void check(const std::string& a, const std::string& out, const extents& sizes, double alpha,
           std::mt19937& gen) {
  CAPTURE(a);
  CAPTURE(out);
  const auto x = random_values<T>(count(a, sizes), gen);
  std::vector<T> z(static_cast<std::size_t>(count(out, sizes)), std::numeric_limits<T>::quiet_NaN());
  ks::contraction<T>(operand(a, sizes), operand(out, sizes), alpha).run(x.data(), z.data());
  compare(z, einsum(a, "", out, sizes, x, {T(1)}, alpha));
}

struct equation {
  const char *a, *b, *out;
};

constexpr std::array equations{
    equation{"GBTM", "MHD", "GBTHD"},
    equation{"GBQHD", "GBKHD", "GBHQK"},
    equation{"GBHQK", "GBKHD", "GBQHD"},
    equation{"GBTHD", "HDM", "GBTM"},
    equation{"GSM", "ME", "GSE"},
    equation{"EGCM", "EMH", "EGCH"},
    equation{"EGCH", "EHM", "EGCM"},
    equation{"EGCM", "EGCH", "EMH"},
    equation{"EGCH", "EGCM", "EHM"},
    equation{"GBTM", "GBTHD", "MHD"},
    equation{"GBTM", "GBTV", "MV"},
    equation{"GBTV", "VM", "GBTM"},
    equation{"GBTM", "VM", "GBTV"},
    equation{"GSEC", "GSM", "EGCM"},
    equation{"GSEC", "GECM", "GSM"},
    equation{"GECM", "EMH", "GECH"},
    equation{"GECM", "EMH", "HCEG"},
    equation{"GBT", "GBT", "GBT"},
    equation{"GBTM", "M", "GBTM"},
    equation{"GBTM", "GBTM", "GBT"},
    equation{"GBTM", "GBTM", "M"},
    equation{"M", "H", "MH"},
    equation{"M", "M", ""},
    equation{"GBTM", "", "GBTM"},
    equation{"GBTM", "BTGM", "MT"},
    equation{"GMH", "GTB", "M"},
    equation{"GGM", "MT", "GT"},
};

/// Some indices of the batch 'a', in tensors that have all.
ks::operand_dims indices_of_batch(const std::string& letters, const extents& sizes, std::int64_t some) {
  ks::operand_dims dims = operand(letters, sizes);
  dims.stride = ks::row_major_strides(dims.rank, dims.extent);
  dims.extent[letters.find('a')] = some;
  return dims;
}
template <class T>
void check_pieces(const std::string& a, const std::string& b, const std::string& out, const extents& sizes, ks::precision precision,
                  std::mt19937& gen) {
  CAPTURE(a);
  CAPTURE(b);
  CAPTURE(out);
  const int batch = operand("a", sizes).factor[0];
  const std::int64_t all = sizes.at('a');
  const auto x = random_values<T>(count(a, sizes), gen), y = random_values<T>(count(b, sizes), gen);
  const std::size_t size = static_cast<std::size_t>(count(out, sizes));
  std::vector<T> whole(size, std::numeric_limits<T>::quiet_NaN());
  ks::contraction<T>(operand(a, sizes), operand(b, sizes), operand(out, sizes), 1, false, precision, batch)
      .run(x.data(), y.data(), whole.data());
  if (precision == ks::precision::full) compare(whole, einsum(a, b, out, sizes, x, y, 1.0));
  for (std::int64_t some = 1; some < all; ++some) {
    std::vector<T> pieces(size, std::numeric_limits<T>::quiet_NaN());
    for (std::int64_t at = 0; at < all; at += some) {
      const std::int64_t n = std::min(some, all - at);
      const auto from = [&](auto& of, const std::string& letters) {
        const std::int64_t stride = (*indices_of_batch(letters, sizes, n).stride)[letters.find('a')];
        return of.empty() ? of.data() : of.data() + at * stride;
      };
      ks::contraction<T>(indices_of_batch(a, sizes, n), indices_of_batch(b, sizes, n), indices_of_batch(out, sizes, n), 1, false, precision,
                         batch)
          .run(from(x, a), from(y, b), from(pieces, out));
    }
    CHECK(pieces == whole);
  }
}

}  // namespace

TEST_CASE("contraction: the equations of the transformer and its gradients") {
  std::mt19937 gen(1);
  for (const auto& e : equations)
    for (int repeat = 0; repeat < 4; ++repeat) {
      extents sizes;
      for (char c : std::string(e.a) + e.b)
        sizes[c] = std::uniform_int_distribution<std::int64_t>(1, repeat == 0 ? 4 : 9)(gen);
      if (repeat == 3)  // sizes with whole tiles and remainders, up to the cost limit of the reference
        for (char c : {'M', 'K', 'Q', 'H'})
          if (sizes.contains(c) && sizes.size() < 6) sizes[c] = 17 + 16 * (c == 'M');
      check<float>(e.a, e.b, e.out, sizes, 1, gen);
      check<double>(e.a, e.b, e.out, sizes, -0.5, gen);
    }
}

TEST_CASE("contraction: random equations of two operands") {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(gen); };
    const std::string letters = std::string("abcdefg").substr(0, static_cast<std::size_t>(pick(0, 7)));
    std::string a, b, out;
    extents sizes;
    for (char c : letters) {
      const int kind = pick(0, 30);
      sizes[c] = kind == 0 ? 0 : kind < 5 ? 1 : letters.size() < 4 ? pick(2, 20) : pick(2, 4);
      const int where = pick(0, 9);  // both, or one of them
      if (where != 0) a += c;
      if (where != 1) b += c;
      if (pick(0, 2) > 0) out += c;
    }
    if (!a.empty() && a.size() < 5 && pick(0, 9) == 0) a += a[0];
    for (std::string* s : {&a, &b, &out}) std::shuffle(s->begin(), s->end(), gen);
    check<float>(a, b, out, sizes, 1, gen);
    check<double>(a, b, out, sizes, 2.5, gen);
  }
}

TEST_CASE("contraction: pieces of a batch have the bits of the whole") {
  for (std::uint32_t seed = 0; seed < 1500; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(gen); };
    const std::string others = std::string("bcdef").substr(0, static_cast<std::size_t>(pick(1, 5)));
    std::string a = "a", b = "a", out;
    extents sizes{{'a', pick(2, 5)}};
    for (const char c : others) {
      sizes[c] = others.size() < 4 && pick(0, 2) == 0 ? pick(9, 20) : pick(1, 8) % (others.size() > 3 ? 4 : 9);
      const int where = pick(0, 5);  // mostly in both
      if (where != 0) a += c;
      if (where != 1) b += c;
      if (pick(0, 1) == 0) out += c;
    }
    for (std::string* s : {&a, &b, &out}) std::shuffle(s->begin(), s->end(), gen);
    out = 'a' + out;
    check_pieces<float>(a, b, out, sizes, seed % 8 ? ks::precision::full : ks::precision::bf16, gen);
    check_pieces<double>(a, b, out, sizes, ks::precision::full, gen);
  }
}

TEST_CASE("contraction: random equations large enough for matrix products, in every layout") {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    extents sizes;
    std::string a, b, out;
    const auto add = [&](char letter, std::int64_t low, std::int64_t high, bool in_a, bool in_b,
                         bool in_out) {
      sizes[letter] = std::uniform_int_distribution<std::int64_t>(low, high)(gen);
      if (in_a) a += letter;
      if (in_b) b += letter;
      if (in_out) out += letter;
    };
    add('m', 9, 40, true, false, true);
    add('n', 9, 40, false, true, true);
    add('k', 9, 40, true, true, false);
    for (char letter : {'x', 'y'}) {
      const auto kind = gen() % 4;
      add(letter, 1, 3, kind != 0, kind != 1, kind != 2);
    }
    for (std::string* s : {&a, &b, &out}) std::shuffle(s->begin(), s->end(), gen);
    check<float>(a, b, out, sizes, 1, gen);
    check<double>(a, b, out, sizes, 0.5, gen);
  }
}

TEST_CASE("contraction: random transpositions, sums and diagonals of one operand") {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(seed);
    const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(gen); };
    const std::string letters = std::string("abcde").substr(0, static_cast<std::size_t>(pick(0, 5)));
    std::string a, out;
    extents sizes;
    const bool transposition = pick(0, 1) == 0;
    for (char c : letters) {
      const int kind = pick(0, 30);
      sizes[c] = kind == 0 ? 0 : kind < 5 ? 1 : letters.size() < 4 ? pick(2, 40) : pick(2, 6);
      a += c;
      if (transposition || pick(0, 1) == 0) out += c;
    }
    if (!a.empty() && pick(0, 9) == 0) a += a[0];
    for (std::string* s : {&a, &out}) std::shuffle(s->begin(), s->end(), gen);
    check<float>(a, out, sizes, 1, gen);
    check<double>(a, out, sizes, pick(0, 1) == 0 ? 1 : 0.25, gen);
  }
}

TEST_CASE("contraction: wrong operands throw and are named") {
  const extents sizes{{'a', 2}, {'b', 3}, {'c', 4}};
  const extents other{{'a', 2}, {'b', 5}, {'c', 4}};
  using c = ks::contraction<float>;
  CHECK_THROWS_WITH_AS(c(operand("ab", sizes), operand("bc", other), operand("ac", sizes)),
                       "contraction [a:2,b:3], [b:5,c:4] -> [a:2,c:4]: 'b' has two extents", gshard::error);
  CHECK_THROWS_AS(c(operand("ab", sizes), operand("ac", sizes)), gshard::error);
  CHECK_THROWS_AS(c(operand("ab", sizes), operand("aa", sizes)), gshard::error);
}
