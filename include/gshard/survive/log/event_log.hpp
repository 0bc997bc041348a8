// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The event log of a run: records with times, chained by their hashes.

#include <gshard/core/base/version.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/sim/report/describe.hpp>
#include <gshard/survive/files/directory.hpp>
#include <gshard/survive/files/log_file.hpp>
#include <gshard/survive/files/sha256.hpp>
#include <gshard/survive/log/event_log_check.hpp>
#include <gshard/survive/log/event_log_file.hpp>
#include <gshard/survive/log/open_event_logs.hpp>

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// The log of the events of a run, for operators and auditors: a file per process, a JSON object per line.
///
/// A record has a number `n`, the wall time, the event, its fields, and the hash of the record before it. Its own hash is SHA-256 of the
/// line before `,"hash"`. A program may write its own events in addition to these:
///   start, mesh, plan                   by the log
///   checkpoint, load, roll_back, stop,  by checkpointer::log_to
///     finish, log_altered
///   straggler, straggler_ended, skipped by telemetry_options::events
///   not_finite, abort                   by all open logs of the process: when a not_finite_error is thrown; when the process gives up a
///                                       wait and ends, or leaves a run_scope by another exception
///   continued                           by the log of a restarted process, after a line that was cut off
///
/// The file is for this user alone (0600) and is only appended to. A restarted run checks the file and continues its chain. A line that a
/// killed process left incomplete stays; the record "continued" after it has its hash.
///
/// Anyone who can write the file can also write a new chain. A head that is kept elsewhere reveals this for the records before it.
/// Checkpoints seal the heads in their manifests. @see check_event_log
class event_log {
 public:
  using reporter = detail::event_log_file::reporter;

  /// The log at `path`, of this process alone. `report`: gets a text when records cannot be written; by default stderr. Its exceptions are
  /// ignored. Throws `gshard::error` if the file cannot be opened, is a symbolic link, belongs to another user, or is in use by another
  /// process. Throws also, with the first altered record, if its chain is broken. The file is then unchanged.
  explicit event_log(std::string path, reporter report = {})
      : file_(std::make_shared<detail::event_log_file>(std::move(path), std::move(report))) {
    detail::open_event_logs::add(file_);
  }
  /// The logs of all processes of a cluster: `directory`/events-00003.jsonl for process 3. The directory is made if there is none, for
  /// this user alone. Writes the events "start" and "mesh". Collective.
  /// Communicates: one small message per process. Throws `gshard::error`, on every process, as above.
  event_log(const any_cluster& on, const std::string& directory, reporter report = {})
      : event_log(opened(on, directory, std::move(report))) {
    write("start", {{"process", on.devices().front()}, {"processes", on.backend().processes()}, {"host", detail::host_name()},
                    {"pid", ::getpid()}, {"version", version}});
    nlohmann::ordered_json axes = nlohmann::ordered_json::object();
    for (int a = 0; a < on.mesh().rank(); ++a) axes[std::string(on.mesh().name(a))] = on.extent(a);
    write("mesh", {{"axes", std::move(axes)}});
  }

  const std::string& path() const { return file_->path(); }

  /// Appends a record. Any thread may call it. Does not throw disk errors, so that no process leaves the others alone. Records that cannot
  /// be written are kept, and written before the next one. `fields`: an object. If it has more than 64 KiB, its size replaces it.
  void write(std::string_view event, const nlohmann::ordered_json& fields = nlohmann::ordered_json::object()) {
    file_->write(event, fields);
  }
  /// Writes the event "plan" of a program: its steps, the bytes of its values per device, and SHA-256 of its description.
  void write_plan(std::string_view program, const executor& run) {
    write("plan", {{"program", program}, {"steps", run.plan().steps.size()}, {"arena_bytes", run.arena_bytes()},
                   {"sha256", sha256_of(describe(run.plan()))}});
  }

  /// The number of records and the hash of the last one, to be sealed elsewhere. Returns when these records are on the disk, which takes
  /// milliseconds. Records that could not be written are not counted.
  event_log_head head() { return file_->head(); }

 private:
  std::shared_ptr<detail::event_log_file> file_;

  static event_log opened(const any_cluster& on, const std::string& directory, reporter report) {
    std::vector<event_log> made;
    const process_error problem = detail::problem_of([&] {
      detail::directory::made(directory);
      made.emplace_back(detail::file_of_process(directory, "events", on.devices().front(), ".jsonl"), std::move(report));
    });
    on.backend().begin(std::vector<fact>{{"the call", "opening an event log"}}, problem);
    return std::move(made.front());
  }
};

}}  // namespace gshard::v0
