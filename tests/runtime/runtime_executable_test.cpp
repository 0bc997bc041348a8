// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/runtime/runtime_executable.hpp>

#include <gshard/gshard.hpp>
#include <gshard/exec/tensor/eigen.hpp>

#include "../complaint.hpp"

#include <doctest/doctest.h>

#include <Eigen/Core>

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace gs = gshard;
using gs::in, gs::P, gs::tensor;

namespace {

using mesh = gs::mesh<gs::axis<"x">, gs::axis<"y">>;

inline constexpr auto dense = [](auto& m, auto x) {
  return gs::relu(gs::einsum<"BM,MH->BH">(x, m.param("w", "M,H@y", gs::init::fan_in("M"))));
};
inline constexpr auto training = [](auto& m, auto x, auto target, auto rate) {
  auto error = dense(m, x) - target;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
inline constexpr auto pick = [](auto&, auto table, auto ids) { return std::tuple{gs::gather(table, ids), gs::sum(gs::cast<double>(table))}; };
inline constexpr auto twice = [](auto&, auto x) { return x + x; };

std::vector<float> numbers(std::size_t n) {
  std::vector<float> all(n);
  for (std::size_t i = 0; i < n; ++i) all[i] = float((7 * i) % 11) - 5;
  return all;
}

const gs::dims sizes{{'B', 5}, {'M', 6}, {'H', 3}};

}  // namespace

TEST_CASE("a run-time executable has the bits of the compiled program, with the same store") {
  const auto cluster = gs::simulate<mesh>({2, 3});
  gs::executable<gs::program<dense, mesh, in<"B@x,M">>> compiled(cluster, sizes);
  gs::runtime_executable run(gs::runtime_program(dense, "x,y", {"B@x,M"}), cluster, sizes);
  const std::vector<float> x = numbers(30);
  const auto y = run(x);
  REQUIRE(y.size() == 1);
  CHECK(gs::to_global<float>(y.front()) == gs::to_global(compiled(x)));
  CHECK(y.front().text() == "f32[5@x,3@y]");

  gs::parameter_store one(cluster, 7), two(cluster, 7);
  gs::executable<gs::program<training, mesh, in<"B@x,M">, in<"BH">, in<"">>> step(cluster, sizes, one);
  gs::runtime_executable same(gs::runtime_program(training, "x,y", {"B@x,M", "BH", ""}), cluster, sizes, two);
  for (int i = 0; i < 3; ++i)
    CHECK(gs::to_global<float>(same(x, numbers(15), std::array{0.1f}).front()).front() == step(x, numbers(15), std::array{0.1f}).item());
  CHECK(two.steps() == 3);
  CHECK(gs::to_global<float>(two, "w") == gs::to_global<float>(one, "w"));
}

TEST_CASE("inputs: tensors, run-time tensors, arrays, a list; outputs of several types") {
  const auto cluster = gs::simulate("x,y", 4);
  const gs::runtime_program program(pick, cluster.mesh(), {"f32[V@x,M]", "i32[B@y,]"});
  gs::runtime_executable run(program, cluster, {{'V', 5}, {'M', 2}, {'B', 3}});
  const std::vector<float> table = numbers(10);
  const std::vector<std::int32_t> ids{4, 0, 2};
  const auto check = [&](const std::vector<gs::runtime_tensor>& results) {
    REQUIRE(results.size() == 2);
    CHECK(gs::to_global<float>(results[0]) == std::vector<float>{table[8], table[9], table[0], table[1], table[4], table[5]});
    CHECK(results[1].type() == gs::dtype::f64);
    double sum = 0;
    for (const float t : table) sum += double(t);
    CHECK(gs::to_global<double>(results[1]) == std::vector{sum});
  };
  check(run(table, ids));

  gs::runtime_tensor whole(cluster, "f32[V@x,M]", {5, 2});
  for (std::size_t i = 0; i < whole.local_shards(); ++i) {
    const auto shard = whole.local_shard<float>(i);
    for (std::int64_t e = 0; e < shard.size(); ++e) shard.data[e] = table[std::size_t(2 * shard.offset(0) + e)];
  }
  check(run(whole, ids));
  tensor<float, P<"V@x,M">> typed = whole.as<tensor<float, P<"V@x,M">>>();
  check(run(typed, ids));
  const Eigen::Matrix<float, 5, 2, Eigen::RowMajor> matrix = Eigen::Map<const Eigen::Matrix<float, 5, 2, Eigen::RowMajor>>(table.data());
  check(run(matrix, ids));

  gs::runtime_tensor numbers_of_rows(cluster, "i32[B@y,]", {3});
  for (std::size_t i = 0; i < numbers_of_rows.local_shards(); ++i) {
    const auto shard = numbers_of_rows.local_shard<std::int32_t>(i);
    for (std::int64_t e = 0; e < shard.size(); ++e) shard.data[e] = ids[std::size_t(shard.offset(0) + e)];
  }
  std::vector<gs::runtime_tensor> list;
  list.push_back(std::move(whole));
  list.push_back(std::move(numbers_of_rows));
  check(run(list));
}

TEST_CASE("complete masks") {
  const auto cluster = gs::simulate("x", 2);
  gs::runtime_tensor mask(cluster, "bool[A@x,]", {3});
  for (std::size_t i = 0; i < mask.local_shards(); ++i) {
    const auto shard = mask.local_shard<bool>(i);
    for (std::int64_t e = 0; e < shard.size(); ++e) shard.data[e] = shard.offset(0) + e != 1;
  }
  CHECK(gs::to_global<bool>(mask) == std::vector<bool>{true, false, true});
}

TEST_CASE("extents from the inputs; inputs in column-major order") {
  const auto cluster = gs::simulate("x,y", 2);
  const gs::runtime_program by_rows(twice, "x,y", {"A@x,B"}), by_columns(twice, "x,y", {{"A@x,B", gs::column_major{}}});
  const Eigen::MatrixXf x = Eigen::MatrixXf::Random(3, 4);
  const auto result = [&](gs::runtime_executable run) { return gs::to_global<float>(run(x).front()); };
  const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> rows = 2 * x;
  const std::vector<float> expected(rows.data(), rows.data() + rows.size());
  CHECK(result({by_rows, cluster, {}, x}) == expected);
  CHECK(result({by_columns, cluster, {}, x}) == expected);
  CHECK(contains(complaint([&] { gs::runtime_executable(by_rows, cluster, {{'A', 4}}, x); }), "has extent 3 along A, which is 4 elsewhere"));
  CHECK(contains(complaint([&] { gs::runtime_executable(by_rows, cluster, {}, x, x); }), "it has 1 inputs, and is called with 2"));
  CHECK(contains(complaint([&] { gs::runtime_executable(by_rows, cluster, {{'A', 4}}); }), "'B'"));
}

TEST_CASE("wrong inputs, and memory of the caller") {
  const auto cluster = gs::simulate("x,y", 2);
  gs::runtime_executable run(gs::runtime_program(twice, "x,y", {"A@x,B"}), cluster, {{'A', 2}, {'B', 2}});
  const std::vector<float> x{1, 2, 3, 4};
  CHECK(contains(complaint([&] { run(); }), "it has 1 inputs, and is called with 0"));
  CHECK(contains(complaint([&] { run(x, x); }), "it has 1 inputs, and is called with 2"));
  CHECK(complaint([&] { run(std::vector<double>(4)); }) == "program: input 0 has elements of type float, not double");
  CHECK(contains(complaint([&] { run(std::vector<float>(5)); }), "input 0 (AB) has 5 elements, its dims make 4"));
  CHECK(complaint([&] { run(gs::runtime_tensor(cluster, "A,B", {2, 2})); }) ==
        "program: input 0 is f32[2,2], and the program has f32[2@x,2]: reshard it first");
  CHECK(contains(complaint([&] { run(gs::runtime_tensor(cluster, "A@x,B", {2, 3})); }), "has extents"));
  CHECK(contains(complaint([&] { run(gs::runtime_tensor(gs::simulate("x,y", 2), "A@x,B", {2, 2})); }), "belongs to another cluster"));
  CHECK(gs::to_global<float>(run(x).front()) == std::vector<float>{2, 4, 6, 8});  // errors leave it usable

  gs::runtime_tensor to(cluster, "A@x,B", {2, 2}), from(cluster, "A@x,B", {2, 2});
  run.bind_input(0, from);
  run.bind_output(0, to);
  for (std::size_t i = 0; i < 2; ++i) from.local_shard<float>(i).data[0] = from.local_shard<float>(i).data[1] = float(i + 3);
  run.run_bound();
  CHECK(to.local_shard<float>(1).data[1] == 8);
  CHECK(gs::to_global<float>(run(gs::bound).front()) == std::vector<float>{6, 6, 8, 8});
  CHECK(contains(complaint([&] { run.bind_input(1, from); }), "input 1 of 1"));
  gs::runtime_tensor other(cluster, "f64[A@x,B]", {2, 2});
  CHECK(contains(complaint([&] { run.bind_output(0, other); }), "output 0 has elements of type float, not double"));
}

TEST_CASE("an executable keeps the plan of its program") {
  const auto cluster = gs::simulate("x,y", 2);
  gs::runtime_executable run = [&] {
    const gs::runtime_program made(twice, "x,y", {"A@x,B"});
    return gs::runtime_executable(made, cluster, {{'A', 2}, {'B', 1}});
  }();
  CHECK(gs::to_global<float>(run(std::vector<float>{1, 2}).front()) == std::vector<float>{2, 4});

  gs::runtime_executable other(gs::runtime_program(twice, "x,y", {"A@x,B"}), cluster, {{'A', 2}, {'B', 1}});
  gs::runtime_tensor memory(cluster, "A@x,B", {2, 1});
  other.bind_output(0, memory);  // the next run binds the plan again
  run = std::move(other);
  CHECK(gs::to_global<float>(run(std::vector<float>{3, 4}).front()) == std::vector<float>{6, 8});
}

TEST_CASE("complete run-time tensors: partial sums, scalars, empty shards") {
  const auto cluster = gs::simulate("x,y", 4);
  gs::runtime_tensor partial(cluster, "f32[A@x]+y", {3});
  for (std::size_t i = 0; i < 4; ++i)
    for (float& element : partial.local_shard<float>(i).span()) element = float(i + 1);
  CHECK(gs::to_global<float>(partial) == std::vector<float>{3, 3, 7});
  gs::runtime_tensor none(cluster, "f32[A@x@y,]", {0});
  CHECK(gs::to_global<float>(none).empty());
  CHECK(contains(complaint([&] { gs::to_global<double>(none); }), "are float, not double"));
}
