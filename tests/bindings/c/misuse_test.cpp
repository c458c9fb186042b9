// The calls that the C interface refuses, with their codes and texts.
#include <array>
#include <regex>
#include <set>
#include <thread>
#include <vector>

#include "catalogue/any_lock.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/lock/all.hpp"
#include "tests/bindings/c/support.hpp"

namespace lockflight::test {
namespace {

/// "(accepted for that: flight-rw)", with the locks of the list that offer it.
std::string accepted_for_that(bool catalogue::abilities::*ability) {
  struct row {
    lock::facts about;
    catalogue::abilities can;
  };
  std::vector<row> rows;
  lock::all::for_each([&]<template <class> class Lock>(lock::family<Lock>) {
    rows.push_back({Lock<shm::port>::about, catalogue::abilities_of<Lock<shm::port>>});
  });
  return "(accepted for that: " + catalogue::names_of_those_with(ability, rows) + ")";
}

TEST(CapiCodes, SomeLockOffersEachAbilityThatAnErrorNames) {
  EXPECT_NE(accepted_for_that(&catalogue::abilities::upgrades).find("flight-rw"),
            std::string::npos);
}

TEST(CapiCodes, EachHasATextOfItsOwn) {
  std::set<std::string> texts;
  for (int code = LOCKFLIGHT_OK; code <= LOCKFLIGHT_LOST; ++code)
    texts.insert(lockflight_error_text(code));
  EXPECT_EQ(texts.size(), std::size_t{LOCKFLIGHT_LOST} + 1);
  EXPECT_STREQ(lockflight_error_text(-1), "not a code of lockflight");
  EXPECT_STREQ(lockflight_error_text(LOCKFLIGHT_LOST + 1), "not a code of lockflight");
}

TEST(CapiCodes, TheLastErrorIsTheThreadsOwn) {
  EXPECT_EQ(lockflight_barrier(nullptr), LOCKFLIGHT_INVALID);
  const std::string mine = lockflight_last_error();
  EXPECT_NE(mine.find("me NULL"), std::string::npos) << mine;
  std::thread([] {
    EXPECT_STREQ(lockflight_last_error(), "");
    EXPECT_EQ(lockflight_mutex_lock(nullptr), LOCKFLIGHT_INVALID);
  }).join();
  EXPECT_EQ(lockflight_last_error(), mine);
}

TEST(CapiCodes, TheVersionIsThreeNumbers) {
  EXPECT_TRUE(std::regex_match(lockflight_version(), std::regex(R"(\d+\.\d+\.\d+)")))
      << lockflight_version();
}

// ---- lockflight_run ----

TEST(CapiRun, RefusesWhatItCannotRun) {
  const auto body = [](lockflight_participant*, void*) -> int { return LOCKFLIGHT_OK; };
  const auto is_refused = [&](const lockflight_config& config, const char* words) {
    EXPECT_EQ(lockflight_run(&config, body, nullptr), LOCKFLIGHT_INVALID) << words;
    EXPECT_NE(std::string(lockflight_last_error()).find(words), std::string::npos)
        << lockflight_last_error();
  };
  is_refused({.ranks = -1}, "ranks -1 (accepted: 1 to 4096");
  is_refused({.ranks = 4097}, "ranks 4097");
  is_refused({.levels = "2x"}, "levels '2x'");
  is_refused({.levels = ""}, "levels ''");
  is_refused({.levels = "1x1x1x1x2"}, "at most 4 levels");
  is_refused({.levels = "64x128"}, "ranks 8192");
  is_refused({.ranks = 3, .levels = "2x2"}, "multiply to ranks, 3");
  is_refused({.levels = "2x2", .node_level = 3}, "node_level 3 (accepted: 0 to 2");
  is_refused({.ranks = 2, .node_level = -1}, "node_level -1");
  is_refused({.ranks = 1, .waiting = "nap"}, "nap");
  is_refused({.ranks = 1, .words_per_rank = ~std::uint32_t{0}}, "4294967295 words per rank");
  EXPECT_EQ(lockflight_run(nullptr, nullptr, nullptr), LOCKFLIGHT_INVALID);
  EXPECT_NE(std::string(lockflight_last_error()).find("body NULL"), std::string::npos);
}

TEST(CapiRun, AMemoryTooSmallForAParticipant) {
  const lockflight_config config{.ranks = 1, .words_per_rank = 64};
  const auto body = [](lockflight_participant*, void*) -> int { return LOCKFLIGHT_OK; };
  EXPECT_EQ(lockflight_run(&config, body, nullptr), LOCKFLIGHT_RANK_FAILED);
  EXPECT_NE(std::string(lockflight_last_error()).find("segments are full"), std::string::npos);
}

// ---- participants ----

TEST(CapiMisuse, NullIsNoParticipant) {
  lockflight_mutex* mutex = nullptr;
  lockflight_words* words = nullptr;
  EXPECT_EQ(lockflight_rank(nullptr), -1);
  EXPECT_EQ(lockflight_ranks(nullptr), -1);
  EXPECT_EQ(lockflight_flush(nullptr), LOCKFLIGHT_INVALID);
  EXPECT_EQ(lockflight_mutex_create(nullptr, nullptr, &mutex), LOCKFLIGHT_INVALID);
  EXPECT_EQ(lockflight_words_create(nullptr, 1, &words), LOCKFLIGHT_INVALID);
  EXPECT_EQ(mutex, nullptr);
  EXPECT_EQ(words, nullptr);
}

TEST(CapiMisuse, NullIsNowhereToPutAHandle) {
  alone([](lockflight_participant* me) {
    refused(lockflight_mutex_create(me, nullptr, nullptr), LOCKFLIGHT_INVALID, "mutex NULL");
    refused(lockflight_shared_mutex_create(me, nullptr, nullptr), LOCKFLIGHT_INVALID, "mutex NULL");
    refused(lockflight_words_create(me, 1, nullptr), LOCKFLIGHT_INVALID, "words NULL");
  });
}

// ---- locks ----

/// The calls that take a lock for upgrade, or change one way of holding it into another.
struct up_or_down {
  int (*call)(lockflight_shared_mutex*);
  const char* name;
  enum { free, exclusive, shared, upgrade } from;
};
constexpr std::array<up_or_down, 8> ups_and_downs{{
    {lockflight_shared_mutex_lock_upgrade, "lock of", up_or_down::free},
    {lockflight_shared_mutex_try_lock_upgrade, "try_lock of", up_or_down::free},
    {lockflight_shared_mutex_unlock_upgrade, "unlock of", up_or_down::upgrade},
    {lockflight_shared_mutex_unlock_upgrade_and_lock, "unlock_upgrade_and_lock of",
     up_or_down::upgrade},
    {lockflight_shared_mutex_try_unlock_shared_and_lock, "try_unlock_shared_and_lock of",
     up_or_down::shared},
    {lockflight_shared_mutex_unlock_and_lock_shared, "unlock_and_lock_shared of",
     up_or_down::exclusive},
    {lockflight_shared_mutex_unlock_and_lock_upgrade, "unlock_and_lock_upgrade of",
     up_or_down::exclusive},
    {lockflight_shared_mutex_unlock_upgrade_and_lock_shared, "unlock_upgrade_and_lock_shared of",
     up_or_down::upgrade},
}};

TEST(CapiMisuse, NullIsNoLock) {
  for (const auto call : {lockflight_mutex_lock, lockflight_mutex_try_lock, lockflight_mutex_unlock,
                          lockflight_mutex_destroy})
    EXPECT_EQ(call(nullptr), LOCKFLIGHT_INVALID);
  for (const auto call : {lockflight_shared_mutex_lock, lockflight_shared_mutex_try_lock,
                          lockflight_shared_mutex_unlock, lockflight_shared_mutex_lock_shared,
                          lockflight_shared_mutex_try_lock_shared,
                          lockflight_shared_mutex_unlock_shared, lockflight_shared_mutex_destroy})
    EXPECT_EQ(call(nullptr), LOCKFLIGHT_INVALID);
  for (const up_or_down& c : ups_and_downs) EXPECT_EQ(c.call(nullptr), LOCKFLIGHT_INVALID);
}

TEST(CapiMisuse, AMutexIsUnlockedByWhoHoldsIt) {
  alone([](lockflight_participant* me) {
    lockflight_mutex* m = nullptr;
    fine(lockflight_mutex_create(me, nullptr, &m), "create");
    refused(lockflight_mutex_unlock(m), LOCKFLIGHT_NOT_HELD, "unlock of flight");
    fine(lockflight_mutex_lock(m), "lock");
    refused(lockflight_mutex_lock(m), LOCKFLIGHT_HELD, "lock of flight");
    refused(lockflight_mutex_try_lock(m), LOCKFLIGHT_HELD, "try_lock of flight");
    refused(lockflight_mutex_try_lock_for(m, 1), LOCKFLIGHT_HELD, "try_lock_for of flight");
    refused(lockflight_mutex_try_lock_until(m, nullptr), LOCKFLIGHT_INVALID, "moment NULL");
    const timespec odd{.tv_sec = 0, .tv_nsec = 1'000'000'000};
    refused(lockflight_mutex_try_lock_until(m, &odd), LOCKFLIGHT_INVALID, "tv_nsec 1000000000");
    refused(lockflight_mutex_destroy(m), LOCKFLIGHT_HELD, "destroy of flight");
    fine(lockflight_mutex_unlock(m), "unlock");
    refused(lockflight_mutex_unlock(m), LOCKFLIGHT_NOT_HELD, "does not hold");
    fine(lockflight_mutex_destroy(m), "destroy");
    refused(lockflight_mutex_lock(m), LOCKFLIGHT_INVALID, "destroyed");
    refused(lockflight_mutex_destroy(m), LOCKFLIGHT_INVALID, "destroyed");
  });
}

TEST(CapiMisuse, ASharedMutexIsUnlockedTheWayItWasLocked) {
  alone([](lockflight_participant* me) {
    lockflight_shared_mutex* m = nullptr;
    fine(lockflight_shared_mutex_create(me, nullptr, &m), "create");
    fine(lockflight_shared_mutex_lock_shared(m), "lock_shared");
    refused(lockflight_shared_mutex_unlock(m), LOCKFLIGHT_NOT_HELD, "with other readers");
    refused(lockflight_shared_mutex_lock_shared(m), LOCKFLIGHT_HELD, "flight-rw");
    refused(lockflight_shared_mutex_lock(m), LOCKFLIGHT_HELD, "flight-rw");
    refused(lockflight_shared_mutex_destroy(m), LOCKFLIGHT_HELD, "flight-rw");
    fine(lockflight_shared_mutex_unlock_shared(m), "unlock_shared");
    fine(lockflight_shared_mutex_lock(m), "lock");
    refused(lockflight_shared_mutex_unlock_shared(m), LOCKFLIGHT_NOT_HELD, "exclusively");
    fine(lockflight_shared_mutex_unlock(m), "unlock");
  });
}

TEST(CapiMisuse, UpAndDownOnlyFromWhereOneIs) {
  alone([](lockflight_participant* me) {
    lockflight_shared_mutex* m = nullptr;
    fine(lockflight_shared_mutex_create(me, nullptr, &m), "create");
    const auto refuses_all_others = [&](decltype(up_or_down::from) held, const char* how) {
      for (const up_or_down& c : ups_and_downs) {
        if (c.from == held) continue;
        refused(c.call(m), c.from == up_or_down::free ? LOCKFLIGHT_HELD : LOCKFLIGHT_NOT_HELD,
                std::string(c.name) + " flight-rw, which this participant " + how);
      }
    };
    refuses_all_others(up_or_down::free, "does not hold");
    fine(lockflight_shared_mutex_lock_shared(m), "lock_shared");
    refuses_all_others(up_or_down::shared, "holds");
    fine(lockflight_shared_mutex_try_unlock_shared_and_lock(m), "upgrade");
    refuses_all_others(up_or_down::exclusive, "holds");
    refused(lockflight_shared_mutex_unlock_shared(m), LOCKFLIGHT_NOT_HELD, "holds exclusively");
    fine(lockflight_shared_mutex_unlock_and_lock_upgrade(m), "downgrade");
    refuses_all_others(up_or_down::upgrade, "holds");
    for (const auto call : {lockflight_shared_mutex_unlock, lockflight_shared_mutex_unlock_shared})
      refused(call(m), LOCKFLIGHT_NOT_HELD, "holds for upgrade");
    for (const auto call : {lockflight_shared_mutex_lock, lockflight_shared_mutex_lock_shared,
                            lockflight_shared_mutex_destroy})
      refused(call(m), LOCKFLIGHT_HELD, "holds already");
    fine(lockflight_shared_mutex_unlock_upgrade_and_lock_shared(m), "downgrade");
    refuses_all_others(up_or_down::shared, "holds");
    fine(lockflight_shared_mutex_unlock_shared(m), "unlock_shared");
    refuses_all_others(up_or_down::free, "does not hold");
    fine(lockflight_shared_mutex_destroy(m), "destroy");
    for (const up_or_down& c : ups_and_downs) refused(c.call(m), LOCKFLIGHT_INVALID, "destroyed");
  });
}

TEST(CapiMisuse, OtherLocksDoNotGoUpAndDown) {
  alone([](lockflight_participant* me) {
    for (const char* name :
         {"fompi-rw", "fompi-rw-backoff", "rma-rw", "mcs-rw-rp", "mcs-rw-wp", "mcs-rw-fair", "dslr",
          "shiftlock", "cql", "declock", "msg", "pthread-rwlock"}) {
      lockflight_shared_mutex* m = nullptr;
      const lockflight_lock_options options{.name = name};
      fine(lockflight_shared_mutex_create(me, &options, &m), "create");
      const auto refuses_all = [&] {
        for (const up_or_down& c : ups_and_downs)
          refused(c.call(m), LOCKFLIGHT_WRONG_KIND,
                  "lock '" + std::string(name) + "': it has no upgrade and no downgrade " +
                      accepted_for_that(&catalogue::abilities::upgrades));
      };
      refuses_all();
      fine(lockflight_shared_mutex_lock_shared(m), "lock_shared");
      refuses_all();
      fine(lockflight_shared_mutex_unlock_shared(m), "unlock_shared");
      fine(lockflight_shared_mutex_lock(m), "lock");
      refuses_all();
      fine(lockflight_shared_mutex_unlock(m), "unlock");
    }
  });
}

TEST(CapiMisuse, AMutexIsNotShared) {
  alone([](lockflight_participant* me) {
    lockflight_shared_mutex* shared = nullptr;
    const lockflight_lock_options d_mcs{.name = "d-mcs"};
    refused(lockflight_shared_mutex_create(me, &d_mcs, &shared), LOCKFLIGHT_WRONG_KIND,
            "lock 'd-mcs' (accepted where readers share: fompi-rw, ");
    require(shared == nullptr, "a handle came of it");
    // The result of a cast or of a wrong Fortran interface.
    lockflight_mutex* mutex = nullptr;
    const lockflight_lock_options rw{.name = "rma-rw"};
    fine(lockflight_mutex_create(me, &rw, &mutex), "create a mutex of a reader-writer lock");
    shared = reinterpret_cast<lockflight_shared_mutex*>(mutex);
    refused(lockflight_shared_mutex_lock_shared(shared), LOCKFLIGHT_WRONG_KIND, "rma-rw");
    refused(lockflight_shared_mutex_try_lock_shared(shared), LOCKFLIGHT_WRONG_KIND, "rma-rw");
    refused(lockflight_shared_mutex_unlock_shared(shared), LOCKFLIGHT_WRONG_KIND, "rma-rw");
    for (const up_or_down& c : ups_and_downs)
      refused(c.call(shared), LOCKFLIGHT_WRONG_KIND, "which readers do not share");
  });
}

TEST(CapiMisuse, WaitersOfOtherLocksCannotLeave) {
  alone([](lockflight_participant* me) {
    lockflight_shared_mutex* m = nullptr;
    const lockflight_lock_options rw{.name = "rma-rw"};
    fine(lockflight_shared_mutex_create(me, &rw, &m), "create");
    refused(lockflight_shared_mutex_try_lock_for(m, 1), LOCKFLIGHT_WRONG_KIND,
            accepted_for_that(&catalogue::abilities::times));
    refused(lockflight_shared_mutex_try_lock_shared_for(m, 1), LOCKFLIGHT_WRONG_KIND,
            accepted_for_that(&catalogue::abilities::times_shared));
    fine(lockflight_shared_mutex_lock(m), "is free");
    fine(lockflight_shared_mutex_unlock(m), "unlock");
  });
}

TEST(CapiMisuse, NamesAndParametersMustExist) {
  alone([](lockflight_participant* me) {
    lockflight_mutex* m = nullptr;
    const auto create = [&](const char* name, const char* parameters, int home = 0) {
      const lockflight_lock_options options{name, parameters, home};
      return lockflight_mutex_create(me, &options, &m);
    };
    refused(create("rma-msc", nullptr), LOCKFLIGHT_UNKNOWN, "lock 'rma-msc' (accepted: spin, ");
    refused(create("rma-mcs", "T_L=3"), LOCKFLIGHT_UNKNOWN,
            "parameter 'T_L' of rma-mcs (nearest: T_L2; accepted: T_L2, T_L3, T_L4)");
    refused(create("d-mcs", "T_L2=3"), LOCKFLIGHT_UNKNOWN,
            "parameter 'T_L2' of d-mcs (accepted: none");
    refused(create("rma-rw", "T_R=0"), LOCKFLIGHT_INVALID,
            "parameter 'T_R=0' of rma-rw (accepted: 1 to ");
    for (const char* malformed :
         {"T_L2", "T_L2=", "T_L2=x", "T_L2=3,", ",T_L2=3", "T_L2=3x", "T_L2=99999999999999999999"})
      refused(create("rma-mcs", malformed), LOCKFLIGHT_INVALID, "name=number");
    refused(create(nullptr, nullptr, 1), LOCKFLIGHT_INVALID,
            "home 1 (accepted: 0 to 0, the ranks)");
    refused(create(nullptr, nullptr, -1), LOCKFLIGHT_INVALID, "home -1");
    require(m == nullptr, "a handle came of it");
    fine(create("rma-mcs", ""), "no parameters");
    fine(create(nullptr, "barge=3,local_budget=8"), "two parameters");
  });
}

// ---- memory ----

TEST(CapiMisuse, WhatIsFullStaysAsItWas) {
  run({.ranks = 1, .threads = 1, .words_per_rank = 1024}, [](lockflight_participant* me) {
    lockflight_words* words = nullptr;
    refused(lockflight_words_create(me, 1024, &words), LOCKFLIGHT_FULL, "1024 cells asked");
    refused(lockflight_words_create(me, ~std::uint32_t{0}, &words), LOCKFLIGHT_FULL, "cells asked");
    refused(lockflight_words_create(me, 0, &words), LOCKFLIGHT_INVALID, "count 0");
    require(words == nullptr, "a handle came of it");
    int made = 0;
    lockflight_shared_mutex* m = nullptr;
    int code = LOCKFLIGHT_OK;
    for (; made < 1000; ++made)
      if ((code = lockflight_shared_mutex_create(me, nullptr, &m)) != LOCKFLIGHT_OK) break;
    require(made > 0, "not one lock found room");
    refused(code, LOCKFLIGHT_FULL, "segments are full");
    const std::string before = lockflight_last_error();
    refused(lockflight_shared_mutex_create(me, nullptr, &m), LOCKFLIGHT_FULL, before);
    fine(lockflight_shared_mutex_lock(m), "the last that was made");
    fine(lockflight_shared_mutex_unlock(m), "the last that was made");
  });
}

TEST(CapiMisuse, ThirtyTwoQueuesAtATime) {
  alone([](lockflight_participant* me) {
    // A holder of rma-mcs has a queue node in use; a holder of the default lock does not.
    const lockflight_lock_options rma_mcs{.name = "rma-mcs"};
    std::array<lockflight_mutex*, 33> all{};
    for (auto& m : all) fine(lockflight_mutex_create(me, &rma_mcs, &m), "create");
    for (std::size_t i = 0; i < 32; ++i) fine(lockflight_mutex_lock(all[i]), "lock");
    refused(lockflight_mutex_lock(all[32]), LOCKFLIGHT_FULL, "32 locks");
    refused(lockflight_mutex_try_lock(all[32]), LOCKFLIGHT_FULL, "32 locks");
    refused(lockflight_mutex_unlock(all[32]), LOCKFLIGHT_NOT_HELD, "rma-mcs");
    fine(lockflight_mutex_unlock(all[7]), "unlock");
    fine(lockflight_mutex_lock(all[32]), "lock");
    for (std::size_t i = 0; i < 33; ++i)
      if (i != 7) fine(lockflight_mutex_unlock(all[i]), "unlock");
  });
}

TEST(CapiMisuse, WordsHaveBounds) {
  run({.ranks = 2}, [](lockflight_participant* me) {
    lockflight_words* words = nullptr;
    fine(lockflight_words_create(me, 3, &words), "create");
    std::array<std::uint64_t, 4> v{};
    refused(lockflight_put(words, 2, 0, 1, v.data()), LOCKFLIGHT_INVALID,
            "rank 2 (accepted: 0 to 1)");
    refused(lockflight_get(words, -1, 0, 1, v.data()), LOCKFLIGHT_INVALID, "rank -1");
    refused(lockflight_put(words, 0, 3, 1, v.data()), LOCKFLIGHT_INVALID,
            "word 3 (accepted: below 3");
    refused(lockflight_get(words, 0, 1, 3, v.data()), LOCKFLIGHT_INVALID, "3 words from 1");
    refused(lockflight_get(words, 0, ~std::uint32_t{0}, 2, v.data()), LOCKFLIGHT_INVALID, "from");
    refused(lockflight_put_now(words, 0, 3, 1), LOCKFLIGHT_INVALID, "word 3");
    refused(lockflight_get_now(words, 0, 3, v.data()), LOCKFLIGHT_INVALID, "word 3");
    refused(lockflight_put(words, 0, 0, 1, nullptr), LOCKFLIGHT_INVALID, "values NULL");
    refused(lockflight_get(words, 0, 0, 1, nullptr), LOCKFLIGHT_INVALID, "values NULL");
    refused(lockflight_get_now(words, 0, 0, nullptr), LOCKFLIGHT_INVALID, "value NULL");
    refused(lockflight_put(nullptr, 0, 0, 1, v.data()), LOCKFLIGHT_INVALID, "words NULL");
    fine(lockflight_put(words, 0, 3, 0, nullptr), "nothing is always accepted");
  });
}

}  // namespace
}  // namespace lockflight::test
