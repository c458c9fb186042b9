#include "wireup/pmix.hpp"

#include <pmix.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "wireup/variables.hpp"

namespace lockflight::wireup {
namespace {

void check(pmix_status_t status, const char* call) {
  if (status != PMIX_SUCCESS)
    throw launch_failed(std::string("PMIx: ") + call + " failed: " + PMIx_Error_string(status));
}

/// The process as its launcher knows it.
class client {
 public:
  client() {
    if (const pmix_status_t status = PMIx_Init(&me_, nullptr, 0); status != PMIX_SUCCESS)
      throw launch_failed(
          std::string("PMIx: no launcher answers (") + PMIx_Error_string(status) +
          ") though PMIX_NAMESPACE is set (accepted: a process that mpirun of Open MPI, prterun or "
          "srun --mpi=pmix has started; or LOCKFLIGHT_RENDEZVOUS=HOST:PORT, LOCKFLIGHT_RANK and "
          "LOCKFLIGHT_RANKS for each rank)");
  }
  // A launcher takes a process that ends without it for one that has failed.
  ~client() { PMIx_Finalize(nullptr, 0); }
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  [[nodiscard]] int rank() const { return static_cast<int>(me_.rank); }
  [[nodiscard]] int ranks() const {
    const value found(of(PMIX_RANK_WILDCARD), PMIX_JOB_SIZE);
    check(found.status, "PMIx_Get of the number of ranks");
    return static_cast<int>(found.is->data.uint32);
  }
  void publish(const std::string& key, const std::string& text) const {
    pmix_value_t said;
    PMIX_VALUE_LOAD(&said, text.c_str(), PMIX_STRING);
    const pmix_status_t status = PMIx_Put(PMIX_GLOBAL, key.c_str(), &said);
    PMIX_VALUE_DESTRUCT(&said);
    check(status, "PMIx_Put");
    check(PMIx_Commit(), "PMIx_Commit");
  }
  /// The value that rank 0 publishes, at the latest in that time. A launcher may answer at once
  /// that there is nothing, when rank 0 is about to publish it.
  [[nodiscard]] std::string read_of_first(const std::string& key,
                                          std::chrono::seconds within) const {
    constexpr std::chrono::milliseconds between_questions{10};
    const auto end = std::chrono::steady_clock::now() + within;
    do {
      const value found(of(0), key.c_str(), within);
      if (found.status == PMIX_SUCCESS && found.is->type == PMIX_STRING)
        return found.is->data.string;
      if (found.status != PMIX_ERR_NOT_FOUND && found.status != PMIX_ERR_TIMEOUT)
        check(found.status, "PMIx_Get of what rank 0 says");
      std::this_thread::sleep_for(between_questions);
    } while (std::chrono::steady_clock::now() < end);
    throw launch_failed("rank 0 has said nothing for " + std::to_string(within.count()) +
                        " s (LOCKFLIGHT_RENDEZVOUS_TIMEOUT)");
  }

 private:
  /// Something that the launcher knows of a rank.
  struct value {
    pmix_value_t* is = nullptr;
    pmix_status_t status;
    value(const pmix_proc_t& of, const char* key, std::chrono::seconds within = {}) {
      pmix_info_t limit;
      const int seconds = static_cast<int>(within.count());
      PMIX_INFO_LOAD(&limit, PMIX_TIMEOUT, &seconds, PMIX_INT);
      status = PMIx_Get(&of, key, &limit, seconds > 0 ? 1 : 0, &is);
      PMIX_INFO_DESTRUCT(&limit);
    }
    ~value() {
      if (status == PMIX_SUCCESS) PMIX_VALUE_RELEASE(is);
    }
    value(const value&) = delete;
    value& operator=(const value&) = delete;
  };

  [[nodiscard]] pmix_proc_t of(pmix_rank_t rank) const {
    pmix_proc_t one;
    PMIX_LOAD_PROCID(&one, me_.nspace, rank);
    return one;
  }

  pmix_proc_t me_{};
};

}  // namespace

bool pmix_has_started_this() {
  const char* const job = std::getenv("PMIX_NAMESPACE");
  return job != nullptr && *job != '\0';
}

std::unique_ptr<group> join_by_pmix() {
  // A process may join again after it has left: what it said before stays.
  static int joined = 0;
  const std::string key = "lockflight." + std::to_string(joined++);
  const client launcher;
  return join({.rank = launcher.rank(),
               .ranks = launcher.ranks(),
               .from_first = [&](const std::string& mine) {
                 if (launcher.rank() != 0) return launcher.read_of_first(key, timeout());
                 launcher.publish(key, mine);
                 return mine;
               }});
}

}  // namespace lockflight::wireup
