// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Telemetry of a run: times, waiting, bytes, memory and the program's own values of every step, and stragglers.

#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/backend/wait_watch.hpp>
#include <gshard/exec/program/executor.hpp>
#include <gshard/exec/tensor/cluster.hpp>
#include <gshard/io/file.hpp>
#include <gshard/sim/run/dry_run.hpp>
#include <gshard/survive/files/directory.hpp>
#include <gshard/survive/files/log_file.hpp>
#include <gshard/survive/log/event_log.hpp>
#include <gshard/survive/monitor/straggler.hpp>
#include <gshard/survive/monitor/telemetry_writer.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

struct telemetry_options {
  /// Process 3 writes `directory`/telemetry-00003.jsonl, with lines for steps, readable by this user alone. Empty: no files.
  std::string directory{};
  /// Process 3 writes `prometheus`/gshard-00003.prom for the textfile collector of node exporter, readable for all. Such files of this
  /// user are removed at the start: an earlier run may have had more processes. Empty: no files.
  std::string prometheus{};
  double prometheus_seconds = 5;                ///< between two writes
  std::map<std::string, std::string> labels{};  ///< of all samples for Prometheus, such as {"job", "translate"}
  std::uint32_t lists_every = 10;               ///< Lists of values are written if this divides the step's number. 0: never.
  straggler_rule stragglers{};
  /// Called on the leader, between two steps, when a process becomes a straggler, and when it stops being one.
  std::function<void(const slow_process&)> on_straggler{};
  /// Receives the events "straggler", "straggler_ended" and "skipped", on the leader. A step is skipped if an added program has skipped the
  /// updates of its optimizer (not_finite::skip). The last run of the program in the step decides.
  event_log* events = nullptr;
  event_log::reporter report{};                 ///< Receives a text when a file cannot be written. Default: stderr.
  /// A line is written if this divides the step's number, or if the step was skipped; 0: never. Files for Prometheus count all steps. A
  /// line of a small model has about 250 bytes.
  std::uint32_t every = 1;
};

/// Measures the steps of a run, on every process. A thread writes the steps within a second.
///
///   gs::telemetry watch(cluster, {.directory = "run"});
///   watch.add(train);                                  // its bytes and memory
///   while (...) {
///     const auto step = watch.step(store.steps());     // until the end of the block
///     watch.value("loss", train(x, y).item());
///   }
///
/// A step that ends by an exception is not recorded.
class telemetry {
 public:
  /// Collective. Communicates: one small message per process, and the names of hosts.
  /// Throws `gshard::error`, on every process: if a file cannot be opened; if the processes have different rules for stragglers.
  explicit telemetry(const any_cluster& on, telemetry_options options = {})
      : on_(on), options_(std::move(options)), process_(on.devices().front()) {
    if (!options_.report) options_.report = detail::tell_on_stderr;
    const detail::thread_rule::use in_use = on_.backend().enter();
    const straggler_rule& rule = options_.stragglers;
    if (!options_.prometheus.empty()) detail::remove_old_states(options_.prometheus);
    on_.backend().begin(std::vector<fact>{{"the call", "making telemetry"},
                                          {"the last steps of the rule for stragglers", std::to_string(rule.last_steps) + " steps"},
                                          {"the least number of slow steps of stragglers", std::to_string(rule.least)},
                                          {"the ratio of stragglers", detail::number_text(rule.ratio)},
                                          {"the excess of stragglers", detail::number_text(rule.excess) + " s"}});
    on_.backend().agree({}, detail::problem_of([&] { open(); }));  // after all have removed old files
    const std::string host = detail::host_name();
    for (const std::vector<std::byte>& name : on_.backend().gather_to_leader(std::as_bytes(std::span(host))))
      hosts_.emplace_back(reinterpret_cast<const char*>(name.data()), name.size());
    is_straggler_.resize(hosts_.size());
  }
  telemetry(const telemetry&) = delete;
  telemetry& operator=(const telemetry&) = delete;
  ~telemetry() = default;

  /// Adds a program, an `executable` or an `executor`: the bytes that it receives and the memory of its values. It must outlive the
  /// telemetry, at the same address. `predicted`: the predicted seconds of one run, shown next to the measured time.
  template <class Run>
  void add(const Run& run, double predicted = -1) {
    programs_.push_back({[&run]() -> const executor& {
                           if constexpr (std::derived_from<Run, executor>) return run;
                           else return run.executor();
                         }, predicted, nullptr, 0, {}});
    snapshot(programs_.back());
  }
  /// Adds a program with the time that `dry_run` predicts on a piece of hardware, with activations kept. A while loop counts as one
  /// iteration; for more, pass the time of a `run_clock` to `predicted` in every step. Throws as dry_run does, except for lack of memory.
  template <class Run>
  void add(const Run& run, const hardware& on, dry_run_options how = {}) {
    how.activations = recompute::never;
    how.report_only = true;
    const executor& e = [&]() -> const executor& {
      if constexpr (std::derived_from<Run, executor>) return run;
      else return run.executor();
    }();
    add(run, dry_run(e.plan(), e.sizes(), on, how).seconds);
  }

  /// Begins a step. After every `stragglers.last_steps` steps it is a collective call.
  /// Communicates: nothing, or one small message per process and the times of these steps to the leader.
  /// Throws `gshard::error`, on every process, if the processes make different calls.
  void begin_step(std::uint32_t number) {
    if (options_.stragglers.last_steps > 0 && window_.size() == options_.stragglers.last_steps) find_stragglers(number);
    now_ = {};
    now_.step = number;
    for (program& p : programs_) snapshot(p);
    waited_ = waited();
    began_ = clock::now();
    in_step_ = true;
  }
  /// Ends a step. Does not communicate.
  void end_step() {
    if (!std::exchange(in_step_, false)) return;
    now_.seconds = std::chrono::duration<double>(clock::now() - began_).count();
    now_.waiting = std::min(now_.seconds, double(waited() - waited_) * 1e-9);
    window_.push_back(now_.seconds - now_.waiting);
    now_.time = detail::unix_seconds();
    now_.received.assign(detail::collective_kinds().size(), 0);
    for (program& p : programs_) count(p);
    if (now_.skipped && options_.events && on_.backend().leader()) options_.events->write("skipped", {{"step", now_.step}});
    now_.resident = resident_bytes();
    if (writer_) writer_->add(std::move(now_));
  }
  /// Forgets a step that failed.
  void drop_step() { in_step_ = false; }

  /// A step that ends with the object.
  class scope {
   public:
    scope(telemetry& of, std::uint32_t number) : of_(of), exceptions_(std::uncaught_exceptions()) { of_.begin_step(number); }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;
    ~scope() {
      if (std::uncaught_exceptions() > exceptions_) of_.drop_step();
      else of_.end_step();
    }

   private:
    telemetry& of_;
    int exceptions_;
  };
  [[nodiscard]] scope step(std::uint32_t number) { return {*this, number}; }

  /// A number of the current step, such as the loss. Processes may give different numbers, or none.
  void value(std::string_view name, double x) {
    if (in_step_ && writer_) now_.values.emplace_back(name, x);
  }
  /// Numbers of the current step, such as the load of each expert.
  template <class T>
  void values(std::string_view name, std::span<const T> list) {
    if (in_step_ && writer_) now_.lists.emplace_back(name, std::vector<double>(list.begin(), list.end()));
  }
  template <class T>
  void values(std::string_view name, const std::vector<T>& list) {
    values(name, std::span<const T>(list));
  }
  /// Adds predicted seconds of the current step, such as those of `run_clock::record`, to those of the programs.
  void predicted(double seconds) { now_.predicted = std::max(now_.predicted, 0.0) + seconds; }

 private:
  using clock = std::chrono::steady_clock;
  struct program {
    std::function<const executor&()> current;
    double predicted;
    const executor* seen;  // by snapshot()
    std::int64_t runs;
    std::vector<std::int64_t> received;
  };

  any_cluster on_;
  telemetry_options options_;
  int process_;
  std::vector<program> programs_;
  std::unique_ptr<detail::telemetry_writer> writer_;
  detail::descriptor memory_{-1};
  detail::telemetry_sample now_;
  bool in_step_ = false;
  clock::time_point began_;
  std::int64_t waited_ = 0;
  std::vector<double> window_;  // seconds of computation of the last steps
  std::vector<std::string> hosts_;  // of all processes, on the leader
  std::vector<char> is_straggler_;

  std::int64_t waited() const {
    const wait_watch* const waits = on_.backend().waits();
    return waits == nullptr ? 0 : waits->waited();
  }
  /// The resident bytes of the process; 0 if the system does not report them.
  std::int64_t resident_bytes() const {
    char text[128] = {};
    if (memory_.get() < 0 || ::pread(memory_.get(), text, sizeof text - 1, 0) <= 0) return 0;
    const char* const second = std::strchr(text, ' ');
    return second == nullptr ? 0 : std::strtoll(second, nullptr, 10) * ::sysconf(_SC_PAGESIZE);
  }
  static void snapshot(program& p) {
    const executor& e = p.current();
    p.seen = &e;
    p.runs = e.runs();
    p.received.clear();
    for (const op_ref kind : detail::collective_kinds()) p.received.push_back(e.received(kind).bytes);
  }
  /// Adds the work of a program since snapshot(). An executable that was bound to other memory has a new executor, which counts from 0.
  void count(program& p) {
    const executor& e = p.current();
    const bool is_new = p.seen != &e || e.runs() < p.runs;
    for (std::size_t k = 0; k < p.received.size(); ++k)
      now_.received[k] += e.received(detail::collective_kinds()[k]).bytes - (is_new ? 0 : p.received[k]);
    const std::int64_t runs = e.runs() - (is_new ? 0 : p.runs);
    now_.skipped = now_.skipped || (runs > 0 && e.skipped());
    if (p.predicted >= 0 && runs > 0) predicted(p.predicted * double(runs));
    now_.arena += e.arena_bytes() * std::int64_t(on_.devices().size());
  }

  void open() {
    if (options_.directory.empty() && options_.prometheus.empty()) return;
    memory_ = detail::descriptor(detail::open_file("/proc/self/statm", O_RDONLY));
    detail::telemetry_writer::target to;
    if (!options_.directory.empty()) {
      detail::directory::made(options_.directory);
      to.lines = detail::file_of_process(options_.directory, "telemetry", process_, ".jsonl");
    }
    if (!options_.prometheus.empty()) to.prometheus = detail::file_of_process(options_.prometheus, "gshard", process_, ".prom");
    to.prometheus_seconds = options_.prometheus_seconds;
    to.lists_every = options_.lists_every;
    to.every = options_.every;
    to.labels = options_.labels;
    to.labels["process"] = std::to_string(process_);
    to.report = options_.report;
    nlohmann::ordered_json first{{"telemetry", 1}, {"process", process_}, {"processes", on_.backend().processes()},
                                 {"host", detail::host_name()}, {"pid", ::getpid()}, {"version", version},
                                 {"time", detail::unix_seconds()}};
    for (int a = 0; a < on_.mesh().rank(); ++a) first["mesh"][std::string(on_.mesh().name(a))] = on_.extent(a);
    writer_ = std::make_unique<detail::telemetry_writer>(
        std::move(to), first.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  }

  void find_stragglers(std::uint32_t step) {
    const detail::thread_rule::use in_use = on_.backend().enter();
    on_.backend().begin(std::vector<fact>{{"the call", "the search for stragglers"}, {"its step", std::to_string(step)}});
    const auto all = on_.backend().gather_to_leader(std::as_bytes(std::span(window_)));
    const std::size_t steps = window_.size();
    window_.clear();
    if (!on_.backend().leader()) return;
    std::vector<std::vector<double>> seconds;
    for (const std::vector<std::byte>& bytes : all) {
      seconds.emplace_back(steps);
      std::memcpy(seconds.back().data(), bytes.data(), std::min(bytes.size(), steps * sizeof(double)));
    }
    for (slow_process& s : judge_last_steps(seconds, options_.stragglers)) {
      const auto p = std::size_t(s.process);
      const bool is_one = s.slow_steps >= options_.stragglers.least;
      if (bool(is_straggler_[p]) == is_one) continue;
      is_straggler_[p] = is_one;
      s.host = hosts_[p];
      s.step = step;
      s.ended = !is_one;
      if (writer_) writer_->set_straggler(std::to_string(p), is_one);
      if (options_.events)
        options_.events->write(s.ended ? "straggler_ended" : "straggler",
                               {{"process", s.process}, {"host", s.host}, {"step", s.step}, {"slow_steps", s.slow_steps},
                                {"window", s.last_steps}, {"seconds", s.seconds}, {"median", s.median}});
      // An exception of the callback must not leave the other processes alone.
      if (options_.on_straggler)
        if (const process_error problem = detail::problem_of([&] { options_.on_straggler(s); }); !problem.empty())
          on_.backend().tell_next("the callback for stragglers: " + problem.text);
    }
  }
};

}}  // namespace gshard::v0
