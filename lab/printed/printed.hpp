// The locks as printed: what papers print, beside the locks that this project made of it.
#pragma once

#include "lab/printed/alock_listing.hpp"
#include "lab/printed/cql_listing.hpp"
#include "lab/printed/mcs_listing.hpp"
#include "lab/printed/mcs_rw_wp_listing.hpp"
#include "lab/printed/rma_rw_listing.hpp"
#include "lockflight/lock/all.hpp"

namespace lockflight::catalogue {

/// The locks as printed, for the checker, for claims, and for simulated runs that name them. They
/// are in no list of locks to use: not in lock::all, and not in the lock table.
using printed =
    lock::families<lock::family<lock::rma_rw_listing>, lock::family<lock::mcs_rw_wp_listing>,
                   lock::family<lock::alock_listing>, lock::family<lock::mcs_listing>,
                   lock::family<lock::cql_listing>>;
static_assert(printed::are_listable());

}  // namespace lockflight::catalogue
