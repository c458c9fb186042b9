// A file that is written over at random, but for the words of the C library: whatever the bytes
// are, there is an answer or one line of refusal.
#include <fcntl.h>

#include <random>

#include "domain/directory.hpp"
#include "domain/file.hpp"
#include "support.hpp"

namespace lockflight::test {
namespace {

int use_all(const std::string& name) {
  const auto one = [](auto&& what) {
    try {
      what();
    } catch (const domain_error&) {
    }
  };
  try {
    auto d = domain::attach(name);
    one([&] { static_cast<void>(d.locks()); });
    one([&] { static_cast<void>(d.participants()); });
    for (int i = 0; i < 6; ++i) one([&] { named_mutex(d, "n" + std::to_string(i)).lock(); });
    one([&] { named_shared_mutex(d, "other").lock_shared(); });
    for (int i = 0; i < 6; ++i) one([&] { d.remove_lock("n" + std::to_string(i)); });
    one([&] { d.sweep(); });
  } catch (const domain_error&) {
  }
  return 0;
}

TEST(DomainDamage, BytesAtRandomCrashNobody) {
  std::mt19937 random(20260704);
  for (int trial = 0; trial < 400; ++trial) {
    SCOPED_TRACE(trial);
    const own_domain own;
    {
      auto d = domain::open(own.name(), {.slots = 3, .names = 8});
      for (int i = 0; i < 4; ++i)
        child([&] { return named_mutex(d, "n" + std::to_string(i)).lock(), 0; }).wait();
    }
    const detail::domain_shape shape(3, 8);
    const std::size_t after_mutex = offsetof(detail::domain_header, serials);
    const std::pair<std::size_t, std::size_t> parts[]{
        {0, offsetof(detail::domain_header, directory)},
        {after_mutex, sizeof(detail::domain_header)},
        {shape.classes, shape.classes + 2 * sizeof(detail::domain_class)},
        {shape.buckets, shape.buckets + 16 * 4},
        {shape.entries, shape.entries + 5 * sizeof(detail::domain_entry)},
        {shape.cells + 8 * detail::domain_shape::first_block + 5 * 8,
         shape.cells + 8 * detail::domain_shape::first_block + 8 * 8},
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
      alarm(10);
      return use_all(own.name());
    });
    ASSERT_EQ(one.wait(), 0);
  }
}

/// A domain in which this process has made a lock, and its file.
struct written_over {
  own_domain own;
  domain in = domain::open(own.name(), {.slots = 3, .names = 8});
  std::shared_ptr<detail::domain_file> file = detail::domain_file::open(own.name(), nullptr);
  named_mutex first{in, "first"};
};

TEST(DomainDamage, ABlockInUseIsGivenToNoSecondName) {
  const written_over at;
  at.file->of_class(0).free = detail::domain_shape::first_block;
  EXPECT_REFUSED(damaged, "written over", named_mutex(at.in, "second"));
  at.file->of_class(0).free = 0;
  at.file->header().next_word = detail::domain_shape::first_block;
  EXPECT_REFUSED(damaged, "written over", named_mutex(at.in, "second"));
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
  at.file->of_class(0).words = 2 * words;
  EXPECT_EQ(takes(), 0);
}

TEST(DomainDamage, ASlotThatIsFreeAndHasRecordsIsADeath) {
  const written_over at;
  child([&] {
    named_mutex held(at.in, "first");
    held.lock();
    return kill(getpid(), SIGKILL);
  }).wait();
  at.file->slot(0).state = detail::slot_state::free;
  EXPECT_EQ(child([&] {
              alarm(10);
              named_mutex next(at.in, "first");
              next.lock();
              return next.owner_died() ? 0 : 1;
            }).wait(),
            0);
}

TEST(DomainDamage, FreeBlocksInACircleAreRefused) {
  written_over at;
  named_mutex(at.in, "free").lock();
  at.in.remove_lock("free");
  const std::uint32_t free = at.file->of_class(0).free;
  ASSERT_NE(free, 0u);
  at.file->word(0, free + detail::next_beside).store(free);
  EXPECT_REFUSED(damaged, "written over", at.in.remove_lock("first"));
}

TEST(DomainDamage, ParametersThatAreNotTheirKindsAreRefused) {
  const written_over at;
  std::string("local_budget=0").copy(at.file->of_class(0).parameters, 14);
  EXPECT_REFUSED(damaged, "written over", static_cast<void>(at.in.locks()));
}

TEST(DomainDamage, BlocksThatBeginNowhereAreRefused) {
  for (const std::uint32_t next : {0u, 8u, 1001u, 1u << 30}) {
    const written_over at;
    at.file->header().next_word = next;
    EXPECT_REFUSED(damaged, "written over", named_mutex(at.in, "second").lock());
  }
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
  EXPECT_REFUSED(invalid, "a?b", make({.kind = "a\nb"}));
  EXPECT_REFUSED(invalid, "a?b", make({.parameters = "a\nb"}));
  EXPECT_REFUSED(invalid, "a?b", make({.parameters = "a\nb=1"}));
}

}  // namespace
}  // namespace lockflight::test
