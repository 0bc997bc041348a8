// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Texts of dims that state no sharding, or are malformed. Each mistake gives one sentence.
// expect: gshard: annotate<"G@expert,S,M">\(x\) takes all dims with commas between them, and the mesh axes that shard them
// expect: gshard: annotate<"G@expert,S,M">\(x\) takes all dims with commas between them, and the mesh axes that shard them
// expect: gshard: annotate<"B@data,M">\(x\) takes dims with their mesh axes and one tensor of a program
// expect: gshard: call_on_shards<f, "B@data,M">\(x, ...\) takes all dims with commas between them, and the axes that shard them
// expect: gshard: per_shard of a C\+\+ function is call_on_shards<f, "B@data,M">\(x, ...\)
// expect: gshard: per_shard of a C\+\+ function is call_on_shards<f, "B@data,M">\(x, ...\)
#include <gshard/plan.hpp>

namespace gs = gshard;
using gs::none, gs::P;

inline constexpr auto copy = [](auto, auto) {};
inline constexpr auto model = [](auto&, auto x) {
  const auto use = [](const auto&...) {};
#if defined(MUST_FAIL)
  use(gs::annotate<"GSM">(x));
  use(gs::annotate<"G@expert,,M">(x));
  use(gs::annotate<"G@expert,S,M">(3));
  use(gs::call_on_shards<copy, "GSM">(x));
  use(gs::per_shard<copy, "GSM", P<"expert", none, none>>(x));
  use(gs::per_shard<copy, P<"expert", none, none>>(x));
#else
  use(gs::annotate<"G@expert,S,M">(x));
  use(gs::call_on_shards<copy, "G@expert,S,M">(gs::annotate<"G@expert,S,M">(x)));
#endif
  return x;
};
static_assert(gs::program<model, gs::mesh<gs::axis<"expert">>, gs::in<"GSM">>::plan.collectives() == 0);
