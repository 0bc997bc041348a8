// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/hugging_face_files.hpp>

#include "mixtral.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gs = gshard;

namespace {

const mixtral::weights two{{"a", {2, 0, {1, 2}}}, {"b", {1, 3, {3, 4, 5}}}};

std::string map_to(const std::string& file) { return R"({"weight_map":{"a":")" + file + R"(","b":")" + file + "\"}}"; }

}  // namespace

TEST_CASE("hugging_face_files: model.safetensors comes before an index, as in Hugging Face's library") {
  const scratch dir;
  CHECK(complaint([&] { gs::detail::hugging_face_files files(dir / ""); }) ==
        (dir / "") + ": has neither model.safetensors nor model.safetensors.index.json");
  set_content(dir / "other", mixtral::file_of(two));
  set_content(dir / "model.safetensors.index.json", map_to("other"));
  CHECK(gs::detail::hugging_face_files(dir / "").find("b").file->path() == dir / "other");
  set_content(dir / "model.safetensors", mixtral::file_of({{"a", two.at("a")}}));
  CHECK(gs::detail::hugging_face_files(dir / "").find("a").file->path() == dir / "model.safetensors");
  CHECK(gs::detail::hugging_face_files(dir / "").find("b").info == nullptr);
  CHECK(gs::text_of(*gs::detail::hugging_face_files(dir / "other").find("b").info) == "F32[1,3]");
}

TEST_CASE("hugging_face_files: an index that is damaged, or that the files do not bear out, is refused") {
  const scratch dir;
  const std::string index = dir / "model.safetensors.index.json";
  const auto reading = [&](const std::string& text) {
    set_content(index, text);
    return complaint([&] { gs::detail::hugging_face_files files(dir / ""); });
  };
  set_content(dir / "f", mixtral::file_of(two));
  CHECK(reading(map_to("f")).empty());
  for (const char* const text : {"", "{", "\xff", "[1,2"}) CHECK(reading(text) == index + ": is not JSON");
  for (const char* const text : {"[]", "1", "{}", R"({"weight_map":[]})", R"({"weight_map":{}})"})
    CHECK(reading(text) == index + ": has no weight_map of tensors to files");
  CHECK(reading(R"({"weight_map":{"a":1}})") == index + ": the file of \"a\" is not a text");
  for (const char* const file : {"", ".", "..", "../f", "/etc/passwd", "f\\u0000"}) {
    CAPTURE(file);
    CHECK(contains(reading(map_to(file)), index + ": the file of \"a\" is \""));
    CHECK(contains(reading(map_to(file)), "\", not a file of this directory"));
  }
  CHECK(reading(map_to("g")) == (dir / "g") + ": is missing, but " + index + " places \"a\" there");
  CHECK(reading(R"({"weight_map":{"a":"f","b":"f","a":"g"}})") == index + ": has \"a\" twice");
  CHECK(reading(R"({"weight_map":{"a":"f"},"weight_map":{"b":"f"}})") == index + ": has \"weight_map\" twice");
  CHECK(reading(R"({"metadata":{"b":{"a":1,"a":2}},"weight_map":{"a":"f","b":"f"},"metadata2":{"b":1,"a":2}})").empty());
  CHECK(reading(std::string(1 << 20, '[')) == index + ": is not JSON");
  CHECK(reading(R"({"weight_map":)" + std::string(1 << 18, '[') + std::string(1 << 18, ']') + "}") ==
        index + ": has no weight_map of tensors to files");
  // A tensor in two files: the index assigns it to one of them.
  set_content(dir / "g", mixtral::file_of({{"a", two.at("a")}}));
  CHECK(reading(R"({"weight_map":{"a":"g","b":"f"}})") == (dir / "f") + ": has \"a\", which the index does not place there");
  CHECK(reading(R"({"weight_map":{"a":"f","b":"f","c":"f"}})") == (dir / "f") + ": lacks \"c\", which " + index + " places there");
  CHECK(reading(R"({"weight_map":{"a":"f"}})") == (dir / "f") + ": has \"b\", which the index does not place there");
  set_content(dir / "f", "no tensors");
  CHECK(contains(reading(map_to("f")), (dir / "f") + ": "));
}

TEST_CASE("hugging_face_files: a file that the system does not show is not one that is missing") {
  const scratch dir;
  std::filesystem::create_symlink("model.safetensors", dir / "model.safetensors");  // a loop
  set_content(dir / "model.safetensors.index.json", map_to("f"));
  set_content(dir / "f", mixtral::file_of(two));
  const std::string loops = (dir / "model.safetensors") + ": cannot be looked at: Too many levels of symbolic links";
  CHECK(complaint([&] { gs::detail::hugging_face_files files(dir / ""); }) == loops);
  std::filesystem::remove(dir / "model.safetensors.index.json");
  CHECK(complaint([&] { gs::detail::hugging_face_writer out(dir / "", {{"a", gs::array_type::f32, {1}}}, 1); }) == "");  // replaces it
  CHECK(complaint([&] {
          gs::detail::hugging_face_writer out(dir / "", {{"a", gs::array_type::f32, {1}}, {"b", gs::array_type::f32, {1}}}, 1);
        }) == loops);
  if (::geteuid() != 0) return;  // only root can become another user
  REQUIRE(::seteuid(65534) == 0);
  const std::string said = complaint([&] { gs::detail::hugging_face_files files(dir / ""); });
  REQUIRE(::seteuid(0) == 0);
  CHECK(said == (dir / "model.safetensors") + ": cannot be looked at: Permission denied");
}

TEST_CASE("hugging_face_writer: the umask decides about a new directory") {
  const scratch dir;
  for (const auto& [mask, name] : {std::pair{022, "shared"}, {077, "own"}}) {
    const mode_t before = ::umask(mode_t(mask));
    gs::detail::hugging_face_writer out(dir / name, {{"a", gs::array_type::f32, {1}}}, 1);
    ::umask(before);
    CHECK(int(std::filesystem::status(dir / name).permissions()) == (0777 & ~mask));
  }
}

TEST_CASE("hugging_face_files: any bytes of an index are a model or an error") {
  const scratch dir;
  set_content(dir / "f", mixtral::file_of(two));
  const std::string valid = map_to("f");
  std::mt19937_64 random(1);
  int models = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = valid;
    for (std::size_t n = random() % 4; n > 0; --n) {
      const std::size_t at = random() % text.size();
      if (random() % 3 == 0) text.erase(at, random() % 8);
      else if (random() % 2 == 0) text[at] = char(random());
      else text.insert(at, std::string(1, "{}[]\",:ab0"[random() % 11]));
      if (text.empty()) text = " ";
    }
    set_content(dir / "model.safetensors.index.json", text);
    const std::string said = complaint([&] { gs::detail::hugging_face_files files(dir / ""); });
    models += said.empty();
    CHECK((said.empty() || said.starts_with(dir / "")));
  }
  CHECK(models > 400);
}

TEST_CASE("hugging_face_writer: files of at most so many bytes, or of one tensor") {
  const std::vector<gs::array_info> arrays{{"a", gs::array_type::f32, {4}},
                                           {"none", gs::array_type::f32, {0, 3}},
                                           {"b", gs::array_type::f32, {1}},
                                           {"c", gs::array_type::u8, {100}},
                                           {"end", gs::array_type::u8, {0}}};
  for (const auto& [most, count] : {std::pair{1000, 1u}, {120, 1u}, {119, 2u}, {100, 2u}, {20, 2u}, {19, 3u}, {1, 3u}}) {
    CAPTURE(most);
    const scratch dir;
    gs::detail::hugging_face_writer out(dir / "d", arrays, most);
    std::vector<std::byte> data(120);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = std::byte(i);
    out.write(std::span(data).first(16));
    out.write(std::span(data).subspan(16, 4));
    out.write(std::span(data).subspan(20, 30));
    out.write(std::span(data).subspan(50));
    out.commit();
    const gs::detail::hugging_face_files files(dir / "d");
    CHECK(files.files().size() == count);
    std::vector<std::byte> read(120);
    files.find("a").file->read("a", std::span(read).first(16));
    files.find("b").file->read("b", std::span(read).subspan(16, 4));
    files.find("c").file->read("c", std::span(read).subspan(20));
    CHECK(read == data);
    CHECK(gs::text_of(*files.find("none").info) == "F32[0,3]");
    CHECK(gs::text_of(*files.find("end").info) == "U8[0]");
  }
  const scratch dir;
  CHECK(complaint([&] { gs::detail::hugging_face_writer out(dir / "d", {}, 1); }) == (dir / "d") + ": there are no tensors to write");
}
