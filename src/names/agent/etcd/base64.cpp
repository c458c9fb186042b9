#include "names/agent/etcd/base64.hpp"

#include <openssl/evp.h>

namespace lockflight::cluster {
namespace {

const unsigned char* octets(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* octets(std::string& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '\0');
  // OpenSSL writes a zero behind the text, where a std::string has one.
  EVP_EncodeBlock(octets(text), octets(bytes), static_cast<int>(bytes.size()));
  return text;
}

// OpenSSL counts three bytes for each four digits, those of the padding too, and accepts white
// space around the text and bits that no byte has. So the result is encoded once more and compared.
std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3, '\0');
  if (EVP_DecodeBlock(octets(bytes), octets(text), static_cast<int>(text.size())) < 0)
    return std::nullopt;
  const std::size_t end = text.find_last_not_of('=');
  const std::size_t padding = end == text.npos ? 0 : text.size() - 1 - end;
  if (padding > bytes.size()) return std::nullopt;
  bytes.resize(bytes.size() - padding);
  if (to_base64(bytes) != text) return std::nullopt;
  return bytes;
}

}  // namespace lockflight::cluster
