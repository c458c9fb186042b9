#include "domain/store/file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "domain/store/fork.hpp"
#include "fabric/shm/waiting.hpp"

namespace lockflight::detail {
namespace {

constexpr std::uint64_t magic = 0x6e69616d6f64666cULL;  // "lfdomain"
constexpr std::uint32_t abi = sizeof(domain_slot_page) << 16 | sizeof(domain_header);

std::string why(int error) { return std::generic_category().message(error); }

/// FNV-1a of what never changes.
std::uint64_t check_of(const domain_header& h) {
  std::uint64_t sum = 0xcbf29ce484222325ULL;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&h);
  for (std::size_t i = 0; i < offsetof(domain_header, check); ++i)
    sum = (sum ^ bytes[i]) * 0x100000001b3ULL;
  return sum;
}

/// Tokens of a domain that is made later are greater: a thousand fit into a microsecond, and nobody
/// acquires as often.
std::uint64_t first_token() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  constexpr int shift = 10;
  return static_cast<std::uint64_t>(
             std::chrono::duration_cast<std::chrono::microseconds>(since).count())
         << shift;
}

/// posix_fallocate, whose error says which of two things is wrong, through signals.
/// A limit of the size of files is an error, too, and not a signal.
int allocate(int fd, std::size_t offset, std::size_t bytes) {
  sigset_t limit;
  sigset_t before;
  sigemptyset(&limit);
  sigaddset(&limit, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &limit, &before);
  int error = 0;
  do error = posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  while (error == EINTR);
  if (error == EFBIG && sigismember(&before, SIGXFSZ) == 0) {
    constexpr timespec at_once{};
    sigtimedwait(&limit, nullptr, &at_once);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

void fill(int fd, const domain_options& what, const domain_place& at) {
  const int error = allocate(fd, 0, head_bytes);
  if (error != 0)
    throw domain_error(error == ENOSPC ? domain_error::reason::full : domain_error::reason::system,
                       at.path + ": no room in " + folder_of(at) + ": " + why(error));
  void* const base = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED)
    throw domain_error(domain_error::reason::system, at.path + ": mmap: " + why(errno));
  auto& h = *new (base) domain_header{};
  h.magic = magic;
  h.format = format;
  h.abi = abi;
  h.slots = static_cast<std::uint32_t>(what.slots);
  h.names = what.names;
  h.mode = at.mode;
  h.fenced = shm::detail::register_membarrier() ? 0 : 1;
  h.check = check_of(h);
  h.tokens = first_token();
  h.next_line = first_line;
  munmap(base, page);
}

/// Without a name until it is complete. None if another one has made it meanwhile.
descriptor create(const domain_place& at, const domain_options& what) {
  make_folder(at);
  const std::string folder = folder_of(at);
  std::string before;
  descriptor made(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!made && (errno == EOPNOTSUPP || errno == EISDIR)) {
    before = at.path + "~" + std::to_string(getpid());
    unlink(before.c_str());
    made = descriptor(::open(before.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  }
  if (!made) {
    if (errno == ENOENT && at.mode == 0600) return {};  // the folder is gone again
    throw domain_error(errno == ENOSPC ? domain_error::reason::full : domain_error::reason::system,
                       at.path + ": cannot be made: " + why(errno));
  }
  made = descriptor(above_standard(made.get()));
  if (!made)
    throw domain_error(domain_error::reason::system,
                       at.path + ": no file descriptor is left: " + why(errno));
  int error = 0;
  try {
    fill(made.get(), what, at);
    if (at.mode == 0660 && fchown(made.get(), static_cast<uid_t>(-1), at.group) != 0) error = errno;
    if (error == 0 && fchmod(made.get(), at.mode) != 0) error = errno;
    const std::string from =
        before.empty() ? "/proc/self/fd/" + std::to_string(made.get()) : before;
    const folder_lock hold(at);
    if (error == 0 &&
        linkat(AT_FDCWD, from.c_str(), AT_FDCWD, at.path.c_str(), AT_SYMLINK_FOLLOW) != 0)
      error = errno;
  } catch (...) {
    if (!before.empty()) unlink(before.c_str());
    drop_folder(at);
    throw;
  }
  if (!before.empty()) unlink(before.c_str());
  if (error == EEXIST || (error == ENOENT && at.mode == 0600)) return {};
  if (error != 0)
    throw domain_error(domain_error::reason::system, at.path + ": cannot be made: " + why(error));
  return made;
}

void check_options(const domain_options& what) {
  const auto refuse = [](const std::string& argument, const std::string& accepted) {
    throw domain_error(domain_error::reason::invalid, argument + " (accepted: " + accepted + ")");
  };
  if (what.slots < 1 || what.slots > most_slots)
    refuse("slots " + std::to_string(what.slots), "1 to " + std::to_string(most_slots));
  if (what.names < 1 || what.names > 1'048'576)
    refuse("names " + std::to_string(what.names), "1 to 1048576");
  if (what.mode != 0 && what.mode != 0600 && what.mode != 0660) {
    char octal[16];
    std::snprintf(octal, sizeof octal, "%04o", what.mode);
    refuse(std::string("mode ") + octal, "0600, 0660");
  }
  if (!what.group.empty() && what.mode != 0660) refuse("group '" + what.group + "'", "mode 0660");
}

// The files that this process maps. A fork waits until nobody changes the list.
std::vector<std::weak_ptr<domain_file>>& mapped() {
  static auto* const all = new std::vector<std::weak_ptr<domain_file>>;
  return *all;
}
// The same, for the child of a fork, which may not count references.
std::vector<domain_file*>& to_reopen() {
  static auto* const all = new std::vector<domain_file*>;
  return *all;
}

std::shared_ptr<domain_file> map_file(int raw, const domain_place& at) {
  descriptor fd(raw);
  struct stat s {};
  if (fstat(fd.get(), &s) != 0)
    throw domain_error(domain_error::reason::system, at.path + ": " + why(errno));
  call_in_children([] {
    for (domain_file* const each : to_reopen()) each->reopen_after_fork();
  });
  const std::scoped_lock hold(process_mutex());
  auto& all = mapped();
  std::erase_if(all, [](const auto& one) { return one.expired(); });
  for (const auto& one : all)
    if (auto file = one.lock(); file && file->is_file(s.st_dev, s.st_ino)) return file;
  auto file = std::make_shared<domain_file>(std::move(fd), at);
  all.push_back(file);
  to_reopen().push_back(file.get());
  return file;
}

[[noreturn]] void disagree(std::string_view name, const std::string& how,
                           const std::string& accepted) {
  throw domain_error(domain_error::reason::disagrees,
                     "domain " + std::string(name) + " " + how + " (accepted: " + accepted + ")");
}

std::string mode_text(unsigned mode) { return mode == 0600 ? "0600" : "0660"; }

/// Of those of that name the one that is meant; none if there is none.
std::optional<domain_place> choose(std::string_view name, unsigned mode, const std::string& group) {
  const auto all = find_places(name);
  std::vector<domain_place> meant;
  const gid_t of = group.empty() ? 0 : group_of(group);
  for (const domain_place& at : all)
    if (mode == 0 || (at.mode == mode && (group.empty() || at.group == of))) meant.push_back(at);
  if (meant.size() == 1) return meant.front();
  if (meant.size() > 1) {
    std::string paths;
    for (const domain_place& at : meant) paths += (paths.empty() ? "" : ", ") + at.path;
    disagree(name, "exists more than once: " + paths,
             "a mode, 0600 or 0660, and a group that say which is meant");
  }
  // Somebody else's domain of that name is no reason not to have an own one.
  struct stat s {};
  if (mode != 0 && !all.empty() && all.front().mode != mode &&
      lstat(all.front().path.c_str(), &s) == 0 && s.st_uid == geteuid())
    disagree(name,
             "has mode " + mode_text(all.front().mode) + ", not " + mode_text(mode) + ": " +
                 all.front().path,
             "mode " + mode_text(all.front().mode) + ", or another name");
  return std::nullopt;
}

std::shared_ptr<domain_file> attach(std::string_view name, unsigned mode,
                                    const std::string& group) {
  // A file that is not ours to trust is refused with a line, not passed over.
  const domain_place at =
      choose(name, mode, group)
          .value_or(mode == 0660 ? shared_place(name, group_of(group)) : private_place(name));
  const int fd = open_place(at);
  return fd >= 0 ? map_file(fd, at) : nullptr;
}

}  // namespace

domain_file::domain_file(descriptor fd, domain_place where)
    : where_(std::move(where)), fd_(fd.get()) {
  struct stat s {};
  if (fstat(fd.get(), &s) != 0)
    throw domain_error(domain_error::reason::system, where_.path + ": " + why(errno));
  device_ = s.st_dev;
  inode_ = s.st_ino;
  if (s.st_size < static_cast<off_t>(head_bytes)) damaged("is no domain: it is too short");
  void* const base =
      mmap(nullptr, head_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (base == MAP_FAILED)
    throw domain_error(domain_error::reason::system, where_.path + ": mmap: " + why(errno));
  head_ = static_cast<std::byte*>(base);
  try {
    const domain_header& h = header();
    if (h.magic != magic) damaged("is no domain");
    if (h.format != format || h.abi != abi) damaged("is a domain of another format");
    if (h.check != check_of(h) || h.mode != where_.mode) damaged("has been written over");
    options_ = {static_cast<int>(h.slots), h.names, h.mode, ""};
    check_options(options_);
    check_ = h.check;
    if (h.fenced == 0 && !shm::detail::register_membarrier())
      throw domain_error(domain_error::reason::system,
                         where_.path + ": membarrier is refused here, and was not to its maker");
  } catch (...) {
    munmap(head_, head_bytes);
    throw;
  }
  madvise(head_, head_bytes, MADV_DONTDUMP);
  for (int i = 0; i < ranks; ++i)
    slot_of_rank_[static_cast<std::size_t>(rank_of_slot(i))] = static_cast<std::uint16_t>(i);
  static_cast<void>(fd.release());
}

domain_file::~domain_file() {
  {
    const std::scoped_lock hold(process_mutex());
    std::erase(to_reopen(), this);
  }
  for (auto& piece : slot_piece_)
    if (std::byte* const it = piece.load(); it != nullptr) munmap(it, piece_bytes);
  for (auto& piece : room_piece_)
    if (std::byte* const it = piece.load(); it != nullptr) munmap(it, piece_bytes);
  munmap(head_, head_bytes);
  struct stat s {};
  if (const int mine = fd_.load(); fstat(mine, &s) == 0 && is_file(s.st_dev, s.st_ino)) close(mine);
}

void domain_file::damaged(const std::string& how) const {
  throw domain_error(domain_error::reason::damaged,
                     "domain " + where_.name + ": " + where_.path + " " + how);
}

void domain_file::is_removed() const {
  throw domain_error(domain_error::reason::removed,
                     "domain " + where_.name + ": " + where_.path + " has been removed");
}

// A program may close all descriptors and have others of the same numbers; we open ours anew then.
int domain_file::fd() const {
  struct stat s {};
  int mine = fd_.load(std::memory_order_acquire);
  if (fstat(mine, &s) == 0 && is_file(s.st_dev, s.st_ino)) return mine;
  const std::scoped_lock hold(process_mutex());
  if (const int now = fd_.load(); now != mine) return now;
  descriptor again(::open(where_.path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!again || fstat(again.get(), &s) != 0 || !is_file(s.st_dev, s.st_ino)) is_removed();
  mine = above_standard(again.get());
  fd_.store(mine, std::memory_order_release);
  for (int i = 0; i < ranks; ++i)
    if (locked_[static_cast<std::size_t>(i)].load(std::memory_order_relaxed))
      static_cast<void>(set_lock(i, F_WRLCK, F_OFD_SETLK));
  return mine;
}

// Only system calls and our own words: this is called in the child of a fork.
void domain_file::reopen_after_fork() noexcept {
  for (auto& each : locked_) each.store(false, std::memory_order_relaxed);
  struct stat s {};
  const int parents = fd_.load(std::memory_order_relaxed);
  if (fstat(parents, &s) != 0 || !is_file(s.st_dev, s.st_ino)) return;
  char path[32] = "/proc/self/fd/";
  char* end = path + 14;
  char digits[12];
  int count = 0;
  for (int rest = parents; count == 0 || rest != 0; rest /= 10)
    digits[count++] = static_cast<char>('0' + rest % 10);
  while (count > 0) *end++ = digits[--count];
  *end = '\0';
  const int own = ::open(path, O_RDWR | O_CLOEXEC);
  if (own >= 0) {
    dup3(own, parents, O_CLOEXEC);  // closes the parent's
    close(own);
  } else {
    close(parents);
  }
}

std::byte* domain_file::map(std::atomic<std::byte*>& as, std::size_t offset) const {
  struct stat s {};
  const int from = fd();
  if (fstat(from, &s) != 0 || s.st_size < static_cast<off_t>(offset + piece_bytes))
    damaged("has been made shorter");
  void* const base = mmap(nullptr, piece_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                          from, static_cast<off_t>(offset));
  if (base == MAP_FAILED)
    throw domain_error(errno == ENOMEM ? domain_error::reason::full : domain_error::reason::system,
                       where_.path + ": mmap: " + why(errno));
  madvise(base, piece_bytes, MADV_DONTDUMP);
  std::byte* before = nullptr;
  if (as.compare_exchange_strong(before, static_cast<std::byte*>(base))) return as.load();
  munmap(base, piece_bytes);  // another thread was first
  return before;
}

std::byte* domain_file::map_slots(unsigned number) const {
  const unsigned piece = number / slots_of_piece;
  if (number >= ranks || piece >= header().slot_pieces.load(std::memory_order_acquire))
    damaged("has been written over");
  return map(slot_piece_[piece], slots_at + piece * piece_bytes);
}

std::byte* domain_file::map_room(std::uint32_t piece) const {
  if (piece >= most_room_pieces || piece >= header().room_pieces.load(std::memory_order_acquire))
    damaged("has been written over");
  return map(room_piece_[piece], room_at + piece * piece_bytes);
}

void domain_file::reserve(std::size_t offset) const {
  const int error = allocate(fd(), offset, piece_bytes);
  if (error == 0) return;
  throw domain_error(
      error == ENOSPC ? domain_error::reason::full : domain_error::reason::system,
      "domain " + where_.name + ": no room in " + folder_of(where_) + ": " + why(error));
}

void domain_file::make_room_for_slot(int number) {
  auto& have = header().slot_pieces;
  const std::uint32_t need = static_cast<std::uint32_t>(number) / slots_of_piece + 1;
  for (std::uint32_t now = have.load(std::memory_order_acquire); now < need;) {
    if (now >= most_slot_pieces) damaged("has been written over");
    reserve(slots_at + now * piece_bytes);
    if (have.compare_exchange_strong(now, now + 1)) ++now;
  }
}

void domain_file::make_room_for_lines(std::uint32_t end_line) {
  auto& have = header().room_pieces;
  const std::uint32_t need = (end_line - first_line + lines_of_piece - 1) / lines_of_piece;
  if (need > most_room_pieces)
    throw domain_error(domain_error::reason::full, "domain " + where_.name + ": it is 4 GiB large");
  for (std::uint32_t now = have.load(std::memory_order_acquire); now < need;) {
    reserve(room_at + now * piece_bytes);
    if (have.compare_exchange_strong(now, now + 1)) ++now;
  }
}

bool domain_file::set_lock(int number, short type, int command) const {
  struct flock what {};
  what.l_type = type;
  what.l_whence = SEEK_SET;
  what.l_start = static_cast<off_t>(slots_at + static_cast<std::size_t>(number) * slot_bytes);
  what.l_len = 1;
  const int done = fcntl(fd_.load(), command, &what);
  return command == F_OFD_GETLK ? done == 0 && what.l_type != F_UNLCK : done == 0;
}

// If the program has closed our descriptor and has another file of that number, that is mostly not
// locked: then we make sure.
bool domain_file::is_slot_locked(int number) const {
  if (set_lock(number, F_WRLCK, F_OFD_GETLK)) return true;
  const int before = fd_.load();
  return fd() != before && set_lock(number, F_WRLCK, F_OFD_GETLK);
}

bool domain_file::lock_slot(int number) {
  static_cast<void>(fd());
  if (!set_lock(number, F_WRLCK, F_OFD_SETLK)) return errno != EAGAIN && errno != EACCES;
  locked_[static_cast<std::size_t>(number)].store(true, std::memory_order_relaxed);
  return true;
}

void domain_file::unlock_slot(int number) {
  locked_[static_cast<std::size_t>(number)].store(false, std::memory_order_relaxed);
  struct stat s {};
  if (fstat(fd_.load(), &s) == 0 && is_file(s.st_dev, s.st_ino))
    static_cast<void>(set_lock(number, F_UNLCK, F_OFD_SETLK));
}

void domain_file::check() const {
  struct stat s {};
  const domain_header& h = header();
  const std::size_t bytes =
      std::max(h.room_pieces.load() > 0 ? room_at + h.room_pieces.load() * piece_bytes : 0,
               slots_at + h.slot_pieces.load() * piece_bytes);
  if (fstat(fd(), &s) != 0 || s.st_size < static_cast<off_t>(bytes))
    damaged("has been made shorter");
  if (check_of(h) != check_) damaged("has been written over");
}

bool domain_file::is_current() const {
  struct stat s {};
  return lstat(where_.path.c_str(), &s) == 0 && is_file(s.st_dev, s.st_ino);
}

bool domain_file::unlink_if_current() const {
  const folder_lock hold(where_);
  return is_current() && unlink(where_.path.c_str()) == 0;
}

void domain_file::give_up_stale_removal() const {
  auto& removed = header().removed;
  std::uint32_t by = removed.load(std::memory_order_acquire);
  if (by != 0 && kill(static_cast<pid_t>(by), 0) != 0 && errno == ESRCH)
    removed.compare_exchange_strong(by, 0);
}

std::shared_ptr<domain_file> domain_file::open(std::string_view name,
                                               const domain_options* create_as, unsigned mode) {
  check_domain_name(name);
  if (create_as != nullptr) check_options(*create_as);
  // Else a member of one of our groups could take the place of what everybody uses unnamed.
  if (name == "default" && mode == 0) mode = 0600;
  const std::string group = create_as != nullptr ? create_as->group : "";
  while (true) {
    if (auto file = attach(name, mode, group)) return file;
    if (create_as == nullptr)
      throw domain_error(
          domain_error::reason::missing,
          "domain " + std::string(name) + ": there is none (" + private_place(name).path + ")");
    const domain_place at =
        mode == 0660 ? shared_place(name, group_of(group)) : private_place(name);
    if (descriptor made = create(at, *create_as)) return map_file(made.release(), at);
  }
}

}  // namespace lockflight::detail
