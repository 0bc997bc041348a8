// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/trace/remat.hpp>

#include <gshard/core/trace/map.hpp>

#include <cstddef>

namespace gs = gshard;

// Operations have the number of their outermost scope. A scope that keeps everything does not count.
consteval bool numbers_operations() {
  gs::builder b;
  const gs::parameter_scope m(b);
  gs::symbol x = m.param("x", "A", gs::init::zeros());
  {
    const gs::remat outer(m);
    x = gs::relu(x);
    const gs::remat inner(m, gs::remat_policy::products);
    x = gs::relu(x);
  }
  x = gs::relu(x);
  {
    const gs::remat off(m, gs::remat_policy::everything);
    x = gs::relu(x);
  }
  const gs::remat second(m, gs::remat_policy::products | gs::remat_policy::collectives);
  x = gs::relu(x);
  const auto is = [&](std::size_t i, int number) { return b.program.nodes[i].place.remat == number; };
  return is(0, 1) && is(1, 1) && is(2, 0) && is(3, 0) && is(4, 2) && b.program.remats.size() == 2 &&
         b.program.remats[0] == gs::remat_policy::nothing && includes(b.program.remats[1], gs::remat_policy::products) &&
         includes(b.program.remats[1], gs::remat_policy::collectives);
}
static_assert(numbers_operations());
