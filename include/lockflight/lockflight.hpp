// Everything that most programs need: the fabric for shared memory and the two default locks.
// examples/first.cpp is a first program.
#pragma once

#include "lockflight/rma/cxx20.hpp"

#include "lockflight/fabric/shm.hpp"
#include "lockflight/mutex.hpp"
#include "lockflight/shared_mutex.hpp"
