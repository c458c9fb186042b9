#include "lab/bench/fit/costs.hpp"

#include <algorithm>
#include <vector>

#include "lab/bench/port/any_clock.hpp"
#include "lab/bench/port/any_port.hpp"
#include "lab/bench/port/clock.hpp"
#include "lab/bench/shm/stage.hpp"
#include "lockflight/fabric/counting.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/rma/barrier.hpp"
#include "lockflight/rma/participant.hpp"

namespace lockflight::bench {
namespace {

using rma::word;

costs found_by_process;  // of its rank

constexpr std::uint32_t line = rma::line_words;
constexpr double ns_in_s = 1e9;
/// The limits of the measurement of each cost.
constexpr std::size_t most_samples = 2'000;
constexpr double most_seconds = 0.1;
constexpr double contended_seconds = 0.2;

[[nodiscard]] double quantile(std::vector<double>& of, double which) {
  const auto at = of.begin() + static_cast<std::ptrdiff_t>(which * static_cast<double>(of.size()));
  std::nth_element(of.begin(), at, of.end());
  return *at;
}

/// The cells and the steps of a fit on one rank. All ranks take the same steps.
class fit {
 public:
  fit(rma::participant<any_port>& me, const any_clock& clock, costs& found)
      : port_(me.port()),
        found_(found),
        machine_(me.machine()),
        clock_(clock),
        ticks_in_ns_(static_cast<double>(clock.ticks(1)) / ns_in_s),
        origin_(measuring_rank(machine_)),
        shared_(me.cells().take<rma::nic_cell>(line)),
        private_(
            me.cells().take<rma::nic_cell>(line * static_cast<std::uint32_t>(machine_.ranks()))),
        plain_(me.cells().take<rma::plain_cell>(line)),
        ball_(me.cells().take<rma::plain_cell>(line)),
        cpu_(me.cells().take<rma::cpu_cell>(line)),
        barrier_(me) {}

  void run() {
    const bool origin = port_.rank() == origin_;
    const rma::rank_t mate = mate_of(origin_);
    step([&] {
      if (origin) {
        of_processor();
        of_own_rank();
      }
    });
    const bool plays_near = mate >= 0 && (origin || port_.rank() == mate);
    step([&] {
      if (plays_near) found_.shared_rmw = mean_of_shared_rmws();
    });
    step([&] {
      if (plays_near) found_.near_handoff = half_round(0, origin ? mate : origin_, origin);
    });
    if (machine_.nodes() == 1) return;
    step([&] {
      if (origin) of_network();
    });
    step([&] {
      if (origin || port_.rank() == home)
        found_.far_handoff = half_round(1, origin ? home : origin_, origin);
    });
    step([&] {
      if (origin || port_.rank() == home) of_messages(origin);
    });
    const bool contends = !machine_.same_node(port_.rank(), home);
    step([&] {
      if (contends) found_.same_cell_rate = rate_on(shared_.at(home));
    });
    step([&] {
      const auto mine = static_cast<std::uint32_t>(port_.rank()) * line;
      if (contends) found_.own_cell_rate = rate_on(private_.at(home) + mine);
    });
  }

 private:
  static constexpr rma::rank_t home = 0;

  // Ranks that have no part in a step wait, and so serve those that have.
  template <class F>
  void step(F f) {
    barrier_.arrive_and_wait();
    f();
    barrier_.arrive_and_wait();
  }

  /// Another rank of the rank's node; -1 if there is none.
  [[nodiscard]] rma::rank_t mate_of(rma::rank_t of) const {
    for (rma::rank_t r = 0; r < machine_.ranks(); ++r)
      if (r != of && machine_.same_node(r, of)) return r;
    return -1;
  }

  [[nodiscard]] double since(std::uint64_t tick) const {
    return static_cast<double>(clock_.now_ordered() - tick) / ticks_in_ns_;
  }

  /// The times that `f` takes. Each is the mean of `at_once` calls in a row.
  template <class F>
  [[nodiscard]] std::vector<double> times(F f, int at_once = 1) const {
    std::vector<double> all;
    const std::uint64_t end = clock_.now() + clock_.ticks(most_seconds);
    while (all.size() < most_samples && (all.empty() || clock_.now() < end)) {
      const std::uint64_t begun = clock_.now_ordered();
      for (int i = 0; i < at_once; ++i) f();
      all.push_back(since(begun) / at_once);
    }
    return all;
  }
  template <class F>
  [[nodiscard]] double median(F f, int at_once = 1) const {
    std::vector<double> all = times(f, at_once);
    return quantile(all, 0.5);
  }

  void of_processor() {
    constexpr int many = 200;
    const rma::cpu_cell mine = cpu_.at(port_.rank());
    found_.hit = median([&] { static_cast<void>(port_.load(mine)); }, many);
    found_.rmw = median([&] { static_cast<void>(port_.cpu_fetch_add(mine, 1)); }, many);
  }

  [[nodiscard]] double mean_of_shared_rmws() const {
    constexpr int at_once = 100;
    const rma::cpu_cell both = cpu_.at(origin_);
    double done = 0;
    const std::uint64_t begun = clock_.now();
    for (const std::uint64_t end = begun + clock_.ticks(most_seconds); clock_.now() < end;) {
      for (int i = 0; i < at_once; ++i) static_cast<void>(port_.cpu_fetch_add(both, 1));
      done += at_once;
    }
    return since(begun) / done;
  }

  [[nodiscard]] double fetch_add(rma::nic_cell on) {
    word got = 0;
    return median([&] {
      port_.fetch_add(on, 1, got);
      port_.flush(on.home);
    });
  }
  [[nodiscard]] std::vector<double> gets(rma::plain_cell from) {
    word got = 0;
    return times([&] {
      port_.get(from, got);
      port_.flush(from.home);
    });
  }

  void of_own_rank() {
    found_.own_fetch_add = fetch_add(shared_.at(origin_));
    std::vector<double> own = gets(plain_.at(origin_));
    found_.own_get = quantile(own, 0.5);
  }

  void of_network() {
    found_.far_fetch_add = fetch_add(shared_.at(home));
    std::vector<double> far = gets(plain_.at(home));
    found_.far_get = quantile(far, 0.5);
    found_.far_spread = (quantile(far, 0.75) - quantile(far, 0.25)) / 2 / found_.far_get;

    word got = 0;
    std::vector<double> posts;
    found_.far_several = median([&] {
      const std::uint64_t begun = clock_.now_ordered();
      for (int i = 0; i < costs::several; ++i) port_.fetch_add(shared_.at(home), 1, got);
      posts.push_back(since(begun) / costs::several);
      port_.flush(home);
    });
    found_.post = quantile(posts, 0.5);
  }

  /// The time of one direction when a word goes to and fro between two ranks, by puts, as handoffs
  /// do. `game` distinguishes one such step from the next.
  [[nodiscard]] double half_round(word game, rma::rank_t other, bool first) {
    constexpr int rounds = 300;
    constexpr int warm_up = 20;
    const rma::plain_cell mine = ball_.at(port_.rank());
    std::vector<double> all;
    for (int i = 1; i <= rounds; ++i) {
      const word ball = game * rounds + static_cast<word>(i);
      const std::uint64_t begun = clock_.now_ordered();
      if (!first) port_.await(mine, [&](word now) { return now >= ball; });
      port_.put(ball_.at(other), ball);
      port_.flush(other);
      if (first) port_.await(mine, [&](word now) { return now >= ball; });
      if (i > warm_up) all.push_back(since(begun) / 2);
    }
    return quantile(all, 0.5);
  }

  void of_messages(bool first) {
    constexpr int rounds = 300;
    const rma::rank_t other = first ? home : origin_;
    std::vector<double> sends;
    std::vector<double> all;
    for (int i = 0; i < rounds; ++i) {
      if (!first) static_cast<void>(port_.receive());
      const std::uint64_t begun = clock_.now_ordered();
      port_.send(other, {});
      sends.push_back(since(begun));
      if (first) {
        static_cast<void>(port_.receive());
        all.push_back(since(begun) / 2);
      }
    }
    found_.send = quantile(sends, 0.5);
    if (first) found_.message = quantile(all, 0.5);
  }

  /// The rate of fetch-adds on the cell, in operations a second, several at a time.
  [[nodiscard]] double rate_on(rma::nic_cell cell) const {
    std::array<word, costs::several> got{};
    double done = 0;
    const std::uint64_t begun = clock_.now();
    for (const std::uint64_t end = begun + clock_.ticks(contended_seconds); clock_.now() < end;) {
      for (word& each : got) port_.fetch_add(cell, 1, each);
      port_.flush(cell.home);
      done += costs::several;
    }
    return done / since(begun) * ns_in_s;
  }

  any_port& port_;
  costs& found_;
  const rma::topology& machine_;
  any_clock clock_;
  double ticks_in_ns_;
  rma::rank_t origin_;
  rma::nic_cell shared_;
  rma::nic_cell private_;
  rma::plain_cell plain_;
  rma::plain_cell ball_;
  rma::cpu_cell cpu_;
  rma::barrier<any_port> barrier_;
};

}  // namespace

const costs& found_costs() { return found_by_process; }

rma::rank_t measuring_rank(const rma::topology& machine) {
  for (rma::rank_t r = 0; r < machine.ranks(); ++r)
    if (!machine.same_node(r, 0)) return r;
  return 0;
}

costs costs_on_shm(const run_plan& plan) {
  const shm::config what = config_of(plan, measurement.words(plan));
  const tick_clock clock = tick_clock::calibrated();
  std::vector<costs> found(static_cast<std::size_t>(plan.machine.ranks()));
  shm::run_ports(what, [&](shm::port& bare) {
    fabric::counting<shm::port> counted(bare);
    any_port_on on(counted);
    rma::participant<any_port> me(on, what.words_per_rank);
    fit(me, any_clock::on(clock), found[static_cast<std::size_t>(bare.rank())]).run();
  });
  return found.front();
}

const anywhere measurement{.words =
                               [](const run_plan& plan) {
                                 constexpr std::uint32_t for_all = 2'048;
                                 return for_all +
                                        static_cast<std::uint32_t>(plan.machine.ranks()) * line;
                               },
                           .run_rank =
                               [](any_port& on, std::uint32_t words, const run_plan&,
                                  const any_clock& clock, const run_results&) {
                                 rma::participant<any_port> me(on, words);
                                 fit(me, clock, found_by_process).run();
                               }};

}  // namespace lockflight::bench
