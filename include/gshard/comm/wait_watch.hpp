// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Deadlines of waits for other processes: a thread that reports where every process is, and at last ends its own.

#include <gshard/base/compiled.hpp>

#if GSHARD_HAS_BODIES
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 {

/// How long a process waits for others, in seconds. The same on all processes.
struct wait_deadlines {
  double warn = 60;   ///< Then one of the waiting processes reports where every process is. 0: never.
  double fail = 600;  ///< Then it reports again, and every process that waits so long ends with `restart_status`. 0: never.

  /// The exit status of processes that give up, EX_TEMPFAIL of sysexits.h: the run can be started again.
  static constexpr int restart_status = 75;

  bool operator==(const wait_deadlines&) const = default;
};

/// Watches the waits of one process. Its thread neither calls MPI nor takes part in the collective that blocks: processes ask each other by
/// datagrams. A process that does not answer has ended, is stopped, or cannot be reached.
class wait_watch {
 public:
  /// The addresses of a process's socket, and a number that its messages carry. Made to be exchanged as bytes.
  struct endpoint {
    static constexpr int most_addresses = 6;
    std::uint32_t address[most_addresses];  // IPv4; 0: none
    std::uint16_t port;
    std::uint16_t addresses;
    std::uint64_t token;
  };

  wait_watch(int rank, const wait_deadlines& deadlines);
  wait_watch(const wait_watch&) = delete;
  wait_watch& operator=(const wait_watch&) = delete;
  ~wait_watch();

  endpoint mine() const;
  /// All processes by rank. Until they are known, reports are about this process alone.
  void meet(std::vector<endpoint> all);

  /// A wait for other processes, which begins with the object and ends with it. An inner wait belongs to the outer one.
  class wait {
   public:
    /// `what`: "an agreement of all ranks"; a literal.
    wait(wait_watch* on, const char* what, std::int64_t bytes = 0) : on_(on != nullptr && on->begin(what, bytes) ? on : nullptr) {}
    wait(const wait&) = delete;
    wait& operator=(const wait&) = delete;
    ~wait() {
      if (on_ != nullptr) on_->end();
    }

   private:
    wait_watch* on_;
  };

  /// The nanoseconds of all waits that have ended.
  std::int64_t waited() const { return now_.waited.load(std::memory_order_relaxed); }

  /// The number of the current collective call, and the step of a plan that runs: `kind` and `file` are literals, or null.
  void in_call(std::uint64_t number) { now_.call.store(number, std::memory_order_relaxed); }
  void at_step(std::int64_t number, const char* kind, const char* file, std::uint32_t line) {
    now_.step.store(number, std::memory_order_relaxed);
    now_.kind.store(kind, std::memory_order_relaxed);
    now_.file.store(file, std::memory_order_relaxed);
    now_.line.store(line, std::memory_order_relaxed);
  }

  /// Where reports go, and how the process ends; for tests. By default to stderr, and by _exit.
  struct reaction {
    std::function<void(const std::string&)> report;
    std::function<void(int)> end;
  };
  static reaction& reactions();

 private:
  struct watcher;
  friend watcher;
  bool begin(const char* what, std::int64_t bytes);
  void end();

  /// What the process does. Fields are read one by one: a report may mix two successive moments.
  struct activity {
    std::atomic<const char*> waits_in{nullptr};
    std::atomic<std::int64_t> since{0};  // nanoseconds; of the wait, or of the end of the last one
    std::atomic<std::int64_t> waited{0};
    std::atomic<std::int64_t> bytes{0};
    std::atomic<std::uint64_t> call{0};
    std::atomic<std::int64_t> step{-1};
    std::atomic<const char*> kind{nullptr}, file{nullptr};
    std::atomic<std::uint32_t> line{0};
  };
  activity now_;
  std::unique_ptr<watcher> watcher_;
};

#if GSHARD_HAS_BODIES

struct wait_watch::watcher {
  enum class purpose : std::int32_t { question, answer, farewell };
  /// A question where the receiver is, the answer, or that the sender will not answer any more.
  struct message {
    std::uint64_t token = 0;
    std::int32_t from = 0, to = 0;
    purpose what = purpose::question;
    std::int32_t waits_long = 0;  // longer than the deadline of the question
    double deadline = 0;          // seconds
    char text[400] = {};
  };
  struct answer {
    bool waits_long = false;
    std::string text;
  };

  static constexpr std::size_t most_told = 64;  // ranks in a report

  wait_watch& of;
  const int rank;
  const wait_deadlines deadlines;
  int socket = -1;
  endpoint own{};
  std::mutex mutex;
  std::vector<endpoint> peers;  // by rank; guarded by `mutex`
  std::vector<char> left;       // by rank: it said farewell; of the thread
  std::atomic<bool> stop = false;
  std::thread thread;

  watcher(wait_watch& w, int r, const wait_deadlines& d) : of(w), rank(r), deadlines(d) {
    open();
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals belong to the application's threads
    thread = std::thread([this] { watch(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~watcher() {
    stop = true;
    thread.join();
    for (std::size_t to = 0; to < peers.size(); ++to)
      if (int(to) != rank) send({.token = own.token, .from = rank, .to = int(to), .what = purpose::farewell}, peers[to]);
    if (socket >= 0) ::close(socket);
  }

  static std::int64_t nanoseconds() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  static double seconds_since(std::int64_t then) { return double(nanoseconds() - then) * 1e-9; }
  static std::string text_of_seconds(double s) {
    char text[32];
    std::snprintf(text, sizeof text, s < 10 ? "%.1f s" : "%.0f s", s);
    return text;
  }

  /// Opens the socket, if that is possible. Without it, the process reports about itself.
  void open() {
    socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    socklen_t size = sizeof at;
    if (socket < 0 || ::bind(socket, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
        ::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size) != 0)
      return;
    own.port = at.sin_port;
    std::random_device random;
    own.token = std::uint64_t(random()) << 32 | random();
    const auto add = [&](std::uint32_t address) {
      if (own.addresses < endpoint::most_addresses) own.address[own.addresses++] = address;
    };
    add(htonl(INADDR_LOOPBACK));
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0) return;
    for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next)
      if (i->ifa_addr != nullptr && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_LOOPBACK) == 0) {
        sockaddr_in here{};
        std::memcpy(&here, i->ifa_addr, sizeof here);
        add(here.sin_addr.s_addr);
      }
    ::freeifaddrs(all);
  }

  std::string text_of_activity() const {
    const activity& now = of.now_;
    const char *const what = now.waits_in, *const kind = now.kind, *const file = now.file;
    std::string s = what != nullptr ? "waits " : "is outside of gshard's communication for ";
    s += (what != nullptr ? "for " : "") + text_of_seconds(seconds_since(now.since));
    if (what != nullptr) s.append(" in ").append(what);
    if (const std::int64_t bytes = now.bytes; what != nullptr && bytes > 0) s += " of " + std::to_string(bytes) + " bytes";
    s += ", collective call " + std::to_string(now.call);
    if (kind != nullptr) s.append(", step ").append(std::to_string(now.step)).append(" ").append(kind);
    if (file != nullptr) {
      const char* const slash = std::strrchr(file, '/');
      s.append(" at ").append(slash != nullptr ? slash + 1 : file).append(":").append(std::to_string(now.line));
    }
    return s;
  }
  bool waits_longer(double seconds) const {
    return of.now_.waits_in != nullptr && seconds > 0 && seconds_since(of.now_.since) >= seconds;
  }

  void watch() {
    bool warned = false;
    std::int64_t warned_about = 0;
    const double least = std::min(deadlines.warn > 0 ? deadlines.warn : 1, deadlines.fail > 0 ? deadlines.fail : 1);
    const int pause = std::clamp(int(least * 1000 / 8), 5, 250);
    while (!stop) {
      serve(pause, nullptr);
      const std::int64_t began = of.now_.since;
      if (warned && began != warned_about) warned = false;
      if (!warned && waits_longer(deadlines.warn)) {
        warned = true;
        warned_about = began;
        report(deadlines.warn, false);
      }
      if (waits_longer(deadlines.fail)) {
        report(deadlines.fail, true);
        if (waits_longer(deadlines.fail)) reactions().end(wait_deadlines::restart_status);
      }
    }
  }

  /// Waits for messages for some milliseconds. Answers questions; adds answers to `found`, if that is asked for.
  void serve(int milliseconds, std::vector<answer>* found) {
    pollfd ready{socket, POLLIN, 0};
    if (socket < 0 || ::poll(&ready, 1, milliseconds) <= 0) {
      if (socket < 0) std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      return;
    }
    message m;
    sockaddr_in from{};
    socklen_t size = sizeof from;
    while (::recvfrom(socket, &m, sizeof m, 0, reinterpret_cast<sockaddr*>(&from), &size) == ssize_t(sizeof m)) {
      if (!is_of_peer(m)) continue;
      if (m.what == purpose::farewell) {
        left.resize(std::max(left.size(), std::size_t(m.from) + 1));
        left[std::size_t(m.from)] = 1;
        continue;
      }
      if (m.what == purpose::answer) {
        if (found != nullptr && std::size_t(m.from) < found->size()) {
          m.text[sizeof m.text - 1] = '\0';
          (*found)[std::size_t(m.from)] = {m.waits_long != 0, m.text};
        }
        continue;
      }
      message a{.token = own.token, .from = rank, .to = m.from, .what = purpose::answer, .waits_long = waits_longer(m.deadline) ? 1 : 0};
      std::snprintf(a.text, sizeof a.text, "%s", text_of_activity().c_str());
      ::sendto(socket, &a, sizeof a, 0, reinterpret_cast<const sockaddr*>(&from), size);
    }
  }
  /// True if a message was sent by a process of the cluster to this one.
  bool is_of_peer(const message& m) {
    const std::scoped_lock lock(mutex);
    return m.to == rank && m.from >= 0 && std::size_t(m.from) < peers.size() && peers[std::size_t(m.from)].token == m.token;
  }

  void report(double deadline, bool last) {
    std::vector<endpoint> all;
    {
      const std::scoped_lock lock(mutex);
      all = peers;
    }
    std::vector<answer> found(all.size());
    const auto is_silent = [&](std::size_t other) { return int(other) != rank && found[other].text.empty() && !has_left(other); };
    for (int attempt = 0; attempt < 3; ++attempt) {
      bool asked = false;
      for (std::size_t to = 0; to < all.size(); ++to)
        if (is_silent(to)) {
          send({.token = own.token, .from = rank, .to = int(to), .deadline = deadline}, all[to]);
          asked = true;
        }
      for (const std::int64_t began = nanoseconds(); asked && seconds_since(began) < 0.2;) {
        serve(20, &found);
        asked = false;
        for (std::size_t other = 0; other < all.size(); ++other) asked = asked || is_silent(other);
      }
    }
    for (int lower = 0; lower < rank && std::size_t(lower) < found.size(); ++lower)
      if (found[std::size_t(lower)].waits_long) return;  // that process reports
    std::string text = "gshard: rank " + std::to_string(rank) + (last ? " gives up: it " : " ") + text_of_activity() + "\n";
    std::size_t told = 0, silent = 0;
    for (std::size_t other = 0; other < found.size(); ++other) {
      if (int(other) == rank) continue;
      const bool is_gone = is_silent(other);
      silent += is_gone ? 1 : 0;
      if (++told > most_told) continue;
      text += "  rank " + std::to_string(other) + " " +
              (is_gone            ? "does not answer: it has ended, is stopped or cannot be reached"
               : has_left(other) ? "has destroyed its cluster, so that it makes no further call"
                                 : found[other].text) +
              "\n";
    }
    if (told > most_told)
      text += "  and " + std::to_string(told - most_told) + " more ranks; " + std::to_string(silent) + " in all do not answer\n";
    reactions().report(text);
  }
  bool has_left(std::size_t other) const { return other < left.size() && left[other] != 0; }
  void send(const message& m, const endpoint& peer) const {
    for (int i = 0; i < int(peer.addresses); ++i) {
      sockaddr_in at{};
      at.sin_family = AF_INET;
      at.sin_port = peer.port;
      at.sin_addr.s_addr = peer.address[i];
      ::sendto(socket, &m, sizeof m, 0, reinterpret_cast<const sockaddr*>(&at), sizeof at);
    }
  }
};

GSHARD_INLINE wait_watch::wait_watch(int rank, const wait_deadlines& deadlines) {
  now_.since = watcher::nanoseconds();
  watcher_ = std::make_unique<watcher>(*this, rank, deadlines);
}
GSHARD_INLINE wait_watch::~wait_watch() = default;
GSHARD_INLINE wait_watch::endpoint wait_watch::mine() const { return watcher_->own; }
GSHARD_INLINE void wait_watch::meet(std::vector<endpoint> all) {
  const std::scoped_lock lock(watcher_->mutex);
  watcher_->peers = std::move(all);
}
GSHARD_INLINE bool wait_watch::begin(const char* what, std::int64_t bytes) {
  if (now_.waits_in.load(std::memory_order_relaxed) != nullptr) return false;
  now_.since.store(watcher::nanoseconds(), std::memory_order_relaxed);
  now_.bytes.store(bytes, std::memory_order_relaxed);
  now_.waits_in.store(what, std::memory_order_relaxed);
  return true;
}
GSHARD_INLINE void wait_watch::end() {
  const std::int64_t now = watcher::nanoseconds();
  now_.waited.fetch_add(now - now_.since.load(std::memory_order_relaxed), std::memory_order_relaxed);
  now_.waits_in.store(nullptr, std::memory_order_relaxed);
  now_.since.store(now, std::memory_order_relaxed);
}
GSHARD_INLINE wait_watch::reaction& wait_watch::reactions() {
  static reaction to{[](const std::string& text) {
                       [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
                     },
                     [](int status) { ::_exit(status); }};
  return to;
}

#endif

}}  // namespace gshard::v0
