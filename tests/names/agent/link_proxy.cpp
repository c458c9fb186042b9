#include "link_proxy.hpp"

#include <array>
#include <asio/buffer.hpp>
#include <asio/write.hpp>
#include <utility>

namespace lockflight::cluster::testing_links {

struct proxy::pair {
  explicit pair(asio::io_context& io) : dialer(io), acceptor(io) {}
  void close() {
    asio::error_code ignored;
    dialer.close(ignored);
    acceptor.close(ignored);
  }

  tcp::socket dialer;
  tcp::socket acceptor;
  std::size_t life = 0;
  std::array<std::array<char, 4096>, 2> buffers{};
};

proxy::proxy(asio::io_context& io, std::uint16_t target)
    : io_(io), acceptor_(io, tcp::endpoint(tcp::v4(), 0)), target_(target) {}

std::shared_ptr<proxy> proxy::before(asio::io_context& io, std::uint16_t target) {
  std::shared_ptr<proxy> made(new proxy(io, target));
  made->accept();
  return made;
}

void proxy::close() {
  asio::error_code ignored;
  acceptor_.close(ignored);
  cut();
  stopped_.clear();
}

void proxy::cut() {
  for (const auto& each : std::exchange(pairs_, {}))
    if (const auto there = each.lock()) there->close();
}

void proxy::go_on() {
  stops = false;
  for (const auto& each : std::exchange(stopped_, {})) each();
}

void proxy::accept() {
  auto made = std::make_shared<pair>(io_);
  acceptor_.async_accept(
      made->dialer, [self = shared_from_this(), made](const asio::error_code& error) {
        if (error) return;
        ++self->connections_;
        made->life = self->life();
        self->pairs_.push_back(made);
        made->acceptor.async_connect(tcp::endpoint(asio::ip::address_v4::loopback(), self->target_),
                                     [self, made](const asio::error_code& refused) {
                                       if (refused) return made->close();
                                       asio::error_code ignored;
                                       made->dialer.set_option(tcp::no_delay(true), ignored);
                                       made->acceptor.set_option(tcp::no_delay(true), ignored);
                                       self->forward(made, true);
                                       self->forward(made, false);
                                     });
        self->accept();
      });
}

void proxy::forward(const std::shared_ptr<pair>& of, bool is_request) {
  if (stops) {
    stopped_.emplace_back([weak = weak_from_this(), of, is_request] {
      if (const auto self = weak.lock()) self->forward(of, is_request);
    });
    return;
  }
  auto& buffer = of->buffers.at(is_request ? 0 : 1);
  tcp::socket& from = is_request ? of->dialer : of->acceptor;
  tcp::socket& to = is_request ? of->acceptor : of->dialer;
  from.async_read_some(
      asio::buffer(buffer), [self = shared_from_this(), of, is_request, &buffer, &to](
                                const asio::error_code& error, std::size_t count) {
        if (error) return of->close();
        if (is_request ? self->swallows_requests : self->swallows_answers)
          return self->forward(of, is_request);
        // The last bytes of a life still arrive, so that the cut may be within a frame.
        const std::size_t passed = std::min(count, of->life);
        of->life -= passed;
        asio::async_write(to, asio::buffer(buffer, passed),
                          [self, of, is_request](const asio::error_code& failed, std::size_t) {
                            if (failed || of->life == 0) return of->close();
                            self->forward(of, is_request);
                          });
      });
}

}  // namespace lockflight::cluster::testing_links
