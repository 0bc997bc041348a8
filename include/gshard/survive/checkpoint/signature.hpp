// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Keys that sign texts and check signatures: HMAC-SHA-256 and Ed25519, by OpenSSL.

#include <gshard/exec/process/error.hpp>
#include <gshard/exec/process/hex.hpp>
#include <gshard/io/file.hpp>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace gshard { inline namespace v0 {

/// A key from a file. A secret key is refused if anyone but the owner may read or write its file. A public key is refused if anyone else
/// may write it. Copies share the key. Failures throw `gshard::error`.
class signing_key {
 public:
  /// A secret of at least 16 bytes, the whole content of the file: `openssl rand -out key 32`. A PEM file is refused.
  static signing_key hmac(const std::string& path) {
    const std::string secret = content_of(path, 0077, "read or written");
    if (secret.starts_with("-----BEGIN ")) throw error(path + ": is a key in PEM, not a secret; see signing_key::ed25519");
    if (secret.size() < 16) throw error(path + ": a secret key has at least 16 bytes, not " + std::to_string(secret.size()));
    return {EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, nullptr, bytes(secret), secret.size()), path, true, true};
  }
  /// A private key, which signs and checks: `openssl genpkey -algorithm ed25519 -out key.pem`.
  static signing_key ed25519(const std::string& path) {
    const std::string text = content_of(path, 0077, "read or written");
    return {PEM_read_bio_PrivateKey(in(text).get(), nullptr, no_password, nullptr), path, false, true};
  }
  /// A public key, which only checks: `openssl pkey -in key.pem -pubout -out public.pem`.
  static signing_key ed25519_public(const std::string& path) {
    const std::string text = content_of(path, 0022, "written");
    return {PEM_read_bio_PUBKEY(in(text).get(), nullptr, no_password, nullptr), path, false, false};
  }

  bool can_sign() const { return can_sign_; }
  /// "hmac-sha256 " or "ed25519 ", and the signature in hexadecimal digits.
  std::string sign(std::string_view text) const {
    if (!can_sign_) throw error(path_ + ": a public key cannot sign");
    const context by(EVP_MD_CTX_new());
    std::size_t size = 0;
    unsigned char signature[64];
    bool good = by && EVP_DigestSignInit(by.get(), nullptr, is_hmac_ ? EVP_sha256() : nullptr, nullptr, key_.get()) == 1 &&
                EVP_DigestSign(by.get(), nullptr, &size, bytes(text), text.size()) == 1 && size <= sizeof signature;
    good = good && EVP_DigestSign(by.get(), signature, &size, bytes(text), text.size()) == 1;
    if (!good) throw error(path_ + ": OpenSSL cannot sign");
    return algorithm() + detail::hex_of({signature, size});
  }
  /// True if `signature` is the result of sign(text) with this key, or with its private key.
  bool accepts(std::string_view text, std::string_view signature) const {
    if (is_hmac_) {
      const std::string right = sign(text);
      return right.size() == signature.size() && CRYPTO_memcmp(right.data(), signature.data(), right.size()) == 0;
    }
    const std::string begin = algorithm();
    unsigned char given[64];
    if (!signature.starts_with(begin) || signature.size() != begin.size() + 2 * sizeof given) return false;
    const std::string_view digits = signature.substr(begin.size());
    if (!detail::are_hex_digits(digits)) return false;
    const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    for (std::size_t i = 0; i < sizeof given; ++i)
      given[i] = static_cast<unsigned char>(value(digits[2 * i]) * 16 + value(digits[2 * i + 1]));
    const context by(EVP_MD_CTX_new());
    return by && EVP_DigestVerifyInit(by.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
           EVP_DigestVerify(by.get(), given, sizeof given, bytes(text), text.size()) == 1;
  }

 private:
  struct freed {
    void operator()(EVP_MD_CTX* c) const { EVP_MD_CTX_free(c); }
    void operator()(BIO* b) const { BIO_free(b); }
  };
  using context = std::unique_ptr<EVP_MD_CTX, freed>;

  signing_key(EVP_PKEY* key, const std::string& path, bool is_hmac, bool can_sign)
      : key_(key, EVP_PKEY_free), path_(path), is_hmac_(is_hmac), can_sign_(can_sign) {
    if (key == nullptr || (!is_hmac && EVP_PKEY_base_id(key) != EVP_PKEY_ED25519))
      throw error(path + ": is not " +
                  (is_hmac    ? "a secret key"
                   : can_sign ? "a private key of Ed25519 in PEM"
                              : "a public key of Ed25519 in PEM"));
  }
  std::string algorithm() const { return is_hmac_ ? "hmac-sha256 " : "ed25519 "; }
  static const unsigned char* bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
  static std::unique_ptr<BIO, freed> in(const std::string& text) {
    return std::unique_ptr<BIO, freed>(BIO_new_mem_buf(text.data(), int(text.size())));
  }
  static int no_password(char*, int, int, void*) { return -1; }  // instead of a question on the terminal

  static std::string content_of(const std::string& path, mode_t refused, const char* what) {
    constexpr std::int64_t most = 1 << 20;
    const detail::descriptor file(detail::open_file(path, O_RDONLY | O_NONBLOCK));
    struct stat status;
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0) detail::throw_errno(path, "cannot be opened");
    if (!S_ISREG(status.st_mode)) throw error(path + ": is not a regular file");
    if ((status.st_mode & refused) != 0)
      throw error(path + ": a key that others than its owner may have " + what + " is refused; chmod 600 it");
    if (status.st_size > most) throw error(path + ": is too large for a key");
    std::string text(std::size_t(status.st_size), ' ');
    detail::read_at(file, path, 0, std::as_writable_bytes(std::span(text)));
    return text;
  }

  std::shared_ptr<EVP_PKEY> key_;
  std::string path_;
  bool is_hmac_, can_sign_;
};

}}  // namespace gshard::v0
