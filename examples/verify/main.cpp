// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// gshard-verify checks the hash chains of event logs, the seals of these logs in manifests, and whole checkpoints.

#include "checkpoints.hpp"
#include "seals.hpp"

#include <gshard/survive/checkpoint/checkpoint_check.hpp>
#include <gshard/survive/checkpoint/signature.hpp>
#include <gshard/survive/log/event_log_check.hpp>

#include <CLI/CLI.hpp>

#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace {

constexpr int all_holds = 0, altered = 1, not_checked = 2;

struct options {
  std::vector<std::string> logs, manifests, checkpoints;
  bool all = false, no_logs = false;
  std::string key, public_key;
};

/// The key of --key or --public-key. --key also accepts a private key of Ed25519.
std::optional<gshard::signing_key> key_of(const options& o) {
  if (!o.public_key.empty()) return gshard::signing_key::ed25519_public(o.public_key);
  if (o.key.empty()) return std::nullopt;
  const bool is_pem = gshard::detail::whole_file(o.key).starts_with("-----BEGIN ");
  return is_pem ? gshard::signing_key::ed25519(o.key) : gshard::signing_key::hmac(o.key);
}

/// Prints a sentence for each checkpoint, or for each of its faults. Adds the sealed heads of event logs in the manifests.
bool check_checkpoints(const options& o, const gshard::signing_key* key, std::vector<gshard::event_log_head>& seals) {
  bool holds = true;
  const verify::chosen_checkpoints chosen = verify::choose_checkpoints(o.checkpoints, o.all);
  for (const std::vector<std::string>& directories : chosen.all) {
    const gshard::checkpoint_finding f = gshard::check_checkpoint(directories, key);
    holds = holds && f.faults.empty();
    for (const std::string& fault : f.faults) std::cout << fault << '\n';
    if (f.faults.empty()) std::cout << f.text << '\n';
    seals.insert(seals.end(), f.event_logs.begin(), f.event_logs.end());
  }
  for (const std::string& note : chosen.notes) std::cout << note << '\n';
  return holds;
}

/// Prints the findings about altered logs, and about sealed logs that are missing. Without findings: the sentence of a single log, or the
/// number of logs. Returns the exit status.
int check_logs(const std::vector<std::string>& logs, const std::vector<gshard::event_log_head>& seals, bool all_are_given) {
  int status = all_holds;
  std::string last;
  for (const std::string& log : logs) {
    const verify::verdict v = verify::check(log, seals);
    last = v.text;
    if (v.holds) continue;
    std::cout << v.text << '\n';
    status = altered;
  }
  for (const std::string& log : verify::missing_logs(logs, seals)) {
    std::cout << log << ": is sealed by a manifest, but "
              << (all_are_given ? "was not given\n" : "is not in the directory of the checkpoint, and was not checked: give it as LOG, or --no-logs\n");
    if (status != altered) status = all_are_given ? altered : not_checked;
  }
  if (status == altered || logs.empty()) return status;
  if (logs.size() == 1) std::cout << last << '\n';
  else std::cout << logs.size() << " logs, unaltered" << (seals.empty() ? "; no seal was given" : " up to their seals") << '\n';
  return status;
}

int run(const options& o) {
  const std::optional<gshard::signing_key> key = key_of(o);
  const gshard::signing_key* const by = key ? &*key : nullptr;
  std::vector<gshard::event_log_head> seals;
  bool holds = true;
  for (const std::string& manifest : o.manifests)
    if (const gshard::process_error problem = gshard::detail::problem_of([&] { verify::add_seals(seals, manifest, by); }); !problem.empty()) {
      std::cout << problem.text << '\n';
      holds = false;
    }
  if (!o.checkpoints.empty()) holds = check_checkpoints(o, by, seals) && holds;
  const std::vector<std::string> logs = o.logs.empty() ? verify::logs_beside(o.checkpoints, seals) : o.logs;
  const int status = o.no_logs ? all_holds : check_logs(logs, seals, !o.logs.empty());
  return holds ? status : altered;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Checks event logs and checkpoints of gshard.\n\nEvent logs: every record has the hash of the one before it. Manifests of "
      "checkpoints\nseal the logs: no record before the seal can then be removed or rewritten.\nCheckpoints: the manifest has its SHA-256, and "
      "every part "
      "exists and has the size and\nSHA-256 of the manifest. All parts are read. The program that saved them is not needed.\nWith a key, "
      "every manifest must be signed by it. Without one, who can write the files\ncan make new ones that hold.\n\nPrints one sentence per "
      "finding, which names the file or the first altered record.\nExit status: 0 if all holds, 1 if something was altered or is missing,\n"
      "2 if something cannot be checked.\n",
      "gshard-verify");
  options o;
  const auto list = [&](const char* name, std::vector<std::string>& to, const char* help) {
    return app.add_option(name, to, help)->allow_extra_args(false)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  auto* const logs = app.add_option("LOG", o.logs, "event logs, such as RUN/events-00000.jsonl; default: those in DIR that are sealed");
  list("--manifest", o.manifests, "manifest.json of a checkpoint, for its seals; may be given again")->type_name("FILE");
  list("--checkpoint", o.checkpoints,
       "directory of a run, whose newest checkpoint is checked, or of one checkpoint.\nWith per_host: again for the directory of each host")
      ->type_name("DIR");
  app.add_flag("--all", o.all, "check all checkpoints of DIR");
  app.add_flag("--no-logs", o.no_logs, "check checkpoints alone, not the event logs that they seal")->excludes(logs);
  auto* const secret = app.add_option("--key", o.key, "secret of HMAC-SHA-256, or private key of Ed25519 in PEM")->type_name("FILE");
  app.add_option("--public-key", o.public_key, "public key of Ed25519 in PEM")->type_name("FILE")->excludes(secret);
  app.footer(
      "Examples:\n  gshard-verify run/events-*.jsonl --manifest checkpoints/latest/manifest.json\n  gshard-verify --checkpoint run --all "
      "--public-key public.pem");
  try {
    app.parse(argc, argv);
    if (o.logs.empty() && o.checkpoints.empty()) throw CLI::RequiredError("LOG or --checkpoint");
    return run(o);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::cerr << "gshard-verify: " << e.what() << "; see gshard-verify --help\n";
  } catch (const std::exception& e) {
    std::cerr << "gshard-verify: " << e.what() << '\n';
  }
  return not_checked;
}
