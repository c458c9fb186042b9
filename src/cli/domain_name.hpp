// How the command line names a domain and a lock: the same for all commands.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "lockflight/domain.hpp"

namespace lockflight::cli {

/// A domain as a command line names it.
struct domain_name {
  std::string argument;  ///< the option or the argument that has the name
  std::string name;
  unsigned mode = 0;       ///< 0: whichever it has
  std::string group = "";  ///< with mode 0660; empty: whichever it has

  /// Throws usage_error, which names the nearest, if there is none, and domain_error, which names
  /// the options that choose one, if it is not clear which one is meant.
  [[nodiscard]] domain attach() const;
  /// The same, or made if there is none.
  [[nodiscard]] domain open() const;
  /// False if there is none.
  [[nodiscard]] bool remove(bool force) const;
};

/// The options of a command: --domain, --mode and --group between its own. Null: the domain has to
/// be named.
[[nodiscard]] std::vector<option> with_domain_options(std::vector<option> before,
                                                      const std::vector<option>& after,
                                                      const char* by_default = default_domain);
/// The argument DOMAIN of the commands that take the domain both ways.
[[nodiscard]] option domain_argument(std::string what);
/// The domain that these options name. None if the domain is not named and has no default. Throws
/// usage_error.
[[nodiscard]] std::optional<domain_name> domain_name_from(const arguments& given,
                                                          const char* by_default = default_domain);

/// "'lockflight domain show work --mode 0660 --group 61001'", for a message: the command that shows
/// this domain, whichever others have its name.
[[nodiscard]] std::string command_that_shows(const domain& in);

/// Throws usage_error unless a lock may be called so.
void check_lock_name(const std::string& argument, const std::string& name);

}  // namespace lockflight::cli
