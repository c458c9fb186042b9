// The other programs of an installation: where they lie, and how this process becomes one of them
// or runs one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockflight::tool {

/// What this program is called beyond "lockflight": ".mpich" for bin/lockflight.mpich. Empty where
/// its file has another name, or where /proc is not mounted.
[[nodiscard]] std::string own_suffix(std::string_view name);

/// A search for another program: beside this one, then in libexec/lockflight, then on the PATH.
/// Links are followed to this program's own file first. A folder that depends on the directory in
/// which the user is, such as an empty entry of PATH, is left out.
class sibling {
 public:
  explicit sibling(std::string_view name);

  /// Looks in one more place first, given as a path from this program's folder.
  sibling& first_at(std::string_view place);

  /// This process becomes that program, with the same arguments. Returns if it is nowhere.
  void become(char* const* argv) const;
  /// Runs that program and waits for its end. False if it is nowhere or fails.
  [[nodiscard]] bool run(const std::vector<std::string>& words) const;

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Where it was looked for, for people: "beside /usr/bin/lockflight, in …, on the PATH".
  [[nodiscard]] std::string where() const;

 private:
  std::string name_;
  std::vector<std::string> places_;  ///< absolute paths, best first
};

}  // namespace lockflight::tool
