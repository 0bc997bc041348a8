// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// NumPy files as inputs and outputs of models.

#include <gshard/io/file.hpp>
#include <gshard/io/npy_header.hpp>
#include <gshard/onnx.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace arrays {

namespace gs = gshard;

/// The array of a .npy file, as an input with elements of a type.
inline gs::onnx::model_tensor read_npy(const std::string& path, gs::onnx::element type) {
  const gs::input_file file(path);
  const auto read = [&](std::int64_t at, std::span<std::byte> to) { file.read(at, to); };
  const gs::npy_header header = gs::read_npy_header(path, file.size(), read);
  if (header.column_major && header.shape.size() > 1)
    throw gs::error(path + ": is in column-major (Fortran) order; gshard-onnx reads row-major ones");
  if (gs::onnx::element_of(header.type) != type)
    throw gs::error(path + ": has elements of type " + std::string(gs::name(header.type)) + ", and the model takes " +
                    gs::onnx::name(type));
  gs::onnx::model_tensor t;
  t.name = path;
  t.type = type;
  t.shape = header.shape;
  const auto bytes = std::make_shared<std::vector<std::byte>>(std::size_t(file.size() - header.data_at));
  file.read(header.data_at, *bytes);
  t.data = *bytes;
  t.owner = bytes;
  return t;
}

/// The bytes of a complete tensor, on every process. Collective.
inline std::vector<std::byte> whole(const gs::runtime_tensor& t) {
  const auto bytes_of = [&]<class T>(T) {
    const auto all = gs::to_global<T>(t);
    std::vector<std::byte> bytes(all.size() * sizeof(T));
    for (std::size_t i = 0; i < all.size(); ++i) {
      const T x = all[i];
      std::memcpy(bytes.data() + i * sizeof(T), &x, sizeof(T));
    }
    return bytes;
  };
  switch (t.type()) {
    case gs::dtype::f32:
      return bytes_of(float());
    case gs::dtype::f64:
      return bytes_of(double());
    case gs::dtype::i32:
      return bytes_of(std::int32_t());
    case gs::dtype::i64:
      return bytes_of(std::int64_t());
    case gs::dtype::boolean:
      return bytes_of(bool());
    default:
      throw gs::error("the result " + t.text() + " has elements that gshard-onnx does not write: cast it in the model");
  }
}
/// Writes a complete tensor as a .npy file.
inline void write_npy(const std::string& path, const gs::runtime_tensor& t, std::span<const std::byte> bytes) {
  const std::string header = gs::npy_header_text(t.type(), t.extents());
  gs::atomic_file file(path, 0644);
  file.append(std::as_bytes(std::span(header)));
  file.append(bytes);
  file.commit();
}

}  // namespace arrays
