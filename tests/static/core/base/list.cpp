// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/list.hpp>

#include <cstddef>
#include <utility>

namespace {

constexpr int sum(const gshard::list<int>& l) {
  int s = 0;
  for (int x : l) s += x;
  return s;
}

// grows past its capacity, with its own element as the argument
static_assert([] {
  gshard::list<int> l;
  for (int i = 0; i < 100; ++i) l.push_back(i);
  for (int i = 0; i < 100; ++i) l.push_back(l[std::size_t(i)]);
  return l.size() == 200 && l.front() == 0 && l.back() == 99 && sum(l) == 2 * 4950;
}());

// copies are separate, moves take everything
static_assert([] {
  gshard::list<int> a(3, 7);
  gshard::list<int> b = a;
  b[0] = 1;
  gshard::list<int> c = std::move(b);
  c.pop_back();
  a = c;
  a.push_back(5);
  return sum(a) == 13 && sum(c) == 8 && c.size() == 2 && b.empty();
}());

// elements that own memory
static_assert([] {
  gshard::list<gshard::list<int>> rows(2, gshard::list<int>(2, 1));
  rows.push_back(rows[0]);
  rows[0].push_back(9);
  return sum(rows[0]) == 11 && sum(rows[2]) == 2 && rows.size() == 3;
}());

static_assert(sum({1, 2, 3}) == 6);
static_assert(gshard::list<int>().empty() && gshard::list<int>(4).size() == 4 && sum(gshard::list<int>(4)) == 0);

static_assert([] {
  const int numbers[] = {1, 2, 3};
  gshard::list<int> l;
  l.append(numbers, 3);
  l.append(numbers, 0);
  return sum(l) == 6;
}());

}  // namespace
