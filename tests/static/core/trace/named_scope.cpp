// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/trace/named_scope.hpp>

#include <gshard/core/trace/map.hpp>

#include <string_view>

namespace gs = gshard;

// Operations have the name of the innermost scope. After a scope, they have the name of the outer one.
consteval bool names_operations() {
  gs::builder b;
  const gs::parameter_scope m(b);
  gs::symbol x = m.param("x", "A", gs::init::zeros());
  x = gs::relu(x);
  {
    const gs::named_scope outer(m, "outer");
    {
      const gs::named_scope inner(m, "inner");
      x = gs::relu(x);
    }
    x = gs::relu(x);
  }
  x = gs::relu(x);
  const auto is = [&](std::size_t i, const char* name) { return std::string_view(b.program.nodes[i].place.scope) == name; };
  return !b.program.nodes[0].place.scope && is(1, "inner") && is(2, "outer") && !b.program.nodes[3].place.scope;
}
static_assert(names_operations());
