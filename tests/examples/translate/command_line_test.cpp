// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#if __has_include(<CLI/CLI.hpp>)
#include "command_line.hpp"

#include <string>
#include <vector>

namespace tr = translate;

namespace {

tr::command_line parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "translate");
  return tr::parse(int(arguments.size()), arguments.data());
}

}  // namespace

TEST_CASE("command line: options are parsed") {
  const tr::command_line nothing = parse({});
  CHECK(nothing.problem.empty());
  CHECK(nothing.help.empty());
  CHECK(nothing.with_mpi);
  CHECK_FALSE(nothing.minutes.has_value());

  const tr::command_line training = parse({"--quick", "--minutes", "0.5", "--save", "f", "--simulate", "3", "--translate", "Eesti"});
  CHECK(training.problem.empty());
  CHECK(training.quick);
  CHECK(training.minutes == 0.5);
  CHECK(training.save == "f");
  CHECK(training.simulate == 3);
  CHECK_FALSE(training.with_mpi);

  const tr::command_line use = parse({"--load", "f", "--translate", "Eesti", "--beam", "2"});
  CHECK(use.problem.empty());
  CHECK(use.load == "f");
  CHECK(use.text == "Eesti");
  CHECK(use.beam == 2);
}

TEST_CASE("command line: checkpoints, and a training that is watched") {
  CHECK(parse({}).every.seconds == 30);
  const tr::command_line by_time = parse({"--checkpoint", "d", "--every", "2.5s"});
  CHECK(by_time.problem.empty());
  CHECK(by_time.checkpoint == "d");
  CHECK(by_time.every.seconds == 2.5);
  CHECK(by_time.every.steps == 0);
  const tr::command_line by_steps = parse({"--checkpoint", "d", "--every", "100"});
  CHECK(by_steps.every.seconds == 0);
  CHECK(by_steps.every.steps == 100);
  for (const char* wrong : {"", "s", "0", "0s", "-1", "-1s", "1m", "1.5", "nans", "1e99s"}) {
    const tr::command_line c = parse({"--every", wrong});
    CAPTURE(wrong);
    CHECK(c.problem.find("--every") != std::string::npos);
  }
  const tr::command_line watch = parse({"--watch", "d"});
  CHECK(watch.problem.empty());
  CHECK(watch.watch == "d");
  CHECK_FALSE(watch.with_mpi);
  CHECK_FALSE(parse({"--watch", "d", "--quick", "--save", "f"}).problem.empty());
}

TEST_CASE("command line: a wrong one is one short line that names the option") {
  const auto refused = [](std::vector<const char*> arguments, const char* why) {
    const tr::command_line c = parse(arguments);
    CAPTURE(c.problem);
    CHECK(c.problem.find(why) != std::string::npos);
    CHECK(c.problem.find('\n') == std::string::npos);
    CHECK(c.problem.size() < 120);
  };
  for (const char* minutes : {"-1", "0", "abc", "nan", "inf", "1x", ""}) refused({"--minutes", minutes}, "--minutes");
  for (const char* count : {"-1", "0", "abc", "1.5", "99999999999999999999"}) {
    refused({"--steps", count}, "--steps");
    refused({"--simulate", count}, "--simulate");
  }
  refused({"--beam", "17"}, "17");
  refused({"--seed", "-1"}, "--seed");
  refused({"--nonsense"}, "--nonsense");
  refused({"--minutes"}, "--minutes");
  refused({"--load", "f"}, "--translate");
  refused({"--load", "f", "--translate", ""}, "--translate");
  for (const char* option : {"--save", "--losses", "--minutes", "--steps"})
    refused({"--load", "f", "--translate", "Eesti", option, "1"}, option);
  refused({"--load", "f", "--translate", "Eesti", "--plan"}, "--plan");
}

TEST_CASE("command line: a wrong one or a wish for help is known to be of a simulation") {
  CHECK_FALSE(parse({"--simulate", "2", "--nonsense"}).with_mpi);
  CHECK_FALSE(parse({"--minutes", "abc", "--simulate", "2"}).with_mpi);
  CHECK_FALSE(parse({"--help", "--simulate", "2"}).with_mpi);
  CHECK(parse({"--nonsense"}).with_mpi);
  CHECK(parse({"--help"}).help.find("--minutes") != std::string::npos);
  CHECK(parse({"--help"}).problem.empty());
}
#else
TEST_CASE("command line: without CLI11 there is no program") {}
#endif
