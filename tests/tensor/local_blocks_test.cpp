// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors from blocks of an application's decomposition, and back, on simulated devices.
#include "../complaint.hpp"
#include "random_blocks.hpp"

#include <gshard/tensor/eigen.hpp>
#include <gshard/tensor/local_blocks.hpp>
#include <gshard/tensor/scalapack.hpp>

#include <array>
#include <numeric>

namespace {

namespace gs = gshard;
using gs::none;
using gs::P;
using two_axes = gs::mesh<gs::axis<"x">, gs::axis<"y">>;
using one_axis = gs::mesh<gs::axis<"x">>;

}  // namespace

TEST_CASE("local blocks: random decompositions, any sharding; a device receives what it lacks") {
  std::uint32_t seed = 0;
  for (const auto& extents : {std::vector{1, 1}, {2, 1}, {1, 3}, {2, 2}, {5, 1}, {3, 2}, {7, 1}, {4, 2}})
    for (int i = 0; i < 18; ++i) random_blocks::check_all(gs::simulate<two_axes>(extents), ++seed);  // 1008 decompositions
}

TEST_CASE("local blocks: a block that is the shard of its device is not copied") {
  const auto on = gs::simulate<one_axis>(2);
  std::vector<double> a(12), b(8);
  std::iota(a.begin(), a.end(), 0.0);
  std::iota(b.begin(), b.end(), 12.0);
  const std::vector<gs::local_block<double>> blocks{{a.data(), {0, 0}, {3, 4}, {}, 0}, {b.data(), {3, 0}, {2, 4}, {}, 1}};
  auto t = gs::from_local_blocks<P<"x", none>>(on, {5, 4}, blocks);
  CHECK(t.local_shard(0).data == a.data());
  CHECK(t.local_shard(1).data == b.data());
  t.local_shard(1).data[0] = 100;
  CHECK(b[0] == 100);
  gs::to_local_blocks(t, blocks);
  CHECK(b[0] == 100);

  const std::vector<gs::local_block<const double>> constant{{a.data(), {0, 0}, {3, 4}, {}, 0}, {b.data(), {3, 0}, {2, 4}, {}, 1}};
  const auto copy = gs::from_local_blocks<P<"x", none>>(on, {5, 4}, constant);
  CHECK(copy.local_shard(0).data != a.data());
  CHECK(copy.local_shard(1).data[0] == 100);
}

TEST_CASE("local blocks: matrices and maps of Eigen, in their memory order") {
  const auto on = gs::simulate<one_axis>(2);
  Eigen::MatrixXd left = Eigen::MatrixXd::Random(4, 3);  // column-major
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> right = Eigen::MatrixXd::Random(4, 2);
  const std::vector<gs::local_block<double>> blocks{gs::local_block(left, {0, 0}), gs::local_block(right, {0, 3}, 1)};
  const auto t = gs::from_local_blocks<P<"x", none>>(on, {4, 5}, blocks);
  CHECK(t.local_shard(0).data[1 * 5 + 2] == left(1, 2));
  CHECK(t.local_shard(1).data[1 * 5 + 4] == right(3, 1));
  Eigen::VectorXd v = Eigen::VectorXd::Random(3);
  const gs::local_block of_vector(v, {0});
  CHECK(of_vector.extent == std::vector<std::int64_t>{3});
  const Eigen::MatrixXd& constant = left;
  static_assert(std::is_same_v<decltype(gs::local_block(constant, {0, 0})), gs::local_block<const double>>);
  CHECK(complaint([&] { gs::local_block(left, {0, 0, 0}); }) == "local_block: an array of 2 dims, and an offset of 3");
}

TEST_CASE("local blocks: a block-cyclic matrix of ScaLAPACK") {
  const auto on = gs::simulate<two_axes>({2, 2});
  const std::int64_t m = 11, n = 7, mb = 2, nb = 3;
  const int first_row = 1, first_column = 0;
  std::vector<std::vector<double>> memory(4);
  std::vector<gs::local_block<double>> blocks;
  for (int p = 0; p < 4; ++p) {
    const int row = p / 2, column = p % 2;
    const auto owned = [](std::int64_t extent, std::int64_t block, int at, int first) {  // indices of a process, as numroc counts them
      std::vector<std::int64_t> all;
      for (std::int64_t i = 0; i < extent; ++i)
        if ((int(i / block) + first) % 2 == at) all.push_back(i);
      return all;
    };
    const auto rows = owned(m, mb, row, first_row), columns = owned(n, nb, column, first_column);
    const auto leading = std::int64_t(rows.size()) + 1;
    memory[std::size_t(p)].assign(std::size_t(leading) * columns.size(), -1);
    for (std::size_t j = 0; j < columns.size(); ++j)
      for (std::size_t i = 0; i < rows.size(); ++i)
        memory[std::size_t(p)][i + j * std::size_t(leading)] = double(rows[i] * n + columns[j]);
    const std::array<int, 9> descriptor{1, 0, int(m), int(n), int(mb), int(nb), first_row, first_column, int(leading)};
    for (auto& b : gs::scalapack_blocks(memory[std::size_t(p)].data(), descriptor, {2, 2, row, column})) {
      b.device = std::size_t(p);
      blocks.push_back(b);
    }
  }
  const auto t = gs::from_local_blocks<P<"x", "y">>(on, {m, n}, blocks);
  gs::for_each_local_shard(t, [](const gs::shard_view<const double>& s) {
    gs::kernel::for_each_element(s.at, [&](std::size_t global, std::size_t local) { CHECK(s.data[local] == double(global)); });
  });
  std::array<int, 9> wrong{1, 0, 4, 4, 2, 2, 0, 0, 1};
  double one = 0;
  CHECK(complaint([&] { gs::scalapack_blocks(&one, wrong, {1, 1, 0, 0}); }) ==
        "scalapack_blocks: the leading dimension is 1, this process has 4 rows");
  wrong[0] = 501;
  CHECK(complaint([&] { gs::scalapack_blocks(&one, wrong, {1, 1, 0, 0}); }) ==
        "scalapack_blocks: a descriptor of type 501; dense matrices have type 1");
}

TEST_CASE("local blocks: what is refused") {
  const auto on = gs::simulate<one_axis>(2);
  std::vector<float> x(100);
  using block = gs::local_block<float>;
  const auto of = [&](const std::vector<block>& blocks) {
    return complaint([&] { static_cast<void>(gs::from_local_blocks<P<"x", none>>(on, {4, 4}, blocks)); });
  };
  CHECK(of({}) == "local blocks do not tile the array [4,4]: element [0,0] is in no block");
  CHECK(of({{x.data(), {0, 0}, {4, 3}}}) == "local blocks do not tile the array [4,4]: element [0,3] is in no block");
  CHECK(of({{x.data(), {0, 0}, {4, 3}}, {x.data(), {1, 2}, {3, 2}}}) ==
        "local blocks do not tile the array [4,4]: element [0,3] is in no block");
  CHECK(of({{x.data(), {0, 0}, {4, 4}}, {x.data(), {1, 2}, {2, 2}, {}, 1}}) ==
        "local blocks do not tile the array [4,4]: element [1,2] is in block 0 of device 0 and in block 0 of device 1");
  CHECK(of({{x.data(), {0, 0}, {4, 5}}}) == "local block 0 at [0,0] with extents [4,5] is not inside the array [4,4]");
  CHECK(of({{x.data(), {-1, 0}, {4, 4}}}) == "local block 0 at [-1,0] with extents [4,4] is not inside the array [4,4]");
  CHECK(of({{x.data(), {0}, {4, 4}}}) == "local block 0: an offset of 1 dims, an extent of 2, for an array of 2");
  CHECK(of({{x.data(), {0, 0}, {2, 4}}, {nullptr, {2, 0}, {2, 4}}}) == "local block 1 has elements and no address");
  CHECK(of({{x.data(), {0, 0}, {4, 4}, {}, 2}}) == "local block 0 is on device 2 of a process with 2");

  gs::local_blocks<float, P<"x", none>> exchange(on, {4, 4}, {{x.data(), {0, 0}, {4, 4}}});
  const gs::tensor<float, P<"x", none>> other(on, {4, 5}), foreign(gs::simulate<one_axis>(2), {4, 4});
  CHECK(complaint([&] { exchange.copy_from(other); }) ==
        "local blocks: the tensor has the extents [4,5], the array of the blocks [4,4]");
  CHECK(complaint([&] { exchange.copy_from(foreign); }) == "local blocks: the tensor belongs to another cluster");
}
