// The functions of lockflight.h for elections.
#include "lockflight/election.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "bindings/c/domain.hpp"
#include "lockflight/named_control.hpp"

struct lockflight_election {
  lockflight::election it;
  lockflight::capi::loss_reports losses;
};

namespace lockflight::capi {
namespace {

constexpr const char* made_by = "one that lockflight_election_create has made";

lockflight_election& live(lockflight_election* election) {
  return need(election, "election", made_by);
}
const lockflight_election& live(const lockflight_election* election) {
  return need(election, "election", made_by);
}

std::string text_of(const char* value, std::size_t length) {
  if (length == 0) return "";
  return {&need(value, "value", "its bytes, or a length of 0"), length};
}

std::string described(const election& of) { return "election '" + of.name() + "'"; }

/// A function that a program has for each leader that it observes.
using observer = int (*)(const char* value, std::size_t length, std::uint64_t term, void* with);

int observe(election& of, observer function, void* with) {
  leader now = of.leader_now();
  while (function(now.value.data(), now.value.size(), now.term, with) == 0)
    now = of.await_change(now);
  return LOCKFLIGHT_OK;
}

}  // namespace
}  // namespace lockflight::capi

namespace capi = lockflight::capi;

int lockflight_election_create(lockflight_domain* domain, const char* name, const char* value,
                               size_t length, lockflight_election** election) {
  return capi::guarded_domain([&] {
    auto*& out = capi::need(election, "election", "where to put it");
    auto& in = capi::need(domain, "domain", "one that lockflight_domain_open has opened").it;
    const char& first = capi::need(name, "name", "the election's name");
    out = new lockflight_election{{in, &first, capi::text_of(value, length)}, {}};
    return LOCKFLIGHT_OK;
  });
}

int lockflight_election_destroy(lockflight_election* election) {
  return capi::guarded_domain([&] {
    if (capi::live(election).it.role().is_held())
      throw capi::refusal(LOCKFLIGHT_HELD, "destroy of " + capi::described(election->it) +
                                               ", which this program leads (accepted: one that "
                                               "it does not lead)");
    delete election;
    return LOCKFLIGHT_OK;
  });
}

int lockflight_election_set_priority(lockflight_election* election, int priority) {
  return capi::guarded_domain([&] {
    capi::live(election).it.set_priority(priority);
    return LOCKFLIGHT_OK;
  });
}

int lockflight_election_campaign(lockflight_election* election, uint64_t nanoseconds) {
  return capi::guarded_domain([&] {
    if (capi::live(election).it.role().is_lost()) election->losses.end_hold();
    const bool leads = capi::live(election).it.campaign(lockflight::limit::of_ns(nanoseconds));
    return leads ? LOCKFLIGHT_OK : LOCKFLIGHT_BUSY;
  });
}

int lockflight_election_step_down(lockflight_election* election) {
  return capi::guarded_domain([&] {
    capi::live(election).it.step_down();
    election->losses.end_hold();
    return LOCKFLIGHT_OK;
  });
}

int lockflight_election_step_down_for(lockflight_election* election, const char* value,
                                      size_t length) {
  return capi::guarded_domain([&] {
    capi::live(election).it.step_down_for(capi::text_of(value, length));
    election->losses.end_hold();
    return LOCKFLIGHT_OK;
  });
}

int lockflight_election_publish(lockflight_election* election, const char* value, size_t length) {
  return capi::guarded_domain([&] {
    capi::live(election).it.publish(capi::text_of(value, length));
    return LOCKFLIGHT_OK;
  });
}

int lockflight_election_is_leader(const lockflight_election* election) {
  return capi::guarded_domain([&] {
    const lockflight::election& it = capi::live(election).it;
    if (it.is_leader()) return static_cast<int>(LOCKFLIGHT_OK);
    throw capi::refusal(LOCKFLIGHT_NOT_HELD, capi::described(it) +
                                                 ", which this thread does not "
                                                 "lead");
  });
}

int lockflight_election_valid_for(const lockflight_election* election, uint64_t* nanoseconds) {
  return capi::guarded_domain([&] {
    capi::need(nanoseconds, "nanoseconds", "where to put them") =
        capi::nanoseconds_from(capi::live(election).it.valid_for());
    return LOCKFLIGHT_OK;
  });
}

int lockflight_election_term(const lockflight_election* election, uint64_t* term) {
  return capi::guarded_domain([&] {
    capi::need(term, "term", "where to put it") = capi::live(election).it.term();
    return LOCKFLIGHT_OK;
  });
}

int lockflight_election_loss_descriptor(lockflight_election* election, int* descriptor) {
  return capi::guarded_domain([&] {
    int& out = capi::need(descriptor, "descriptor", "where to put it");
    const std::stop_token loss = capi::live(election).it.loss();
    out = election->losses.descriptor_for(loss, capi::described(election->it));
    return LOCKFLIGHT_OK;
  });
}

int lockflight_election_on_loss(lockflight_election* election, void (*function)(void*),
                                void* argument) {
  return capi::guarded_domain([&] {
    const std::stop_token loss = capi::live(election).it.loss();
    election->losses.call(loss, function, argument);
    return LOCKFLIGHT_OK;
  });
}

int lockflight_election_leader(lockflight_election* election, char* value, size_t capacity,
                               size_t* length, uint64_t* term) {
  return capi::guarded_domain([&] {
    size_t& size = capi::need(length, "length", "where to put it");
    uint64_t& its_term = capi::need(term, "term", "where to put it");
    const lockflight::leader now = capi::live(election).it.leader_now();
    size = now.value.size();
    its_term = now.term;
    if (const size_t copied = std::min(capacity, size); copied != 0)
      std::memcpy(&capi::need(value, "value", "room for its bytes, or a capacity of 0"),
                  now.value.data(), copied);
    if (now) return static_cast<int>(LOCKFLIGHT_OK);
    throw capi::refusal(LOCKFLIGHT_UNKNOWN, capi::described(election->it) + ", which nobody leads");
  });
}

int lockflight_election_observe(lockflight_election* election,
                                int (*function)(const char*, size_t, uint64_t, void*),
                                void* argument) {
  return capi::guarded_domain([&] {
    lockflight::election& it = capi::live(election).it;
    if (function == nullptr)
      throw capi::refusal(LOCKFLIGHT_INVALID, "function NULL (accepted: a function)");
    return capi::observe(it, function, argument);
  });
}

int lockflight_election_interrupt_with(lockflight_election* election, int (*is_interrupted)(void*),
                                       void* argument) {
  return capi::guarded_domain([&] {
    lockflight::election& it = capi::live(election).it;
    for (lockflight::named_handle* const each : {&it.role(), &it.observer()}) {
      lockflight::named_control control(*each);
      if (is_interrupted == nullptr)
        control.interrupt_with(nullptr);
      else
        control.interrupt_with([=] { return is_interrupted(argument) != 0; });
    }
    return LOCKFLIGHT_OK;
  });
}
