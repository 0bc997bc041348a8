// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/checkpoint/part_file.hpp>

#include "../../io/scratch.hpp"
#include "../../io/stores.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace gs = gshard;
namespace detail = gs::detail;

namespace {

/// A part of a small store, and its contents.
struct small_part {
  scratch dir;
  detail::directory in = detail::directory::at(dir / "");
  gs::parameter_store store = stores::make(stores::simulated({2}), stores::usual(), 3);
  detail::part_plan plan;
  std::vector<std::byte> data;
  std::map<std::string, std::size_t, std::less<>> by_name;
  detail::part_info info;

  small_part() {
    stores::fill(store);
    plan = detail::plan_parts(store);
    data.resize(std::size_t(plan.bytes[1]));
    for (const detail::planned_block& b : plan.blocks[1])
      std::memcpy(data.data() + b.in_part, store.find(plan.tensors[b.tensor].name)->value.data[1] + b.in_shard, std::size_t(b.bytes));
    for (std::size_t i = 0; i < plan.tensors.size(); ++i) by_name[plan.tensors[i].name] = i;
    info = detail::write_part(in, "part-00001.bin", plan.tensors, plan.blocks[1], data, true);
  }
  /// Reads and verifies all of it, as a load does.
  void read() const {
    const std::string header = detail::read_part_header(in, "part-00001.bin", info);
    const std::vector<detail::stored_block> blocks = detail::blocks_of_part(header, info.bytes, plan.tensors, by_name);
    REQUIRE(blocks.size() == plan.blocks[1].size());
    const auto [file, size] = in.read("part-00001.bin");
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const detail::planned_block& planned = plan.blocks[1][i];
      CHECK(blocks[i].tensor == planned.tensor);
      CHECK(blocks[i].at.offset == planned.at.offset);
      CHECK(blocks[i].at.extent == planned.at.extent);
      std::vector<std::byte> bytes(std::size_t(blocks[i].bytes));
      detail::read_block(file, "part", blocks[i], bytes);
      CHECK(std::memcmp(bytes.data(), data.data() + planned.in_part, bytes.size()) == 0);
    }
  }
};

}  // namespace

TEST_CASE("part file: what is written is read, and only its owner may read it") {
  const mode_t before = ::umask(0);
  const small_part part;
  ::umask(before);
  part.read();
  CHECK(std::filesystem::status(part.dir / "part-00001.bin").permissions() == std::filesystem::perms(0600));
  CHECK(std::int64_t(content_of(part.dir / "part-00001.bin").size()) == part.info.bytes);
  CHECK(detail::part_name(1) == "part-00001.bin");
  CHECK(detail::part_name(1234567) == "part-1234567.bin");
}

TEST_CASE("part file: every flipped byte, and every truncation, is refused") {
  const small_part part;
  const std::string good = content_of(part.dir / "part-00001.bin");
  const auto is_refused = [&](const std::string& content) {
    set_content(part.dir / "part-00001.bin", content);
    return !complaint([&] { part.read(); }).empty();
  };
  for (std::size_t i = 0; i < good.size(); ++i)
    for (const int bit : {0, 3, 7}) {
      std::string bad = good;
      bad[i] = char(bad[i] ^ (1 << bit));
      if (!is_refused(bad)) FAIL_CHECK("byte " << i << " may change");
    }
  for (std::size_t i = 0; i < good.size(); ++i)
    if (!is_refused(good.substr(0, i))) FAIL_CHECK("the file may end at byte " << i);
  CHECK(is_refused(good + "x"));
  CHECK_FALSE(is_refused(good));
}

TEST_CASE("part file: it exists already, or is a link: nothing is written") {
  const small_part part;
  const auto write = [&](const std::string& name) {
    return complaint([&] { detail::write_part(part.in, name, part.plan.tensors, part.plan.blocks[1], part.data, true); });
  };
  CHECK(contains(write("part-00001.bin"), "File exists"));
  std::filesystem::create_symlink(part.dir / "target", part.dir / "link");
  CHECK(contains(write("link"), "File exists"));
  CHECK_FALSE(std::filesystem::exists(part.dir / "target"));
  std::filesystem::rename(part.dir / "part-00001.bin", part.dir / "target");
  std::filesystem::create_symlink(part.dir / "target", part.dir / "part-00001.bin");
  CHECK(contains(complaint([&] { part.read(); }), "is a symbolic link"));
}

TEST_CASE("part file: an element that is infinite or not a number is named") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {inf, -inf, nan, -nan})
    for (const std::size_t at : {0u, 1u, 1023u, 1024u, 2999u}) {
      std::vector<float> x(3000, std::numeric_limits<float>::max());
      CHECK(detail::first_not_finite(gs::dtype::f32, std::as_bytes(std::span(x))) == -1);
      CHECK(detail::first_not_finite(gs::dtype::c64, std::as_bytes(std::span(x))) == -1);
      x[at] = bad;
      CHECK(detail::first_not_finite(gs::dtype::f32, std::as_bytes(std::span(x))) == std::int64_t(at));
      CHECK(detail::first_not_finite(gs::dtype::c64, std::as_bytes(std::span(x))) == std::int64_t(at / 2));
      CHECK(detail::first_not_finite(gs::dtype::i32, std::as_bytes(std::span(x))) == -1);
      std::vector<double> y(3000, std::numeric_limits<double>::lowest());
      CHECK(detail::first_not_finite(gs::dtype::f64, std::as_bytes(std::span(y))) == -1);
      y[at] = double(bad);
      CHECK(detail::first_not_finite(gs::dtype::f64, std::as_bytes(std::span(y))) == std::int64_t(at));
      CHECK(detail::first_not_finite(gs::dtype::c128, std::as_bytes(std::span(y))) == std::int64_t(at / 2));
      std::vector<std::uint16_t> z(3000, 0x7bff);
      CHECK(detail::first_not_finite(gs::dtype::f16, std::as_bytes(std::span(z))) == -1);
      z[at] = 0xfc00;
      CHECK(detail::first_not_finite(gs::dtype::f16, std::as_bytes(std::span(z))) == std::int64_t(at));
      z.assign(3000, 0x7f7f);
      CHECK(detail::first_not_finite(gs::dtype::bf16, std::as_bytes(std::span(z))) == -1);
      z[at] = 0x7f81;
      CHECK(detail::first_not_finite(gs::dtype::bf16, std::as_bytes(std::span(z))) == std::int64_t(at));
    }
  const scratch dir;
  const detail::directory in = detail::directory::at(dir / "");
  gs::parameter_store store(stores::simulated({1}));
  auto& entry = stores::add(store, {"w", gs::dtype::f32, {4, 2}}, gs::sharding::replicated(2));
  entry.value.as<float>(0)[5] = nan;
  const detail::part_plan plan = detail::plan_parts(store);
  const std::span<const std::byte> data(entry.value.data[0], 32);
  CHECK(
      complaint([&] { detail::write_part(in, "f", plan.tensors, plan.blocks[0], data, false); }) ==
      "checkpoint: element 5 of \"w[0:4,0:2]\" is infinite or not a number; checkpointer_options::allow_not_finite saves it nevertheless");
  detail::write_part(in, "g", plan.tensors, plan.blocks[0], data, true);
}

TEST_CASE("part header: hostile ones are refused") {
  const std::vector<detail::saved_tensor> tensors{{"w", gs::dtype::f32, {4, 2}, true}, {"z", gs::dtype::bf16, {}, true}};
  const std::map<std::string, std::size_t, std::less<>> by_name{{"w", 0}, {"z", 1}};
  const std::string digest(64, 'a');
  const auto said = [&](const std::string& json, std::int64_t data_bytes) {
    return complaint([&] {
      const std::string header = std::string(8, '\0') + json;
      detail::blocks_of_part(header, std::int64_t(header.size()) + data_bytes, tensors, by_name);
    });
  };
  const auto one = [&](const std::string& name, const std::string& type, const std::string& shape, const std::string& offsets,
                       const std::string& meta) {
    return R"({"__metadata__":{"gshard.part":"1")" + meta + R"(},")" + name + R"(":{"dtype":")" + type + R"(","shape":)" + shape +
           R"(,"data_offsets":)" + offsets + "}}";
  };
  const auto with = [&](const std::string& name) { return R"(,")" + name + R"(":")" + digest + '"'; };
  CHECK(said(one("w[0:4,0:2]", "F32", "[4,2]", "[0,32]", with("w[0:4,0:2]")), 32) == "");
  CHECK(said(one("z[]", "U8", "[2]", "[0,2]", with("z[]")), 2) == "");
  for (const char* name :
       {"w[0:5,0:2]", "w[1:5,0:2]", "w[0:4,0:3]", "w[-1:3,0:2]", "w[0:4]", "w[0:4,0:2,0:1]", "w[0:4,0:2]x", "w0:4,0:2]", "w", "v[0:4,0:2]",
        "w[2:2,0:2]", "w[99999999999999999999:4,0:2]", "w[ 0:4,0:2]", "w[+0:4,0:2]", "w[0:4,0:2", "w[]"})
    CHECK(said(one(name, "F32", "[4,2]", "[0,32]", with(name)), 32) != "");
  CHECK(said(one("w[0:4,0:2]", "F64", "[4,2]", "[0,64]", with("w[0:4,0:2]")), 64) != "");      // another type
  CHECK(said(one("w[0:4,0:2]", "F32", "[2,4]", "[0,32]", with("w[0:4,0:2]")), 32) != "");      // another shape
  CHECK(said(one("w[0:4,0:2]", "F32", "[4,2]", "[0,32]", ""), 32) != "");                      // no digest
  CHECK(said(one("w[0:4,0:2]", "F32", "[4,2]", "[0,32]", R"(,"w[0:4,0:2]":"a")"), 32) != "");  // a short digest
  CHECK(said(one("w[0:4,0:2]", "F32", "[4,2]", "[0,32]", with("x")), 32) != "");
  CHECK(said(one("w[0:4,0:2]", "F32", "[4,2]", "[4,36]", with("w[0:4,0:2]")), 36) != "");  // a hole
  CHECK(said(R"({"w[0:4,0:2]":{"dtype":"F32","shape":[4,2],"data_offsets":[0,32]}})", 32) != "");
}
