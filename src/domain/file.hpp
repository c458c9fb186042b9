// The file of a domain: what it is made of, and how it is made, found and checked. All that is
// shared lies in here; each process maps the whole of it.
//
// In this order: the header, the slots, the bells, the directory's classes, buckets and entries,
// and the cells, one segment for each slot. The file is sparse: what nobody uses takes no memory.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockflight/domain.hpp"
#include "lockflight/fabric/parking.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/rma/topology.hpp"

namespace lockflight::detail {

constexpr std::uint32_t records = 32;  ///< of robust locks, of each participant

/// What a slot is. Written by the owner of its mutex.
enum class slot_state : std::uint32_t { free = 0, living = 1, dead = 2 };

/// A participant's place. The thread that has it holds `life` until it ends, so the kernel marks
/// the mutex when the thread dies.
struct alignas(128) domain_slot_words {
  pthread_mutex_t life;
  alignas(64) std::atomic<slot_state> state;
  std::atomic<std::uint32_t> incarnation;
  std::atomic<std::int32_t> pid;
  std::atomic<std::int32_t> tid;
  std::atomic<std::uint32_t> sleeps_at;  ///< 1 + the bell that counts it as parked, or 0
  /// On CLOCK_MONOTONIC, for show alone: when its last wait began, and when it got what its records
  /// say that it holds.
  std::atomic<std::uint64_t> waits_since;
  std::atomic<std::uint64_t> holds_since[records];
  std::atomic<std::uint64_t> command[2];
};

/// Locks of one kind with the same parameters: their blocks of words are alike.
struct domain_class {
  char kind[32];
  char parameters[448];
  std::uint32_t words;  ///< of a block
  std::uint32_t free;   ///< the control line of the first free block; the next is beside that
};

/// A name. `next` chains those of a bucket, or those that are free; numbers are 1 + the index.
struct domain_entry {
  std::atomic<std::uint32_t> next;
  std::uint32_t line;  ///< of the lock's block, its first word
  std::uint64_t serial;
  std::uint64_t tokens_before;  ///< a holder's token is this and the lock's own
  std::uint16_t of_class;
  std::uint16_t length;
  char name[256];
};

struct domain_header {
  // Never changes once the file has its name; `check` is of all this.
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t abi;  ///< sizes that depend on the C library
  std::uint32_t slots;
  std::uint32_t names;
  std::uint32_t mode;
  std::uint32_t fenced;  ///< 1: no membarrier here, each store has its fence
  std::uint64_t bytes;
  std::uint64_t check;

  alignas(128) std::atomic<std::uint64_t> deaths;
  std::atomic<std::uint32_t> used_slots;  ///< no slot from here on was ever taken

  alignas(128) pthread_mutex_t directory;  ///< guards what follows, classes, buckets and entries
  std::uint64_t serials;                   ///< the last one given
  std::uint64_t tokens;                    ///< at least as large as any of a removed lock
  std::uint32_t classes;
  std::uint32_t entries;  ///< no entry from here on was ever used
  std::uint32_t free_entries;
  std::uint32_t next_word;  ///< no block from here on
  std::atomic<std::uint32_t> count;
};

/// Where everything lies, from the two numbers that a domain is made with.
struct domain_shape {
  static constexpr std::uint32_t first_block = 512;  ///< words before it are the participant's own
  static constexpr std::uint32_t words_of_name = 64;
  static constexpr std::uint32_t most_classes = 256;

  domain_shape(std::uint32_t slots, std::uint32_t names);

  std::uint32_t ranks;  ///< the last one is the steward's
  std::uint32_t buckets_count;
  std::uint32_t words;  ///< of each rank
  std::size_t slots, bells, classes, buckets, entries, cells, bytes;
};

/// The mapping, of which a process has one for each domain.
class domain_file {
 public:
  /// `fd` is owned.
  domain_file(int fd, std::string path, std::string name);
  ~domain_file();
  domain_file(const domain_file&) = delete;
  domain_file& operator=(const domain_file&) = delete;

  /// Shared by all of this process that open the same file.
  static std::shared_ptr<domain_file> open(std::string_view name, const domain_options* create);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const domain_options& options() const { return options_; }
  [[nodiscard]] const domain_shape& shape() const { return shape_; }
  [[nodiscard]] const rma::topology& machine() const { return machine_; }
  [[nodiscard]] const shm::detail::segment_view& view() const { return view_; }
  [[nodiscard]] int ranks() const { return static_cast<int>(shape_.ranks); }
  [[nodiscard]] int steward() const { return ranks() - 1; }

  [[nodiscard]] domain_header& header() const { return *at<domain_header>(0); }
  [[nodiscard]] domain_slot_words& slot(int i) const {
    return at<domain_slot_words>(shape_.slots)[i];
  }
  [[nodiscard]] domain_class& of_class(std::uint32_t i) const {
    return at<domain_class>(shape_.classes)[i];
  }
  [[nodiscard]] std::atomic<std::uint32_t>& bucket(std::uint32_t i) const {
    return at<std::atomic<std::uint32_t>>(shape_.buckets)[i];
  }
  [[nodiscard]] domain_entry& entry(std::uint32_t i) const {
    return at<domain_entry>(shape_.entries)[i];
  }
  [[nodiscard]] std::atomic<rma::word>& word(int rank, std::uint32_t index) const {
    return at<std::atomic<rma::word>>(
        shape_.cells)[static_cast<std::size_t>(rank) * shape_.words + index];
  }

  /// Throws domain_error (damaged) if somebody has made the file shorter, for to touch what is gone
  /// would end the process, or has written over what never changes. Asked where time does not
  /// matter.
  void check_size() const;
  /// Before these bytes are first touched: else a full /dev/shm would end the process. Throws
  /// domain_error (full). One system call.
  void make_room(const volatile void* at, std::size_t bytes) const;
  [[nodiscard]] bool has_its_size() const;
  /// Whether the file has no name any more.
  [[nodiscard]] bool is_removed() const;
  [[nodiscard]] bool is_file(std::uint64_t device, std::uint64_t inode) const {
    return device == device_ && inode == inode_;
  }
  [[noreturn]] void damaged(const std::string& how) const;

 private:
  template <class T>
  [[nodiscard]] T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }

  std::string path_, name_;
  int fd_;
  std::byte* base_ = nullptr;
  std::uint64_t device_ = 0, inode_ = 0;
  domain_options options_;
  std::uint64_t check_ = 0;  ///< the header's, when it was opened
  domain_shape shape_{1, 1};
  rma::topology machine_;
  shm::detail::segment_view view_;
};

/// Throws domain_error (invalid).
void check_domain_name(std::string_view name);
/// The paths of the domains of that name that we may open, our own first; all domains if the name
/// is empty.
struct found_domain {
  std::string path, name;
};
[[nodiscard]] std::vector<found_domain> find_domains(std::string_view name);

}  // namespace lockflight::detail
