// With `lockflight run --follow`: the result of another run of the name, with which this run ends
// instead of running COMMAND.
#pragma once

#include <cstdint>
#include <optional>

#include "cli/run_result.hpp"

namespace lockflight::cli {

class followed_result {
 public:
  enum class answer : std::uint8_t {
    nothing,  ///< this run has to do the work, or to wait for the run that does it
    found,    ///< result() is that of the work
    none,     ///< etcd has not answered in time
  };
  /// Looks for the result of a run that has ended since the first look, or has done the work of the
  /// period that counts as done until then. Throws domain_error.
  [[nodiscard]] answer look(named_handle& of, std::optional<wall_seconds> done_until,
                            limit patience);
  /// After `found`.
  [[nodiscard]] const run_result& result() const { return *result_; }

 private:
  std::optional<std::uint64_t> token_at_first_;  // of the result that was there at the first look
  std::optional<run_result> result_;
};

}  // namespace lockflight::cli
