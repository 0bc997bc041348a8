// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "case_text.hpp"

#include <gshard/core/grad/differentiate.hpp>
#include <gshard/core/trace/broadcast.hpp>
#include <gshard/core/trace/einsum.hpp>
#include <gshard/core/trace/iota.hpp>
#include <gshard/core/trace/map.hpp>
#include <gshard/core/trace/parameter_scope.hpp>
#include <gshard/core/trace/select.hpp>
#include <gshard/core/trace/shape.hpp>
#include <gshard/moe/routing/gating.hpp>
#include <gshard/ops/along/cumsum.hpp>
#include <gshard/ops/along/sort.hpp>
#include <gshard/ops/attention/attention.hpp>
#include <gshard/ops/index/dynamic_slice.hpp>
#include <gshard/ops/index/gather.hpp>
#include <gshard/ops/index/one_hot.hpp>
#include <gshard/ops/loop/scan.hpp>
#include <gshard/ops/random/dropout.hpp>
#include <gshard/ops/random/random.hpp>
#include <gshard/ops/reduce/argmax.hpp>
#include <gshard/ops/reduce/logsumexp.hpp>
#include <gshard/ops/reduce/reduce.hpp>
#include <gshard/ops/rows/cross_entropy.hpp>
#include <gshard/ops/rows/layer_norm.hpp>
#include <gshard/ops/rows/softmax.hpp>
#include <gshard/ops/window/concat.hpp>
#include <gshard/ops/window/convolution.hpp>
#include <gshard/ops/window/pad.hpp>
#include <gshard/ops/window/pool.hpp>
#include <gshard/ops/window/reverse.hpp>
#include <gshard/ops/window/roll.hpp>
#include <gshard/ops/window/slice.hpp>
#include <gshard/train/adam.hpp>
#include <gshard/train/clip.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The verbs of cases: a name, and a call of the library. To add a verb, add one row here.
namespace cases {

namespace gs = gshard;
using gs::symbol;

/// The value of an expression: a number, a text, a list, a tensor, a result of several tensors, or the name of a function.
struct term {
  enum class kind { number, text, list, tensor, record, function };
  kind what = kind::number;
  double number = 0;
  std::string text;
  std::vector<term> list;
  symbol tensor;
  std::map<std::string, symbol> members;

  term() = default;
  term(double n) : number(n) {}
  term(symbol s) : what(kind::tensor), tensor(s) {}
  term(std::map<std::string, symbol> m) : what(kind::record), members(std::move(m)) {}
  term(const gs::list<symbol>& s) : what(kind::list) { list.assign(s.begin(), s.end()); }
};

/// A call of a verb: its operands in order, and its options by name.
struct call {
  const gs::parameter_scope& m;
  std::string_view verb;
  std::vector<term> given{};
  std::map<std::string, term, std::less<>> options{};
  std::function<symbol(const std::string&, std::vector<term>)> apply{};  // a function of the case
  mutable std::set<std::string, std::less<>> read{};                     // names of options that the verb has read

  [[noreturn]] void fail(const std::string& why) const { throw bad_case(std::string(verb) + ": " + why); }
  std::size_t count() const { return given.size(); }
  const term& at(std::size_t i, term::kind what, const char* wanted) const {
    if (i >= given.size()) fail("operand " + std::to_string(i) + " is missing");
    if (given[i].what != what) fail("operand " + std::to_string(i) + " is not " + wanted);
    return given[i];
  }
  symbol x(std::size_t i = 0) const { return at(i, term::kind::tensor, "a tensor").tensor; }
  double number(std::size_t i) const { return at(i, term::kind::number, "a number").number; }
  int integer(std::size_t i) const { return int(number(i)); }
  const std::string& text(std::size_t i = 0) const { return at(i, term::kind::text, "a text").text; }
  const std::string& function(std::size_t i) const { return at(i, term::kind::function, "a function").text; }
  std::vector<symbol> tensors(std::size_t first) const {
    std::vector<symbol> list;
    for (std::size_t i = first; i < count(); ++i) list.push_back(x(i));
    return list;
  }
  std::vector<symbol> tensors_of(std::size_t i) const {
    std::vector<symbol> list;
    for (const term& t : at(i, term::kind::list, "a list").list) list.push_back(t.tensor);
    return list;
  }
  const term* find(std::string_view name) const {
    read.emplace(name);
    const auto found = options.find(name);
    return found == options.end() ? nullptr : &found->second;
  }
  double option(std::string_view name, double otherwise) const {
    const term* t = find(name);
    return t ? t->number : otherwise;
  }
  int option(std::string_view name, int otherwise) const { return int(option(name, double(otherwise))); }
  bool option(std::string_view name, bool otherwise) const { return option(name, otherwise ? 1.0 : 0.0) != 0; }
  symbol tensor_option(std::string_view name) const {
    const term* t = find(name);
    return t ? t->tensor : symbol{};
  }
  /// One number for each dim, or one number for all.
  int option_of(std::string_view name, std::size_t i, int otherwise) const {
    const term* t = find(name);
    if (!t) return otherwise;
    return int(t->what == term::kind::list ? t->list.at(i).number : t->number);
  }
  gs::conv_window window(std::size_t i) const {
    return {.stride = option_of("stride", i, 1), .low = option_of("low", i, 0), .high = option_of("high", i, 0),
            .step = option_of("step", i, 1), .dilation = option_of("dilation", i, 1)};
  }
  /// pool(x, [dim, taps], ...).
  std::vector<gs::pool_window> pool_windows() const {
    std::vector<gs::pool_window> list;
    for (std::size_t i = 1; i < count(); ++i) {
      const term& t = at(i, term::kind::list, "[dim, taps]");
      list.push_back({int(t.list.at(0).number), int(t.list.at(1).number), window(i - 1)});
    }
    return list;
  }
};

inline gs::dtype dtype_called(const std::string& name) {
  for (const auto& [known, type] : {std::pair{"f32", gs::dtype::f32}, {"f64", gs::dtype::f64}, {"f16", gs::dtype::f16},
                                    {"bf16", gs::dtype::bf16}, {"i32", gs::dtype::i32}})
    if (name == known) return type;
  throw bad_case("unknown element type " + name);
}

namespace detail {

using verb = std::function<term(const call&)>;

template <auto F>
verb pointwise() {
  return [](const call& c) -> term { return gs::map<F>(c.x()); };
}
template <auto F>
verb pointwise2() {
  return [](const call& c) -> term { return gs::map<F>(c.x(0), c.x(1)); };
}
/// verb("ac->a", x), or verb(x): over all dims.
inline verb over(gs::reduction what) {
  return [what](const call& c) -> term {
    return c.given.at(0).what == term::kind::text ? gs::reduce(c.text(), c.x(1), what) : gs::reduce(c.x(), what);
  };
}
/// a (op) b of tensors and numbers.
template <class Tensors, class Left, class Right, class Numbers>
verb operation(Tensors tensors, Left number_first, Right number_second, Numbers numbers) {
  return [=](const call& c) -> term {
    const bool first = c.given.at(0).what == term::kind::number, second = c.given.at(1).what == term::kind::number;
    if (first && second) return numbers(c.number(0), c.number(1));
    if (first) return number_first(c.number(0), c.x(1));
    if (second) return number_second(c.x(0), c.number(1));
    return tensors(c.x(0), c.x(1));
  };
}
inline term record(const gs::sorted& s) { return std::map<std::string, symbol>{{"values", s.values}, {"ids", s.ids}}; }
inline term record(const gs::gating_result& r) {
  return std::map<std::string, symbol>{{"combine", r.combine}, {"dispatch", r.dispatch}, {"aux", r.aux},
                                       {"load", r.load}, {"overflow", r.overflow}, {"demand", r.demand}};
}
inline gs::capacity slots(const call& c, double factor) {
  return {c.option("slots", factor), c.option("least_slots", 0), c.option("multiple", 1)};
}
inline gs::gate_norm norm(const call& c) {
  const term* t = c.find("norm");
  const std::string name = t ? t->text : "chosen";
  if (name == "chosen") return gs::gate_norm::chosen;
  if (name == "kept") return gs::gate_norm::kept;
  if (name != "off") c.fail("no norm " + name);
  return gs::gate_norm::off;
}
inline term random(const call& c, bool normal) {
  gs::builder& b = c.m.owner();
  return gs::detail::emit_random(b, b.dims_of(c.text(), c.verb), c.m.type(), normal);
}
inline term one_hot(const call& c) {
  gs::builder& b = c.m.owner();
  const gs::dim_list added = b.dims_of(c.text(), "one_hot");
  return b.failed() ? b.nothing() : gs::detail::emit_equal_index(c.x(1), added[0], c.m.type());
}
inline term conv(const call& c) {
  std::vector<gs::conv_window> how;
  for (std::size_t i = 0; i < std::size_t(c.option("windows", 1)); ++i) how.push_back(c.window(i));
  return gs::conv(c.text(), c.x(1), c.x(2), how);
}
inline gs::choice choice(const call& c) {
  const term* t = c.find("choice");
  if (!t) return gs::choice::top_k;
  if (t->text == "by_experts") return gs::choice::by_experts;
  if (t->text != "sampled_second") c.fail("no choice " + t->text);
  return gs::choice::sampled_second;
}
inline term top_k_gating(const call& c) {
  const gs::choice how = choice(c);
  const gs::routing_options o{.k = c.option("k", how.experts_choose ? 0 : 2),
                              .slots = slots(c, 0),
                              .choice = how,
                              .norm = norm(c),
                              .scale = c.option("scale", 1.0),
                              .importance = c.tensor_option("importance"),
                              .scores = c.tensor_option("scores")};
  return record(c.count() > 1 ? gs::top_k_gating(c.x(0), c.x(1), o) : gs::top_k_gating(c.x(0), o));
}
/// scan(f, init, xs...): f(state, rows...) is the next state. Returns the last one.
inline term scan(const call& c) {
  const std::string& f = c.function(0);
  if (c.count() == 3) return gs::scan([&](symbol, symbol s, symbol x) { return c.apply(f, {s, x}); }, c.x(1), c.x(2));
  return gs::scan([&](symbol, symbol s, symbol x, symbol y) { return c.apply(f, {s, x, y}); }, c.x(1), std::array{c.x(2), c.x(3)});
}

inline const std::map<std::string_view, verb>& verbs() {
  using r = gs::reduction;
  static const std::map<std::string_view, verb> table{
      {"add", operation([](symbol a, symbol b) { return a + b; }, [](double a, symbol b) { return a + b; },
                        [](symbol a, double b) { return a + b; }, std::plus<>())},
      {"subtract", operation([](symbol a, symbol b) { return a - b; }, [](double a, symbol b) { return -1.0 * b + a; },
                             [](symbol a, double b) { return a - b; }, std::minus<>())},
      {"multiply", operation([](symbol a, symbol b) { return a * b; }, [](double a, symbol b) { return a * b; },
                             [](symbol a, double b) { return b * a; }, std::multiplies<>())},
      {"divide", operation([](symbol a, symbol b) { return a / b; }, [](double, symbol b) -> symbol { return b.owner->nothing(); },
                           [](symbol a, double b) { return (1 / b) * a; }, std::divides<>())},
      {"einsum", [](const call& c) -> term { return gs::einsum(c.text(), c.tensors(1)); }},
      {"broadcast", [](const call& c) -> term { return gs::broadcast(c.text(), c.tensors(1)); }},
      {"sum", over(r::sum)},
      {"max", over(r::max)},
      {"min", over(r::min)},
      {"prod", over(r::prod)},
      {"mean", [](const call& c) -> term { return c.count() > 1 ? gs::mean(c.text(), c.x(1)) : gs::mean(c.x()); }},
      {"logsumexp", [](const call& c) -> term { return gs::logsumexp(c.text(), c.x(1)); }},
      {"argmax", [](const call& c) -> term { return gs::argmax(c.text(), c.x(1)); }},
      {"argmin", [](const call& c) -> term { return gs::argmin(c.text(), c.x(1)); }},
      {"tanh", pointwise<[](auto v) { return gs::tanh(v); }>()},
      {"exp", pointwise<[](auto v) { return gs::exp(v); }>()},
      {"log", pointwise<[](auto v) { return gs::log(v); }>()},
      {"sqrt", pointwise<[](auto v) { return gs::sqrt(v); }>()},
      {"abs", pointwise<[](auto v) { return gs::abs(v); }>()},
      {"square", pointwise<[](auto v) { return v * v; }>()},
      {"maximum", pointwise2<[](auto v, auto w) { return gs::max(v, w); }>()},
      {"minimum", pointwise2<[](auto v, auto w) { return gs::min(v, w); }>()},
      {"relu", [](const call& c) -> term { return gs::relu(c.x()); }},
      {"less", [](const call& c) -> term { return gs::less(c.x(0), c.x(1)); }},
      {"equal", [](const call& c) -> term { return gs::equal(c.x(0), c.x(1)); }},
      {"select", [](const call& c) -> term { return gs::select(c.x(0), c.x(1), c.x(2)); }},
      {"cast", [](const call& c) -> term { return gs::cast(c.x(0), dtype_called(c.text(1))); }},
      {"stop_gradient", [](const call& c) -> term { return gs::stop_gradient(c.x()); }},
      {"softmax", [](const call& c) -> term { return gs::softmax(c.x()); }},
      {"layer_norm", [](const call& c) -> term { return gs::layer_norm(c.x(0), c.x(1), c.x(2)); }},
      {"cross_entropy", [](const call& c) -> term { return gs::cross_entropy(c.x(0), c.x(1), c.option("smoothing", 0.0)); }},
      {"merge_dims", [](const call& c) -> term { return gs::detail::emit_merge(c.x(), c.integer(1)); }},
      {"split_dim", [](const call& c) -> term { return gs::split_dim(c.x(), c.integer(1), c.integer(2), c.integer(3)); }},
      {"expand_dims", [](const call& c) -> term { return gs::expand_dims(c.x(), c.integer(1)); }},
      {"slice", [](const call& c) -> term {
         return gs::slice(c.x(), c.integer(1), c.integer(2), c.integer(3), c.option("stride", 1));
       }},
      {"pad", [](const call& c) -> term {
         return gs::pad(c.x(), c.integer(1), c.integer(2), c.integer(3), c.option("interior", 0), c.option("fill", 0.0));
       }},
      {"reverse", [](const call& c) -> term { return gs::reverse(c.x(), c.integer(1)); }},
      {"roll", [](const call& c) -> term { return gs::roll(c.x(), c.integer(1), c.integer(2)); }},
      {"concat", [](const call& c) -> term { return gs::concat(c.tensors_of(0), c.integer(1)); }},
      {"cumsum", [](const call& c) -> term {
         return gs::cumsum(c.x(), c.option("dim", -1), c.option("exclusive", false), c.option("reverse", false));
       }},
      {"sort", [](const call& c) -> term { return record(gs::sort(c.x(), c.option("dim", -1), c.option("descending", false))); }},
      {"top_k", [](const call& c) -> term {
         return record(gs::top_k(c.x(), c.integer(1), c.option("dim", -1), c.option("largest", true)));
       }},
      {"gather", [](const call& c) -> term { return gs::gather(c.x(0), c.x(1), c.option("dim", 0), c.option("batch", 0)); }},
      {"scatter_add", [](const call& c) -> term {
         return gs::scatter_add(c.x(0), c.x(1), c.x(2), c.option("dim", 0), c.option("batch", 0));
       }},
      {"dynamic_slice", [](const call& c) -> term { return gs::dynamic_slice(c.x(0), c.integer(1), c.x(2), c.integer(3)); }},
      {"dynamic_update_slice", [](const call& c) -> term { return gs::dynamic_update_slice(c.x(0), c.x(1), c.integer(2), c.x(3)); }},
      {"iota", [](const call& c) -> term {
         return gs::detail::emit_iota(c.m.owner(), c.m.owner().dims_of(c.text(), "iota"), c.option("along", 0));
       }},
      {"one_hot", one_hot},
      {"conv", conv},
      {"sum_pool", [](const call& c) -> term { return gs::sum_pool(c.x(), c.pool_windows()); }},
      {"mean_pool", [](const call& c) -> term { return gs::mean_pool(c.x(), c.pool_windows()); }},
      {"max_pool", [](const call& c) -> term { return gs::max_pool(c.x(), c.pool_windows()); }},
      {"min_pool", [](const call& c) -> term { return gs::min_pool(c.x(), c.pool_windows()); }},
      {"uniform", [](const call& c) -> term { return random(c, false); }},
      {"normal", [](const call& c) -> term { return random(c, true); }},
      {"dropout", [](const call& c) -> term { return gs::dropout(c.x(), c.number(1)); }},
      {"attention", [](const call& c) -> term {
         return gs::attention(c.x(0), c.x(1), c.x(2), {.causal = c.option("causal", false), .mask = c.tensor_option("mask")});
       }},
      {"top_k_gating", top_k_gating},
      {"scan", scan},
      {"clip_by_global_norm", [](const call& c) -> term { return gs::clip_by_global_norm(c.tensors_of(0), c.number(1)); }},
      {"gradients", [](const call& c) -> term { return gs::gradients(c.x(0), c.tensors(1)); }},
      {"gradient", [](const call& c) -> term { return gs::gradients(c.x(0), c.tensors(1))[0]; }},
      {"item", [](const call& c) -> term { return c.at(0, term::kind::list, "a list").list.at(std::size_t(c.integer(1))); }},
      {"adam", [](const call& c) -> term {  // adam(p, gradient, rate)
         gs::adam{.beta1 = c.option("beta1", 0.9), .beta2 = c.option("beta2", 0.98), .epsilon = c.option("epsilon", 1e-9),
                  .weight_decay = c.option("decay", 0.0)}
             .update(c.m, c.x(0), c.x(1), c.x(2));
         return {};
       }},
  };
  return table;
}

}  // namespace detail

/// Evaluates the expressions of a case while its program is traced.
class evaluator {
 public:
  evaluator(const gs::parameter_scope& m, const text_case& c) : m_(m) {
    for (const line& l : c.lines)
      if (l.what == line::kind::function) functions_[l.name] = &l;
  }

  void set(const std::string& name, term value) { known_[name] = std::move(value); }
  term operator()(const expression& e) const { return evaluate(e, known_); }

 private:
  using names = std::map<std::string, term>;
  const gs::parameter_scope& m_;
  names known_;
  std::map<std::string, const line*> functions_;
  mutable int depth_ = 0;  // of calls of functions in functions

  term apply(const std::string& f, std::vector<term> given) const {
    const line& l = *functions_.at(f);
    if (given.size() != l.names.size()) throw bad_case(f + " takes " + std::to_string(l.names.size()) + " operands");
    if (depth_ > 100) throw bad_case(f + " calls itself without end");
    names inner = known_;
    for (std::size_t i = 0; i < given.size(); ++i) inner[l.names[i]] = std::move(given[i]);
    ++depth_;
    const term result = evaluate(l.left, inner);
    --depth_;
    return result;
  }
  term evaluate(const expression& e, const names& known) const {
    term t;
    switch (e.what) {
      case expression::kind::number: return {e.number};
      case expression::kind::text: t.what = term::kind::text; t.text = e.word; return t;
      case expression::kind::list:
        t.what = term::kind::list;
        for (const expression& p : e.parts) t.list.push_back(evaluate(p, known));
        return t;
      case expression::kind::name:
        if (const auto found = known.find(e.word); found != known.end()) return found->second;
        if (!functions_.contains(e.word)) throw bad_case("unknown name " + e.word);
        t.what = term::kind::function;
        t.text = e.word;
        return t;
      case expression::kind::member: {
        const term of = evaluate(e.parts[0], known);
        const auto found = of.members.find(e.word);
        if (found == of.members.end()) throw bad_case("no member " + e.word);
        return found->second;
      }
      case expression::kind::call: break;
    }
    call c{m_, e.word};
    for (std::size_t i = 0; i < e.parts.size(); ++i) {
      term given = evaluate(e.parts[i], known);
      if (e.named[i].empty()) c.given.push_back(std::move(given));
      else c.options[e.named[i]] = std::move(given);
    }
    if (functions_.contains(e.word)) return apply(e.word, std::move(c.given));
    c.apply = [this](const std::string& f, std::vector<term> given) { return apply(f, std::move(given)).tensor; };
    const auto found = detail::verbs().find(e.word);
    if (found == detail::verbs().end()) throw bad_case("unknown verb " + e.word);
    term made = found->second(c);
    for (const auto& [name, value] : c.options)
      if (!c.read.contains(name)) c.fail("no option " + name);
    return made;
  }
};

}  // namespace cases
