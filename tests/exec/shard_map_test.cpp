// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compares regions of verbs on shards with the same computation of whole tensors on one device, with their gradients, and received bytes
// with planned bytes.
#include "run_graph.hpp"

#include <gshard/all_operations.hpp>
#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/iota.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/select.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/loop/loop.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/shards/collectives.hpp>
#include <gshard/ops/shards/per_shard.hpp>
#include <gshard/ops/user/call_on_shards.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/roll.hpp>
#include <gshard/ops/window/slice.hpp>

namespace gs = gshard;
using gs::annotate, gs::axes, gs::cast, gs::einsum, gs::none, gs::P, gs::per_shard, gs::symbol;
using symbols = gs::list<symbol>;
using given = std::span<const symbol>;
using body = std::function<symbol(given)>;

namespace {

const gs::dims sizes{{'A', 12}, {'B', 12}, {'C', 2}, {'E', 12}, {'M', 5}, {'H', 12}};

/// f, and the gradients of the sum of its squares.
run_graph::traced with_gradients(const std::vector<run_graph::input>& inputs, const body& f) {
  return run_graph::trace(inputs, [&](const gs::parameter_scope&, given x) {
    symbols results{f(x)};
    if (x[0].owner->failed()) return results;
    for (const symbol& g : gs::gradients(gs::sum(results[0] * results[0]), x)) results.push_back(g);
    return results;
  });
}

/// Like run_graph::run. Also checks that every kind of collective received the planned bytes.
run_graph::arrays counted_run(const run_graph::traced& t, const run_graph::setting& s, const run_graph::arrays& sources) {
  const gs::plan_tables tables = run_graph::plan(t, s);
  const gs::plan_view p = tables.view();
  const gs::any_cluster on(run_graph::mesh_of_rank(s.mesh.size()), std::make_shared<gs::simulated>(s.mesh));
  gs::executor e(p, gs::all_kernels, on, s.dims, gs::parameter_store(on));
  for (std::size_t i = 0; i < sources.size(); ++i) run_graph::scatter(on, e.input(i), sources[i]);
  e.run({});
  for (const gs::op_ref kind : gs::all_operations) {
    INFO(gs::name(kind));
    CHECK(e.received(kind).bytes == p.bytes_received(kind, e.sizes()));
  }
  run_graph::arrays results;
  for (const gs::port& q : tables.outputs) results.push_back(run_graph::collect(on, e.value(q.value)));
  return results;
}

/// Inputs are whole; `region` annotates them.
void compare(const std::vector<std::string_view>& letters, const std::vector<std::vector<int>>& meshes,
             const std::function<symbol(given, const std::vector<int>&)>& region, const body& whole) {
  for (const gs::dtype type : {gs::dtype::f32, gs::dtype::f64}) {
    std::vector<run_graph::input> inputs;
    for (const std::string_view l : letters) inputs.push_back({l, type});
    const run_graph::traced serial = with_gradients(inputs, whole);
    const run_graph::arrays sources = run_graph::random_sources(serial, sizes, 11);
    const run_graph::arrays expected = run_graph::run(serial, run_graph::serial(serial, sizes), sources);
    for (const std::vector<int>& mesh : meshes) {
      const run_graph::traced t = with_gradients(inputs, [&](given x) { return region(x, mesh); });
      for (const bool dims_known : {false, true})
        for (const char* axes_known : {"", "xy"}) {
          INFO(gs::detail::mesh_text(mesh), dims_known ? ", dims known" : "", ", axes known: ", axes_known);
          run_graph::setting s{.mesh = mesh, .dims = sizes, .layouts = {}, .known_axes = axes_known};
          s.dims.set('J', mesh[0]);
          if (dims_known) s.options.known = s.dims;
          for (const std::int32_t v : t.free) s.layouts.push_back(t.graph.at(v).layout);
          CHECK(run_graph::distance(counted_run(t, s, sources), expected) <= (type == gs::dtype::f32 ? 1e-5 : 1e-12));
        }
    }
  }
}
const std::vector<std::vector<int>> lines{{1}, {2}, {3}, {4}, {6}, {12}, {2, 2}, {3, 2}};
const std::vector<std::vector<int>> grids{{1, 1}, {2, 1}, {1, 3}, {2, 2}, {3, 2}, {2, 3}};

}  // namespace

TEST_CASE("a stencil with halos is that of the whole line") {
  compare({"BM"}, lines, [](given x, const auto&) {
    return per_shard<"x", P<"x", none>>([](symbol t) {
      const symbol h = gs::halo<"x", 1, 1>(t, 1);
      return gs::pad(h, 1, 0, -2) + 2.0 * t - gs::pad(h, 1, -2, 0);
    }, annotate<P<"x", none>>(x[0]));
  }, [](given x) { return gs::pad(x[0], 0, 1, -1) + 2.0 * x[0] - gs::pad(x[0], 0, -1, 1); });
  compare({"BM"}, {{1}, {2}, {3}, {6}}, [](given x, const auto&) {
    return per_shard<"x", P<"x", none>>([](symbol t) {
      return gs::pad(gs::halo<"x", 2, 1>(t, 1, gs::border::wrap), 1, 0, -3) - t;
    }, annotate<P<"x", none>>(x[0]));
  }, [](given x) { return gs::roll(x[0], 0, 2) - x[0]; });
  // A halo as wide as a shard.
  compare(
      {"BM"}, {{3}},
      [](given x, const auto&) {
        return per_shard<"x", P<"x", none>>([](symbol t) { return gs::pad(gs::halo<"x", 4, 0>(t, 1), 1, 0, -4); },
                                            annotate<P<"x", none>>(x[0]));
      },
      [](given x) { return gs::pad(x[0], 0, 4, -4); });
}

TEST_CASE("a stencil of a plane: regions of two axes in each other") {
  compare({"AB"}, grids, [](given x, const auto&) {
    return per_shard<"x", P<"x", "y">>([](symbol rows) {
      return per_shard<"y", P<"x", none, "y">>([](symbol t) {
        const symbol h = gs::halo<"y", 1, 1>(gs::halo<"x", 1, 1>(t, 2), 3);  // [Y, X, a + 2, b + 2]: with the corners
        const symbol corner = gs::pad(gs::pad(h, 2, 0, -2), 3, 0, -2), cross = gs::pad(gs::pad(h, 2, -2, 0), 3, -1, -1);
        return corner + cross - 4.0 * t;
      }, rows);
    }, annotate<P<"x", "y">>(x[0]));
  }, [](given x) { return gs::pad(gs::pad(x[0], 0, 1, -1), 1, 1, -1) + gs::pad(x[0], 0, -1, 1) - 4.0 * x[0]; });
}

TEST_CASE("a dim over two axes: regions enter its first axis first") {
  compare({"BM"}, grids, [](given x, const auto&) {
    return per_shard<"x", P<axes<"x", "y">, none>>([](symbol rows) {
      return per_shard<"y", P<"x", "y", none>>([](symbol t) {
        return t - gs::all_reduce<"y">(gs::all_reduce<"x">(einsum<"YXbM->YXM">(t)));
      }, rows);
    }, annotate<P<axes<"x", "y">, none>>(x[0]));
  }, [](given x) { return x[0] - einsum<"BM->M">(x[0]); });
}

TEST_CASE("rows of all devices: sums, maxima, gathers") {
  compare({"BM", "BM"}, lines, [](given x, const auto&) {
    return per_shard<"x", P<"x", none>>([](symbol t, symbol u) {
      const symbol top = gs::all_reduce<"x">(gs::reduce_max<"XbM->XM">(t), gs::reduction::max);
      const symbol all = gs::all_gather<"x">(u, 1);
      return einsum<"XbM,BM->XbB">(t - top, all);
    }, annotate<P<"x", none>>(x[0]), annotate<P<"x", none>>(x[1]));
  }, [](given x) { return einsum<"BM,AM->BA">(x[0] - gs::reduce_max<"BM->M">(x[0]), gs::map<[](auto v) { return v; }>(x[1])); });
}

TEST_CASE("a layer whose hidden dim is sharded: partial products, summed and scattered") {
  compare({"BM", "MH", "HC"}, lines, [](given x, const auto&) {
    return per_shard<"x", P<"x", none>>([](symbol t, symbol w, symbol v) {
      return gs::reduce_scatter<"x">(einsum<"XBH,XHC->XBC">(gs::relu(einsum<"BM,XMH->XBH">(t, w)), v), 1);
    }, x[0], annotate<P<none, "x">>(x[1]), annotate<P<"x", none>>(x[2]));
  }, [](given x) { return einsum<"BH,HC->BC">(gs::relu(einsum<"BM,MH->BH">(x[0], x[1])), x[2]); });
}

TEST_CASE("experts on devices: tokens go there and back") {
  compare({"BECM", "EMH"}, lines, [](given x, const auto&) {
    return per_shard<"x", P<"x", none, none, none>>([](symbol tokens, symbol w) {
      const symbol here = gs::all_to_all<"x">(tokens, 2, 1);  // [X, B, e, C, M]
      return gs::all_to_all<"x">(gs::relu(einsum<"XBeCM,XeMH->XBeCH">(here, w)), 1, 2);
    }, annotate<P<"x", none, none, none>>(x[0]), annotate<P<"x", none, none>>(x[1]));
  }, [](given x) { return gs::relu(einsum<"BECM,EMH->BECH">(x[0], x[1])); });
}

TEST_CASE("a matmul that gathers rows by shifts around a ring") {
  compare({"BM", "MH"}, lines, [](given x, const std::vector<int>& mesh) {
    const symbol block_of = cast<double>(gs::iota<"J">(gs::parameter_scope(*x[0].owner)));  // 'J': as many as devices
    return per_shard<"x", P<none, "x">>([&](symbol t, symbol w) {
      // After k shifts device i has block i - k, which belongs to the rows of that block.
      const auto spread = [](symbol a, symbol b) { return einsum<"X,J->XJ">(a, b); };
      symbol from = cast<double>(gs::device_index<"x">(t)), block = t, result;
      for (int k = 0; k < mesh[0]; ++k) {
        const symbol one = gs::map<[](auto v) { return decltype(v)(1) + 0 * v; }>(from),
                     ones = gs::map<[](auto v) { return decltype(v)(1) + 0 * v; }>(block_of);
        const symbol here = cast(gs::equal(spread(from, ones), spread(one, block_of)), t.get().type);
        const symbol rows = einsum<"XJ,Xbh->XJbh">(here, einsum<"XbM,XMh->Xbh">(block, w));
        result = k == 0 ? rows : result + rows;
        from = gs::shift<"x">(from, 1);
        block = gs::shift<"x">(block, 1);
      }
      return gs::merge_dims<1>(result);
    }, annotate<P<"x", none>>(x[0]), annotate<P<none, "x">>(x[1]));
  }, [](given x) { return einsum<"BM,MH->BH">(x[0], x[1]); });
}

TEST_CASE("shards go from source to target, for every list of pairs") {
  using pairs = std::vector<gs::device_pair>;
  // Visits all lists for n devices without a repeated source or target: device `source` and later ones have no target, or a free one.
  const auto for_each_list = [](int n, const auto& f) {
    pairs list;
    const std::function<void(int)> extend = [&](int source) {
      if (source == n) {
        if (!list.empty()) f(list);
        return;
      }
      extend(source + 1);
      for (int target = 0; target < n; ++target) {
        if (std::ranges::count(list, target, &gs::device_pair::target) > 0) continue;
        list.push_back({source, target});
        extend(source + 1);
        list.pop_back();
      }
    };
    extend(0);
  };
  int lists = 0;
  for (const std::vector<int>& mesh : {std::vector{1}, {2}, {3}, {4}, {2, 2}, {3, 2}}) {
    for_each_list(mesh[0], [&](const pairs& list) {
      ++lists;
      CAPTURE(gs::detail::mesh_text(mesh));
      const run_graph::traced t = with_gradients({{"BM", gs::dtype::f64}}, [&](given x) {
        return per_shard<"x", P<"x", none>>(
            [&](symbol s) { return gs::detail::emit_permute(s * s, "x", {list.data(), list.size()}); },
            mesh.size() == 1 ? annotate<P<"x", none>>(x[0]) : annotate<P<"x", "y">>(x[0]));
      });
      const gs::dims dims{{'B', 12}, {'M', 4}};
      run_graph::setting s{.mesh = mesh, .dims = dims, .layouts = {}, .known_axes = lists % 2 ? "xy" : ""};
      for (const std::int32_t v : t.free) s.layouts.push_back(t.graph.at(v).layout);
      const run_graph::arrays sources = run_graph::random_sources(t, dims, 3), got = counted_run(t, s, sources);
      const std::size_t shard = 48 / std::size_t(mesh[0]);
      run_graph::array moved(48, 0), gradient(48, 0);
      for (const gs::device_pair& p : list)
        for (std::size_t i = 0; i < shard; ++i) {
          const double x = sources[0][std::size_t(p.source) * shard + i];
          moved[std::size_t(p.target) * shard + i] = x * x;
          gradient[std::size_t(p.source) * shard + i] = 4 * x * x * x;
        }
      CHECK(got[0] == moved);
      CHECK(run_graph::distance({got[1]}, {gradient}) <= 1e-12);
      const auto loss_at = [&](std::size_t i, double by) {
        run_graph::arrays near = sources;
        near[0][i] += by;
        double sum = 0;
        const run_graph::arrays there = run_graph::run(t, s, near);
        for (const double y : there[0]) sum += y * y;
        return sum;
      };
      const std::size_t i = std::size_t(lists * 7) % 48;
      CHECK(got[1][i] == doctest::Approx((loss_at(i, 1e-5) - loss_at(i, -1e-5)) / 2e-5).epsilon(1e-6).scale(1));
    });
  }
  CHECK(lists == 1 + 6 + 33 + 208 + 6 + 33);
}

TEST_CASE("zeros of integers, and pairs beyond the devices") {
  const auto run = [](int devices, const std::vector<gs::device_pair>& list) {
    const run_graph::traced t = run_graph::trace({{"B", gs::dtype::i32, 'B', 9}}, [&](const gs::parameter_scope&, given x) {
      return symbols{per_shard<"x", P<"x">>([&](symbol s) { return gs::detail::emit_permute(s, "x", {list.data(), list.size()}); },
                                            annotate<P<"x">>(x[0]))};
    });
    run_graph::setting s{.mesh = {devices}, .dims = {{'B', 4}}, .layouts = {}};
    for (const std::int32_t v : t.free) s.layouts.push_back(t.graph.at(v).layout);
    return run_graph::run(t, s, {{5, 6, 7, 8}})[0];
  };
  CHECK(run(4, {{3, 0}, {0, 2}}) == run_graph::array{8, 0, 5, 0});
  CHECK(run(2, {{0, 1}}) == run_graph::array{0, 0, 5, 6});
  CHECK_THROWS_WITH_AS(run(2, {{0, 1}, {1, 2}}), doctest::Contains("collective_permute: the pair {1, 2} is beyond the 2 devices along the axis"),
                       gs::error);
}

TEST_CASE("regions in the body of a loop, also if a carried value has a device order") {
  run_graph::traced t = run_graph::trace({{"BM"}, {"", gs::dtype::i32, 'E', 3}}, [](const gs::parameter_scope&, given x) {
    return symbols{gs::repeat(
        x[1],
        [](symbol s) {
          return per_shard<"x", P<"x", none>>([](symbol u) { return gs::shift<"x">(u, 1) + gs::pad(gs::halo<"x", 1, 0>(u, 1), 1, 0, -1); },
                                              annotate<P<"x", none>>(s));
        },
        annotate<P<"x", none>>(x[0]))};
  });
  const gs::dims dims{{'B', 12}, {'M', 5}, {'E', 6}};
  const run_graph::arrays sources = run_graph::random_sources(t, dims, 6);
  for (const int devices : {1, 2, 4}) {
    run_graph::array expected = sources[0];
    const std::size_t shard = 60 / std::size_t(devices);
    for (int turn = 0; turn < int(sources[1][0]); ++turn) {
      const run_graph::array before = expected;
      for (std::size_t i = 0; i < 60; ++i) expected[i] = before[(i + 60 - shard) % 60] + (i < 5 ? 0 : before[i - 5]);
    }
    for (const bool ordered : {false, true}) {
      if (ordered && devices == 1) continue;
      run_graph::setting s{.mesh = {devices}, .dims = dims, .layouts = {}, .known_axes = "x"};
      run_graph::traced u = t;
      for (int i = 0; i < devices; ++i) u.graph.orders.push_back(devices - 1 - i);
      for (gs::node& n : u.graph.nodes)
        if (ordered && n.kind == gs::op::carry) u.graph.at(n.output()).layout.order = 1;
      for (const std::int32_t v : u.free) s.layouts.push_back(u.graph.at(v).layout);
      CHECK(run_graph::run(u, s, sources)[0] == expected);
    }
  }
}

TEST_CASE("functions of shards in the middle of a region, and the number of the device") {
  constexpr auto doubled = []<class T>(gs::local_shard<const T> x, gs::local_shard<T> y) {
    for (std::int64_t i = 0; i < y.size(); ++i) y.data[i] = 2 * x.data[i] + T(y.offset(0));
  };
  for (const int devices : {1, 2, 4}) {
    CAPTURE(devices);
    const run_graph::traced t = run_graph::trace({{"BM"}}, [&](const gs::parameter_scope&, given x) {
      const symbol y = per_shard<"x", P<"x", none>>([&](symbol s) {
        const symbol moved = gs::shift<"x">(s, 1);
        return gs::shift<"x">(gs::call_on_shards<doubled, P<"x", none, none>>(annotate<P<"x", none, none>>(moved)), -1);
      }, annotate<P<"x", none>>(x[0]));
      const symbol number = per_shard<"x", P<"x", none>>([](symbol s) {
        return 0.0 * s + cast(gs::device_index<"x">(s), s.get().type);
      }, annotate<P<"x", none>>(x[0]));
      return symbols{y, number};
    });
    run_graph::setting s{.mesh = {devices}, .dims = sizes, .layouts = {}};
    for (const std::int32_t v : t.free) s.layouts.push_back(t.graph.at(v).layout);
    const run_graph::arrays sources = run_graph::random_sources(t, sizes, 5), got = run_graph::run(t, s, sources);
    for (std::size_t i = 0; i < sources[0].size(); ++i) {
      const int device = int(i) / (12 * 5 / devices);
      CHECK(got[0][i] == 2 * sources[0][i] + (device + 1) % devices);
      CHECK(got[1][i] == device);
    }
  }
}

TEST_CASE("shards that are not equal, and halos wider than a shard, are told when a program is bound") {
  const auto said = [](std::int64_t extent, int devices, bool wide) {
    const gs::dims dims{{'B', extent}, {'M', 2}};
    const run_graph::traced t = run_graph::trace({{"BM"}}, [&](const gs::parameter_scope&, given x) {
      return symbols{per_shard<"x", P<"x", none>>(
          [&](symbol s) { return wide ? gs::halo<"x", 0, 5>(gs::pad(gs::halo<"x", 5, 0>(s, 1), 1, -5, 0), 1) : s; },
          annotate<P<"x", none>>(x[0]))};
    });
    run_graph::setting s{.mesh = {devices}, .dims = dims, .layouts = {}};
    for (const std::int32_t v : t.free) s.layouts.push_back(t.graph.at(v).layout);
    try {
      run_graph::run(t, s, run_graph::random_sources(t, dims, 5));
    } catch (const gs::error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(said(12, 4, false) == "");
  CHECK(said(10, 4, false).find("per_shard: dim 'B' of extent 10 is not divided into equal shards by the 4 devices along \"x\"") !=
        std::string::npos);
  CHECK(said(3, 4, false).find("per_shard: dim 'B' of extent 3") != std::string::npos);
  CHECK(said(12, 2, true) == "");
  CHECK(said(12, 4, true).find("slice: index -2 is before the first of dim 1") != std::string::npos);
}
