/* The structures and numbers of lockflight.h, as programs that were compiled before have them. It
 * is compiled and not run. A line that does not hold any more breaks those programs: leave the
 * structure as it is, and give the new member a structure and a function of its own.
 *
 * Sizes are those of 64-bit Linux, where long and pointers have 8 bytes. */
#include <lockflight/lockflight.h>
#include <stddef.h>

#if defined(__LP64__)

#define IS(what, number) _Static_assert((what) == (number), #what " is no more " #number)
#define AT(type, member, offset) IS(offsetof(struct type, member), offset)

IS(LOCKFLIGHT_OK, 0);
IS(LOCKFLIGHT_BUSY, 1);
IS(LOCKFLIGHT_INVALID, 2);
IS(LOCKFLIGHT_UNKNOWN, 3);
IS(LOCKFLIGHT_WRONG_KIND, 4);
IS(LOCKFLIGHT_NOT_HELD, 5);
IS(LOCKFLIGHT_HELD, 6);
IS(LOCKFLIGHT_FULL, 7);
IS(LOCKFLIGHT_RANK_FAILED, 8);
IS(LOCKFLIGHT_ABORTED, 9);
IS(LOCKFLIGHT_UNAVAILABLE, 10);
IS(LOCKFLIGHT_INTERNAL, 11);
IS(LOCKFLIGHT_OWNER_DIED, 12);
IS(LOCKFLIGHT_REMOVED, 13);
IS(LOCKFLIGHT_INTERRUPTED, 14);
IS(LOCKFLIGHT_LOST, 15);

AT(lockflight_config, ranks, 0);
AT(lockflight_config, levels, 8);
AT(lockflight_config, node_level, 16);
AT(lockflight_config, threads, 20);
AT(lockflight_config, unpinned, 24);
AT(lockflight_config, waiting, 32);
AT(lockflight_config, words_per_rank, 40);
IS(sizeof(struct lockflight_config), 48);

AT(lockflight_lock_options, name, 0);
AT(lockflight_lock_options, parameters, 8);
AT(lockflight_lock_options, home, 16);
IS(sizeof(struct lockflight_lock_options), 24);

AT(lockflight_domain_options, slots, 0);
AT(lockflight_domain_options, names, 4);
AT(lockflight_domain_options, mode, 8);
AT(lockflight_domain_options, group, 16);
IS(sizeof(struct lockflight_domain_options), 24);

AT(lockflight_named_options, kind, 0);
AT(lockflight_named_options, parameters, 8);
IS(sizeof(struct lockflight_named_options), 16);

AT(lockflight_holder, holders, 0);
AT(lockflight_holder, pid, 4);
AT(lockflight_holder, unit, 8);
AT(lockflight_holder, nanoseconds, 16);
AT(lockflight_holder, command, 24);
AT(lockflight_holder, host, 88);
IS(sizeof(struct lockflight_holder), 344);

#endif

/* ISO C wants a declaration in each file. */
typedef int lockflight_layout_is_compiled;
