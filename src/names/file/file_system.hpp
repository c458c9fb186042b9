// The file systems in which a domain cannot lie. Participants of a domain rely on the kernel of one
// machine: on shared mappings of one memory, and on locks of bytes that end with their process.
// Network file systems, and those of another program, have other ones or none.
#pragma once

#include <string_view>

namespace lockflight::detail {

/// "NFS", of a type that statfs(2) has given; empty if a domain can lie there.
[[nodiscard]] std::string_view name_of_unusable_file_system(long type) noexcept;

}  // namespace lockflight::detail
