// The kill campaign: processes lock and unlock named locks while they are killed, stopped and told
// to exit at random moments, by two users, in several namespaces of processes, and while somebody
// tries to remove the domain. They also become new images by exec, make children in every way, and
// enter other namespaces. What the locks guard shows every lost update, torn state, repeated
// token and false alarm. Waiters are also stopped for long: nobody else may wait for them.
//
// Usage: lockflight_deaths --kills 300 --processes 8. Exit codes: 0 fine, 1 a rule is broken, 2 bad
// usage, 3 the environment failed.
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/number.hpp"
#include "domain/names/kinds.hpp"
#include "domain/ways_to_fork.hpp"
#include "lockflight/domain.hpp"
#include "lockflight/rma/assert.hpp"

namespace lockflight::test {
namespace {

using clock = std::chrono::steady_clock;

constexpr int most_processes = 64;
constexpr int most_locks = 32;

/// A lock of each kind.
const std::vector<std::string>& kinds() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
    for (const auto& kind : detail::domain_kinds()) names.emplace_back(kind.about.name);
    rma::ensure(names.size() <= most_locks, "there is room for all kinds");
    return names;
  }();
  return all;
}
const std::string& kind_of(int lock) { return kinds()[static_cast<std::size_t>(lock)]; }
int locks() { return static_cast<int>(kinds().size()); }

/// What one lock guards. Only its exclusive holder writes, and plainly: a second one would be seen.
struct guarded {
  std::uint64_t first = 0;  // differs from `second` only while a holder is at work
  std::uint64_t second = 0;
  std::uint64_t count = 0;     // of updates
  std::uint64_t token = 0;     // of the last holder
  std::uint64_t told = 0;      // how often a holder was told that the one before it died
  std::uint64_t removals = 0;  // of the domain, before the last write
};

/// Where a worker is, for the parent, which finds it dead.
enum class where : int { outside, on_the_way, inside };

struct worker_state {
  std::atomic<int> lock{-1};
  std::atomic<where> is{where::outside};
  std::atomic<bool> exclusive{false};
  std::atomic<pid_t> pid{-1};  ///< as the parent knows it, of a worker in a namespace of its own
  std::atomic<std::uint64_t> updates[most_locks];
  std::atomic<std::uint64_t> stopped_ns{0};  ///< for so long in all
};

/// What a worker can be told to do, wherever it is.
enum order : int { to_exit, to_become_an_image, to_make_a_child, to_enter_a_namespace };
int order_to(int worker, order what) { return what * most_processes + worker; }

struct shared_state {
  std::atomic<bool> stop{false};
  std::atomic<int> told{-1};                           ///< an order_to a worker
  std::atomic<std::uint64_t> left_inside[most_locks];  ///< images that ended as holders
  /// Of a lock, without the time for which the waiter itself was stopped.
  std::atomic<std::uint64_t> longest_wait_ns[most_locks];
  std::atomic<std::uint64_t> acquires{0};
  /// Grows when all have died, before the domain is removed: nobody in the next domain is told of
  /// what was left in this one.
  std::atomic<std::uint64_t> removals{0};
  std::atomic<int> broken{0};
  char what[1024] = {};
  guarded data[most_locks];
  worker_state worker[most_processes];
};

struct request {
  int kills = 300;
  int processes = 8;
  std::uint64_t seed = 1;
  double most_wait_s = 2;
  bool users = false;
  bool spaces = false;
  bool removals = false;
  bool images = false;
  bool quiet = false;
  std::vector<std::string> kinds;  ///< that are used; none: all
  /// [number of a lock among `kinds`]
  [[nodiscard]] std::vector<int> numbers() const {
    std::vector<int> found;
    for (int i = 0; i < locks(); ++i)
      if (kinds.empty() || std::ranges::count(kinds, kind_of(i)) > 0) found.push_back(i);
    return found;
  }
};

void report(shared_state& all, const std::string& what) {
  if (all.broken.fetch_add(1) == 0) what.copy(all.what, sizeof all.what - 1);
}

/// How long a wait has taken. It ends with the object.
class measured_wait {
 public:
  measured_wait(shared_state& all, int me, int number)
      : stopped_ns_(all.worker[me].stopped_ns),
        stopped_before_(stopped_ns_),
        longest_(all.longest_wait_ns[number]) {}
  ~measured_wait() {
    const auto took = static_cast<std::uint64_t>((clock::now() - since_).count());
    const std::uint64_t stopped = stopped_ns_ - stopped_before_;
    const std::uint64_t ns = took - std::min(took, stopped);
    std::uint64_t most = longest_.load();
    while (ns > most && !longest_.compare_exchange_weak(most, ns)) {
    }
  }
  measured_wait(const measured_wait&) = delete;
  measured_wait& operator=(const measured_wait&) = delete;

 private:
  const std::atomic<std::uint64_t>& stopped_ns_;
  std::uint64_t stopped_before_;
  std::atomic<std::uint64_t>& longest_;
  clock::time_point since_ = clock::now();
};

/// What a worker is made from, also in its next image.
struct worker_start {
  int worker = 0;
  int memory = -1;  ///< the descriptor of the shared state
  std::string name;
  std::vector<int> numbers;
  std::uint64_t seed = 1;
  domain_options as;
};
/// Of a worker: itself, and its handles.
const worker_start* this_worker = nullptr;
std::vector<named_lock>* its_handles = nullptr;
constexpr const char* as_worker = "--as-worker";

// It holds what it holds: its death as this image is that of a holder.
[[noreturn]] void become_an_image(shared_state& all) {
  const worker_start& own = *this_worker;
  worker_state& mine = all.worker[own.worker];
  if (mine.is == where::inside && mine.exclusive) ++all.left_inside[mine.lock];
  mine.is = where::outside;
  mine.lock = -1;
  std::string numbers;
  for (const int each : own.numbers) numbers += std::to_string(each) + ' ';
  const std::array<std::string, 8> words{"lockflight_deaths",
                                         as_worker,
                                         std::to_string(own.worker),
                                         std::to_string(own.memory),
                                         std::to_string(own.seed * 3 + 1),
                                         own.name,
                                         std::to_string(own.as.mode) + ' ' + own.as.group,
                                         numbers};
  std::array<char*, words.size() + 1> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = const_cast<char*>(words[i].c_str());
  // By its descriptor: /proc and the path may not be there in our namespace.
  fexecve(own.memory + 1, arguments.data(), environ);
  _exit(4);
}

// The child is told that what its parent holds is not its own.
void make_a_child(shared_state& all, int me) {
  static std::size_t next = static_cast<std::size_t>(me);
  const pid_t made = ways_to_fork[next++ % ways_to_fork.size()].fork();
  if (made != 0) {
    if (made > 0) waitpid(made, nullptr, 0);
    return;
  }
  for (named_lock& each : *its_handles) {
    if (!each.is_held()) continue;
    const bool shared = all.worker[me].exclusive == false;
    try {
      shared ? each.unlock_shared() : each.unlock();
      report(all, fmt::format("{}: a child has released what its parent holds", each.name()));
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::wrong_thread) report(all, e.what());
    }
  }
  _exit(0);
}

// With another /proc, which numbers nobody, or times that are not ours. Without rights: nothing.
void enter_a_namespace(int me) {
  if (me % 2 == 0) {
    if (unshare(CLONE_NEWNS) != 0) return;
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0)
      static_cast<void>(mount("none", "/proc", "tmpfs", 0, nullptr));
    return;
  }
  if (unshare(CLONE_NEWTIME) != 0) return;
  const int offsets = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
  constexpr std::string_view later = "boottime 100000 0\n";
  static_cast<void>(!::write(offsets, later.data(), later.size()));
  close(offsets);
  const int there = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
  static_cast<void>(setns(there, CLONE_NEWTIME));
  close(there);
}

/// A worker does here what it was told to, whatever it holds.
void obey(shared_state& all, int me) {
  int told = all.told;
  if (told < 0 || told % most_processes != me || !all.told.compare_exchange_strong(told, -1))
    return;
  switch (told / most_processes) {
    case to_exit:
      std::exit(0);
    case to_become_an_image:
      become_an_image(all);
    case to_make_a_child:
      return make_a_child(all, me);
    default:
      return enter_a_namespace(me);
  }
}

void write(shared_state& all, int me, int number, named_lock& lock) {
  guarded& data = all.data[number];
  if (lock.owner_died()) {
    ++data.told;
    data.second = data.first;
    lock.mark_consistent();
  } else if (data.first != data.second && data.removals != all.removals) {
    data.second = data.first;
  } else if (data.first != data.second) {
    report(all, fmt::format("{}: torn, and its holder was not told of a death", kind_of(number)));
    data.second = data.first;
  }
  if (lock.token() <= data.token)
    report(all, fmt::format("{}: token {} after {}", kind_of(number), lock.token(), data.token));
  data.token = lock.token();
  data.removals = all.removals;
  ++data.first;
  const std::uint64_t count = data.count;
  obey(all, me);
  data.count = count + 1;
  all.worker[me].updates[number].fetch_add(1);
  data.second = data.first;
}

void read(shared_state& all, int me, int number, named_lock& lock) {
  const guarded& data = all.data[number];
  const std::uint64_t first = data.first;
  obey(all, me);
  if (first != data.second && !lock.owner_died() && data.removals == all.removals)
    report(all, fmt::format("{}: a reader sees a torn state", kind_of(number)));
}

void use(shared_state& all, int me, int number, named_lock& lock, std::mt19937_64& random) {
  worker_state& mine = all.worker[me];
  const bool shared = lock.can_share() && random() % 4 != 0;
  const std::uint64_t way = random() % 4;
  const bool can_time = kind_of(number).starts_with("flight");
  constexpr std::uint64_t patience_ns = 200'000;
  mine.lock = number;
  mine.exclusive = !shared;
  mine.is = where::on_the_way;
  bool had = true;
  {
    const measured_wait wait(all, me, number);
    if (can_time && way == 0)
      had = shared ? lock.try_lock_shared_within(patience_ns) : lock.try_lock_within(patience_ns);
    else if (can_time && way == 1)
      had = shared ? lock.try_lock_shared() : lock.try_lock();
    else
      shared ? lock.lock_shared() : lock.lock();
  }
  if (had) {
    mine.is = where::inside;
    shared ? read(all, me, number, lock) : write(all, me, number, lock);
    mine.is = where::on_the_way;
    shared ? lock.unlock_shared() : lock.unlock();
    all.acquires.fetch_add(1, std::memory_order_relaxed);
  }
  mine.is = where::outside;
}

[[noreturn]] void work(shared_state& all, const worker_start& start) {
  this_worker = &start;
  const int me = start.worker;
  try {
    std::mt19937_64 random(start.seed);
    const domain in = domain::open(start.name, start.as);
    std::vector<named_lock> handles;
    its_handles = &handles;
    for (const std::string& kind : test::kinds())
      handles.emplace_back(in, "a " + kind, named_lock_options{.kind = kind});
    while (!all.stop) {
      obey(all, me);
      const int number = start.numbers[random() % start.numbers.size()];
      use(all, me, number, handles[static_cast<std::size_t>(number)], random);
    }
    handles.clear();
    std::exit(0);
  } catch (const std::exception& e) {
    report(all, fmt::format("a worker failed: {}", e.what()));
    _exit(1);
  }
}

shared_state& map_shared(int memory) {
  void* const at =
      mmap(nullptr, sizeof(shared_state), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  return *static_cast<shared_state*>(at);
}

/// The main program of a worker's next image: the words of become_an_image.
[[noreturn]] void go_on_as_worker(char** words) {
  std::istringstream options(words[6]);
  std::istringstream numbers(words[7]);
  static worker_start start;
  start.worker = read_number<int>(words[2]).value();
  start.memory = read_number<int>(words[3]).value();
  start.seed = read_number<std::uint64_t>(words[4]).value();
  start.name = words[5];
  options >> start.as.mode >> start.as.group;
  for (int each = 0; numbers >> each;) start.numbers.push_back(each);
  work(map_shared(start.memory), start);
}

/// Starts workers, ends them in every way, and keeps the books.
class campaign {
 public:
  explicit campaign(const request& what)
      : what_(what),
        options_(options_of(what)),
        random_(what.seed),
        name_("deaths-" + std::to_string(getpid())) {
    // Both are left open in later images; the program itself has the next number.
    constexpr int out_of_the_way = 100;
    const int made = memfd_create("lockflight-deaths", MFD_CLOEXEC);
    const int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    memory_ = out_of_the_way;
    if (ftruncate(made, sizeof(shared_state)) != 0 || dup2(made, memory_) != memory_ ||
        dup2(program, memory_ + 1) != memory_ + 1)
      throw std::system_error(errno, std::generic_category(), "memory and program for workers");
    close(made);
    close(program);
    all_ = new (&map_shared(memory_)) shared_state;
    pids_.resize(static_cast<std::size_t>(what.processes), -1);
  }
  campaign(const campaign&) = delete;
  campaign& operator=(const campaign&) = delete;
  ~campaign() {
    for (std::size_t w = 0; w < pids_.size(); ++w)
      if (pids_[w] > 0) {
        if (all_->worker[w].pid > 0) kill(all_->worker[w].pid, SIGKILL);
        kill(pids_[w], SIGKILL);
        waitpid(pids_[w], nullptr, 0);
      }
    static_cast<void>(domain::remove(name_, true, options_.mode));
  }

  /// True if all rules hold.
  bool carry_out() {
    static_cast<void>(domain::open(name_, options_));
    for (int w = 0; w < what_.processes; ++w) spawn(w);
    auto next_line = clock::now() + std::chrono::seconds(1);
    for (int strikes = 1; kills_ < what_.kills && all_->broken == 0; ++strikes) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 4'000));
      strike();
      let_go_on();
      constexpr int between_removals = 50;
      if (what_.removals && strikes % between_removals == 0) remove();
      if (!what_.quiet && clock::now() > next_line) {
        fmt::print(stderr, "{} of {} kills, {} acquires\n", kills_, what_.kills,
                   all_->acquires.load());
        next_line += std::chrono::seconds(1);
      }
    }
    stop_all();
    judge(domain::open(name_, options_));
    return all_->broken == 0;
  }

  void print() const {
    fmt::print(
        "{} kills, {} exits, {} images, children and namespaces, {} stops, {} of waiters for long, "
        "{} removals; {} acquires; {} holders died, {} were told; longest wait {:.1f} ms ({})\n",
        kills_, exits_, orders_, stops_, long_stops_, removals_, all_->acquires.load(),
        died_inside_, told_, longest_wait_s() * 1e3, kinds()[longest_wait()]);
    if (all_->broken != 0)
      fmt::print("broken (seed {}): {} ({} in all)\n", what_.seed, all_->what, all_->broken.load());
  }

 private:
  static constexpr gid_t team = 61000;

  static domain_options options_of(const request& what) {
    domain_options made{.slots = 4 * what.processes};
    if (what.users) made.mode = 0660, made.group = std::to_string(team);
    return made;
  }

  void spawn(int w) {
    std::fflush(nullptr);
    const std::uint64_t seed = random_();
    all_->worker[w].pid = -1;
    const pid_t pid = fork();
    if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid == 0) {
      if (what_.spaces && w % 2 == 0) enter_a_space(w);
      if (what_.users) become(61001 + static_cast<uid_t>(w % 2));
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // after that: new credentials clear it
      static worker_start start;
      start = {w, memory_, name_, what_.numbers(), seed, options_};
      work(*all_, start);
    }
    pids_[static_cast<std::size_t>(w)] = pid;
    if (what_.spaces && w % 2 == 0)
      while (all_->worker[w].pid == -1) {
        if (waitpid(pid, nullptr, WNOHANG) == pid)
          throw std::runtime_error("no namespace of processes could be made");
        std::this_thread::yield();
      }
    else
      all_->worker[w].pid = pid;
  }

  // The worker is a child of this process, in a new namespace, whose end this process waits for.
  void enter_a_space(int w) {
    if (unshare(CLONE_NEWPID) != 0) _exit(3);
    const pid_t inner = fork();
    if (inner < 0) _exit(3);
    if (inner == 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    all_->worker[w].pid = inner;
    int status = 0;
    while (waitpid(inner, &status, 0) != inner) {
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 9);
  }

  static void become(uid_t user) {
    const gid_t group = team;
    if (setgroups(1, &group) != 0 || setgid(user) != 0 || setuid(user) != 0) _exit(3);
  }

  void strike() {
    const int w = static_cast<int>(random_() % static_cast<std::uint64_t>(what_.processes));
    const pid_t pid = all_->worker[w].pid;
    const auto way = what_.images ? random_() % 12 : random_() % 8;
    switch (way) {
      case 0:
      case 1:  // stops it for a while
        if (w == stopped_) return;
        kill(pid, SIGSTOP);
        stopped_at_ = clock::now();
        ++stops_;
        if (stop_for_long(w)) return;
        std::this_thread::sleep_for(std::chrono::microseconds(random_() % 20'000));
        go_on(w, stopped_at_);
        return;
      case 2:
        if (w == stopped_) return;
        if (!tell(w, to_exit)) return;
        ++exits_;
        break;
      case 8:
      case 9:
      case 10:
      case 11:
        if (w == stopped_) return;
        if (tell(w, way < 10    ? to_become_an_image
                    : way == 10 ? to_make_a_child
                                : to_enter_a_namespace))
          ++orders_;
        return;
      default:
        kill(pid, SIGKILL);
        ++kills_;
    }
    if (w == stopped_) stopped_ = -1;
    waitpid(pids_[static_cast<std::size_t>(w)], nullptr, 0);
    note_death(w);
    spawn(w);
  }

  // False if something is broken.
  bool tell(int w, order what) {
    all_->told = order_to(w, what);
    const auto since = clock::now();
    while (all_->told != -1 && all_->broken == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      // It may wait for the stopped one, which may be in the middle of a repair.
      let_go_on();
      const worker_state& its = all_->worker[w];
      if (clock::now() - since > std::chrono::seconds(10))
        report(*all_, fmt::format("worker {} waits for ever ({}): {}", w,
                                  its.lock < 0 ? "no lock" : kind_of(its.lock), waiting()));
    }
    return all_->broken == 0;
  }

  // A worker that holds nothing may be stopped for long, one at a time: the others must not notice.
  bool stop_for_long(int w) {
    if (stopped_ >= 0 || all_->worker[w].is != where::on_the_way) return false;
    constexpr auto until_it_has_stopped = std::chrono::milliseconds(2);
    std::this_thread::sleep_for(until_it_has_stopped);
    // Its records say whether it holds, before and after what it says itself.
    const pid_t pid = all_->worker[w].pid;
    for (const domain_lock& lock : domain::open(name_, options_).locks())
      for (const lock_user& use : lock.users) {
        const bool is_it = use.pid == pid || (what_.spaces && use.pid == 1);
        if (is_it && use.held != mode::none) return false;
      }
    stopped_ = w;
    stopped_since_ = stopped_at_;
    go_on_at_ = clock::now() + std::chrono::milliseconds(100 + random_() % 1'400);
    ++long_stops_;
    return true;
  }
  void let_go_on() {
    if (stopped_ < 0 || clock::now() < go_on_at_) return;
    go_on(stopped_, stopped_since_);
    stopped_ = -1;
  }
  void go_on(int w, clock::time_point stopped_since) {
    const auto so_long = clock::now() - stopped_since;
    all_->worker[w].stopped_ns += static_cast<std::uint64_t>(so_long.count());
    kill(all_->worker[w].pid, SIGCONT);
  }

  // Succeeds when no living process has a slot, which a few newcomers are about to take.
  void remove() {
    if (random_() % 4 != 0) return try_to_remove();
    stopped_ = -1;
    for (int w = 0; w < what_.processes; ++w) {
      kill(all_->worker[w].pid, SIGKILL);
      ++kills_;
      waitpid(pids_[static_cast<std::size_t>(w)], nullptr, 0);
      note_death(w);
    }
    ++all_->removals;  // nobody is inside
    const int newcomers = static_cast<int>(random_() % 3);
    for (int w = 0; w < newcomers; ++w) spawn(w);
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 500));
    try_to_remove();
    for (int w = newcomers; w < what_.processes; ++w) spawn(w);
  }
  void try_to_remove() {
    try {
      if (domain::remove(name_, false, options_.mode)) ++removals_;
    } catch (const domain_error& e) {
      if (e.why != domain_error::reason::held) throw;
    }
  }

  // Where the workers are, without looking into the domain, which would find out who is dead.
  [[nodiscard]] std::string waiting() const {
    std::string text;
    for (int w = 0; w < what_.processes; ++w) {
      const worker_state& its = all_->worker[w];
      text += fmt::format("{}{}{}", text.empty() ? "" : ", ",
                          its.lock < 0 ? "no lock" : kind_of(its.lock),
                          w == stopped_ ? " (stopped)" : "");
    }
    return text;
  }

  // The lock that somebody waited longest for.
  [[nodiscard]] std::size_t longest_wait() const {
    const auto& all = all_->longest_wait_ns;
    return static_cast<std::size_t>(std::max_element(std::begin(all), std::end(all)) - all);
  }
  [[nodiscard]] double longest_wait_s() const {
    return static_cast<double>(all_->longest_wait_ns[longest_wait()].load()) / 1e9;
  }

  // Before its place is another's: where the dead one was.
  void note_death(int w) {
    worker_state& its = all_->worker[w];
    const int number = its.lock;
    if (number >= 0 && its.exclusive) {
      const auto i = static_cast<std::size_t>(number);
      if (its.is == where::inside) ++inside_[i], ++died_inside_;
      if (its.is == where::on_the_way) ++perhaps_[i];
    }
    its.is = where::outside;
    its.lock = -1;
  }

  void stop_all() {
    all_->stop = true;
    for (const worker_state& each : all_->worker)
      if (each.pid > 0) kill(each.pid, all_->broken != 0 ? SIGKILL : SIGCONT);
    const auto until = clock::now() + std::chrono::seconds(20);
    for (pid_t& pid : pids_) {
      int status = 0;
      while (waitpid(pid, &status, WNOHANG) == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (clock::now() < until) continue;
        report(*all_, "a worker waits for ever at the end: " + waiting());
        kill(all_->worker[&pid - pids_.data()].pid, SIGKILL);
      }
      if (all_->broken == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        report(*all_, "a worker that nobody killed ended badly");
      pid = -1;
    }
  }

  void judge(const domain& in) {
    if (all_->broken != 0) return;
    for (int number = 0; number < locks(); ++number) {
      const auto i = static_cast<std::size_t>(number);
      {
        // The last death may not have been told to anybody yet.
        named_lock last(in, "a " + kind_of(number), {.kind = kind_of(number)});
        last.lock();
        if (last.owner_died()) ++all_->data[number].told, last.mark_consistent();
        last.unlock();
      }
      const guarded& data = all_->data[number];
      inside_[i] += all_->left_inside[number];
      died_inside_ += all_->left_inside[number];
      told_ += data.told;
      if (data.told > inside_[i] + perhaps_[i])
        report(*all_, fmt::format("{}: told of {} deaths, but {} died inside and {} on the way",
                                  kinds()[i], data.told, inside_[i], perhaps_[i]));
      if (inside_[i] > 0 && data.told == 0 && removals_ == 0)
        report(*all_,
               fmt::format("{}: {} holders died, and nobody was told", kinds()[i], inside_[i]));
      std::uint64_t updates = 0;
      for (const worker_state& w : all_->worker) updates += w.updates[number];
      // A holder that died between the two counts, and one that died before both.
      if (data.count < updates || data.count > updates + inside_[i] + perhaps_[i])
        report(*all_, fmt::format("{}: {} updates by {} writes", kinds()[i], data.count, updates));
    }
    judge_the_campaign();
    if (longest_wait_s() > what_.most_wait_s)
      report(*all_, fmt::format("{}: somebody waited {:.2f} s (at most {} s)",
                                kinds()[longest_wait()], longest_wait_s(), what_.most_wait_s));
    const std::string path = in.path();
    if (!domain::remove(name_, true, options_.mode)) report(*all_, "the domain was gone already");
    if (std::filesystem::exists(path)) report(*all_, "left behind: " + path);
  }

  // A campaign that strikes nothing would find all rules kept.
  void judge_the_campaign() {
    constexpr int enough_to_meet_a_holder = 100;
    constexpr int enough_for_a_removal = 1'000;
    constexpr std::uint64_t acquires_a_kill = 10;
    const auto kills = static_cast<std::uint64_t>(kills_);
    if (all_->acquires < acquires_a_kill * kills)
      report(*all_, fmt::format("{} acquires beside {} kills: workers hardly ever got a lock",
                                all_->acquires.load(), kills_));
    if (kills_ >= enough_to_meet_a_holder && died_inside_ == 0)
      report(*all_, fmt::format("{} kills, and no holder among them", kills_));
    if (what_.removals && kills_ >= enough_for_a_removal && removals_ == 0)
      report(*all_, fmt::format("{} kills, and the domain was never removed", kills_));
  }

  request what_;
  domain_options options_;
  std::mt19937_64 random_;
  std::string name_;
  int memory_ = -1;
  shared_state* all_ = nullptr;
  std::vector<pid_t> pids_;
  int kills_ = 0, exits_ = 0, orders_ = 0, stops_ = 0, long_stops_ = 0, removals_ = 0;
  int stopped_ = -1;  // the worker that is stopped for long
  clock::time_point stopped_at_{}, stopped_since_{}, go_on_at_{};
  std::array<std::uint64_t, most_locks> inside_{}, perhaps_{};
  std::uint64_t died_inside_ = 0, told_ = 0;
};

int run(int argc, char** argv) {
  request what;
  CLI::App app{"Kills processes that lock, and watches what the locks guard"};
  app.add_option("--kills", what.kills, "how many processes to kill")
      ->check(CLI::Range(1, 10'000'000));
  app.add_option("--processes", what.processes, "how many lock at the same time")
      ->check(CLI::Range(2, most_processes));
  app.add_option("--seed", what.seed, "of the moments and of what workers do");
  app.add_option("--most-wait", what.most_wait_s, "the longest wait in seconds")
      ->check(CLI::PositiveNumber);
  app.add_flag("--users", what.users, "workers of two users, in a domain of their group (root)");
  app.add_flag("--spaces", what.spaces,
               "half of them in namespaces of processes of their own (root)");
  app.add_flag("--removals", what.removals, "somebody tries to remove the domain, too");
  app.add_flag("--images", what.images,
               "workers become new images by exec, make children, and (root) enter namespaces");
  app.add_option("--lock", what.kinds, "use this one; may be given again")
      ->check(CLI::IsMember(kinds()));
  app.add_flag("--quiet", what.quiet, "no line each second");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    campaign it(what);
    const bool fine = it.carry_out();
    it.print();
    return fine ? 0 : 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "lockflight_deaths: {}\n", e.what());
    return 3;
  }
}

}  // namespace
}  // namespace lockflight::test

int main(int argc, char** argv) {
  using namespace lockflight::test;
  if (argc == 8 && std::string_view(argv[1]) == as_worker) go_on_as_worker(argv);
  return run(argc, argv);
}
