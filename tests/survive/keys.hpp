// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "../io/scratch.hpp"

#include <openssl/evp.h>
#include <openssl/pem.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

/// Key files for tests.
namespace keys {

inline void write(const std::string& path, const std::string& content) {
  set_content(path, content);
  std::filesystem::permissions(path, std::filesystem::perms(0600));
}

/// A private and a public key of Ed25519.
inline void make_pair(const std::string& secret, const std::string& open) {
  EVP_PKEY* key = nullptr;
  EVP_PKEY_CTX* const maker = EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, nullptr);
  EVP_PKEY_keygen_init(maker);
  EVP_PKEY_keygen(maker, &key);
  EVP_PKEY_CTX_free(maker);
  std::FILE* file = std::fopen(secret.c_str(), "w");
  PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  file = std::fopen(open.c_str(), "w");
  PEM_write_PUBKEY(file, key);
  std::fclose(file);
  EVP_PKEY_free(key);
  for (const std::string& path : {secret, open}) std::filesystem::permissions(path, std::filesystem::perms(0600));
}

}  // namespace keys
