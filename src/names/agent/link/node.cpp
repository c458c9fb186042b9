#include "names/agent/link/node.hpp"

#include <asio/post.hpp>
#include <stdexcept>

#include "names/agent/link/frames.hpp"

namespace lockflight::cluster::link {
namespace {

constexpr std::chrono::minutes between_same_troubles{1};
/// Texts that are remembered. Strangers cannot make an agent remember, or say, more in a minute.
constexpr std::size_t texts_most = 1024;

shared_key key_in(const link_settings& settings) {
  if (settings.domain.empty() || settings.domain.size() > longest_domain)
    throw std::runtime_error("a domain's name has 1 to 255 bytes");
  return {settings.domain, settings.key};
}

}  // namespace

node::node(asio::io_context& runs, link_settings is, link_callbacks callbacks)
    : io(runs),
      settings(std::move(is)),
      keys(std::make_shared<tls>(key_in(settings))),
      callbacks_(std::move(callbacks)),
      random_(std::random_device()()) {}

void node::trouble(member_id about, std::string text) {
  const auto now = steady::now();
  std::erase_if(said_, [&](const auto& s) { return now - s.second >= between_same_troubles; });
  if (said_.size() >= texts_most || !said_.try_emplace({about, text}, now).second) return;
  asio::post(io, [self = shared_from_this(), about, text = std::move(text)] {
    if (!self->is_closed_) self->callbacks_.trouble(about, text);
  });
}

steady::duration node::jittered(steady::duration most) {
  std::uniform_int_distribution<steady::rep> any(most.count() / 2, most.count());
  return steady::duration(any(random_));
}

std::string node::other_version(std::uint32_t of_peer) const {
  return "speaks version " + std::to_string(of_peer) + " of the protocol, this agent speaks " +
         std::to_string(settings.options.version);
}

}  // namespace lockflight::cluster::link
