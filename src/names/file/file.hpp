// The file of a domain as a process has it open: found or made, mapped piece by piece, checked.
#pragma once

#include <fcntl.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/zeroed_array.hpp"
#include "lockflight/domain.hpp"
#include "names/file/fork.hpp"
#include "names/file/layout.hpp"
#include "names/file/place.hpp"

namespace lockflight::detail {

class domain_file {
 public:
  domain_file(descriptor fd, domain_place where);
  ~domain_file();
  domain_file(const domain_file&) = delete;
  domain_file& operator=(const domain_file&) = delete;

  /// Opens a domain's file, or makes it if that is allowed. All threads of this process that open
  /// the same file share the object.
  static std::shared_ptr<domain_file> open(std::string_view name, const domain_options& what,
                                           bool may_be_made);
  /// Opens the file of a cluster's domain, which only the agent makes.
  static std::shared_ptr<domain_file> open_as_agent(std::string_view name,
                                                    const domain_options& create);
  /// Opens the file at a place. Null if there is none.
  static std::shared_ptr<domain_file> open_at(const domain_place& at);

  [[nodiscard]] const std::string& name() const { return where_.name; }
  [[nodiscard]] const domain_place& place() const { return where_; }
  [[nodiscard]] const domain_options& options() const { return options_; }
  [[nodiscard]] int steward() const { return options_.slots; }

  [[nodiscard]] domain_header& header() const { return *at<domain_header>(0); }
  [[nodiscard]] cluster_header& cluster() const { return *at<cluster_header>(cluster_at); }
  /// True if this is a host's file of a cluster's domain.
  [[nodiscard]] bool is_of_cluster() const { return is_cluster_name(where_.name); }
  [[nodiscard]] domain_class& of_class(std::uint32_t i) const {
    return at<domain_class>(classes_at)[i];
  }
  [[nodiscard]] std::atomic<std::uint32_t>& bucket(std::uint32_t i) const {
    return at<std::atomic<std::uint32_t>>(buckets_at)[i];
  }
  [[nodiscard]] shm::detail::bell& bell(std::uint32_t i) const {
    return at<shm::detail::bell>(bells_at)[i % bells];
  }
  /// The bell of the words of locks, by their line.
  [[nodiscard]] shm::detail::bell& bell_of_line(std::uint32_t line) const {
    return bell(number_of_bell(line));
  }
  [[nodiscard]] static std::uint32_t number_of_bell(std::uint32_t line) {
    return (line * 0x9e3779b1u) >> 22;  // the upper bits of a multiplicative hash
  }

  /// Throws domain_error (damaged) for a number that no slot has, or whose memory is not there.
  [[nodiscard]] domain_slot_page& slot(int number) const {
    const auto i = static_cast<unsigned>(number);
    std::byte* piece = nullptr;
    if (i < ranks) piece = slot_piece_[i / slots_of_piece].load(std::memory_order_acquire);
    if (piece == nullptr) [[unlikely]]
      piece = map_slots(i);
    return *reinterpret_cast<domain_slot_page*>(piece + i % slots_of_piece * slot_bytes);
  }
  /// A word of a lock. Throws as slot().
  [[nodiscard]] std::atomic<rma::word>& word(std::uint32_t index) const {
    constexpr std::uint32_t words_of_piece = lines_of_piece * rma::line_words;
    const std::uint32_t i = index - own_words;  // large for an index that is too small
    std::byte* piece = nullptr;
    if (i < most_room_pieces * words_of_piece)
      piece = room_piece_[i / words_of_piece].load(std::memory_order_acquire);
    if (piece == nullptr) [[unlikely]]
      piece = map_room(i / words_of_piece);
    return reinterpret_cast<std::atomic<rma::word>*>(piece)[i % words_of_piece];
  }
  /// A cell: all words of locks are rank 0's.
  [[nodiscard]] std::atomic<rma::word>& cell(rma::rank_t home, std::uint32_t index) const {
    if (index < own_words) return slot(slot_of(home)).words[index];
    if (home != 0) [[unlikely]]
      throw_damaged("has been written over");
    return word(index);
  }
  [[nodiscard]] int slot_of(rma::rank_t rank) const {
    if (static_cast<unsigned>(rank) >= ranks) [[unlikely]]
      throw_damaged("has been written over");
    return slot_of_rank[static_cast<unsigned>(rank)];
  }

  /// Memory for that slot, and for so many lines. One system call if there is none yet.
  /// Throws domain_error (full).
  void make_room_for_slot(int number);
  void make_room_for_lines(std::uint32_t end_line);

  /// True if another open file may have locked the byte that stands for the slot. Locks of this
  /// process itself do not count. Nothing if the kernel does not say.
  [[nodiscard]] std::optional<bool> is_slot_locked(int number) const;
  /// Locks the slot's byte. False if another open file has locked it. Throws domain_error (system).
  [[nodiscard]] bool lock_slot(int number);
  /// Unlocks it, and the slot's hold bytes.
  void unlock_slot(int number);
  /// For the process that has locked the slot's byte: locks hold bytes of the slot, too. False if
  /// another open file has one of them, or the kernel refuses it.
  [[nodiscard]] bool lock_hold_bytes(int number, std::uint32_t first, std::uint32_t count) noexcept;
  void unlock_hold_byte(int number, std::uint32_t which) noexcept;
  /// Opens the file once more, so that a thread of this process can wait for bytes that the process
  /// itself has locked. Only for reading, which no other descriptor of ours is. None if that fails.
  [[nodiscard]] descriptor opened_to_wait() const;
  /// True if that descriptor was opened by opened_to_wait(), and the program has not closed it.
  [[nodiscard]] static bool is_opened_to_wait(int fd, std::uint64_t device, std::uint64_t inode);
  /// True if this process has locked the slot's byte.
  [[nodiscard]] bool has_locked_slot(int number) const {
    static_cast<void>(image());  // a child has locked nothing yet
    return locked_[static_cast<std::size_t>(number)].load(std::memory_order_relaxed);
  }
  /// For threads of this process, which have the bytes together: one of them takes a slot at a
  /// time.
  [[nodiscard]] std::mutex& taking() { return taking_; }
  /// For a process that is to become another program: from now on, and also in that program, a byte
  /// is locked that stands for what the slot's participant guards.
  void lock_guard(int number, std::uint32_t incarnation) const noexcept;
  [[nodiscard]] std::optional<bool> is_guard_locked(int number) const;
  /// True if a process has the right to remove the file (removal_right).
  [[nodiscard]] bool is_removal_locked() const;
  /// Called by the agent of a cluster's domain. True if the agent is the only one on this host; it
  /// is so as long as this process lives. Throws domain_error (system).
  [[nodiscard]] bool lock_as_agent();
  /// True if this process is the agent.
  [[nodiscard]] bool is_agent() const { return is_agent_; }
  /// True if another process is the agent.
  [[nodiscard]] bool has_agent() const;
  /// The address at which this process maps the file's first page.
  [[nodiscard]] const void* address() const { return head_; }

  /// Throws domain_error (damaged) if another process has made the file shorter, or has written
  /// over the words that never change. Called where time does not matter.
  void check() const;
  /// True if the file still has its path, as far as this process can know.
  [[nodiscard]] bool is_current() const;
  /// Has the kernel tell processes that watch the file (inotify) to look at it.
  void tell_of_change() const noexcept;
  [[noreturn]] void throw_damaged(const std::string& how) const;
  [[noreturn]] void throw_removed() const;
  [[nodiscard]] bool is_file(std::uint64_t device, std::uint64_t inode) const {
    return device == device_ && inode == inode_;
  }
  [[nodiscard]] std::uint64_t device() const { return device_; }
  [[nodiscard]] std::uint64_t inode() const { return inode_; }
  /// Gives a child an open file of its own, since the kernel keeps the bytes that a dead parent had
  /// locked as long as a child has the parent's open file.
  void reopen_in_child(bool owns_descriptors) noexcept;
  /// True once in each process image.
  [[nodiscard]] bool is_new_to_image() { return known_to_.exchange(image()) != image(); }

 private:
  static std::shared_ptr<domain_file> find_or_make(std::string_view name,
                                                   const domain_options& what, bool may_be_made);
  template <class T>
  [[nodiscard]] T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(head_ + offset);
  }
  [[nodiscard]] int fd() const;
  /// Opens the same file once more. Returns the new descriptor, or -1.
  [[nodiscard]] int opened_again(int from, int how = O_RDWR) const noexcept;
  /// The descriptor, or -1 if the program has closed it.
  [[nodiscard]] int fd_if_ours() const noexcept;
  [[nodiscard]] std::byte* map_slots(unsigned number) const;
  [[nodiscard]] std::byte* map_room(std::uint32_t piece) const;
  [[nodiscard]] std::byte* map(std::atomic<std::byte*>& as, std::size_t offset) const;
  [[nodiscard]] std::byte* map_part(int from, std::size_t offset, std::size_t bytes) const;
  void reserve(std::size_t offset) const;

  static const std::array<std::uint16_t, ranks> slot_of_rank;

  domain_place where_;
  mutable std::atomic<int> fd_;
  std::byte* head_ = nullptr;
  std::size_t head_end_ = head_bytes;  // of its mapping, which may have the first slots
  std::uint64_t device_ = 0, inode_ = 0, check_ = 0;
  domain_options options_;
  mutable std::array<std::atomic<std::byte*>, most_slot_pieces> slot_piece_{};
  zeroed_array<std::atomic<std::byte*>, most_room_pieces> room_piece_;
  mutable std::atomic<std::uint32_t> room_end_{0};  // no later piece is mapped
  std::array<std::atomic<bool>, ranks> locked_{};   // slots whose byte this process has locked
  std::mutex taking_;
  std::atomic<bool> is_agent_{false};
  std::atomic<std::uint64_t> known_to_{0};
};

}  // namespace lockflight::detail
