// The participants that use a robust lock, as their records say.
#pragma once

#include <cstdint>

#include "lockflight/lock/robust/generation.hpp"
#include "lockflight/lock/robust/participant.hpp"
#include "lockflight/lock/robust/record.hpp"

namespace lockflight::lock {

/// The view that a handle of a robust lock has of the lock's users.
template <rma::mortal_port Port>
class lock_users {
 protected:
  static constexpr rma::word never = ~rma::word{0};  // no generation

  lock_users(robust_participant<Port>& me, const generation_cells& where)
      : me_(me), port_(me.port()), where_{where, me.port()} {}
  ~lock_users() = default;

  /// The present generation.
  [[nodiscard]] rma::word present() { return port_.load(where_.generation); }
  [[nodiscard]] rma::word id() const { return where_.line.index / rma::line_words; }
  [[nodiscard]] bool is_ours(record of) const {
    return of.get(record::phase) != record::idle && of.get(record::lock) == id();
  }
  [[nodiscard]] rma::word record_with(rma::word phase, rma::word generation) const {
    return record{}
        .with(record::phase, phase)
        .with(record::generation, generation)
        .with(record::lock, id())
        .bits();
  }

  // This is always inlined, as all steps of an uncontended acquire: compilers stop inlining where a
  // lock is large. A store suffices, though others compare-swap the word: they do so only from the
  // value that we announced before, and their value then adds nothing to this store's.
  [[gnu::always_inline]] void announce(rma::word phase, rma::word generation) {
    port_.store(me_.own_record(place_), record_with(phase, generation));
    // Before we read the generation. Where a repairer can make all pass a fence it does (C40).
    if constexpr (!Port::capabilities.node_fence) port_.fence();
  }

  // True if a participant has died in the present generation, or while it held, and no repair has
  // dealt with it. `known_deaths` is how many deaths there are of which none concerns this lock.
  // A participant that had left an earlier generation, or was evicted from it, concerns no other:
  // its record only keeps its place (free_acknowledged).
  [[nodiscard]] bool has_unhandled_death(rma::word& known_deaths) {
    const rma::word deaths = port_.deaths();
    if (deaths == known_deaths) return false;
    const int participants = port_.participants();
    for (int p = 0; p < participants; ++p) {
      const rma::rank_t r = port_.participant(p);
      if (!port_.is_dead(r)) continue;
      for (int i = 0; i < me_.records(); ++i) {
        const auto of = record::from(port_.load(me_.record_of(r, i)));
        if (!is_ours(of) || of.get(record::phase) == record::acknowledged) continue;
        // A participant that has left may have left the present generation in disorder.
        if (!is_gone(r, of)) return true;
      }
    }
    known_deaths = deaths;
    return false;
  }

  // True if a participant holds; if `from` is a generation, whether one from another generation
  // does. A holder that has died counts until its death is acknowledged: its successor must learn
  // of the death.
  [[nodiscard]] bool is_anyone_holding(bool exclusively, rma::word from = never) {
    return me_.any_record([&](rma::rank_t, rma::cpu_cell at) {
      const auto of = record::from(port_.load(at));
      return is_ours(of) && of.holds() && of.get(record::generation) != from &&
             (!exclusively || of.get(record::phase) == record::holding);
    });
  }

  // Examines the participants that have a record of this lock, to find deaths that no participant
  // has noticed.
  void examine_users() {
    if constexpr (!rma::examines_nothing<Port>)
      static_cast<void>(me_.any_record([&](rma::rank_t r, rma::cpu_cell at) {
        const auto of = record::from(port_.load(at));
        if (r != me_.rank() && is_ours(of) && of.get(record::phase) != record::acknowledged)
          port_.examine(r);
        return false;
      }));
  }
  void wake_users() {
    if constexpr (!rma::examines_nothing<Port>)
      static_cast<void>(me_.any_record([&](rma::rank_t r, rma::cpu_cell at) {
        if (r != me_.rank() && is_ours(record::from(port_.load(at)))) port_.wake(r);
        return false;
      }));
  }

  // Makes records of dead participants idle once no participant can write to their queue nodes any
  // more.
  // First the record and then the generation: if that is open, the repair that acknowledged the
  // record is done. So the right to repair that the dead one may have had was taken over in an
  // earlier generation, and the next owner of its place never writes the same right again.
  void free_acknowledged() {
    acknowledge_evicted();
    static_cast<void>(me_.any_record([&](rma::rank_t r, rma::cpu_cell at) {
      const auto of = record::from(port_.load(at));
      const bool has_left = is_ours(of) && of.get(record::phase) == record::left && is_gone(r, of);
      if (!has_left && !(is_ours(of) && of.get(record::phase) == record::acknowledged))
        return false;
      if (is_closed(port_.load(where_.generation))) return true;
      if (me_.is_anyone_in(id(), of.get(record::generation))) return false;
      if (has_left) port_.acknowledge_death(r);
      static_cast<void>(port_.cpu_compare_swap(at, of.bits(), 0));
      return false;
    }));
  }

  // True if rank r has died out of an earlier generation, and so concerns no other participant. A
  // rank that had the right to repair is not gone: the next owner of its place would seem to have
  // that right.
  [[nodiscard]] bool is_gone(rma::rank_t r, record of) {
    if (!port_.is_dead(r)) return false;
    const rma::word phase = of.get(record::phase);
    const bool is_out = phase == record::left || phase == record::evicted;
    return is_out && of.get(record::generation) != present() &&
           static_cast<std::uint32_t>(port_.load(where_.repairer)) !=
               static_cast<std::uint32_t>(r) + 1;
  }

  robust_participant<Port>& me_;
  Port& port_;
  resolved_generation_cells<Port> where_;
  int place_ = -1;  // of our record, while we acquire, hold or release

 private:
  // Acknowledges the deaths of evicted participants, which died in a generation that was over. They
  // count as being in it until then.
  void acknowledge_evicted() {
    static_cast<void>(me_.any_record([&](rma::rank_t r, rma::cpu_cell at) {
      const auto of = record::from(port_.load(at));
      if (!is_ours(of) || of.get(record::phase) != record::evicted || !is_gone(r, of)) return false;
      port_.acknowledge_death(r);
      static_cast<void>(port_.cpu_compare_swap(
          at, of.bits(), of.with(record::phase, record::acknowledged).bits()));
      return false;
    }));
  }
};

}  // namespace lockflight::lock
