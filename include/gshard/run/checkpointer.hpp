// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Checkpoints of a run: saved while training goes on, and found again when it is started anew.

#include <gshard/base/version.hpp>
#include <gshard/comm/agreement.hpp>
#include <gshard/comm/backend.hpp>
#include <gshard/comm/error.hpp>
#include <gshard/exec/check_replicas.hpp>
#include <gshard/exec/parameters.hpp>
#include <gshard/kernel/gemm/gemm.hpp>
#include <gshard/run/event_log.hpp>
#include <gshard/run/checkpoint_loader.hpp>
#include <gshard/run/checkpoint_saver.hpp>
#include <gshard/run/directory.hpp>
#include <gshard/run/disks.hpp>
#include <gshard/run/manifest.hpp>
#include <gshard/run/packets.hpp>
#include <gshard/run/signature.hpp>
#include <gshard/run/step_directories.hpp>
#include <gshard/run/stop_request.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// Options of a checkpointer. They must be the same on all processes, but for `key` and `report`.
struct checkpointer_options {
  std::uint32_t every_steps = 0;  ///< Steps from one checkpoint to the next. 0: not by steps.
  double every_seconds =
      0;  ///< Seconds from one checkpoint to the next, by the leader's clock. 0: not by time.
  int keep =
      2;  ///< The number of checkpoints that stay, the newest; older ones are removed after each new one.
  /// False: all processes see one directory. True: each host has a directory of its own at the path, on its
  /// own disk. Every part is then written twice: to the host's disk, and to that of the next host, so that
  /// one host may be lost with its disk.
  bool per_host = false;
  /// What a failed save does, such as one to a full disk. `warn`: it is reported, and training goes on.
  /// `stop`: every process throws. The checkpoints before it stay in both cases.
  enum class failure : std::uint8_t { warn, stop } on_failure = failure::warn;
  bool allow_not_finite =
      false;  ///< False: a checkpoint with an element that is infinite or not a number is a failed save.
  std::map<std::string, std::string>
      settings{};  ///< Texts that must be equal in a checkpoint that is loaded, such as hyperparameters.
  std::optional<signing_key> key{};  ///< Signs manifests, and checks their signatures; the leader's is used.
  bool require_signature = false;    ///< True: checkpoints without a signature by `key` are refused.
  /// Gets warnings, each a line; called by the leader, maybe in a thread of the checkpointer. By default they
  /// go to stderr.
  std::function<void(const std::string&)> report{};
};

/// What checkpointer::resume has loaded.
struct resumed {
  std::uint32_t step = 0;            ///< The number of finished steps.
  std::string name;                  ///< Of the checkpoint's directory.
  std::vector<std::string> refused;  ///< Newer checkpoints that are not valid, with reasons.
  std::int64_t bytes_read = 0;       ///< Of part files, by this process.
};

/// Saves a store and the state of a program while they are in use, and loads them when the program is started
/// again. One object per run.
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
/// A checkpoint has all parameters and optimizer states, the number of finished steps, and the seed. It is a
/// directory: a part per device, and a manifest, which gets its name when all parts are on the disk. So a
/// checkpoint is valid or not there. It loads on any mesh.
///
/// The functions are collective over the store's cluster, and throw `gshard::error`, the same on every
/// process: if the processes make different calls. The destructor is local, and waits for the thread. A save
/// that it finds in flight is lost: call finish() or save().
class checkpointer {
 public:
  /// Programs must be bound to the store before the first save or resume(). Collective. Throws
  /// `gshard::error`, on every process: if options are wrong or differ; if a directory exists and cannot be
  /// listed.
  checkpointer(const parameter_store& store, std::string directory, checkpointer_options options = {})
      : store_(store), on_(store.on().on()), path_(std::move(directory)), options_(std::move(options)) {
    while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
    if (!options_.report) options_.report = to_stderr;
    std::string problem = problem_of_options();
    stops_ = on_.begin(facts("making a checkpointer"), problem, stop_request::exists());
    const detail::disk_table disks =
        options_.per_host ? detail::find_disks(on_, path_) : detail::disk_table(on_);
    found_ = detail::find_steps(on_, disks, path_);
    problem = detail::problem_of([&] {
      if (const auto in = disks.is_first(me()) ? detail::directory::find(path_) : std::nullopt)
        detail::remove_finished(*in);
    });
    on_.agree({}, problem);
    if (options_.per_host && disks.disks() == 1 && on_.processes() > 1)
      warn("the directory " + path_ + " is on one disk for all processes, so per_host keeps no copies");
    saver_.emplace(
        store_, disks,
        detail::checkpoint_saver::settings{path_, options_.allow_not_finite, options_.key, warning()});
    for (const detail::found_steps& all = found_; const auto* list : {&all.finished, &all.unfinished})
      taken_.insert(taken_.end(), list->begin(), list->end());
    last_time_ = std::chrono::steady_clock::now();
    last_step_ = store_.steps();
  }
  checkpointer(const checkpointer&) = delete;
  checkpointer& operator=(const checkpointer&) = delete;

  /// Adds bytes of the program to checkpoints, such as a position in the data. At a save, `save` is called on
  /// the leader, and the others' are not. resume() calls `restore` on every process, with the leader's bytes,
  /// after the store is loaded. Before resume(); on all processes alike. Local.
  void keep_state(std::string name, std::function<std::string()> save,
                  std::function<void(std::string_view)> restore) {
    states_[std::move(name)] = {std::move(save), std::move(restore)};
  }
  /// Writes the events "checkpoint", "load" and "stop" to the event log of each process, and seals the logs'
  /// last records in every manifest. The log must outlive the checkpointer. On all processes alike. Local.
  void log_to(event_log& events) { events_ = &events; }

  /// Loads the newest valid checkpoint into the store and the states, and returns what it is; nothing if
  /// there is no checkpoint. If the newest is damaged, or not signed as required, it is reported, and the one
  /// before it is loaded. Every process reads and verifies an equal share. The store and the states change
  /// only after that. Communicates: the headers of the parts; the elements of shards that another process has
  /// read. Throws also: if there are checkpoints and none is valid; if the newest valid one has other
  /// tensors, another seed or other settings, or lacks a state; if a `restore` throws.
  std::optional<resumed> resume() {
    on_.begin(facts("resume of a checkpointer"));
    resumed result;
    detail::checkpoint_loader loader(store_, saver_->disks(), path_);
    while (!found_.finished.empty()) {
      const detail::step_name step = found_.finished.back();
      std::string misfit;
      const manifest* m = nullptr;
      const std::string problem = detail::problem_of([&] {
        m = &loader.read_manifest(step, options_.key, options_.require_signature);
        misfit = misfit_of(*m, loader);
        if (misfit.empty()) loader.read();
      });
      if (!misfit.empty()) throw error(path_ + "/" + step.text() + ": does not fit: " + misfit);
      if (problem.empty()) {
        load(loader, *m);
        result = {m->step, step.text(), std::move(result.refused), loader.bytes_read()};
        kept_ = found_.finished;
        looked_ = true;
        return result;
      }
      result.refused.push_back(step.text() + ": " + problem);
      warn("checkpoint " + path_ + "/" + step.text() + " is refused: " + problem);
      refused_.push_back(step);
      found_.finished.pop_back();
    }
    looked_ = result.refused.empty();
    if (looked_) return std::nullopt;
    throw error(path_ + ": none of its " + std::to_string(result.refused.size()) +
                " checkpoints is valid; the newest is " + result.refused[0]);
  }

  /// To be called between steps. Starts a save that is due, and goes on with one in flight: shards are copied
  /// at once, and written by a thread while training goes on. A save that comes due while one is in flight
  /// follows it. Returns false if a process was asked to stop (see stop_request): everything is saved then,
  /// and the program should end with `wait_deadlines::restart_status`. Communicates: one small message per
  /// process; none if checkpoints are by steps alone, none is in flight or due, and there was no stop_request
  /// when the checkpointer was made. With per_host, the part of every process to another host. Throws also: a
  /// failed save, with `failure::stop`; that the directory has checkpoints and resume() was not called.
  bool after_step() {
    on_.started().drain();  // a run that was started changes the number of steps
    if (options_.every_steps != 0 &&
        store_.steps() / options_.every_steps != last_step_ / options_.every_steps)
      due_ = true;
    last_step_ = store_.steps();
    const bool asks = options_.every_seconds > 0 || stops_;
    if (!asks && !due_ && !saver_->in_flight()) return true;
    const bool stop = stops_ && stop_request::requested();
    const bool late =
        on_.leader() && !due_ && options_.every_seconds > 0 && seconds_since_last() >= options_.every_seconds;
    bool stops = false;
    if (on_.begin(facts("after_step of a checkpointer"), {}, stop || late)) {
      stops = stops_ && on_.agree({}, {}, stop);
      due_ = due_ || !stops;
    }
    if (saver_->in_flight())
      if (const auto result = saver_->poll(false)) take(*result);
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
    on_.begin(facts("save of a checkpointer"));
    return save_and_wait();
  }

  /// Ends the run: saves, unless the last checkpoint has the same content, and writes the end marker, the
  /// file `finished`, when all processes are here. Throws also if the save fails, whatever the policy; there
  /// is no end marker then.
  void finish() {
    on_.begin(facts("finish of a checkpointer"));
    if (!save_changes()) throw error("checkpoint: the last save of the run failed: " + last_problem_);
    const std::string problem = detail::problem_of([&] {
      if (saver_->disks().is_first(me()))
        detail::write_finished(detail::directory::made(path_), store_.steps());
    });
    on_.agree({}, problem);
  }

  /// The directory of the last committed checkpoint; empty if there is none.
  std::string last() const { return kept_.empty() ? "" : path_ + "/" + kept_.back().text(); }
  bool in_flight() const { return saver_->in_flight(); }

 private:
  struct state {
    std::function<std::string()> save;
    std::function<void(std::string_view)> restore;
  };

  void log(const char* event) {
    if (events_ != nullptr) events_->write(event, {{"step", store_.steps()}});
  }
  std::size_t me() const { return detail::this_process(on_); }
  static void to_stderr(const std::string& line) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  }
  std::function<void(const std::string&)> warning() const {
    return [report = options_.report](const std::string& text) { report("gshard: " + text + "\n"); };
  }
  void warn(const std::string& text) const {
    if (on_.leader()) detail::problem_of([&] { warning()(text); });
  }
  double seconds_since_last() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - last_time_).count();
  }

  std::string problem_of_options() const {
    if (path_.empty()) return "checkpoint: the directory has no name";
    if (options_.keep < 1)
      return "checkpoint: checkpointer_options::keep is " + std::to_string(options_.keep) +
             "; it is at least 1";
    if (!(options_.every_seconds >= 0))
      return "checkpoint: checkpointer_options::every_seconds is negative or not a number";
    if (options_.require_signature && on_.leader() && !options_.key)
      return "checkpoint: require_signature needs a key";
    return {};
  }
  std::vector<fact> facts(const char* call) const {
    on_.started().drain();  // a run that was started changes the number of steps
    std::vector<fact> all{{"the call", call},
                          {"the store", detail::store_text(store_.number())},
                          {"the number of finished steps", std::to_string(store_.steps())}};
    if (std::string_view(call).starts_with("after_step")) return all;
    all.push_back({"the seed of the store", std::to_string(store_.seed())});
    all.push_back({"checkpointer_options::every_steps", std::to_string(options_.every_steps)});
    all.push_back({"checkpointer_options::every_seconds", detail::number_text(options_.every_seconds)});
    all.push_back({"checkpointer_options::keep", std::to_string(options_.keep)});
    all.push_back({"checkpointer_options::per_host", options_.per_host ? "true" : "false"});
    all.push_back({"checkpointer_options::on_failure",
                   options_.on_failure == checkpointer_options::failure::warn ? "warn" : "stop"});
    all.push_back({"checkpointer_options::allow_not_finite", options_.allow_not_finite ? "true" : "false"});
    all.push_back({"checkpointer_options::require_signature", options_.require_signature ? "true" : "false"});
    for (const auto& [name, value] : options_.settings)
      all.push_back({"setting " + detail::in_quotes(name), value});
    for (const auto& [name, s] : states_) all.push_back({"the name of a state", name});
    for (const auto& [name, entry] : store_.entries())
      all.push_back(
          {"tensor " + detail::in_quotes(name), detail::layout_text(entry.value, store_.on().mesh())});
    return all;
  }

  /// What the leader's states are now; an error text of this process.
  std::string states_of_leader(std::map<std::string, std::string>& to) const {
    return detail::problem_of([&] {
      for (const auto& [name, s] : states_)
        if (on_.leader()) to[name] = s.save();
    });
  }

  /// Saves, unless the last checkpoint of this object has the same content.
  bool save_changes() {
    end_save_in_flight();
    const bool same =
        !kept_.empty() && saved_ == kept_.back() && saved_.step == store_.steps() && saver_->equals_last();
    std::map<std::string, std::string> states;
    const std::string problem = states_of_leader(states);
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
    take(*result);
    return result->problem.empty();
  }

  void start_save() {
    due_ = false;
    last_time_ = std::chrono::steady_clock::now();
    manifest m;
    std::optional<event_log_head> log_head;
    std::string problem = states_of_leader(m.states);
    if (problem.empty())
      problem = detail::problem_of([&] {
        if (events_ != nullptr) log_head = events_->head();
        if (on_.leader() && options_.key && !options_.key->can_sign())
          throw error("checkpoint: the key of the checkpointer is a public one");
      });
    check_replicas(store_);
    if (!looked_ && !found_.finished.empty())
      problem = path_ + ": has checkpoints, the last is " + found_.finished.back().text() +
                "; call resume(), or use another directory";
    on_.agree(facts("the start of a save"), problem);
    looked_ = true;
    detail::step_name step{store_.steps(), 0};
    while (std::ranges::find(taken_, step) != taken_.end()) ++step.again;
    taken_.push_back(step);
    m.library = version;
    m.products = products();
    m.step = store_.steps();
    m.seed = store_.seed();
    for (int a = 0; a < store_.on().mesh().rank(); ++a)
      m.mesh.emplace_back(store_.on().mesh().name(a), on_.extents()[std::size_t(a)]);
    m.settings = options_.settings;
    starting_states_ = m.states;
    saver_->start(step, std::move(m), std::move(log_head), obsolete(step), {});
  }
  // Checkpoints that are not needed once `next` is committed.
  std::vector<detail::step_name> obsolete(const detail::step_name& next) const {
    std::vector<detail::step_name> all = found_.unfinished;
    if (const auto stay = std::size_t(options_.keep - 1); kept_.size() > stay)
      all.insert(all.end(), kept_.begin(), kept_.end() - std::ptrdiff_t(stay));
    for (const detail::step_name& s : refused_)
      if (s.step <= next.step) all.push_back(s);
    return all;
  }
  void take(const detail::save_result& result) {
    if (result.problem.empty()) {
      const std::vector<detail::step_name> gone = obsolete(result.step);
      const auto is_gone = [&](const detail::step_name& s) {
        return std::ranges::find(gone, s) != gone.end();
      };
      for (auto* list : {&kept_, &refused_, &found_.unfinished, &taken_}) std::erase_if(*list, is_gone);
      kept_.push_back(result.step);
      if (events_ != nullptr) events_->write("checkpoint", {{"step", result.step.step}, {"directory", result.step.text()}});
      saved_ = result.step;
      saved_states_ = std::move(starting_states_);
      return;
    }
    last_problem_ = result.problem;
    found_.unfinished.push_back(result.step);
    const std::string text = "the checkpoint of step " + std::to_string(result.step.step) +
                             " could not be saved: " + result.problem;
    if (options_.on_failure == checkpointer_options::failure::stop) throw error(text);
    warn(text + (kept_.empty() ? "; there is no checkpoint"
                               : "; the last one is that of step " + std::to_string(kept_.back().step)));
  }

  std::string misfit_of(const manifest& m, const detail::checkpoint_loader& loader) const {
    if (m.seed != store_.seed())
      return "it was saved with seed " + std::to_string(m.seed) + ", the store has seed " +
             std::to_string(store_.seed());
    for (const auto* both : {&m.settings, &options_.settings})
      for (const auto& [name, value] : *both) {
        const auto text = [&](const std::map<std::string, std::string>& in) {
          return in.contains(name) ? detail::in_quotes(in.at(name)) : "missing";
        };
        if (text(m.settings) != text(options_.settings))
          return "setting " + detail::in_quotes(name) + " is " + text(m.settings) + " there and " +
                 text(options_.settings) + " here";
      }
    for (const auto& [name, s] : states_)
      if (!m.states.contains(name)) return "it has no state " + detail::in_quotes(name);
    return loader.misfit();
  }
  void load(detail::checkpoint_loader& loader, const manifest& m) {
    loader.load();
    on_.agree({}, detail::problem_of([&] {
                for (const auto& [name, s] : states_) s.restore(m.states.at(name));
              }));
    log("load");
    last_step_ = store_.steps();
    last_time_ = std::chrono::steady_clock::now();
    if (!m.products.empty() && m.products != products())
      warn("the checkpoint was saved by " + m.products + ", this run has " + products() +
           "; training goes on, but not with the same bits");
  }

  /// What decides on the bits of matrix products.
  static std::string products() {
    std::string text(kernel::gemm_libraries);
#ifdef __AVX512F__
    text += ", AVX-512";
#elif defined(__AVX__)
    text += ", AVX";
#endif
#ifdef __FMA__
    text += ", FMA";
#endif
    return text;
  }

  parameter_store store_;
  backend& on_;
  std::string path_;
  checkpointer_options options_;
  std::map<std::string, state> states_;
  event_log* events_ = nullptr;
  bool stops_ = false;   // a process has a stop_request
  bool looked_ = false;  // for older checkpoints
  bool due_ = false;
  std::uint32_t last_step_ = 0;  // at the last after_step
  std::chrono::steady_clock::time_point last_time_;

  // The same on all processes.
  detail::found_steps found_;
  std::vector<detail::step_name> kept_, refused_;  // kept_: valid as far as known, ascending
  std::vector<detail::step_name> taken_;  // names of directories that were there at the start, or were made
  detail::step_name saved_;               // the last checkpoint of this object
  std::map<std::string, std::string> starting_states_, saved_states_;  // of the leader
  std::string last_problem_;
  std::optional<detail::checkpoint_saver> saver_;
};

}}  // namespace gshard::v0
