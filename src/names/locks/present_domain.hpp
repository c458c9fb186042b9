// The way of a handle whose domain was removed into the domain that has the name now.
#pragma once

#include <memory>

#include "names/file/file.hpp"
#include "names/life/time_limit.hpp"

namespace lockflight::detail {

/// The domain that has the name of `former` now, made if there is none. Null if its removal by
/// another process takes longer than the given time. Throws domain_error (removed) if no domain is
/// the same to this process, and domain_error (system) if the remover does not go on.
[[nodiscard]] std::shared_ptr<domain_file> open_present_domain(const domain_file& former,
                                                               const time_limit& given);

}  // namespace lockflight::detail
