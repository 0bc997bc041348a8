// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// The parameters and variables of a model: hierarchical names, dims, initial values, shardings and updates, and auxiliary losses.

#include <gshard/core/ir/spec.hpp>
#include <gshard/core/trace/builder.hpp>
#include <gshard/core/trace/call.hpp>
#include <gshard/core/trace/map.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gshard { inline namespace v0 {

/// The initial values of a parameter: `init::zeros`, `init::constant(1)`, `init::normal(0.02)`, `init::fan_in("M")`.
struct init {
  initializer::kind what = initializer::kind::zeros;
  double scale = 0;
  std::string_view over{};

  static constexpr init zeros() { return {}; }
  static constexpr init constant(double c) { return {initializer::kind::constant, c}; }
  static constexpr init normal(double deviation) { return {initializer::kind::normal, deviation}; }
  /// Normal with deviation gain / sqrt(product of the extents of these dims of the parameter).
  static constexpr init fan_in(std::string_view letters, double gain = 1) { return {initializer::kind::normal, gain, letters}; }
};

/// Initial values as the parameter of a declaration. It records the line that declares the tensor.
struct init_here : init {
  std::uint32_t line;
  const char* file;

  constexpr init_here(const init& start = {}, std::uint32_t at_line = __builtin_LINE(), const char* in_file = __builtin_FILE())
      : init(start), line(at_line), file(in_file) {}
};

namespace detail {
/// While it lives, faults have the line of a declaration.
class line_of_declaration {
 public:
  constexpr line_of_declaration(builder& b, const init_here& at) : builder_(b), before_(b.place) { b.set_place(at.line, at.file); }
  constexpr ~line_of_declaration() { builder_.place = before_; }
  line_of_declaration(const line_of_declaration&) = delete;

 private:
  builder& builder_;
  code_place before_;
};

/// The next value of a variable: its old one if an optimizer skips the step. @see not_finite
constexpr symbol emit_unless_skipped(symbol variable, symbol next) {
  using namespace arithmetic;
  builder& b = *variable.owner;
  if (b.failed() || b.skipped.id < 0) return next;
  constexpr auto& f = own_function<choose>;
  const dtype type = next.get().type;
  if (!contains(f.types, type)) b.fail_type("update", 1, type, f.types);
  const symbol skipped = type == b.skipped.get().type ? b.skipped : emit_cast(b.skipped, type);
  const short_list all = counting(next.rank());
  return emit_map_of(f, std::array{skipped, variable, next}, std::array{short_list{}, all, all}, next);
}

/// True if these are the arguments of `param` with a partition spec behind the letters.
template <class... Given>
inline constexpr bool declares = false;
template <class Name, class Letters, class... Entries, class Start>
inline constexpr bool declares<Name, Letters, spec<Entries...>, Start> =
    call<3, std::string_view, std::string_view, init>::fits<Name, Letters, Start>;
template <class Name, class Letters, class... Entries, class Start>
inline constexpr bool declares<Name, Letters, spec<Entries...>, Start, dtype> = declares<Name, Letters, spec<Entries...>, Start>;
}  // namespace detail

/// The parameters of a model, with names that scopes prefix. `m.scope("encoder").scope(3).param("wi", "EMH")` is "encoder.3.wi". Models
/// take it as their first argument.
class parameter_scope {
 public:
  constexpr explicit parameter_scope(builder& b, dtype type = dtype::f32) : builder_(&b), type_(type) {}

  constexpr parameter_scope scope(std::string_view name) const {
    parameter_scope m = *this;
    m.prefix_ = full_name(name);
    if (m.prefix_.length == sizeof m.prefix_.text) builder_->fail(fault::name_too_long, name);
    m.prefix_.append(".");
    return m;
  }
  constexpr parameter_scope scope(int index) const {
    if (index < 0) builder_->fail_range("scope", "index", index);
    inplace_name<11> digits;
    for (int unit = 1000000000; unit > 0; unit /= 10)
      if (index >= unit || unit == 1) {
        const char digit = char('0' + index / unit % 10);
        digits.append({&digit, 1});
      }
    return scope(digits.view());
  }

  /// The same scope with another default element type of parameters and variables.
  constexpr parameter_scope with_type(dtype type) const {
    parameter_scope m = *this;
    m.type_ = type;
    return m;
  }

  /// A tensor that is kept from run to run: its name, its dims, its initial values, and optionally its element type. The dims are letters
  /// alone, `"EMH"`, or state the sharding, `"E@expert,M,H"`; a spec behind the letters is the same. A second call with the same name
  /// returns the same tensor. Parameters in half precision (`dtype::bf16`) are cast where they are used. Their gradients are float. Their
  /// initial values are those of float, rounded.
  constexpr symbol param(std::string_view name, std::string_view letters, init_here start) const {
    return param(name, letters, start, type_);
  }
  constexpr symbol param(std::string_view name, std::string_view letters, init_here start, dtype type) const {
    return declare(name, letters, type, start, kept_as::parameter);
  }
  template <class... Entries>
  constexpr symbol param(std::string_view name, std::string_view letters, spec<Entries...>, init_here start) const {
    return declare(name, letters, type_, start, kept_as::parameter, true, spec<Entries...>::named);
  }
  template <class... Entries>
  constexpr symbol param(std::string_view name, std::string_view letters, spec<Entries...>, init_here start, dtype type) const {
    return declare(name, letters, type, start, kept_as::parameter, true, spec<Entries...>::named);
  }
  /// The same with dims of the program in place of letters.
  constexpr symbol param_of_dims(std::string_view name, const dim_list& dims, const named_sharding& layout, const init_here& start) const {
    if (builder_->failed()) return builder_->nothing();
    const detail::line_of_declaration here(*builder_, start);
    require_parameter(name, type_);
    return annotate_parameter(name, declare(full_name(name), dims, type_, start), layout);
  }

  /// A tensor that is kept from run to run and that no optimizer trains, such as a moving average, a bias or a counter. Like a parameter it
  /// has a name, dims, maybe a spec, and initial values; it is in the store and in checkpoints of parameters. It has the element type of
  /// the parameters, or `type`. Within a run it has its old value, even after `update`.
  constexpr symbol variable(std::string_view name, std::string_view letters, init_here start) const {
    return variable(name, letters, start, type_);
  }
  constexpr symbol variable(std::string_view name, std::string_view letters, init_here start, dtype type) const {
    return declare(name, letters, type, start, kept_as::variable);
  }
  template <class... Entries>
  constexpr symbol variable(std::string_view name, std::string_view letters, spec<Entries...>, init_here start) const {
    return declare(name, letters, type_, start, kept_as::variable, true, spec<Entries...>::named);
  }
  template <class... Entries>
  constexpr symbol variable(std::string_view name, std::string_view letters, spec<Entries...>, init_here start, dtype type) const {
    return declare(name, letters, type, start, kept_as::variable, true, spec<Entries...>::named);
  }

  /// A variable that a program fills and later runs read, such as the keys and values of earlier positions in decoding. It is in the store,
  /// but in no checkpoint: saving and loading leave it as it is. In all other respects it is a variable.
  /// Shapes: the dims of the letters.
  /// Communicates: nothing; `update` as for a variable.
  /// Compile time: letters and spec; that a tensor with this name, if there is one, has the same kind, dims, type, spec and initial values.
  /// Throws: nothing.
  /// @see variable, update, nn::language_model_step
  constexpr symbol cache(std::string_view name, std::string_view letters, init_here start) const {
    return cache(name, letters, start, type_);
  }
  constexpr symbol cache(std::string_view name, std::string_view letters, init_here start, dtype type) const {
    return declare(name, letters, type, start, kept_as::cache);
  }
  template <class... Entries>
  constexpr symbol cache(std::string_view name, std::string_view letters, spec<Entries...>, init_here start) const {
    return declare(name, letters, type_, start, kept_as::cache, true, spec<Entries...>::named);
  }
  template <class... Entries>
  constexpr symbol cache(std::string_view name, std::string_view letters, spec<Entries...>, init_here start, dtype type) const {
    return declare(name, letters, type, start, kept_as::cache, true, spec<Entries...>::named);
  }

  /// Sets the value that a variable, or a parameter that no optimizer trains, holds after the run. In the whole program the tensor itself
  /// is the old value. The new one is computed in its memory. If the old one is read later, or a later step may fail, the new one is copied
  /// there at the end. Therefore a run that throws changes nothing.
  /// Communicates: the reshard of `next` to the sharding of the variable; a partial sum is completed.
  /// Compile time: equal dims and element types; that nothing else updates the variable.
  /// @see updated
  constexpr void update(here variable, symbol next) const {
    builder& b = *builder_;
    if (!b.has(variable) || !b.has(next)) return;
    const value old = variable.get();
    if (old.parameter < 0) return b.fail(fault::not_kept, "update");
    if (old.rank() != next.rank()) return b.fail(fault::rank_mismatch, "update", {}, old.rank(), next.rank());
    for (int d = 0; d < old.rank(); ++d)
      if (!b.same_extent(old.dims[d], next.get().dims[d])) return b.fail(fault::dims_differ, "update", {}, 1, d);
    if (old.type != next.get().type) return b.fail_type("update", 1, next.get().type, only(old.type));
    b.set_updated(variable, detail::emit_unless_skipped(variable, next));
  }
  /// The value that a variable or parameter holds after the run, as set so far by `update` or by an optimizer.
  constexpr symbol updated(symbol variable) const {
    builder& b = *builder_;
    if (!b.has(variable)) return b.nothing();
    if (variable.get().parameter < 0) b.fail(fault::not_kept, "updated");
    if (b.failed()) return b.nothing();
    const std::int32_t next = b.program.parameters[std::size_t(variable.get().parameter)].updated;
    return next >= 0 ? symbol{&b, next} : variable;
  }

  /// Optimizer state with the dims of a parameter, initially zero. Its name is the prefix and the name of the parameter. It has the
  /// sharding of the parameter, and is sharded further if the gradient is. It has the element type of the gradient.
  constexpr symbol state(std::string_view prefix, symbol like) const { return state(prefix, like, detail::counting(like.rank())); }
  /// The same with some dims of the parameter.
  constexpr symbol state(std::string_view prefix, symbol like, const short_list& kept) const {
    builder& b = *builder_;
    if (b.failed()) return b.nothing();
    parameter p;
    p.trainable = false;
    p.of_optimizer = true;
    const value copy = like.get();
    if (copy.parameter >= 0) {
      const tensor_name& name = b.program.parameters[std::size_t(copy.parameter)].name;
      if (prefix.size() + name.length > sizeof p.name.text) b.fail(fault::name_too_long, name.view());
      p.name = tensor_name(prefix).append(name.view());
      if (const parameter& of = b.program.parameters[std::size_t(copy.parameter)]; kept.size() > 0 && kept[0] == 0) {
        p.copies_of = of.copies_of;
        p.placed_by = of.placed_by;
      }
    }
    dim_list dims;
    for (int d = 0; d < kept.size(); ++d) dims.push_back(copy.dims[kept[d]]);
    const symbol s = b.add_parameter(p, dims, gradient_type(copy.type));
    sharding& layout = b.program.at(s.id).layout;
    for (int d = 0; d < kept.size(); ++d) layout[d] = copy.layout[kept[d]];
    if (layout.used()) layout.order = copy.layout.order;
    return s;
  }

  /// Adds a scalar term, such as a layer's auxiliary loss, to the objective.
  constexpr void loss(symbol term) const {
    if (builder_->has(term)) builder_->losses.push_back(term);
  }
  /// The sum of all terms given to `loss` so far. There must be at least one.
  constexpr symbol auxiliary(std::uint32_t line = __builtin_LINE(), const char* file = __builtin_FILE()) const {
    builder& b = *builder_;
    if (b.losses.empty()) b.fail(fault::no_terms, "auxiliary");
    if (b.failed()) return b.nothing();
    symbol sum = here(b.losses.front(), line, file);
    const line_of_call kept(b);
    for (std::size_t i = 1; i < b.losses.size(); ++i) sum = sum + b.losses[i];
    return sum;
  }
  /// main + weight * auxiliary(), or main if there is no term.
  constexpr symbol objective(here main, double weight = 1) const {
    const line_of_call kept(*builder_);
    return builder_->losses.empty() ? symbol(main) : main + weight * auxiliary();
  }

  // A wrong call gives one readable error. @see core/trace/call.hpp
  template <class... Given>
    requires(!detail::call<1, std::string_view>::fits<Given...> && !detail::call<1, int>::fits<Given...>)
  constexpr auto scope(const Given&... given) const {
    static_assert(detail::accepts<Given...>, "gshard: m.scope(name) takes a text or a number");
    (void)detail::refused(*this, given...);
    return *this;
  }
  template <class... Given>
    requires(!(detail::call<3, std::string_view, std::string_view, init, dtype>::fits<Given...> || detail::declares<Given...>))
  constexpr auto param(const Given&... given) const {
    static_assert(detail::accepts<Given...>,
                  "gshard: m.param(name, \"M@data,H\", init::zeros()) takes two texts, maybe a spec, an initializer, and maybe an "
                  "element type");
    return detail::refused(*this, given...);
  }
  template <class... Given>
    requires(!(detail::call<3, std::string_view, std::string_view, init, dtype>::fits<Given...> || detail::declares<Given...>))
  constexpr auto variable(const Given&... given) const {
    static_assert(detail::accepts<Given...>,
                  "gshard: m.variable(name, \"M@data,H\", init::zeros()) takes two texts, maybe a spec, an initializer, and maybe an "
                  "element type");
    return detail::refused(*this, given...);
  }
  template <class... Given>
    requires(!(detail::call<3, std::string_view, std::string_view, init, dtype>::fits<Given...> || detail::declares<Given...>))
  constexpr auto cache(const Given&... given) const {
    static_assert(detail::accepts<Given...>,
                  "gshard: m.cache(name, \"M@data,H\", init::zeros()) takes two texts, maybe a spec, an initializer, and maybe an "
                  "element type");
    return detail::refused(*this, given...);
  }
  template <class... Given>
    requires(!detail::call<2, symbol, symbol>::fits<Given...>)
  constexpr auto update(const Given&... given) const {
    static_assert(detail::accepts<Given...>, "gshard: m.update(variable, next) takes a variable and its next value, a tensor of a program");
    (void)detail::refused(*this, given...);
  }
  template <class... Given>
    requires(!detail::call<1, symbol>::fits<Given...>)
  constexpr auto updated(const Given&... given) const {
    static_assert(detail::accepts<Given...>, "gshard: m.updated(variable) takes a variable or a parameter of the program");
    return detail::refused(*this, given...);
  }
  template <class... Given>
    requires(!detail::call<2, std::string_view, symbol, short_list>::fits<Given...>)
  constexpr auto state(const Given&... given) const {
    static_assert(detail::accepts<Given...>, "gshard: m.state(prefix, parameter) takes a text and a tensor of a program");
    return detail::refused(*this, given...);
  }
  template <class... Given>
    requires(!detail::call<1, symbol>::fits<Given...>)
  constexpr auto loss(const Given&... given) const {
    static_assert(detail::accepts<Given...>, "gshard: m.loss(term) takes one tensor of a program, a scalar");
    return detail::refused(*this, given...);
  }
  template <class... Given>
    requires(!detail::call<1, symbol, double>::fits<Given...>)
  constexpr auto objective(const Given&... given) const {
    static_assert(detail::accepts<Given...>, "gshard: m.objective(main, weight = 1) takes a scalar tensor of a program and a number");
    return detail::refused(*this, given...);
  }

  constexpr builder& owner() const { return *builder_; }
  constexpr dtype type() const { return type_; }

 private:
  enum class kept_as : std::uint8_t { parameter, variable, cache };
  static constexpr named_sharding no_spec{};
  builder* builder_;
  dtype type_;
  tensor_name prefix_;

  /// Reports a parameter of a type that optimizers do not train.
  constexpr void require_parameter(std::string_view name, dtype type) const {
    constexpr auto is_trained = [](dtype t) { return is_real(gradient_type(t)); };
    if (!builder_->failed() && !is_trained(type)) builder_->fail_type("param", full_name(name).view(), type, types_with(is_trained));
  }
  constexpr symbol declare(std::string_view name, std::string_view dims, dtype type, const init_here& start, kept_as kind,
                           bool has_spec = false, const named_sharding& layout = no_spec) const {
    builder& b = *builder_;
    if (b.failed()) return b.nothing();
    const detail::line_of_declaration here(b, start);
    if (kind == kept_as::parameter) require_parameter(name, type);
    if (!dims_text::names_shardings(dims)) {
      const symbol s = declare_letters(name, dims, type, start, kind);
      return has_spec ? annotate_parameter(name, s, layout) : s;
    }
    const dims_text text(dims);
    if (!text.has_letters()) b.fail(fault::unknown_letter, full_name(name).view(), dims);
    if (has_spec) b.fail(fault::sharded_twice, full_name(name).view());
    return annotate_parameter(name, declare_letters(name, text.letters.view(), type, start, kind), text.sharding);
  }
  constexpr symbol declare_letters(std::string_view name, std::string_view letters, dtype type, const init& start, kept_as kind) const {
    builder& b = *builder_;
    if (b.failed()) return b.nothing();
    const tensor_name full = full_name(name);
    const dim_list dims = b.dims_of(letters, full.view());
    for (char c : start.over)
      if (letters.find(c) == letters.npos) b.fail(fault::foreign_letter, full.view(), {&c, 1});
    return declare(full, dims, type, start, kind);
  }
  constexpr symbol declare(const tensor_name& full, const dim_list& dims, dtype type, const init& start,
                           kept_as kind = kept_as::parameter) const {
    builder& b = *builder_;
    initializer initial;
    initial.what = start.what;
    initial.scale = start.scale;
    initial.fan_in = b.dims_of(start.over, full.view());
    if (const std::int32_t row = b.find_parameter(full); row >= 0) {
      const parameter& p = b.program.parameters[std::size_t(row)];
      const value& known = b.program.at(p.value);
      if (known.dims != dims || known.type != type || p.init != initial || p.trainable != (kind == kept_as::parameter) ||
          p.is_cache != (kind == kept_as::cache))
        b.fail(fault::duplicate_name, full.view());
      return {&b, p.value};
    }
    parameter p;
    p.name = full;
    p.init = initial;
    p.trainable = kind == kept_as::parameter;
    p.is_cache = kind == kept_as::cache;
    return b.add_parameter(p, dims, type);
  }
  constexpr symbol annotate_parameter(std::string_view name, symbol s, const named_sharding& layout) const {
    builder& b = *builder_;
    if (b.failed()) return s;
    const tensor_name full = full_name(name);
    const sharding before = b.program.at(s.id).layout;
    b.program.at(s.id).layout = b.resolve(layout, full.view());
    if (before != sharding::unconstrained(s.rank()) && before != s.get().layout) b.fail(fault::duplicate_name, full.view());
    if (layout.rank != s.rank()) b.fail(fault::rank_mismatch, full.view(), {}, s.rank(), layout.rank);
    if (b.program.at(s.id).layout.partial) b.fail(fault::incomplete_output, full.view());
    return s;
  }

  constexpr tensor_name full_name(std::string_view name) const {
    if (prefix_.length + name.size() > sizeof prefix_.text) builder_->fail(fault::name_too_long, name);
    return tensor_name(prefix_).append(name);
  }
};

}}  // namespace gshard::v0
