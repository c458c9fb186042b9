// Everything that most programs need: the shared-memory fabric and the two locks of choice.
#pragma once

#include "lockflight/fabric/shm.hpp"
#include "lockflight/mutex.hpp"
#include "lockflight/shared_mutex.hpp"
