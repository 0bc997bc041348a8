// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// UDP datagrams between the processes of a cluster, by which they report to each other while MPI blocks.

#include <gshard/core/base/compiled.hpp>

#if GSHARD_HAS_BODIES
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace gshard { inline namespace v0 { namespace detail {

/// A socket for datagrams. If the system provides none, no message is sent or received; waits still end.
class datagrams {
 public:
  /// The addresses of a process's socket, and a random number that its messages carry. Processes exchange it as bytes.
  struct endpoint {
    static constexpr int most_addresses = 6;
    std::uint32_t address[most_addresses];  // IPv4; 0: none
    std::uint16_t port;
    std::uint16_t addresses;
    std::uint64_t token;
  };

  datagrams();
  datagrams(const datagrams&) = delete;
  datagrams& operator=(const datagrams&) = delete;
  ~datagrams();

  const endpoint& mine() const { return mine_; }
  /// Waits for a message for some milliseconds, or until wake(). -1: without a limit.
  void wait(int milliseconds) const;
  /// Ends the wait of another thread. All later waits return at once.
  void wake() const;
  /// Receives a message of this type, if there is one. Messages of other sizes are dropped.
  template <class Message>
  bool receive(Message& m) const {
    static_assert(std::is_trivially_copyable_v<Message>);
    return receive_bytes(&m, sizeof m);
  }
  /// Sends a message to all addresses of an endpoint. It may be lost.
  template <class Message>
  void send(const Message& m, const endpoint& to) const {
    static_assert(std::is_trivially_copyable_v<Message>);
    send_bytes(&m, sizeof m, to);
  }

 private:
  int socket_ = -1;
  int woken_ = -1, waker_ = -1;  // the ends of a pipe; the bytes that wake() writes are never read
  endpoint mine_{};

  bool receive_bytes(void* data, std::size_t size) const;
  void send_bytes(const void* data, std::size_t size, const endpoint& to) const;
};

#if GSHARD_HAS_BODIES

GSHARD_INLINE datagrams::datagrams() {
  if (int ends[2]; ::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
    woken_ = ends[0];
    waker_ = ends[1];
  }
  socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  socklen_t size = sizeof at;
  if (socket_ < 0 || ::bind(socket_, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
      ::getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &size) != 0)
    return;
  mine_.port = at.sin_port;
  std::random_device random;
  mine_.token = std::uint64_t(random()) << 32 | random();
  const auto add = [&](std::uint32_t address) {
    if (mine_.addresses < endpoint::most_addresses) mine_.address[mine_.addresses++] = address;
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
GSHARD_INLINE datagrams::~datagrams() {
  for (const int file : {socket_, woken_, waker_})
    if (file >= 0) ::close(file);
}
GSHARD_INLINE void datagrams::wait(int milliseconds) const {
  pollfd ready[] = {{socket_, POLLIN, 0}, {woken_, POLLIN, 0}};  // poll ignores a negative descriptor
  ::poll(ready, 2, milliseconds);
}
GSHARD_INLINE void datagrams::wake() const {
  const char any = 0;
  while (waker_ >= 0 && ::write(waker_, &any, 1) < 0 && errno == EINTR) {
  }
}
GSHARD_INLINE bool datagrams::receive_bytes(void* data, std::size_t size) const {
  for (ssize_t bytes = 0; socket_ >= 0 && bytes >= 0;)
    if ((bytes = ::recv(socket_, data, size, MSG_TRUNC)) == ssize_t(size)) return true;
  return false;
}
GSHARD_INLINE void datagrams::send_bytes(const void* data, std::size_t size, const endpoint& to) const {
  for (int i = 0; socket_ >= 0 && i < int(to.addresses) && i < endpoint::most_addresses; ++i) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = to.port;
    at.sin_addr.s_addr = to.address[i];
    ::sendto(socket_, data, size, 0, reinterpret_cast<const sockaddr*>(&at), sizeof at);
  }
}

#endif

}}}  // namespace gshard::v0::detail
