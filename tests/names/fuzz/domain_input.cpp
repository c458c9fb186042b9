#include "tests/names/fuzz/domain_input.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lockflight/domain.hpp"
#include "names/file/file.hpp"
#include "names/locks/directory.hpp"

namespace lockflight::test {
namespace {

using detail::domain_class;
using detail::domain_header;

// The first byte of an input.
constexpr std::uint8_t is_of_names = 1;  // the rest is text; else it is edits of a file
constexpr std::uint8_t orphaned = 2;     // somebody died while it changed the directory
constexpr std::uint8_t checked = 4;      // the header's checksum is made right again
constexpr std::uint8_t in_use = 8;       // edits are made while the file is used

const domain_options small{.slots = 3, .names = 8};

struct known_lock {
  const char* name;
  const char* kind;
  const char* parameters;
};
constexpr std::array<known_lock, 7> known_locks{{{"n0", "flight", ""},
                                                 {"n1", "flight-rw", ""},
                                                 {"n2", "d-mcs", ""},
                                                 {"n3", "rma-rw", "T_R=2"},
                                                 {"n4", "flight", ""},
                                                 {"n5", "spin", ""},
                                                 {"n6", "mcs-rw-fair", ""}}};

constexpr const char* semaphore = "n7";
constexpr int semaphore_units = 3;

std::string name_of_domain() { return "fuzz." + std::to_string(getpid()); }
std::string path_of(const std::string& name) { return detail::private_place(name).path; }

[[noreturn]] void fail(const char* what) {
  perror(what);
  abort();
}

named_lock handle(const domain& in, const known_lock& of) {
  return {in, of.name, {.kind = of.kind, .parameters = of.parameters}};
}

void die(const std::function<void()>& doing) {
  const pid_t pid = fork();
  if (pid < 0) fail("fork");
  if (pid == 0) {
    doing();
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status)) fail("a child did not die");
}

std::vector<std::byte> bytes_of(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat s {};
  if (fd < 0 || fstat(fd, &s) != 0) fail(path.c_str());
  std::vector<std::byte> all(static_cast<std::size_t>(s.st_size));
  if (read(fd, all.data(), all.size()) != static_cast<ssize_t>(all.size())) fail(path.c_str());
  close(fd);
  return all;
}

/// Locks in use, one whose holder died, one that was removed.
std::vector<std::byte> make_domain(bool with_orphan) {
  const std::string name = name_of_domain() + ".made";
  domain::remove(name, true);
  {
    const auto d = domain::open(name, small);
    die([&] {
      auto in = domain::attach(name);
      for (std::size_t i = 0; i < 5; ++i) {
        auto one = handle(in, known_locks[i]);
        one.lock();
        one.unlock();
      }
      in.remove_lock("n4");
    });
    die([&] {
      auto held = handle(d, known_locks[0]);
      auto shared = handle(d, known_locks[1]);
      named_semaphore units(d, semaphore, semaphore_units);
      held.lock();
      shared.lock_shared();
      units.acquire();
      kill(getpid(), SIGKILL);
    });
    if (with_orphan)
      die([&] {
        const auto file = detail::domain_file::open(name, {}, false);
        named_lock(d, "new", {}).lock();
        file->header().changes += 1;
        file->header().directory = std::uint64_t{7} << 32 | 3;
        kill(getpid(), SIGKILL);
      });
  }
  auto made = bytes_of(path_of(name));
  domain::remove(name, true);
  return made;
}

std::array<std::vector<std::byte>, 2>& made_domains() {
  static auto* const both = new std::array{make_domain(false), make_domain(true)};
  return *both;
}

/// The parts of the file, each as likely as the others: all that anybody who may write to it can
/// write over.
const std::vector<std::pair<std::size_t, std::size_t>>& parts() {
  static const auto* const all = [] {
    constexpr std::size_t line = rma::line_words * sizeof(rma::word);
    constexpr std::size_t lines_in_use = 200;
    auto* const found = new std::vector<std::pair<std::size_t, std::size_t>>{
        {0, offsetof(domain_header, deaths)},
        {offsetof(domain_header, deaths), offsetof(domain_header, directory)},
        {offsetof(domain_header, directory), sizeof(domain_header)},
        {detail::classes_at, detail::classes_at + 6 * sizeof(domain_class)},
        {detail::buckets_at, detail::bells_at},
        {detail::bells_at, detail::head_bytes},
        {detail::room_at, detail::room_at + lines_in_use * line},
        {detail::room_at, detail::room_at + lines_in_use * line}};
    for (std::size_t i = 0; i <= static_cast<std::size_t>(small.slots); ++i) {
      const std::size_t slot = detail::slots_at + i * detail::slot_bytes;
      found->emplace_back(slot, slot + detail::own_words * sizeof(rma::word));
      found->emplace_back(slot + detail::own_words * sizeof(rma::word),
                          slot + sizeof(detail::domain_slot_page));
    }
    return found;
  }();
  return *all;
}

/// An edit is 12 bytes: which part, how many bytes, where (2), what (8).
void write_over(std::vector<std::byte>& file, std::span<const std::uint8_t> edits) {
  constexpr std::size_t size = 12;
  for (; edits.size() >= size; edits = edits.subspan(size)) {
    const auto [first, end] = parts()[edits[0] % parts().size()];
    std::uint16_t where = 0;
    std::memcpy(&where, &edits[2], sizeof where);
    const std::size_t at = first + where % (end - first);
    if (at >= file.size()) continue;
    const std::size_t count = std::min(std::size_t{1} << edits[1] % 4, end - at);
    std::memcpy(&file[at], &edits[4], count);
  }
}

void make_checksum_right(std::vector<std::byte>& file) {
  std::uint64_t sum = 0xcbf29ce484222325ULL;
  for (std::size_t i = 0; i < offsetof(domain_header, check); ++i)
    sum = (sum ^ std::to_integer<std::uint64_t>(file[i])) * 0x100000001b3ULL;
  std::memcpy(&file[offsetof(domain_header, check)], &sum, sizeof sum);
}

void put_file(const std::vector<std::byte>& file, const std::string& path) {
  constexpr std::size_t page = 4096;
  constexpr std::array<std::byte, page> nothing{};
  unlink(path.c_str());
  mkdir(path.substr(0, path.rfind('/')).c_str(), 0700);
  const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(file.size())) != 0) fail(path.c_str());
  for (std::size_t at = 0; at < file.size(); at += page) {
    const std::size_t size = std::min(page, file.size() - at);
    if (std::memcmp(&file[at], nothing.data(), size) == 0) continue;
    if (pwrite(fd, &file[at], size, static_cast<off_t>(at)) != static_cast<ssize_t>(size))
      fail(path.c_str());
  }
  close(fd);
}

template <class What>
void allowed_to_refuse(What what) {
  try {
    what();
  } catch (const domain_error&) {
  }
}

void use(named_lock& one) {
  constexpr std::uint64_t patience_ns = 20'000;
  if (one.try_lock_within(patience_ns)) {
    static_cast<void>(one.token());
    if (one.owner_died()) one.mark_consistent();
    one.unlock();
  }
  if (one.can_share() && one.try_lock_shared_within(patience_ns)) one.unlock_shared();
}

void use(named_semaphore& one) {
  constexpr std::uint64_t patience_ns = 20'000;
  if (!one.try_acquire_within(patience_ns)) return;
  static_cast<void>(one.token());
  if (one.owner_died()) one.mark_consistent();
  one.release();
}

/// Makes the edits in the file, one after the other, while others use it.
void write_over_in_use(const std::string& path, std::span<const std::uint8_t> edits) {
  constexpr std::size_t size = 12;
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  for (; fd >= 0 && edits.size() >= size; edits = edits.subspan(size)) {
    const auto [first, end] = parts()[edits[0] % parts().size()];
    std::uint16_t where = 0;
    std::memcpy(&where, &edits[2], sizeof where);
    const std::size_t at = first + where % (end - first);
    const std::size_t count = std::size_t{1} << edits[1] % 4;
    struct stat s {};
    if (fstat(fd, &s) != 0 || at + count > static_cast<std::size_t>(s.st_size)) continue;
    if (pwrite(fd, &edits[4], count, static_cast<off_t>(at)) < 0) break;
    usleep(100);
  }
  close(fd);
}

void use_all(const std::string& name) {
  allowed_to_refuse([&] {
    auto d = domain::attach(name);
    static_cast<void>(d.names());
    allowed_to_refuse([&] { static_cast<void>(d.participants()); });
    allowed_to_refuse([&] { static_cast<void>(d.locks()); });
    for (const known_lock& one : known_locks)
      allowed_to_refuse([&] {
        auto of = handle(d, one);
        use(of);
      });
    allowed_to_refuse([&] {
      named_semaphore units(d, semaphore, semaphore_units);
      use(units);
      use(units);
    });
    allowed_to_refuse([&] { static_cast<void>(d.users_of(semaphore)); });
    for (const known_lock& one : known_locks) allowed_to_refuse([&] { d.remove_lock(one.name); });
    allowed_to_refuse([&] { d.remove_lock(semaphore); });
    allowed_to_refuse([&] {
      auto anew = handle(d, known_locks[1]);
      use(anew);
    });
    allowed_to_refuse([&] { d.sweep(); });
    allowed_to_refuse([&] { static_cast<void>(d.locks()); });
  });
}

/// Lines: a domain, a lock, its kind, its parameters.
void use_names(std::span<const std::uint8_t> text) {
  std::array<std::string, 4> words;
  std::size_t word = 0;
  for (const std::uint8_t c : text) {
    if (c == '\n' && word + 1 < words.size())
      ++word;
    else
      words[word] += static_cast<char>(c);
  }
  const auto& [in, lock, kind, parameters] = words;
  allowed_to_refuse([&, &domain_name = in] { static_cast<void>(domain::attach(domain_name)); });
  auto d = domain::open(name_of_domain(), small);
  allowed_to_refuse([&, &lock_name = lock, &of_kind = kind, &with = parameters] {
    named_lock one(d, lock_name, {.kind = of_kind, .parameters = with});
    use(one);
    static_cast<void>(d.locks());
  });
  allowed_to_refuse([&, &lock_name = lock] { d.remove_lock(lock_name); });
}

}  // namespace

void prepare_domain_inputs() { static_cast<void>(made_domains()); }

void use_domain_input(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  const std::uint8_t flags = bytes.front();
  const auto rest = bytes.subspan(1);
  const std::string name = name_of_domain();
  // A thread of its own: what it has of the domain ends with it.
  std::thread([&] {
    if ((flags & is_of_names) != 0) {
      use_names(rest);
    } else {
      auto file = made_domains()[(flags & orphaned) != 0 ? 1 : 0];
      write_over(file, rest);
      if ((flags & checked) != 0) make_checksum_right(file);
      put_file(file, path_of(name));
      if ((flags & in_use) != 0) {
        put_file(made_domains()[0], path_of(name));
        std::thread other([&] { write_over_in_use(path_of(name), rest); });
        use_all(name);
        other.join();
      } else {
        use_all(name);
      }
    }
  }).join();
  unlink(path_of(name).c_str());
}

}  // namespace lockflight::test
