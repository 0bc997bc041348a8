// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reads messages in the wire format of Protocol Buffers, with protozero.
//
// protozero checks bounds, but neither wire types nor sizes. Here fields with another wire type are skipped as unknown fields. The number
// and the nesting of messages are limited. Every error names a place in the message.

#include <gshard/exec/process/error.hpp>

#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/types.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

static_assert(std::endian::native == std::endian::little, "gshard: elements of ONNX files are read as memory holds them, little-endian");

/// The place in a message that is being read, and what the message may still cost.
class wire_state {
 public:
  static constexpr int most_nesting = 64;
  static constexpr std::size_t most_items = std::size_t(1) << 22;  ///< Messages, texts and numbers of a list that is no tensor.

  [[noreturn]] void fail(const std::string& why) const { throw error((place_.empty() ? "the model" : place_.substr(1)) + " " + why); }
  /// Counts items that are kept.
  void count(std::size_t items = 1) {
    if (items > left_) fail("is the part of the file at which it has more than " + std::to_string(most_items) + " items");
    left_ -= items;
  }
  /// Calls f while the place is extended. An exception keeps the extended place.
  template <class F>
  void inside(const std::string& what, const F& f) {
    const std::size_t before = place_.size();
    if (before < 1000) place_ += '.' + what;
    if (++nesting_ > most_nesting) fail("is nested in more than " + std::to_string(most_nesting) + " messages");
    count();
    f();
    --nesting_;
    place_.resize(before);
  }

 private:
  std::string place_;
  std::size_t left_ = most_items;
  int nesting_ = 0;
};

/// A field of a message.
class wire_field {
 public:
  wire_field(protozero::pbf_reader& at, wire_state& state) : at_(&at), state_(&state) {}

  std::uint32_t tag() const { return at_->tag(); }
  bool is_varint() const { return at_->wire_type() == protozero::pbf_wire_type::varint; }
  bool is_fixed32() const { return at_->wire_type() == protozero::pbf_wire_type::fixed32; }
  bool is_bytes() const { return at_->wire_type() == protozero::pbf_wire_type::length_delimited; }

  void read(std::int64_t& to) {
    if (is_varint())
      to = at_->get_int64();
    else
      at_->skip();
  }
  void read(float& to) {
    if (is_fixed32())
      to = at_->get_float();
    else
      at_->skip();
  }
  void read(std::string& to) {
    if (is_bytes())
      to = std::string(view());
    else
      at_->skip();
  }
  void read(std::vector<std::string>& to) {
    if (!is_bytes()) return at_->skip();
    state_->count();
    to.emplace_back(view());
  }
  /// A list of integers: one element, or several packed ones.
  void read(std::vector<std::int64_t>& to) {
    if (is_varint()) {
      state_->count();
      to.push_back(at_->get_int64());
    } else if (is_bytes()) {
      for (const std::int64_t n : at_->get_packed_int64()) {
        state_->count();
        to.push_back(n);
      }
    } else {
      at_->skip();
    }
  }
  /// The same for the elements of a tensor, which are as many as the file has bytes at most.
  void read_numbers(std::vector<std::int64_t>& to) {
    if (is_varint()) {
      to.push_back(at_->get_int64());
    } else if (is_bytes()) {
      for (const std::int64_t n : at_->get_packed_int64()) to.push_back(n);
    } else {
      at_->skip();
    }
  }
  void read(std::vector<float>& to) {
    if (is_fixed32()) {
      state_->count();
      to.push_back(at_->get_float());
    } else if (is_bytes()) {
      for (const float n : at_->get_packed_float()) {
        state_->count();
        to.push_back(n);
      }
    } else {
      at_->skip();
    }
  }
  /// f(reader of the message), if the field is a message. `name`: for errors.
  template <class F>
  void message(const std::string& name, const F& f) {
    if (!is_bytes()) return at_->skip();
    const protozero::pbf_reader inner = at_->get_message();
    state_->inside(name, [&] { f(inner); });
  }
  std::string_view view() {
    const protozero::data_view bytes = at_->get_view();
    return {bytes.data(), bytes.size()};
  }
  void skip() { at_->skip(); }

 private:
  protozero::pbf_reader* at_;
  wire_state* state_;
};

/// f(field) for all fields of a message. f reads or skips the field.
template <class F>
void for_each_field(protozero::pbf_reader message, wire_state& state, const F& f) {
  while (message.next()) {
    wire_field field(message, state);
    f(field);
  }
}

}}}  // namespace gshard::v0::onnx
