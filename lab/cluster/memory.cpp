#include "lab/cluster/memory.hpp"

namespace lockflight::cluster::sim {

void memory::copy(const memory& of) {
  header_ = of.header_;
  words_ = of.words_;
  records_ = of.records_;
  witness_notes_ = of.witness_notes_;
}

void memory::count_write() {
  if (is_agent_running && crash_in > 0 && --crash_in == 0) throw agent_crash{};
}

void memory::set_incarnation(incarnation_number now) {
  count_write();
  header_.incarnation = now;
  on_header();
}

void memory::set_deadline(instant at) {
  count_write();
  header_.deadline = at;
  on_header();
}

void memory::set_registered(revision at) {
  count_write();
  header_.registered = at;
}

void memory::set_cluster(const cluster_value& what) {
  count_write();
  header_.cluster = what;
}

beat_number memory::next_beat(beat_number confirmed) {
  count_write();
  header_.confirmed_beat = confirmed;
  return header_.last_beat = draw_number();
}

ownership memory::ownership_of(const std::string& name) const {
  const auto found = words_.find(name);
  return found == words_.end() ? ownership{} : found->second.owned;
}

bool memory::swap_ownership(const std::string& name, ownership before, ownership after) {
  count_write();
  words& here = words_[name];
  if (here.owned != before) return false;
  here.owned = after;
  if (before != after) on_change(name);
  return true;
}

state memory::state_of(const std::string& name) const {
  const auto found = words_.find(name);
  return found == words_.end() ? state{} : found->second.is;
}

bool memory::swap_state(const std::string& name, state before, state after) {
  count_write();
  words& here = words_[name];
  if (here.is != before) return false;
  here.is = after;
  return true;
}

std::vector<std::string> memory::names() const {
  std::vector<std::string> all;
  for (const auto& [name, each] : words_) all.push_back(name);
  return all;
}

/// The lock need not be taken, since nobody else runs meanwhile.
void memory::if_unused(const std::string& name, const std::function<void()>& what) {
  if (is_lock_free(name)) what();
}

bool memory::forget_unused() {
  count_write();
  std::erase_if(words_, [&](const auto& each) {
    const auto& [name, left] = each;
    return left.owned.owned == mode::none && left.owned.wanted == mode::none &&
           left.is == state{} && is_lock_free(name);
  });
  return true;
}

std::optional<record> memory::record_of(const std::string& name) const {
  const auto found = records_.find(name);
  return found == records_.end() ? std::nullopt : std::optional(found->second);
}

void memory::store_record(const std::string& name, const record& what) {
  count_write();
  records_[name] = what;
  on_record(name, what);
}

void memory::erase_record(const std::string& name) {
  count_write();
  records_.erase(name);
}

std::vector<std::string> memory::recorded_names() const {
  std::vector<std::string> all;
  for (const auto& [name, each] : records_) all.push_back(name);
  return all;
}

std::optional<witness_note> memory::witness_note_of(const std::string& name) const {
  const auto found = witness_notes_.find(name);
  return found == witness_notes_.end() ? std::nullopt : std::optional(found->second);
}

void memory::store_witness_note(const std::string& name, const witness_note& what) {
  count_write();
  witness_notes_[name] = what;
}

void memory::erase_witness_note(const std::string& name) {
  count_write();
  witness_notes_.erase(name);
}

std::vector<std::string> memory::witnessed_names() const {
  std::vector<std::string> all;
  for (const auto& [name, each] : witness_notes_) all.push_back(name);
  return all;
}

}  // namespace lockflight::cluster::sim
