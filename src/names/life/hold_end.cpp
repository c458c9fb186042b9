#include "names/life/hold_end.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>

#include "lockflight/rma/packed.hpp"
#include "names/life/machine_clock.hpp"

namespace lockflight::detail {
namespace {

struct end_word : rma::packed<end_word> {
  static constexpr rma::field hold{.at = 0, .bits = 24};
  static constexpr rma::field why{.at = 24, .bits = 2};
  static constexpr rma::field moment{.at = 26, .bits = 38};  ///< enough for eight years
  static_assert(rma::are_disjoint({hold, why, moment}));
};

constexpr std::uint64_t ns_of_moment = 1'000'000;  ///< a millisecond

/// Successive numbers get bits that differ, since the factor is odd and near the golden ratio.
std::uint64_t mixed(const domain_slot_page& slot, int record) {
  const std::uint64_t since = slot.holds_since[record].load(std::memory_order_acquire);
  return (since ^ std::uint64_t{slot.life_now().incarnation} << 40) * 0x9e3779b97f4a7c15u;
}

}  // namespace

hold_name name_of_hold(const domain_slot_page& slot, int record) {
  return {record, static_cast<std::uint32_t>(mixed(slot, record) >> 40)};
}

std::uint64_t number_of_hold(const domain_slot_page& slot, int slot_number, int record) {
  constexpr std::uint64_t of_json = (std::uint64_t{1} << 53) - 1;
  const std::uint64_t all =
      mixed(slot, record) + static_cast<std::uint64_t>(slot_number) * 0xff51afd7ed558ccdu;
  return std::max<std::uint64_t>(all >> 11 & of_json, 1);
}

hold_end end_of(const domain_slot_page& slot, hold_name hold) {
  const auto word = end_word::from(slot.ends[hold.record].load(std::memory_order_acquire));
  const auto why = static_cast<end_reason>(word.get(end_word::why));
  if (why == end_reason::none || word.get(end_word::hold) != hold.bits) return {};
  const auto shift = static_cast<std::uint64_t>(boot_clock_shift_ns());
  return {word.get(end_word::moment) * ns_of_moment + shift, why};
}

// The order is sequentially consistent: a holder that is woken up by the caller sees the word.
void set_end(domain_slot_page& slot, hold_name hold, hold_end end) {
  const auto shift = static_cast<std::uint64_t>(boot_clock_shift_ns());
  const std::uint64_t ms = (end.at_ns - shift) / ns_of_moment;
  const auto wanted = end_word{}
                          .with(end_word::hold, hold.bits)
                          .with(end_word::why, static_cast<rma::word>(end.why))
                          .with(end_word::moment, std::min(ms, end_word::moment.most()));
  std::uint64_t now = slot.ends[hold.record].load();
  do {
    // (!) The hold may be over by now, and the word that of the next one.
    if (name_of_hold(slot, hold.record) != hold) return;
    const auto is = end_word::from(now);
    const bool is_ours = is.get(end_word::hold) == hold.bits && is.get(end_word::why) != 0;
    if (is_ours && is.get(end_word::moment) <= wanted.get(end_word::moment)) return;
  } while (!slot.ends[hold.record].compare_exchange_weak(now, wanted.bits()));
}

std::uint64_t boot_time_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// ---- keepers ----

// Release: a process that finds the incarnation sees the note and the token.
void keep_by(domain_slot_page& slot, std::uint64_t token, std::string_view note) {
  std::array<std::uint64_t, bytes_of_note / sizeof(std::uint64_t)> words{};
  std::memcpy(words.data(), note.data(), std::min(note.size(), bytes_of_note));
  for (std::size_t i = 0; i < words.size(); ++i)
    slot.note[i].store(words[i], std::memory_order_relaxed);
  slot.kept_token.store(token, std::memory_order_relaxed);
  slot.keeper.store(slot.life_now().incarnation, std::memory_order_release);
}

std::uint64_t kept_token(const domain_slot_page& slot) {
  const std::uint32_t keeper = slot.keeper.load(std::memory_order_acquire);
  if (keeper == 0 || keeper != slot.life_now().incarnation) return 0;
  return slot.kept_token.load(std::memory_order_relaxed);
}

std::string note_of(const domain_slot_page& slot) {
  if (kept_token(slot) == 0) return "";
  std::array<std::uint64_t, bytes_of_note / sizeof(std::uint64_t)> words{};
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = slot.note[i].load(std::memory_order_relaxed);
  std::array<char, bytes_of_note + 1> text{};
  std::memcpy(text.data(), words.data(), bytes_of_note);
  return text.data();
}

}  // namespace lockflight::detail
