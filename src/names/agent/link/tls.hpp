// The settings of TLS: version 1.3 alone, with a pre-shared key instead of certificates, whose
// identity is the domain's name. Each handshake has a Diffie-Hellman exchange as well, so a key
// that becomes known later opens nothing that was recorded before. There are no session tickets: an
// agent that the key was taken from would get in with one.
#pragma once

#include <openssl/ssl.h>

#include <array>
#include <cstdint>
#include <string>

namespace lockflight::cluster::link {

struct shared_key {
  std::string domain;
  std::array<std::uint8_t, 32> key{};
};

enum class tls_side : std::uint8_t { dialer, acceptor };

/// `key` has to live as long as the context.
void set_up(SSL_CTX* context, tls_side side, const shared_key& key);

/// Says what a failed handshake is about, given OpenSSL's reason.
enum class handshake_fault : std::uint8_t { other, wrong_key, wrong_domain };
[[nodiscard]] handshake_fault fault_of(tls_side side, int reason);

}  // namespace lockflight::cluster::link
