#include "lab/cluster/text.hpp"

#include <fmt/format.h>

namespace lockflight::cluster::sim {

std::string text_of(const token& t) { return fmt::format("({}, {})", t.epoch, t.counter); }

namespace {

const char* word_for(mode m) {
  return m == mode::none ? "nothing" : m == mode::shared ? "shared" : "exclusive";
}

struct described {
  std::string operator()(const request& m) const {
    return fmt::format("request {}", word_for(m.wanted));
  }
  std::string operator()(const grant& m) const {
    return fmt::format("grant {} {} died {}", word_for(m.granted), text_of(m.last), m.died);
  }
  std::string operator()(const revoke& m) const {
    return fmt::format("revoke for {}", word_for(m.wanted));
  }
  std::string operator()(const give_back& m) const {
    return fmt::format("give_back, keeps {} {} died {}", word_for(m.kept), text_of(m.last), m.died);
  }
  std::string operator()(const taken&) const { return "taken"; }
  std::string operator()(const forget&) const { return "forget"; }
  std::string operator()(const witness_request& m) const {
    return m.is_set ? "witness_request" : "witness_request, no more";
  }
  std::string operator()(const witness_ack&) const { return "witness_ack"; }
  std::string operator()(const witness_report& m) const {
    return fmt::format("witness_report of epoch {}", m.epoch);
  }
  std::string operator()(const forgotten&) const { return "forgotten"; }
  std::string operator()(const claim& m) const {
    return fmt::format("claim {} {} died {}", word_for(m.owned), text_of(m.last), m.died);
  }
  std::string operator()(const former_record& m) const {
    return fmt::format("record of epoch {}: {} died {}, owner {:x}/{}", m.what.epoch,
                       text_of(m.what.last), m.what.died,
                       m.what.exclusive ? m.what.exclusive->id : 0,
                       m.what.exclusive ? m.what.exclusive->incarnation : 0);
  }
  std::string operator()(const claims_done&) const { return "claims_done"; }
};

}  // namespace

std::string text_of(const body& what) { return std::visit(described{}, what); }

}  // namespace lockflight::cluster::sim
