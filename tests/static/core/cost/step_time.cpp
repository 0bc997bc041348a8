// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/core/cost/step_time.hpp>
#include <gshard/core/program/program.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/ops/index/gather.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace gs = gshard;
namespace op = gs::op;
using gs::in, gs::none, gs::P;

namespace {

using mesh = gs::mesh<gs::axis<"x", 4>>;
constexpr gs::dims sizes{{'B', 64}, {'M', 32}, {'H', 128}};
template <class Program>
constexpr gs::extents extents_of() {
  return Program::plan.bind(sizes, std::array{4});
}
constexpr bool near(double a, double b) { return a - b < 1e-9 * b && b - a < 1e-9 * b; }

/// A machine on which only arithmetic, memory, or links take time.
constexpr gs::machine only(double flops, double memory, double link, double start) {
  constexpr double endless = 1e30;
  return {flops > 0 ? flops : endless, memory > 0 ? memory : endless, link > 0 ? link : endless, start};
}

inline constexpr auto mlp = [](auto& m, auto x) {
  auto wi = m.param("wi", "MH", P<none, "x">{}, gs::init::zeros()), wo = m.param("wo", "HM", P<"x", none>{}, gs::init::zeros());
  return gs::einsum<"BH,HM->BM">(gs::relu(gs::einsum<"BM,MH->BH">(x, wi)), wo);
};
using split = gs::program<mlp, mesh, in<"BM">>;
constexpr gs::step_price priced(const gs::machine& on) { return gs::price(split::plan, extents_of<split>(), on); }

// Two einsums of 2 * 64 * 32 * 32 each. Other operations touch more bytes than they compute.
static_assert(near(priced(only(1, 0, 0, 0)).compute, 2 * 2.0 * 64 * 32 * 32));
// x, wi, h; h, h; h, wo, y: floats read and written, in the size of a device's shard.
constexpr double x = 4 * 64 * 32, w = 4 * 32 * 32, h = 4 * 64 * 32;
static_assert(near(priced(only(0, 1, 0, 0)).compute, (x + w + h) + 2 * h + (h + w + x)));
static_assert(gs::flops(split::plan, extents_of<split>()) == 2 * 2.0 * 64 * 32 * 32);
static_assert(gs::bytes_touched(split::plan, extents_of<split>()) >= std::int64_t((x + w + h) + 2 * h + (h + w + x)));
// The bytes that a device receives: the input, and one sum.
static_assert(split::plan.collectives() == 1);
static_assert(near(priced(only(0, 0, 1, 0)).communicate, x + 2 * x * 3 / 4));
static_assert(near(priced(only(0, 0, 0, 7)).communicate, 7));
// Extents that are missing, negative or too large to count have no price.
constexpr bool is_priceless(const gs::extents& e) {
  const gs::step_price p = gs::price(split::plan, e, gs::machine{});
  return gs::flops(split::plan, e) > std::numeric_limits<double>::max() && gs::bytes_touched(split::plan, e) == gs::uncountable &&
         p.seconds() > std::numeric_limits<double>::max() && p.bytes() == gs::uncountable;
}
static_assert(is_priceless(split::plan.bind({}, std::array{4})) && is_priceless(split::plan.bind({{'B', 64}, {'M', 32}}, std::array{4})));
static_assert(is_priceless(split::plan.bind({{'B', -4}, {'M', 32}, {'H', 128}}, std::array{4})));
static_assert(is_priceless(split::plan.bind({{'B', 1LL << 40}, {'M', 1LL << 40}, {'H', 1LL << 40}}, std::array{4})));
static_assert(is_priceless(split::plan.bind({{'B', INT64_MAX}, {'M', 1}, {'H', 1}}, std::array{4})));
static_assert(!is_priceless(split::plan.bind({{'B', 1LL << 20}, {'M', 1LL << 20}, {'H', 1LL << 20}}, std::array{4})));
static_assert(near(gs::flops(split::plan, split::plan.bind({{'B', 1LL << 25}, {'M', 1LL << 25}, {'H', 1LL << 25}}, std::array{4})),
                   double(1LL << 38) * double(1LL << 37)));

// The slower of the two determines the time.
static_assert(priced(only(1, 1e6, 0, 0)).compute < priced(only(1, 1, 0, 0)).compute &&
              near(priced(only(1, 1e6, 0, 0)).seconds(), priced(only(1, 0, 0, 0)).seconds() + 2 * h / 1e6));

// Memory: parameters, inputs, and h together with its activation.
static_assert(priced({}).parameters == std::int64_t(2 * w) && priced({}).inputs == std::int64_t(x) &&
              priced({}).peak == std::int64_t(2 * h) && priced({}).bytes() == std::int64_t(2 * w + x + 2 * h));

// An einsum that loops computes and receives as much as a gather and an einsum.
inline constexpr auto product = [](auto& m, auto b) {
  return gs::einsum<"BM,MH->BH">(b, m.param("wi", "MH", P<none, "x">{}, gs::init::zeros()));
};
template <class Spec, class... Options>
constexpr gs::step_price product_price(const gs::machine& on) {
  using made = gs::program<product, mesh, in<"BM", Spec>, gs::extent<'B', 256>, gs::extent<'M', 32>, gs::extent<'H', 128>, Options...>;
  static_assert(made::plan.count(op::looped_einsum) == int(sizeof...(Options)));
  return gs::price(made::plan, made::plan.bind({{'B', 256}, {'M', 32}, {'H', 128}}, std::array{4}), on);
}
static_assert(near(product_price<P<"x", none>, gs::loop_above<0>>(only(1, 0, 0, 0)).seconds(), 2.0 * 64 * 32 * 128));
static_assert(near(product_price<P<"x", none>, gs::loop_above<0>>(only(0, 0, 1, 3)).communicate,
                   product_price<P<"x", none>>(only(0, 0, 1, 3)).communicate));
static_assert(near(product_price<P<none, "x">, gs::loop_above<0>>(only(1, 0, 0, 0)).seconds(), 2.0 * 256 * 32 * 32));

// A group of one device sends nothing, so it has no start cost.
static_assert([] {
  gs::extents e = extents_of<split>();
  e.axes[0] = 1;
  return near(gs::price(split::plan, e, only(0, 0, 1, 1)).communicate, x);
}());

// Only the looked-up rows of a table are read. Other names of a tensor cost nothing.
inline constexpr auto lookup = [](auto& m, auto ids) {
  return gs::annotate<P<none, none>>(gs::gather(m.param("table", "HM", gs::init::zeros()), ids));
};
using looked_up = gs::program<lookup, mesh, in<"B", void, std::int32_t>>;
static_assert(near(gs::price(looked_up::plan, extents_of<looked_up>(), only(0, 1, 0, 0)).compute, 2 * x));

// The planner and the price agree on the cost of a start.
constexpr double worth = double(gs::default_start_bytes) / gs::machine{}.link_bytes / gs::machine{}.start;
static_assert(worth > 0.9 && worth < 1.1);

// For a machine: the bytes that a device receives in the time of a start, by its rates or by measurements.
static_assert(gs::start_bytes_of({.link_bytes = 1e9, .start = 1e-4}) == 100000);
static_assert(gs::start_bytes_of({.link_bytes = 1e9, .start = 1e-4, .node_devices = 4}) == 25000);
static_assert(gs::start_bytes_of({.start = 0}) == 1);
constexpr gs::machine measured(double last) {
  gs::machine m{.link_bytes = 1e9, .start = 1};
  gs::measured_curve& curve = m.measured.collective(op::all_gather, gs::group_reach::between_nodes);
  curve.add(0, 1e-3);
  curve.add(1e6, last);
  return m;
}
static_assert(gs::start_bytes_of(measured(3e-3)) == 500000);
// A curve that does not rise has only measured starts: the machine's rate is used as its slope. Starts are not free there.
static_assert(gs::start_bytes_of(measured(1e-3)) == 1000000 && gs::start_bytes_of(measured(0.9e-3)) == 1000000);
// Bytes without a cost.
constexpr double infinity = std::numeric_limits<double>::infinity();
static_assert(gs::start_bytes_of({.link_bytes = infinity, .start = 1e-6}) == std::int64_t(1) << 40);
static_assert(gs::start_bytes_of({.link_bytes = infinity, .start = 0}) == 1);

}  // namespace
