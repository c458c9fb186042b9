// The messages between agents.
//
// Two agents receive each other's messages in the order in which they were sent, each once, as long
// as both run and are in one epoch. What is sent to an agent that has ended is lost.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "names/cluster/core/terms.hpp"

namespace lockflight::cluster {

/// The state of a name as its home knows it. The record stands in the home's domain file.
struct record {
  epoch_number epoch = 0;  ///< in which its home knew this
  token last;
  bool died = false;
  std::optional<identity> exclusive;  ///< the host that owns the name exclusively
  bool operator==(const record&) const = default;
};

/// To the home: the sender wants the name. This replaces a request for more, which was given up.
struct request {
  mode wanted = mode::none;
};
/// From the home: the receiver owns the name.
struct grant {
  mode granted = mode::none;
  token last;
  bool died = false;
};
/// From the home: another host wants the name in that mode.
struct revoke {
  mode wanted = mode::none;
};
/// To the home: the sender owns no more than this.
struct give_back {
  mode kept = mode::none;
  token last;
  bool died = false;
};
/// From the home: it has the give_back.
struct taken {};
/// From the home to its witness: a holder may die in the name, or has died, and no other member
/// would know if this home were lost. Or no more.
struct witness_request {
  bool is_set = false;
};
/// To the home, as the answer to a witness_request that is set.
struct witness_ack {};
/// To the new home of a name, from the witness of a former home that is lost.
struct witness_report {
  epoch_number epoch = 0;  ///< in which it was set
};
/// From the home: it is about to forget the name, and so is the receiver, which owns nothing of it.
struct forget {};
/// To the home, as the answer: nothing of the name is left here.
struct forgotten {};
/// To the new home of a name: what the sender owns, or owned last.
struct claim {
  mode owned = mode::none;
  token last;
  bool died = false;
};
/// To the new home of a name, from a former one.
struct former_record {
  record what;
};
/// To all members: the sender has sent all its claims and records of this epoch.
struct claims_done {};

using body =
    std::variant<request, grant, revoke, give_back, taken, claim, former_record, claims_done,
                 forget, forgotten, witness_request, witness_ack, witness_report>;

struct message {
  member_id from = 0;
  member_id to = 0;
  epoch_number epoch = 0;
  std::string name;  ///< empty in claims_done
  body what;
};

}  // namespace lockflight::cluster
