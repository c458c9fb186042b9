// The parameters of flight-rw.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "lockflight/lock/about.hpp"
#include "lockflight/lock/flight/parameters.hpp"

namespace lockflight::lock {

struct flight_rw_parameters {
  // What `preference` may be.
  static constexpr std::int64_t fair = 0;
  static constexpr std::int64_t readers = 1;
  static constexpr std::int64_t writers_first = 2;

  static constexpr std::int64_t no_turn = 1;           // `readers_turn`
  static constexpr std::int64_t as_cores_allow = -1;   // `overtaking`
  static constexpr std::int64_t as_nodes_allow = -1;   // `pointers`, `broadcast`
  static constexpr std::int64_t unless_in_table = -1;  // `starts_open`

  // `ranks_per_cell`
  static constexpr std::int64_t where_some_read = 4;
  static constexpr std::int64_t where_few_read = 16;

  std::int64_t ranks_per_cell = 0;
  std::int64_t t_w = 256;
  std::int64_t preference = 0;
  std::int64_t adaptive = 0;
  std::int64_t readers_turn = 0;
  std::int64_t overtaking = as_cores_allow;
  std::int64_t bias = 20'000;
  std::int64_t branch = 0;
  std::int64_t pointers = as_nodes_allow;
  std::int64_t broadcast = as_nodes_allow;
  std::int64_t starts_open = unless_in_table;
  flight_parameters writers{};
  // Not for users: what `ranks_per_cell` 0 means where nodes are several.
  std::int64_t few_ranks = 2;
  // Of flight_rw/turn_policy.hpp, not for users; the checker wants less evidence.
  std::int64_t worth = 8;
  std::int64_t reads = 0;  // 0: as seems good
  std::int64_t against = 3;
  std::int64_t patience = 1;  // looks for a deputy, of flight_rw/deputies.hpp

  [[nodiscard]] std::int64_t overtaking_on(const auto& port) const {
    constexpr std::int64_t while_others_run = 16;
    if (overtaking != as_cores_allow) return overtaking;
    return rma::shares_cores(port) ? while_others_run : 0;
  }

  /// 0 where the directory is no use, or where gates say what only all of them may: the directory's
  /// do not go through every epoch.
  [[nodiscard]] int pointers_on(const rma::topology& machine, bool has_tree) const {
    constexpr int most_nodes = 64;
    // Beyond so many it is dearer to add them one by one than to open and close all.
    constexpr int nodes_a_pointer = 24;
    const int nodes = machine.nodes();
    if (nodes < 2 || nodes > most_nodes || has_tree || adaptive != 0 || preference != fair)
      return 0;
    if (pointers != as_nodes_allow) return static_cast<int>(pointers);
    return std::max(1, nodes / nodes_a_pointer);
  }

  [[nodiscard]] int broadcast_on(const rma::topology& machine) const {
    // Nodes that are taken off the list are listed anew, each by a round trip to the home; if there
    // are few of them to open all gates costs less.
    constexpr int parts = 3;
    return broadcast != as_nodes_allow ? static_cast<int>(broadcast) : machine.nodes() / parts;
  }

  /// Where there is no directory one node can do without as well: there `idle` costs no network.
  [[nodiscard]] bool starts_open_on(const rma::topology& machine, int with_pointers) const {
    return starts_open != 0 || (with_pointers == 0 && machine.nodes() > 1);
  }

  /// For a lock that is one of many: fewer read each of them, and a cell more is a line that a
  /// writer may have to fetch, and memory for each lock.
  [[nodiscard]] flight_rw_parameters one_of(table_size of) const {
    flight_rw_parameters made = *this;
    made.few_ranks = of.locks * 2 <= of.ranks ? where_some_read : where_few_read;
    return made;
  }
  /// For one of which few nodes use it besides.
  [[nodiscard]] flight_rw_parameters in_table(table_size of) const {
    flight_rw_parameters made = one_of(of);
    if (starts_open == unless_in_table) made.starts_open = 0;
    made.writers = writers.in_table(of);
    return made;
  }

  [[nodiscard]] static constexpr auto all() {
    using p = flight_rw_parameters;
    return std::array{
        parameter<p>{
            "ranks_per_cell", [](auto& s) -> std::int64_t& { return s.ranks_per_cell; }, 0, 4'095,
            "readers of a node that count themselves in one cell; 0: each has its own on one "
            "node, else 2 share one, or so many that a node has 32; in tables of locks 4, or 16 "
            "if there are not two ranks for each lock"},
        parameter<p>{"T_W", [](auto& s) -> std::int64_t& { return s.t_w; }, 1, 4'000,
                     "writers in a row while readers wait"},
        parameter<p>{"preference", [](auto& s) -> std::int64_t& { return s.preference; }, 0, 2,
                     "0 fair, 1 readers: writers may starve, 2 writers: readers may"},
        parameter<p>{
            "adaptive", [](auto& s) -> std::int64_t& { return s.adaptive; }, 0, 1,
            "1: turns of less than T_W writers, and more or fewer that share a cell, as seems "
            "better while it runs"},
        parameter<p>{
            "readers_turn", [](auto& s) -> std::int64_t& { return s.readers_turn; }, 0,
            1'000'000'000,
            "nanoseconds that gates stay open at least, while readers come and writers "
            "queue; 0: about what it takes to close and to open them, none where ranks share "
            "cores; 1: none"},
        parameter<p>{
            "overtaking", [](auto& s) -> std::int64_t& { return s.overtaking; }, as_cores_allow,
            1'000,
            "times that a waiting reader finds the gates closed again before it is waited for; "
            "-1: 16 where ranks share cores, else none"},
        parameter<p>{"bias", [](auto& s) -> std::int64_t& { return s.bias; }, 0, 1'000'000,
                     "reads of a rank, with no writer between, after which readers of one node do "
                     "without a fence; 0: never"},
        parameter<p>{"branch", [](auto& s) -> std::int64_t& { return s.branch; }, 0, 100'000,
                     "nodes whose gates a reader that waits on the first of them closes and opens "
                     "for the writer; 0: the square root of all from 128 nodes on; 1: none"},
        parameter<p>{
            "pointers", [](auto& s) -> std::int64_t& { return s.pointers; }, as_nodes_allow, 64,
            "nodes whose gates are opened and closed by themselves as long as readers come, if "
            "they come on no more; 0: all nodes' gates always are together; -1: one in 24, on up "
            "to 64 nodes"},
        parameter<p>{
            "broadcast", [](auto& s) -> std::int64_t& { return s.broadcast; }, as_nodes_allow, 64,
            "nodes in use by themselves beyond which all gates are opened; of fewer, but more than "
            "`pointers`, those alone where readers are; -1: a third of all nodes"},
        parameter<p>{
            "starts_open", [](auto& s) -> std::int64_t& { return s.starts_open; }, unless_in_table,
            1,
            "1: readers of all nodes come in at first; 0: who reads first on a node lists it, and "
            "the first writer has nobody to wait for, on up to 64 nodes; -1: 0 in tables of locks"},
        parameter<p>{"barge", [](auto& s) -> std::int64_t& { return s.writers.barge; }, 0,
                     flight_parameters::most_counted,
                     "writers that come past the head of a node's queue"},
        parameter<p>{
            "handovers", [](auto& s) -> std::int64_t& { return s.writers.handovers; },
            flight_parameters::as_cores_allow, flight_parameters::most_counted,
            "times in a row that who waits in a node's queue is told that it may write, until "
            "others may come past; 0: they always may; -1: 16, in tables of locks 64, and 0 where "
            "ranks share cores"},
        parameter<p>{
            "local_budget", [](auto& s) -> std::int64_t& { return s.writers.local_budget; }, 1,
            60'000,
            "writers in a row on a node while another one waits; inside it turns in a row of an "
            "element's queue"},
        parameter<p>{"remote_budget",
                     [](auto& s) -> std::int64_t& { return s.writers.remote_budget; }, 1, 60'000,
                     "nodes in a row before the home's node is let in"},
        parameter<p>{
            "one_line", [](auto& s) -> std::int64_t& { return s.writers.one_line; },
            unless_in_table, 1,
            "1: all words that a node has lie on one cache line; 0: on one each what "
            "writers of the node write, those of other nodes, and readers; -1: 1 in tables "
            "of locks"},
    };
  }
};

}  // namespace lockflight::lock
