// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs without annotations get the plans that an expert would write.
#include <gshard/ops/window/convolution.hpp>
#include <gshard/plan.hpp>
#include <gshard/sim/search/auto_shard.hpp>
#include <gshard/train/adam.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P, gs::symbol;

namespace {

/// The plan of `Model` with the layouts of the search.
template <auto Model, class Mesh, class... Inputs>
class searched {
 public:
  explicit searched(const gs::dims& known, std::int64_t memory_limit = 0, bool free_state = false) {
    gs::graph g = gs::trace<Model, Mesh, Inputs...>();
    gs::search_options o;
    o.compile.known = known;
    o.memory_limit = memory_limit;
    o.free_state = free_state;
    choice = gs::search_shardings(g, Mesh::shape, o);
    REQUIRE(!choice.problem);
    choice.apply_to(g);
    tables = gs::compile(g, Mesh::shape, choice.compile);
    REQUIRE(!tables.problem);
  }
  gs::shard_choice choice;
  gs::plan_tables tables;

  int count(gs::op_ref kind) const { return tables.view().count(kind); }
  int collectives() const { return tables.view().collectives(); }
  /// A letter for each dim: the first letters of the axes that shard it, or '-' for none.
  std::string layout(const gs::sharding& s) const {
    std::string text;
    for (int d = 0; d < s.rank; ++d) {
      text += d ? " " : "";
      if (s[d].empty()) text += '-';
      for (int i = 0; i < s[d].size(); ++i) text += tables.mesh.name(s[d][i])[0];
    }
    return text;
  }
  std::string input(std::size_t i) const { return layout(tables.view().at(tables.inputs[i].value).layout); }
  std::string parameter(std::string_view name) const {
    return layout(tables.view().at(tables.view().find(name)->value).layout);
  }
};

using line = gs::mesh<gs::axis<"x", 4>>;
using plane = gs::mesh<gs::axis<"data", 2>, gs::axis<"expert", 4>>;

inline constexpr auto mlp = [](auto& m, auto x) {
  auto wi = m.param("wi", "MH", gs::init::fan_in("M")), wo = m.param("wo", "HM", gs::init::fan_in("H"));
  return gs::einsum<"BH,HM->BM">(gs::relu(gs::einsum<"BM,MH->BH">(x, wi)), wo);
};
inline constexpr auto mlp_training = [](auto& m, auto x, auto target, auto rate) {
  auto error = mlp(m, x) - target;
  auto loss = gs::mean(error * error);
  gs::adam{}.minimize(m, loss, rate);
  return loss;
};
using training = searched<mlp_training, line, in<"BM">, in<"BM">, in<"">>;

/// Attention: softmax(q k^T / sqrt(D)) v per head, added to x. The layers around it need all of x on every device.
inline constexpr auto attention = [](auto& m, auto x) {
  auto wq = m.param("wq", "MHD", gs::init::fan_in("M")), wk = m.param("wk", "MHD", gs::init::fan_in("M"));
  auto wv = m.param("wv", "MHD", gs::init::fan_in("M")), wo = m.param("wo", "HDM", gs::init::fan_in("HD"));
  auto q = gs::scale_by<"D">(gs::einsum<"BTM,MHD->BTHD">(x, wq), -0.5);
  auto k = gs::einsum<"BTM,MHD->BTHD">(x, wk), v = gs::einsum<"BTM,MHD->BTHD">(x, wv);
  auto weights = gs::softmax(gs::einsum<"BQHD,BKHD->BHQK">(q, k));
  auto y = gs::einsum<"BTHD,HDM->BTM">(gs::einsum<"BHQK,BKHD->BQHD">(weights, v), wo);
  return gs::annotate<P<none, none, none>>(x + y);
};

/// A layer of experts, and its auxiliary loss.
inline constexpr auto experts_and_loss = [](auto& m, auto x) {
  auto wg = m.param("wg", "ME", gs::init::fan_in("M"));
  auto wi = m.param("wi", "EMH", gs::init::fan_in("M")), wo = m.param("wo", "EHM", gs::init::fan_in("H"));
  auto gates = gs::softmax(gs::einsum<"GSM,ME->GSE">(x, wg));
  auto [combine, dispatch, aux, load, overflow, demand] = gs::top2_gating(gates, gs::capacity{2.0});
  auto h = gs::relu(gs::einsum<"EGCM,EMH->EGCH">(gs::einsum<"GSEC,GSM->EGCM">(dispatch, x), wi));
  auto y = gs::einsum<"EGCH,EHM->GECM">(h, wo);
  return std::pair{gs::einsum<"GSEC,GECM->GSM">(combine, y), aux};
};
inline constexpr auto moe = [](auto& m, auto x) {
  const auto [y, aux] = experts_and_loss(m, x);
  m.loss(aux);
  return y;
};
inline constexpr auto moe_gradients = [](auto& m, auto x, auto dy) {
  auto y = moe(m, x);
  gs::list<symbol> wanted = gs::trainable(m);
  wanted.push_back(x);
  const gs::list<symbol> g = gs::gradients(m.objective(gs::sum(y * dy), 0.01), wanted);
  return std::tuple{y, g[0], g[1], g[2], g[3]};
};

/// Two layers of 3 x 3 convolutions, and the gradients of their windows.
inline constexpr auto convolutions = [](auto& m, auto image) {
  auto w1 = m.param("w1", "xyIO", gs::init::fan_in("xyI")), w2 = m.param("w2", "xyOI", gs::init::fan_in("xyO"));
  auto h = gs::relu(gs::conv<"BIXY,xyIO->BOXY">(image, w1, {{.low = 1, .high = 1}}));
  auto y = gs::conv<"BOXY,xyOI->BIXY">(h, w2, {{.low = 1, .high = 1}});
  const gs::list<symbol> g = gs::gradients(gs::sum(y * y), gs::trainable(m));
  return std::tuple{g[0], g[1]};
};
using square = gs::mesh<gs::axis<"row", 4>, gs::axis<"column", 4>>;
constexpr gs::dims image(std::int64_t batch) {
  return {{'B', batch}, {'I', 32}, {'O', 32}, {'X', 512}, {'Y', 512}, {'x', 3}, {'y', 3}};
}

}  // namespace

TEST_CASE("auto_shard: many rows and small weights are data parallel: gradients are summed together") {
  const training found({{'B', 65536}, {'M', 64}, {'H', 128}});
  CHECK(found.input(0) == "x -");
  CHECK(found.input(1) == "x -");
  CHECK(found.parameter("wi") == "- -");
  CHECK(found.parameter("wo") == "- -");
  CHECK(found.parameter("adam.m.wi") == "- -");
  CHECK(found.count(op::all_reduce) == 1);  // with the loss
  CHECK(found.collectives() == 1);
}

TEST_CASE("auto_shard: weights whose update takes time are sharded as well: each device updates its part") {
  const training found({{'B', 65536}, {'M', 1024}, {'H', 4096}});
  CHECK(found.input(0) == "x -");
  for (const char* name : {"wi", "wo", "adam.m.wi", "adam.v.wo"}) CHECK(found.parameter(name) != "- -");
  CHECK(found.count(op::all_gather) == 2);
  CHECK(found.count(op::reduce_scatter) == 2);
  CHECK(found.collectives() == 5);
}

TEST_CASE("auto_shard: state of the optimizer is sharded where the search may, and parameters need not be") {
  const gs::dims known{{'B', 65536}, {'M', 128}, {'H', 512}};
  const training whole(known);
  const training freely(known, 0, true);
  CHECK(freely.choice.summary.price.seconds() <= whole.choice.summary.price.seconds());
  CHECK(freely.choice.tensors.back().as == -1);
  CHECK(whole.choice.tensors.back().as >= 0);
}

TEST_CASE("auto_shard: on nodes with a slow network, fewer bytes are sent between nodes") {
  using nodes = gs::mesh<gs::axis<"node", 2>, gs::axis<"rank", 4>>;
  const gs::graph g = gs::trace<mlp_training, nodes, in<"BM">, in<"BM">, in<"">>();
  gs::list<int> node_of;
  for (int d = 0; d < 8; ++d) node_of.push_back(d / 4);
  for (const std::int64_t rows : {64, 2048}) {
    gs::search_options o;
    o.compile.known = {{'B', rows}, {'M', 256}, {'H', 1024}};
    const gs::machine flat{.link_bytes = 1e9, .start = 1e-5};
    const gs::machine on_nodes{.link_bytes = 1e8, .start = 1e-4, .node_devices = 4, .node_bytes = 1e9, .node_start = 1e-5};
    const auto plan_for = [&](const gs::machine& on) {
      o.on = on;
      gs::graph chosen = g;
      const gs::shard_choice choice = gs::search_shardings(g, nodes::shape, o);
      REQUIRE(!choice.problem);
      choice.apply_to(chosen);
      CHECK(choice.compile.start_bytes == gs::start_bytes_of(on));
      const gs::plan_tables plan = gs::compile(chosen, nodes::shape, choice.compile);
      const gs::extents e = gs::detail::assume_extents(plan.dims, nodes::shape, o.compile.known);
      CHECK(gs::price(plan.view(), e, on).seconds() == choice.summary.price.seconds());
      return plan;
    };
    const gs::plan_tables far = plan_for(flat), near = plan_for(on_nodes);
    const auto bytes = [&](const gs::plan_tables& p) {
      return gs::bytes_between_nodes(p.view(), gs::detail::assume_extents(p.dims, nodes::shape, o.compile.known), node_of);
    };
    const auto seconds = [&](const gs::plan_tables& p) {
      return gs::price(p.view(), gs::detail::assume_extents(p.dims, nodes::shape, o.compile.known), on_nodes).seconds();
    };
    CAPTURE(rows);
    CHECK(bytes(near) < bytes(far));
    CHECK(seconds(near) < seconds(far));
  }
}

TEST_CASE("auto_shard: few rows and large weights are sharded by columns, then by rows: one sum") {
  const searched<mlp, line, in<"BM">> found({{'B', 2}, {'M', 4096}, {'H', 16384}});
  CHECK(found.parameter("wi") == "- x");
  CHECK(found.parameter("wo") == "x -");
  CHECK(found.input(0) == "- -");
  CHECK(found.count(op::all_reduce) == 1);
  CHECK(found.collectives() == 1);
}

TEST_CASE("auto_shard: weights that fill a device are sharded, though rows could be") {
  const gs::dims known{{'B', 64}, {'M', 4096}, {'H', 16384}};
  const searched<mlp, line, in<"BM">> found(known, 200 << 20);
  CHECK(found.choice.summary.price.bytes() <= 200 << 20);
  CHECK(found.parameter("wi") == "- x");
  CHECK(found.parameter("wo") == "x -");
  CHECK(found.collectives() == 1);
}

TEST_CASE("auto_shard: one sequence is sharded by heads: one sum after the projection back") {
  const searched<attention, line, in<"BTM", P<none, none, none>>> found({{'B', 1}, {'T', 64}, {'M', 1024}, {'H', 16}, {'D', 64}});
  for (const char* name : {"wq", "wk", "wv"}) CHECK(found.parameter(name) == "- x -");
  CHECK(found.parameter("wo") == "x - -");
  CHECK(found.count(op::all_reduce) == 1);
  CHECK(found.collectives() == 1);
}

TEST_CASE("auto_shard: experts over the axis that cuts groups: tokens go there and back, and so do their gradients") {
  const searched<moe_gradients, line, in<"GSM">, in<"GSM">> found({{'G', 16}, {'S', 256}, {'M', 512}, {'H', 2048}, {'E', 16}});
  CHECK(found.input(0) == "x - -");
  CHECK(found.parameter("wg") == "- -");
  CHECK(found.parameter("wi") == "x - -");
  CHECK(found.parameter("wo") == "x - -");
  CHECK(found.count(op::all_to_all) == 4);
  CHECK(found.count(op::all_reduce) == 1);
  CHECK(found.collectives() == 5);
}

TEST_CASE("auto_shard: on two axes groups are sharded over both, experts over one") {
  const searched<moe_gradients, plane, in<"GSM">, in<"GSM">> found({{'G', 64}, {'S', 256}, {'M', 512}, {'H', 2048}, {'E', 4}});
  CHECK(!found.choice.summary.exact);
  CHECK(found.input(0) == "de - -");
  CHECK(found.input(1) == "de - -");
  CHECK(found.parameter("wg") == "- -");
  CHECK(found.parameter("wi") == "e - -");
  CHECK(found.parameter("wo") == "e - -");
  CHECK(found.count(op::all_to_all) == 4);
  CHECK(found.count(op::all_reduce) == 3);
  CHECK(found.collectives() == 7);
}

TEST_CASE("auto_shard: one large image is sharded into strips that exchange their borders; many images are not") {
  const searched<convolutions, line, in<"BIXY">> strips(image(1));
  CHECK(strips.input(0) == "- - x -");
  CHECK(strips.parameter("w1") == "- - - -");
  CHECK(strips.parameter("w2") == "- - - -");
  CHECK(strips.count(op::collective_permute) == 3);  // the image, the activation between the layers, and its gradient
  CHECK(strips.count(op::all_reduce) == 1);
  CHECK(strips.collectives() == 4);

  const searched<convolutions, line, in<"BIXY">> images(image(4));
  CHECK(images.input(0) == "x - - -");
  CHECK(images.count(op::all_reduce) == 1);
  CHECK(images.collectives() == 1);
}

TEST_CASE("auto_shard: on two axes a large image is sharded into tiles, whose borders are shorter than those of strips") {
  const searched<convolutions, square, in<"BIXY">> tiles(image(1));
  CHECK((tiles.input(0) == "- - r c" || tiles.input(0) == "- - c r"));
  CHECK(tiles.parameter("w1") == "- - - -");
  CHECK(tiles.count(op::all_reduce) == 1);
  CHECK(tiles.collectives() == 4);
}

namespace {

inline constexpr auto transformer_block = [](auto& m, auto x) {
  const auto norm = [](auto s, auto v) {
    return gs::layer_norm(v, s.param("gamma", "M", gs::init::constant(1)), s.param("beta", "M", gs::init::zeros()));
  };
  auto a = norm(m.scope("attention"), x);
  auto wq = m.param("wq", "MHD", gs::init::fan_in("M")), wk = m.param("wk", "MHD", gs::init::fan_in("M"));
  auto wv = m.param("wv", "MHD", gs::init::fan_in("M")), wo = m.param("wo", "HDM", gs::init::fan_in("HD"));
  auto q = gs::einsum<"BTM,MHD->BTHD">(a, wq), k = gs::einsum<"BTM,MHD->BTHD">(a, wk), v = gs::einsum<"BTM,MHD->BTHD">(a, wv);
  auto weights = gs::softmax(gs::einsum<"BQHD,BKHD->BHQK">(q, k));
  auto y = x + gs::einsum<"BTHD,HDM->BTM">(gs::einsum<"BHQK,BKHD->BQHD">(weights, v), wo);
  auto b = norm(m.scope("feed_forward"), y);
  auto wi = m.param("wi", "MF", gs::init::fan_in("M")), wf = m.param("wf", "FM", gs::init::fan_in("F"));
  return y + gs::einsum<"BTF,FM->BTM">(gs::relu(gs::einsum<"BTM,MF->BTF">(b, wi)), wf);
};
inline constexpr auto block_training = [](auto& m, auto x, auto target, auto rate) {
  auto error = transformer_block(m, x) - target;
  gs::adam{}.minimize(m, gs::mean(error * error), rate);
};

/// The block with a batch of this many sentences, on devices with 2e14 flop/s and links of 1e11 bytes/s.
gs::search_options options_for(std::int64_t batch) {
  gs::search_options o;
  o.compile.known = {{'B', batch}, {'T', 2048}, {'M', 4096}, {'H', 32}, {'D', 128}, {'F', 16384}};
  o.on = {.flops = 2e14, .memory_bytes = 1e12, .link_bytes = 1e11};
  o.compile.start_bytes = gs::start_bytes_of(o.on);
  return o;
}
template <class Mesh>
const gs::graph block = gs::trace<block_training, Mesh, in<"BTM">, in<"BTM">, in<"">>();

/// The mesh axes, or -1, that shard the batch, positions, heads and hidden units, and the model dim of weights.
struct annotations_by_hand {
  int batch, positions, inner, model;
};
template <class Mesh>
gs::graph annotated(const annotations_by_hand& by) {
  gs::graph g = block<Mesh>;
  const auto shard = [&](std::int32_t v, std::string_view letters) {
    gs::value& t = g.at(v);
    t.layout = gs::sharding::replicated(t.rank());
    for (int d = 0; d < t.rank(); ++d) {
      const std::size_t letter = std::string_view("BTIM").find(letters[std::size_t(d)]);
      const int axis = letter < 4 ? std::array{by.batch, by.positions, by.inner, by.model}[letter] : -1;
      if (axis >= 0) t.layout[d].push_back(axis);
    }
  };
  for (const gs::port& p : g.inputs) shard(p.value, g.at(p.value).rank() == 3 ? "BT-" : "");
  for (const gs::parameter& p : g.parameters) {
    const std::string_view name = p.name.view();
    const bool last = name.ends_with("wo") || name.ends_with("wf");
    constexpr std::array<std::string_view, 4> inner_last{"", "-", "MI", "MI-"}, inner_first{"", "-", "IM", "I-M"};
    shard(p.value, (last ? inner_first : inner_last)[std::size_t(g.at(p.value).rank())]);
  }
  return g;
}
/// The least modelled time of a training step over all such annotations.
template <class Mesh>
double seconds_by_hand(std::int64_t batch) {
  const gs::search_options o = options_for(batch);
  double least = std::numeric_limits<double>::infinity();
  const int axes = Mesh::shape.count;
  for (int b = -1; b < axes; ++b)
    for (int t = -1; t < axes; ++t)
      for (int i = -1; i < axes; ++i)
        for (int m = -1; m < axes; ++m) {
          if ((b >= 0 && b == t) || (i >= 0 && i == m)) continue;
          gs::graph g = annotated<Mesh>({b, t, i, m});
          const gs::plan_tables p = gs::compile(g, Mesh::shape, o.compile);
          if (p.problem) continue;  // a batch of two on four devices
          least = std::min(least, gs::price(p.view(), gs::detail::assume_extents(p.dims, Mesh::shape, o.compile.known), o.on).seconds());
        }
  return least;
}
/// The same for the layouts of a search.
template <class Mesh>
double seconds_found(std::int64_t batch, gs::search_options how) {
  const gs::search_options o = options_for(batch);
  how.compile = o.compile;
  how.on = o.on;
  return gs::search_shardings(block<Mesh>, Mesh::shape, how).summary.price.seconds();
}
template <class Mesh>
void check_block(std::int64_t batch) {
  gs::search_options many;
  many.evaluations = 1000;
  const double best = seconds_found<Mesh>(batch, many);
  CHECK(best <= seconds_by_hand<Mesh>(batch));
  CHECK(seconds_found<Mesh>(batch, gs::detail::affordable_search(block<Mesh>)) <= 1.1 * best);
}

}  // namespace

TEST_CASE("auto_shard: a Transformer block is as fast as the best annotations by hand, and nearly as fast if a compiler searches") {
  check_block<line>(2);
  check_block<gs::mesh<gs::axis<"data", 4>, gs::axis<"model", 2>>>(8);
  check_block<gs::mesh<gs::axis<"data", 8>, gs::axis<"model", 8>>>(64);
}

TEST_CASE("auto_shard: plans are made for the machine that prices them, whatever the options say; a default machine leaves it to them") {
  const gs::graph g = gs::trace<mlp_training, line, in<"BM">, in<"BM">, in<"">>();
  gs::search_options o;
  o.compile.known = {{'B', 64}, {'M', 64}, {'H', 64}};
  o.compile.start_bytes = 7;
  CHECK(gs::search_shardings(g, line::shape, o).compile.start_bytes == 7);
  for (const double start : {1e-6, 1e-3}) {
    o.on = {.link_bytes = 1e9, .start = start};
    const gs::shard_choice found = gs::search_shardings(g, line::shape, o);
    REQUIRE(!found.problem);
    CHECK(found.compile.start_bytes == gs::start_bytes_of(o.on));
    o.compile.start_bytes = 1 << 30;
    CHECK(gs::search_shardings(g, line::shape, o).summary.price.seconds() == found.summary.price.seconds());
  }
}

namespace {

/// The search of the class auto_shard, with its options, at run time. The class itself is not instantiated.
template <class Program>
struct in_class;
template <auto Model, class Mesh, class... Options>
struct in_class<gs::auto_shard<Model, Mesh, Options...>> {
  gs::shard_choice choice;
  gs::plan_tables tables;

  in_class() {
    choice = gs::detail::search_layouts<Model, Mesh, Options...>(gs::detail::options_of<Options...>());
    gs::graph g = gs::trace<Model, Mesh, Options...>();
    REQUIRE(!choice.problem);
    choice.apply_to(g);
    tables = gs::compile(g, Mesh::shape, gs::compile_options_of<Options...>());
    REQUIRE(!tables.problem);
  }
  gs::plan_view plan() const { return tables.view(); }
  /// The dim of an input or a parameter that axis 0 shards; -1: none.
  int cut(int input) const { return plan().at(tables.inputs[std::size_t(input)].value).layout.dim_of(0); }
  int cut(std::string_view parameter) const { return plan().at(plan().find(parameter)->value).layout.dim_of(0); }
};
using gs::extent;

inline constexpr auto mlp_gradients = [](auto& m, auto x, auto target) {
  auto error = mlp(m, x) - target;
  auto g = gs::gradients(gs::sum(error * error), gs::trainable(m));
  return std::tuple{g[0], g[1]};
};
inline constexpr auto top_two = [](auto& m, auto x) { return experts_and_loss(m, x).first; };
inline constexpr auto one_image = [](auto& m, auto image) {
  auto w = m.param("w", "xyIO", gs::init::fan_in("xyI"));
  return gs::conv<"BIXY,xyIO->BOXY">(image, w, {{.low = 1, .high = 1}});
};

}  // namespace

TEST_CASE("auto_shard: the search of the class, with its number of plans") {
  const in_class<gs::auto_shard<mlp_gradients, line, in<"BM">, in<"BM">, extent<'B', 4096>, extent<'M', 512>, extent<'H', 2048>>> data;
  CHECK(data.cut(0) == 0);
  CHECK(data.cut(1) == 0);
  CHECK(data.cut("wi") == -1);
  CHECK(data.cut("wo") == -1);
  CHECK(data.plan().count(op::all_reduce) == 2);
  CHECK(data.plan().collectives() == 2);
  CHECK(data.choice.summary.exact);
  CHECK(data.choice.summary.evaluations == 81);

  const in_class<gs::auto_shard<top_two, line, in<"GSM">, extent<'G', 16>, extent<'S', 256>, extent<'M', 512>, extent<'H', 2048>,
                                extent<'E', 16>, gs::memory_limit<150 << 20>, gs::evaluations<100>>> experts;  // too many to try all
  CHECK(experts.cut(0) == 0);
  CHECK(experts.cut("wi") == 0);
  CHECK(experts.cut("wo") == 0);
  CHECK(experts.plan().count(op::all_to_all) == 2);
  CHECK(experts.plan().collectives() == 2);
  CHECK(!experts.choice.summary.exact);
  CHECK(experts.choice.summary.evaluations <= 100);

  const in_class<gs::auto_shard<one_image, line, in<"BIXY">, extent<'B', 1>, extent<'I', 32>, extent<'O', 32>, extent<'X', 512>,
                                extent<'Y', 512>, extent<'x', 3>, extent<'y', 3>>> strips;  // the strips exchange their borders
  CHECK(strips.cut(0) == 2);
  CHECK(strips.cut("w") == -1);
  CHECK(strips.plan().count(op::collective_permute) == 1);
  CHECK(strips.plan().collectives() == 1);
}

TEST_CASE("start_bytes_of: rates that are no numbers count as one byte") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(gs::start_bytes_of({.link_bytes = 1e9, .start = nan}) == 1);
  CHECK(gs::start_bytes_of({.link_bytes = nan, .start = 1}) == 1);
}
