// Words that several fields share: a layout is declared once, as constants, and checked when it is
// compiled.
#pragma once

#include <initializer_list>

#include "lockflight/rma/cell.hpp"

namespace lockflight::rma {

/// `bits` bits of a word, from bit `at` on.
struct field {
  unsigned at = 0;
  unsigned bits = 0;

  /// The greatest value that it holds.
  [[nodiscard]] constexpr word most() const {
    return bits == 64 ? ~word{0} : (word{1} << bits) - 1;
  }
};

/// True if no two of these fields share a bit, and each has one and lies inside a word.
[[nodiscard]] constexpr bool are_disjoint(std::initializer_list<field> fields) {
  word used = 0;
  for (const field f : fields) {
    if (f.bits == 0 || f.at + f.bits > 64 || (used >> f.at & f.most()) != 0) return false;
    used |= f.most() << f.at;
  }
  return true;
}

/// A word of fields. `Word` derives from this and declares its fields as constants; values beyond a
/// field are cut off.
template <class Word>
class packed {
 public:
  constexpr packed() = default;
  [[nodiscard]] static constexpr Word from(word bits) {
    Word made;
    made.bits_ = bits;
    return made;
  }
  [[nodiscard]] constexpr word bits() const { return bits_; }
  [[nodiscard]] constexpr word get(field f) const { return bits_ >> f.at & f.most(); }
  [[nodiscard]] constexpr bool has(field f) const { return get(f) != 0; }
  /// The same word, but for one field.
  [[nodiscard]] constexpr Word with(field f, word value = 1) const {
    return from((bits_ & ~(f.most() << f.at)) | (value & f.most()) << f.at);
  }
  [[nodiscard]] constexpr Word without(field f) const { return with(f, 0); }

  friend constexpr bool operator==(const packed&, const packed&) = default;

 private:
  word bits_ = 0;
};

}  // namespace lockflight::rma
