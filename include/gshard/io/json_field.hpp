// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A value of a JSON document with its path, for readers of files whose messages name the field.

#include <gshard/exec/process/error.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace gshard { inline namespace v0 { namespace detail {

/// A value of a JSON document. `document` begins its messages: "hardware file 'x.json'". Every function throws `gshard::error` that names
/// the field if the value is of another kind.
class json_field {
 public:
  json_field(const nlohmann::ordered_json& value, std::string document, std::string path = {})
      : value_(value), document_(std::move(document)), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw error(document_ + ": " + (path_.empty() ? what : path_ + ": " + what));
  }
  bool has(const char* name) const { return value_.is_object() && value_.contains(name); }
  json_field operator[](const char* name) const {
    const std::string path = path_.empty() ? name : path_ + "." + name;
    if (!value_.is_object()) fail("is not an object");
    const auto found = value_.find(name);
    if (found == value_.end()) json_field(value_, document_, path).fail("is missing");
    return {*found, document_, path};
  }
  json_field operator[](std::size_t i) const { return {value_[i], document_, path_ + "[" + std::to_string(i) + "]"}; }
  json_field operator[](int i) const { return (*this)[std::size_t(i)]; }  // 0 is also a null pointer
  std::size_t size() const {
    if (!value_.is_array()) fail("is not a list");
    return value_.size();
  }
  /// The number of members of an object.
  std::size_t members() const {
    if (!value_.is_object()) fail("is not an object");
    return value_.size();
  }
  /// Fails if the object has another member than these.
  template <class Names = std::initializer_list<std::string_view>>
  void only(const Names& names) const {
    if (members() == 0) return;
    for (const auto& [name, member] : value_.items()) {
      bool known = false;
      for (const std::string_view n : names) known = known || n == name;
      if (!known) json_field(member, document_, path_.empty() ? name : path_ + "." + name).fail("is not known");
    }
  }
  /// A finite number of at least 0; `is_rate`: above 0.
  double number(bool is_rate = false) const {
    const double x = value_.is_number() ? value_.get<double>() : -1;
    if (!std::isfinite(x) || x < 0 || (is_rate && x <= 0)) fail(is_rate ? "is not a number above 0" : "is not a number of at least 0");
    return x;
  }
  double rate() const { return number(true); }
  double share() const {
    const double x = value_.is_number() ? value_.get<double>() : 2;
    if (!(x >= -1 && x <= 1)) fail("is not a number from -1 to 1");
    return x;
  }
  /// Any number. JSON has no infinities: they are the strings "inf" and "-inf", and NaN is "nan".
  double any_number() const {
    if (value_.is_number()) return value_.get<double>();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::string text = value_.is_string() ? value_.get<std::string>() : "";
    if (text == "inf") return infinity;
    if (text == "-inf") return -infinity;
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    fail("is not a number, \"inf\", \"-inf\" or \"nan\"");
  }
  /// A whole number from `least` to `most`.
  std::int64_t integer(std::int64_t least, std::int64_t most) const {
    const bool fits = value_.is_number_integer() && (!value_.is_number_unsigned() || value_.get<std::uint64_t>() <= INT64_MAX);
    const std::int64_t x = fits ? value_.get<std::int64_t>() : 0;
    if (!fits || x < least || x > most) fail("is not a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return x;
  }
  int count() const {
    const double x = value_.is_number_integer() ? value_.get<double>() : 0;
    if (!(x >= 1 && x <= INT32_MAX / 64)) fail("is not a whole number of at least 1");
    return int(x);
  }
  bool flag() const {
    if (!value_.is_boolean()) fail("is not true or false");
    return value_.get<bool>();
  }
  std::string text() const {
    if (!value_.is_string()) fail("is not a string");
    return value_.get<std::string>();
  }
  /// The index of the field's string among these names.
  template <class Names>
  std::size_t one_of(const Names& names) const {
    const std::string mine = text();
    std::string known;
    std::size_t i = 0;
    for (const std::string_view name : names) {
      if (name == mine) return i;
      known.append(i++ == 0 ? "" : ", ").append(name);
    }
    fail("'" + mine + "' is not one of: " + known);
  }

 private:
  const nlohmann::ordered_json& value_;
  std::string document_, path_;
};

}}}  // namespace gshard::v0::detail
