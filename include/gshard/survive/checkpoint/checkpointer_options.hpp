// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The options of a checkpointer, and the result of loading a checkpoint.

#include <gshard/exec/backend/agreement.hpp>
#include <gshard/io/safetensors_header.hpp>
#include <gshard/survive/checkpoint/signature.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gshard { inline namespace v0 {

/// Options of a checkpointer. They must be the same on all processes, except `key` and `report`.
struct checkpointer_options {
  std::uint32_t every_steps = 0;  ///< Steps from one checkpoint to the next. 0: not by steps.
  double every_seconds = 0;       ///< Seconds from one checkpoint to the next, by the leader's clock. 0: not by time.
  /// The number of steps whose newest checkpoint is kept. Each save removes all others.
  int keep = 2;
  /// False: all processes see one directory. True: each host has a directory of its own at the path, on its own disk. Every part is then
  /// written twice: to the host's disk, and to that of the next host. The run survives the loss of one host with its disk. Disks are told
  /// apart by files that processes create there, not by names.
  bool per_host = false;
  /// The directory, on each disk, is locked while the checkpointer exists, so that no other run uses it. If another run has the lock, such
  /// as one that is being killed, the constructor waits for at most this many seconds, and then throws. Negative: no lock, for programs
  /// that only resume while another one trains, and for file systems whose locks outlive a lost host (NFS 3). If files cannot be locked,
  /// there is a warning, and two runs are detected when they save the same step.
  double lock_seconds = 5;
  /// The reaction to a failed save, such as one to a full disk. `warn`: it is reported, and training continues. `stop`: every process
  /// throws. Earlier checkpoints are kept in both cases.
  enum class failure : std::uint8_t { warn, stop } on_failure = failure::warn;
  bool allow_not_finite = false;  ///< False: a save fails if an element is infinite or not a number.
  int most_roll_backs = 3;        ///< The number of times that `roll_back` goes back before a newer step is saved.
  std::map<std::string, std::string> settings{};  ///< Texts that must equal those in a loaded checkpoint, such as hyperparameters.
  std::optional<signing_key> key{};               ///< Signs manifests, and checks their signatures; the leader's is used.
  bool require_signature = false;                 ///< True: checkpoints that `key` has not signed for their step are refused.
  /// Receives warnings, one line each. Any process may call it, maybe in a thread of the checkpointer. By default they go to stderr.
  std::function<void(const std::string&)> report{};
};

/// The checkpoint that checkpointer::resume has loaded.
struct resumed {
  std::uint32_t step = 0;            ///< The number of finished steps.
  std::string name;                  ///< The name of its directory.
  std::vector<std::string> refused;  ///< Newer checkpoints that are not valid, with reasons.
  std::int64_t bytes_read = 0;       ///< The bytes of part files that this process has read.
};

namespace detail {

/// An error text for wrong options; otherwise empty.
inline std::string problem_of_options(const checkpointer_options& o, bool leader) {
  const std::string begin = "checkpoint: checkpointer_options::";
  if (o.keep < 1) return begin + "keep is " + std::to_string(o.keep) + "; it is at least 1";
  if (!(o.every_seconds >= 0)) return begin + "every_seconds is negative or not a number";
  if (o.lock_seconds != o.lock_seconds) return begin + "lock_seconds is not a number";
  if (o.most_roll_backs < 0) return begin + "most_roll_backs is negative";
  if (o.require_signature && leader && !o.key) return "checkpoint: require_signature needs a key";
  for (const auto& [name, value] : o.settings)
    for (const std::string* text : {&name, &value})
      if (!problem_of([&] { json_text(*text); }).empty()) return begin + "settings: " + in_quotes(*text) + " is not UTF-8";
  return {};
}
/// Adds the options that must be equal on all processes.
inline void add_to(std::vector<fact>& all, const checkpointer_options& o) {
  const auto add = [&](const char* name, const std::string& value) {
    all.push_back({std::string("checkpointer_options::") + name, value});
  };
  const auto text = [](bool b) { return b ? "true" : "false"; };
  add("every_steps", std::to_string(o.every_steps));
  add("every_seconds", number_text(o.every_seconds));
  add("keep", std::to_string(o.keep));
  add("per_host", text(o.per_host));
  add("lock_seconds", number_text(o.lock_seconds));
  add("on_failure", o.on_failure == checkpointer_options::failure::warn ? "warn" : "stop");
  add("allow_not_finite", text(o.allow_not_finite));
  add("most_roll_backs", std::to_string(o.most_roll_backs));
  add("require_signature", text(o.require_signature));
  for (const auto& [name, value] : o.settings) all.push_back({"setting " + in_quotes(name), value});
}

}  // namespace detail

}}  // namespace gshard::v0
