// The entry points of libFuzzer.
#include <cstddef>
#include <cstdint>

#include "tests/names/fuzz/domain_input.hpp"

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  lockflight::test::prepare_domain_inputs();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lockflight::test::use_domain_input({data, size});
  return 0;
}
