// Orders about the holds of other processes, for an operator's tools: to break a hold, and to
// release one that `lockflight hold` keeps. `lockflight break` and `lockflight release` are made of
// these.
//
// A hold that is broken or released comes to its end (named_handle::ending), which its holder is
// told as a loss. The lock is free only when the holder has released it or has ended, so no order
// makes two holders. An order is for the holds that are there when it is given: it never reaches a
// later hold of the same thread, however late it arrives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <chrono>
#include "lockflight/domain.hpp"

namespace lockflight {

struct hold_order {
  enum class kind : std::uint8_t {
    ends,      ///< the holders are told that their holds are broken
    kills,     ///< SIGKILL for the processes of the holders
    releases,  ///< a hold that `lockflight hold` keeps ends, if it has that token
  };
  kind what = kind::ends;
  std::string name = "";    ///< of a lock or a semaphore, of which all units are meant
  std::uint64_t token = 0;  ///< for `releases`
  /// The holds that are meant, by lock_user::hold; a hold of another number is left. Without any,
  /// `kills` is about none, and the other orders are about all.
  std::vector<std::uint64_t> holds = {};
  std::string by = "";  ///< who gives the order, for the logs of the agents
};

/// One of the holders that an order found.
struct ordered_hold {
  enum class result : std::uint8_t {
    told,           ///< the hold ends now; its holder sees that, and is woken up if it watches
    killed,         ///< SIGKILL was sent
    gone,           ///< the holder has released or ended
    not_permitted,  ///< this process, or the agent of that host, may not send the signal
    elsewhere,      ///< its process is of another PID namespace, and has no number in this one
    other_token,    ///< kept with another token, which is that of the user here
    not_kept,       ///< its holder is no process of `lockflight hold`
  };
  lock_user user;
  result how = result::told;
};
/// "told", "not_permitted": as agents and JSON have it.
[[nodiscard]] std::string_view text_of(ordered_hold::result how);

class domain_operator {
 public:
  explicit domain_operator(domain in) : in_(std::move(in)) {}

  /// Gives the order about the holds on this host, by the rights of this process, and in a
  /// cluster's domain has the agents give it on the other hosts. An agent kills only in a domain of
  /// mode 0600. `silent`, if it is given, gets the hosts that did not answer. Returns after
  /// `at_most`. Throws domain_error.
  [[nodiscard]] std::vector<ordered_hold> order(
      const hold_order& what, std::vector<std::string>* silent = nullptr,
      std::chrono::milliseconds at_most = hosts_answer_within) const;
  /// The same on this host alone.
  [[nodiscard]] std::vector<ordered_hold> order_here(const hold_order& what) const;

 private:
  domain in_;
};

}  // namespace lockflight
