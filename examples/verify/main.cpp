// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// gshard-verify LOG... [--manifest FILE]...: checks the hash chains of event logs, and the seals of them in manifests of checkpoints.

#include "seals.hpp"

#include <gshard/run/event_log_check.hpp>

#include <CLI/CLI.hpp>

#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace {

/// Of several logs, the first finding is the sentence; of none, how many were checked.
int run(const std::vector<std::string>& logs, const std::vector<std::string>& manifests) {
  std::vector<gshard::event_log_head> seals;
  for (const std::string& manifest : manifests) verify::add_seals(seals, manifest);
  std::string last;
  for (const std::string& log : logs) {
    const verify::verdict v = verify::check(log, seals);
    if (!v.holds) {
      std::cout << v.text << '\n';
      return 1;
    }
    last = v.text;
  }
  if (const auto missing = verify::missing_logs(logs, seals); !missing.empty()) {
    std::cout << missing.front() << ": is sealed by a manifest, but was not given\n";
    return 1;
  }
  if (logs.size() == 1) std::cout << last << '\n';
  else std::cout << logs.size() << " logs, unaltered" << (manifests.empty() ? "; no seal was given" : " up to their seals") << '\n';
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Checks event logs of gshard: every record has the hash of the one before it.\nThe manifests of checkpoints seal the logs: no record "
      "before the seal can then\nbe removed or rewritten. Prints one sentence, which names the first altered record.\nExit status: 0 if "
      "all logs are unaltered, else 1.\n",
      "gshard-verify");
  std::vector<std::string> logs, manifests;
  app.add_option("LOG", logs, "event logs, such as RUN/events-00000.jsonl")->required();
  app.add_option("--manifest", manifests, "manifest.json of a checkpoint; several may be given")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.footer("Example:\n  gshard-verify run/events-*.jsonl --manifest checkpoints/latest/manifest.json");
  try {
    app.parse(argc, argv);
    return run(logs, manifests);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::cerr << "gshard-verify: " << e.what() << "; see gshard-verify --help\n";
  } catch (const std::exception& e) {
    std::cerr << "gshard-verify: " << e.what() << '\n';
  }
  return 1;
}
