#include "bindings/c/error.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace {

// The text has a fixed size, so that a thread that is out of memory can report it.
thread_local std::array<char, 1024> last_error{};

}  // namespace

int lockflight_detail_fail(int code, const char* text) {
  const std::size_t length = std::min(std::strlen(text), last_error.size() - 1);
  std::memmove(last_error.data(), text, length);  // the text may be the stored one
  last_error[length] = '\0';
  return code;
}

const char* lockflight_last_error() { return last_error.data(); }

const char* lockflight_version() { return LOCKFLIGHT_VERSION; }

const char* lockflight_error_text(int code) {
  switch (code) {
    case LOCKFLIGHT_OK:
      return "fine";
    case LOCKFLIGHT_BUSY:
      return "another participant has the lock";
    case LOCKFLIGHT_INVALID:
      return "an argument is not accepted";
    case LOCKFLIGHT_UNKNOWN:
      return "no lock or parameter of that name";
    case LOCKFLIGHT_WRONG_KIND:
      return "the lock is of a kind that does not do that";
    case LOCKFLIGHT_NOT_HELD:
      return "this participant does not hold the lock in that way";
    case LOCKFLIGHT_HELD:
      return "this participant holds the lock";
    case LOCKFLIGHT_FULL:
      return "no memory of the participants is left for it";
    case LOCKFLIGHT_RANK_FAILED:
      return "a rank failed";
    case LOCKFLIGHT_ABORTED:
      return "another rank failed";
    case LOCKFLIGHT_UNAVAILABLE:
      return "the system or the MPI lacks what is needed";
    case LOCKFLIGHT_INTERNAL:
      return "a mistake of the library's";
    case LOCKFLIGHT_OWNER_DIED:
      return "the lock is held, and a holder before has died";
    case LOCKFLIGHT_REMOVED:
      return "the domain has been removed";
    case LOCKFLIGHT_INTERRUPTED:
      return "the acquire was interrupted";
    case LOCKFLIGHT_LOST:
      return "the lock is lost: its host was cut off from the cluster, or its domain removed";
    default:
      return "not a code of lockflight";
  }
}
