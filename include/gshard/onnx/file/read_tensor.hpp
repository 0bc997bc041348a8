// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Reads a TensorProto: shape, element type, and elements in one of the six places in which ONNX may store them.

#include <gshard/core/base/counting.hpp>
#include <gshard/core/base/packed_list.hpp>
#include <gshard/onnx/file/mapped_file.hpp>
#include <gshard/onnx/file/model.hpp>
#include <gshard/onnx/file/wire.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gshard { inline namespace v0 { namespace onnx {

/// The files of a model, each mapped once.
class data_files {
 public:
  /// `folder`: of the model, with a slash at its end; files are looked for below it. Empty: no file may be opened.
  explicit data_files(std::string folder) : folder_(std::move(folder)) {}

  /// The file at a path relative to the folder. Throws `gshard::error` if the path leaves the folder, or if the file cannot be mapped.
  const std::shared_ptr<const mapped_file>& open(const std::string& location) {
    if (folder_.empty()) throw error("has its elements in the file " + shown(location) + ", but the model has no folder");
    std::string_view rest = location;
    bool leaves = rest.empty() || rest.starts_with('/');
    while (!rest.empty() && !leaves) {
      const std::size_t slash = std::min(rest.find('/'), rest.size());
      leaves = rest.substr(0, slash) == "..";
      rest.remove_prefix(std::min(slash + 1, rest.size()));
    }
    if (leaves) throw error("has its elements in the file " + shown(location) + ", which is not in the folder of the model");
    std::shared_ptr<const mapped_file>& file = files_[location];
    if (!file) file = std::make_shared<const mapped_file>(folder_ + location);
    return file;
  }

 private:
  std::string folder_;
  std::map<std::string, std::shared_ptr<const mapped_file>> files_;

  static std::string shown(std::string_view text) { return '"' + std::string(text.substr(0, 200)) + '"'; }
};

/// Reads one TensorProto.
class tensor_reader {
 public:
  tensor_reader(wire_state& state, data_files& files) : state_(&state), files_(&files) {}

  /// `owner` keeps the bytes of the message.
  model_tensor read(const protozero::pbf_reader& message, std::shared_ptr<const void> owner) {
    std::int64_t type = 0, location = 0;
    made_.owner = std::move(owner);
    for_each_field(message, *state_, [&](wire_field& f) {
      switch (f.tag()) {
        case 1:
          return f.read(made_.shape);
        case 2:
          return f.read(type);
        case 3:
          return state_->fail("is a segment of a tensor");
        case 4:
          return fixed(f, 4);  // float_data
        case 5:
        case 7:
        case 11:
          return varints(f);  // int32_data, int64_data, uint64_data
        case 8:
          return f.read(made_.name);
        case 9:
          return raw(f);
        case 10:
          return fixed(f, 8);  // double_data
        case 13:
          return f.message("external_data", [&](const protozero::pbf_reader& entry) { external(entry); });
        case 14:
          return f.read(location);
        default:
          return f.skip();
      }
    });
    made_.type = element_of(type);
    if (made_.type == element::undefined) fail("has the element type " + std::to_string(type) + ", which gshard does not know");
    finish(location == 1);
    return std::move(made_);
  }

 private:
  wire_state* state_;
  data_files* files_;
  model_tensor made_;
  int sources_ = 0;
  std::span<const std::byte> bytes_;                // of raw data, or of floats
  int bytes_each_ = 0;                              // 0: raw data
  std::shared_ptr<std::vector<std::byte>> copied_;  // of floats in several pieces
  std::vector<std::int64_t> integers_;
  bool has_integers_ = false;
  std::map<std::string, std::string> external_;

  [[noreturn]] void fail(const std::string& why) const {
    state_->fail(made_.name.empty() ? why : '"' + made_.name.substr(0, 200) + "\" " + why);
  }
  static std::span<const std::byte> as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

  void raw(wire_field& f) {
    if (!f.is_bytes()) return f.skip();
    bytes_ = as_bytes(f.view());
    bytes_each_ = 0;
    ++sources_;
  }
  /// A piece of float_data or double_data: a view if it is the only one.
  void fixed(wire_field& f, int each) {
    std::string_view piece;
    char one[8];
    if (f.is_bytes()) {
      piece = f.view();
    } else {
      float number = 0;
      if (each != 4 || !f.is_fixed32()) return f.skip();  // no exporter writes doubles one by one
      f.read(number);
      std::memcpy(one, &number, 4);
      piece = {one, 4};
    }
    if (piece.size() % std::size_t(each) != 0) fail("has a list of numbers that ends in a number");
    const bool first = bytes_each_ == 0 && !copied_;
    if (first) ++sources_;
    if (first && f.is_bytes()) {
      bytes_ = as_bytes(piece);
    } else {
      if (!copied_) copied_ = std::make_shared<std::vector<std::byte>>(bytes_.begin(), bytes_.end());
      const auto more = as_bytes(piece);
      copied_->insert(copied_->end(), more.begin(), more.end());
      bytes_ = *copied_;
    }
    bytes_each_ = each;
  }
  void varints(wire_field& f) {
    if (!has_integers_) ++sources_;
    has_integers_ = true;
    f.read_numbers(integers_);
  }
  void external(const protozero::pbf_reader& entry) {
    std::string key, value;
    for_each_field(entry, *state_, [&](wire_field& f) {
      if (f.tag() == 1)
        f.read(key);
      else if (f.tag() == 2)
        f.read(value);
      else
        f.skip();
    });
    if (!external_.emplace(key, value).second) fail("states the " + key.substr(0, 40) + " of its elements twice");
  }

  /// A number of external_data.
  std::uint64_t number(const char* key, std::uint64_t otherwise) const {
    const auto found = external_.find(key);
    if (found == external_.end()) return otherwise;
    std::uint64_t n = 0;
    const std::string& text = found->second;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (problem != std::errc() || end != text.data() + text.size())
      fail("has an external " + std::string(key) + " that is not a number of 64 bits");
    return n;
  }
  std::span<const std::byte> external_bytes(std::uint64_t wanted) {
    if (!external_.contains("location")) fail("has external elements without a location");
    std::shared_ptr<const mapped_file> file;
    try {
      file = files_->open(external_["location"]);
    } catch (const error& e) {
      fail(std::string(e.what()));
    }
    const std::uint64_t size = file->bytes().size(), from = number("offset", 0);
    if (from > size) fail("has elements that begin at byte " + std::to_string(from) + " of a file of " + std::to_string(size) + " bytes");
    const std::uint64_t length = number("length", std::min(wanted, size - from));
    if (length > size - from)
      fail("has " + std::to_string(length) + " bytes of elements, from byte " + std::to_string(from) + " of a file of " +
           std::to_string(size) + " bytes");
    made_.owner = file;
    return file->bytes().subspan(std::size_t(from), std::size_t(length));
  }

  /// Checks the shape, and finds the elements.
  void finish(bool is_external) {
    if (made_.shape.size() > std::size_t(max_rank)) fail("has more than " + std::to_string(max_rank) + " dims");
    std::int64_t count = 1;
    bool is_empty = false;
    for (const std::int64_t extent : made_.shape) {
      if (extent < 0) fail("has a dim of extent " + std::to_string(extent));
      is_empty = is_empty || extent == 0;
      count = detail::saturating_product(count, std::max<std::int64_t>(extent, 1));
    }
    const std::int64_t size = traits(made_.type).size, bytes = detail::saturating_product(count, std::max<std::int64_t>(size, 1));
    if (bytes == uncountable) fail("has more elements than can be counted");
    if (size == 0) return;  // texts
    const std::int64_t wanted = is_empty ? 0 : bytes;
    if (is_external) {
      made_.data = external_bytes(std::uint64_t(wanted));
    } else if (sources_ > 1) {
      fail("stores its elements in two places");
    } else if (has_integers_) {
      take_integers(is_empty ? 0 : count);
    } else {
      const int each = is_complex(made_.type) ? int(size) / 2 : int(size);
      if (bytes_each_ != 0 && (bytes_each_ != each || !(is_float(made_.type) || is_complex(made_.type)) || is_half(made_.type)))
        fail("has the element type " + onnx::name(made_.type) + ", and stores numbers of another type");
      made_.data = bytes_;
      if (copied_) made_.owner = copied_;
    }
    if (std::int64_t(made_.data.size()) != wanted)
      fail("has " + std::to_string(made_.data.size()) + " bytes of elements, and its shape has " + std::to_string(wanted));
  }
  /// Stores the integers in the element type.
  void take_integers(std::int64_t wanted) {
    const element_traits& t = traits(made_.type);
    if (!is_integer(made_.type) && made_.type != element::boolean && !is_half(made_.type))
      fail("has the element type " + onnx::name(made_.type) + ", and stores integers");
    if (std::int64_t(integers_.size()) != wanted)
      fail("has " + std::to_string(integers_.size()) + " elements, and its shape has " + std::to_string(wanted));
    const auto all = std::make_shared<std::vector<std::byte>>(integers_.size() * std::size_t(t.size));
    for (std::size_t i = 0; i < integers_.size(); ++i) {
      const std::int64_t kept = made_.type == element::boolean ? integers_[i] != 0 : integers_[i];
      std::memcpy(all->data() + i * std::size_t(t.size), &kept, std::size_t(t.size));  // little-endian: the low bytes
    }
    made_.data = *all;
    made_.owner = all;
  }
};

}}}  // namespace gshard::v0::onnx
