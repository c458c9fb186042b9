// The group of a rendezvous: each rank has a connection to rank 0, which passes everything on.
//
// Cost: a collective call is two messages of a rank, one after the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wireup/group.hpp"
#include "wireup/socket.hpp"

namespace lockflight::wireup {

struct peer {
  int rank = 0;
  std::string host;
  socket line;
};

/// "rank 1 on host1".
[[nodiscard]] std::string name_of(const peer& of);

class star final : public group {
 public:
  /// `peers` are all other ranks, in order, for rank 0, and rank 0 for the others.
  star(int rank, int size, std::vector<peer> peers);
  ~star() override;
  star(const star&) = delete;
  star& operator=(const star&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] std::vector<std::string> all_gather(
      const std::string& mine, const std::function<void()>& meanwhile) override;
  void barrier(const std::function<void()>& meanwhile) override;
  void check() override;
  void fail(const std::string& why) override;
  [[nodiscard]] std::optional<loss> await_loss(int until) override;
  void leave() override;

 private:
  [[nodiscard]] std::string receive(const peer& from, frame_kind expected,
                                    const std::function<void()>& meanwhile);
  void send(const peer& to, frame_kind kind, const std::string& content);
  [[noreturn]] void give_up(const std::string& why, const peer* source);
  /// `why`: what the kernel has said of the connection already, an errno.
  [[noreturn]] void lost(const peer& who, int why = 0);

  int rank_;
  int size_;
  std::vector<peer> peers_;
  std::string failure_;  // empty while all is well
};

}  // namespace lockflight::wireup
