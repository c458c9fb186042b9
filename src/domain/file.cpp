#include "domain/file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <mutex>
#include <new>
#include <system_error>

#include "domain/fork.hpp"
#include "fabric/shm/segment.hpp"
#include "fabric/shm/waiting.hpp"

namespace lockflight::detail {
namespace {

constexpr std::uint64_t magic = 0x6e69616d6f64666cULL;  // "lfdomain"
constexpr std::uint32_t version = 1;
constexpr std::uint32_t abi = sizeof(pthread_mutex_t) << 16 | sizeof(domain_slot_words);
constexpr std::size_t page = 4096;
constexpr const char* folder = "/dev/shm";

constexpr std::size_t up(std::size_t n) { return (n + page - 1) / page * page; }

std::string why(int error) { return std::generic_category().message(error); }

/// FNV-1a of what never changes.
std::uint64_t check_of(const domain_header& h) {
  std::uint64_t sum = 0xcbf29ce484222325ULL;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&h);
  for (std::size_t i = 0; i < offsetof(domain_header, check); ++i)
    sum = (sum ^ bytes[i]) * 0x100000001b3ULL;
  return sum;
}

class descriptor {
 public:
  explicit descriptor(int fd) : fd_(fd) {}
  ~descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

bool is_in_group(gid_t group) {
  if (group == getegid()) return true;
  std::array<gid_t, 1024> groups{};
  const int count = getgroups(static_cast<int>(groups.size()), groups.data());
  return count > 0 &&
         std::find(groups.begin(), groups.begin() + count, group) != groups.begin() + count;
}

/// A file that another user could have put there is not ours to trust.
std::string what_is_wrong(const struct stat& s) {
  if (!S_ISREG(s.st_mode)) return "is no regular file";
  const unsigned mode = s.st_mode & 07777;
  if ((mode & ~0660u) != 0) return "may be opened by others than its user and group";
  if (s.st_uid != geteuid() && ((mode & 0060) != 0060 || !is_in_group(s.st_gid)))
    return "belongs to another user";
  return "";
}

pthread_mutex_t* make_robust(pthread_mutex_t* at) {
  pthread_mutexattr_t how;
  pthread_mutexattr_init(&how);
  pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(at, &how);
  pthread_mutexattr_destroy(&how);
  return at;
}

void fill(int fd, const domain_options& what, const std::string& path) {
  const domain_shape shape(static_cast<std::uint32_t>(what.slots), what.names);
  if (ftruncate(fd, static_cast<off_t>(shape.bytes)) != 0)
    throw domain_error(domain_error::reason::system, path + ": ftruncate: " + why(errno));
  // What all domains use is there from the start, so that no write ends a process for want of
  // memory; what names and locks use comes with them.
  if (posix_fallocate(fd, 0, static_cast<off_t>(shape.buckets)) != 0)
    throw domain_error(domain_error::reason::full, path + ": no room in " + folder);
  void* const base = mmap(nullptr, shape.classes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED)
    throw domain_error(domain_error::reason::system, path + ": mmap: " + why(errno));
  auto& h = *new (base) domain_header{};
  h.magic = magic;
  h.version = version;
  h.abi = abi;
  h.slots = static_cast<std::uint32_t>(what.slots);
  h.names = what.names;
  h.mode = what.mode;
  h.fenced = shm::detail::register_membarrier() ? 0 : 1;
  h.bytes = shape.bytes;
  h.check = check_of(h);
  h.next_word = domain_shape::first_block;
  make_robust(&h.directory);
  auto* const slots =
      reinterpret_cast<domain_slot_words*>(static_cast<std::byte*>(base) + shape.slots);
  for (std::uint32_t i = 0; i < shape.ranks; ++i) make_robust(&slots[i].life);
  munmap(base, shape.classes);
}

/// Without a name until it is complete. -1 if another one has made it meanwhile.
int create(const std::string& path, const domain_options& what) {
  descriptor fd(::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  std::string before;
  if (fd.get() < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
    before = path + "~" + std::to_string(getpid());
    unlink(before.c_str());
  }
  descriptor named(
      before.empty() ? -1 : ::open(before.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  descriptor& made = before.empty() ? fd : named;
  if (made.get() < 0)
    throw domain_error(domain_error::reason::system, path + ": cannot be made: " + why(errno));
  int error = 0;
  try {
    fill(made.get(), what, path);
    if (fchmod(made.get(), what.mode) != 0) error = errno;
    const std::string from =
        before.empty() ? "/proc/self/fd/" + std::to_string(made.get()) : before;
    if (error == 0 &&
        linkat(AT_FDCWD, from.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0)
      error = errno;
  } catch (...) {
    if (!before.empty()) unlink(before.c_str());
    throw;
  }
  if (!before.empty()) unlink(before.c_str());
  if (error == EEXIST) return -1;
  if (error != 0)
    throw domain_error(domain_error::reason::system, path + ": cannot be made: " + why(error));
  return made.release();
}

void check_options(const domain_options& what) {
  const auto refuse = [](const std::string& argument, const std::string& accepted) {
    throw domain_error(domain_error::reason::invalid, argument + " (accepted: " + accepted + ")");
  };
  if (what.slots < 1 || what.slots > 4095)
    refuse("slots " + std::to_string(what.slots), "1 to 4095");
  if (what.names < 1 || what.names > 1'048'576)
    refuse("names " + std::to_string(what.names), "1 to 1048576");
  if (what.mode != 0600 && what.mode != 0660) {
    std::array<char, 16> octal{};
    std::snprintf(octal.data(), octal.size(), "%04o", what.mode);
    refuse(std::string("mode ") + octal.data(), "0600, 0660");
  }
}

std::string path_of(uid_t user, std::string_view name) {
  return std::string(folder) + "/lockflight-" + std::to_string(user) + "-" + std::string(name);
}

// The files that this process maps. A fork waits until nobody changes the list.
std::vector<std::weak_ptr<domain_file>>& mapped() {
  static auto* const all = new std::vector<std::weak_ptr<domain_file>>;
  return *all;
}

std::shared_ptr<domain_file> map(int raw, const std::string& path, std::string_view name) {
  descriptor fd(raw);
  struct stat s {};
  if (fstat(fd.get(), &s) != 0)
    throw domain_error(domain_error::reason::system, path + ": " + why(errno));
  const std::scoped_lock hold(process_mutex());
  auto& all = mapped();
  std::erase_if(all, [](const auto& one) { return one.expired(); });
  for (const auto& one : all)
    if (auto file = one.lock(); file && file->is_file(s.st_dev, s.st_ino)) return file;
  auto file = std::make_shared<domain_file>(fd.release(), path, std::string(name));
  all.push_back(file);
  return file;
}

}  // namespace

domain_shape::domain_shape(std::uint32_t of_slots, std::uint32_t names)
    : ranks(of_slots + 1),
      buckets_count(std::bit_ceil(std::max(names, 16u))),
      words(std::bit_ceil(first_block + names * words_of_name)) {
  slots = up(sizeof(domain_header));
  bells = up(slots + ranks * sizeof(domain_slot_words));
  classes = up(bells + ranks * sizeof(shm::detail::bell));
  buckets = up(classes + most_classes * sizeof(domain_class));
  entries = up(buckets + std::size_t{buckets_count} * sizeof(std::uint32_t));
  cells = up(entries + std::size_t{names} * sizeof(domain_entry));
  bytes = cells + std::size_t{ranks} * words * sizeof(rma::word);
}

domain_file::domain_file(int fd, std::string path, std::string name)
    : path_(std::move(path)), name_(std::move(name)), fd_(fd), machine_(rma::topology::flat(1)) {
  try {
    struct stat s {};
    if (fstat(fd_, &s) != 0)
      throw domain_error(domain_error::reason::system, path_ + ": " + why(errno));
    device_ = s.st_dev;
    inode_ = s.st_ino;
    if (const std::string wrong = what_is_wrong(s); !wrong.empty()) damaged(wrong);
    // Read, not mapped: a file that is too short ends no process.
    alignas(domain_header) std::array<std::byte, sizeof(domain_header)> raw{};
    if (pread(fd_, raw.data(), raw.size(), 0) != static_cast<ssize_t>(raw.size()))
      damaged("is too short");
    const auto& h = *reinterpret_cast<const domain_header*>(raw.data());
    if (h.magic != magic) damaged("is no domain");
    if (h.version != version || h.abi != abi) damaged("is a domain of another version");
    if (h.check != check_of(h)) damaged("has been written over");
    options_ = {static_cast<int>(h.slots), h.names, h.mode};
    check_options(options_);
    check_ = h.check;
    shape_ = domain_shape(h.slots, h.names);
    if (h.bytes != shape_.bytes || s.st_size != static_cast<off_t>(shape_.bytes))
      damaged("has another size than it was made with");
    if (h.fenced == 0 && !shm::detail::register_membarrier())
      throw domain_error(domain_error::reason::system,
                         path_ + ": membarrier is refused here, and not to who made the domain");
    machine_ = rma::topology::flat(ranks());
    void* const base =
        mmap(nullptr, shape_.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_, 0);
    if (base == MAP_FAILED)
      throw domain_error(domain_error::reason::system, path_ + ": mmap: " + why(errno));
    base_ = static_cast<std::byte*>(base);
    madvise(base, shape_.bytes, MADV_DONTDUMP);
  } catch (...) {
    close(fd_);
    throw;
  }
  // What this process's ports read of a run's control: nothing is ever aborted.
  static shm::detail::control nothing;
  view_.shared = &nothing;
  view_.bells = at<shm::detail::bell>(shape_.bells);
  view_.cells = base_ + shape_.cells;
  view_.stride_shift = std::countr_zero(std::size_t{shape_.words} * sizeof(rma::word));
}

domain_file::~domain_file() {
  munmap(base_, shape_.bytes);
  close(fd_);
}

void domain_file::damaged(const std::string& how) const {
  throw domain_error(domain_error::reason::damaged, "domain " + name_ + ": " + path_ + " " + how);
}

bool domain_file::has_its_size() const {
  struct stat s {};
  return fstat(fd_, &s) == 0 && s.st_size >= static_cast<off_t>(shape_.bytes);
}

void domain_file::check_size() const {
  if (!has_its_size()) damaged("has been made shorter");
  if (check_of(header()) != check_) damaged("has been written over");
}

void domain_file::make_room(const volatile void* at, std::size_t bytes) const {
  const auto from = static_cast<const volatile std::byte*>(at) - base_;
  if (posix_fallocate(fd_, from, static_cast<off_t>(bytes)) != 0)
    throw domain_error(domain_error::reason::full,
                       "domain " + name_ + ": no room in " + std::string(folder));
}

bool domain_file::is_removed() const {
  struct stat s {};
  return fstat(fd_, &s) == 0 && s.st_nlink == 0;
}

std::shared_ptr<domain_file> domain_file::open(std::string_view name,
                                               const domain_options* create_as) {
  check_domain_name(name);
  if (create_as != nullptr) check_options(*create_as);
  const std::string own = path_of(geteuid(), name);
  while (true) {
    std::string path = own;
    int fd = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    int error = errno;
    if (fd < 0 && error == ENOENT && (create_as == nullptr || create_as->mode == 0660))
      for (const found_domain& one : find_domains(name)) {
        path = one.path;
        fd = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
        error = errno;
        break;
      }
    if (fd >= 0) return map(fd, path, name);
    if (error == ELOOP || error == EISDIR || error == ENXIO)
      throw domain_error(domain_error::reason::damaged,
                         "domain " + std::string(name) + ": " + path + " is no regular file");
    if (error != ENOENT)
      throw domain_error(
          error == EACCES ? domain_error::reason::damaged : domain_error::reason::system,
          "domain " + std::string(name) + ": " + path + ": " + why(error));
    if (create_as == nullptr)
      throw domain_error(domain_error::reason::missing,
                         "domain " + std::string(name) + ": there is none (" + own + ")");
    fd = create(own, *create_as);
    if (fd >= 0) return map(fd, own, name);
  }
}

void check_domain_name(std::string_view name) {
  constexpr std::string_view accepted =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (!name.empty() && name.size() <= 64 && name.front() != '.' &&
      name.find_first_not_of(accepted) == std::string_view::npos)
    return;
  std::string shown;
  for (const char c : name.substr(0, 80)) shown += c >= ' ' && c <= '~' ? c : '?';
  throw domain_error(domain_error::reason::invalid,
                     "domain name '" + shown +
                         "' (accepted: 1 to 64 of a-z, A-Z, 0-9, '.', '_', '-', no '.' first)");
}

std::vector<found_domain> find_domains(std::string_view name) {
  std::vector<found_domain> own, others;
  DIR* const all = opendir(folder);
  if (all == nullptr) return {};
  constexpr std::string_view prefix = "lockflight-";
  while (const dirent* const one = readdir(all)) {
    std::string_view file = one->d_name;
    if (!file.starts_with(prefix)) continue;
    file.remove_prefix(prefix.size());
    const std::size_t digits = std::min(file.find_first_not_of("0123456789"), file.size());
    if (digits == 0 || digits == file.size() || file[digits] != '-') continue;
    const std::string_view of = file.substr(digits + 1);
    if (of.find('~') != std::string_view::npos || (!name.empty() && of != name)) continue;
    const std::string path = std::string(folder) + "/" + one->d_name;
    struct stat s {};
    if (lstat(path.c_str(), &s) != 0 || !what_is_wrong(s).empty()) continue;
    (s.st_uid == geteuid() ? own : others).push_back({path, std::string(of)});
  }
  closedir(all);
  own.insert(own.end(), others.begin(), others.end());
  return own;
}

}  // namespace lockflight::detail
