// The other programs of an installation: where they lie, and how this process becomes one of them
// or runs one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockflight::tool {

/// The part of this program's file name after `name`: ".mpich" for bin/lockflight.mpich. Empty
/// if its file has another name, or if /proc is not mounted.
[[nodiscard]] std::string own_suffix(std::string_view name);

/// A search for another program: beside this one, then in libexec/lockflight, then on the PATH.
/// Links are followed to this program's own file first. A folder that depends on the directory in
/// which the user is, such as an empty entry of PATH, is left out.
class sibling {
 public:
  explicit sibling(std::string_view name);

  /// Looks in one more place first, given as a path from this program's folder.
  sibling& first_at(std::string_view place);

  /// This process becomes that program, with these arguments. If it cannot, returns why: where it
  /// was looked for, or what was wrong with the one that is there.
  [[nodiscard]] std::string become(char* const* argv) const;
  /// Runs that program and waits for its end. False if it is nowhere or fails.
  [[nodiscard]] bool run(const std::vector<std::string>& words) const;

 private:
  std::string name_;
  std::vector<std::string> places_;  ///< absolute paths, best first
};

}  // namespace lockflight::tool
