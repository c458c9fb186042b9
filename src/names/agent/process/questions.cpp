#include "names/agent/process/questions.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "lockflight/domain.hpp"
#include "names/cluster/client/elsewhere.hpp"

namespace lockflight::cluster {
namespace {

using local = asio::local::stream_protocol;

/// A value with its name, all bytes of which may be escaped.
constexpr std::size_t longest_question = 4'096 + 2 * most_value_bytes;
constexpr int visits_most = 64;
constexpr auto visits_last = std::chrono::seconds(10);

local::acceptor listen_at(asio::io_context& io, const detail::domain_file& file) {
  const std::string path = detail::question_path_of(file);
  const auto refused = [&](int error) {
    return domain_error(domain_error::reason::system,
                        path + ": " + std::generic_category().message(error));
  };
  // Removes the socket that an earlier agent has left.
  if (unlink(path.c_str()) != 0 && errno != ENOENT) throw refused(errno);
  const mode_t before = umask(0177);
  asio::error_code error;
  local::acceptor made(io);
  made.open(local(), error);
  if (!error) made.bind(local::endpoint(path), error);
  umask(before);
  if (!error) made.listen(asio::socket_base::max_listen_connections, error);
  if (error) throw refused(error.value());
  const detail::domain_place& place = file.place();
  if (place.mode == 0660 && (lchown(path.c_str(), static_cast<uid_t>(-1), place.group) != 0 ||
                             chmod(path.c_str(), place.mode) != 0))
    throw refused(errno);
  return made;
}

}  // namespace

/// A program that asks.
class questions::visit : public std::enable_shared_from_this<visit> {
 public:
  visit(local::socket socket, std::shared_ptr<int> count)
      : socket_(std::move(socket)), timer_(socket_.get_executor()), count_(std::move(count)) {
    ++*count_;
  }
  ~visit() { --*count_; }
  visit(const visit&) = delete;
  visit& operator=(const visit&) = delete;

  void start(const answer& by) {
    timer_.expires_after(visits_last);
    timer_.async_wait([weak = weak_from_this()](const asio::error_code& error) {
      const auto self = weak.lock();
      if (self && !error) self->close();
    });
    asio::async_read_until(
        socket_, asio::dynamic_buffer(text_, longest_question), '\n',
        [self = shared_from_this(), by](const asio::error_code& error, std::size_t length) {
          if (error) return self->close();
          const auto lines = detail::fields_of(self->text_.substr(0, length));
          by(lines.front(), [self](std::string reply) { self->write(std::move(reply)); });
        });
  }

 private:
  void write(std::string reply) {
    text_ = std::move(reply);
    asio::async_write(
        socket_, asio::buffer(text_),
        [self = shared_from_this()](const asio::error_code&, std::size_t) { self->close(); });
  }
  void close() {
    timer_.cancel();
    asio::error_code ignored;
    socket_.close(ignored);
  }

  local::socket socket_;
  asio::steady_timer timer_;
  std::shared_ptr<int> count_;
  std::string text_;
};

questions::questions(asio::io_context& io, const detail::domain_file& file, answer by)
    : io_(io), file_(file), acceptor_(listen_at(io, file)), by_(std::move(by)) {
  accept();
}

void questions::listen_again() {
  acceptor_ = listen_at(io_, file_);
  accept();
}

void questions::accept() {
  acceptor_.async_accept([this](const asio::error_code& error, local::socket socket) {
    if (error == asio::error::operation_aborted) return;
    // More than these are not people. They find the connection closed.
    if (!error && *visits_ < visits_most)
      std::make_shared<visit>(std::move(socket), visits_)->start(by_);
    accept();
  });
}

}  // namespace lockflight::cluster
