// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/monitor/telemetry_sample.hpp>

#include "../prometheus_parser.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace gs = gshard;

namespace {

gs::detail::telemetry_sample sample() {
  gs::detail::telemetry_sample s;
  s.step = 120;
  s.time = 1764000000.125;
  s.seconds = 0.0123456789;
  s.waiting = 0.001;
  s.received.resize(gs::detail::collective_kinds().size());
  s.received[0] = 4096;
  s.resident = 5000;
  s.arena = 100;
  s.values = {{"loss", 1.5}, {"a \"quoted\"\nname\\ \xff", std::nan("")}, {"rate", std::numeric_limits<double>::infinity()}};
  s.lists = {{"expert load", {1, 2, 3.5}}};
  return s;
}

}  // namespace

TEST_CASE("telemetry: a step as a line of JSON") {
  gs::detail::telemetry_sample s = sample();
  const std::string line = gs::detail::json_line(s, true);
  CHECK(line.find('\n') == line.size() - 1);
  const auto j = nlohmann::json::parse(line);
  CHECK(j["step"] == 120);
  CHECK(j["time"] == 1764000000.125);
  CHECK(j["seconds"] == 0.0123456789);
  CHECK(j["received"].size() == 1);
  CHECK(j["received"]["all_gather"] == 4096);
  CHECK(j["values"]["loss"] == 1.5);
  CHECK(j["values"]["rate"] == "Infinity");
  CHECK(j["values"]["a \"quoted\"\nname\\ \xef\xbf\xbd"] == "NaN");
  CHECK(j["lists"]["expert load"] == std::vector<double>{1, 2, 3.5});
  CHECK_FALSE(j.contains("predicted"));
  CHECK_FALSE(nlohmann::json::parse(gs::detail::json_line(s, false)).contains("lists"));
  s.predicted = 0.25;
  CHECK(nlohmann::json::parse(gs::detail::json_line(s, false))["predicted"] == 0.25);
}

TEST_CASE("telemetry: Prometheus' format, by a strict parser") {
  gs::detail::telemetry_totals t;
  t.labels = {{"process", "3"}, {"job", "a \"b\"\n\\c \xff"}, {"", "x"},
              {"9-a", "y"}, {"a-b", "1"}, {"a_b", "2"}, {"name", "z"}, {"__x", ""}};
  prometheus_parser empty(t.prometheus());
  CHECK(empty.types.count("gshard_step") == 0);
  t.add(sample());
  t.add(sample());
  t.stragglers["3"] = 1;
  t.last.predicted = 0.5;
  t.labels = {{"process", "3"}};
  const prometheus_parser p(t.prometheus());
  CHECK(p.samples.at(R"(gshard_steps_total{process="3"})") == 2);
  CHECK(p.samples.at(R"(gshard_seconds_total{process="3"})") == doctest::Approx(2 * 0.0123456789));
  CHECK(p.samples.at(R"(gshard_received_bytes_total{kind="all_gather",process="3"})") == 8192);
  CHECK(p.samples.at(R"(gshard_value{name="loss",process="3"})") == 1.5);
  CHECK(p.samples.at(R"(gshard_values{index="2",name="expert load",process="3"})") == 3.5);
  CHECK(p.samples.at(R"(gshard_straggler{of_process="3",process="3"})") == 1);
  CHECK(p.samples.at(R"(gshard_predicted_step_seconds{process="3"})") == 0.5);
  CHECK(p.samples.at(R"(gshard_running{process="3"})") == 1);
}

TEST_CASE("telemetry: the strict parser refuses what is wrong") {
  const std::string head = "# HELP a_b text\n# TYPE a_b gauge\n";
  CHECK_NOTHROW(prometheus_parser(head + "a_b{c=\"d\",e=\"\\\\\"} 1.5e-7\na_b 2\n"));
  for (const std::string bad :
       {"a_b 1", "a_b  1\n", "a_b 1 2\n", "a_b{c=\"d\",} 1\n", "a_b{c=\"d} 1\n", "a_b{c=\"\\t\"} 1\n", "a_b 1\na_b 1\n", "a_b\n",
        "a_b one\n", "a_b{c=\"d\",c=\"d\"} 1\n", "c 1\n", "", "a_b 1\n# HELP a_b text\n"})
    CHECK_THROWS_MESSAGE(prometheus_parser(head + bad), bad);
  CHECK_THROWS(prometheus_parser("# TYPE a_b gauge\na_b 1\n"));
  CHECK_THROWS(prometheus_parser("# HELP a x\n# TYPE a counter\na 1\n"));
}
