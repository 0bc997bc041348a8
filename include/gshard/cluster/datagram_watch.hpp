// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Deadlines of waits for other processes: a thread reports where every process is, and finally ends this process.

#include <gshard/cluster/datagrams.hpp>
#include <gshard/cluster/wait_deadlines.hpp>
#include <gshard/core/base/compiled.hpp>
#include <gshard/exec/backend/wait_watch.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#if GSHARD_HAS_BODIES
#include <gshard/cluster/rank_news.hpp>
#include <gshard/exec/backend/agreement.hpp>
#include <gshard/exec/process/failure_hooks.hpp>
#include <gshard/exec/process/standard_error.hpp>
#include <gshard/exec/process/thread_without_signals.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#endif

namespace gshard { inline namespace v0 {

/// A watch of waits whose thread neither calls MPI nor takes part in the collective that blocks: processes ask each other by datagrams. A
/// process that does not answer has ended, is stopped, or cannot be reached.
///
/// A wait ends before its deadline if a process has reported that it failed or makes no further call.
class datagram_watch final : public wait_watch {
 public:
  using endpoint = detail::datagrams::endpoint;

  datagram_watch(int rank, const wait_deadlines& deadlines);
  ~datagram_watch() override;

  endpoint mine() const;
  /// All processes by rank. Until they are known, reports are about this process alone.
  void know_peers(std::vector<endpoint> all);

  void lacks(std::span<const int> ranks) override;
  std::uint64_t open_scope() override;
  void close_scope(std::uint64_t scope) override;
  void fail(std::uint64_t scope, const std::string& text) override;
  void leave(const char* why) override;
  std::string refusal(std::uint64_t call) const override;
  /// Calls leave() for all watches of this process.
  static void leave_all(const char* why);

  /// Writes reports and ends the process; replaced by tests. Defaults: stderr and _exit.
  struct reaction {
    std::function<void(const std::string&)> report;
    std::function<void(int)> end;
  };
  static reaction& reactions();

 private:
  struct watcher;
  friend watcher;
  std::unique_ptr<watcher> watcher_;
};

#if GSHARD_HAS_BODIES

struct datagram_watch::watcher {
  enum class purpose : std::int32_t { question, answer, farewell, failure, receipt };
  /// question: where is the receiver? answer: its reply. farewell: the sender makes no further call. failure: it fails. receipt: that is
  /// known.
  struct message {
    std::uint64_t token = 0;
    std::int32_t from = 0, to = 0;
    purpose what = purpose::question;
    std::int32_t waits = 0, waits_long = 0;  // in an answer; waits_long: longer than the deadline asked
    double deadline = 0;                     // seconds
    std::uint64_t call = 0, steps = 0;       // the position of the sender
    std::uint64_t scope = 0;                 // in a failure
    char text[600] = {};
  };
  /// A failure of this process that the others must confirm.
  struct announcement {
    message m;
    std::vector<char> known;  // by rank
    std::int64_t next = 0;

    bool is_known_to_all() const { return std::ranges::find(known, char(0)) == known.end(); }
  };
  using lock = std::unique_lock<std::mutex>;

  static constexpr std::size_t most_told = 64;  // ranks in a report
  static constexpr std::int64_t second = 1000000000, grace = second / 2, telling = 3 * second;

  datagram_watch& owner;
  const int rank;
  const wait_deadlines deadlines;
  const pid_t process = ::getpid();
  const detail::datagrams socket;
  detail::rank_news news;
  mutable std::mutex mutex;     // guards the members before `has_left`
  std::vector<endpoint> peers;  // by rank
  std::vector<int> lacking;
  std::optional<announcement> announced;
  std::condition_variable all_know;
  std::atomic<bool> has_left = false, stop = false;
  std::vector<message> answers;               // by rank; used by the thread alone, as `stopped`
  std::int64_t stopped = 0, stopped_in = -1;  // how long the process was stopped during the wait that began at `stopped_in`
  std::atomic<std::thread::id> watching;  // set by the thread, which may run before `thread` is assigned
  std::thread thread;

  watcher(datagram_watch& w, int r, const wait_deadlines& d) : owner(w), rank(r), deadlines(d), news(r) {
    thread = detail::thread_without_signals([this] { watch(); });
  }
  ~watcher() {
    stop = true;
    if (process == ::getpid()) socket.wake();  // a forked process has the same pipe
    thread.join();
  }

  /// All watches of this process.
  struct registry {
    std::mutex mutex;
    std::vector<datagram_watch*> all;

    registry() {
      std::atexit([] { leave_all("has called exit"); });
    }
    static registry& get() {
      static registry* const one = new registry;  // never destroyed: exit() uses it
      return *one;
    }
  };

  static std::string text_since(std::int64_t then) {
    const double s = double(nanoseconds() - then) * 1e-9;
    char text[32];
    std::snprintf(text, sizeof text, s < 10 ? "%.1f s" : "%.0f s", s);
    return text;
  }

  std::string text_of_activity() const {
    const activity& now = owner.now_;
    const char* const what = now.waits_in;
    std::string s;
    if (what == nullptr) {
      s = "is outside of gshard's communication for " + text_since(now.since) + text_of_place();
      const std::scoped_lock all(registry::get().mutex);
      for (const datagram_watch* const other : registry::get().all)
        if (const char* const there = other->now_.waits_in; other != &owner && there != nullptr)
          s += "; on another cluster it waits for " + text_since(other->now_.since) + " in " + there + ", collective call " +
               std::to_string(other->now_.call);
      return s;
    }
    s.append("waits for ").append(text_since(now.since)).append(" in ").append(what);
    if (const std::int64_t bytes = now.bytes; bytes > 0) s += " of " + std::to_string(bytes) + " bytes";
    if (now.lacks) {
      const lock held(mutex);
      if (!lacking.empty()) s += ", without the messages of " + detail::ranks_text(lacking);
    }
    return s + text_of_place();
  }
  std::string text_of_place() const {
    const activity& now = owner.now_;
    const char *const kind = now.kind, *const file = now.file;
    std::string s = ", collective call " + std::to_string(now.call);
    if (kind != nullptr) s.append(", step ").append(std::to_string(now.step)).append(" ").append(kind);
    if (file != nullptr) {
      const char* const slash = std::strrchr(file, '/');
      s.append(" at ").append(slash != nullptr ? slash + 1 : file).append(":").append(std::to_string(now.line));
    }
    return s;
  }
  /// True if the process has waited for `seconds`, without the time in which it was stopped.
  bool waits_longer(double seconds) const {
    const std::int64_t since = owner.now_.since;
    if (owner.now_.waits_in == nullptr || seconds <= 0) return false;
    return double(nanoseconds() - since - (since == stopped_in ? stopped : 0)) >= seconds * double(second);
  }

  void watch() {
    watching = std::this_thread::get_id();
    std::int64_t warned_about = -1;  // the beginning of a wait
    const int pause = detail::watch_pause(deadlines);
    while (!stop) {
      serve(pause);
      announce();
      if (const std::int64_t began = owner.now_.since; began != warned_about && waits_longer(deadlines.warn)) {
        warned_about = began;
        if (const std::string text = report(deadlines.warn, false); !text.empty()) reactions().report(text);
      }
      // News must be half a second old: this process may be about to get the same error.
      const std::string why = waits_longer(0.5) ? news.against(owner.now_.call, nanoseconds() - grace) : "";
      if (!why.empty()) {
        const std::string mine = "rank " + std::to_string(rank);
        end_process("it gave up: " + why, "gshard: " + mine + " gives up: " + why + "\n  " + mine + " " + text_of_activity() + "\n");
      } else if (waits_longer(deadlines.fail)) {
        const std::string text = report(deadlines.fail, true);
        if (waits_longer(deadlines.fail)) end_process("it gave up: it " + text_of_activity(), text);
      }
    }
  }
  void end_process(const std::string& why, const std::string& text) {
    if (!text.empty()) reactions().report(text);
    tell(0, why);
    detail::failure_hooks::tell_abort(why);
    reactions().end(wait_deadlines::restart_status);
  }

  /// Waits for messages for some milliseconds. Answers questions.
  void serve(int milliseconds) {
    const std::int64_t began = nanoseconds();
    socket.wait(milliseconds);
    if (const std::int64_t late = nanoseconds() - began - milliseconds * (second / 1000); late > second) {
      const std::int64_t since = owner.now_.since;  // the process was stopped, and maybe all others
      stopped = late + (since == stopped_in ? stopped : 0);
      stopped_in = since;
    }
    for (message m; socket.receive(m);) {
      m.text[sizeof m.text - 1] = '\0';
      if (is_of_peer(m)) take(m);
    }
  }
  /// True if a message was sent by a process of the cluster to this one.
  bool is_of_peer(const message& m) const {
    const lock held(mutex);
    return m.to == rank && m.from >= 0 && std::size_t(m.from) < peers.size() && peers[std::size_t(m.from)].token == m.token;
  }
  void take(const message& m) {
    const auto from = std::size_t(m.from);
    if (m.what == purpose::question) {
      message a = to_rank(m.from, purpose::answer);
      a.waits = owner.now_.waits_in != nullptr ? 1 : 0;
      a.waits_long = waits_longer(m.deadline) ? 1 : 0;
      send(a, text_of_activity());
    } else if (m.what == purpose::answer) {
      if (from < answers.size()) answers[from] = m;
    } else if (m.what == purpose::failure) {
      news.fails(m.from, m.scope, m.text, nanoseconds());
      message known = to_rank(m.from, purpose::receipt);
      known.scope = m.scope;
      send(known);
    } else {
      if (m.what == purpose::farewell) news.departs(m.from, m.call, m.text, nanoseconds());
      const lock held(mutex);
      if (!announced || (m.what == purpose::receipt && m.scope != announced->m.scope)) return;
      announced->known[from] = 1;
      if (announced->is_known_to_all()) all_know.notify_all();
    }
  }

  message to_rank(int other, purpose what) const {
    message m{.token = socket.mine().token, .from = rank, .to = other, .what = what};
    m.call = owner.now_.call;
    m.steps = owner.now_.steps;
    return m;
  }
  void send(message& m, const std::string& text) const {
    m.text[text.copy(m.text, sizeof m.text - 1)] = '\0';
    send(m);
  }
  void send(const message& m) const {
    endpoint peer;
    {
      const lock held(mutex);
      if (std::size_t(m.to) >= peers.size()) return;
      peer = peers[std::size_t(m.to)];
    }
    if (process == ::getpid()) socket.send(m, peer);  // not from a forked process
  }
  std::size_t ranks() const {
    const lock held(mutex);
    return peers.size();
  }

  /// Sends a failure to the ranks that have not confirmed it.
  void announce() {
    lock held(mutex);
    if (!announced || nanoseconds() < announced->next) return;
    announced->next = nanoseconds() + second / 20;
    const std::vector<char> known = announced->known;
    message m = announced->m;
    held.unlock();
    for (std::size_t to = 0; to < known.size(); ++to) {
      m.to = int(to);
      if (known[to] == 0) send(m);
    }
  }
  void tell(std::uint64_t scope, const std::string& text) {
    news.fails(rank, scope, text, nanoseconds());
    announcement a{to_rank(rank, purpose::failure), {}};
    a.m.scope = scope;
    text.copy(a.m.text, sizeof a.m.text - 1);
    for (int other = 0; other < int(ranks()); ++other) a.known.push_back(other == rank || !news.departure(other).empty() ? 1 : 0);
    {
      const lock held(mutex);
      announced = std::move(a);
    }
    announce();
    if (std::this_thread::get_id() == watching.load()) {  // it ends the process
      for (int i = 0; i < 5; ++i) {
        serve(20);
        announce();
      }
      return;
    }
    lock held(mutex);
    all_know.wait_for(held, std::chrono::nanoseconds(telling), [this] { return !announced || announced->is_known_to_all(); });
    announced.reset();
  }

  /// Asks all ranks where they are. Returns the report, or nothing if another process reports.
  std::string report(double deadline, bool last) {
    const std::size_t n = ranks();
    answers.assign(n, {});
    const auto is_silent = [&](std::size_t other) {
      return int(other) != rank && answers[other].text[0] == '\0' && news.departure(int(other)).empty();
    };
    for (int attempt = 0; attempt < 3 && !stop; ++attempt) {
      bool asked = false;
      for (std::size_t to = 0; to < n; ++to)
        if (is_silent(to)) {
          message m = to_rank(int(to), purpose::question);
          m.deadline = deadline;
          send(m);
          asked = true;
        }
      for (const std::int64_t until = nanoseconds() + second / 5; asked && !stop && nanoseconds() < until;) {
        serve(20);
        asked = false;
        for (std::size_t other = 0; other < n; ++other) asked = asked || is_silent(other);
      }
    }
    if (stop) return {};  // the wait has ended
    for (std::size_t lower = 0; int(lower) < rank && lower < n; ++lower)
      if (answers[lower].waits_long != 0) return {};  // that process reports
    std::string text = "gshard: rank " + std::to_string(rank) + (last ? " gives up: it " : " ") + text_of_activity() + "\n";
    std::vector<int> absent;
    for (std::size_t other = 0; other < n; ++other) {
      if (int(other) == rank) continue;
      const std::string gone = news.departure(int(other));
      if (is_silent(other) || !gone.empty() || is_behind(answers[other])) absent.push_back(int(other));
      if (other >= most_told) continue;
      text += "  rank " + std::to_string(other) + " " +
              (!gone.empty()      ? gone
               : is_silent(other) ? "does not answer: it has ended, is stopped or cannot be reached"
                                  : answers[other].text) +
              "\n";
    }
    if (n > most_told) text += "  and " + std::to_string(n - most_told) + " more ranks\n";
    return text + (n == 0           ? "  the other ranks are not known yet: some have not made this cluster\n"
                   : absent.empty() ? "  absent: none, all ranks wait\n"
                                    : "  absent: " + detail::ranks_text(absent) + "\n");
  }
  /// True if a rank does not wait, or has not reached the call and step of this process.
  bool is_behind(const message& other) const {
    const std::uint64_t call = owner.now_.call, steps = owner.now_.steps;
    return other.waits == 0 || other.call < call || (other.call == call && other.steps < steps);
  }
};

GSHARD_INLINE datagram_watch::datagram_watch(int rank, const wait_deadlines& deadlines) {
  watcher_ = std::make_unique<watcher>(*this, rank, deadlines);
  const std::scoped_lock lock(watcher::registry::get().mutex);
  watcher::registry::get().all.push_back(this);
}
GSHARD_INLINE datagram_watch::~datagram_watch() {
  {
    const std::scoped_lock lock(watcher::registry::get().mutex);
    std::erase(watcher::registry::get().all, this);
  }
  leave("has destroyed its cluster");
}
GSHARD_INLINE datagram_watch::endpoint datagram_watch::mine() const { return watcher_->socket.mine(); }
GSHARD_INLINE void datagram_watch::know_peers(std::vector<endpoint> all) {
  const std::scoped_lock lock(watcher_->mutex);
  watcher_->peers = std::move(all);
  watcher_->lacking.reserve(watcher_->peers.size());
  watcher_->news.expect(watcher_->peers.size());
}
GSHARD_INLINE void datagram_watch::lacks(std::span<const int> ranks) {
  const std::scoped_lock lock(watcher_->mutex);
  watcher_->lacking.assign(ranks.begin(), ranks.end());
  now_.lacks = true;
}
GSHARD_INLINE std::uint64_t datagram_watch::open_scope() { return watcher_->news.open_scope(); }
GSHARD_INLINE void datagram_watch::close_scope(std::uint64_t scope) { watcher_->news.close_scope(scope); }
GSHARD_INLINE void datagram_watch::fail(std::uint64_t scope, const std::string& text) { watcher_->tell(scope, text); }
GSHARD_INLINE void datagram_watch::leave(const char* why) {
  if (watcher_->has_left.exchange(true)) return;
  for (int to = 0; to < int(watcher_->ranks()); ++to) {
    watcher::message m = watcher_->to_rank(to, watcher::purpose::farewell);
    if (to != watcher_->rank) watcher_->send(m, why);
  }
}
GSHARD_INLINE void datagram_watch::leave_all(const char* why) {
  const std::scoped_lock lock(watcher::registry::get().mutex);
  for (datagram_watch* const one : watcher::registry::get().all) one->leave(why);
}
GSHARD_INLINE std::string datagram_watch::refusal(std::uint64_t call) const { return watcher_->news.against(call, nanoseconds()); }
GSHARD_INLINE datagram_watch::reaction& datagram_watch::reactions() {
  static reaction to{detail::write_to_stderr, [](int status) { ::_exit(status); }};
  return to;
}

#endif

}}  // namespace gshard::v0
