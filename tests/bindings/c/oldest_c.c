/* The header in the oldest standard of C. It is compiled and not run. */
#include <lockflight/lockflight.h>

int released(lockflight_mutex* mutex);
int released(lockflight_mutex* mutex) { return lockflight_mutex_unlock(mutex); }
