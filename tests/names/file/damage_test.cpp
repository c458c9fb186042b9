// A file that is written over at random: whatever the bytes are, there is an answer or one line of
// refusal, in time.
#include <fcntl.h>

#include <chrono>
#include <random>

#include "names/file/file.hpp"
#include "names/locks/directory.hpp"
#include "tests/names/support.hpp"

namespace lockflight::test {
namespace {

using namespace std::chrono_literals;

/// How many calls were answered and how many refused, over all trials.
struct tally {
  std::atomic<int> answered, refused;
};

/// True if all calls were answered, or refused in one line.
int use_all(const std::string& name, tally& calls) {
  bool one_line = true;
  const auto one = [&](auto&& what) {
    try {
      what();
      ++calls.answered;
    } catch (const domain_error& e) {
      ++calls.refused;
      one_line = one_line && std::string_view(e.what()).find('\n') == std::string_view::npos;
    }
  };
  one([&] {
    auto d = domain::attach(name);
    one([&] { static_cast<void>(d.locks()); });
    one([&] { static_cast<void>(d.participants()); });
    for (int i = 0; i < 6; ++i)
      one([&] {
        named_mutex m(d, "n" + std::to_string(i));
        if (m.try_lock_for(20ms)) m.unlock();
      });
    one([&] {
      named_shared_mutex m(d, "other");
      if (m.try_lock_shared_for(20ms)) m.unlock_shared();
    });
    for (int i = 0; i < 6; ++i) one([&] { d.remove_lock("n" + std::to_string(i)); });
    one([&] { d.sweep(); });
  });
  return one_line ? 0 : 1;
}

TEST(DomainDamage, BytesAtRandomCrashNobody) {
  std::mt19937 random(20260704);
  constexpr std::size_t line = rma::line_words * sizeof(rma::word);
  auto& calls = shared_words<tally>();
  for (int trial = 0; trial < 400; ++trial) {
    SCOPED_TRACE(trial);
    const own_domain own;
    {
      auto d = domain::open(own.name(), {.slots = 3, .names = 8});
      for (int i = 0; i < 4; ++i)
        child([&] { return named_mutex(d, "n" + std::to_string(i)).lock(), 0; }).wait();
    }
    const std::pair<std::size_t, std::size_t> parts[]{
        {0, sizeof(detail::domain_header)},
        {detail::classes_at, detail::classes_at + 2 * sizeof(detail::domain_class)},
        {detail::buckets_at, detail::bells_at},
        {detail::bells_at, detail::head_bytes},
        {detail::slots_at, detail::slots_at + 3 * detail::slot_bytes},
        {detail::room_at, detail::room_at + 130 * line},
    };
    const int fd = open(own.path().c_str(), O_RDWR);
    const std::uint64_t times = 1 + random() % 3;
    for (std::uint64_t i = 0; i < times; ++i) {
      const auto& [first, end] = parts[random() % std::size(parts)];
      const std::uint32_t noise =
          random() % 2 == 0 ? static_cast<std::uint32_t>(random()) : random() % 16;
      const std::size_t size = std::size_t{1} << random() % 3;
      const std::size_t at = first + random() % (end - first - 4);
      ASSERT_EQ(pwrite(fd, &noise, size, static_cast<off_t>(at)), static_cast<ssize_t>(size));
    }
    close(fd);
    child one([&] {
      alarm(20);
      return use_all(own.name(), calls);
    });
    ASSERT_EQ(one.wait(), 0);
  }
  // Otherwise the noise met nothing that is read, or spoiled everything.
  EXPECT_GT(calls.refused, 100);
  EXPECT_GT(calls.answered, 100);
}

/// A domain in which this process has made a lock, and its file.
struct written_over {
  own_domain own;
  domain in = domain::open(own.name(), {.slots = 3, .names = 8});
  std::shared_ptr<detail::domain_file> file = detail::domain_file::open(own.name(), {}, false);
  named_mutex first{in, "first"};
  written_over() {
    first.lock();
    first.unlock();
  }

  /// Of the first line of the first block.
  [[nodiscard]] std::atomic<rma::word>& word(std::uint32_t i) const {
    return file->word(detail::first_line * rma::line_words + i);
  }
  static constexpr std::uint32_t next_of_chain = 6;
};

TEST(DomainDamage, ABlockInUseIsGivenToNoSecondName) {
  const written_over at;
  at.file->of_class(0).free = detail::first_line;
  EXPECT_REFUSED(damaged, "written over", named_mutex(at.in, "second").lock());
  at.file->of_class(0).free = 0;
  at.file->header().next_line = detail::first_line;
  EXPECT_REFUSED(damaged, "written over", named_mutex(at.in, "second").lock());
}

TEST(DomainDamage, AClassThatIsNotOfItsKindMakesNoLock) {
  const written_over at;
  const auto takes = [&] {
    return child([&] {
             EXPECT_REFUSED(damaged, "written over", named_mutex(at.in, "first").lock());
             return testing::Test::HasFailure() ? 1 : 0;
           })
        .wait();
  };
  const std::uint32_t words = std::exchange(at.file->of_class(0).words, 8u);
  EXPECT_EQ(takes(), 0);
  at.file->of_class(0).words = words - 8;
  EXPECT_EQ(takes(), 0);
}

TEST(DomainDamage, ASlotThatIsFreeAndHasRecordsIsADeath) {
  const written_over at;
  child([&] {
    named_mutex held(at.in, "first");
    held.lock();
    return kill(getpid(), SIGKILL);
  }).wait();
  at.file->slot(1).life = detail::slot_life{detail::slot_state::free, 1}.bits();
  EXPECT_EQ(child([&] {
              alarm(10);
              named_mutex next(at.in, "first");
              next.lock();
              return next.owner_died() ? 0 : 1;
            }).wait(),
            0);
}

TEST(DomainDamage, ChainsInACircleAreRefused) {
  const written_over at;
  at.word(written_over::next_of_chain) = detail::first_line;
  for (std::uint32_t b = 0; b < detail::buckets; ++b) at.file->bucket(b) = detail::first_line;
  EXPECT_REFUSED(damaged, "written over", named_mutex(at.in, "second").lock());
}

TEST(DomainDamage, ParametersThatAreNotTheirKindsAreRefused) {
  const written_over at;
  std::string("local_budget=0").copy(at.file->of_class(0).parameters, 14);
  EXPECT_REFUSED(damaged, "written over", static_cast<void>(at.in.locks()));
}

TEST(DomainDamage, BlocksThatBeginNowhereAreRefused) {
  for (const std::uint32_t next : {0u, 8u, 1u << 31}) {
    const written_over at;
    at.file->header().next_line = next;
    EXPECT_REFUSED(damaged, "written over", named_mutex(at.in, "second").lock());
  }
}

TEST(DomainDamage, NumbersOfRanksAndPlacesAreCheckedBeforeTheyAreUsed) {
  const written_over at;
  EXPECT_REFUSED(damaged, "written over", static_cast<void>(at.file->cell(4096, 1)));
  EXPECT_REFUSED(damaged, "written over", static_cast<void>(at.file->cell(-1, 1)));
  EXPECT_REFUSED(damaged, "written over", static_cast<void>(at.file->cell(4000, 1)));
  EXPECT_REFUSED(damaged, "written over", static_cast<void>(at.file->cell(1, 1000)));
  EXPECT_REFUSED(damaged, "written over", static_cast<void>(at.file->cell(0, UINT32_MAX)));
  EXPECT_REFUSED(damaged, "written over", static_cast<void>(at.file->cell(0, 1u << 24)));
}

TEST(DomainDamage, AHeaderThatIsWrittenOverInUseIsRefused) {
  const written_over at;
  at.file->header().names = 1u << 30;
  EXPECT_REFUSED(damaged, "written over", static_cast<void>(at.in.locks()));
  EXPECT_REFUSED(damaged, "written over", named_mutex(at.in, "second").lock());
}

TEST(DomainDamage, ARefusalIsOneLineWhateverItNames) {
  const written_over at;
  const auto make = [&](const named_lock_options& as) { named_lock(at.in, "second", as); };
  EXPECT_REFUSED(invalid, R"(a\x0ab)", make({.kind = "a\nb"}));
  EXPECT_REFUSED(invalid, R"(a\x0ab)", make({.parameters = "a\nb"}));
  EXPECT_REFUSED(invalid, R"(a\x0ab)", make({.parameters = "a\nb=1"}));
}

}  // namespace
}  // namespace lockflight::test
