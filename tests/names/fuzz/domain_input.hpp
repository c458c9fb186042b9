// What a fuzzer's bytes mean: a domain whose file was written over, or names that a caller gives.
#pragma once

#include <cstdint>
#include <span>

namespace lockflight::test {

/// Makes the domains that inputs are edits of. Forks, so no other thread may exist yet.
void prepare_domain_inputs();

/// Uses a domain as the bytes say. Every call succeeds or throws domain_error: another exception, a
/// crash and a hang are faults.
void use_domain_input(std::span<const std::uint8_t> bytes);

}  // namespace lockflight::test
