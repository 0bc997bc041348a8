// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/pass/schedule/lifetime.hpp>

#include <initializer_list>
#include <vector>

namespace gs = gshard;
using gs::lifetime, gs::node, gs::op;

namespace {

constexpr node step(op kind, std::initializer_list<int> in, std::initializer_list<int> out,
                    int in_place = 0) {
  node n;
  n.kind = kind;
  n.in_place = std::uint8_t(in_place);
  for (int i : in) n.in[n.inputs++] = i;
  for (int o : out) n.out[n.outputs++] = o;
  return n;
}
constexpr gs::port at(int v) {
  return {{}, v};
}
constexpr gs::parameter updated(int v, int u) {
  gs::parameter p;
  p.value = v;
  p.updated = u;
  return p;
}

// 0 input, 1 parameter; 2 = f(0, 1); 3 is 2 under another name; 4 = g(3, 2); 5 is 1 after its update by 4; 4
// is the output.
constexpr gs::list<lifetime> lives() {
  return gs::detail::lifetimes(gs::list<gs::value>(6),
                               {step(op::einsum, {0, 1}, {2}), step(op::reshape, {2}, {3}),
                                step(op::map, {3, 2}, {4}), step(op::adam, {1, 4}, {5}, 1)},
                               {updated(1, 5)}, {at(0)}, {at(4)});
}
constexpr bool lives_are(int v, int root, int first, int last, bool persistent = false) {
  const lifetime l = lives()[std::size_t(v)], r = lives()[std::size_t(l.root)];
  return l.root == root && r.first == first && r.last == last && r.persistent == persistent;
}
static_assert(lives_are(0, 0, -1, 0));
static_assert(lives_are(1, 1, -1, 4, true));
static_assert(lives_are(2, 2, 0, 2) && lives_are(3, 2, 0, 2));  // read under the other name last
static_assert(lives_are(4, 4, 2, 4));                           // an output lives to the end
static_assert(lives_are(5, 1, -1, 4, true));                    // written over the parameter

// An output under another name keeps the storage alive, an alias of an alias too; what nobody reads ends
// where it begins.
static_assert([] {
  const auto l = gs::detail::lifetimes(
      gs::list<gs::value>(5),
      {step(op::iota, {}, {0}), step(op::reshape, {0}, {1}), step(op::annotate, {1}, {2}),
       step(op::softmax, {2}, {3}), step(op::iota, {}, {4})},
      {}, {}, {at(2)});
  return l[2].root == 0 && l[1].root == 0 && l[0].last == 5 && l[3].last == 3 && l[3].first == 3 &&
         l[4].first == 4 && l[4].last == 4;
}());

// Only the first results of an in-place step overwrite operands.
static_assert([] {
  const auto l = gs::detail::lifetimes(gs::list<gs::value>(4), {step(op::adam, {0, 1}, {2, 3}, 1)},
                                       {updated(0, 2)}, {at(1)}, {at(3)});
  return l[2].root == 0 && l[3].root == 3 && l[3].first == 0 && l[3].last == 1;
}());

}  // namespace
