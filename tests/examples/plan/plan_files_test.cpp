// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plan/plan_files.hpp"

#include "../../complaint.hpp"
#include "../../io/scratch.hpp"

#include <gshard/core/trace/einsum.hpp>
#include <gshard/runtime/runtime_program.hpp>

#include <doctest/doctest.h>

#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

namespace gs = gshard;

namespace {

inline constexpr auto layer = [](auto& m, auto x) { return gs::einsum<"BM,MH->BH">(x, m.param("w", "MH", gs::init::fan_in("M"))); };

/// Replaces the buffer of std::cout while it lives.
class captured_output {
 public:
  captured_output() : before_(std::cout.rdbuf(text_.rdbuf())) {}
  captured_output(const captured_output&) = delete;
  captured_output& operator=(const captured_output&) = delete;
  ~captured_output() { std::cout.rdbuf(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

/// What a subcommand prints, or why it fails, after the exit status.
template <class F>
std::string output_of(const F& command) {
  const captured_output out;
  try {
    const int status = command();
    return std::to_string(status) + ": " + out.text();
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("plan: files are shown, compared, priced and checked") {
  const scratch folder;
  const std::string rows = folder / "rows.plan", columns = folder / "columns.plan";
  gs::save_plan(rows, gs::runtime_program(layer, "x", {"B@x,M"}).plan());
  gs::save_plan(columns, gs::runtime_program(layer, "x", {"B,M@x"}).plan());
  CHECK(contains(output_of([&] { return planning::show(columns); }), "all_reduce over x"));
  CHECK(output_of([&] { return planning::diff(rows, rows); }) == "0: ");
  const std::string lines = output_of([&] { return planning::diff(rows, columns); });
  CHECK(lines.starts_with("1: "));
  CHECK(contains(lines, "-   input  f32[B@x,M]\n"));
  CHECK(contains(lines, "+   input  f32[B,M@x]\n"));
  CHECK(contains(lines, "+   all_reduce over x"));
  CHECK(contains(output_of([&] { return planning::price(columns, "B=8,M=16,H=4", "x=4", ""); }), "all_reduce"));
  CHECK(contains(output_of([&] { return planning::price(columns, "B=8,M=16,H=4", "x=4", "tpu-v3:1x2"); }), "GiB"));
  CHECK(contains(output_of([&] { return planning::price(columns, "B=8", "x=4", ""); }), "is given no extent"));
  CHECK(contains(output_of([&] { return planning::price(columns, "B=8", "", ""); }), "the axis \"x\" has no extent"));
  CHECK(contains(output_of([&] { return planning::check_file(columns, false); }), "2 steps, 1 of them communicate\n"));
}

TEST_CASE("plan: rows that were changed are accepted on request") {
  const scratch folder;
  const std::string path = folder / "layer.plan";
  gs::save_plan(path, gs::runtime_program(layer, "x", {"B@x,M"}).plan());
  std::string text = content_of(path);
  text.replace(text.find("\"name\":\"w\""), 10, "\"name\":\"v\"");
  std::ofstream(path) << text;
  CHECK(contains(output_of([&] { return planning::check_file(path, false); }), "was changed after it was written"));
  CHECK(output_of([&] { return planning::check_file(path, true); }).starts_with("0: "));
  CHECK(output_of([&] { return planning::check_file(path, false); }).starts_with("0: "));
  CHECK(contains(output_of([&] { return planning::show(path); }), " v\n"));
}
