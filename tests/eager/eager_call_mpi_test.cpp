// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/eager/eager_call.hpp>

#include <gshard/cluster/mpi_cluster.hpp>
#include <gshard/eager/compare.hpp>
#include <gshard/eager/einsum.hpp>
#include <gshard/eager/evaluate.hpp>
#include <gshard/eager/map.hpp>
#include <gshard/eager/new_dims.hpp>
#include <gshard/eager/reshard.hpp>
#include <gshard/eager/verbs.hpp>

#include "../complaint.hpp"
#include "../mpi_world.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gs = gshard;
using gs::none, gs::P;

TEST_CASE("mpi: operands that do not fit on one rank are told to all") {
  const auto on = gs::on_mpi<gs::mesh<gs::axis<"x">>>(MPI_COMM_WORLD);
  const bool last = mpi_world::rank() == mpi_world::ranks() - 1;
  const std::vector<float> a(8 * 6, 1.0f), b(6 * 5, 1.0f);
  const auto x = gs::from_global<float, P<none, "x">>(on, {8, 6}, a);
  const auto y = last ? gs::from_global<float, P<"x", none>>(on, {5, 6}, b) : gs::from_global<float, P<"x", none>>(on, {6, 5}, b);
  const std::string said = complaint([&] { gs::einsum<"ab,bc->ac">(x, y); });
  const std::string what = "ab,bc->ac: dim 0 of operand 1 has extent 5, an earlier operand has 6 there";
  CHECK(said == (last ? what : "rank " + std::to_string(mpi_world::ranks() - 1) + " failed: " + what));
  CHECK(gs::to_global(gs::einsum<"ab,cb->ac">(x, x)) == std::vector<float>(8 * 8, 6.0f));
}

namespace {

using line = gs::mesh<gs::axis<"x">>;

auto whole(const gs::cluster<line>& on, std::int64_t rows, std::int64_t columns, float value) {
  return gs::from_global<float, P<none, none>>(on, {rows, columns}, std::vector(std::size_t(rows * columns), value));
}
struct filler : gs::detail::kept {
  filler() : kept(its_kind(), 0) {}
  static const void* its_kind() {
    static constexpr char here = 0;
    return &here;
  }
};

}  // namespace

TEST_CASE("mpi: operations that are used again tell all what is wrong on one rank") {
  const auto on = gs::on_mpi<line>(MPI_COMM_WORLD);
  const bool last = mpi_world::rank() == mpi_world::ranks() - 1, alone = mpi_world::ranks() == 1;
  const auto product = [&](std::int64_t rows, std::int64_t inner, std::int64_t other) {
    return gs::to_global(gs::einsum<"ab,bc->ac">(whole(on, rows, inner, 1), whole(on, other, 2, 1)));
  };
  const auto check_again = [&] { CHECK(product(3, 4, 4) == std::vector(6, 4.0f)); };
  check_again();
  check_again();

  // Operands with mismatched extents.
  const std::string misfit = complaint([&] { product(3, 4, last ? 5 : 4); });
  CHECK(misfit.find("ab,bc->ac: dim 0 of operand 1 has extent 5, an earlier operand has 4 there") != std::string::npos);
  check_again();

  // Other extents on one rank, where every rank already has the program.
  CHECK(product(7, 4, 4) == std::vector(14, 4.0f));
  const std::string other = complaint([&] { gs::einsum<"ab,bc->ac">(whole(on, last ? 7 : 3, 4, 1), whole(on, 4, 2, 1)); });
  if (!alone) CHECK(other.find("the processes disagree on the extent of dim 'A'") != std::string::npos);
  check_again();

  // Another operation on one rank.
  const auto x = whole(on, 3, 3, 1);
  gs::einsum<"ab->ba">(x);
  const std::string otherwise = complaint([&] {
    if (last) gs::einsum<"ab->ba">(x);
    else gs::einsum<"ab,bc->ac">(whole(on, 3, 4, 1), whole(on, 4, 2, 1));
  });
  if (!alone) {
    CHECK(otherwise.find("the processes make different calls: rank") != std::string::npos);
    CHECK(otherwise.find(" ab,bc->ac on tensors, rank") != std::string::npos);
  }
  check_again();

  // One rank has to make a program that the others have kept.
  if (last)
    for (std::size_t i = 0; i < gs::detail::lru_cache::most; ++i) gs::detail::cluster_access::kept(on).put_back(std::make_unique<filler>());
  check_again();
  check_again();
}

TEST_CASE("mpi: verbs have the numbers of simulated devices") {
  const auto bits = [](const auto& on) {
    const auto x = gs::uniform<float, P<"x", none>>(on, {5, 6}, 3);
    const auto ids = gs::argmax<"ab->a">(x);
    std::vector<std::vector<float>> all{gs::to_global(x)};
    all.push_back(gs::to_global(gs::sum<"ab->b">(x)));
    all.push_back(gs::to_global(gs::sort<0>(x).values));
    all.push_back(gs::to_global(gs::cumsum<0>(x)));
    all.push_back(gs::to_global(gs::gather<1>(x, ids)));
    all.push_back(gs::to_global(gs::one_hot(ids, 6) * x + 1));
    all.push_back(gs::to_global(gs::roll<0, 2>(gs::concat<0>(x, x))));
    all.push_back(gs::to_global(gs::dynamic_slice<0, 2>(x, 2)));
    all.push_back(gs::to_global(gs::evaluate<"ab", "ab">([](auto v, auto w) { return v * gs::softmax(w); }, x, x)));
    return all;
  };
  const auto on = gs::on_mpi<line>(MPI_COMM_WORLD);
  CHECK(bits(on) == bits(gs::simulate<line>(mpi_world::ranks())));
  // A number that only one rank has.
  const bool last = mpi_world::rank() == mpi_world::ranks() - 1;
  if (mpi_world::ranks() == 1) return;
  const std::string seeds = complaint([&] { gs::uniform<float, P<"x">>(on, {4}, last ? 1 : 2); });
  CHECK(seeds.find("the processes") != std::string::npos);
  const auto x = gs::uniform<float, P<"x", none>>(on, {5, 6}, 3);
  CHECK(complaint([&] { gs::dynamic_slice<0, 2>(x, last ? 1 : 2); }).find("the number") != std::string::npos);
  CHECK(complaint([&] { gs::one_hot(gs::argmax<"ab->a">(x), last ? 4 : 5); }).find("'Z'") != std::string::npos);
  CHECK(gs::to_global(x).size() == 30);
}

TEST_CASE("mpi: a number that is no int32 on one rank is told to all") {
  const auto on = gs::on_mpi<line>(MPI_COMM_WORLD);
  const int ranks = mpi_world::ranks();
  const bool last = mpi_world::rank() == ranks - 1;
  const auto x = gs::from_global<std::int32_t, P<"x">>(on, {4}, std::vector<std::int32_t>{1, 2, 3, 4});
  const auto check = [&](const char* what, auto verb) {
    CHECK(gs::to_global(verb(std::int64_t(2))) == gs::to_global(verb(std::int64_t(2))));  // the second time with a kept program
    const std::string said = complaint([&] { verb(last ? std::int64_t(1) << 40 : std::int64_t(2)); });
    CHECK(said == (last ? what : "rank " + std::to_string(ranks - 1) + " failed: " + what));
  };
  check("add: 1099511627776 is no int32", [&](std::int64_t n) { return x + n; });
  check("compare: 1099511627776 is no int32", [&](std::int64_t n) { return x < n; });
  check("select: 1099511627776 is no int32", [&](std::int64_t n) { return gs::select(x, x, n); });
  check("dynamic_slice: 1099511627776 is no int32", [&](std::int64_t n) { return gs::dynamic_slice<0, 2>(x, n); });
  CHECK(gs::to_global(x).size() == 4);
}
