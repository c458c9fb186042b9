// The units of a semaphore can be changed while it is used (domain::set_units). On one machine
// the words of the queue say it, and in a cluster a note in etcd, of which each host's agent keeps
// a copy in those words.
#include "names/locks/set_units.hpp"

#include "fabric/shm/pause.hpp"
#include "names/cluster/client/name_notes.hpp"
#include "names/locks/block.hpp"
#include "names/locks/directory_lock.hpp"

namespace lockflight {
namespace {

using detail::set_by_operator;

constexpr std::uint64_t at_most_ns = 10'000'000'000;

/// Sets the units, and wakes the head of the queue, which reads them again. `bits` are those of
/// set_by_operator, or 0 for those with which the semaphore was made.
void store_set_units(const detail::domain_file& file, const detail::semaphore_words& words,
                     rma::word bits) {
  struct {
    const detail::domain_file& file;
    const detail::semaphore_words& words;
    rma::word bits;
    void store_units() const { file.word(words.present).store(bits, std::memory_order_release); }
    void note_release() const { detail::note_release(file, words); }
  } by{file, words, bits};
  lock::set_units(by);
}

detail::time_limit how_long() { return {shm::detail::ns_from_now(at_most_ns)}; }

/// Throws domain_error (disagrees) unless the lock is a semaphore.
void check_semaphore(std::string_view name, const detail::found_lock& found) {
  if (detail::is_semaphore(*found.kind)) return;
  throw domain_error(domain_error::reason::disagrees,
                     "lock " + detail::shown(name) + " is " +
                         detail::described(*found.kind, found.parameters) +
                         " (accepted: a semaphore, or a name that is not in use)");
}

/// Stores the units. The name cannot be forgotten meanwhile, nor its words be another semaphore's.
void store(const std::shared_ptr<detail::domain_file>& file, std::string_view name,
           const detail::unit_set& units) {
  const auto by = detail::any_attachment(file);
  while (true) {
    if (!detail::find_lock(*file, name))
      static_cast<void>(detail::look_up(*by, name, detail::semaphore_kind(),
                                        detail::parameters_of_semaphore(units), how_long()));
    const detail::directory_lock hold(*by, how_long());
    const auto found = detail::find_lock(*file, name);
    if (!found) continue;
    check_semaphore(name, *found);
    return store_set_units(*file,
                           detail::words_of_semaphore(found->line * rma::line_words, found->words),
                           set_by_operator::bits_of(units));
  }
}

[[noreturn]] void no_answer(std::string_view name, const detail::name_notes& note) {
  throw domain_error(domain_error::reason::system,
                     "semaphore " + detail::shown(name) + ": its note in etcd: " + note.obstacle());
}

/// The units of a cluster's note, of which 0 is none.
semaphore_units units_of_note(std::string_view name, std::uint64_t noted) {
  if (noted == 0) return {};
  if (const auto set = set_by_operator::from(noted)) return {set->numbers(), true};
  if (const auto made = detail::unit_set::from(noted)) return {made->numbers(), false};
  throw domain_error(domain_error::reason::disagrees,
                     "lock " + detail::shown(name) +
                         " is a lock with a note of its work in the cluster (accepted: a "
                         "semaphore, or a name that is not in use)");
}

semaphore_units units_in_cluster(detail::name_notes& note, std::string_view name) {
  const auto noted = note.done_until(how_long());
  if (!noted) no_answer(name, note);
  return units_of_note(name, *noted);
}

}  // namespace

bool detail::is_semaphore_of(const domain_file& file, const std::string& name) {
  const auto found = find_lock(file, name);
  return found && is_semaphore(*found->kind);
}

std::vector<std::string> detail::semaphores_in(const domain_file& file) {
  std::vector<std::string> names;
  for (auto& [name, found] : all_locks(file))
    if (is_semaphore(*found.kind)) names.push_back(std::move(name));
  return names;
}

void detail::learn_units(const domain_file& file, const std::string& name, std::uint64_t note) {
  const auto found = find_lock(file, name);
  if (!found || !is_semaphore(*found->kind)) return;
  const semaphore_words words = words_of_semaphore(found->line * rma::line_words, found->words);
  // Relaxed: the agent's own thread has written it, or a client that has read the same note.
  const std::uint64_t now = file.word(words.present).load(std::memory_order_relaxed);
  if (set_by_operator::from(note)) {
    if (now != note) store_set_units(file, words, note);
  } else if ((now & set_by_operator::mark) != 0) {
    store_set_units(file, words, 0);
  }
}

void domain::set_units(std::string_view name, const units& what) {
  detail::check_lock_name(name);
  file_->check();
  const detail::unit_set wanted = detail::unit_set::of(name, what);
  if (const auto found = detail::find_lock(*file_, name)) check_semaphore(name, *found);
  if (file_->is_of_cluster()) {
    const std::string own_name(name);
    detail::name_notes note(*file_, own_name);
    static_cast<void>(units_in_cluster(note, name));
    if (!note.set_units(set_by_operator::bits_of(wanted), how_long())) no_answer(name, note);
    return;
  }
  try {
    store(file_, name, wanted);
  } catch (const detail::directory_is_busy&) {
    throw domain_error(domain_error::reason::system,
                       "semaphore " + detail::shown(name) +
                           ": another process changes the directory and does not go on");
  }
}

semaphore_units domain::units_of(std::string_view name) const {
  detail::check_lock_name(name);
  file_->check();
  const auto found = detail::find_lock(*file_, name);
  if (found) check_semaphore(name, *found);
  if (file_->is_of_cluster()) {
    const std::string own_name(name);
    detail::name_notes note(*file_, own_name);
    return units_in_cluster(note, name);
  }
  if (!found) return {};
  return {detail::units_of_semaphore(found->parameters).numbers(), found->has_set_units};
}

}  // namespace lockflight
