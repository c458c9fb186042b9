#include "catalogue/nearest.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "base/joined.hpp"

namespace lockflight::catalogue {
namespace {

std::string lower(const std::string& text) {
  std::string out = text;
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// How many letters must be inserted, removed, replaced, or swapped with their neighbour.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

/// The names that begin with what was typed, such as a word of GNU's abbreviated options.
std::vector<std::string> beginning_with(const std::string& typed,
                                        const std::vector<std::string>& known) {
  std::vector<std::string> found;
  for (const std::string& name : known)
    if (lower(name).starts_with(lower(typed))) found.push_back(name);
  return found;
}

std::string near_in_letters(const std::string& typed, const std::vector<std::string>& known) {
  // A name that needs as many changes as it has letters has nothing in common with the typed one.
  constexpr std::size_t longest = 100;
  if (typed.empty() || typed.size() > longest) return "";
  std::size_t least = std::min(typed.size() - 1, std::max<std::size_t>(2, typed.size() / 3)) + 1;
  std::string best;
  for (const std::string& name : known) {
    const std::size_t far = distance(lower(typed), lower(name));
    if (far >= least) continue;
    least = far;
    best = name;
  }
  return best;
}

}  // namespace

std::string nearest(const std::string& typed, const std::vector<std::string>& known) {
  const std::string near = near_in_letters(typed, known);
  if (typed.empty()) return near;
  const std::vector<std::string> longer = beginning_with(typed, known);
  const bool is_one_of_them = std::ranges::find(longer, near) != longer.end();
  return longer.empty() || (is_one_of_them && longer.size() > 1) ? near : joined(longer, " or ");
}

std::string accepted_names(const std::string& typed, const std::vector<std::string>& known) {
  const std::string near = nearest(typed, known);
  return (near.empty() ? "(accepted: " : "(nearest: " + near + "; accepted: ") + joined(known) +
         ")";
}

}  // namespace lockflight::catalogue
