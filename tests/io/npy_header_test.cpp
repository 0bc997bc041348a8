// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/npy_header.hpp>

#include "../complaint.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {

gs::npy_header parsed(const std::string& file) {
  return gs::read_npy_header("f.npy", std::int64_t(file.size()), [&](std::int64_t at, std::span<std::byte> to) {
    REQUIRE(std::size_t(at) + to.size() <= file.size());
    if (!to.empty()) std::memcpy(to.data(), file.data() + at, to.size());
  });
}
std::string said(const std::string& file) {
  return complaint([&] { parsed(file); });
}
std::string file_of(const std::string& dict, std::size_t data_bytes, char major = 1) {
  std::string file = std::string(gs::npy_header::magic) + major + '\0' + char(dict.size() & 0xff) + char(dict.size() >> 8);
  if (major > 1) file += std::string(2, '\0');
  return file + dict + std::string(data_bytes, 'x');
}
std::string dict_of(const std::string& descr, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }";
}

}  // namespace

TEST_CASE("npy_header: what is written is read back, at a multiple of 64 bytes") {
  for (const gs::dtype type : {gs::dtype::f32, gs::dtype::f64, gs::dtype::i32})
    for (const std::vector<std::int64_t>& shape :
         {std::vector<std::int64_t>{}, {0}, {7}, {3, 5}, {4, 0, 2}, std::vector<std::int64_t>(std::size_t(gs::max_rank), 2)}) {
      const std::string text = gs::npy_header_text(type, shape);
      CHECK(text.size() % 64 == 0);
      CHECK(text.back() == '\n');
      std::int64_t bytes = gs::size_of(type);
      for (const std::int64_t e : shape) bytes *= e;
      CHECK(parsed(text + std::string(std::size_t(bytes), 'x')) == gs::npy_header{type, false, shape, std::int64_t(text.size())});
    }
  CHECK(gs::npy_header_text(gs::dtype::f32, std::vector<std::int64_t>{3, 5}).substr(10).starts_with(
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }  "));
}

TEST_CASE("npy_header: versions, blanks, quotes and orders of fields that others write") {
  for (const char major : {char(1), char(2), char(3)})
    CHECK(parsed(file_of(dict_of("'<f4'", "(2,)"), 8, major)).shape == std::vector<std::int64_t>{2});
  const gs::npy_header h = parsed(file_of("{ \"shape\" :(2 ,3),'fortran_order':True,\n'descr':'<f8'}   \n", 48));
  CHECK(h.column_major);
  CHECK(h.type == gs::dtype::f64);
  CHECK(h.shape == std::vector<std::int64_t>{2, 3});
}

TEST_CASE("npy_header: a file that lies is refused with one sentence") {
  const std::string good = dict_of("'<f4'", "(2, 3)");
  CHECK(said(file_of(good, 24)).empty());
  CHECK(said(file_of(good, 23)) == "f.npy: is truncated: it has 23 bytes of elements, its header says 24");
  CHECK(said(file_of(good, 25)) == "f.npy: does not fit its header: it has 25 bytes of elements, its header says 24");
  CHECK(said("") == "f.npy: is not a .npy file");
  CHECK(said("PK\3\4 an archive") == "f.npy: is not a .npy file");
  for (std::size_t n = 6; n < 20; ++n) CHECK(said(file_of(good, 24).substr(0, n)) == "f.npy: is truncated: it ends in its header");
  CHECK(said(file_of(good, 24, 4)) == "f.npy: is a .npy file of version 4.0, not 1.0, 2.0 or 3.0");
  std::string minor = file_of(good, 24);
  minor[7] = 3;
  CHECK(contains(said(minor), "version 1.3"));
  std::string longer = file_of(good, 24, 2);
  longer[11] = '\x7f';
  CHECK(contains(said(longer), "more than 65536"));

  const auto refused = [](const std::string& dict, const std::string& why) {
    CAPTURE(dict);
    CHECK(said(file_of(dict, 24)) == "f.npy: is not a valid .npy file: " + why);
  };
  refused(dict_of("'>f4'", "(2, 3)"),
          "the header says that the elements are '>f4', which is not one of <f4, <f8, <i4, <i8, <c8, <c16, |b1, <f2");
  refused(dict_of("'\x01|O'", "(2, 3)"),
          "the header says that the elements are '?|O', which is not one of <f4, <f8, <i4, <i8, <c8, <c16, |b1, <f2");
  refused(dict_of("[('a', '<f4')]", "(2, 3)"), "the header says that the elements are records");
  refused(dict_of("'<f4'", "(2, -3)"), "the header has an extent that is not a whole number");
  refused(dict_of("'<f4'", "(99999999999999999999)"), "the header has an extent of 2^63 or more");
  refused(dict_of("'<f4'", "(6)"), "the header has a shape that is not a tuple");
  refused(dict_of("'<f4'", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"),
          "the header has a shape of more than " + std::to_string(gs::max_rank) + " dims");
  refused(dict_of("'<f4'", "(4611686018427387904, 4611686018427387904)"), "its elements are more than can be counted");
  refused(dict_of("'<f4'", "(0, 4611686018427387904, 4)"), "its elements are more than can be counted");
  refused("{'descr': '<f4', 'shape': (2, 3)}", "the header lacks its descr, fortran_order or shape");
  refused("{'descr': '<f4', 'descr': '<f4', 'shape': (2, 3)}", "the header has two fields 'descr'");
  refused("{'descr': '<f4', 'order': 'C'}", "the header has a field 'order'");
  refused("{'descr': '<f4', 'fortran_order': None, 'shape': (2, 3)}", "the header has a fortran_order that is not True or False");
  refused(good + "; import os", "the header has text after its dict");
  refused("[1, 2]", "the header is not a dict as NumPy writes it: byte 0 of the dict is not '{'");
  refused("{'descr", "the header is not a dict as NumPy writes it: byte 1 of the dict begins no text");
}

TEST_CASE("npy_header: damaged headers are read or refused, and reads stay in the file") {
  std::mt19937 random(1);
  int refusals = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string file = file_of(dict_of("'<f4'", "(2, 3)"), 24, char(1 + random() % 3));
    for (std::uint32_t changes = 1 + random() % 4; changes-- > 0;) {
      const std::size_t at = random() % file.size();
      switch (random() % 3) {
        case 0: file[at] = char(random() % 256); break;
        case 1: file.erase(at, 1 + random() % 4); break;
        case 2: file.insert(at, 1, "{}()',: 09<f\n"[random() % 13]); break;
      }
      if (file.empty()) file = "x";
    }
    const std::string problem = said(file);
    refusals += !problem.empty();
    CHECK((problem.empty() || problem.starts_with("f.npy: ")));
  }
  CHECK(refusals > 15000);
}
