// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Wrong calls of the other verbs: one sentence each, and nothing else.
// expect: gshard: softmax\(x\) takes one tensor of a program
// expect: gshard: layer_norm\(x, gamma, beta, epsilon = 1e-5\) takes three tensors of a program and a number
// expect: gshard: layer_norm\(x, gamma, beta, epsilon = 1e-5\) takes three tensors of a program and a number
// expect: gshard: cross_entropy\(logits, labels, smoothing = 0\) takes two tensors of a program and a number
// expect: gshard: attention\(q, k, v, options = \{\}\) takes three tensors of a program and attention_options
// expect: gshard: check_finite\(x, .?"hidden.?"\) takes a tensor of a program and a name for errors
// expect: gshard: cumsum\(x, dim = -1, exclusive = false, reverse = false\) takes a tensor of a program, a dim and flags
// expect: gshard: sort\(x, dim = -1, descending = false\) takes a tensor of a program, a dim and a flag
// expect: gshard: top_k\(x, k, dim = -1, largest = true\) takes a tensor of a program, a count, a dim and a flag
// expect: gshard: gather\(table, ids, dim = 0, batch = 0\) takes two tensors of a program, a dim and a number of dims
// expect: gshard: scatter_add\(x, ids, updates, dim = 0, batch = 0\) takes three tensors of a program, a dim and a numb
// expect: gshard: iota<"TU">\(m, along = 0\) takes the letters of dims, the first argument of the model and a dim
// expect: gshard: iota<"TU">\(m, along = 0\) takes the letters of dims, the first argument of the model and a dim
// expect: gshard: one_hot<"E">\(ids\) takes the letter of a dim and one tensor of a program
// expect: gshard: uniform<"BT">\(m\) takes the letters of dims and the first argument of the model
// expect: gshard: normal<"BT">\(m\) takes the letters of dims and the first argument of the model
// expect: gshard: dynamic_slice\(x, dim, start, size\) takes a tensor of a program, a dim, an int32 scalar of a program
// expect: gshard: dynamic_update_slice\(x, update, dim, start\) takes two tensors of a program, a dim and an int32 sc
// expect: gshard: slice\(x, dim, start, stop, stride = 1\) takes a tensor of a program and integers
// expect: gshard: pad\(x, dim, low, high, interior = 0, fill = 0\) takes a tensor of a program, integers and a number
// expect: gshard: reverse\(x, dim\) takes a tensor of a program and a dim
// expect: gshard: roll\(x, dim, shift\) takes a tensor of a program, a dim and an integer
// expect: gshard: concat\(\{a, b, \.\.\.\}, dim\) takes a list of tensors of a program and a dim
// expect: gshard: concat\(\{a, b, \.\.\.\}, dim\) takes a list of tensors of a program and a dim
// expect: gshard: merge_dims<1>\(x\) takes a dim and one tensor of a program
// expect: gshard: expand_dims<1>\(x\) takes a dim and one tensor of a program
// expect: gshard: squeeze<1>\(x\) takes a dim and one tensor of a program
// expect: gshard: split_dim<1>\(x, "BT"\) takes a dim, one tensor of a program and, unless the dim was merged, two lette
// expect: gshard: split_dim<1>\(x, "BT"\) takes a dim, one tensor of a program and, unless the dim was merged, two lette
// expect: gshard: rename_dims<"BK">\(x\) takes a letter for each dim and one tensor of a program
// expect: gshard: rename_dims<"BK">\(x\) takes a letter for each dim and one tensor of a program
// expect: gshard: replicate\(x\) takes one tensor of a program
// expect: gshard: may_move\(x\) takes one tensor of a program
// expect: gshard: propagation_barrier\(x\) takes one tensor of a program
// expect: gshard: annotate<P<"data", none>>\(x\) takes a partition spec and one tensor of a program
// expect: gshard: annotate<P<"data", none>>\(x\) takes a partition spec and one tensor of a program
// expect: gshard: split<"data">\(x, dim\) takes mesh axes, a tensor of a program and a dim
// expect: gshard: assign\(x, \{2, 4\}, \{0, 1, \.\.\.\}\) takes a tensor of a program, the pieces along each dim, and their dev
// expect: gshard: assign\(x, \{2, 4\}, \{0, 1, \.\.\.\}\) takes a tensor of a program, the pieces along each dim, and their dev
// expect: gshard: while_loop\(condition, body, x, \.\.\.\) takes two functions and tensors of a program
// expect: gshard: scan\(body, init, xs\) takes a function, and twice a tensor or a tuple of tensors; without xs, scan<8>
// expect: gshard: repeat<3>\(x, body\) takes a tensor of a program and a function
// expect: gshard: repeat\(count, body, x, \.\.\.\) takes a scalar tensor, a function and tensors; a number is repeat<3>\(x, 
// expect: gshard: top2_gating\(gates, mask, capacity\{2\}\) takes gates and maybe a mask, tensors of a program, an
// expect: gshard: top_k_gating\(gates, mask, \{\.k = 8\}\) takes gates and maybe a mask, tensors of a program, and settings
// expect: gshard: chunk_of\(gating, i, n\) takes the result of a gating and two integers
// expect: gshard: chunk_of\(gating, i, n\) takes the result of a gating and two integers
// expect: gshard: chunks_of_token_groups\(x, n\) takes a tensor of a program, or the result of a gating, and an integer
// expect: gshard: join_token_groups\(\{a, b, \.\.\.\}\) takes a list of tensors of a program
// expect: gshard: join_token_groups\(\{a, b, \.\.\.\}\) takes a list of tensors of a program
// expect: gshard: send_to_expert_groups<"x">\(gating, x, 4, capacity\{4\}\) takes the result of a gating, a tensor of a progr
// expect: gshard: combine_from_groups\(groups, h\) takes the result of send_to_expert_groups and a tensor of a program
// expect: gshard: sum_in_groups\(groups, h\) takes the result of send_to_expert_groups and a tensor of a program
// expect: gshard: combine_groups\(groups, sums\) takes the result of send_to_expert_groups and a tensor of a program
// expect: gshard: send_rows<"x">\(gating, x, 4, capacity\{4\}\) takes the result of a gating, a tensor of a program, a numb
// expect: gshard: grouped_product\(routing, x, w\) takes the result of send_rows and two tensors of a program
// expect: gshard: add_to_rows\(routing, x, bias\) takes the result of send_rows and two tensors of a program
// expect: gshard: combine_rows\(routing, h\) takes the result of send_rows and a tensor of a program
// expect: gshard: expert_param\(m, routing, name, "MF", init::zeros\(\)\) takes the first argument of the mo
// expect: gshard: m.variable\(name, "M@data,H", init::zeros\(\)\) takes two texts, maybe a spec, an
// expect: gshard: m.cache\(name, "M@data,H", init::zeros\(\)\) takes two texts, maybe a spec, an
// expect: gshard: m.update\(variable, next\) takes a variable and its next value, a tensor of a program
// expect: gshard: m.updated\(variable\) takes a variable or a parameter of the program
// expect: gshard: gradients\(loss, list\) takes a scalar and a list of tensors of a program, as trainable\(m\)
// expect: gshard: trainable\(m\) takes the first argument of the model
// expect: gshard: all_reduce<"x">\(t, reduction::sum\) takes a mesh axis, a tensor of a program and a reduction
// expect: gshard: all_gather<"x">\(t, dim\) takes a mesh axis, a tensor of a program and a dim
// expect: gshard: reduce_scatter<"x">\(t, dim\) takes a mesh axis, a tensor of a program and a dim
// expect: gshard: all_to_all<"x">\(t, split, concat\) takes a mesh axis, a tensor of a program and two dims
// expect: gshard: shift<"x">\(t, by, border::wrap\) takes a mesh axis, a tensor of a program, an integer and a border
// expect: gshard: collective_permute<"x", device_pairs\(\{\{0, 1\}, \{1, 2\}\}\)>\(t\) takes a mesh axis, pairs and a tensor of a program
// expect: gshard: halo<"x", 1, 1>\(t, dim, border::zeros\) takes an axis, two widths, a tensor of a program, a dim and a
// expect: gshard: device_index<"x">\(t\) takes a mesh axis and one tensor of a program
// expect: gshard: per_shard<"x", P<"x", none>>\(body, x, \.\.\.\) takes an axis, specs, a function, and tensors of a progra
// expect: gshard: call_on_shards<f, "B@data,M">\(x, \.\.\.\) takes a function, dims with their mesh axes, and tensors of a program
#include <gshard/plan.hpp>

#include <vector>

namespace gs = gshard;
using namespace gshard;
inline constexpr auto copy = [](auto from, auto to) { to.data[0] = from.data[0]; };

inline constexpr auto model = [](auto& m, auto a, auto c, auto ids, auto gates, auto bias, auto cut) {
  const auto use = [](const auto&...) {};
  const auto w = m.param("w", "AB", init::zeros());
  const auto shards = expand_dims<1>(expand_dims<1>(cast<float>(device_index<"d">(a))));
#if defined(MUST_FAIL)
  use(softmax(a, 1));
  use(layer_norm(a));
  use(layer_norm(a, bias, 3));
  use(cross_entropy(a));
  use(attention(a, c));
  use(check_finite(a));
  use(cumsum(a, 0.5));
  use(sort(a, c).values);
  use(top_k(a).ids);
  use(gather(a, 1));
  use(scatter_add(a, ids));
  use(iota<"AB">(a));
  use(iota(m));
  use(one_hot(ids));
  use(gshard::uniform<"AB">(a));
  use(gshard::normal(m));
  use(dynamic_slice(a, 0, 2, 1));
  use(dynamic_update_slice(a, w, ids, 0));
  use(slice(a, 0, 1));
  use(pad(a, 0));
  use(reverse(a));
  use(roll(0, a, 1));
  use(concat(a, c, 0));
  use(concat({a, 1.0}, 0));
  use(merge_dims(a));
  use(expand_dims(a, 0.5));
  use(squeeze(a));
  use(split_dim<0>(a, 2, 3));
  use(split_dim(a, 0, 2));
  use(rename_dims(a));
  use(rename_dims<"AB">(1));
  use(replicate(a, c));
  use(may_move("d"));
  use(propagation_barrier());
  use(annotate(a));
  use(annotate<P<none, none>>("x"));
  use(split(a, 0));
  use(assign(a, {1, 1}));
  use(assign(3, {1, 1}, {0}));
  use(while_loop([](auto v) { return sum(v); }, a));
  use(scan([](auto, auto v) { return v; }, a));
  use(repeat<2>([](auto v) { return v; }));
  use(repeat(2, [](auto v) { return v; }, a));
  use(top2_gating(gates, 2).aux);
  use(top_k_gating(gates, 8).aux);
  use(chunk_of(gates, 0, 2).dispatch);
  use(chunk_of(top_k_gating(gates), 0.5, 2).dispatch);
  use(chunks_of_token_groups(a, 0.5)[0]);
  use(join_token_groups(a));
  use(join_token_groups({a, 1.0}));
  use(send_to_expert_groups<"d">(gates, a, 2).row);
  use(combine_from_groups(gates, a));
  use(sum_in_groups(gates, a));
  use(combine_groups(gates, a));
  use(send_rows<"d">(gates, a, 2).row);
  use(grouped_product(gates, a, a));
  use(add_to_rows(a, a));
  use(combine_rows(gates, a));
  use(expert_param(m, "w", "AB", init::zeros()));
  use(m.variable("v", init::zeros()));
  use(m.cache("c", init::zeros()));
  m.update(w, 2);
  use(m.updated("v"));
  use(gradients(sum(a), a));
  use(trainable(a));
  use(all_reduce(shards));
  use(all_gather<"d">(shards));
  use(reduce_scatter<"d">(shards, 1, 2));
  use(all_to_all<"d">(shards, 1));
  use(shift<"d">(shards));
  use(collective_permute<"d">(shards));
  use(halo<"d", 1, 1>(shards));
  use(device_index("d"));
  use(per_shard<"d">([](auto v) { return v; }, cut));
  use(call_on_shards<copy, P<"d", none>>(copy));
#else
  use(softmax(a));
  use(layer_norm(a, bias, bias));
  use(cross_entropy(a, ids, 0.1));
  use(attention(gates, gates, gates, {.causal = true}));
  use(check_finite(a, "a"));
  use(cumsum(a, 0));
  use(sort(a, 0).values);
  use(top_k(a, 1).ids);
  use(gather(a, ids));
  use(scatter_add(a, ids, a));
  use(iota<"AB">(m));
  use(one_hot<"E">(ids));
  use(gshard::uniform<"AB">(m));
  use(gshard::normal<"AB">(m));
  use(dynamic_slice(a, 0, sum(ids), 1));
  use(dynamic_update_slice(a, w, 0, sum(ids)));
  use(slice(a, 0, 0, 1));
  use(pad(a, 0, 1, 1));
  use(reverse(a, 0));
  use(roll(a, 0, 1));
  use(concat({a, c}, 0));
  use(merge_dims<0>(a));
  use(expand_dims<0>(a));
  use(squeeze<0>(expand_dims<0>(a)));
  use(split_dim<0>(a, "CD"));
  use(split_dim(merge_dims(expand_dims(a, 0), 0), 0));
  use(rename_dims<"CB">(a));
  use(rename_dims(a, "C_"));
  use(replicate(a));
  use(may_move(a));
  use(propagation_barrier(a));
  use(annotate<P<none, none>>(a));
  use(split<"d">(a, 0));
  use(assign(a, {1, 1}, {0}));
  use(while_loop([](auto v) { return sum(v); }, [](auto v) { return v; }, a));
  use(scan<2>([](auto, auto v) { return v; }, a));
  use(repeat<2>(a, [](auto v) { return v; }));
  use(top2_gating(gates, gs::capacity{2}).aux);
  use(top_k_gating(gates, {.k = 2}).aux);
  use(chunk_of(top_k_gating(gates), 0, 2).dispatch);
  use(join_token_groups(chunks_of_token_groups(gates, 2)));
  const auto sent = send_to_expert_groups(top_k_gating(gates), gates, 2);
  use(combine_from_groups(sent, dispatch_in_groups(sent)));
  use(combine_groups(sent, sum_in_groups(sent, dispatch_in_groups(sent))));
  const auto rows = send_rows(top_k_gating(gates), gates, 2);
  use(add_to_rows(rows, rows.rows, expert_param(m, rows, "bias", "E", init::zeros())));
  use(combine_rows(rows, grouped_product(rows, rows.rows, expert_param(m, rows, "matrix", "EE", P<none, none>{}, init::zeros()))));
  use(m.variable("v", "AB", init::zeros()));
  use(m.cache("c", "AB", init::zeros()));
  m.update(w, a + w);
  use(m.updated(w));
  use(gradients(sum(a + w), gs::trainable(m)));
  use(trainable(m));
  use(all_reduce<"d">(shards));
  use(all_gather<"d">(shards, 1));
  use(reduce_scatter<"d">(shards, 1));
  use(all_to_all<"d">(shards, 1, 2));
  use(shift<"d">(shards, 1));
  use(collective_permute<"d", device_pairs({{0, 0}})>(shards));
  use(halo<"d", 1, 1>(shards, 1));
  use(device_index<"d">(shards));
  use(per_shard<"d", P<"d", none>>([](auto v) { return v; }, cut));
  use(call_on_shards<copy, P<"d", none>>(cut));
#endif
  return a;
};
using all_calls = program<model, mesh<axis<"d", 1>>, in<"AB">, in<"AB">, in<"A", void, std::int32_t>, in<"GSE">, in<"B">,
                          in<"AB", P<"d", none>>>;
static_assert(all_calls::plan.count(op::all_to_all) >= 0);
