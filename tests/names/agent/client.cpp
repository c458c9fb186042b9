// A client of a cluster's domain for the campaign: some threads that lock names, use registers
// under the locks, and write down what happened, one line of JSON for each event.
//
//   cluster_client HISTORY REGISTERS DOMAIN SEED THREADS NAMES
//
// REGISTERS is a file outside all hosts. Each name has two registers: a plain one, which nothing
// but its lock guards, and a fenced one, which refuses a smaller token than it has seen.
//
// Events of an operation (thread, number), with `t` of CLOCK_MONOTONIC in nanoseconds:
//   invoke    name, mode, limit_ms (-1: none)
//   acquired  token (exclusive), died, valid: for how long from `t` on
//   told      the library said that the hold is lost
//   leaving   before the release; of an exclusive holder what it read and wrote, when it saw last
//             that it is valid, for how long from then on, and when it had written
//   released; gave_up: the time was over; error: what was thrown
// and about the value of the name, which is the token of the holder that has published it:
//   read      before the acquire: since when, and the token that was read; 0: there was none
//   published an exclusive holder's value is there
//   seen      name and token, by a thread that waits for changes
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "lockflight/domain.hpp"
#include "lockflight/named_control.hpp"

namespace {

using lockflight::named_lock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// One write for each line: a client that is killed leaves whole lines.
class history {
 public:
  explicit history(const char* path)
      : to_(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
    if (to_ < 0) throw std::runtime_error(path);
  }
  void write(const std::string& line) const {
    if (::write(to_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) _exit(3);
  }

 private:
  int to_;
};

/// Token and value in one word, so that they change together: a client may be stopped anywhere.
class fenced_register {
 public:
  /// None if the register has seen a greater token. A read counts as well: a holder that has read
  /// would lose a write that an older holder does later.
  std::optional<std::uint64_t> read(std::uint64_t token) { return set(token, std::nullopt); }
  bool write(std::uint64_t token, std::uint64_t value) { return set(token, value).has_value(); }

 private:
  static constexpr int value_bits = 22, counter_bits = 26;
  static constexpr int counter_bits_of_token = 42;

  static std::uint64_t shortened(std::uint64_t token) {
    const std::uint64_t counter = token & ((std::uint64_t{1} << counter_bits_of_token) - 1);
    const std::uint64_t epoch = token >> counter_bits_of_token;
    if (counter >> counter_bits != 0 || epoch >> (64 - value_bits - counter_bits) != 0) _exit(4);
    return epoch << counter_bits | counter;
  }
  std::optional<std::uint64_t> set(std::uint64_t token, std::optional<std::uint64_t> value) {
    const std::uint64_t mine = shortened(token);
    std::uint64_t is = word_.load();
    for (;;) {
      const std::uint64_t was = is & ((std::uint64_t{1} << value_bits) - 1);
      if (is >> value_bits > mine) return std::nullopt;
      if (word_.compare_exchange_weak(is, mine << value_bits | value.value_or(was))) return was;
    }
  }
  std::atomic<std::uint64_t> word_;
};

struct alignas(64) registers {
  std::atomic<std::uint64_t> plain;
  fenced_register fenced;
};

registers* map_registers(const char* path, int names) {
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const auto size = static_cast<std::size_t>(names) * sizeof(registers);
  if (file < 0 || ftruncate(file, static_cast<off_t>(size)) != 0) throw std::runtime_error(path);
  void* const at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) throw std::runtime_error(path);
  return static_cast<registers*>(at);
}

constexpr lockflight::limit answers_within = lockflight::limit::of_ns(200'000'000);

/// The token that a value has as its text. A value with another token was mixed of two.
std::string text_of(const lockflight::published_value& value) {
  if (value.token == 0) return "0";
  if (value.bytes != std::to_string(value.token))
    throw std::runtime_error("a value of two holders");
  return value.bytes;
}

/// Waits for changes of the values of all names in turn.
[[noreturn]] void observe(const lockflight::domain& in, const history& log, int names, int thread) {
  std::vector<std::unique_ptr<named_lock>> locks;
  for (int i = 0; i < names; ++i)
    locks.push_back(std::make_unique<named_lock>(in, fmt::format("name{}", i)));
  std::vector<lockflight::published_value> seen(locks.size());
  for (std::uint64_t number = 0;;)
    for (std::size_t i = 0; i < locks.size(); ++i) {
      try {
        auto now = locks[i]->await_published(seen[i], lockflight::limit::of_ns(20'000'000));
        if (now == seen[i]) continue;
        seen[i] = std::move(now);
        log.write(fmt::format(
            "{{\"event\":\"seen\",\"t\":{},\"thread\":{},\"op\":{},\"name\":{},\"value\":{}}}\n",
            now_ns(), thread, ++number, i, text_of(seen[i])));
      } catch (const lockflight::domain_error&) {  // the agent does not run at this moment
        std::this_thread::sleep_for(milliseconds(100));
      }
    }
}

class user {
 public:
  user(const lockflight::domain& in, const history& log, registers* all, int names, int thread,
       unsigned seed)
      : domain_(in), log_(log), registers_(all), thread_(thread), random_(seed) {
    locks_.resize(static_cast<std::size_t>(names));
  }

  [[noreturn]] void run() {
    for (;;) {
      ++number_;
      use(below(static_cast<int>(locks_.size())));
      std::this_thread::sleep_for(microseconds(below(80'000)));
    }
  }

 private:
  int below(int most) { return std::uniform_int_distribution<>(0, most - 1)(random_); }
  bool happens(int percent) { return below(100) < percent; }

  void note(const char* event, std::int64_t at, const std::string& more = "") const {
    note_of(number_, event, at, more);
  }
  void note_of(std::uint64_t operation, const char* event, std::int64_t at,
               const std::string& more = "") const {
    log_.write(fmt::format("{{\"event\":\"{}\",\"t\":{},\"thread\":{},\"op\":{}{}}}\n", event, at,
                           thread_, operation, more));
  }

  void use(int name) {
    const bool shares = happens(30);
    // Some threads never wait for long: a host that is cut off has clients that go on asking.
    const bool is_patient = thread_ % 2 == 0 && happens(80);
    const int limit_ms = is_patient ? -1 : happens(30) ? 0 : 1 + below(300);
    std::unique_ptr<named_lock>& lock = locks_[static_cast<std::size_t>(name)];
    const std::string read = lock && happens(15) ? read_value(*lock) : "";
    note("invoke", now_ns(),
         fmt::format(",\"name\":{},\"mode\":\"{}\",\"limit_ms\":{}", name,
                     shares ? "shared" : "exclusive", limit_ms));
    if (!read.empty()) note("read", now_ns(), read);
    try {
      if (!lock) lock = std::make_unique<named_lock>(domain_, fmt::format("name{}", name));
      if (!acquire(*lock, shares, limit_ms)) return note("gave_up", now_ns());
      if (shares)
        share(*lock);
      else
        exclude(lock, registers_[name]);
      note("released", now_ns());
    } catch (const std::exception& e) {
      note("error", now_ns(), fmt::format(",\"what\":\"{}\"", e.what()));
      lock.reset();
      std::this_thread::sleep_for(milliseconds(100));
    }
  }

  static bool acquire(named_lock& lock, bool shares, int limit_ms) {
    const auto ns = static_cast<std::uint64_t>(limit_ms) * 1'000'000;
    if (limit_ms >= 0) return shares ? lock.try_lock_shared_within(ns) : lock.try_lock_within(ns);
    if (shares)
      lock.lock_shared();
    else
      lock.lock();
    return true;
  }

  void note_acquired(named_lock& lock, std::uint64_t token) {
    const std::int64_t at = now_ns();
    const auto valid = lock.valid_for().count();
    note("acquired", at,
         fmt::format(",\"token\":{},\"died\":{},\"valid\":{}", token, lock.owner_died(), valid));
    at_loss_.emplace(lock.loss(), [this, of = number_] { note_of(of, "told", now_ns()); });
  }

  // etcd may not answer, and a host that is cut off is refused.
  static std::string read_value(named_lock& lock) {
    const std::int64_t since = now_ns();
    try {
      const auto found = lockflight::named_control(lock).published(answers_within);
      if (found) return fmt::format(",\"since\":{},\"value\":{}", since, text_of(*found));
    } catch (const lockflight::domain_error&) {  // the agent does not run at this moment
    }
    return "";
  }
  void publish(named_lock& lock, std::uint64_t token) {
    try {
      if (lockflight::named_control(lock).publish(std::to_string(token),
                                                  lockflight::lasts::with_name, answers_within))
        note("published", now_ns());
    } catch (const lockflight::domain_error& e) {
      using enum lockflight::domain_error::reason;
      if (e.why != not_held && e.why != system)
        throw;  // it is lost, or a later holder has published
    }
  }

  // Most sections are short. A few are as long as a hiccup of the network.
  void stay() {
    const int kind = below(1000);
    if (kind < 500) return;
    const int most_us = kind < 990 ? 3'000 : kind < 999 ? 30'000 : 300'000;
    std::this_thread::sleep_for(microseconds(below(most_us)));
  }

  void share(named_lock& lock) {
    note_acquired(lock, 0);
    stay();
    const std::int64_t at = now_ns();
    const auto valid = lock.valid_for().count();
    note("leaving", now_ns(), fmt::format(",\"checked\":{},\"valid\":{}", at, valid));
    lock.unlock_shared();
  }

  void exclude(std::unique_ptr<named_lock>& lock, registers& mine) {
    const std::uint64_t token = lock->token();
    note_acquired(*lock, token);
    const std::uint64_t plain = mine.plain.load();
    const std::optional<std::uint64_t> fenced = mine.fenced.read(token);
    stay();
    const std::int64_t at = now_ns();
    const auto valid = lock->valid_for().count();
    std::string wrote;
    if (valid > 0) {
      mine.plain.store(plain + 1);
      const bool accepts = fenced && mine.fenced.write(token, *fenced + 1);
      wrote = fmt::format(",\"wrote\":{},\"fenced\":{}", now_ns(),
                          accepts ? std::to_string(*fenced) : "null");
    }
    if (happens(15)) publish(*lock, token);
    const bool marks = lock->owner_died() && happens(70);
    if (marks) lock->mark_consistent();
    const bool abandons = happens(1);
    note("leaving", now_ns(),
         fmt::format(",\"checked\":{},\"valid\":{},\"plain\":{},\"marks\":{},\"abandons\":{}{}", at,
                     valid, plain, marks, abandons, wrote));
    if (abandons)
      lock.reset();
    else
      lock->unlock();
  }

  const lockflight::domain& domain_;
  const history& log_;
  registers* registers_;
  int thread_;
  std::mt19937 random_;
  std::uint64_t number_ = 0;
  std::optional<std::stop_callback<std::function<void()>>> at_loss_;  // of the last hold
  std::vector<std::unique_ptr<named_lock>> locks_;
};

/// The agent of this host may not have started yet.
lockflight::domain open_domain(const char* name) {
  for (;;) {
    try {
      return lockflight::domain::open(name);
    } catch (const lockflight::domain_error&) {
      std::this_thread::sleep_for(milliseconds(50));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const history log(argv[1]);
  const auto seed = static_cast<unsigned>(std::strtoul(argv[4], nullptr, 10));
  const int threads = std::atoi(argv[5]);
  const int names = std::atoi(argv[6]);
  registers* const all = map_registers(argv[2], names);
  const lockflight::domain domain = open_domain(argv[3]);
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i)
    running.emplace_back(
        [&, i] { user(domain, log, all, names, i, seed * 64 + static_cast<unsigned>(i)).run(); });
  running.emplace_back([&] { observe(domain, log, names, threads); });
  for (std::thread& each : running) each.join();
}
