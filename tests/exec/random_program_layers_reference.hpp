// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "random_program_layers.hpp"
#include "random_program_tensor.hpp"

#include <gshard/core/base/hash.hpp>
#include <gshard/core/base/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

// The definitions of random_program_layers.hpp.
namespace random_program::reference {

/// Attention by its definition. Reads only the keys and values that a query sees.
template <class T>
class attention_by_definition {
 public:
  /// x: the operands. `keys`: the dims of k without heads and depth. `position`: the dims of the position, if there is one.
  attention_by_definition(const std::vector<int>& number, std::vector<const tensor<T>*> x, const gs::dim_list& keys,
                          const gs::dim_list& position)
      : how_(number), x_(std::move(x)), position_dims_(how_.position >= 0 ? matched(position, keys) : std::vector<int>()) {}

  /// `key`: the key of dropout's random numbers.
  tensor<T> run(const std::vector<std::int64_t>& extents, gs::random_key key) const {
    if (how_.log_sum)
      return made<T>(extents, [&](const index& at) { return logsumexp(line_of(at).score); });
    // The elements of one query are consecutive.
    line now;
    return made<T>(extents, [&](const index& at) {
      if (at.back() == 0) now = weighted(line_of(index(at.begin(), at.end() - 1)), at, key);
      T sum = T(0);
      index of_value = now.batch;
      of_value.insert(of_value.end(), {0, now.head, at.back()});
      for (std::size_t j = 0; j < now.key.size(); ++j) {
        of_value[now.batch.size()] = now.key[j];
        sum = sum + now.score[j] * element(*x_[2], of_value);
      }
      return sum;
    });
  }

 private:
  /// The keys that a query sees, and the score or weight of each.
  struct line {
    index batch{};
    std::int64_t query = 0, head = 0, repeat = 0;
    std::vector<std::int64_t> key{};
    std::vector<T> score{};
  };
  attention_settings how_;
  std::vector<const tensor<T>*> x_;
  std::vector<int> position_dims_;

  line line_of(index of_query) const {
    const tensor<T>&q = *x_[0], &k = *x_[1];
    const std::size_t batch = k.extents.size() - 3;
    line l{.batch = index(of_query.begin(), of_query.begin() + std::ptrdiff_t(batch)),
           .query = of_query[batch],
           .head = of_query[batch + 1],
           .repeat = of_query.size() > batch + 2 ? of_query[batch + 2] : 0};
    const std::int64_t depth = k.extents.back();
    of_query.push_back(0);
    for (std::int64_t j = 0; j < k.extent(batch); ++j) {
      index at = l.batch;
      at.push_back(j);
      if (how_.mask >= 0 && std::trunc(value(element(*x_[std::size_t(how_.mask)], at))) == 0) continue;
      const double shift = how_.position >= 0 ? value(broadcast(*x_[std::size_t(how_.position)], position_dims_, at)) : 0;
      if (how_.causal && double(j) - shift > double(l.query)) continue;
      at.insert(at.end(), {l.head, 0});
      T sum = T(0);
      for (std::int64_t d = 0; d < depth; ++d) {
        of_query.back() = at.back() = d;
        sum = sum + element(q, of_query) * element(k, at);
      }
      l.key.push_back(j);
      l.score.push_back(sum / T(std::sqrt(double(depth))));
    }
    return l;
  }
  /// The softmax of the scores, after dropout.
  line weighted(line l, const index& at, gs::random_key key) const {
    if (l.key.empty()) return l;
    const tensor<T>&q = *x_[0], &k = *x_[1];
    const std::size_t batch = l.batch.size();
    const T most = constant_of(extremum(l.score, true));
    T sum = T(0);
    for (T& v : l.score) sum = sum + (v = gs::exp(v - most));
    const index outer(q.extents.begin(), q.extents.begin() + std::ptrdiff_t(batch));
    const std::int64_t repeats = at.size() > batch + 3 ? q.extent(batch + 2) : 1;
    const std::int64_t row =
        ((std::int64_t(linear(l.batch, outer)) * q.extent(batch + 1) + l.head) * repeats + l.repeat) * q.extent(batch) + l.query;
    for (std::size_t j = 0; j < l.score.size(); ++j) {
      const bool kept = gs::uniform01(key, std::uint64_t(row * k.extent(batch) + l.key[j])) >= float(how_.dropout);
      l.score[j] = l.score[j] / sum * T(kept ? 1 / (1 - how_.dropout) : 0);  // NaN remains NaN
    }
    return l;
  }
};

/// `broadcast_to`: for every dim of the state, its dim in a row or in y, or -1.
template <class T>
class scan_by_definition {
 public:
  /// `loop`: the number of the loop in the program, from 1. `key`: the key of its random numbers.
  scan_by_definition(int body, const tensor<T>& start, const tensor<T>& xs, const tensor<T>& y, std::vector<int> of_row,
                     std::vector<int> of_y, std::uint32_t loop, gs::random_key key)
      : body_(body),
        state_(start),
        other_(start),
        xs_(xs),
        y_(y),
        of_row_(std::move(of_row)),
        of_y_(std::move(of_y)),
        loop_(loop),
        key_(key) {}

  tensor<T> run(int which, const std::vector<std::int64_t>& extents) {
    tensor<T> all{extents, {}};
    for (std::int64_t t = 0; t < xs_.extent(0); ++t) {
      const tensor<T> out = turn(t);
      all.e.insert(all.e.end(), out.e.begin(), out.e.end());
    }
    if (which == 1) return all;
    if (which == 2) {
      const T sum = small_sum(all.e);
      for (T& v : state_.e) v = v + sum;
    }
    return state_;
  }

 private:
  int body_;
  tensor<T> state_, other_;
  const tensor<T>&xs_, &y_;
  std::vector<int> of_row_, of_y_;
  std::uint32_t loop_;
  gs::random_key key_;

  /// The key of an iteration. @see running_loops
  gs::random_key key_at(std::int64_t t) const {
    gs::random_key key = key_;
    if (t > 0) key.seed = gs::fnv1a<std::uint64_t>().add(key.seed).add(std::uint64_t(loop_)).add(std::uint64_t(t)).value();
    return key;
  }
  static T small_sum(const std::vector<T>& e) { return std::accumulate(e.begin(), e.end(), T(0)) * T(0.015625); }
  tensor<T> row(std::int64_t t) const {
    const std::vector<std::int64_t> extents(xs_.extents.begin() + 1, xs_.extents.end());
    const std::int64_t n = count_of(extents);
    return {extents, std::vector<T>(xs_.e.begin() + t * n, xs_.e.begin() + (t + 1) * n)};
  }
  template <class F>
  tensor<T> zip(const tensor<T>& a, F f) const {
    std::size_t i = 0;
    return made<T>(a.extents, [&](const index& at) { return f(at, a.e[i++]); });
  }
  template <class F>
  tensor<T> lines(std::size_t dim, F f) const {
    return along(state_, dim, state_.extents, f);
  }

  tensor<T> turn(std::int64_t t) {
    const tensor<T> x = row(t), before = state_;
    const bool scalar = state_.extents.empty();
    const auto x_at = [&](const index& at) { return broadcast(x, of_row_, at); };
    const auto y_at = [&](const index& at) { return broadcast(y_, of_y_, at); };
    const auto half = [](const T& a, const T& b) { return T(0.5) * (a + b); };
    switch (body_) {
      case 0:
        state_ = zip(before, [&](const index& at, const T& u) { return gs::tanh(u * y_at(at) + x_at(at)); });
        return zip(before, [&](const index& at, const T& u) { return u - x_at(at); });
      case 1:
        if (!scalar)
          state_ = lines(state_.extents.size() - 1, [](std::vector<T> r) {
            const T most = constant_of(extremum(r, true));
            T sum = T(0);
            for (T& v : r) sum = sum + (v = gs::exp(v - most));
            for (T& v : r) v = v / sum;
            return r;
          });
        state_ = zip(state_, [&](const index& at, const T& u) { return half(u, x_at(at)); });
        return {{}, {small_sum(before.e)}};
      case 2:
        if (!scalar) {
          state_ = lines(0, [](std::vector<T> r) {
            if (!r.empty()) std::rotate(r.begin(), r.end() - 1, r.end());
            return r;
          });
          state_ = zip(state_, [&](const index& at, const T& u) { return half(u, y_at(at)); });
        }
        return zip(state_, [&](const index&, const T& u) { return u + T(double(t)); });
      case 3:
        if (!scalar)
          state_ = lines(0, [](std::vector<T> r) {
            T sum = T(0);
            for (T& v : r) v = gs::tanh(sum = sum + v);
            return r;
          });
        state_ = zip(state_, [&](const index& at, const T& u) { return half(u, x_at(at)); });
        return zip(x, [](const index&, const T& v) { return v * v; });
      case 4:
        state_ = zip(before, [&](const index& at, const T& u) { return half(u, x_at(at)); });
        return before;
      case scan_with_dropout:
        for (std::size_t i = 0; i < state_.e.size(); ++i) state_.e[i] = gs::uniform01(key_at(t), i) >= 0.5F ? state_.e[i] * T(2) : T(0);
        state_ = zip(state_, [&](const index& at, const T& u) { return half(u, x_at(at)); });
        return before;
      case scan_with_loop:
        for (std::int64_t k = 0; k < xs_.extent(0); ++k) {
          const tensor<T> inner = row(k);
          state_ = zip(state_, [&](const index& at, const T& u) { return gs::tanh(u + broadcast(inner, of_row_, at)); });
        }
        {
          const tensor<T> next = state_;
          state_ = zip(next, [&](const index& at, const T& u) { return half(u, y_at(at)); });
          return zip(next, [&](const index& at, const T& u) { return u - x_at(at); });
        }
      default: {
        tensor<T> out = state_;
        for (std::size_t i = 0; i < out.e.size(); ++i) out.e[i] = state_.e[i] * other_.e[i];
        state_ = zip(other_, [&](const index& at, const T& v) { return half(v, x_at(at)); });
        other_ = zip(before, [&](const index& at, const T& u) { return gs::tanh(u * y_at(at)); });
        return out;
      }
    }
  }
};

/// Experts by their definition. Each group of tokens is independent: its choices, then the accepted ones, then results.
template <class T>
class experts_by_definition {
 public:
  /// x: the operands.
  experts_by_definition(const std::vector<int>& number, const std::vector<const tensor<T>*>& x)
      : how_(number), x_(*x[0]), logits_(*x[1]), w_(*x[2]), mask_(how_.masked ? x[3] : nullptr), replicas_(*x.back()), S_(x_.extent(1)),
        E_(logits_.extent(2)), C_(how_.slots ? slots(how_.slots, E_) : std::max<std::int64_t>(1, S_)) {}

  tensor<T> run() {
    const std::int64_t G = x_.extent(0), F = w_.extent(1);
    T aux = T(0);
    tensor<T> y{{G, S_, F}, {}}, load_and_demand{{G, E_}, {}}, overflow{{G}, {}};
    for (std::int64_t g = 0; g < G; ++g) {
      compute_gates(g);
      loads_.assign(std::size_t(E_), 0);
      refused_ = 0;
      if (how_.experts_choose()) {
        choose_tokens(g);
      } else {
        choose_experts(g);
        aux = aux + balance() / T(double(G));
        take_slots();
      }
      normalize();
      if (how_.route == expert_route::rows) take_rows();
      if (how_.route == expert_route::groups) take_rows_of_groups();
      if (how_.route == expert_route::replicas) take_replicas(g);
      for (std::int64_t e = 0; e < E_; ++e) load_and_demand.e.push_back(T(double(loads_[std::size_t(e)] + 2 * demand_of(e))));
      overflow.e.push_back(T(double(refused_)));
      for (std::int64_t s = 0; s < S_; ++s)
        for (std::int64_t f = 0; f < F; ++f) y.e.push_back(result(g, s, f));
    }
    if (how_.result == 1) return {{}, {G == 0 ? T(std::numeric_limits<double>::quiet_NaN()) : aux}};
    return how_.result == 0 ? y : how_.result == 2 ? load_and_demand : overflow;
  }

 private:
  struct choice {
    std::int64_t expert;
    T weight;
    std::int64_t place = -1;  // its slot of the expert, or -1
    bool sent = false;        // whether its group and replica accept it
    std::int64_t replica = -1;
  };
  expert_settings how_;
  const tensor<T>&x_, &logits_, &w_;
  const tensor<T>* mask_;
  const tensor<T>& replicas_;
  std::int64_t S_, E_, C_;
  std::vector<std::vector<choice>> of_token_;  // choices of each token, the best one first
  std::vector<std::vector<T>> gates_;          // empty at padding
  std::vector<std::int64_t> loads_;
  std::int64_t refused_ = 0;

  std::int64_t slots(int factor, std::int64_t share) const { return std::max<std::int64_t>(1, (factor * S_ + share - 1) / share); }
  std::int64_t in_group() const { return (E_ + how_.parts - 1) / how_.parts; }

  void compute_gates(std::int64_t g) {
    of_token_.assign(std::size_t(S_), {});
    gates_.assign(std::size_t(S_), {});
    for (std::int64_t s = 0; s < S_; ++s) {
      if (mask_ && value(element(*mask_, {g, s})) == 0) continue;
      std::vector<T>& row = gates_[std::size_t(s)];
      for (std::int64_t e = 0; e < E_; ++e) row.push_back(element(logits_, {g, s, e}));
      const T most = constant_of(extremum(row, true));
      T total = T(0);
      for (T& v : row) total = total + (v = gs::exp(v - most));
      for (T& v : row) v = v / total;
    }
  }
  /// Indices in descending order of logits. Among equals, the smaller index is first.
  template <class F>
  static void sort_by(std::vector<std::int64_t>& list, F logit) {
    std::stable_sort(list.begin(), list.end(), [&](std::int64_t a, std::int64_t b) { return value(logit(a)) > value(logit(b)); });
  }

  void choose_experts(std::int64_t g) {
    for (std::int64_t s = 0; s < S_; ++s) {
      const std::vector<T>& row = gates_[std::size_t(s)];
      std::vector<std::int64_t> order(row.size());
      std::iota(order.begin(), order.end(), 0);
      sort_by(order, [&](std::int64_t e) { return element(logits_, {g, s, e}); });
      std::vector<choice>& mine = of_token_[std::size_t(s)];
      for (std::size_t k = 0; k < std::min(std::size_t(how_.k), row.size()); ++k) mine.push_back({order[k], row[std::size_t(order[k])]});
      if (how_.norm == gs::gate_norm::chosen) divide_by_sum(mine, [](const choice&) { return true; });
    }
  }
  /// The sum over e of (first choices of e / n) (mean gate of e) / E.
  T balance() const {
    double n = 0;
    std::vector<double> first(std::size_t(E_), 0);
    std::vector<T> gate(std::size_t(E_), T(0));
    for (std::size_t s = 0; s < of_token_.size(); ++s) {
      if (of_token_[s].empty()) continue;
      ++n;
      ++first[std::size_t(of_token_[s][0].expert)];
      for (std::size_t e = 0; e < gate.size(); ++e) gate[e] = gate[e] + gates_[s][e];
    }
    T sum = T(0);
    for (std::size_t e = 0; e < gate.size() && n > 0; ++e) sum = sum + T(first[e] / n / n / double(E_)) * gate[e];
    return sum;
  }
  /// Visits first choices before second ones, and the same choice in the order of tokens.
  template <class F>
  void for_each_choice(F f) {
    for (std::size_t k = 0; k < std::size_t(how_.k); ++k)
      for (std::vector<choice>& mine : of_token_)
        if (k < mine.size()) f(mine[k]);
  }
  void take_slots() {
    for_each_choice([&](choice& c) {
      std::int64_t& taken = loads_[std::size_t(c.expert)];
      c.sent = taken < C_;
      if (c.sent) c.place = taken++;
      else ++refused_;
    });
  }
  /// The number of choices of an expert, including those that it refused.
  std::int64_t demand_of(std::int64_t e) const {
    std::int64_t count = 0;
    for (const std::vector<choice>& mine : of_token_) count += std::ranges::count(mine, e, &choice::expert);
    return count;
  }
  void choose_tokens(std::int64_t g) {
    std::vector<std::int64_t> tokens;
    for (std::int64_t s = 0; s < S_; ++s)
      if (!gates_[std::size_t(s)].empty()) tokens.push_back(s);
    for (std::int64_t e = 0; e < E_; ++e) {
      std::vector<std::int64_t> order = tokens;
      sort_by(order, [&](std::int64_t s) { return element(logits_, {g, s, e}); });
      std::int64_t& taken = loads_[std::size_t(e)];
      for (; taken < std::min(C_, std::int64_t(order.size())); ++taken) {
        const auto s = std::size_t(order[std::size_t(taken)]);
        of_token_[s].push_back({e, gates_[s][std::size_t(e)], taken, true});
      }
    }
    for (const std::int64_t s : tokens) refused_ += of_token_[std::size_t(s)].empty();
  }

  /// Divides weights by the sum of those for which `counts` holds.
  template <class F>
  static void divide_by_sum(std::vector<choice>& list, F counts) {
    T sum = T(0);
    for (const choice& c : list) sum = counts(c) ? sum + c.weight : sum;
    for (choice& c : list) c.weight = c.weight / sum;
  }
  void normalize() {
    if (how_.norm == gs::gate_norm::off || (how_.norm == gs::gate_norm::chosen && !how_.experts_choose())) return;
    for (std::vector<choice>& mine : of_token_) divide_by_sum(mine, [](const choice& c) { return c.place >= 0; });
  }

  /// Each choice takes a row of its group.
  void take_rows() {
    const int most = how_.k * how_.parts;
    const std::int64_t rows = slots(how_.rows == 0 || how_.rows > most ? most : how_.rows, how_.parts);
    std::vector<std::int64_t> used(std::size_t(how_.parts), 0);
    for_each_choice([&](choice& c) {
      if (c.place < 0) return;
      std::int64_t& taken = used[std::size_t(c.expert / in_group())];
      c.sent = taken < rows;
      taken += c.sent;
      refused_ += !c.sent;
    });
  }
  /// Each token takes one row of every group with one of its experts.
  void take_rows_of_groups() {
    const std::int64_t rows = how_.rows == 0 || how_.rows >= how_.parts ? S_ : slots(how_.rows, how_.parts);
    for (std::int64_t n = 0; n < how_.parts; ++n) {
      std::int64_t used = 0;
      for (std::vector<choice>& mine : of_token_) {
        bool needs_row = false;
        for (choice& c : mine) {
          if (c.place < 0 || c.expert / in_group() != n) continue;
          needs_row = true;
          c.sent = used < rows;
          refused_ += !c.sent;
        }
        used += needs_row && used < rows;
      }
    }
  }
  /// The accepted choices of an expert go to its replicas in turn. The first replica differs by token group.
  void take_replicas(std::int64_t g) {
    const std::int64_t most_slots = how_.rows == 0 ? C_ : slots(how_.rows, replicas_.extent(0));
    for (std::vector<choice>& mine : of_token_)
      for (choice& c : mine) {
        if (c.place < 0) continue;
        std::vector<std::int64_t> of_expert;
        for (std::int64_t r = 0; r < replicas_.extent(0); ++r)
          if (std::int64_t(value(replicas_.e[std::size_t(r)])) == c.expert) of_expert.push_back(r);
        const std::int64_t n = std::int64_t(of_expert.size());
        c.sent = n > 0 && c.place / n < most_slots;
        if (c.sent) c.replica = of_expert[std::size_t((c.place + g) % n)];
        refused_ += !c.sent && how_.rows > 0;
      }
  }

  T result(std::int64_t g, std::int64_t s, std::int64_t f) const {
    T y = T(0);
    for (const choice& c : of_token_[std::size_t(s)]) {
      if (!c.sent) continue;
      const std::int64_t n = how_.in_groups() ? c.expert / in_group() : 0;
      const std::int64_t l = how_.in_groups() ? c.expert % in_group() : how_.route == expert_route::replicas ? c.replica : c.expert;
      T made = T(0);
      for (std::int64_t m = 0; m < x_.extent(2); ++m)
        made = made + element(x_, {g, s, m}) * element(w_, {m, f}) * T(std::cos(double(2 * n + l)));
      y = y + c.weight * (made + T(0.25));
    }
    return y;
  }
};

}  // namespace random_program::reference
