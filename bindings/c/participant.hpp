// The opaque types of lockflight.h.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "bindings/c/lock.hpp"
#include "lockflight/profile.hpp"
#include "lockflight/rma/barrier.hpp"

namespace lockflight::capi {

/// A participant's handle of one lock, and whether it holds the lock: so misuse is detected.
struct handle {
  lockflight_participant* owner;
  std::string name;
  std::unique_ptr<any_lock> lock;  ///< null when it is destroyed
  bool shares = false;             ///< the mutex was made as one that readers share
  catalogue::abilities can;
  catalogue::hold held = catalogue::hold::none;
};

}  // namespace lockflight::capi

// Both kinds of mutex have the same record: a mutex that was cast is still recognised, by `shares`.
struct lockflight_mutex : lockflight::capi::handle {};
struct lockflight_shared_mutex : lockflight::capi::handle {};

struct lockflight_words {
  lockflight_participant* owner;
  lockflight::rma::plain_cell first;
  std::uint32_t count;
};

/// A participant on any fabric. It owns its handles, destroyed ones until its end too, so that
/// later uses are detected.
struct lockflight_participant {
  lockflight_participant() = default;
  lockflight_participant(const lockflight_participant&) = delete;
  lockflight_participant& operator=(const lockflight_participant&) = delete;
  virtual ~lockflight_participant() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;
  /// True if the participant joined others, by a lockflight_join_ function; lockflight_leave ends
  /// it then.
  [[nodiscard]] virtual bool leaves() const = 0;

  virtual void barrier() = 0;
  [[nodiscard]] virtual lockflight::capi::made_lock make_lock(
      const lockflight::capi::lock_request& what) = 0;
  /// The names of the locks that it could make and that have the ability.
  [[nodiscard]] virtual std::string locks_with(
      bool lockflight::catalogue::abilities::*ability) const = 0;
  [[nodiscard]] virtual lockflight::rma::plain_cell take_words(std::uint32_t count) = 0;
  virtual void put(lockflight::rma::plain_cell to, std::uint64_t value) = 0;
  virtual void get(lockflight::rma::plain_cell from, std::uint64_t& value) = 0;
  virtual void flush() = 0;
  virtual void flush(int rank) = 0;

  /// The parameters of locks for which the caller names none; the same on all ranks.
  lockflight::profile tuned;

  /// The first lock that it holds; null if none.
  [[nodiscard]] const lockflight::capi::handle* held() const {
    for (const auto& m : mutexes)
      if (m.held != lockflight::catalogue::hold::none) return &m;
    for (const auto& m : shared_mutexes)
      if (m.held != lockflight::catalogue::hold::none) return &m;
    return nullptr;
  }

  // Deques, whose elements do not move.
  std::deque<lockflight_mutex> mutexes;
  std::deque<lockflight_shared_mutex> shared_mutexes;
  std::deque<lockflight_words> words;
};

namespace lockflight::capi {

/// A participant on one fabric; the port outlives it.
template <rma::port Port>
class participant_on : public lockflight_participant {
 public:
  participant_on(Port& port, std::uint32_t words_per_rank, profile with)
      : me_(port, words_per_rank), all_(me_) {
    tuned = std::move(with);
  }

  [[nodiscard]] int rank() const override { return me_.rank(); }
  [[nodiscard]] int ranks() const override { return me_.machine().ranks(); }
  [[nodiscard]] bool leaves() const override { return false; }

  void barrier() override { all_.arrive_and_wait(); }
  [[nodiscard]] made_lock make_lock(const lock_request& what) override {
    return capi::make_lock(me_, what);
  }
  [[nodiscard]] std::string locks_with(bool catalogue::abilities::*ability) const override {
    return catalogue::names_of_those_with(ability, lock_rows<Port>());
  }
  [[nodiscard]] rma::plain_cell take_words(std::uint32_t count) override {
    return me_.cells().template take<rma::plain_cell>(count);
  }
  void put(rma::plain_cell to, std::uint64_t value) override { me_.port().put(to, value); }
  void get(rma::plain_cell from, std::uint64_t& value) override { me_.port().get(from, value); }
  void flush() override { me_.port().flush(); }
  void flush(int rank) override { me_.port().flush(rank); }

 private:
  rma::participant<Port> me_;
  rma::barrier<Port> all_;
};

}  // namespace lockflight::capi
