// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gshard/survive/checkpoint/signature.hpp>

#include "../keys.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

namespace gs = gshard;
namespace fs = std::filesystem;

TEST_CASE("signing_key: HMAC-SHA-256, test case 3 of RFC 4231") {
  const scratch dir;
  keys::write(dir / "key", std::string(20, '\xaa'));
  CHECK(gs::signing_key::hmac(dir / "key").sign(std::string(50, '\xdd')) ==
        "hmac-sha256 773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
}

TEST_CASE("signing_key: accepts what was signed with it, and nothing else") {
  const scratch dir;
  keys::write(dir / "secret", std::string(32, 'k'));
  keys::write(dir / "other secret", std::string(32, 'l'));
  keys::make_pair(dir / "private.pem", dir / "public.pem");
  keys::make_pair(dir / "private2.pem", dir / "public2.pem");
  const auto hmac = gs::signing_key::hmac(dir / "secret"), other = gs::signing_key::hmac(dir / "other secret");
  const auto secret = gs::signing_key::ed25519(dir / "private.pem"), open = gs::signing_key::ed25519_public(dir / "public.pem");
  const auto open2 = gs::signing_key::ed25519_public(dir / "public2.pem");
  const std::string text = "some text", h = hmac.sign(text), e = secret.sign(text);
  CHECK(hmac.accepts(text, h));
  CHECK(secret.accepts(text, e));
  CHECK(open.accepts(text, e));
  CHECK_FALSE(other.accepts(text, h));
  CHECK_FALSE(open2.accepts(text, e));
  CHECK_FALSE(hmac.accepts(text, e));
  CHECK_FALSE(open.accepts(text, h));
  CHECK_FALSE(hmac.accepts("some Text", h));
  CHECK_FALSE(open.accepts("some Text", e));
  for (const std::string& good : {h, e})
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = bad[i] == 'a' ? 'b' : 'a';
      CHECK_FALSE((good == h ? hmac : open).accepts(text, bad));
      CHECK_FALSE((good == h ? hmac : open).accepts(text, good.substr(0, i)));
    }
  CHECK(secret.can_sign());
  CHECK_FALSE(open.can_sign());
  CHECK(contains(complaint([&] { open.sign(text); }), "a public key cannot sign"));
}

TEST_CASE("signing_key: files that others may use, and files of another kind, are refused") {
  const scratch dir;
  keys::write(dir / "secret", std::string(32, 'k'));
  keys::make_pair(dir / "private.pem", dir / "public.pem");
  for (const unsigned mode : {0640u, 0604u, 0660u, 0602u}) {
    fs::permissions(dir / "secret", fs::perms(mode));
    fs::permissions(dir / "private.pem", fs::perms(mode));
    CHECK(contains(complaint([&] { gs::signing_key::hmac(dir / "secret"); }), "may have read or written is refused"));
    CHECK(contains(complaint([&] { gs::signing_key::ed25519(dir / "private.pem"); }), "may have read or written is refused"));
  }
  fs::permissions(dir / "public.pem", fs::perms(0644));
  gs::signing_key::ed25519_public(dir / "public.pem");
  fs::permissions(dir / "public.pem", fs::perms(0664));
  CHECK(contains(complaint([&] { gs::signing_key::ed25519_public(dir / "public.pem"); }), "may have written is refused"));
  keys::write(dir / "short", std::string(15, 'k'));
  CHECK(contains(complaint([&] { gs::signing_key::hmac(dir / "short"); }), "at least 16 bytes, not 15"));
  keys::write(dir / "in_pem", "-----BEGIN PRIVATE KEY-----\n0123456789abcdef\n");
  CHECK(contains(complaint([&] { gs::signing_key::hmac(dir / "in_pem"); }), "is a key in PEM, not a secret"));
  keys::write(dir / "text", "no key");
  CHECK(contains(complaint([&] { gs::signing_key::ed25519(dir / "text"); }), "is not a private key of Ed25519"));
  CHECK(contains(complaint([&] { gs::signing_key::ed25519_public(dir / "text"); }), "is not a public key of Ed25519"));
  CHECK(contains(complaint([&] { gs::signing_key::hmac(dir / "none"); }), "cannot be opened"));
  CHECK(contains(complaint([&] { gs::signing_key::hmac(dir / ""); }), "is not a regular file"));
}
