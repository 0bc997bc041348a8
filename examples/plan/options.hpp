// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "request.hpp"
#include "scanner.hpp"
#include "shape.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

// The options of subcommands, and their values.
namespace planning {

/// The settings that all subcommands share.
struct setting {
  gs::mesh_shape mesh;
  gs::dtype type = gs::dtype::f32;
  bool keep_partial = false;
  std::int64_t loop_above = gs::compile_options{}.loop_bytes;
};

/// An option of a subcommand. Its key is its first name, without the dashes.
struct option {
  enum class takes { nothing, text, texts };

  std::string names;  // "--dims,--axis"; without dashes: a positional argument
  std::string what;
  takes kind = takes::text;
  bool required = false;

  std::string key() const {
    const std::string first = names.substr(0, names.find(','));
    return first.starts_with("--") ? first.substr(2) : first;
  }
};

/// "1,0", "-1"
inline std::vector<std::int64_t> parse_numbers(std::string_view what, std::string_view text) {
  std::vector<std::int64_t> list;
  scanner in(what, text, "1,0");
  do list.push_back(in.integer());
  while (in.accept(","));
  in.expect_end();
  return list;
}

/// The values of the options of a subcommand.
class arguments {
 public:
  setting on;

  void add(const std::string& key, std::string text) { texts_[key].push_back(std::move(text)); }

  bool has(const std::string& key) const { return texts_.contains(key); }
  const std::vector<std::string>& all(const std::string& key) const {
    if (!has(key)) throw refusal("--" + key + " is missing: see --help");
    return texts_.at(key);
  }
  const std::string& text(const std::string& key) const {
    if (all(key).size() > 1) throw refusal("--" + key + " is given twice: give it once");
    return all(key).front();
  }

  shape tensor(const std::string& key) const { return parse_shape(text(key), on.mesh); }
  std::vector<shape> tensors(const std::string& key) const {
    std::vector<shape> list;
    for (const std::string& t : all(key)) list.push_back(parse_shape(t, on.mesh));
    return list;
  }

  /// The number of --key, from `least` to `most`.
  std::int64_t number(const std::string& key, std::optional<std::int64_t> otherwise, std::int64_t least, std::int64_t most) const {
    if (otherwise && !has(key)) return *otherwise;
    const std::vector<std::int64_t> list = numbers(key);
    if (list.size() != 1) throw refusal("--" + key + " " + text(key) + ": give one number");
    return within(key, list[0], least, most);
  }
  double real(const std::string& key, double otherwise) const {
    if (!has(key)) return otherwise;
    const std::string& t = text(key);
    double value = 0;
    const auto [next, problem] = std::from_chars(t.data(), t.data() + t.size(), value);
    if (problem != std::errc() || next != t.data() + t.size() || std::isnan(value))
      throw refusal("malformed --" + key + " \"" + t + "\": expected a number, as in 0.5 or -inf");
    return value;
  }
  /// The index of the value in `words`.
  std::size_t choice(const std::string& key, const std::vector<std::string>& words, std::size_t otherwise) const {
    if (!has(key)) return otherwise;
    const auto at = std::find(words.begin(), words.end(), text(key));
    if (at == words.end()) throw refusal("--" + key + " \"" + text(key) + "\": expected " + one_of(words));
    return std::size_t(at - words.begin());
  }

  /// The dims of --key; negative ones count from the back. Without --key: all dims.
  std::vector<int> dims(const std::string& key, int rank) const {
    std::vector<int> list;
    if (!has(key))
      for (int d = 0; d < rank; ++d) list.push_back(d);
    else if (rank == 0)
      throw refusal("--" + key + " " + text(key) + ": a scalar has no dims");
    else
      for (const std::int64_t d : numbers(key)) {
        list.push_back(int(within(key, d, -rank, rank - 1)));
        if (list.back() < 0) list.back() += rank;
        if (std::count(list.begin(), list.end(), list.back()) > 1)
          throw refusal("--" + key + " " + text(key) + " names dim " + std::to_string(list.back()) + " twice: name it once");
      }
    return list;
  }
  /// One dim.
  int dim(const std::string& key, int rank, int otherwise) const {
    if (rank == 0) throw refusal("a scalar has no dim for this operation: give --in at least one extent");
    const std::vector<int> list = has(key) ? dims(key, rank) : std::vector<int>{otherwise < 0 ? otherwise + rank : otherwise};
    if (list.size() != 1) throw refusal("--" + key + " " + text(key) + ": give one dim");
    return list[0];
  }

  /// Refuses a single number if it could apply to several dims.
  void check_dims_said(const std::string& key, int rank) const {
    if (has(key) && !has("dims") && rank > 1 && numbers(key).size() == 1)
      throw refusal("--" + key + " " + text(key) + ": give one number per dim, or say with --dims which dim it is for");
  }

  /// The values of --key for every dim. They apply to --dims, in that order, or without it to all dims. A single number applies to each of
  /// --dims, or without it to each of `alone`, unless that is empty.
  std::vector<std::int64_t> per_dim(const std::string& key, std::vector<std::int64_t> otherwise, std::int64_t least, std::int64_t most,
                                    const std::vector<int>& alone = {}) const {
    if (!has(key)) return otherwise;
    std::vector<int> of = dims("dims", int(otherwise.size()));
    std::vector<std::int64_t> list = numbers(key);
    if (list.size() == 1) {
      if (!has("dims") && !alone.empty()) of = alone;
      list.resize(of.size(), list[0]);
    }
    if (list.size() != of.size())
      throw refusal("--" + key + " " + text(key) + " has " + std::to_string(list.size()) + " numbers for " + std::to_string(of.size()) +
                    (of.size() == 1 ? " dim" : " dims") + ": give one per dim, or one for all of them");
    for (std::size_t i = 0; i < of.size(); ++i) otherwise[std::size_t(of[i])] = within(key, list[i], least, most);
    return otherwise;
  }

 private:
  std::map<std::string, std::vector<std::string>> texts_;

  std::vector<std::int64_t> numbers(const std::string& key) const { return parse_numbers("--" + key, text(key)); }
  static std::string one_of(const std::vector<std::string>& words) {
    std::string s;
    for (std::size_t i = 0; i < words.size(); ++i) s += (i == 0 ? "" : i + 1 < words.size() ? ", " : " or ") + words[i];
    return s;
  }
  static std::int64_t within(const std::string& key, std::int64_t n, std::int64_t least, std::int64_t most) {
    if (n < least || n > most)
      throw refusal("--" + key + " " + std::to_string(n) + ": expected a number from " + std::to_string(least) + " to " +
                    std::to_string(most));
    return n;
  }
};

/// A subcommand: its name, its options, and the request that it makes of its arguments.
struct command {
  std::string name, what;
  std::string example;  // its arguments as on the command line
  std::vector<option> options;
  request (*make)(const arguments&);
};

// Options that many subcommands have.
inline option operand_option(const std::string& what = "shape of the operand") {
  return {"--in", what, option::takes::text, true};
}
inline option operands_option(const std::string& what) {
  return {"--in", what, option::takes::texts, true};
}
inline option output_option() {
  return {"--out", "shape of the result with its layout; without it, it lies as comes cheapest"};
}
inline option dim_option(const std::string& otherwise) {
  return {"--dim,--axis,--dims,--axes", "the dim; negative ones count from the back (" + otherwise + ")"};
}
inline option dims_option(const std::string& what) {
  return {"--dims,--dim,--axis,--axes", what + "; negative ones count from the back"};
}

/// The limit of window offsets, strides and so on: the planner stores them in 32 bits.
inline constexpr std::int64_t most_of_window = 1'000'000'000;

namespace detail {
/// A request for operands of the requested element type.
inline request start(const arguments& a, const std::vector<shape>& inputs) {
  request r;
  r.mesh = a.on.mesh;
  r.keep_partial = a.on.keep_partial;
  r.loop_above = a.on.loop_above;
  for (const shape& s : inputs) r.inputs.push_back({s, a.on.type});
  if (a.has("out")) r.output = a.tensor("out");
  return r;
}
}  // namespace detail

}  // namespace planning
