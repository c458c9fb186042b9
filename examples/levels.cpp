// A machine with levels, and a lock of one's own choice with parameters of one's own.
//
//   example_levels [LEVELS [T_L2]]     such as: example_levels 2x4 8
//
// Counts how often the lock went from one element of level 2 to another. With a larger T_L2 it
// stays longer inside one, which is what makes handoffs cheap where elements are far apart.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <lockflight/lock/create.hpp>
#include <lockflight/lock/rma_mcs.hpp>
#include <lockflight/lockflight.hpp>
#include <lockflight/rma/barrier.hpp>
#include <mutex>
#include <stdexcept>

namespace lock = lockflight::lock;
namespace rma = lockflight::rma;
namespace shm = lockflight::shm;

namespace {

constexpr int rounds = 2'000;

/// What the lock protects, in two words at rank 0: its last holder, and how often it moved.
struct journey {
  rma::plain_cell last;
  rma::plain_cell moves;

  explicit journey(rma::layout& in) : last(in.take<rma::plain_cell>(2)), moves(last + 1) {}

  void visit(shm::port& port) const {
    const auto before = static_cast<rma::rank_t>(get_now(port, last));
    if (port.machine().common_level(before, port.rank()) < 2)
      put_now(port, moves, get_now(port, moves) + 1);
    put_now(port, last, static_cast<rma::word>(port.rank()));
  }
};

void work(rma::participant<shm::port>& me, std::int64_t t_l2) {
  auto mutex = lock::create<lock::rma_mcs>(me, {.t_l = {0, t_l2, 32, 32}});
  const journey journey(me.cells());
  rma::barrier all(me);
  all.arrive_and_wait();
  for (int i = 0; i < rounds; ++i) {
    const std::lock_guard hold(mutex);
    journey.visit(me.port());
  }
  all.arrive_and_wait();
  if (me.rank() != 0) return;
  const auto moves = me.port().load(journey.moves);
  std::printf("T_L2 %lld: %d acquisitions, %llu moves between elements of level 2\n",
              static_cast<long long>(t_l2), rounds * me.machine().ranks(),
              static_cast<unsigned long long>(moves));
}

std::int64_t number(const char* text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  if (error != std::errc() || *end != '\0' || value < 0 || value > lock::tree_status::most_count)
    throw std::invalid_argument("T_L2 is a number from 0 to 32767");
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto machine = rma::topology::balanced(rma::parse_levels(argc > 1 ? argv[1] : "2x2"));
    const std::int64_t t_l2 = argc > 2 ? number(argv[2]) : 8;
    shm::run({.machine = machine}, [=](auto& me) { work(me, t_l2); });
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "example_levels: %s\n", e.what());
    return 1;
  }
}
