// Errors for C: a code, and a line of text that is stored for the thread.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "lockflight/fabric/shm.hpp"
#include "lockflight/fabric/wired.hpp"
#include "lockflight/lockflight.h"

extern "C" {
/// Stores `text` as the calling thread's last error and returns `code`. Exported for the libraries
/// of the other fabrics alone, which come with this one; it is in no installed header.
int lockflight_detail_fail(int code, const char* text);
}

namespace lockflight::capi {

/// A call that fails with a code of its own.
struct refusal : std::runtime_error {
  refusal(lockflight_code c, const std::string& text) : std::runtime_error(text), code(c) {}
  lockflight_code code;
};

/// The code of the exception that is handled now.
[[gnu::cold]] inline int code_of_exception() noexcept {
  try {
    throw;
  } catch (const refusal& e) {
    return lockflight_detail_fail(e.code, e.what());
  } catch (const std::invalid_argument& e) {
    return lockflight_detail_fail(LOCKFLIGHT_INVALID, e.what());
  } catch (const std::length_error& e) {
    return lockflight_detail_fail(LOCKFLIGHT_FULL, e.what());
  } catch (const shm::run_aborted& e) {
    return lockflight_detail_fail(LOCKFLIGHT_ABORTED, e.what());
  } catch (const shm::rank_failed& e) {
    return lockflight_detail_fail(LOCKFLIGHT_RANK_FAILED, e.what());
  } catch (const wired::run_failed& e) {
    return lockflight_detail_fail(LOCKFLIGHT_RANK_FAILED, e.what());
  } catch (const wired::unavailable& e) {
    return lockflight_detail_fail(LOCKFLIGHT_UNAVAILABLE, e.what());
  } catch (const std::system_error& e) {
    return lockflight_detail_fail(LOCKFLIGHT_UNAVAILABLE, e.what());
  } catch (const std::bad_alloc&) {
    return lockflight_detail_fail(LOCKFLIGHT_UNAVAILABLE, "out of memory");
  } catch (const std::exception& e) {
    return lockflight_detail_fail(LOCKFLIGHT_INTERNAL, e.what());
  } catch (...) {
    return lockflight_detail_fail(LOCKFLIGHT_INTERNAL, "an exception of unknown type");
  }
}

/// Runs the body of a C function. It returns a code; an exception becomes one.
template <class Call>
[[gnu::always_inline]] inline int guarded(Call call) noexcept {
  try {
    return call();
  } catch (...) {
    return code_of_exception();
  }
}

[[noreturn, gnu::cold]] inline void refuse_null(const char* argument, const char* accepted) {
  throw std::invalid_argument(std::string(argument) + " NULL (accepted: " + accepted + ")");
}

/// Throws if the pointer is NULL: "mutex NULL (accepted: …)".
template <class T>
T& need(T* given, const char* argument, const char* accepted) {
  if (given == nullptr) [[unlikely]]
    refuse_null(argument, accepted);
  return *given;
}

}  // namespace lockflight::capi
