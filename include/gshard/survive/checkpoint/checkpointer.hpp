// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checkpoints of a run: saves them during training, and resumes from the newest when the program is restarted.

#include <gshard/cluster/wait_deadlines.hpp>  // restart_status
#include <gshard/core/base/build_options.hpp>
#include <gshard/core/base/version.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/backend/backend.hpp>
#include <gshard/exec/process/error.hpp>
#include <gshard/exec/process/float_environment.hpp>
#include <gshard/exec/process/standard_error.hpp>
#include <gshard/exec/program/check_replicas.hpp>
#include <gshard/exec/program/kernels.hpp>
#include <gshard/exec/program/parameters.hpp>
#include <gshard/survive/checkpoint/checkpoint_loader.hpp>
#include <gshard/survive/checkpoint/checkpoint_saver.hpp>
#include <gshard/survive/checkpoint/checkpointer_options.hpp>
#include <gshard/survive/checkpoint/manifest.hpp>
#include <gshard/survive/checkpoint/signature.hpp>
#include <gshard/survive/checkpoint/step_directories.hpp>
#include <gshard/survive/checkpoint/stop_request.hpp>
#include <gshard/survive/files/directory.hpp>
#include <gshard/survive/files/directory_lock.hpp>
#include <gshard/survive/files/disks.hpp>
#include <gshard/survive/files/packets.hpp>
#include <gshard/survive/log/event_log.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// Saves a store and the state of a program while they are in use, and loads them when the program is started again. One object per run.
///
///   gs::checkpointer checkpoints(store, "run", {.every_steps = 100});
///   checkpoints.keep_state("position", [&] { return text; }, [&](std::string_view t) { text = t; });
///   checkpoints.resume();
///   while (store.steps() < 1000) {
///     train(...);
///     if (!checkpoints.after_step()) return gs::wait_deadlines::restart_status;
///   }
///   checkpoints.finish();
///
/// A checkpoint has all parameters and optimizer states, the number of finished steps, and the seed. It is a directory: a part per device,
/// and a manifest, which gets its name when all parts are on the disk. A checkpoint is therefore either valid or absent. It loads on any
/// mesh.
///
/// The functions are collective over the store's cluster. They throw `gshard::error`, on every process, if the processes make different
/// calls. The destructor waits for the thread, and with per_host for the copies of other hosts. It loses a save in flight: call finish() or
/// save() before.
class checkpointer {
 public:
  /// Programs must be bound to the store before the first save or resume(). Makes the directory, and locks it. Collective. Throws
  /// `gshard::error`, on every process: if options are wrong or differ; if another process has the lock; if a directory exists and cannot
  /// be listed.
  checkpointer(parameter_store store, std::string directory, checkpointer_options options = {})
      : store_(std::move(store)), on_(store_.cluster().backend()), path_(std::move(directory)), options_(std::move(options)) {
    while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
    std::error_code unknown;  // a relative path keeps its meaning if the program changes its working directory
    if (const auto absolute = std::filesystem::absolute(path_, unknown); !path_.empty() && !unknown) path_ = absolute.string();
    if (!options_.report) options_.report = detail::write_to_stderr;
    const detail::thread_rule::use in_use = on_.enter();
    std::string problem = path_.empty() ? "checkpoint: the directory has no name" : detail::problem_of_options(options_, on_.leader());
    stops_ = on_.begin(facts("making a checkpointer"), problem, stop_request::exists());
    const detail::disk_table disks = options_.per_host ? detail::find_disks(on_, path_) : detail::disk_table(on_);
    const std::string no_lock = lock(disks);
    found_ = detail::find_steps(on_, disks, path_);
    if (!no_lock.empty())
      detail::problem_of([&] {
        warning()("the directory " + path_ + " is not locked: " + no_lock + ". Another run in it is detected only when both save");
      });
    if (options_.per_host && disks.disks() == 1 && on_.processes() > 1)
      warn("the directory " + path_ + " is on one disk for all processes, so per_host keeps no copies");
    saver_.emplace(store_, disks, detail::checkpoint_saver::settings{path_, options_.allow_not_finite, options_.key, warning()});
    for (const detail::found_steps& all = found_; const auto* list : {&all.finished, &all.unfinished})
      used_names_.insert(used_names_.end(), list->begin(), list->end());
    if (on_.agree({}, {}, options_.lock_seconds < 0 || !no_lock.empty())) found_.unfinished.clear();  // they may belong to a running run
    last_time_ = std::chrono::steady_clock::now();
    last_step_ = store_.steps();
  }
  checkpointer(const checkpointer&) = delete;
  checkpointer& operator=(const checkpointer&) = delete;

  /// Adds bytes of the program to checkpoints, such as a position in the data. A save calls `save`, on the leader alone. resume() calls
  /// `restore` on every process, with the leader's bytes, after the store is loaded. Must be called on all processes. Local. Throws
  /// `gshard::error` after resume().
  void keep_state(std::string name, std::function<std::string()> save, std::function<void(std::string_view)> restore) {
    if (looked_) throw error("checkpoint: keep_state(" + detail::in_quotes(name) + ") after resume(), which would have restored the state");
    states_[std::move(name)] = {std::move(save), std::move(restore)};
  }
  /// Writes the events "checkpoint", "load", "roll_back", "stop" and "finish" to the event log of each process, and seals the logs' last
  /// records in every manifest. If a log differs from the one that a loaded checkpoint has sealed, this is reported, and logged as the
  /// event "log_altered". The log must outlive the checkpointer. Must be called on all processes. Local.
  void log_to(event_log& events) { events_ = &events; }

  /// Loads the newest valid checkpoint into the store and the states, and returns its description; nothing if there is none. May be called
  /// again, to go back. A checkpoint that is damaged, or not signed as required, is reported and skipped. Every process reads and verifies
  /// an equal share. The store and the states change only after that. Warns if the libraries of matrix products have changed: the bits of
  /// the run may then differ.
  /// Communicates: the headers of the parts; the elements of shards that another process has read.
  /// Throws also: if there are checkpoints and none is valid; if the newest valid one has other tensors, another seed or other settings, or
  /// lacks a state; if a `restore` throws.
  std::optional<resumed> resume() {
    const detail::thread_rule::use in_use = on_.enter();
    on_.begin(facts("resume of a checkpointer"));
    end_save_in_flight();
    std::optional<resumed> result = load_newest(knows_older_ ? kept_ : found_.finished);
    if (!knows_older_) kept_ = std::exchange(found_.finished, {});
    knows_older_ = looked_ = true;
    return result;
  }

  /// Goes back to the newest valid checkpoint, after an error on every process, such as `gs::not_finite_error` of a step:
  ///
  ///   try { step(x, y, rate); } catch (const gs::not_finite_error& e) { checkpoints.roll_back(e); continue; }
  ///
  /// Waits for a save in flight, then loads store and states as resume() does. The program then reads the same data again. A transient
  /// fault leaves no trace, but the program must skip a bad batch. Must be called on all processes, in place of the rest of the step.
  /// Communicates as resume(). Throws also: if there is no checkpoint; if it has gone back `most_roll_backs` times and no newer step was
  /// saved since. The text contains that of `why`.
  resumed roll_back(const std::exception& why) {
    const detail::thread_rule::use in_use = on_.enter();
    const std::uint32_t from = store_.steps();
    on_.begin(facts("roll_back of a checkpointer"));
    end_save_in_flight();
    const std::string reason = std::string("; the reason to go back is: ") + why.what();
    if (!knows_older_ && !found_.finished.empty()) throw error(path_ + ": has checkpoints; call resume() before roll_back()" + reason);
    if (kept_.empty()) throw error(path_ + ": there is no checkpoint to go back to" + reason);
    if (!rolled_to_ || kept_.back().step > *rolled_to_) {
      rolled_to_ = kept_.back().step;
      roll_backs_ = 0;
    }
    if (roll_backs_ >= options_.most_roll_backs)
      throw error(path_ + ": has gone back to the checkpoint of step " + std::to_string(*rolled_to_) + " " + std::to_string(roll_backs_) +
                  " times, and no newer one was saved since" + reason);
    ++roll_backs_;
    resumed result = *load_newest(kept_);
    due_ = false;
    warn("went back from step " + std::to_string(from) + " to the checkpoint of step " + std::to_string(result.step) + ": " + why.what());
    if (events_ != nullptr) events_->write("roll_back", {{"step", from}, {"to", result.step}, {"reason", why.what()}});
    return result;
  }

  /// To be called between steps. Starts a save that is due, and continues one in flight. Shards are copied at once, and written by a thread
  /// during training. A save that comes due while one is in flight follows it. Returns false if a process was asked to stop (see
  /// stop_request). It has then saved, or reported why not, and the program should end with `wait_deadlines::restart_status`.
  /// Communicates: one small message per process. None if checkpoints are by steps alone, none is in flight or due, and there was no
  /// stop_request when the checkpointer was made. With per_host, each process sends its part to another host.
  /// Throws also: a failed save, with `failure::stop`; if copies of a parameter differ at a save (check_replicas), with any policy; if the
  /// directory has checkpoints and resume() was not called.
  bool after_step() {
    const detail::thread_rule::use in_use = on_.enter();  // first, because a started run changes the number of steps
    if (options_.every_steps != 0 && store_.steps() / options_.every_steps != last_step_ / options_.every_steps) due_ = true;
    last_step_ = store_.steps();
    const bool asks = options_.every_seconds > 0 || stops_;
    if (!asks && !due_ && !saver_->in_flight()) return true;
    const bool stop = stops_ && stop_request::requested();
    const bool late = on_.leader() && !due_ && options_.every_seconds > 0 && seconds_since_last() >= options_.every_seconds;
    bool stops = false;
    if (on_.begin(facts("after_step of a checkpointer"), {}, stop || late)) {
      stops = stops_ && on_.agree({}, {}, stop);
      due_ = due_ || !stops;
    }
    if (saver_->in_flight())
      if (const auto result = saver_->poll(false)) record(*result);
    if (stops) {
      log("stop");
      save_changes();
      return false;
    }
    if (due_ && !saver_->in_flight()) start_save();
    return true;
  }

  /// Saves now, and returns when the checkpoint is durable. True if it is; false if it failed, with
  /// `failure::warn`.
  bool save() {
    const detail::thread_rule::use in_use = on_.enter();
    on_.begin(facts("save of a checkpointer"));
    return save_and_wait();
  }

  /// Ends the run: saves, unless the last checkpoint has the same content. Writes the end marker, the file `finished`, when all processes
  /// have called it. If only states have changed since a checkpoint of this step, such as a clock, the new one replaces it. Throws also if
  /// the save fails, with any policy; there is then no end marker.
  void finish() {
    const detail::thread_rule::use in_use = on_.enter();
    on_.begin(facts("finish of a checkpointer"));
    if (!save_changes()) throw error("checkpoint: the last save of the run failed: " + last_problem_);
    const process_error problem = detail::problem_of([&] {
      if (saver_->disks().is_first(me())) detail::write_finished(detail::directory::made(path_), store_.steps());
    });
    on_.agree({}, problem);
    log("finish");
  }

  /// The directory of the last committed checkpoint; empty if there is none.
  std::string last() const { return kept_.empty() ? "" : path_ + "/" + kept_.back().text(); }
  bool in_flight() const { return saver_->in_flight(); }

 private:
  struct state {
    std::function<std::string()> save;
    std::function<void(std::string_view)> restore;
  };

  /// Locks the directory on every disk. Throws on all processes if another run has one of them. Returns the reason if this process has no
  /// lock.
  std::string lock(const detail::disk_table& disks) {
    using clock = std::chrono::steady_clock;
    detail::directory_lock::refusal why;
    const auto begin = clock::now();
    bool waits = options_.lock_seconds >= 0 && disks.is_first(me());
    do {  // the others wait in `agree`, so this process must not seem to hang
      if (!waits) continue;
      const double left = options_.lock_seconds - std::chrono::duration<double>(clock::now() - begin).count();
      const process_error problem = detail::problem_of(
          [&] { lock_ = detail::directory_lock::take(detail::directory::made(path_), std::clamp(left, 0.0, 0.5), why); });
      if (!problem.empty()) why = {false, problem.text};
      waits = why.held && left > 0.5;
    } while (on_.agree({}, {}, waits));
    on_.agree({}, why.held ? "checkpoint: " + why.text + "; end that run, or use another directory" : std::string());
    return why.text;
  }

  /// Called before a save: the directory or its lock may have been removed, and another run may use it.
  void lock_again() {
    detail::directory_lock::refusal why;
    std::optional<detail::directory_lock> again;
    if (!detail::problem_of([&] { again = detail::directory_lock::take(detail::directory::made(path_), 0, why); }).empty()) return;
    if (why.held) throw error("checkpoint: " + why.text + ". The lock of this run was removed");
    if (!again) return;  // the save itself will report it
    if (!again->same_as(*lock_)) warning()("the directory " + path_ + " or its lock was removed during the run; it is locked again");
    lock_ = std::move(again);
  }

  void log(const char* event) {
    if (events_ != nullptr) events_->write(event, {{"step", store_.steps()}});
  }
  std::size_t me() const { return detail::this_process(on_); }
  std::function<void(const std::string&)> warning() const {
    return [report = options_.report](const std::string& text) { report("gshard: " + text + "\n"); };
  }
  void warn(const std::string& text) const {
    if (on_.leader()) detail::problem_of([&] { warning()(text); });
  }
  double seconds_since_last() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - last_time_).count(); }

  std::vector<fact> facts(const char* call) const {
    std::vector<fact> all{{"the call", call},
                          {"the store", detail::store_text(store_.number())},
                          {"the number of finished steps", std::to_string(store_.steps())}};
    if (std::string_view(call).starts_with("after_step")) return all;
    all.push_back({"the seed of the store", std::to_string(store_.seed())});
    detail::add_to(all, options_);
    for (const auto& [name, s] : states_) all.push_back({"the name of a state", name});
    for (const auto& [name, entry] : store_.saved())
      all.push_back({"tensor " + detail::in_quotes(name), detail::layout_text(entry.value, store_.cluster().mesh())});
    return all;
  }

  /// Gets the current states on the leader. Returns an error of this process.
  process_error states_of_leader(std::map<std::string, std::string>& to) const {
    return detail::problem_of([&] {
      for (const auto& [name, s] : states_)
        if (on_.leader()) to[name] = s.save();
    });
  }

  /// Saves, unless the last checkpoint that this object has saved or loaded has the same content.
  bool save_changes() {
    end_save_in_flight();
    const bool same = !kept_.empty() && saved_ == kept_.back() && saved_.step == store_.steps() && saver_->equals_last();
    std::map<std::string, std::string> states;
    const process_error problem = states_of_leader(states);
    return !on_.agree({}, problem, !same || states != saved_states_) || save_and_wait();
  }
  bool save_and_wait() {
    end_save_in_flight();
    start_save();
    return end_save_in_flight();
  }
  bool end_save_in_flight() {
    if (!saver_->in_flight()) return true;
    const auto result = saver_->poll(true);
    record(*result);
    return result->problem.empty();
  }

  void start_save() {
    due_ = false;
    last_time_ = std::chrono::steady_clock::now();
    manifest m;
    process_error problem = states_of_leader(m.states);
    if (problem.empty())
      problem = detail::problem_of([&] {
        if (on_.leader() && options_.key && !options_.key->can_sign())
          throw error("checkpoint: the key of the checkpointer is a public one");
        if (const std::string changed = on_.changed_environment(); !changed.empty()) throw error("checkpoint: " + changed);
        if (lock_) lock_again();
      });
    check_replicas(store_);
    if (!not_kept_.empty())
      problem = "checkpoint: the checkpoint that was loaded has a state " + detail::in_quotes(not_kept_[0]) +
                " that the program does not keep, so that a save would lose it; call keep_state() before resume()";
    if (!knows_older_ && !found_.finished.empty())
      problem = path_ + ": has checkpoints, the last is " + found_.finished.back().text() + "; call resume(), or use another directory";
    on_.agree(facts("the start of a save"), problem);
    knows_older_ = true;
    detail::step_name step{store_.steps(), 0};
    for (const detail::step_name& t : used_names_)  // the newest checkpoint of a step has the greatest number
      if (t.step == step.step) step.again = std::max(step.again, t.again + 1);
    used_names_.push_back(step);
    m.library = version;
    m.products = products();
    m.step = store_.steps();
    m.seed = store_.seed();
    const mesh_shape& mesh = store_.cluster().mesh();
    for (int a = 0; a < mesh.rank(); ++a) m.mesh.emplace_back(mesh.name(a), on_.extents()[std::size_t(a)]);
    m.settings = options_.settings;
    starting_states_ = m.states;
    saver_->start(step, std::move(m), events_, obsolete(step));
  }
  // Checkpoints to remove once `next` is committed: older ones of its step, and all but the newest of each of the last `keep` steps. Also
  // unfinished ones, and refused ones up to its step.
  std::vector<detail::step_name> obsolete(const detail::step_name& next) const {
    std::vector<detail::step_name> all = found_.unfinished;
    std::vector<std::uint32_t> steps{next.step};
    for (auto s = kept_.rbegin(); s != kept_.rend(); ++s) {
      if (steps.size() >= std::size_t(options_.keep) || std::ranges::find(steps, s->step) != steps.end())
        all.push_back(*s);
      else
        steps.push_back(s->step);
    }
    for (const detail::step_name& s : refused_)
      if (s.step <= next.step) all.push_back(s);
    return all;
  }
  void record(const detail::save_result& result) {
    if (result.problem.empty()) {
      const std::vector<detail::step_name> gone = obsolete(result.step);
      const auto is_gone = [&](const detail::step_name& s) { return std::ranges::find(gone, s) != gone.end(); };
      for (auto* list : {&kept_, &refused_, &found_.unfinished, &used_names_}) std::erase_if(*list, is_gone);
      kept_.push_back(result.step);
      if (events_ != nullptr) events_->write("checkpoint", {{"step", result.step.step}, {"directory", result.step.text()}});
      saved_ = result.step;
      saved_states_ = std::move(starting_states_);
      return;
    }
    last_problem_ = result.problem;
    if (!result.is_of_others) found_.unfinished.push_back(result.step);
    const std::string text = "the checkpoint of step " + std::to_string(result.step.step) + " could not be saved: " + result.problem;
    if (options_.on_failure == checkpointer_options::failure::stop) throw error(text);
    warn(text + (kept_.empty() ? "; there is no checkpoint" : "; the last one is that of step " + std::to_string(kept_.back().step)));
  }

  /// Loads the newest valid checkpoint of a list, and removes invalid newer ones from the list. Returns nothing if the list is empty.
  std::optional<resumed> load_newest(std::vector<detail::step_name>& from) {
    resumed result;
    detail::checkpoint_loader loader(store_, saver_->disks(), path_);
    while (!from.empty()) {
      const detail::step_name step = from.back();
      std::string misfit;
      const manifest* m = nullptr;
      const process_error problem = detail::problem_of([&] {
        m = &loader.read_manifest(step, options_.key, options_.require_signature);
        misfit = misfit_of(*m, loader);
        if (misfit.empty()) loader.read();
      });
      if (!misfit.empty()) throw error(path_ + "/" + step.text() + ": does not fit: " + misfit);
      if (problem.empty()) {
        load(loader, *m);
        saved_ = step;
        if (on_.leader()) saved_states_ = m->states;
        saver_->set_saved();
        return resumed{m->step, step.text(), std::move(result.refused), loader.bytes_read()};
      }
      result.refused.push_back(step.text() + ": " + problem.text);
      warn("checkpoint " + path_ + "/" + step.text() + " is refused: " + problem.text);
      refused_.push_back(step);
      from.pop_back();
    }
    if (result.refused.empty()) return std::nullopt;
    throw error(path_ + ": none of its " + std::to_string(result.refused.size()) + " checkpoints is valid; the newest is " +
                result.refused[0]);
  }
  std::string misfit_of(const manifest& m, const detail::checkpoint_loader& loader) const {
    if (m.seed != store_.seed())
      return "it was saved with seed " + std::to_string(m.seed) + ", the store has seed " + std::to_string(store_.seed());
    for (const auto* both : {&m.settings, &options_.settings})
      for (const auto& [name, value] : *both) {
        const auto text = [&](const std::map<std::string, std::string>& in) {
          return in.contains(name) ? detail::in_quotes(in.at(name)) : "missing";
        };
        if (text(m.settings) != text(options_.settings))
          return "setting " + detail::in_quotes(name) + " is " + text(m.settings) + " there and " + text(options_.settings) + " here";
      }
    for (const auto& [name, s] : states_)
      if (!m.states.contains(name)) return "it has no state " + detail::in_quotes(name);
    return loader.misfit();
  }
  void load(detail::checkpoint_loader& loader, const manifest& m) {
    loader.load();
    if (events_ != nullptr)
      if (const event_log_finding found = check_event_log(events_->path(), m.event_logs); !found.unaltered) {
        detail::problem_of([&] { warning()("the event log is not the one that the checkpoint has sealed: " + found.text); });
        events_->write(detail::log_altered, {{"finding", found.text}});
      }
    saver_->keep_sealed(m.event_logs);
    process_error problem;
    for (const auto& [name, s] : states_)
      if (problem.empty()) {
        problem = detail::problem_of([&] { s.restore(m.states.at(name)); });
        if (!problem.empty()) problem = "checkpoint: restoring the state " + detail::in_quotes(name) + " failed: " + problem.text;
      }
    on_.agree({}, problem);
    not_kept_.clear();
    for (const auto& [name, bytes] : m.states)
      if (!states_.contains(name)) not_kept_.push_back(name);
    if (!not_kept_.empty())
      warn("the checkpoint has a state " + detail::in_quotes(not_kept_[0]) +
           " that the program does not keep: it is not restored, and the program cannot save");
    log("load");
    last_step_ = store_.steps();
    last_time_ = std::chrono::steady_clock::now();
    if (!m.products.empty() && m.products != products())
      warn("the checkpoint was saved by " + m.products + ", this run has " + products() + "; training goes on, but not with the same bits");
  }

  /// The libraries, instruction sets and floating-point environment that determine the bits of results.
  std::string products() const {
#if GSHARD_HEADER_ONLY
    std::string text = GSHARD_MATRIX_LIBRARIES GSHARD_FLOAT_OPTIONS;
#else
    std::string text(compiled_kernels.at(on_.level()).options);
    if (const std::string own = GSHARD_FLOAT_OPTIONS; !own.empty()) text += "; functions of the program" + own;
#endif
    if (const auto here = detail::float_environment::here(); here != detail::float_environment()) text += ", " + here.text();
    return text;
  }

  parameter_store store_;
  backend& on_;
  std::string path_;
  checkpointer_options options_;
  std::map<std::string, state> states_;
  event_log* events_ = nullptr;
  std::optional<detail::directory_lock> lock_;
  bool stops_ = false;        // a process has a stop_request
  bool looked_ = false;       // resume() has looked for checkpoints
  bool knows_older_ = false;  // resume() has looked, or there were no checkpoints
  bool due_ = false;
  std::uint32_t last_step_ = 0;  // at the last after_step
  std::chrono::steady_clock::time_point last_time_;

  // The same on all processes.
  detail::found_steps found_;
  std::vector<detail::step_name> kept_, refused_;                      // kept_: valid as far as known, ascending
  std::vector<std::string> not_kept_;                                  // states of the loaded checkpoint without a keep_state()
  std::vector<detail::step_name> used_names_;                          // names of directories that existed at the start, or were made
  detail::step_name saved_;                                            // the last checkpoint that this object has saved or loaded
  std::map<std::string, std::string> starting_states_, saved_states_;  // on the leader
  std::string last_problem_;
  std::optional<std::uint32_t> rolled_to_;  // the newest step when roll_back() was called last
  int roll_backs_ = 0;                      // to that step
  std::optional<detail::checkpoint_saver> saver_;
};

}}  // namespace gshard::v0
