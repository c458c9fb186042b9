#include "names/agent/link/links.hpp"

#include <algorithm>
#include <asio/post.hpp>
#include <cassert>
#include <map>
#include <utility>

#include "names/agent/link/incoming.hpp"
#include "names/agent/link/outgoing.hpp"

namespace lockflight::cluster {

class links::all {
 public:
  all(asio::io_context& io, link_settings settings, link_callbacks callbacks)
      : node_(std::make_shared<link::node>(io, std::move(settings), std::move(callbacks))),
        listener_(std::make_shared<link::listener>(node_)) {
    listener_->start();
  }

  [[nodiscard]] const link::listener& listener() const { return *listener_; }

  void set_peers(const std::vector<peer>& peers) {
    if (is_closed_) return;
    const auto counts = [&](const peer& p) {
      return p.id != node_->settings.self && !p.address.empty();
    };
    std::erase_if(members_, [&](auto& each) {
      const bool is_peer = std::any_of(peers.begin(), peers.end(), [&](const peer& p) {
        return p.id == each.first && counts(p);
      });
      if (is_peer || !each.second->is_peer()) return false;
      each.second->close();
      // The peer is destroyed later: this function may have been called from one of its functions.
      asio::post(node_->io, [ended = std::move(each.second)] {});
      return true;
    });
    for (const peer& each : peers) {
      if (!counts(each)) continue;
      listener_->know(each);
      member(each.id).set_peer(each);
    }
  }

  void send(const message& what) {
    assert(what.from == node_->settings.self && what.to != what.from);
    if (is_closed_) return;
    if (what.epoch > epoch_) {
      epoch_ = what.epoch;
      std::erase_if(members_, [&](const auto& each) {
        return !each.second->is_peer() && each.second->newest() < epoch_;
      });
    }
    member(what.to).send(what);
  }

  [[nodiscard]] bool ask(member_id whom, std::uint64_t number, const std::string& what) {
    const auto at = members_.find(whom);
    return at != members_.end() && at->second->ask(number, what);
  }

  void flush(member_id to) {
    if (const auto at = members_.find(to); at != members_.end()) at->second->flush();
  }

  [[nodiscard]] std::vector<peer_status> status() const {
    std::vector<peer_status> of_all;
    for (const auto& [id, each] : members_) {
      if (!each->is_peer()) continue;
      of_all.push_back(each->status());
      of_all.back().is_reaching_us = listener_->is_reached_by(id);
    }
    return of_all;
  }

  void close() {
    if (std::exchange(is_closed_, true)) return;
    node_->close();
    listener_->close();
    for (auto& [id, each] : members_) each->close();
    // The members are destroyed later: one of their functions may have called this one.
    asio::post(node_->io, [ended = std::move(members_), port = listener_] {});
    members_.clear();
  }

 private:
  link::outgoing& member(member_id id) {
    auto& found = members_[id];
    if (!found) found = std::make_shared<link::outgoing>(node_, id);
    return *found;
  }

  std::shared_ptr<link::node> node_;
  std::shared_ptr<link::listener> listener_;
  std::map<member_id, std::shared_ptr<link::outgoing>> members_;
  epoch_number epoch_ = 0;  // the greatest of a message that was sent
  bool is_closed_ = false;
};

links::links(asio::io_context& io, link_settings settings, link_callbacks callbacks)
    : all_(std::make_shared<all>(io, std::move(settings), std::move(callbacks))) {}

links::~links() { close(); }

std::uint16_t links::port() const { return all_->listener().port(); }
std::string links::address() const { return all_->listener().address(); }
void links::set_peers(const std::vector<peer>& peers) { all_->set_peers(peers); }
void links::send(const message& what) { all_->send(what); }
void links::flush(member_id to) { all_->flush(to); }
bool links::ask(member_id whom, std::uint64_t number, const std::string& what) {
  return all_->ask(whom, number, what);
}
std::vector<peer_status> links::status() const { return all_->status(); }
void links::close() { all_->close(); }

}  // namespace lockflight::cluster
