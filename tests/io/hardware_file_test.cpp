// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/hardware_file.hpp>
#include <gshard/ops/rows/softmax.hpp>

#include "../complaint.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <fstream>
#include <string>

namespace gs = gshard;

namespace {

gs::hardware measured_cluster() {
  gs::machine m{
      .flops = 1e11, .memory_bytes = 3e10, .link_bytes = 1.25e8, .start = 1e-4, .node_devices = 2, .node_bytes = 5e9, .node_start = 2e-6};
  m.measured.run_start = 3e-5;
  m.measured.hidden = -0.25;
  m.measured.product.add(8, 1e-9);
  m.measured.product.add(64, 1e-10);
  m.measured.batched_product.add(16, 3e-10);
  m.measured.operations[std::size_t(gs::op::softmax.id)] = {1e-6, 1.0 / 3};
  gs::measured_curve& c = m.measured.collective(gs::op::all_to_all, gs::group_reach::both);
  c.add(0, 1e-4);
  c.add(1000, 1.0 / 7);
  gs::hardware h = gs::make_cluster("two nodes", 2, m);
  h.memory = 1 << 30;
  return h;
}
/// The error message for the cluster's file after a change.
template <class Change>
std::string problem_after(Change change) {
  nlohmann::ordered_json file = gs::hardware_json(measured_cluster());
  change(file);
  return complaint([&] { gs::parse_hardware_file(file.dump(), "c.json"); });
}
using json = nlohmann::ordered_json;

}  // namespace

TEST_CASE("hardware file: what is written is read, to the bit") {
  const gs::hardware h = measured_cluster(), back = gs::parse_hardware_file(gs::hardware_json(h).dump(), "c.json");
  CHECK(back.device.measured.operations == h.device.measured.operations);
  CHECK(back.device.measured.collectives == h.device.measured.collectives);
  CHECK(back.device.measured.product.value[1] == doctest::Approx(1e-10));
  CHECK(back.device.measured.batched_product.count == 1);
  CHECK(back.device.measured.run_start == 3e-5);
  CHECK(back.device.measured.hidden == -0.25);
  CHECK(back.device.link_bytes == 1.25e8);
  CHECK(back.device.node_devices == 2);
  CHECK(back.device.node_start == 2e-6);
  CHECK(back.name == "two nodes");
  CHECK(back.devices() == 4);
  CHECK(back.memory == 1 << 30);
  CHECK(!back.is_torus());
}

TEST_CASE("hardware file: a wrong one names file and field") {
  CHECK(complaint([] { gs::parse_hardware_file("{", "c.json"); }) == "hardware file 'c.json': is not JSON");
  CHECK(complaint([] { gs::parse_hardware_file("[]", "c.json"); }) == "hardware file 'c.json': is not an object");
  CHECK(complaint([] { gs::read_hardware("/no/such.json"); }) == "hardware file '/no/such.json': cannot be read");
  CHECK(problem_after([](json&) {}).empty());
  CHECK(problem_after([](json& f) { f["format"] = "2"; }) == "hardware file 'c.json': format: '2' is not one of: gshard hardware 1");
  CHECK(problem_after([](json& f) { f.erase("flops"); }) == "hardware file 'c.json': flops: is missing");
  CHECK(problem_after([](json& f) { f["nodes"] = 0; }) == "hardware file 'c.json': nodes: is not a whole number of at least 1");
  CHECK(problem_after([](json& f) { f["nodes"] = 1e6; }).starts_with("hardware file 'c.json': nodes: is not a whole number"));
  CHECK(problem_after([](json& f) { f["hidden"] = 2; }) == "hardware file 'c.json': hidden: is not a number from -1 to 1");
  CHECK(problem_after([](json& f) { f["between_nodes"]["bytes_per_second"] = 0; }) ==
        "hardware file 'c.json': between_nodes.bytes_per_second: is not a number above 0");
  CHECK(problem_after([](json& f) { f["between_nodes"] = 1; }) == "hardware file 'c.json': between_nodes: is not an object");
  CHECK(problem_after([](json& f) { f["collectives"][0]["seconds"][1] = nullptr; }) ==
        "hardware file 'c.json': collectives[0].seconds[1]: is not a number above 0");
  CHECK(problem_after([](json& f) { f["collectives"][0]["seconds"].push_back(1); }) ==
        "hardware file 'c.json': collectives[0].seconds: has 3 numbers, bytes has 2");
  CHECK(problem_after([](json& f) { f["collectives"][0]["bytes"] = {5, 5}; }) ==
        "hardware file 'c.json': collectives[0].bytes[1]: is not more than the number before it");
  CHECK(problem_after([](json& f) { f["collectives"][0]["bytes"] = json::array(); }) ==
        "hardware file 'c.json': collectives[0].bytes: has 0 points, not 1 to 8");
  CHECK(problem_after([](json& f) {
          f["collectives"][0]["kind"] = "softmax";
        }).find("collectives[0].kind: 'softmax' is not one of: all_gather, ") != std::string::npos);
  CHECK(problem_after([](json& f) {
          f["operations"][0]["kind"] = "all_gather";
        }).find("operations[0].kind: 'all_gather' is not one of: einsum") != std::string::npos);
  CHECK(problem_after([](json& f) { f["operations"][0]["kind"] = "looped_einsum"; }).find("'looped_einsum' is not one of: einsum") !=
        std::string::npos);
  CHECK(problem_after([](json& f) { f["operations"] = 1; }) == "hardware file 'c.json': operations: is not a list");
}
