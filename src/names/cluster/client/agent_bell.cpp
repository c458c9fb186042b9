#include "names/cluster/client/agent_bell.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "lockflight/domain.hpp"

namespace lockflight::detail {
namespace {

bool fits(const std::string& path) { return path.size() < sizeof(sockaddr_un::sun_path); }

sockaddr_un address_of(const std::string& path) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  path.copy(to.sun_path, sizeof to.sun_path - 1);
  return to;
}

descriptor make_socket() {
  return descriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool send_name(int from, const sockaddr_un& to, std::string_view name) {
  return sendto(from, name.data(), name.size(), MSG_NOSIGNAL,
                reinterpret_cast<const sockaddr*>(&to), sizeof to) >= 0;
}

}  // namespace

std::string bell_path_of(const domain_file& file) { return file.place().path + ".agent"; }

void ring_agent(const domain_file& file, std::string_view name) {
  const std::string path = bell_path_of(file);
  if (!fits(path)) return;  // there is no agent, then
  const sockaddr_un to = address_of(path);
  const descriptor from = make_socket();
  if (from && send_name(from.get(), to, name)) return;
  // The agent reads the mark after all that is in its socket. So if the socket is full now, it is
  // read later; if there is room again, the second datagram makes the agent look.
  file.cluster().missed_rings.store(1);
  if (from) send_name(from.get(), to, name);
}

descriptor make_bell(const domain_file& file) {
  const std::string path = bell_path_of(file);
  if (!fits(path))
    throw domain_error(domain_error::reason::invalid,
                       path + ": the path of a socket (accepted: at most " +
                           std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                           " bytes; set LOCKFLIGHT_DOMAINS to a shorter directory)");
  const auto refused = [&](int error) {
    return domain_error(domain_error::reason::system,
                        path + ": " + std::generic_category().message(error));
  };
  descriptor made = make_socket();
  if (!made) throw refused(errno);
  // Removes a socket that an earlier agent has left. No other agent lives, since this one has the
  // domain's byte.
  if (unlink(path.c_str()) != 0 && errno != ENOENT) throw refused(errno);
  const sockaddr_un at = address_of(path);
  const mode_t before = umask(0177);
  const int bound = bind(made.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at);
  const int error = errno;
  umask(before);
  if (bound != 0) throw refused(error);
  const domain_place& place = file.place();
  if (place.mode == 0660 && (lchown(path.c_str(), static_cast<uid_t>(-1), place.group) != 0 ||
                             chmod(path.c_str(), place.mode) != 0))
    throw refused(errno);
  return made;
}

}  // namespace lockflight::detail
