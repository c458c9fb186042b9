#include "names/agent/process/ttl_note.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "base/number.hpp"
#include "base/visible_text.hpp"

namespace lockflight::cluster {

using std::chrono::milliseconds;

std::optional<milliseconds> ttl_in(const std::optional<etcd_note>& note,
                                   const std::string& domain) {
  if (!note) return std::nullopt;
  const auto read = read_number<std::int64_t>(note->text);
  if (read && milliseconds(*read) >= least_ttl && milliseconds(*read) <= most_ttl)
    return milliseconds(*read);
  throw std::runtime_error(
      fmt::format("etcd: the note '{}' of domain {} is {} (accepted: {} to {}, in milliseconds)",
                  ttl_note, domain, in_quotes(note->text), least_ttl.count(), most_ttl.count()));
}

}  // namespace lockflight::cluster
