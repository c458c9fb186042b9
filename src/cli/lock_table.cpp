#include "cli/lock_table.hpp"

#include <utility>

#include "catalogue/table.hpp"
#include "lockflight/fabric/shm.hpp"

namespace lockflight::cli {
namespace {

std::string& built_in_fabric() {
  static std::string fabric;
  return fabric;
}

std::vector<std::string> fabrics_of(const lock::facts& about) {
  std::vector<std::string> fabrics{"shm"};
  if (about.needs_native_memory) return fabrics;
  if (!built_in_fabric().empty()) fabrics.push_back(built_in_fabric());
  fabrics.emplace_back("sim");
  return fabrics;
}

}  // namespace

void build_in(std::string fabric) { built_in_fabric() = std::move(fabric); }

std::vector<lock_row> lock_table() {
  std::vector<lock_row> rows;
  catalogue::lock_table::for_each([&]<template <class> class Lock>(lock::family<Lock>) {
    using on_shm = Lock<shm::port>;
    rows.push_back({on_shm::about, fabrics_of(on_shm::about),
                    catalogue::rows_of<typename on_shm::parameters>});
  });
  return rows;
}

}  // namespace lockflight::cli
