#include "names/agent/link/tls.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sslerr.h>

#include <stdexcept>

namespace lockflight::cluster::link {
namespace {

constexpr const char* suite = "TLS_AES_128_GCM_SHA256";
constexpr std::array<std::uint8_t, 2> suite_code{0x13, 0x01};

int key_index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

const shared_key& key_of(SSL* connection) {
  return *static_cast<const shared_key*>(
      SSL_CTX_get_ex_data(SSL_get_SSL_CTX(connection), key_index()));
}

/// An OpenSSL session is here the key with the cipher that it is for. The caller owns it.
SSL_SESSION* session_with(SSL* connection, const shared_key& key) {
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(connection, suite_code.data());
  SSL_SESSION* const session = SSL_SESSION_new();
  if (cipher != nullptr && session != nullptr &&
      SSL_SESSION_set1_master_key(session, key.key.data(), key.key.size()) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
    return session;
  SSL_SESSION_free(session);
  return nullptr;
}

/// The dialer's: which key to use.
int use_key(SSL* connection, const EVP_MD* hash, const unsigned char** identity, std::size_t* size,
            SSL_SESSION** session) {
  // Asked a second time, OpenSSL says which hash it needs: with no key for it, none is used.
  if (hash != nullptr && EVP_MD_get_type(hash) != NID_sha256) {
    *session = nullptr;
    return 1;
  }
  const shared_key& key = key_of(connection);
  *session = session_with(connection, key);
  if (*session == nullptr) return 0;
  *identity = reinterpret_cast<const unsigned char*>(key.domain.data());
  *size = key.domain.size();
  return 1;
}

/// The acceptor's: the key of that identity. Without one the handshake fails, as there is no
/// certificate either.
int find_key(SSL* connection, const unsigned char* identity, std::size_t size,
             SSL_SESSION** session) {
  const shared_key& key = key_of(connection);
  *session = nullptr;
  if (size != key.domain.size() || CRYPTO_memcmp(identity, key.domain.data(), size) != 0) return 1;
  *session = session_with(connection, key);
  return *session == nullptr ? 0 : 1;
}

}  // namespace

void set_up(SSL_CTX* context, tls_side side, const shared_key& key) {
  if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context, suite) != 1 || SSL_CTX_set_num_tickets(context, 0) != 1 ||
      SSL_CTX_set_ex_data(context, key_index(), const_cast<shared_key*>(&key)) != 1)
    throw std::runtime_error("OpenSSL lacks TLS 1.3 with " + std::string(suite));
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  if (side == tls_side::dialer) {
    // An acceptor that shows a certificate, of whomever, has not shown that it has the key.
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_psk_use_session_callback(context, &use_key);
  } else {
    SSL_CTX_set_psk_find_session_callback(context, &find_key);
  }
}

handshake_fault fault_of(tls_side side, int reason) {
  if (side == tls_side::acceptor) {
    if (reason == SSL_R_BINDER_DOES_NOT_VERIFY) return handshake_fault::wrong_key;
    if (reason == SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM || reason == SSL_R_NO_SHARED_CIPHER)
      return handshake_fault::wrong_domain;
  } else {
    if (reason == SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER) return handshake_fault::wrong_key;
    if (reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE) return handshake_fault::wrong_domain;
  }
  return handshake_fault::other;
}

}  // namespace lockflight::cluster::link
