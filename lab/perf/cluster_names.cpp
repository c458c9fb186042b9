// What clients of a cluster's domain measure, for lab/perf/perf_cluster: each host has processes of
// this program. The same can be done with the usual lock on a Redis server.
//
// usage: cluster_names pairs LOCKS MODE SECONDS    pairs of lock and unlock of one free name
//        cluster_names compete LOCKS NAME SECONDS  one name that others want, too
//        cluster_names names LOCKS HOST PERCENT SECONDS
//                                                  10,000 names of 3 hosts; PERCENT of the
//                                                  acquires are of names of HOST (0 to 2)
//        cluster_names longest LOCKS NAME SECONDS  the longest acquire of a name
//        cluster_names serve LOCKS                 does what the lines of its input say
//        cluster_names ping SECONDS                one byte over TCP, between two processes
//
// LOCKS is a domain, such as etcd:jobs, or redis:PORT:FILE. Redis gives no tokens, so its clients
// count their acquires in FILE, which they have in memory. MODE is exclusive or shared. Prints
// JSON. `compete`, `names` and `longest` print a line when they are ready, and wait for one.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lockflight/domain.hpp"

namespace {

using namespace lockflight;

constexpr std::uint64_t second_ns = 1'000'000'000;

std::uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * second_ns + static_cast<std::uint64_t>(t.tv_nsec);
}

std::uint64_t after(double seconds) {
  return now_ns() + static_cast<std::uint64_t>(seconds * static_cast<double>(second_ns));
}

double us_of(std::uint64_t ns) { return static_cast<double>(ns) * 1e-3; }

double median(std::vector<double>& of) {
  if (of.empty()) throw std::runtime_error("there was no time to measure anything");
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2), of.end());
  return of[of.size() / 2];
}

void await_go() {
  std::puts("ready");
  std::fflush(stdout);
  std::string line;
  std::getline(std::cin, line);
}

// ---- locks ----

/// A handle of a name.
class name_of_locks {
 public:
  virtual ~name_of_locks() = default;
  virtual void lock() = 0;
  virtual void unlock() = 0;
  /// For a holder: grows by one from one acquire of the name to the next, on all hosts.
  [[nodiscard]] virtual std::uint64_t order() = 0;
};

class name_of_domain final : public name_of_locks {
 public:
  name_of_domain(const domain& in, const std::string& name) : lock_(in, name) {}
  void lock() override { lock_.lock(); }
  void unlock() override { lock_.unlock(); }
  [[nodiscard]] std::uint64_t order() override { return lock_.token(); }

 private:
  named_shared_mutex lock_;
};

/// A connection of one client.
class redis {
 public:
  redis(int port, const char* file)
      : count_(counter_in(file)), socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
      throw std::runtime_error("no Redis server answers");
    // As its documentation and its clients have it: a client that has lost the lock releases
    // nothing.
    ask({"SCRIPT", "LOAD",
         "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else "
         "return 0 end"});
    script_ = line();
  }
  ~redis() { close(socket_); }
  redis(const redis&) = delete;
  redis& operator=(const redis&) = delete;

  [[nodiscard]] std::uint64_t count() { return count_->fetch_add(1); }
  bool take(const std::string& key, const std::string& value) {
    return ask({"SET", key, value, "NX", "PX", "30000"}) == "+OK";
  }
  void release(const std::string& key, const std::string& value) {
    if (ask({"EVALSHA", script_, "1", key, value}) != ":1")
      throw std::runtime_error("the Redis server has lost a lock");
  }

 private:
  /// The first line of the answer.
  std::string ask(std::initializer_list<std::string> words) {
    std::string text = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words)
      text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    if (write(socket_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      throw std::runtime_error("the Redis server reads no more");
    return line();
  }
  std::string line() {
    constexpr std::string_view end = "\r\n";
    while (there_.find(end) == std::string::npos) {
      std::array<char, 4096> bytes{};
      const ssize_t count = read(socket_, bytes.data(), bytes.size());
      if (count <= 0) throw std::runtime_error("the Redis server answers no more");
      there_.append(bytes.data(), static_cast<std::size_t>(count));
    }
    const std::size_t at = there_.find(end);
    std::string first = there_.substr(0, at);
    there_.erase(0, at + end.size());
    return first;
  }

  static std::atomic<std::uint64_t>* counter_in(const char* path) {
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    constexpr std::size_t size = sizeof(std::atomic<std::uint64_t>);
    void* const at = file < 0 || ftruncate(file, size) != 0
                         ? MAP_FAILED
                         : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) throw std::runtime_error("cannot count in a file");
    close(file);
    return static_cast<std::atomic<std::uint64_t>*>(at);
  }

  std::atomic<std::uint64_t>* count_;
  int socket_;
  std::string script_;
  std::string there_;
};

class name_of_redis final : public name_of_locks {
 public:
  name_of_redis(redis& in, std::string name)
      : redis_(in), name_(std::move(name)), value_(std::to_string(getpid())) {}
  void lock() override {
    constexpr useconds_t pause_us = 1'000;
    while (!redis_.take(name_, value_)) usleep(pause_us);
  }
  void unlock() override { redis_.release(name_, value_); }
  [[nodiscard]] std::uint64_t order() override { return redis_.count(); }

 private:
  redis& redis_;
  std::string name_;
  std::string value_;
};

/// A domain, or a connection to a Redis server.
class locks {
 public:
  explicit locks(const std::string& what) {
    constexpr std::string_view prefix = "redis:";
    const std::size_t file = what.rfind(':') + 1;
    if (what.starts_with(prefix) && file > prefix.size())
      redis_ = std::make_unique<redis>(std::atoi(what.c_str() + prefix.size()), &what[file]);
    else
      domain_ = std::make_unique<domain>(domain::open(what));
  }
  [[nodiscard]] std::unique_ptr<name_of_locks> name(const std::string& of) {
    if (redis_) return std::make_unique<name_of_redis>(*redis_, of);
    return std::make_unique<name_of_domain>(*domain_, of);
  }

 private:
  std::unique_ptr<redis> redis_;
  std::unique_ptr<domain> domain_;
};

// ---- what is measured ----

template <class Once>
double pairs_per_s(double seconds, Once once) {
  // The clock takes as long as a free lock.
  constexpr std::uint64_t at_once = 256;
  once();  // the first use looks the name up
  std::uint64_t done = 0;
  const std::uint64_t begun = now_ns();
  const std::uint64_t end = after(seconds);
  while (now_ns() < end) {
    for (std::uint64_t i = 0; i < at_once; ++i) once();
    done += at_once;
  }
  return static_cast<double>(done) / (static_cast<double>(now_ns() - begun) * 1e-9);
}

void pairs(const std::string& in, const std::string& mode, double seconds) {
  named_shared_mutex lock(domain::open(in), "pairs");
  const double rate = mode == "shared" ? pairs_per_s(seconds,
                                                     [&] {
                                                       lock.lock_shared();
                                                       lock.unlock_shared();
                                                     })
                                       : pairs_per_s(seconds, [&] {
                                           lock.lock();
                                           lock.unlock();
                                         });
  std::printf("{\"pairs_per_s\": %.1f}\n", rate);
}

/// Where this process holds the name several times in a row, the first is said alone.
void compete(const std::string& in, const std::string& of, double seconds) {
  locks all(in);
  const auto name = all.name(of);
  name->lock();
  name->unlock();
  await_go();
  std::vector<std::uint64_t> acquires(static_cast<std::size_t>(seconds) + 1);
  std::vector<std::uint64_t> order;
  std::uint64_t last = 0;
  const std::uint64_t begun = now_ns();
  const std::uint64_t end = after(seconds);
  for (;;) {
    name->lock();
    const std::uint64_t now = now_ns();
    const std::uint64_t mine = name->order();
    name->unlock();
    if (now >= end) break;
    if (mine != last + 1) order.push_back(mine);
    last = mine;
    ++acquires[(now - begun) / second_ns];
  }
  std::printf("{\"acquires\": [");
  for (std::size_t i = 0; i < acquires.size(); ++i)
    std::printf("%s%llu", i == 0 ? "" : ", ", static_cast<unsigned long long>(acquires[i]));
  std::printf("], \"order\": [");
  for (std::size_t i = 0; i < order.size(); ++i)
    std::printf("%s%llu", i == 0 ? "" : ", ", static_cast<unsigned long long>(order[i]));
  std::printf("]}\n");
}

void many_names(const std::string& in, unsigned host, unsigned percent, double seconds) {
  constexpr unsigned hosts = 3;
  constexpr unsigned names_of_a_host = 3'333;
  locks all(in);
  std::vector<std::unique_ptr<name_of_locks>> names;
  for (unsigned i = 0; i < hosts * names_of_a_host; ++i) {
    names.push_back(all.name("name-" + std::to_string(i)));
    if (i / names_of_a_host != host) continue;
    names[i]->lock();
    names[i]->unlock();
  }
  await_go();
  std::minstd_rand random(host + 1);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  std::uint64_t done = 0;
  const std::uint64_t begun = now_ns();
  const std::uint64_t end = after(seconds);
  for (; now_ns() < end; ++done) {
    unsigned of = host;
    if (below(100) >= percent) of = (host + 1 + below(hosts - 1)) % hosts;
    name_of_locks& one = *names[of * names_of_a_host + below(names_of_a_host)];
    one.lock();
    one.unlock();
  }
  std::printf("{\"acquires_per_s\": %.1f}\n",
              static_cast<double>(done) / (static_cast<double>(now_ns() - begun) * 1e-9));
}

/// It sleeps between two acquires: what is measured is no throughput.
void longest(const std::string& in, const std::string& of, double seconds) {
  constexpr useconds_t pause_us = 200;
  locks all(in);
  const auto name = all.name(of);
  name->lock();
  name->unlock();
  await_go();
  std::uint64_t most = 0;
  for (const std::uint64_t end = after(seconds); now_ns() < end; usleep(pause_us)) {
    const std::uint64_t begun = now_ns();
    name->lock();
    most = std::max(most, now_ns() - begun);
    name->unlock();
  }
  std::printf("{\"longest_ms\": %.4f}\n", us_of(most) * 1e-3);
}

/// "lock NAME", "lock_shared NAME", "unlock NAME", "unlock_shared NAME". The answer is a line: how
/// many microseconds it took, when it was done, on CLOCK_MONOTONIC, and whether a holder has died.
void serve(const std::string& in) {
  const domain there = domain::open(in);
  std::map<std::string, named_shared_mutex> names;
  std::string what;
  std::string of;
  while (std::cin >> what >> of) {
    named_shared_mutex& name = names.try_emplace(of, there, of).first->second;
    const std::uint64_t begun = now_ns();
    if (what == "lock") name.lock();
    if (what == "lock_shared") name.lock_shared();
    if (what == "unlock") name.unlock();
    if (what == "unlock_shared") name.unlock_shared();
    const std::uint64_t end = now_ns();
    std::printf("{\"us\": %.3f, \"at_s\": %.6f, \"died\": %s}\n", us_of(end - begun),
                us_of(end) * 1e-6, name.is_held() && name.owner_died() ? "true" : "false");
    std::fflush(stdout);
  }
}

[[noreturn]] void echo(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  char byte = 0;
  while (read(socket, &byte, 1) == 1 && write(socket, &byte, 1) == 1) continue;
  _exit(0);
}

void ping(double seconds) {
  const int port = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  if (bind(port, address, sizeof at) != 0 || listen(port, 1) != 0 ||
      getsockname(port, address, &size) != 0)
    throw std::runtime_error("cannot listen");
  const pid_t other = fork();
  if (other == 0) echo(accept(port, nullptr, nullptr));
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(socket, address, sizeof at) != 0) throw std::runtime_error("cannot connect");
  std::vector<double> took_us;
  char byte = 0;
  for (const std::uint64_t end = after(seconds); now_ns() < end;) {
    const std::uint64_t begun = now_ns();
    if (write(socket, &byte, 1) != 1 || read(socket, &byte, 1) != 1)
      throw std::runtime_error("the other process has ended");
    took_us.push_back(us_of(now_ns() - begun));
  }
  close(socket);
  waitpid(other, nullptr, 0);
  std::printf("{\"p50_us\": %.3f}\n", median(took_us));
}

bool run(const std::vector<std::string>& given) {
  const std::string what = given.empty() ? "" : given[0];
  const double seconds = given.empty() ? 0 : std::atof(given.back().c_str());
  if (what == "serve" && given.size() == 2) return serve(given[1]), true;
  if (!(seconds > 0)) return false;
  if (what == "ping" && given.size() == 2) return ping(seconds), true;
  if (what == "compete" && given.size() == 4) return compete(given[1], given[2], seconds), true;
  if (what == "pairs" && given.size() == 4) return pairs(given[1], given[2], seconds), true;
  if (what == "longest" && given.size() == 4) return longest(given[1], given[2], seconds), true;
  if (what != "names" || given.size() != 5) return false;
  many_names(given[1], static_cast<unsigned>(std::atoi(given[2].c_str())),
             static_cast<unsigned>(std::atoi(given[3].c_str())), seconds);
  return true;
}

}  // namespace

int main(int argc, char** argv) try {
  if (run({argv + 1, argv + argc})) return 0;
  std::fputs("usage: cluster_names pairs|compete|names|longest|serve|ping ...\n", stderr);
  return 2;
} catch (const std::exception& e) {
  std::fprintf(stderr, "cluster_names: %s\n", e.what());
  return 3;
}
