/* A library to preload: CLOCK_BOOTTIME stands still from the first time that the file
 * STOPPED_CLOCK_FILE is found. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t which, struct timespec* to) {
  static _Thread_local struct timespec stopped;
  static _Thread_local int is_stopped;
  const char* const file = getenv("STOPPED_CLOCK_FILE");
  const long result = syscall(SYS_clock_gettime, which, to);
  if (which != CLOCK_BOOTTIME || file == NULL || access(file, F_OK) != 0) return (int)result;
  if (!is_stopped) stopped = *to;
  is_stopped = 1;
  *to = stopped;
  return 0;
}
