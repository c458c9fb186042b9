// The orders that a worker obeys: it exits, becomes a new image by exec, makes a child in every way
// that Linux has, or enters another namespace.
#pragma once

#include "tests/names/deaths/worker.hpp"

namespace lockflight::test {

/// Carries out the pending order if it is for this worker.
void obey(worker& me);

/// True if the program was started by a worker that became a new image.
bool is_worker_image(int argc, char** argv);

/// The values that the former image passed on as arguments.
worker_start start_of_image(char** words);

}  // namespace lockflight::test
