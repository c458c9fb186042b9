// Agents' links in one process, and the loop that runs them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "link_proxy.hpp"
#include "names/agent/link/links.hpp"

namespace lockflight::cluster::testing_links {

/// Nothing takes so long, however busy the machine is.
constexpr std::chrono::seconds patience{60};

/// The links of an agent, and what they have said.
struct station {
  link_settings settings;
  std::vector<message> received;
  std::vector<member_id> heard;
  std::vector<std::pair<member_id, std::string>> troubles;
  std::unique_ptr<links> own;

  [[nodiscard]] peer as_peer(std::string address = {}) const {
    return {settings.self, settings.agent, address.empty() ? own->address() : std::move(address)};
  }
  void send(member_id to, epoch_number epoch, std::string name) const {
    own->send({settings.self, to, epoch, std::move(name), request{mode::shared}});
  }
  [[nodiscard]] int heard_of(member_id id) const {
    return static_cast<int>(std::count(heard.begin(), heard.end(), id));
  }
  [[nodiscard]] int troubles_with(member_id about, const std::string& part) const {
    return static_cast<int>(std::count_if(troubles.begin(), troubles.end(), [&](const auto& each) {
      return each.first == about && each.second.find(part) != std::string::npos;
    }));
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const message& each : received) all.push_back(each.name);
    return all;
  }
};

class Links : public testing::Test {
 protected:
  Links() { options.keep_alive = std::chrono::milliseconds(100); }

  std::unique_ptr<station> start(member_id id, agent_number agent = 1) {
    link_settings settings;
    settings.self = id;
    settings.agent = agent;
    settings.domain = "test";
    settings.address = "127.0.0.1:0";
    settings.key.fill(7);
    settings.options = options;
    return start(settings);
  }
  std::unique_ptr<station> start(const link_settings& settings) {
    auto made = std::make_unique<station>();
    station* const at = made.get();
    at->settings = settings;
    at->own = std::make_unique<links>(
        io, settings,
        link_callbacks{
            [at](message what) { at->received.push_back(std::move(what)); },
            [at](member_id id) { at->heard.push_back(id); },
            [at](member_id id, const std::string& text) { at->troubles.emplace_back(id, text); }});
    return made;
  }

  /// Runs the loop until it is so.
  [[nodiscard]] bool reach(const std::function<bool()>& it_is_so) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!it_is_so()) {
      if (std::chrono::steady_clock::now() > end) return false;
      io.restart();
      io.run_one_for(std::chrono::milliseconds(50));
    }
    return true;
  }
  /// True if a gets a message to b.
  [[nodiscard]] bool gets_through(const station& a, const station& b) {
    const auto there = [&] {
      return std::count_if(b.received.begin(), b.received.end(),
                           [](const message& each) { return each.name == "are you there"; });
    };
    const auto before = there();
    a.send(b.settings.self, 1, "are you there");
    return reach([&] { return there() > before; });
  }
  void run_for(std::chrono::milliseconds how_long) {
    io.restart();
    io.run_for(how_long);
  }

  asio::io_context io;
  link_options options;
};

}  // namespace lockflight::cluster::testing_links
