// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "settings.hpp"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

namespace translate {

/// A number of steps or of seconds. The other one is 0.
struct interval {
  std::uint32_t steps = 0;
  double seconds = 0;
};

/// Parses "100" as steps and "30s" as seconds. Returns nothing for other texts.
inline std::optional<interval> interval_of(const std::string& text) {
  interval i;
  const bool is_time = text.ends_with('s');
  const char* const last = text.data() + text.size() - (is_time ? 1 : 0);
  const auto [end, problem] = is_time ? std::from_chars(text.data(), last, i.seconds) : std::from_chars(text.data(), last, i.steps);
  const bool is_positive = is_time ? i.seconds > 0 && i.seconds < 1e9 : i.steps > 0;
  return problem == std::errc() && end == last && is_positive ? std::optional(i) : std::nullopt;
}

/// The parsed command line.
struct command_line {
  bool quick = false;
  int simulate = 0;
  std::optional<double> minutes;
  std::int64_t steps = 0;
  std::int64_t beam = 4;
  std::uint64_t seed = 1;
  std::string text, save, load, losses, checkpoint, watch, data = "/usr/share/locale";
  interval every{0, 30};  // between checkpoints
  bool plan = false, plain = false;

  bool with_mpi = true;
  std::string help;     // the text of --help, if it was requested
  std::string problem;  // a sentence about invalid arguments, if there are any
};

/// Accepts numbers of this type of at least `least`. For others, the message asks for `wanted`.
template <class Number>
CLI::Validator number(Number least, const std::string& wanted) {
  return CLI::Validator(
      [=](const std::string& text) -> std::string {
        Number n{};
        const char* const last = text.data() + text.size();
        const auto [end, wrong] = std::from_chars(text.data(), last, n);
        if (wrong == std::errc() && end == last && n >= least && n <= std::numeric_limits<Number>::max()) return {};
        return "wants " + wanted + ", not '" + text + "'";
      },
      "");
}

/// Parses the arguments. Prints nothing, because all ranks parse the same arguments and only one prints.
inline command_line parse(int argc, const char* const* argv) {
  command_line c;
  CLI::App app("Trains a multilingual to English Mixture-of-Experts Transformer, sharded by gshard, and translates with it.");
  const std::string count = "a whole number above 0";
  std::string every = "30s";
  const CLI::Validator an_interval(
      [](const std::string& given) -> std::string {
        return interval_of(given) ? "" : "wants a number of steps, or of seconds with an s, not '" + given + "'";
      },
      "");
  const CLI::Validator not_empty([](const std::string& text) { return std::string(text.empty() ? "is empty" : ""); }, "");

  std::ostringstream minutes;
  minutes << "how long to train (default " << settings().minutes << ", with --quick " << settings::quick().minutes << ')';
  app.add_flag("--quick", c.quick, "a small model and a training too short to learn: shows that everything runs");
  const CLI::Option* simulated =
      app.add_option("--simulate", c.simulate, "devices simulated in this process, instead of MPI ranks")->check(number(1, count));
  CLI::Option* training[] = {
      app.add_option("--minutes", c.minutes, minutes.str())->check(number(1e-6, "a number above 0")),
      app.add_option("--steps", c.steps, "train for so many steps instead")->check(number<std::int64_t>(1, count)),
      app.add_option("--save", c.save, "write the trained model to this file")->check(not_empty),
      app.add_option("--losses", c.losses, "write the loss of every step to this file")->check(not_empty),
      app.add_option("--checkpoint", c.checkpoint, "keep checkpoints in this directory, and continue from the newest one; %h is the host's name")
          ->check(not_empty),
      app.add_option("--every", every, "steps, or with an s seconds, between checkpoints")->check(an_interval)->capture_default_str(),
      app.add_flag("--plan", c.plan, "print the plan of a training step"),
  };
  CLI::Option* watch = app.add_option("--watch", c.watch, "show how the training with --checkpoint in this directory goes")->check(not_empty);
  CLI::Option* text = app.add_option("--translate", c.text, "a text to translate: with --load, or after training")->check(not_empty);
  CLI::Option* load = app.add_option("--load", c.load, "use the model in this file instead of training")->check(not_empty)->needs(text);
  for (CLI::Option* o : training) {
    load->excludes(o);
    watch->excludes(o);
  }
  watch->excludes(load)->excludes(text);
  app.add_option("--data", c.data, "locale directory with the catalogues of iso-codes")->capture_default_str();
  app.add_option("--beam", c.beam, "hypotheses of the beam search")->check(CLI::Range(1, 16))->capture_default_str();
  app.add_option("--seed", c.seed, "of parameters, batches, dropout and routing")
      ->check(number<std::uint64_t>(0, "a whole number"))
      ->capture_default_str();
  app.add_flag("--plain", c.plain, "tell of the progress in lines, as for a log");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    c.help = app.help();
  } catch (const CLI::ParseError& e) {
    c.problem = e.what() + std::string(" (--help lists the options)");
  }
  c.with_mpi = simulated->count() == 0 && watch->count() == 0;
  if (c.problem.empty() && c.help.empty()) c.every = interval_of(every).value_or(c.every);
  return c;
}

}  // namespace translate
