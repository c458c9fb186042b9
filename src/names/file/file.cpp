#include "names/file/file.hpp"

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

#include "base/fnv.hpp"
#include "fabric/shm/waiting.hpp"
#include "names/file/byte_lock.hpp"
#include "names/file/fork.hpp"
#include "names/file/text.hpp"

namespace lockflight::detail {
namespace {

constexpr std::uint64_t magic = 0x6e69616d6f64666cULL;  // "lfdomain"
// The page as far as all versions know it: what later ones have added, earlier ones do not touch.
constexpr std::uint32_t abi = offsetof(domain_slot_page, ends) << 16 | sizeof(domain_header);

std::string why(int error) { return std::generic_category().message(error); }

/// The checksum of the words of the header that never change.
std::uint64_t check_of(const domain_header& h) {
  return fnv1a({reinterpret_cast<const char*>(&h), offsetof(domain_header, check)});
}

/// The first token. Tokens of a domain that is made later are greater: a thousand fit into a
/// microsecond, and locks are not acquired as often.
std::uint64_t first_token() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  constexpr int shift = 10;
  return static_cast<std::uint64_t>(
             std::chrono::duration_cast<std::chrono::microseconds>(since).count())
         << shift;
}

/// Calls posix_fallocate, again after each signal that interrupts it. A limit of the size of files
/// is an error, too, and sends no SIGXFSZ.
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
  // With the first slots and locks: a domain without room for any would be of no use.
  int error = allocate(fd, 0, slots_at + piece_bytes);
  if (error == 0) error = allocate(fd, room_at, piece_bytes);
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
  h.slot_pieces = 1;
  h.room_pieces = 1;
  munmap(base, page);
}

/// A file that has no name yet. It has a temporary name if the file system has no files without
/// names, or if /proc, through which they get one, is not there.
class new_file {
 public:
  explicit new_file(const domain_place& at) {
    const std::string folder = folder_of(at);
    const bool can_be_linked = access("/proc/self/fd", X_OK) == 0;
    int made = -1;
    if (can_be_linked) made = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (!can_be_linked || (made < 0 && (errno == EOPNOTSUPP || errno == EISDIR))) {
      // Another thread, or a process of the same number in another namespace, may make one too.
      static std::atomic<unsigned> next{0};
      constexpr int tries = 1000;
      errno = EEXIST;
      for (int i = 0; i < tries && made < 0 && errno == EEXIST; ++i) {
        temporary_ = at.path + "~" + std::to_string(getpid()) + "." + std::to_string(next++);
        made = ::open(temporary_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
      }
      if (made < 0) temporary_.clear();
    }
    if (made < 0) return;
    file_ = descriptor(made);
    if (file_) return;
    const int error = errno;
    if (!temporary_.empty()) unlink(temporary_.c_str());
    throw domain_error(domain_error::reason::system,
                       at.path + ": no file descriptor is left: " + why(error));
  }
  ~new_file() {
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;

  /// True if the file could be made; errno says why not.
  explicit operator bool() const { return static_cast<bool>(file_); }
  [[nodiscard]] int get() const { return file_.get(); }
  [[nodiscard]] descriptor release() { return std::move(file_); }
  /// Gives the file its name. False, with errno, if that is not possible.
  [[nodiscard]] bool link(const domain_place& at) const {
    const std::string from =
        temporary_.empty() ? "/proc/self/fd/" + std::to_string(file_.get()) : temporary_;
    return linkat(AT_FDCWD, from.c_str(), AT_FDCWD, at.path.c_str(), AT_SYMLINK_FOLLOW) == 0;
  }

 private:
  descriptor file_;
  std::string temporary_;
};

/// Creates a domain's file, which gets its name only when it is complete. Returns none if the
/// caller is to look for the file again: another process has made it meanwhile, or has dropped the
/// folder.
descriptor create(const domain_place& at, const domain_options& what) {
  const auto cannot = [&](int error) { return cannot_be_made(at.path, error); };
  const auto is_folder_gone = [&](int error) { return error == ENOENT && at.mode == 0600; };
  make_folder(at);
  try {
    new_file made(at);
    if (!made) {
      if (is_folder_gone(errno)) return {};
      throw cannot(errno);
    }
    fill(made.get(), what, at);
    if (at.mode == 0660 && fchown(made.get(), static_cast<uid_t>(-1), at.group) != 0)
      throw cannot(errno);
    if (fchmod(made.get(), at.mode) != 0) throw cannot(errno);
    if (made.link(at)) return made.release();
    if (errno == EEXIST || is_folder_gone(errno)) return {};
    throw cannot(errno);
  } catch (...) {
    drop_folder(at);
    throw;
  }
}

void check_options(const domain_options& what) {
  const auto refuse = [](const std::string& argument, const std::string& accepted) {
    throw domain_error(domain_error::reason::invalid, argument + " (accepted: " + accepted + ")");
  };
  if (what.slots < 1 || what.slots > most_slots)
    refuse("slots " + std::to_string(what.slots), "1 to " + std::to_string(most_slots));
  if (what.names < 1 || what.names > 1'048'576)
    refuse("names " + std::to_string(what.names), "1 to 1048576");
  if (what.mode != 0 && what.mode != 0600 && what.mode != 0660)
    refuse("mode " + mode_text(what.mode), "0600, 0660");
  if (!what.group.empty() && what.mode != 0660)
    refuse("group '" + what.group + "'", "only with mode 0660");
}

// The files that this process maps, until their objects are gone. A fork waits until no thread
// changes the list; the child goes through the list, and may not count references.
struct mapped_file {
  domain_file* it;
  std::uint64_t device, inode;
  std::weak_ptr<domain_file> shared;
};
std::vector<mapped_file>& mapped() {
  static auto* const all = new std::vector<mapped_file>;
  return *all;
}

std::shared_ptr<domain_file> map_file(descriptor fd, const domain_place& at) {
  struct stat s {};
  if (fstat(fd.get(), &s) != 0)
    throw domain_error(domain_error::reason::system, at.path + ": " + why(errno));
  call_in_children([](bool owns_descriptors) {
    for (const mapped_file& each : mapped()) each.it->reopen_in_child(owns_descriptors);
  });
  const std::scoped_lock hold(process_mutex());
  auto& all = mapped();
  // Only a reference that we return is taken here: to drop the last one would need the mutex.
  for (const mapped_file& each : all)
    if (each.device == s.st_dev && each.inode == s.st_ino)
      if (auto file = each.shared.lock()) return file;
  all.reserve(all.size() + 1);
  auto file = std::make_shared<domain_file>(std::move(fd), at);
  all.push_back({file.get(), s.st_dev, s.st_ino, file});
  return file;
}

}  // namespace

constinit const std::array<std::uint16_t, ranks> domain_file::slot_of_rank = [] {
  std::array<std::uint16_t, ranks> made{};
  for (int i = 0; i < ranks; ++i)
    made[static_cast<std::size_t>(rank_of_slot(i))] = static_cast<std::uint16_t>(i);
  return made;
}();

domain_file::domain_file(descriptor fd, domain_place where)
    : where_(std::move(where)), fd_(fd.get()) {
  struct stat s {};
  if (fstat(fd.get(), &s) != 0)
    throw domain_error(domain_error::reason::system, where_.path + ": " + why(errno));
  device_ = s.st_dev;
  inode_ = s.st_ino;
  if (s.st_size < static_cast<off_t>(head_bytes)) throw_damaged("is no domain: it is too short");
  const auto bytes = static_cast<std::size_t>(s.st_size);
  // The first slots lie behind the head, and each participant needs some of them.
  if (bytes >= slots_at + piece_bytes) head_end_ = slots_at + piece_bytes;
  head_ = map_part(fd.get(), 0, head_end_);
  try {
    const domain_header& h = header();
    if (h.magic != magic) throw_damaged("is no domain");
    if (h.format != format || h.abi != abi) throw_damaged("is a domain of another format");
    if (h.check != check_of(h) || h.mode != where_.mode) throw_damaged("has been written over");
    options_ = {static_cast<int>(h.slots), h.names, h.mode,
                h.mode == 0660 ? std::to_string(where_.group) : ""};
    check_options(options_);
    check_ = h.check;
    if (head_end_ > slots_at && h.slot_pieces > 0) slot_piece_[0] = head_ + slots_at;
    if (h.fenced == 0 && !shm::detail::register_membarrier())
      throw domain_error(domain_error::reason::system,
                         where_.path + ": membarrier is refused here, and was not to its maker");
    if (h.room_pieces > 0 && bytes >= room_at + piece_bytes) {
      room_piece_[0] = map_part(fd.get(), room_at, piece_bytes);
      room_end_ = 1;
    }
  } catch (...) {
    munmap(head_, head_end_);
    throw;
  }
  if (descriptor own(opened_again(fd.get())); own)
    fd_ = own.release();  // see map
  else
    static_cast<void>(fd.release());
}

domain_file::~domain_file() {
  {
    const std::scoped_lock hold(process_mutex());
    std::erase_if(mapped(), [&](const mapped_file& each) { return each.it == this; });
  }
  for (auto& piece : slot_piece_)
    if (std::byte* const it = piece.load(); it != nullptr && it != head_ + slots_at)
      munmap(it, piece_bytes);
  for (std::uint32_t i = 0; i < room_end_.load(); ++i)
    if (std::byte* const it = room_piece_[i].load(); it != nullptr) munmap(it, piece_bytes);
  munmap(head_, head_end_);
  if (const int mine = fd_if_ours(); mine >= 0) close(mine);
}

void domain_file::throw_damaged(const std::string& how) const {
  const std::string owner =
      where_.mode == 0660 ? " --mode 0660 --group " + std::to_string(where_.group) : "";
  throw domain_error(domain_error::reason::damaged, "domain " + where_.name + ": " + where_.path +
                                                        " " + how + " ('lockflight domain remove " +
                                                        where_.name + owner +
                                                        " --force' removes it)");
}

void domain_file::throw_removed() const {
  throw domain_error(domain_error::reason::removed,
                     "domain " + where_.name + ": " + where_.path + " has been removed");
}

// A program may close all descriptors and have others of the same numbers; we open ours anew then.
int domain_file::fd() const {
  static_cast<void>(image());  // a child has another one of that number
  struct stat s {};
  int mine = fd_.load(std::memory_order_acquire);
  if (fstat(mine, &s) == 0 && is_file(s.st_dev, s.st_ino)) return mine;
  const std::scoped_lock hold(process_mutex());
  if (const int now = fd_.load(); now != mine) return now;
  descriptor again(::open(where_.path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!again && (errno == EMFILE || errno == ENFILE))
    throw domain_error(domain_error::reason::system,
                       where_.path + ": no file descriptor is left: " + why(errno));
  if (!again || fstat(again.get(), &s) != 0 || !is_file(s.st_dev, s.st_ino)) throw_removed();
  mine = again.release();
  fd_.store(mine, std::memory_order_release);
  for (int i = 0; i < ranks; ++i)
    if (locked_[static_cast<std::size_t>(i)].load(std::memory_order_relaxed))
      static_cast<void>(lock_byte(mine, byte_of_slot(i)));
  return mine;
}

// This uses only system calls and our own words, because it is called before all else in a child.
void domain_file::reopen_in_child(bool owns_descriptors) noexcept {
  for (auto& each : locked_) each.store(false, std::memory_order_relaxed);
  new (&taking_) std::mutex;  // another thread of the parent may have had it
  struct stat s {};
  const int parents = fd_.load(std::memory_order_relaxed);
  if (fstat(parents, &s) != 0 || !is_file(s.st_dev, s.st_ino)) return;
  const int own = opened_again(parents);
  if (!owns_descriptors) {
    fd_.store(own, std::memory_order_relaxed);  // the parent's stays as it is
  } else if (own >= 0) {
    dup3(own, parents, O_CLOEXEC);  // closes the parent's
    close(own);
  } else {
    close(parents);
  }
}

// This uses only system calls. It opens the file by its path, or by its descriptor, which takes
// longer, since the path may be gone.
int domain_file::opened_again(int from, int how) const noexcept {
  char path[32] = "/proc/self/fd/";
  char* end = path + 14;
  char digits[12];
  int count = 0;
  for (int rest = from; count == 0 || rest != 0; rest /= 10)
    digits[count++] = static_cast<char>('0' + rest % 10);
  while (count > 0) *end++ = digits[--count];
  *end = '\0';
  struct stat s {};
  for (const char* each : {where_.path.c_str(), static_cast<const char*>(path)}) {
    const int again = ::open(each, how | O_CLOEXEC | O_NONBLOCK);
    if (again < 0) continue;
    if (fstat(again, &s) == 0 && is_file(s.st_dev, s.st_ino)) return again;
    close(again);
  }
  return -1;
}

std::byte* domain_file::map_part(int from, std::size_t offset, std::size_t bytes) const {
  void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, from,
                          static_cast<off_t>(offset));
  if (base == MAP_FAILED)
    throw domain_error(errno == ENOMEM ? domain_error::reason::full : domain_error::reason::system,
                       where_.path + ": mmap: " + why(errno));
  madvise(base, bytes, MADV_DONTDUMP);
  return static_cast<std::byte*>(base);
}

// A mapping keeps its open file, and with it the bytes that are locked through that, also in a
// child that has closed all descriptors. So nothing is locked through a file that was mapped.
std::byte* domain_file::map(std::atomic<std::byte*>& as, std::size_t offset) const {
  struct stat s {};
  const int from = fd();
  if (fstat(from, &s) != 0 || s.st_size < static_cast<off_t>(offset + piece_bytes))
    throw_damaged("has been made shorter");
  const descriptor mapped_from(opened_again(from));
  std::byte* const base = map_part(mapped_from ? mapped_from.get() : from, offset, piece_bytes);
  std::byte* before = nullptr;
  if (as.compare_exchange_strong(before, base)) return base;
  munmap(base, piece_bytes);  // another thread was first
  return before;
}

std::byte* domain_file::map_slots(unsigned number) const {
  const unsigned piece = number / slots_of_piece;
  if (number >= ranks || piece >= header().slot_pieces.load(std::memory_order_acquire))
    throw_damaged("has been written over");
  return map(slot_piece_[piece], slots_at + piece * piece_bytes);
}

std::byte* domain_file::map_room(std::uint32_t piece) const {
  if (piece >= most_room_pieces || piece >= header().room_pieces.load(std::memory_order_acquire))
    throw_damaged("has been written over");
  for (std::uint32_t end = room_end_.load();
       end <= piece && !room_end_.compare_exchange_weak(end, piece + 1);) {
  }
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
    if (now >= most_slot_pieces) throw_damaged("has been written over");
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

// If the program has closed our descriptor and has another file of that number, that is mostly not
// locked: then we make sure.
std::optional<bool> domain_file::is_slot_locked(int number) const {
  static_cast<void>(image());
  const int before = fd_.load();
  auto is = is_byte_locked(before, byte_of_slot(number));
  if (is == std::optional(true)) return true;
  const int now = fd();
  if (now != before) is = is_byte_locked(now, byte_of_slot(number));
  return is;
}

bool domain_file::lock_slot(int number) {
  switch (lock_byte(fd(), byte_of_slot(number))) {
    case byte_lock::taken:
      locked_[static_cast<std::size_t>(number)].store(true, std::memory_order_relaxed);
      return true;
    case byte_lock::anothers:
      return false;
    case byte_lock::refused:
      break;
  }
  throw domain_error(domain_error::reason::system,
                     where_.path + ": cannot be locked: " + why(errno));
}

void domain_file::unlock_slot(int number) {
  locked_[static_cast<std::size_t>(number)].store(false, std::memory_order_relaxed);
  if (const int mine = fd_if_ours(); mine >= 0)
    unlock_byte(mine, byte_of_slot(number), 1 + hold_bytes);
}

int domain_file::fd_if_ours() const noexcept {
  struct stat s {};
  const int mine = fd_.load();
  return fstat(mine, &s) == 0 && is_file(s.st_dev, s.st_ino) ? mine : -1;
}

bool domain_file::lock_hold_bytes(int number, std::uint32_t first, std::uint32_t count) noexcept {
  const int mine = fd_if_ours();
  return mine >= 0 && lock_byte(mine, byte_of_hold(number, first), count) == byte_lock::taken;
}

void domain_file::unlock_hold_byte(int number, std::uint32_t which) noexcept {
  if (const int mine = fd_if_ours(); mine >= 0) unlock_byte(mine, byte_of_hold(number, which));
}

descriptor domain_file::opened_to_wait() const {
  return descriptor(opened_again(fd_.load(), O_RDONLY));
}

bool domain_file::is_opened_to_wait(int fd, std::uint64_t device, std::uint64_t inode) {
  struct stat s {};
  return fstat(fd, &s) == 0 && s.st_dev == device && s.st_ino == inode &&
         (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
}

std::optional<bool> domain_file::is_guard_locked(int number) const {
  const std::uint32_t incarnation = slot(number).life_now().incarnation;
  return is_byte_locked(fd(), byte_of_guard(number, incarnation));
}

// This uses only system calls, because it is called between vfork and exec. The descriptor stays
// open, also in the program that the process becomes. It can only read, since that program may be
// another user's.
void domain_file::lock_guard(int number, std::uint32_t incarnation) const noexcept {
  constexpr int out_of_the_way = 10;  // as shells do
  const int first = ::open(where_.path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (first < 0) return;
  struct stat s {};
  const bool is_ours = fstat(first, &s) == 0 && is_file(s.st_dev, s.st_ino);
  int kept = is_ours ? fcntl(first, F_DUPFD, out_of_the_way) : -1;
  if (is_ours && kept < 0) {  // the process may have fewer descriptors than that
    fcntl(first, F_SETFD, 0);
    kept = first;
  }
  if (kept != first) close(first);
  if (kept >= 0) share_byte(kept, byte_of_guard(number, incarnation));
}

bool domain_file::lock_as_agent() {
  const byte_lock got = lock_byte(fd(), agent_byte);
  if (got == byte_lock::refused)
    throw domain_error(domain_error::reason::system,
                       where_.path + ": cannot be locked: " + why(errno));
  is_agent_ = got == byte_lock::taken;
  return is_agent_;
}

bool domain_file::has_agent() const { return is_byte_locked(fd(), agent_byte).value_or(true); }

bool domain_file::is_removal_locked() const {
  return is_byte_locked(fd(), removal_byte).value_or(true);
}

void domain_file::check() const {
  const int file = fd();
  struct stat s {};
  const auto has_bytes = [&](std::size_t bytes) {
    const auto wanted = static_cast<off_t>(bytes);
    return s.st_size >= wanted || (fstat(file, &s) == 0 && s.st_size >= wanted);
  };
  // The header has to be there before it is read.
  if (!has_bytes(sizeof(domain_header))) throw_damaged("has been made shorter");
  // The file grows before the header says so: so a size that was asked before the header was read
  // may be too small, and is asked again.
  const domain_header& h = header();
  const std::size_t bytes =
      std::max(h.room_pieces.load() > 0 ? room_at + h.room_pieces.load() * piece_bytes : 0,
               slots_at + h.slot_pieces.load() * piece_bytes);
  if (!has_bytes(bytes)) throw_damaged("has been made shorter");
  if (check_of(h) != check_) throw_damaged("has been written over");
}

bool domain_file::is_current() const {
  struct stat s {};
  const bool has_file = fstat(fd_.load(), &s) == 0 && is_file(s.st_dev, s.st_ino);
  if (has_file && s.st_nlink == 0) return false;
  if (lstat(where_.path.c_str(), &s) == 0) return is_file(s.st_dev, s.st_ino);
  // A path that we cannot follow proves nothing: this process may have dropped its rights, or have
  // another root, or the file was only moved. Our descriptor decides then, unless the program has
  // closed it.
  return has_file;
}

void domain_file::tell_of_change() const noexcept {
  try {
    futimens(fd(), nullptr);       // IN_ATTRIB
  } catch (const domain_error&) {  // watchers look when their timers ring
  }
}

std::shared_ptr<domain_file> domain_file::open_at(const domain_place& at) {
  // A file that we cannot trust is refused with a message, not skipped.
  descriptor fd = open_place(at);
  if (!fd) return nullptr;
  const closed_in_children until_it_is_mapped(fd.get());
  return map_file(std::move(fd), at);
}

std::shared_ptr<domain_file> domain_file::open(std::string_view name, const domain_options& what,
                                               bool may_be_made) {
  check_domain_name(name);
  if (!is_cluster_name(name)) return find_or_make(name, what, may_be_made);
  check_options(what);
  const domain_place at = place_of(name, what.mode, what.group);
  if (auto file = open_at(at)) return file;
  const std::string domain(name.substr(cluster_prefix.size()));
  throw domain_error(domain_error::reason::missing,
                     "domain " + std::string(name) +
                         ": no agent has been started for it on this host (" + at.path +
                         "; lockflight agent --domain " + domain + " --etcd URL starts one)");
}

std::shared_ptr<domain_file> domain_file::open_as_agent(std::string_view name,
                                                        const domain_options& create_as) {
  check_domain_name(name);
  return find_or_make(name, create_as, true);
}

std::shared_ptr<domain_file> domain_file::find_or_make(std::string_view name,
                                                       const domain_options& what,
                                                       bool may_be_made) {
  check_options(what);
  constexpr int tries = 1000;
  domain_place at;
  for (int i = 0; i < tries; ++i) {
    at = place_of(name, what.mode, what.group);
    if (auto file = open_at(at)) return file;
    if (!may_be_made)
      throw domain_error(
          domain_error::reason::missing,
          "domain " + std::string(name) + ": there is none (" + private_place(name).path + ")");
    if (descriptor made = create(at, what)) return map_file(std::move(made), at);
  }
  throw domain_error(domain_error::reason::system,
                     at.path + ": is made and removed by others all the time");
}

}  // namespace lockflight::detail
