// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// SHA-256 of a stream of bytes, by OpenSSL.

#include <gshard/exec/process/error.hpp>
#include <gshard/exec/process/hex.hpp>

#include <openssl/evp.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace gshard { inline namespace v0 {

/// SHA-256 of a stream of bytes. It is infeasible to find other bytes with the same digest.
/// Throws `gshard::error` if OpenSSL fails.
class sha256 {
 public:
  static constexpr std::size_t hex_digits = 64;

  sha256() : state_(EVP_MD_CTX_new()) { check(state_ != nullptr && EVP_DigestInit_ex(state_.get(), EVP_sha256(), nullptr) == 1); }

  void add(std::span<const std::byte> data) { check(EVP_DigestUpdate(state_.get(), data.data(), data.size()) == 1); }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }

  /// The digest of the bytes added so far: 64 lower-case digits, as `sha256sum` prints them.
  std::string hex() const {
    const std::unique_ptr<EVP_MD_CTX, freed> copy(EVP_MD_CTX_new());
    unsigned char digest[hex_digits / 2];
    check(copy != nullptr && EVP_MD_CTX_copy_ex(copy.get(), state_.get()) == 1 && EVP_DigestFinal_ex(copy.get(), digest, nullptr) == 1);
    return detail::hex_of(digest);
  }

 private:
  struct freed {
    void operator()(EVP_MD_CTX* state) const { EVP_MD_CTX_free(state); }
  };
  static void check(bool succeeded) {
    if (!succeeded) throw error("SHA-256: OpenSSL failed");
  }

  std::unique_ptr<EVP_MD_CTX, freed> state_;
};

/// SHA-256 of some bytes, as 64 lower-case digits.
inline std::string sha256_of(std::span<const std::byte> data) {
  sha256 hash;
  hash.add(data);
  return hash.hex();
}
inline std::string sha256_of(std::string_view text) { return sha256_of(std::as_bytes(std::span(text))); }

}}  // namespace gshard::v0
