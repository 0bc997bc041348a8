// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contractions of complex numbers and of integers. They are exact, because their parts are small multiples of 1/4.
#include <gshard/exec/kernel/gemm/contract.hpp>
#include <gshard/ops/reduce/reduce_kernel.hpp>

#include "../einsum_reference.hpp"
#include "../support.hpp"

#include <array>
#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace einsum_reference;

struct letters_of_einsum {
  const char *a, *b, *out;
};
constexpr letters_of_einsum products_of_elements[]{
    {"AB", "BC", "AC"}, {"BA", "BC", "CA"},   {"GAB", "GBC", "GAC"}, {"ABC", "DBC", "DA"}, {"AB", "AB", ""},       {"AB", "AB", "A"},
    {"AB", "CD", "ACBD"}, {"ABD", "BC", "AC"}, {"AB", "B", "AB"},     {"AAB", "BC", "AC"},  {"GACB", "BGD", "CDGA"},
};
constexpr letters_of_einsum sums_of_elements[]{{"AB", "", "B"}, {"AB", "", "BA"}, {"ABC", "", ""}, {"AAB", "", "AB"}};

std::vector<double> quarters(std::int64_t n, std::mt19937& gen) {
  std::vector<double> x(static_cast<std::size_t>(n));
  for (double& v : x) v = double(test::pick(gen, -8, 8)) / 4;
  return x;
}
extents sizes_of_letters(std::mt19937& gen, int seed) {
  extents sizes;
  for (const char letter : std::string("ABCDG")) sizes[letter] = test::pick(gen, 1, seed % 4 == 0 ? 20 : 6);
  return sizes;
}
extents those_of(const extents& all, const std::string& letters) {
  extents some;
  for (const char letter : letters) some[letter] = all.at(letter);
  return some;
}

template <class T>
void check_complex(const letters_of_einsum& e, const extents& sizes, std::mt19937& gen) {
  using complex = std::complex<T>;
  CAPTURE(e.a);
  CAPTURE(e.b);
  CAPTURE(e.out);
  const std::string b = e.b;
  const auto zip = [](const std::vector<double>& re, const std::vector<double>& im) {
    std::vector<complex> z;
    for (std::size_t i = 0; i < re.size(); ++i) z.emplace_back(T(re[i]), T(im[i]));
    return z;
  };
  const std::int64_t n = count(e.a, sizes), m = count(b, sizes);
  const std::vector<double> xr = quarters(n, gen), xi = quarters(n, gen);
  const std::vector<double> yr = b.empty() ? std::vector<double>{1} : quarters(m, gen),
                            yi = b.empty() ? std::vector<double>{0} : quarters(m, gen);
  const std::vector<complex> x = zip(xr, xi), y = zip(yr, yi);
  std::vector<complex> z(static_cast<std::size_t>(count(e.out, sizes)), std::numeric_limits<T>::quiet_NaN());
  const auto sum = [&](const std::vector<double>& left, const std::vector<double>& right) {
    return einsum(e.a, b, e.out, sizes, left, right, 0.5);
  };
  if (b.empty()) ks::contraction<complex>(operand(e.a, sizes), operand(e.out, sizes), 0.5).run(x.data(), z.data());
  else ks::contraction<complex>(operand(e.a, sizes), operand(b, sizes), operand(e.out, sizes), 0.5).run(x.data(), y.data(), z.data());
  const std::vector<double> rr = sum(xr, yr), ii = sum(xi, yi), ri = sum(xr, yi), ir = sum(xi, yr);
  for (std::size_t i = 0; i < z.size(); ++i) REQUIRE(z[i] == complex(T(rr[i] - ii[i]), T(ri[i] + ir[i])));
}

}  // namespace

TEST_CASE_TEMPLATE("contraction of complex numbers: the real einsums of the parts", T, float, double) {
  for (int seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(static_cast<std::uint32_t>(seed));
    const extents sizes = sizes_of_letters(gen, seed);
    for (const letters_of_einsum& e : products_of_elements) check_complex<T>(e, those_of(sizes, std::string(e.a) + e.b), gen);
    for (const letters_of_einsum& e : sums_of_elements) check_complex<T>(e, those_of(sizes, e.a), gen);
  }
}

TEST_CASE_TEMPLATE("contraction and reduction of integers: modulo 2^n", T, std::int32_t, std::int64_t) {
  constexpr T most = std::numeric_limits<T>::max(), lowest = std::numeric_limits<T>::lowest();
  const std::vector<T> x(100, most);  // 100 * (2^n - 1): equals -100 modulo 2^n
  T y = 0;
  const extents hundred{{'A', 100}};
  const auto run = [&](gshard::reduction what) {
    ks::reduction_kernel<T>(what, operand("A", hundred), operand("", hundred)).run(x.data(), &y);
    return y;
  };
  CHECK(run(gshard::reduction::sum) == T(-100));
  CHECK(run(gshard::reduction::prod) == 1);
  CHECK(run(gshard::reduction::max) == most);
  ks::contraction<T>(operand("A", hundred), operand("", hundred)).run(x.data(), &y);
  CHECK(y == T(-100));
  ks::contraction<T>(operand("A", hundred), operand("A", hundred), operand("", hundred)).run(x.data(), x.data(), &y);
  CHECK(y == 100);
  std::vector<T> twice(100);
  ks::contraction<T>(operand("A", hundred), operand("A", hundred), operand("A", hundred), 2).run(x.data(), x.data(), twice.data());
  CHECK(twice[7] == 2);
  CHECK(gshard::detail::total(most, T(1)) == lowest);
}

TEST_CASE_TEMPLATE("contraction of integers", T, std::int32_t, std::int64_t) {
  for (int seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    std::mt19937 gen(static_cast<std::uint32_t>(seed));
    const extents all = sizes_of_letters(gen, seed);
    for (const letters_of_einsum& e : products_of_elements) {
      const extents sizes = those_of(all, std::string(e.a) + e.b);
      const auto whole = [&](std::int64_t n) {
        std::vector<T> v(static_cast<std::size_t>(n));
        for (T& i : v) i = T(test::pick(gen, -50, 50));
        return v;
      };
      const std::vector<T> x = whole(count(e.a, sizes)), y = whole(count(e.b, sizes));
      std::vector<T> z(static_cast<std::size_t>(count(e.out, sizes)), T(-1));
      ks::contraction<T>(operand(e.a, sizes), operand(e.b, sizes), operand(e.out, sizes)).run(x.data(), y.data(), z.data());
      const std::vector<double> expected = einsum(e.a, e.b, e.out, sizes, x, y, 1);
      REQUIRE(std::vector<double>(z.begin(), z.end()) == expected);
    }
  }
}
