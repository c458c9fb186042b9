// The hash table, by one participant and by several at once, on quick fabrics and on fabrics that
// delay and reorder.
#include "lockflight/hash_table.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <stdexcept>
#include <string>

#include "lockflight/rma/barrier.hpp"
#include "tests/support/fabrics.hpp"

namespace lockflight::test {
namespace {

template <class Fabric>
class HashTable : public ::testing::Test {};

const bool modes = run_in(usual_modes);
using fabrics = ::testing::Types<shm_plain, shm_delayed>;
struct fabric_names {
  template <class Fabric>
  static std::string GetName(int) {
    return Fabric::name;
  }
};
TYPED_TEST_SUITE(HashTable, fabrics, fabric_names);

template <class Table>
void expect_exactly(Table& table, const std::set<std::uint64_t>& keys, std::uint64_t below) {
  for (std::uint64_t key = 0; key < below; ++key)
    require(table.contains(key) == keys.contains(key),
            "contains(" + std::to_string(key) + ") is wrong");
}

TYPED_TEST(HashTable, IsASet) {
  using port = typename TypeParam::port_type;
  TypeParam::run(rma::topology::flat(1), [](rma::participant<port>& me) {
    hash_table<port> table(me, {.table = 16, .heap = 200});
    std::mt19937_64 random(seed());
    std::set<std::uint64_t> model;
    for (int i = 0; i < 400; ++i) {
      const std::uint64_t key = random() % 150;
      require(table.insert(key) == model.insert(key).second, "insert returns whether it is new");
    }
    expect_exactly(table, model, 150);
  });
}

TYPED_TEST(HashTable, KeysMayBeAnyNumberButOne) {
  using port = typename TypeParam::port_type;
  TypeParam::run(rma::topology::flat(2), [](rma::participant<port>& me) {
    hash_table<port> table(me, {.table = 4, .heap = 8});
    if (me.rank() != 0) return;
    for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0} - 1}) {
      require(!table.contains(key), "a fresh table is empty");
      require(table.insert(key), "the key is new");
      require(table.contains(key), "the key is there");
    }
    for (const bool insert : {true, false}) {
      bool refused = false;
      try {
        insert ? table.insert(table.reserved_key) : table.contains(table.reserved_key);
      } catch (const std::invalid_argument&) {
        refused = true;
      }
      require(refused, "the reserved key is refused");
    }
  });
}

TYPED_TEST(HashTable, AFullHeapIsAnErrorAndLosesNothing) {
  using port = typename TypeParam::port_type;
  TypeParam::run(rma::topology::flat(1), [](rma::participant<port>& me) {
    hash_table<port> table(me, {.table = 1, .heap = 3});
    for (std::uint64_t key = 0; key < 4; ++key) require(table.insert(key), "there is room");
    for (int again = 0; again < 2; ++again) {
      std::string message;
      try {
        table.insert(99);
      } catch (const std::length_error& e) {
        message = e.what();
      }
      require(message.find("3 elements") != std::string::npos, "a full heap throws: " + message);
    }
    for (std::uint64_t key = 0; key < 4; ++key) {
      require(table.contains(key), "what was inserted stays");
      require(!table.insert(key), "what is there needs no room");
    }
    require(!table.contains(99), "what did not fit is not there");
  });
}

TYPED_TEST(HashTable, CostsWhatItSays) {
  using port = typename TypeParam::port_type;
  TypeParam::run(rma::topology::flat(1), [](rma::participant<port>& me) {
    hash_table<port> table(me, {.table = 1, .heap = 8});
    const auto cost = [&](auto operation) {
      me.port().reset_counts();
      operation();
      return me.port().counts();
    };
    auto c = cost([&] { table.insert(10); });
    require(c.cas == 1 && c.network() == 1 && c.flush == 1, "a free place: 1 compare-swap");
    c = cost([&] { table.insert(11); });
    require(c.cas == 2 && c.get == 1 && c.fetch_add == 1 && c.put == 1 && c.network() == 5,
            "a collision with one element");
    c = cost([&] { table.insert(12); });
    require(c.cas == 2 && c.get == 3 && c.fetch_add == 1 && c.put == 1 && c.network() == 7,
            "a collision with two elements");
    c = cost([&] { static_cast<void>(table.contains(12)); });
    require(c.get == 6 && c.flush == 3 && c.network() == 6, "a search through three elements");
    require(table.heap_used(0) == 2, "two elements of the heap are in use");
  });
}

/// Every rank inserts all keys, each in its own order, so that all collide all the time.
template <class Fabric>
void insert_at_once(int ranks, std::uint64_t keys, bool one_volume) {
  using port = typename Fabric::port_type;
  Fabric::run(rma::topology::flat(ranks), [=](rma::participant<port>& me) {
    rma::barrier<port> together(me);
    // Each race for the same key may waste an element.
    const auto heap = static_cast<std::uint32_t>(keys) * static_cast<std::uint32_t>(ranks);
    hash_table<port> table(me, {.table = 8, .heap = heap});
    const auto new_ones = me.cells().template take<rma::nic_cell>(1);
    const auto put_in = [&](std::uint64_t key) {
      return one_volume ? table.insert_at(0, key) : table.insert(key);
    };
    const auto is_in = [&](std::uint64_t key) {
      return one_volume ? table.contains_at(0, key) : table.contains(key);
    };

    together.arrive_and_wait();
    std::mt19937_64 random(seed() + static_cast<std::uint64_t>(me.rank()));
    std::vector<std::uint64_t> order(keys);
    for (std::uint64_t i = 0; i < keys; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    rma::word mine = 0;
    for (const std::uint64_t key : order) {
      mine += put_in(key) ? 1 : 0;
      require(is_in(key), "what was inserted is found at once");
    }
    static_cast<void>(rma::fetch_add_now(me.port(), new_ones, mine));
    together.arrive_and_wait();

    require(rma::get_now(me.port(), new_ones) == keys, "each key was new to exactly one");
    for (std::uint64_t key = 0; key < keys; ++key) require(is_in(key), "every key is found");
    require(!is_in(keys), "and no other");
  });
}

TYPED_TEST(HashTable, ManyInsertTheSameKeysIntoOneVolume) {
  insert_at_once<TypeParam>(4, 60, true);
}
TYPED_TEST(HashTable, ManyInsertTheSameKeysIntoAllVolumes) {
  insert_at_once<TypeParam>(3, 60, false);
}

TYPED_TEST(HashTable, SpreadsOverTheVolumes) {
  using port = typename TypeParam::port_type;
  TypeParam::run(rma::topology::flat(4), [](rma::participant<port>& me) {
    hash_table<port> table(me, {});
    std::vector<int> of_volume(4);
    for (std::uint64_t key = 0; key < 4'000; ++key)
      ++of_volume[static_cast<std::size_t>(table.volume_of(key))];
    for (const int n : of_volume) require(n > 800 && n < 1200, "volumes get alike");
  });
}

TEST(HashTableShape, IsChecked) {
  using port = shm_threads::port_type;
  const auto make = [](hash_table_shape shape) {
    shm_threads::run(rma::topology::flat(1),
                     [&](rma::participant<port>& me) { hash_table<port> table(me, shape); });
  };
  EXPECT_ANY_THROW(make({.table = 0, .heap = 1}));
  EXPECT_ANY_THROW(make({.table = UINT32_MAX, .heap = 1}));
  EXPECT_ANY_THROW(make({.table = 1u << 20, .heap = 1}));  // larger than the segment
  EXPECT_NO_THROW(make({.table = 1, .heap = 0}));
}

}  // namespace
}  // namespace lockflight::test
