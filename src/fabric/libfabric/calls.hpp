// libfabric's objects and error codes in C++.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <memory>
#include <string>

#include "lockflight/fabric/wired.hpp"

namespace lockflight::libfabric::detail {

/// Calls of libfabric return 0 or more, or a negative code.
inline void check(ssize_t code, const char* call) {
  if (code < 0)
    throw wired::unavailable(std::string("libfabric: ") + call +
                             " failed: " + fi_strerror(static_cast<int>(-code)));
}

struct close_object {
  template <class Object>
  void operator()(Object* o) const {
    fi_close(&o->fid);
  }
};
/// Owns an object of libfabric.
template <class Object>
using owned = std::unique_ptr<Object, close_object>;

/// Owns what a call makes: `made<fid_av>("fi_av_open", [&](fid_av** to) { return fi_av_open(…);
/// })`.
template <class Object, class Call>
[[nodiscard]] owned<Object> made(const char* name, Call call) {
  Object* object = nullptr;
  check(call(&object), name);
  return owned<Object>(object);
}

}  // namespace lockflight::libfabric::detail
