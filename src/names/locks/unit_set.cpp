#include "names/locks/unit_set.hpp"

#include <algorithm>
#include <bit>

#include "names/file/text.hpp"

namespace lockflight::detail {
namespace {

[[noreturn]] void refuse(std::string_view semaphore, const std::string& given,
                         const std::string& accepted) {
  throw domain_error(domain_error::reason::invalid, "semaphore " + shown(semaphore) + ": " + given +
                                                        " (accepted: " + accepted + ")");
}

}  // namespace

unit_set unit_set::of(std::string_view semaphore, const units& what) {
  if (what.numbers.empty()) {
    if (what.count < 1 || what.count > most_units)
      refuse(semaphore, std::to_string(what.count) + " units",
             "1 to " + std::to_string(most_units));
    return first(what.count);
  }
  rma::word mask = 0;
  for (const int each : what.numbers) {
    if (each < 0 || each > last_chosen)
      refuse(semaphore, "unit " + std::to_string(each), "0 to " + std::to_string(last_chosen));
    const rma::word bit = rma::word{1} << each;
    if ((mask & bit) != 0)
      refuse(semaphore, "unit " + std::to_string(each) + " twice", "each number once");
    mask |= bit;
  }
  // The first N numbers are the same set, however they are given.
  return (mask & (mask + 1)) == 0 ? first(std::popcount(mask)) : unit_set(mask | chosen);
}

std::optional<unit_set> unit_set::of_mask(rma::word mask) {
  if (mask == 0 || mask >> (last_chosen + 1) != 0) return std::nullopt;
  return unit_set(mask | chosen);
}

std::optional<unit_set> unit_set::from(rma::word bits) {
  if ((bits & chosen) != 0) return of_mask(bits & ~chosen);
  return bits >= 1 && bits <= most_units ? std::optional(unit_set(bits)) : std::nullopt;
}

std::vector<int> unit_set::numbers() const {
  std::vector<int> all;
  for (int unit = at_or_after(0); unit >= 0; unit = at_or_after(unit + 1)) all.push_back(unit);
  return all;
}

std::string unit_set::described() const {
  if (!is_chosen()) return std::to_string(count()) + (count() == 1 ? " unit" : " units");
  const std::vector<int> all = numbers();
  std::string text = all.size() == 1 ? "the unit " : "the units ";
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) text += i + 1 == all.size() ? " and " : ", ";
    text += std::to_string(all[i]);
  }
  return text;
}

}  // namespace lockflight::detail
