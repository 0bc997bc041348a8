// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/base/packed_list.hpp>

#include <cstdint>
#include <initializer_list>

namespace gs = gshard;
using gs::short_list;

namespace {

template <class List = short_list>
constexpr List list(std::initializer_list<int> values) {
  List l;
  for (int v : values) l.push_back(v);
  return l;
}

static_assert(short_list::capacity == 8 && short_list::largest == 15);
static_assert(gs::dim_list::capacity == 8 && gs::dim_list::largest == 255);
static_assert(short_list{}.empty() && short_list{}.size() == 0);

// A list is a sequence: pushed values are read back, for every length, with the extreme values at every position.
template <class List>
constexpr bool keeps_what_is_pushed() {
  for (int n = 0; n <= List::capacity; ++n)
    for (int odd = 0; odd < 2; ++odd) {
      const auto value = [&](int i) { return (i + odd) % 2 ? List::largest : i; };
      List l;
      for (int i = 0; i < n; ++i) l.push_back(value(i));
      if (l.size() != n || l.full() != (n == List::capacity)) return false;
      for (int i = 0; i < n; ++i)
        if (l[i] != value(i)) return false;
      if (n > 0 && (l.front() != value(0) || l.back() != value(n - 1))) return false;
      for (int i = n; i-- > 0;) l.pop_back();
      if (l != List{}) return false;
    }
  return true;
}
static_assert(keeps_what_is_pushed<short_list>());
static_assert(keeps_what_is_pushed<gs::dim_list>());

// Two lists are equal if and only if their entries are equal: no bits of removed or overwritten entries remain.
static_assert([] {
  short_list l = list({3, 1, 4, 15});
  l.pop_back();
  l.set(1, 15);
  l.set(1, 1);
  return l == list({3, 1, 4});
}());
static_assert(list({0}) != list({}) && list({0, 0}) != list({0}));

constexpr auto erased = [](short_list l, int at) {
  l.erase(at);
  return l;
};
constexpr auto inserted = [](short_list l, int at, int v) {
  l.insert(at, v);
  return l;
};
static_assert(erased(list({1, 2, 3}), 0) == list({2, 3}) && erased(list({1, 2, 3}), 2) == list({1, 2}));
static_assert(inserted(list({1, 2}), 0, 9) == list({9, 1, 2}) &&
              inserted(list({1, 2}), 2, 9) == list({1, 2, 9}));
static_assert([] {
  for (int n = 0; n < short_list::capacity; ++n)
    for (int at = 0; at <= n; ++at) {
      short_list l;
      for (int i = 0; i < n; ++i) l.push_back(i);
      if (erased(inserted(l, at, 15), at) != l || inserted(l, at, 15)[at] != 15) return false;
    }
  return true;
}());

static_assert(list({5, 7, 5}).find(5) == 0 && list({5, 7}).find(7) == 1 && list({5, 7}).find(0) == -1);
static_assert(list({}).find(0) == -1 && !list({}).contains(0) && list({0}).contains(0));

// Prefixes, up to the full word.
static_assert([] {
  short_list full;
  for (int i = 0; i < short_list::capacity; ++i) full.push_back(i + 3);
  for (int n = 0; n <= short_list::capacity; ++n) {
    const short_list p = full.prefix(n);
    if (p.size() != n || !p.is_prefix_of(full) || full.is_prefix_of(p) != (n == short_list::capacity))
      return false;
    if (n == 0) continue;
    short_list other = p;
    other.set(n - 1, 0);
    if (other.is_prefix_of(full)) return false;
  }
  return true;
}());
static_assert(list({}).is_prefix_of(list({})) && !list({0}).is_prefix_of(list({})));

static_assert(list({}).mask() == 0 && list({0}).mask() == 1 && list({4, 1, 4}).mask() == 0b10010);

}  // namespace
