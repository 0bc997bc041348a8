// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/monitor/run_page.hpp>

#include "../sample_history.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>

namespace gs = gshard;

TEST_CASE("page of a run: one file that loads nothing, with its data inside") {
  const gs::run_history h = sample_history(2, 200, 4);
  const std::string page = gs::history_page(h, "</script><b>my run</b>");
  CHECK(page.size() < 200000);
  CHECK(page.find("<b>my run") == std::string::npos);
  for (const char* const loads : {"src=", "@import", "url(", "https:"}) CHECK_MESSAGE(page.find(loads) == std::string::npos, loads);
  const std::string open = "<script type=\"application/json\" id=\"run\">";
  const std::size_t begin = page.find(open) + open.size();
  const auto data = nlohmann::ordered_json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  CHECK(data == gs::history_json(h, "</script><b>my run</b>"));
  for (const char* const tab : {"overview", "values", "time", "communication", "memory", "lists", "events"})
    CHECK_MESSAGE(page.find("id=\"tab-" + std::string(tab)) != std::string::npos, tab);
  const std::string bare = gs::history_page({}, "");
  CHECK(bare.find("id=\"tab-values") == std::string::npos);
  CHECK(bare.find("A run of 0 processes") != std::string::npos);
}
