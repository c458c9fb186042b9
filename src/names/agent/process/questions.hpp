// The questions of this host's programs to its agent, by a socket beside the domain file: one line
// of text, and lines back (names/cluster/client/elsewhere.hpp).
#pragma once

#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "names/file/file.hpp"

namespace lockflight::cluster {

class questions {
 public:
  using reply = std::function<void(std::string lines)>;
  /// Answers by calling the reply once, then or later.
  using answer = std::function<void(const std::vector<std::string>& question, reply to)>;

  /// Listens, with the mode and the group of the domain. Throws domain_error.
  questions(asio::io_context& io, const detail::domain_file& file, answer by);

  /// Makes the socket anew, as somebody has removed its file. Throws domain_error.
  void listen_again();

 private:
  class visit;

  void accept();

  asio::io_context& io_;
  const detail::domain_file& file_;
  asio::local::stream_protocol::acceptor acceptor_;
  answer by_;
  std::shared_ptr<int> visits_ = std::make_shared<int>(0);  // how many there are
};

}  // namespace lockflight::cluster
