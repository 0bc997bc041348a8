// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/io/report/page.hpp>

#include "../../complaint.hpp"
#include "../../sim/report/sample_run.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>

// tests/browser tests the page in a browser.
namespace gs = gshard;

namespace {

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++n;
  return n;
}

std::string data_of(const std::string& page) {
  const std::string_view opening = "<script type=\"application/json\" id=\"run\">";
  const std::size_t begin = page.find(opening) + opening.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

}  // namespace

TEST_CASE("a page holds the document of its run, and needs nothing from elsewhere") {
  const sample::run& sample = sample::small();
  const std::string page = gs::run_page(sample.record, sample::plan, sample.sizes, sample::sweep());
  CHECK(nlohmann::ordered_json::parse(data_of(page)) == gs::run_json(sample.record, sample::plan, sample.sizes, sample::sweep()));
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(count(page, "<script") == 2);
  CHECK(count(page, "</script>") == 2);
  CHECK(count(page, "http") == 1);  // the XML namespace of SVG
  for (const char* forbidden : {"src=", "@import", "url(", "https:", "<link rel=\"stylesheet"}) CHECK_FALSE(contains(page, forbidden));
  CHECK(count(page, "role=\"tab\"") == 9);
  CHECK(count(page, "role=\"tabpanel\"") == 9);
  CHECK(contains(page, "prefers-color-scheme: dark"));
  CHECK(contains(page, "<a class=\"skip\" href=\"#main\">"));
}

TEST_CASE("other meshes are a view only where there are some") {
  const sample::run& sample = sample::small();
  const std::string page = gs::run_page(sample.record, sample::plan, sample.sizes);
  CHECK(count(page, "role=\"tab\"") == 8);
  CHECK_FALSE(contains(page, "tab-comparison"));
}

TEST_CASE("no name breaks out of its HTML element") {
  gs::run_record run;
  run.program = "</script></title><b onclick='x'>\"&<!--<script>";
  run.network = "</style></h1><img>";
  run.assumptions = {"</ScRiPt ><script>alert(1)</script>"};
  const std::string page = gs::run_page(run, gs::plan_view{}, {});
  CHECK(count(page, "<script") == 2);
  CHECK(count(page, "</script>") == 2);
  CHECK(count(page, "</ScRiPt") == 0);
  CHECK(count(page, "<!--") == 0);
  CHECK(count(page, "<b ") + count(page, "<img") == 0);
  const auto d = nlohmann::json::parse(data_of(page));
  CHECK(d["program"] == run.program);
  CHECK(d["assumptions"] == run.assumptions);
  CHECK(contains(page, "<h1>&lt;/script&gt;&lt;/title&gt;&lt;b onclick=&#39;x&#39;&gt;&quot;&amp;&lt;!--&lt;script&gt;</h1>"));
}
