// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Saves one checkpoint during the computation: copies the shards, writes the parts in a thread, and commits the manifest when all parts are
// durable.

#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/program/parameters.hpp>
#include <gshard/exec/tensor/buffer.hpp>
#include <gshard/survive/checkpoint/manifest.hpp>
#include <gshard/survive/checkpoint/part_file.hpp>
#include <gshard/survive/checkpoint/part_plan.hpp>
#include <gshard/survive/checkpoint/signature.hpp>
#include <gshard/survive/checkpoint/step_directories.hpp>
#include <gshard/survive/files/background_writer.hpp>
#include <gshard/survive/files/directory.hpp>
#include <gshard/survive/files/disks.hpp>
#include <gshard/survive/files/packets.hpp>
#include <gshard/survive/log/event_log.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace detail {

/// The result of a save; the same on all processes. `problem`: the reason if it failed, or empty.
struct save_result {
  step_name step;
  std::string problem;
  bool is_of_others = false;  // another run has made this directory
};

/// One save at a time. start() and poll() are collective, and throw only if communication fails.
class checkpoint_saver {
 public:
  struct settings {
    std::string path;
    bool allow_not_finite = false;
    std::optional<signing_key> key;
    std::function<void(const std::string&)> warn;  // may be called by the thread
  };

  checkpoint_saver(parameter_store store, disk_table disks, settings how)
      : store_(std::move(store)), on_(store_.cluster().backend()), disks_(std::move(disks)), settings_(std::move(how)) {}
  /// Waits for the thread. A save that is not committed is lost.
  ~checkpoint_saver() {
    problem_of([&] { travelling_.finish(); });
    writer_.wait();
  }
  checkpoint_saver(const checkpoint_saver&) = delete;
  checkpoint_saver& operator=(const checkpoint_saver&) = delete;

  bool in_flight() const { return stage_ != stage::none; }
  const disk_table& disks() const { return disks_; }

  /// Copies the shards, and starts writing. `what`: on the leader, the manifest without tensors and parts. `log`: the event log of this
  /// process, or null. `obsolete`: checkpoints that are removed after this one is committed.
  void start(const step_name& step, manifest what, event_log* log, std::vector<step_name> obsolete) {
    writer_.wait();
    step_ = step;
    manifest_ = std::move(what);
    log_head_.reset();
    obsolete_ = std::move(obsolete);
    written_.clear();
    stage_ = stage::writing;
    staged_is_saved_ = is_of_others_ = false;
    problem_ = problem_of([&] { copy_shards(); }).text;
    if (disks_.disks() > 1) start_copies();
    start_job([this, log] {
      if (log != nullptr) log_head_ = log->head();
      if (disks_.is_first(this_process(on_))) remove_finished(directory::made(settings_.path));  // the run continues
      write_parts(on_.devices(), staged_);
    });
  }
  /// Adds the heads of these event logs to all later manifests, unless a process writes the log.
  void keep_sealed(std::vector<event_log_head> logs) { sealed_before_ = std::move(logs); }

  /// Continues the save in flight. `wait`: waits until it is done. Returns its result when it is done.
  /// Communicates: one small message per call.
  std::optional<save_result> poll(bool wait) {
    for (;;) {
      if (wait) writer_.wait_at_most(std::chrono::seconds(1));  // the others wait in `agree`, so this process must not seem to hang
      if (on_.agree({}, {}, writer_.busy())) {
        if (!wait) return std::nullopt;
        continue;
      }
      if (problem_.empty()) problem_ = writer_.wait();
      const std::string failed = problem_of([&] { on_.agree({}, problem_); }).text;
      if (!failed.empty()) return give_up(failed);
      if (stage_ == stage::committing) {
        stage_ = stage::none;
        staged_is_saved_ = true;
        return save_result{step_, {}};
      }
      if (stage_ == stage::writing && disks_.disks() > 1) {
        write_copies();
      } else if (const std::string problem = commit(); !problem.empty()) {
        return give_up(problem);
      }
      if (!wait) return std::nullopt;
    }
  }

  /// To be called after a load: the store's shards equal the loaded checkpoint.
  void set_saved() {
    writer_.wait();
    staged_is_saved_ = problem_of([&] { copy_shards(); }).empty();
  }
  /// True if the store's shards equal those of the last save or load, bit for bit.
  bool equals_last() const {
    if (!staged_is_saved_ || staged_.size() != on_.devices().size()) return false;
    bool equal = facts_hash() == planned_for_;
    for (std::size_t i = 0; equal && i < staged_.size(); ++i)
      for_each_copy(i, [&](const std::byte* shard, std::int64_t at, std::int64_t bytes) {
        equal = equal && std::memcmp(staged_[i].data() + at, shard, std::size_t(bytes)) == 0;
      });
    return equal;
  }

 private:
  enum class stage : std::uint8_t { none, writing, copying, committing };
  struct written {
    std::size_t device;
    part_info info;
  };

  std::uint64_t facts_hash() const {
    fnv1a<std::uint64_t> h;
    const std::vector<parameter_store::named_entry> saved = store_.saved();
    for (const auto& [name, entry] : saved) h.add(name).add(layout_text(entry.value, store_.cluster().mesh()));
    return h.add(saved.size()).value();
  }

  /// Calls f(address in the shard, offset in the part, bytes) for runs of blocks that are contiguous in both.
  template <class F>
  void for_each_copy(std::size_t i, F f) const {
    const std::vector<planned_block>& blocks = plan_.blocks[std::size_t(on_.devices()[i])];
    for (std::size_t first = 0, next; first < blocks.size(); first = next) {
      std::int64_t bytes = blocks[first].bytes;
      for (next = first + 1;
           next < blocks.size() && blocks[next].tensor == blocks[first].tensor && blocks[next].in_shard == blocks[first].in_shard + bytes;
           ++next)
        bytes += blocks[next].bytes;
      f(store_.find(plan_.tensors[blocks[first].tensor].name)->value.data[i] + blocks[first].in_shard, blocks[first].in_part, bytes);
    }
  }
  void copy_shards() {
    if (const std::uint64_t hash = facts_hash(); plan_.blocks.empty() || hash != planned_for_) {
      plan_ = plan_parts(store_);
      planned_for_ = hash;
      staged_.clear();
    }
    for (std::size_t i = 0; i < on_.devices().size(); ++i) {
      if (staged_.size() == i) staged_.emplace_back(plan_.bytes[std::size_t(on_.devices()[i])]);
      for_each_copy(i, [&](const std::byte* shard, std::int64_t at, std::int64_t bytes) {
        std::memcpy(staged_[i].data() + at, shard, std::size_t(bytes));
      });
    }
  }

  /// Starts to send this process's part to its neighbor during the computation. Each process has one device.
  void start_copies() {
    const std::size_t me = this_process(on_), n = std::size_t(on_.processes());
    sent_.assign(n, {});
    received_.assign(n, {});
    copies_.clear();
    copied_.clear();
    std::vector<std::size_t> from;
    for (std::size_t p = 0; p < n; ++p)
      if (disks_.neighbor(p) == me) from.push_back(p);
    const process_error failed = problem_of([&] {
      for (const std::size_t p : from)
        if (problem_.empty()) copies_.emplace_back(plan_.bytes[p]);
    });
    if (problem_.empty()) problem_ = failed.text;
    const std::string sends = problem_of([&] { on_.agree({}, problem_); }).text;
    if (!sends.empty()) return;  // poll() reports it
    for (std::size_t i = 0; i < from.size(); ++i) {
      received_[from[i]] = {copies_[i].data(), std::size_t(copies_[i].size())};
      copied_.push_back(int(from[i]));
    }
    sent_[disks_.neighbor(me)] = {staged_[0].data(), std::size_t(staged_[0].size())};
    exchange_ = {sent_, received_};
    travelling_ = on_.start(all_axes(on_), std::span(&exchange_, 1));
  }

  template <class Job>
  void start_job(Job job) {
    if (problem_.empty()) problem_ = problem_of([&] { writer_.start(std::move(job)); }).text;
  }

  void write_parts(std::span<const int> devices, const std::vector<buffer>& data) {
    const directory own = directory::made(settings_.path).made_sub(step_.text());
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const auto device = std::size_t(devices[i]);
      is_of_others_ = own.has(part_name(device));
      if (is_of_others_)
        throw error(own.path_of(part_name(device)) + ": is there already; does another run use this directory?");
      const std::span<const std::byte> bytes(data[i].data(), std::size_t(data[i].size()));
      written_.push_back({device, {}});
      written_.back().info = write_part(own, part_name(device), plan_.tensors, plan_.blocks[device], bytes, settings_.allow_not_finite);
    }
    own.sync();
  }

  void write_copies() {
    stage_ = stage::copying;
    problem_ = problem_of([&] { travelling_.finish(); }).text;
    start_job([this] { write_parts(copied_, copies_); });
  }

  /// All parts are durable: the leader makes the manifest, and the first process of every disk writes it. Returns an error, on all
  /// processes.
  std::string commit() {
    stage_ = stage::committing;
    texts mine{log_head_ ? log_head_->file : "", log_head_ ? std::to_string(log_head_->records) : "", log_head_ ? log_head_->hash : ""};
    for (const written& w : written_) mine.insert(mine.end(), {std::to_string(w.device), std::to_string(w.info.bytes), w.info.header});
    const std::vector<texts> all = gather_texts(on_, mine);
    texts made;  // the manifest, and its signature
    if (on_.leader()) problem_ = problem_of([&] { made = make_manifest(all); }).text;
    if (std::string failed = problem_of([&] { on_.agree({}, problem_); }).text; !failed.empty()) return failed;
    if (disks_.disks() > 1) share(on_, made);
    if (disks_.is_first(this_process(on_))) start_job([this, made] { write_manifest(made); });
    return {};
  }

  texts make_manifest(const std::vector<texts>& all) {
    manifest m = manifest_;
    m.tensors = plan_.tensors;
    m.parts.resize(plan_.blocks.size());
    m.event_logs = sealed_before_;
    for (const texts& of_process : all) {
      if (of_process.size() < 3) throw error("a packet between processes is damaged");
      if (!of_process[0].empty()) {
        event_log_head head{of_process[0], 0, of_process[2]};
        std::from_chars(of_process[1].data(), of_process[1].data() + of_process[1].size(), head.records);
        std::erase_if(m.event_logs, [&](const event_log_head& before) { return before.file == head.file; });
        m.event_logs.push_back(std::move(head));
      }
      for (std::size_t i = 3; i + 2 < of_process.size(); i += 3) {
        std::size_t device = 0;
        part_info info{0, of_process[i + 2]};
        std::from_chars(of_process[i].data(), of_process[i].data() + of_process[i].size(), device);
        std::from_chars(of_process[i + 1].data(), of_process[i + 1].data() + of_process[i + 1].size(), info.bytes);
        if (device >= m.parts.size()) throw error("a packet between processes is damaged");
        if (!m.parts[device].header.empty() && m.parts[device] != info)
          throw error("checkpoint: the copy of " + part_name(device) + " on another disk differs");
        m.parts[device] = info;
      }
    }
    texts made{text_of(m)};
    if (settings_.key) made.push_back(settings_.key->sign(made[0]));
    parts_ = m.parts;
    return made;
  }

  void write_manifest(const texts& made) {
    const directory in = directory::at(settings_.path), own = in.sub(step_.text());
    if (disks_.disks() == 1)  // do all processes write to this directory?
      for (std::size_t i = 0; i < parts_.size(); ++i)
        if (!own.has_file(part_name(i)) || own.read(part_name(i)).second != parts_[i].bytes)
          throw error(own.path_of(part_name(i)) + ": another process has written this part, but it is not in the leader's directory; " +
                      "checkpointer_options::per_host is for directories on disks of their own");
    if (made.size() > 1) own.replace(signature_file, made[1]);
    own.replace(manifest_file, made[0]);
    // The checkpoint is committed. Clean-up that fails from here on is tried again after the next one.
    std::string failed = problem_of([&] {
      if (!point_latest(in, step_))
        problem_of([&] { settings_.warn(in.path_of(latest_link) + ": is not a link to a checkpoint, and stays as it is"); });
    }).text;
    obsolete_.insert(obsolete_.end(), not_removed_.begin(), not_removed_.end());
    not_removed_.clear();
    for (const step_name& old : obsolete_) {
      const std::string problem = problem_of([&] { remove_checkpoint(in, old); }).text;
      if (!problem.empty()) failed = problem;
      if (in.has_directory(old.text())) not_removed_.push_back(old);
    }
    if (const std::string problem = problem_of([&] { remove_temporaries(in); }).text; !problem.empty()) failed = problem;
    if (!failed.empty()) problem_of([&] { settings_.warn(failed); });
  }

  /// Ends a failed save, and removes its files as far as possible.
  save_result give_up(const std::string& problem) {
    const save_result result{step_, problem, on_.agree({}, {}, is_of_others_)};
    problem_of([&] { travelling_.finish(); });
    stage_ = stage::none;
    problem_.clear();
    start_job([this] {
      const auto in = directory::find(settings_.path);
      const auto own = in ? in->find_sub(step_.text()) : std::nullopt;
      if (!own || own->has(manifest_file)) return;  // or it was committed after all, as far as this process can see
      for (const written& w : written_)
        if (is_checkpoint_file(*own, part_name(w.device))) own->remove(part_name(w.device));
      in->remove_directory(step_.text());
    });
    problem_.clear();
    return result;
  }

  parameter_store store_;
  backend& on_;
  disk_table disks_;
  settings settings_;

  part_plan plan_;
  std::uint64_t planned_for_ = 0;
  std::vector<buffer> staged_;    // per held device: the data of its part
  bool staged_is_saved_ = false;  // in a valid checkpoint
  bool is_of_others_ = false;     // a part of another run was found in the directory of the save; used by the thread while it writes

  stage stage_ = stage::none;
  step_name step_;
  manifest manifest_;
  std::optional<event_log_head> log_head_;     // of the event log of this process; used by the thread while it writes
  std::vector<event_log_head> sealed_before_;  // by the checkpoint that was loaded
  std::string problem_;
  std::vector<step_name> obsolete_, not_removed_;
  std::vector<written> written_;  // used by the thread while it writes
  std::vector<part_info> parts_;  // of the manifest, on the leader

  std::vector<buffer> copies_;  // of parts of other processes
  std::vector<int> copied_;     // their devices
  std::vector<std::span<const std::byte>> sent_;
  std::vector<std::span<std::byte>> received_;
  exchange_part exchange_;
  pending_exchange travelling_;
  background_writer writer_;  // last, because its thread uses the others
};

}}}  // namespace gshard::v0::detail
