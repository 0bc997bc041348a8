// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/all_operations.hpp>

#include <string_view>

namespace gs = gshard;

namespace {

/// The attributes as a node keeps them.
template <class T>
constexpr T kept(const T& given) {
  const gs::attributes a{.own = given};
  return gs::own<T>(a);
}

static_assert(kept(gs::scale_attributes{-0.5}).power == -0.5);
static_assert(kept(gs::layer_norm_attributes{1e-5}).epsilon == 1e-5 && kept(gs::cross_entropy_attributes{0.1}).smoothing == 0.1);
static_assert(kept(gs::dropout_attributes{0.25}).rate == 0.25 && kept(gs::gather_attributes{2}).batch == 2);
static_assert(kept(gs::random_attributes{true}).normal && !kept(gs::random_attributes{}).normal);
static_assert(kept(gs::cast_attributes{true}).imaginary && !kept(gs::cast_attributes{}).imaginary);
static_assert([] {
  const auto k = kept(gs::sort_attributes{.count = 7}), d = kept(gs::sort_attributes{.descending = true});
  const auto n = kept(gs::sort_attributes{.nan_first = true});
  return k.count == 7 && !k.descending && !k.nan_first && d.count == 0 && d.descending && !d.nan_first && !n.descending && n.nan_first;
}());
static_assert([] {
  const auto e = kept(gs::cumsum_attributes{.exclusive = true}), r = kept(gs::cumsum_attributes{.reverse = true});
  return e.exclusive && !e.reverse && !r.exclusive && r.reverse;
}());
static_assert([] {
  const auto c = kept(gs::attention_attributes{.causal = true}), d = kept(gs::attention_attributes{.dropout = 0.1});
  return c.causal && c.dropout == 0 && !d.causal && d.dropout == 0.1;
}());
static_assert([] {
  const auto a = kept(gs::gating_attributes{3, 0b101, gs::second_expert::sampled, false, true, 0.2});
  const auto b = kept(gs::gating_attributes{.by_experts = true});
  return a.k == 3 && a.operands == 0b101 && a.second == gs::second_expert::sampled && !a.by_experts && a.gates_as_weights &&
         a.threshold == 0.2 && b.by_experts && !b.gates_as_weights && b.k == 0;
}());
static_assert([] {
  const auto a = kept(gs::adam_attributes{0.9, 0.99, 1e-8, 0.01});
  return a.beta1 == 0.9 && a.beta2 == 0.99 && a.epsilon == 1e-8 && a.weight_decay == 0.01;
}());

// Errors name them.
static_assert([] {
  const gs::packed_attributes p = gs::adam_attributes{.beta2 = 0.9};
  return p.names->count == 4 && p.names->items[1].name == std::string_view("beta2") && p.numbers[p.names->items[1].at] == 0.9;
}());

// Attributes that are not set have their defaults.
static_assert(gs::own<gs::gating_attributes>(gs::attributes{}).second == gs::second_expert::random);
static_assert(gs::own<gs::sort_attributes>(gs::attributes{}).count == 0);

}  // namespace
