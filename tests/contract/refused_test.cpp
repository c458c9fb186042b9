// What does not compile, on a port and through decorators: C2's read-modify-writes on cells of
// other classes, and the shared names of a mutex. (C4's store on a nic cell is refused inside a
// function, which no requirement sees: tests/compile_fail has it.)
#include <gtest/gtest.h>

#include "lockflight/fabric/counting.hpp"
#include "lockflight/fabric/delaying.hpp"
#include "lockflight/fabric/shm.hpp"
#include "lockflight/fabric/strict.hpp"
#include "lockflight/fabric/tracing.hpp"
#include "lockflight/lock/d_mcs.hpp"
#include "lockflight/lock/fompi_rw.hpp"

namespace lockflight::test {
namespace {

using rma::cpu_cell;
using rma::nic_cell;
using rma::plain_cell;
using rma::word;

template <class Port, class Cell>
concept rmw_by_fabric = requires(Port& p, Cell at, word value, word& before) {
  p.add(at, value);
  p.fetch_add(at, value, before);
  p.swap(at, value, before);
  p.compare_swap(at, value, value, before);
  rma::swap_now(p, at, value);
};
template <class Port, class Cell>
concept any_rmw_by_fabric =
    requires(Port& p, Cell at, word value) { p.add(at, value); } ||
    requires(Port& p, Cell at, word value, word& before) { p.fetch_add(at, value, before); } ||
    requires(Port& p, Cell at, word value, word& before) { p.swap(at, value, before); } ||
    requires(Port& p, Cell at, word value, word& before) {
      p.compare_swap(at, value, value, before);
    } || requires(Port& p, Cell at, word value) { rma::swap_now(p, at, value); };

template <class Port, class Cell>
concept rmw_by_cpu = requires(Port& p, Cell at, word value) {
  p.cpu_fetch_add(at, value);
  p.cpu_swap(at, value);
  p.cpu_compare_swap(at, value, value);
};
template <class Port, class Cell>
concept any_rmw_by_cpu =
    requires(Port& p, Cell at, word value) { p.cpu_fetch_add(at, value); } ||
    requires(Port& p, Cell at, word value) { p.cpu_swap(at, value); } ||
    requires(Port& p, Cell at, word value) { p.cpu_compare_swap(at, value, value); };

template <class Port>
class C02_classes : public testing::Test {};

using ports = testing::Types<shm::port, fabric::tracing<fabric::decorator<shm::port>>,
                             fabric::counting<fabric::strict<fabric::delaying<shm::port>>>>;
TYPED_TEST_SUITE(C02_classes, ports);

TYPED_TEST(C02_classes, the_fabric_changes_nic_cells_alone) {
  EXPECT_TRUE((rmw_by_fabric<TypeParam, nic_cell>));
  EXPECT_FALSE((any_rmw_by_fabric<TypeParam, cpu_cell>));
  EXPECT_FALSE((any_rmw_by_fabric<TypeParam, plain_cell>));
}

TYPED_TEST(C02_classes, the_processor_changes_cpu_cells_alone) {
  EXPECT_TRUE((rmw_by_cpu<TypeParam, cpu_cell>));
  EXPECT_FALSE((any_rmw_by_cpu<TypeParam, nic_cell>));
  EXPECT_FALSE((any_rmw_by_cpu<TypeParam, plain_cell>));
}

template <class Lock>
concept has_a_shared_name = requires(Lock& lock) { lock.lock_shared(); } || requires(Lock& lock) {
  lock.try_lock_shared();
} || requires(Lock& lock) { lock.unlock_shared(); };

template <class Lock>
concept has_all_shared_names = requires(Lock& lock) {
  lock.lock_shared();
  lock.try_lock_shared();
  lock.unlock_shared();
};

TEST(std_names, a_mutex_has_no_shared_half) {
  EXPECT_FALSE(has_a_shared_name<lock::d_mcs<shm::port>>);
  EXPECT_TRUE(has_all_shared_names<lock::fompi_rw<shm::port>>);
}

}  // namespace
}  // namespace lockflight::test
