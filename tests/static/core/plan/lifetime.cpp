// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/plan/lifetime.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/rows/softmax.hpp>
#include <gshard/train/adam.hpp>

#include <initializer_list>
#include <vector>

namespace gs = gshard;
namespace op = gs::op;
using gs::lifetime, gs::node;

namespace {

constexpr node step(gs::op_ref kind, std::initializer_list<int> in, std::initializer_list<int> out,
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

// 0 input, 1 parameter; 2 = f(0, 1); 3 is another name of 2; 4 = g(3, 2); 5 is 1 after its update by 4; 4 is the output.
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
static_assert(lives_are(2, 2, 0, 2) && lives_are(3, 2, 0, 2));  // the last read uses the other name
static_assert(lives_are(4, 4, 2, 4));                           // an output lives to the end
static_assert(lives_are(5, 1, -1, 4, true));                    // written over the parameter

// An output under another name keeps the storage alive, also through an alias of an alias. An unused value ends where it begins.
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

// The new value of a variable is computed in its memory: 0 is an input, 1 the variable, 3 its new value; 2 = f(1), 3 = g(2, 0).
constexpr gs::list<lifetime> with_variable(const gs::list<node>& steps, const gs::list<gs::port>& outputs = {}) {
  return gs::detail::lifetimes(gs::list<gs::value>(7), steps, {updated(1, 3)}, {at(0)}, outputs);
}
constexpr bool is_inside(const gs::list<lifetime>& l) { return l[3].root == 1 && l[1].last > 0; }
static_assert(is_inside(with_variable({step(op::map, {1}, {2}), step(op::map, {2, 0}, {3})})));
static_assert(is_inside(with_variable({step(op::map, {1, 0}, {3})})));                                  // written over its operand
static_assert(is_inside(with_variable({step(op::map, {1, 0}, {3}), step(op::map, {3}, {4})}, {at(4)})));  // and read afterwards
static_assert(with_variable({step(op::softmax, {1}, {2}), step(op::map, {2}, {3}), step(op::reshape, {3}, {4})})[4].root == 1);
// Not if the old value is read later, or is an output; if the kernel does not compute in place; or if a later step may fail.
static_assert(!is_inside(with_variable({step(op::map, {1, 0}, {3}), step(op::map, {1}, {4})})));
static_assert(!is_inside(with_variable({step(op::map, {1, 0}, {3})}, {at(1)})));
static_assert(!is_inside(with_variable({step(op::einsum, {1, 0}, {3})})));
static_assert(!is_inside(with_variable({step(op::map, {1, 0}, {3}), step(op::gather, {0, 0}, {4})})));
static_assert(!is_inside(with_variable({step(op::map, {1}, {2}), step(op::all_reduce, {2}, {3})})));
// Two variables exchange their values.
static_assert([] {
  const auto l = gs::detail::lifetimes(gs::list<gs::value>(4), {step(op::scale, {0}, {2}), step(op::scale, {1}, {3})},
                                       {updated(0, 3), updated(1, 2)}, {}, {});
  return l[2].root == 2 && l[3].root == 0;
}());
// The old value of one variable is the new value of another.
static_assert([] {
  const auto l = gs::detail::lifetimes(gs::list<gs::value>(4), {step(op::scale, {0}, {2})}, {updated(0, 2), updated(1, 0)}, {}, {});
  return l[2].root == 2;
}());

}  // namespace
