// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/cluster/datagrams.hpp>

#include <gshard/exec/process/thread_without_signals.hpp>

#include <doctest/doctest.h>

#include <thread>

namespace gs = gshard;

namespace datagram_tests {
struct number {
  int value;
};
struct pair {
  int first, second;
};
/// Receives a message that was sent to this machine, for at most 10 s.
template <class Message>
bool arrives(const gs::detail::datagrams& at, Message& m) {
  for (int i = 0; i < 1000; ++i) {
    if (at.receive(m)) return true;
    at.wait(10);
  }
  return false;
}
}  // namespace datagram_tests

TEST_CASE("datagrams: messages arrive, and those of another size are dropped") {
  using datagram_tests::number, datagram_tests::pair;
  const gs::detail::datagrams a, b;
  CHECK(a.mine().port != b.mine().port);
  CHECK(a.mine().token != b.mine().token);
  REQUIRE(a.mine().addresses > 0);
  gs::detail::datagrams::endpoint local = b.mine();
  local.addresses = 1;  // one copy
  a.send(pair{1, 2}, local);
  a.send(number{3}, local);
  a.send(pair{4, 5}, local);
  number n{};
  REQUIRE(datagram_tests::arrives(b, n));
  CHECK(n.value == 3);
  pair p{};
  REQUIRE(datagram_tests::arrives(b, p));
  CHECK(p.first == 4);
  CHECK(!b.receive(p));
  b.wait(0);
}

TEST_CASE("datagrams: wake() ends waits without end, also those that begin after it") {
  const gs::detail::datagrams a;
  std::thread waiting = gs::detail::thread_without_signals([&] { a.wait(-1); });
  a.wake();
  waiting.join();
  a.wait(-1);
  a.wake();
  a.wait(-1);
}
