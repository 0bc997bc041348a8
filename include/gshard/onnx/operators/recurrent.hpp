// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// ONNX's recurrent layers as scans: RNN, GRU and LSTM.

#include <gshard/core/trace/einsum.hpp>
#include <gshard/onnx/node/indices.hpp>
#include <gshard/onnx/node/node_call.hpp>
#include <gshard/onnx/node/numpy.hpp>
#include <gshard/onnx/node/scalar_functions.hpp>
#include <gshard/ops/loop/scan.hpp>
#include <gshard/ops/window/reverse.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx { namespace operators {

using activation = symbol (*)(symbol);
/// An activation by its name in ONNX. It must have no parameters.
inline activation activation_of(node_call& n, const std::string& name) {
  std::string lower;
  for (const char c : name) lower += c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  if (lower == "sigmoid") return [](symbol x) { return mapped<functions::sigmoid{}, 1>({x}); };
  if (lower == "tanh") return [](symbol x) { return mapped<functions::tanh{}, 1>({x}); };
  if (lower == "relu") return [](symbol x) { return mapped<functions::relu{}, 1>({x}); };
  if (lower == "softsign") return [](symbol x) { return mapped<functions::softsign{}, 1>({x}); };
  if (lower == "softplus") return [](symbol x) { return mapped<functions::softplus{}, 1>({x}); };
  n.refuse("activations");
}

/// The inputs and attributes that all recurrent layers have. Tensors are those of one direction at a time.
class recurrent_layer {
 public:
  /// `gates`: the number of matrices in the weights. `functions`: the names of the default activations of one direction.
  recurrent_layer(node_call& n, std::int64_t gates, const std::vector<std::string>& functions) : n_(n), gates_(gates) {
    const std::string direction = n.text("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional") n.refuse("direction");
    directions_ = direction == "bidirectional" ? 2 : 1;
    first_is_reversed_ = direction == "reverse";
    by_batch_ = n.integer("layout", 0) != 0;
    if (n.states("clip")) n.refuse("clip");
    n.ignore({"output_sequence"});
    if (!n.reals("activation_alpha").empty()) n.refuse("activation_alpha");
    if (!n.reals("activation_beta").empty()) n.refuse("activation_beta");
    std::vector<std::string> names = n.texts("activations");
    if (names.empty())
      for (int d = 0; d < directions_; ++d) names.insert(names.end(), functions.begin(), functions.end());
    if (names.size() != functions.size() * std::size_t(directions_)) n.refuse("activations");
    for (const std::string& name : names) activations_.push_back(activation_of(n, name));
    each_ = functions.size();
    x_ = by_batch_ ? moved_dim(n.real(0), 1, 0) : n.real(0);
    const extent_list own = extents_of(x_), weights = n.extents(2);
    if (own.size() != 3 || weights.size() != 3 || weights[0] != directions_) throw error("has weights " + text_of(weights));
    steps_ = own[0];
    batch_ = own[1];
    size_ = weights[2];
    if (n.integer("hidden_size", size_) != size_) n.refuse("hidden_size");
    if (n.has(4)) lengths_ = checked(cast(n.tensor(4), dtype::i32));
  }

  int directions() const { return directions_; }
  std::int64_t size() const { return size_; }
  symbol apply(int direction, std::size_t i, symbol x) const { return activations_[std::size_t(direction) * each_ + i](x); }
  /// The part of a tensor that belongs to a direction.
  symbol part(symbol s, int direction) const { return without_dim(sliced(s, 0, direction, direction + 1), 0); }
  symbol weights(int direction) const { return part(n_.real(1), direction); }
  symbol recurrence(int direction) const { return part(n_.real(2), direction); }
  /// The bias of the inputs (0) or of the recurrence (1), or nothing.
  symbol bias(int direction, int which) const {
    if (!n_.has(3)) return {};
    return sliced(part(n_.real(3), direction), 0, which * gates_ * size_, (which + 1) * gates_ * size_);
  }
  symbol start(std::size_t input, int direction) const {
    if (!n_.has(input)) return filled(n_.program(), x_.get().type, extent_list{batch_, size_}, 0);
    const symbol all = by_batch_ ? moved_dim(n_.real(input), 1, 0) : n_.real(input);
    return part(all, direction);
  }
  bool is_reversed(int direction) const { return direction == 1 || first_is_reversed_; }
  /// The products of the inputs with the weights, for all steps in the order in which they are taken: [T, B, gates * H].
  symbol products(int direction) const {
    symbol y = checked(einsum("tbi,gi->tbg", {x_, weights(direction)}));
    if (const symbol b = bias(direction, 0); b.id >= 0) y = sum_of(y, b);
    return is_reversed(direction) ? turned(y) : y;
  }
  /// Rows in the opposite order; with lengths, each sequence by itself.
  symbol turned(symbol y) const {
    if (lengths_.id < 0) return checked(reverse(y, 0));
    const extent_list own = extents_of(y);
    const symbol rows = moved_dim(y, 1, 0), step = index_along(n_.program(), {1, steps_}, 1), lengths = with_dim(lengths_, 1);
    const symbol from =
        chosen(less_than(step, lengths), difference(difference(lengths, scalar_like(step, 1)), step), expanded(step, {batch_, steps_}));
    return moved_dim(checked(gather(rows, from, 1, 1)), 1, 0);
  }
  /// The next state; the previous one in steps behind the end of a sequence.
  symbol kept(symbol step, symbol next, symbol before) const {
    if (lengths_.id < 0) return next;
    return chosen(with_dim(less_than(step, lengths_), 1), next, before);
  }
  symbol output(symbol step, symbol next) const { return kept(step, next, scalar_like(next, 0)); }

  /// Adds the results of a direction: the outputs of all steps [T, B, H], and the last states.
  void add(int direction, symbol outputs, std::vector<symbol> last) {
    all_.push_back(with_dim(is_reversed(direction) ? turned(outputs) : outputs, 1));
    states_.resize(last.size());
    for (std::size_t i = 0; i < last.size(); ++i) states_[i].push_back(with_dim(last[i], 0));
  }
  void finish() {
    const symbol y = joined(all_, 1);  // [T, directions, B, H]
    n_.set(0, by_batch_ ? transposed(y, {2, 0, 1, 3}) : y, n_.type(0));
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const symbol s = joined(states_[i], 0);
      n_.set(1 + i, by_batch_ ? moved_dim(s, 1, 0) : s, n_.type(0));
    }
  }

 private:
  node_call& n_;
  std::int64_t gates_, steps_ = 0, batch_ = 0, size_ = 0;
  int directions_ = 1;
  bool first_is_reversed_ = false, by_batch_ = false;
  std::vector<activation> activations_;
  std::size_t each_ = 0;
  symbol x_{}, lengths_{};
  std::vector<symbol> all_;
  std::vector<std::vector<symbol>> states_;
};

/// Gate i of a row of gates [B, gates * H].
inline symbol gate(symbol gates, std::int64_t i, std::int64_t size) {
  return sliced(gates, 1, i * size, (i + 1) * size);
}
inline symbol recurred(symbol h, symbol weights) {
  return checked(einsum("bh,gh->bg", {h, weights}));
}

inline void rnn(node_call& n) {
  recurrent_layer layer(n, 1, {"Tanh"});
  for (int d = 0; d < layer.directions(); ++d) {
    symbol rows = layer.products(d);
    if (const symbol b = layer.bias(d, 1); b.id >= 0) rows = sum_of(rows, b);
    const symbol w = layer.recurrence(d);
    const auto body = [&](symbol step, symbol h, symbol row) -> std::array<symbol, 2> {
      const symbol next = layer.apply(d, 0, sum_of(row, recurred(h, w)));
      return {layer.kept(step, next, h), layer.output(step, next)};
    };
    const auto all = scan(body, std::array<symbol, 1>{layer.start(5, d)}, std::array<symbol, 1>{rows});
    layer.add(d, checked(all[1]), {checked(all[0])});
  }
  layer.finish();
}

inline void gru(node_call& n) {
  const bool before_reset = n.integer("linear_before_reset", 0) != 0;
  recurrent_layer layer(n, 3, {"Sigmoid", "Tanh"});
  const std::int64_t size = layer.size();
  for (int d = 0; d < layer.directions(); ++d) {
    symbol rows = layer.products(d);
    const symbol w = layer.recurrence(d), bias = layer.bias(d, 1);
    const symbol of_gates = sliced(w, 0, 0, 2 * size), of_state = sliced(w, 0, 2 * size, 3 * size);
    symbol gate_bias{}, state_bias{};
    if (bias.id >= 0) {
      gate_bias = sliced(bias, 0, 0, 2 * size);
      state_bias = sliced(bias, 0, 2 * size, 3 * size);
    }
    const auto plus = [](symbol x, symbol b) { return b.id < 0 ? x : sum_of(x, b); };
    const auto body = [&](symbol step, symbol h, symbol row) -> std::array<symbol, 2> {
      const symbol gates = layer.apply(d, 0, plus(sum_of(sliced(row, 1, 0, 2 * size), recurred(h, of_gates)), gate_bias));
      const symbol z = gate(gates, 0, size), r = gate(gates, 1, size);
      const symbol of_h =
          before_reset ? product(r, plus(recurred(h, of_state), state_bias)) : plus(recurred(product(r, h), of_state), state_bias);
      const symbol proposed = layer.apply(d, 1, sum_of(gate(row, 2, size), of_h));
      const symbol next = sum_of(proposed, product(z, difference(h, proposed)));
      return {layer.kept(step, next, h), layer.output(step, next)};
    };
    const auto all = scan(body, std::array<symbol, 1>{layer.start(5, d)}, std::array<symbol, 1>{rows});
    layer.add(d, checked(all[1]), {checked(all[0])});
  }
  layer.finish();
}

inline void lstm(node_call& n) {
  if (n.integer("input_forget", 0) != 0) n.refuse("input_forget");
  recurrent_layer layer(n, 4, {"Sigmoid", "Tanh", "Tanh"});
  const std::int64_t size = layer.size();
  for (int d = 0; d < layer.directions(); ++d) {
    symbol rows = layer.products(d);
    if (const symbol b = layer.bias(d, 1); b.id >= 0) rows = sum_of(rows, b);
    const symbol w = layer.recurrence(d);
    symbol peepholes{};
    if (n.has(7)) peepholes = layer.part(n.real(7), d);
    const auto seen = [&](symbol x, symbol c, std::int64_t which) {  // a gate that also sees the cell
      return peepholes.id < 0 ? x : sum_of(x, product(c, sliced(peepholes, 0, which * size, (which + 1) * size)));
    };
    const auto body = [&](symbol step, symbol h, symbol c, symbol row) -> std::array<symbol, 3> {
      const symbol gates = sum_of(row, recurred(h, w));
      const symbol in = layer.apply(d, 0, seen(gate(gates, 0, size), c, 0)), forget = layer.apply(d, 0, seen(gate(gates, 2, size), c, 2));
      const symbol cell = sum_of(product(forget, c), product(in, layer.apply(d, 1, gate(gates, 3, size))));
      const symbol out = layer.apply(d, 0, seen(gate(gates, 1, size), cell, 1));
      const symbol next = product(out, layer.apply(d, 2, cell));
      return {layer.kept(step, next, h), layer.kept(step, cell, c), layer.output(step, next)};
    };
    const auto all = scan(body, std::array<symbol, 2>{layer.start(5, d), layer.start(6, d)}, std::array<symbol, 1>{rows});
    layer.add(d, checked(all[2]), {checked(all[0]), checked(all[1])});
  }
  layer.finish();
}

inline constexpr operator_row recurrent[]{
    {"GRU", gru},
    {"LSTM", lstm},
    {"RNN", rnn},
};

}}}}  // namespace gshard::v0::onnx::operators
