// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/onnx/file/read_tensor.hpp>

#include "../make_model.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace on = gshard::onnx;
using namespace onnx_tests;

namespace {

/// The tensor of a message, whose fields f writes.
template <class F>
on::model_tensor read(const F& f) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  f(w);
  on::wire_state state;
  on::data_files none("");
  const auto owner = std::make_shared<const std::string>(bytes);
  return on::tensor_reader(state, none).read(protozero::pbf_reader(*owner), owner);
}
template <class F>
std::string complaint_of(const F& f) {
  try {
    read(f);
  } catch (const gshard::error& e) {
    return e.what();
  }
  return "";
}
void shape_of(protozero::pbf_writer& w, on::element type, const shape& extents) {
  w.add_packed_int64(1, extents.begin(), extents.end());
  w.add_int32(2, int(type));
}

}  // namespace

TEST_CASE("elements may be raw, floats, doubles, integers of three fields, packed or not") {
  const std::vector<float> floats{1, 2.5f};
  const std::vector<std::int64_t> integers{3, -4};
  const auto as_floats = [&](protozero::pbf_writer& w) {
    shape_of(w, on::element::f32, {2}), w.add_packed_float(4, floats.begin(), floats.end());
  };
  CHECK(on::constant_of(read(as_floats)).reals == std::vector<double>{1, 2.5});
  const auto one_by_one = [&](protozero::pbf_writer& w) { shape_of(w, on::element::f32, {2}), w.add_float(4, 1), w.add_float(4, 2.5f); };
  CHECK(on::constant_of(read(one_by_one)).reals == std::vector<double>{1, 2.5});
  for (const on::element type : {on::element::i8, on::element::i16, on::element::i32, on::element::i64}) {
    const auto packed = [&](protozero::pbf_writer& w) {
      shape_of(w, type, {2}), w.add_packed_int64(type == on::element::i64 ? 7 : 5, integers.begin(), integers.end());
    };
    CHECK(on::constant_of(read(packed)).integers == integers);
  }
  const auto unpacked = [&](protozero::pbf_writer& w) { shape_of(w, on::element::i64, {2}), w.add_int64(7, 3), w.add_int64(7, -4); };
  CHECK(on::constant_of(read(unpacked)).integers == integers);
  const auto raw = [&](protozero::pbf_writer& w) {
    shape_of(w, on::element::f32, {2}), w.add_bytes(9, reinterpret_cast<const char*>(floats.data()), 8);
  };
  CHECK(on::constant_of(read(raw)).reals == std::vector<double>{1, 2.5});
}

TEST_CASE("a tensor whose elements do not fit its shape is refused") {
  const auto with = [](on::element type, const shape& extents, const std::string& bytes) {
    return [=](protozero::pbf_writer& w) { shape_of(w, type, extents), w.add_bytes(9, bytes); };
  };
  CHECK(complaint_of(with(on::element::f32, {2}, "1234567")) == "the model has 7 bytes of elements, and its shape has 8");
  CHECK(complaint_of(with(on::element::f32, {-1}, "")) == "the model has a dim of extent -1");
  CHECK(complaint_of(with(on::element::f32, {std::int64_t(1) << 40, std::int64_t(1) << 40}, "")) ==
        "the model has more elements than can be counted");
  CHECK(complaint_of(with(on::element::f32, {1, 1, 1, 1, 1, 1, 1, 1, 1}, "1234")) == "the model has more than 8 dims");
  CHECK(complaint_of(with(on::element::undefined, {}, "")) == "the model has the element type 0, which gshard does not know");
  CHECK(complaint_of([](protozero::pbf_writer& w) { shape_of(w, on::element::f32, {1}), w.add_float(4, 1), w.add_bytes(9, "1234"); }) ==
        "the model stores its elements in two places");
  CHECK(complaint_of([](protozero::pbf_writer& w) { shape_of(w, on::element::f32, {1}), w.add_int64(7, 1); }) ==
        "the model has the element type float, and stores integers");
  CHECK(complaint_of([](protozero::pbf_writer& w) { shape_of(w, on::element::i32, {1}), w.add_float(4, 1); }) ==
        "the model has the element type int32, and stores numbers of another type");
}

TEST_CASE("external elements are in the folder of the model, and in the file") {
  std::ofstream("read_tensor_test.bin", std::ios::binary) << "01234567";
  on::data_files files("./");
  const auto external = [&](const std::string& location, const std::string& offset, const std::string& length) -> std::string {
    std::string bytes;
    protozero::pbf_writer w(bytes);
    shape_of(w, on::element::f32, {1});
    for (const auto& [key, value] :
         std::vector<std::pair<std::string, std::string>>{{"location", location}, {"offset", offset}, {"length", length}}) {
      if (value.empty()) continue;
      std::string entry;
      protozero::pbf_writer of_entry(entry);
      of_entry.add_string(1, key);
      of_entry.add_string(2, value);
      w.add_message(13, entry);
    }
    w.add_int32(14, 1);
    on::wire_state state;
    try {
      const on::model_tensor t = on::tensor_reader(state, files).read(protozero::pbf_reader(bytes), nullptr);
      return std::string(reinterpret_cast<const char*>(t.data.data()), t.data.size());
    } catch (const gshard::error& e) {
      return e.what();
    }
  };
  CHECK(external("read_tensor_test.bin", "", "") == "0123");
  CHECK(external("read_tensor_test.bin", "4", "4") == "4567");
  CHECK(external("read_tensor_test.bin", "8", "") == "the model has 0 bytes of elements, and its shape has 4");
  CHECK(external("read_tensor_test.bin", "9", "") == "the model has elements that begin at byte 9 of a file of 8 bytes");
  CHECK(external("read_tensor_test.bin", "6", "4") == "the model has 4 bytes of elements, from byte 6 of a file of 8 bytes");
  CHECK(external("read_tensor_test.bin", "4", "18446744073709551615").ends_with("from byte 4 of a file of 8 bytes"));
  CHECK(external("read_tensor_test.bin", "1099511627776", "4") ==
        "the model has elements that begin at byte 1099511627776 of a file of 8 bytes");
  CHECK(external("read_tensor_test.bin", "-1", "") == "the model has an external offset that is not a number of 64 bits");
  CHECK(external("../x", "", "") == "the model has its elements in the file \"../x\", which is not in the folder of the model");
  CHECK(external("/x", "", "") == "the model has its elements in the file \"/x\", which is not in the folder of the model");
  CHECK(external("", "0", "") == "the model has external elements without a location");
  std::remove("read_tensor_test.bin");
}
