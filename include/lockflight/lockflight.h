/* lockflight for C: locks for participants that share memory or a network. examples/counter.c is a
 * first program.
 *
 * A participant is one thread of control that uses locks; its number is its rank. There are several
 * ways to become a participant: lockflight_run starts processes or threads of this machine,
 * lockflight_join_mpi (lockflight_mpi.h) takes the ranks of a communicator, lockflight_join_ucx and
 * lockflight_join_libfabric take processes that something else has started, and
 * lockflight_join_oshmem takes the PEs of an OpenSHMEM launch. All other functions take a
 * participant, or a handle that one has made. Only the last part, domains, needs no participant.
 *
 * A function that makes a handle takes first what the handle is made of, then the options, and last
 * where to put the handle.
 *
 * Every function that can fail returns a code of enum lockflight_code. After a failure,
 * lockflight_last_error says in one line what was wrong: the argument, its value and what is
 * accepted. A call that fails changes nothing. No C++ exception leaves a function of this header.
 * The comments name the codes that a function returns besides LOCKFLIGHT_OK.
 *
 * All participants create the same locks and words in the same order, so they find the same memory
 * without communication. A handle belongs to the participant that made it, exists at most as long
 * as that participant, and must not be used by two threads at the same time.
 *
 * Costs are given in network operations. docs/performance.md has a table of those of each lock. */
#ifndef LOCKFLIGHT_LOCKFLIGHT_H
#define LOCKFLIGHT_LOCKFLIGHT_H

#include <stdint.h>
#include <time.h>

struct timespec; /* of POSIX; <time.h> hides it before C11, where a program does not ask for it */

/* Of a function that will be gone in the next version. */
#if defined(__GNUC__)
#define LOCKFLIGHT_DEPRECATED(instead) __attribute__((deprecated(instead)))
#else
#define LOCKFLIGHT_DEPRECATED(instead)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- codes ---- */

/* The codes that functions return. Their numbers are fixed; later versions may add codes. */
enum lockflight_code {
  LOCKFLIGHT_OK = 0,
  LOCKFLIGHT_BUSY = 1,       /* try_lock: another participant has the lock; this is not an error */
  LOCKFLIGHT_INVALID = 2,    /* an argument is not accepted, is NULL, or is a destroyed handle of a
                                network's lock; a destroyed handle of a named lock must not be
                                used */
  LOCKFLIGHT_UNKNOWN = 3,    /* no lock, or no parameter of this lock, has that name */
  LOCKFLIGHT_WRONG_KIND = 4, /* this lock cannot do that: share, wait until a time, upgrade */
  LOCKFLIGHT_NOT_HELD = 5,   /* unlock, upgrade, downgrade: this participant does not hold the lock,
                                or not in the way that the call requires */
  LOCKFLIGHT_HELD = 6,       /* lock, destroy, leave: this participant holds the lock */
  LOCKFLIGHT_FULL = 7,       /* no words are left, or one participant holds 32 locks with queues */
  LOCKFLIGHT_RANK_FAILED = 8,  /* a rank died, or returned a failure */
  LOCKFLIGHT_ABORTED = 9,      /* another rank has failed; this one should return */
  LOCKFLIGHT_UNAVAILABLE = 10, /* the system, or a library of the network, lacks or refuses
                                   what is needed */
  LOCKFLIGHT_INTERNAL = 11,    /* an error in the library that has no other code */
  LOCKFLIGHT_OWNER_DIED = 12,  /* an acquire of a named lock has succeeded, and a holder has died */
  LOCKFLIGHT_REMOVED = 13,     /* the domain of a named lock has been removed */
  LOCKFLIGHT_INTERRUPTED = 14, /* an acquire was ended by lockflight_named_interrupt_with */
  LOCKFLIGHT_LOST = 15         /* a holder of a named lock may not be alone any more */
};

/* Returns the meaning of a code in a few words. The result is never NULL, also for unknown codes,
 * and is always valid. */
const char* lockflight_error_text(int code);

/* Returns one line that says what was wrong in this thread's last call that returned neither
 * LOCKFLIGHT_OK nor LOCKFLIGHT_BUSY, or "" if there was no such call. The line is valid until the
 * thread's next failure. */
const char* lockflight_last_error(void);

/* Returns the library's version, such as "0.1.0". The result is always valid. */
const char* lockflight_version(void);

/* ---- participants ---- */

typedef struct lockflight_participant lockflight_participant;

/* The configuration of a run. A field that is 0 or NULL has its default, and NULL in place of a
 * configuration means all defaults. */
struct lockflight_config {
  int ranks;           /* the number of ranks, at most 4096; 0: the product of `levels` if that is
                          given, else one for each processor */
  const char* levels;  /* the machine's levels, at most 4, such as "2x4": 2 elements of 4 ranks;
                          NULL: all ranks are on one node (MPI: on the nodes that it finds) */
  int node_level;      /* the level whose elements are nodes, counted from 1; 0: the smallest */
  int threads;         /* not 0: ranks are threads of this process, not processes */
  int unpinned;        /* not 0: ranks are not bound to processors */
  const char* waiting; /* how ranks wait: "auto", "spin", "yield" or "park"; NULL: "auto" */
  uint32_t words_per_rank; /* memory of each rank for locks and words; 0: 131072 words of 8 bytes */
};

/* The function that each rank runs. It returns LOCKFLIGHT_OK. If it returns another code, or if a
 * C++ function throws, the run fails. */
typedef int lockflight_body(lockflight_participant* me, void* argument);

/* Runs body(me, argument) once on every rank, and returns when all ranks have returned. The ranks
 * are forked from the caller or started as threads, and see the memory of the caller. Processes
 * change only copies of it, except for memory that is mapped shared. A rank takes part until its
 * body returns; `me` and all handles that it made end then.
 *
 * If a rank dies, returns a code other than LOCKFLIGHT_OK or still holds a lock when it returns,
 * the run ends within a second with LOCKFLIGHT_RANK_FAILED, and lockflight_last_error names the
 * rank and the reason. The other ranks are then killed if they are processes. If they are threads,
 * the call in which they wait returns LOCKFLIGHT_ABORTED, and they must return.
 *
 * LOCKFLIGHT_UNAVAILABLE: the system refuses memory or processes. */
int lockflight_run(const struct lockflight_config* config, lockflight_body* body, void* argument);

/* Does what lockflight_join_mpi of lockflight_mpi.h does, for a communicator in the form in which
 * MPI_Comm_c2f returns it and Fortran has it, an MPI_Fint. This function is in the library
 * lockflight_openmpi or lockflight_mpich. */
int lockflight_join_mpi_fint(int comm, const struct lockflight_config* config,
                             lockflight_participant** me);
/* The same under its old name, with the arguments in another order. */
LOCKFLIGHT_DEPRECATED("lockflight_join_mpi_fint(comm, config, me)")
int lockflight_join_mpi_f(int comm, lockflight_participant** me,
                          const struct lockflight_config* config);

/* Makes this process a participant over UCX, without MPI. Its rank comes from the first of these
 * that is there:
 *   1. the environment variables LOCKFLIGHT_RENDEZVOUS=HOST:PORT, LOCKFLIGHT_RANK=i and
 *      LOCKFLIGHT_RANKS=n, where HOST:PORT is where rank 0 listens;
 *   2. the job of a launcher with PMIx (mpirun of Open MPI, prterun, srun --mpi=pmix);
 *   3. otherwise this process is the only rank.
 * The call is collective, with the same configuration on all ranks. Ranks of one host are one node,
 * unless `config` has levels; the product of the levels is then the number of ranks. `ranks`,
 * `threads` and `unpinned` are for lockflight_run only and stay 0. A process can be one such
 * participant at a time. This function is in the library lockflight_c_ucx.
 *
 * LOCKFLIGHT_INVALID: a variable is wrong, or the levels do not fit. LOCKFLIGHT_UNAVAILABLE: not
 * all ranks have come within LOCKFLIGHT_RENDEZVOUS_TIMEOUT seconds, by default 30, or UCX refuses.
 * If a rank is lost later, calls of the others return LOCKFLIGHT_RANK_FAILED within seconds, and
 * lockflight_last_error names the rank; only lockflight_leave works then. */
int lockflight_join_ucx(const struct lockflight_config* config, lockflight_participant** me);
/* The same over libfabric. All ranks must have the same provider (FI_PROVIDER) and the same
 * LOCKFLIGHT_LIBFABRIC_OPERATIONS. This function is in the library lockflight_c_libfabric. */
int lockflight_join_libfabric(const struct lockflight_config* config, lockflight_participant** me);

/* Makes each PE of an OpenSHMEM launch a participant with the same number. Call it between
 * shmem_init and shmem_finalize, on all PEs, with the same configuration; `ranks`, `threads` and
 * `unpinned` stay 0. The memory of the locks is on the symmetric heap. This function is in the
 * library lockflight_shmem.
 *
 * LOCKFLIGHT_INVALID: the configuration is not accepted, for example because its levels do not fit.
 * LOCKFLIGHT_UNAVAILABLE: the heap has no room. All PEs get the same code. */
int lockflight_join_oshmem(const struct lockflight_config* config, lockflight_participant** me);
/* The same under its old name, with the arguments in another order. */
LOCKFLIGHT_DEPRECATED("lockflight_join_oshmem(config, me)")
int lockflight_join_shmem(lockflight_participant** me, const struct lockflight_config* config);

/* Ends a participant that joined. All participants that joined with it must call this; the call
 * serves the operations of the others, and returns when all have called it. Call it before
 * MPI_Finalize or shmem_finalize. `me` and all handles that it made end with the call.
 *
 * LOCKFLIGHT_HELD: the participant holds a lock, and nothing is done. */
int lockflight_leave(lockflight_participant* me);

/* Returns the number of this participant, which begins with 0, and the number of participants.
 * Returns -1 for NULL. Costs no operations. */
int lockflight_rank(const lockflight_participant* me);
int lockflight_ranks(const lockflight_participant* me);

/* Waits until all participants have called this, and completes everything that this one has posted.
 * Costs ceil(log2 P) puts for P participants. */
int lockflight_barrier(lockflight_participant* me);

/* ---- locks ---- */

/* Which lock to create. A field that is 0 or NULL has its default, and NULL in place of the options
 * means all defaults. */
struct lockflight_lock_options {
  const char* name; /* the name of a lock, as `lockflight locks` lists them; NULL: "flight" for
                       a mutex, "flight-rw" for a shared mutex. A mutex may be any lock */
  const char* parameters; /* parameters of that lock, such as "T_R=100,T_L2=8"; a parameter that is
                             not named has its value from a profile (below), or else its default */
  int home;               /* the rank whose memory holds the lock's own word */
};

/* A profile is a file with parameters of locks for one workload and machine, which `lockflight tune
 * --out` has written. The environment variable LOCKFLIGHT_PROFILE names it. It is read when
 * lockflight_run begins, and by the first rank when a communicator joins. If it cannot be used, the
 * library writes a warning to standard error and uses the defaults. */

/* A lock with one holder at a time. */
typedef struct lockflight_mutex lockflight_mutex;
/* A lock that one writer (lock) or any number of readers (lock_shared) can hold at a time. */
typedef struct lockflight_shared_mutex lockflight_shared_mutex;

/* Creates this participant's handle of a new lock, and takes the words of the lock from the memory
 * of the participants. All participants must call this at the same point, with the same options.
 * The words are not given back before the participants end. Costs no operations.
 *
 * LOCKFLIGHT_INVALID, LOCKFLIGHT_UNKNOWN, LOCKFLIGHT_WRONG_KIND, LOCKFLIGHT_FULL. */
int lockflight_mutex_create(lockflight_participant* me,
                            const struct lockflight_lock_options* options,
                            lockflight_mutex** mutex);
int lockflight_shared_mutex_create(lockflight_participant* me,
                                   const struct lockflight_lock_options* options,
                                   lockflight_shared_mutex** mutex);

/* Ends this participant's handle; the handles of other participants stay. You need not call this,
 * because a participant that ends destroys its remaining handles. After the call, uses of the
 * handle fail with LOCKFLIGHT_INVALID, as long as the participant exists.
 *
 * LOCKFLIGHT_HELD: this participant holds the lock. */
int lockflight_mutex_destroy(lockflight_mutex* mutex);
int lockflight_shared_mutex_destroy(lockflight_shared_mutex* mutex);

/* Waits until this participant holds the lock alone.
 *
 * LOCKFLIGHT_HELD: the participant holds the lock already, alone or shared; locks are not
 * recursive. LOCKFLIGHT_FULL: it holds 32 other locks that have queues. */
int lockflight_mutex_lock(lockflight_mutex* mutex);
int lockflight_shared_mutex_lock(lockflight_shared_mutex* mutex);

/* Takes the lock if it is free. Otherwise changes nothing and returns LOCKFLIGHT_BUSY. It may also
 * return LOCKFLIGHT_BUSY while the lock is being released. */
int lockflight_mutex_try_lock(lockflight_mutex* mutex);
int lockflight_shared_mutex_try_lock(lockflight_shared_mutex* mutex);

/* Waits for at most the given nanoseconds, or until a moment of TIME_UTC, as mtx_timedlock does. If
 * this participant does not hold the lock by then, it leaves the queue, and the call returns
 * LOCKFLIGHT_BUSY. The default locks "flight" and "flight-rw" can do this, and "dlm-server"; for
 * other locks the calls return LOCKFLIGHT_WRONG_KIND. */
int lockflight_mutex_try_lock_for(lockflight_mutex* mutex, uint64_t nanoseconds);
int lockflight_mutex_try_lock_until(lockflight_mutex* mutex, const struct timespec* moment);
int lockflight_shared_mutex_try_lock_for(lockflight_shared_mutex* mutex, uint64_t nanoseconds);
int lockflight_shared_mutex_try_lock_until(lockflight_shared_mutex* mutex,
                                           const struct timespec* moment);

/* Releases the lock. The next holder sees what this participant wrote and flushed
 * (lockflight_flush) before. The call does not wait for posted operations that are not flushed.
 *
 * LOCKFLIGHT_NOT_HELD: this participant does not hold the lock in this way. */
int lockflight_mutex_unlock(lockflight_mutex* mutex);
int lockflight_shared_mutex_unlock(lockflight_shared_mutex* mutex);

/* The same for readers, which share the lock with each other. */
int lockflight_shared_mutex_lock_shared(lockflight_shared_mutex* mutex);
int lockflight_shared_mutex_try_lock_shared(lockflight_shared_mutex* mutex);
int lockflight_shared_mutex_try_lock_shared_for(lockflight_shared_mutex* mutex,
                                                uint64_t nanoseconds);
int lockflight_shared_mutex_try_lock_shared_until(lockflight_shared_mutex* mutex,
                                                  const struct timespec* moment);
int lockflight_shared_mutex_unlock_shared(lockflight_shared_mutex* mutex);

/* ---- upgrade and downgrade: from reading to writing and back, without a writer in between ----
 *
 * The default lock "flight-rw" can do this. For other locks the calls return LOCKFLIGHT_WRONG_KIND,
 * and the error line names the lock. The names and their meaning are those of Boost's
 * UpgradeLockable.
 *
 * At most one participant is the upgrade holder. Readers come and go beside it; writers and other
 * upgrade holders wait. So the data do not change while the upgrade holder reads them, and it can
 * then become the writer. A reader can only try to become the writer, and cannot wait for it: two
 * readers that each waited for the other to leave would wait for ever.
 *
 * If the lock is not held as a call requires, nothing changes, and the call returns
 * LOCKFLIGHT_NOT_HELD. The participants that a call lets in see what a writer put and flushed
 * before the call. Costs are given in network operations for a lock that is not contended, with K
 * other nodes and C reader counters on them. */

/* Waits until there is no writer and no upgrade holder. The call waits in the order of the writers,
 * so it is not overtaken for ever. Costs what lock of "flight" costs, and K puts if readers are
 * excluded.
 *
 * LOCKFLIGHT_HELD: this participant holds the lock already. */
int lockflight_shared_mutex_lock_upgrade(lockflight_shared_mutex* mutex);
/* The same without waiting: if there is a writer or an upgrade holder, returns LOCKFLIGHT_BUSY. */
int lockflight_shared_mutex_try_lock_upgrade(lockflight_shared_mutex* mutex);
/* Costs what unlock of "flight" costs. */
int lockflight_shared_mutex_unlock_upgrade(lockflight_shared_mutex* mutex);

/* Upgrade: waits until the readers have left, and then holds the lock alone. Readers that come
 * later wait. The upgrade does not fail, because no other participant can upgrade at the same time.
 * Costs K puts and C gets, and C gets for each further poll. */
int lockflight_shared_mutex_unlock_upgrade_and_lock(lockflight_shared_mutex* mutex);
/* Turns a reader into the writer if there is no writer, no waiting writer and no upgrade holder; it
 * then waits until the other readers have left. Otherwise returns LOCKFLIGHT_BUSY, and this
 * participant is still a reader. If two readers try, both may find the lock busy. Each should then
 * unlock, because the other one may have to wait for that. Costs what try_lock of "flight" costs,
 * K puts and C gets. */
int lockflight_shared_mutex_try_unlock_shared_and_lock(lockflight_shared_mutex* mutex);

/* Downgrades: they take effect at once, without a writer in between, and let waiting readers in,
 * which costs K puts if readers are excluded. After a downgrade to reader the next writer can begin
 * to wait for the readers to leave, which costs what unlock of "flight" costs. */
int lockflight_shared_mutex_unlock_and_lock_shared(lockflight_shared_mutex* mutex);
int lockflight_shared_mutex_unlock_and_lock_upgrade(lockflight_shared_mutex* mutex);
int lockflight_shared_mutex_unlock_upgrade_and_lock_shared(lockflight_shared_mutex* mutex);

/* ---- words: memory that all participants reach, for the data that locks guard ---- */

/* A handle of the same number of 8-byte words in the memory of every rank. A read or a write of one
 * word is atomic. Reads and writes of several words are not, so protect them with a lock. */
typedef struct lockflight_words lockflight_words;

/* Takes `count` words on every rank; their values are 0. All participants must call this at the
 * same point, with the same count. Costs no operations.
 *
 * LOCKFLIGHT_INVALID, LOCKFLIGHT_FULL. */
int lockflight_words_create(lockflight_participant* me, uint32_t count, lockflight_words** words);

/* Posts a put of values[0..count) to the words of `rank` from `first` on, or a get of them. Posted
 * operations take effect in any order, at the latest at lockflight_flush. The values of a get are
 * valid after that flush; the values of a put are copied at the call. Costs `count` operations. */
int lockflight_put(lockflight_words* words, int rank, uint32_t first, uint32_t count,
                   const uint64_t* values);
int lockflight_get(lockflight_words* words, int rank, uint32_t first, uint32_t count,
                   uint64_t* values);

/* Completes everything that this participant has posted, to all ranks. */
int lockflight_flush(lockflight_participant* me);

/* Puts or gets one word and flushes its rank, so the effect and the value are there on return. */
int lockflight_put_now(lockflight_words* words, int rank, uint32_t index, uint64_t value);
int lockflight_get_now(lockflight_words* words, int rank, uint32_t index, uint64_t* value);

/* ---- domains: named locks for processes that come, go and die ----
 *
 * A domain is a file in the memory of this machine, with a fixed number of slots. There is no
 * daemon, no participant and nothing to join: any thread of any process opens a domain by its name
 * and takes locks by theirs. examples/named.c is a program, and docs/domains.md describes domains.
 *
 * A thread takes a slot when it first uses a lock of the domain, and gives it back when it ends. If
 * a thread ends or its process is killed while it holds a lock, the lock becomes free, and the next
 * acquire returns LOCKFLIGHT_OWNER_DIED. Named locks cost no network operations. */

/* A domain that this process has opened. Its threads may use it at the same time. */
typedef struct lockflight_domain lockflight_domain;
/* A handle of a named lock. It belongs to the thread that first uses it. A process that forks keeps
 * its handles. The copies of the child cannot be used (LOCKFLIGHT_INVALID), only destroyed. */
typedef struct lockflight_named lockflight_named;

/* The size and the mode of a domain, for the call that creates it. A field that is 0 or NULL has
 * its default, and NULL in place of the options means all defaults. A domain that exists keeps the
 * numbers with which it was created. */
struct lockflight_domain_options {
  int slots;         /* how many threads can use the domain at the same time, 1 to 4095; 0: 4095.
                        More threads wait */
  uint32_t names;    /* how many locks can exist at the same time, 1 to 1048576; 0: 131072. When
                        they all exist, a new one takes the place of a lock that nobody uses */
  unsigned mode;     /* 0600: the domain belongs to its user; 0660: it belongs to a group, whose
                        users share it; 0: the mode with which it exists, or 0600 if it does not */
  const char* group; /* with mode 0660: the group's name or number, such as "staff" or "0"; NULL or
                        "": the process's group */
};

/* What lock a name denotes. A field that is NULL has its default, and NULL in place of the options
 * means all defaults. All callers that use a name must agree. */
struct lockflight_named_options {
  const char* kind; /* the name of a lock, as `lockflight locks` lists them; NULL: "flight-rw",
                       which can be shared and is what `lockflight run` uses */
  const char* parameters; /* parameters of that lock, such as "local_budget=16"; NULL: defaults */
};

/* Creates the domain, or opens it if it exists. A name has 1 to 64 characters of a-z, A-Z, 0-9,
 * '.', '_', '-', and does not begin with '.'.
 *
 * A name that begins with "etcd:" is the domain of a cluster: its locks exclude all hosts whose
 * agents are in it. The agent of this host makes it (lockflight agent).
 *
 * LOCKFLIGHT_INVALID. LOCKFLIGHT_WRONG_KIND: the domain exists with another mode or group, or both
 * the user and a group have a domain of that name and `mode` is 0. LOCKFLIGHT_UNKNOWN: no agent of
 * that cluster's domain runs on this host. LOCKFLIGHT_UNAVAILABLE: the system refuses, or the file
 * is damaged or of another version. */
int lockflight_domain_open(const char* name, const struct lockflight_domain_options* options,
                           lockflight_domain** domain);

/* Ends `domain`. The handles of its locks stay valid. */
int lockflight_domain_close(lockflight_domain* domain);

/* Removes the domain with all its locks. Threads that hold one of these locks go on, but no longer
 * exclude threads that come later; they can call lockflight_named_still_valid.
 *
 * LOCKFLIGHT_UNKNOWN: there is no such domain. LOCKFLIGHT_HELD: another living thread has a slot,
 * or this one holds a lock, and `force` is 0. LOCKFLIGHT_WRONG_KIND: both the user and a group have
 * a domain of that name. */
int lockflight_domain_remove(const char* name, int force);

/* Makes a handle of the lock of that name, for one thread. The lock itself is made when it is first
 * acquired. A name has 1 to 255 bytes, none of them a newline. These codes are returned by this
 * call or by the first acquire:
 *
 * LOCKFLIGHT_INVALID. LOCKFLIGHT_UNKNOWN: there is no lock of that kind. LOCKFLIGHT_WRONG_KIND: the
 * lock exists with another kind or other parameters. LOCKFLIGHT_FULL. */
int lockflight_named_create(lockflight_domain* domain, const char* name,
                            const struct lockflight_named_options* options,
                            lockflight_named** lock);

/* Makes a handle of several locks of the kind "flight-rw", which are acquired together: all of them
 * or none, in the order of the bytes of their names, so that threads with overlapping sets do not
 * deadlock. The calls below are about all of them; the token is that of the first in that order.
 *
 * LOCKFLIGHT_INVALID: also if `count` is below 1, or a name is there twice. The other codes are
 * those of lockflight_named_create. */
int lockflight_named_create_several(lockflight_domain* domain, const char* const* names, int count,
                                    lockflight_named** lock);

/* Makes a handle of the semaphore of that name, of which a holder holds one of `units` units, 1 to
 * 1024. It is acquired with LOCKFLIGHT_EXCLUSIVE, and lockflight_named_unit says which unit it is;
 * lockflight_semaphore_create makes the same handle for functions with names of their own, and
 * describes semaphores. The codes are those of lockflight_semaphore_create. */
int lockflight_named_create_semaphore(lockflight_domain* domain, const char* name, int units,
                                      lockflight_named** lock);

/* The same for a handle that takes `take` of the units together: all of them or none. A waiter that
 * is next collects the units that become free, and nobody else is served meanwhile, so that small
 * requests do not delay a large one, and no two wait for units of each other. `numbers` are the
 * numbers of the `count` units; NULL: 0 to count - 1. lockflight_named_units says which units the
 * handle holds.
 *
 * LOCKFLIGHT_INVALID: also if `take` is below 1, above `count`, or above 31, since a thread holds
 * 32 locks at most. The other codes are those of lockflight_semaphore_create. */
int lockflight_named_create_units(lockflight_domain* domain, const char* name, const int* numbers,
                                  int count, int take, lockflight_named** lock);

/* Ends the handle. LOCKFLIGHT_HELD: a thread holds the lock with it, and nothing is done. If the
 * thread that held has ended, the handle holds nothing. */
int lockflight_named_destroy(lockflight_named* lock);

/* How a lock is held. */
enum lockflight_mode { LOCKFLIGHT_SHARED = 1, LOCKFLIGHT_EXCLUSIVE = 2 };

/* Acquires the lock in that mode and waits for at most the given nanoseconds: 0 is an attempt, and
 * UINT64_MAX is for ever. All other acquires are this one with other names, and have its codes.
 *
 * LOCKFLIGHT_BUSY: the lock was not free in time. LOCKFLIGHT_INVALID: also for another mode.
 * LOCKFLIGHT_WRONG_KIND: the lock cannot be shared. The other codes are those of
 * lockflight_named_lock. */
int lockflight_named_acquire(lockflight_named* lock, int mode, uint64_t nanoseconds);
/* Releases it, in whichever mode it is held. The next holder sees what this thread wrote before.
 * LOCKFLIGHT_NOT_HELD. LOCKFLIGHT_INVALID: the handle belongs to another thread. */
int lockflight_named_release(lockflight_named* lock);

/* Waits until this thread holds the lock alone. If all slots of the domain are taken, the thread
 * first waits for a slot.
 *
 * LOCKFLIGHT_OWNER_DIED: this thread holds the lock, and a thread that held it before has died, so
 * the data may be half written. Every later acquire returns this code, too, until a holder calls
 * lockflight_named_mark_consistent. LOCKFLIGHT_HELD: this thread holds the lock already, with this
 * handle, or with another one unless both share; named locks are not recursive. LOCKFLIGHT_FULL:
 * the domain has no room left. LOCKFLIGHT_INVALID: the handle belongs to another thread.
 * LOCKFLIGHT_REMOVED. LOCKFLIGHT_INTERRUPTED, also if the program has left the last call of this
 * handle by siglongjmp: what that call had begun is undone now. */
int lockflight_named_lock(lockflight_named* lock);
/* The same without waiting: if the lock is not free now, returns LOCKFLIGHT_BUSY. */
int lockflight_named_try_lock(lockflight_named* lock);
/* The same, but waits for at most the given nanoseconds and then returns LOCKFLIGHT_BUSY. */
int lockflight_named_try_lock_for(lockflight_named* lock, uint64_t nanoseconds);
/* Releases the lock. The next holder sees what this thread wrote before. LOCKFLIGHT_NOT_HELD. */
int lockflight_named_unlock(lockflight_named* lock);

/* The same for readers, which share the lock. LOCKFLIGHT_WRONG_KIND: the lock cannot be shared. */
int lockflight_named_lock_shared(lockflight_named* lock);
int lockflight_named_try_lock_shared(lockflight_named* lock);
int lockflight_named_try_lock_shared_for(lockflight_named* lock, uint64_t nanoseconds);
int lockflight_named_unlock_shared(lockflight_named* lock);

/* The unit of a semaphore that this handle holds, from 0; -1: it is of locks. LOCKFLIGHT_NOT_HELD.
 */
int lockflight_named_unit(const lockflight_named* lock, int* unit);
/* All units of a semaphore that this handle holds, in their order, and how many these are; of locks
 * none. At most `most` of them are written to `units`, which may be NULL if `most` is 0.
 * LOCKFLIGHT_NOT_HELD. LOCKFLIGHT_INVALID. */
int lockflight_named_units(const lockflight_named* lock, int* units, int most, int* count);
/* Returns the fencing token of this handle's last exclusive acquire. It is greater than that of any
 * exclusive acquire of this name before it; of several units it is that of the first. A store that
 * refuses a token that is smaller than the greatest it has seen is safe from a holder that has lost
 * the lock without noticing. */
int lockflight_named_token(const lockflight_named* lock, uint64_t* token);
/* For a holder: returns LOCKFLIGHT_OWNER_DIED if a holder has died and no holder since has called
 * lockflight_named_mark_consistent, and otherwise LOCKFLIGHT_OK. LOCKFLIGHT_NOT_HELD. */
int lockflight_named_owner_died(const lockflight_named* lock);
/* For an exclusive holder: declares that the data that the lock protects are in order again.
 * LOCKFLIGHT_NOT_HELD. */
int lockflight_named_mark_consistent(lockflight_named* lock);
/* For a holder: returns LOCKFLIGHT_OK if threads that come later use this lock, and
 * LOCKFLIGHT_REMOVED if its domain has been removed, so that the lock does not exclude them.
 * LOCKFLIGHT_NOT_HELD. Costs a few system calls. */
int lockflight_named_still_valid(const lockflight_named* lock);

/* For how many nanoseconds from now on this holder is certainly alone, if its host does not hear
 * from its cluster again, or until the hold ends, which may be sooner. 0: it is lost, or the handle
 * does not hold. UINT64_MAX: the domain is one machine's, and there is no limit unless an end was
 * set or a loss was told (below). It does not grow again, in one hold, once it was 0. Reads a
 * clock. */
int lockflight_named_valid_for(const lockflight_named* lock, uint64_t* nanoseconds);
/* For a holder: its hold ends so many nanoseconds from now on, as by a loss. The lock is not free
 * before the holder has released it or has ended, so a time limit never makes two holders. A second
 * call can bring the end nearer, and not put it off. `lockflight break` ends a hold in the same
 * way. The clock goes on while the machine sleeps, and counts milliseconds. LOCKFLIGHT_NOT_HELD,
 * LOCKFLIGHT_WRONG_THREAD. */
int lockflight_named_end_after(lockflight_named* lock, uint64_t nanoseconds);
/* For a holder: returns LOCKFLIGHT_LOST if it may not be alone any more, because its host was cut
 * off from the cluster, because the hold has come to its end, or because the loss was told in one
 * of the ways below, and otherwise LOCKFLIGHT_OK. A holder that has lost the lock stops what it
 * does under it, and releases it. LOCKFLIGHT_NOT_HELD. */
int lockflight_named_is_lost(const lockflight_named* lock);

/* The two calls below are for a holder, also of several locks or of a unit of a semaphore. They are
 * about its present hold, and end with its release. The hold is lost if the host was cut off from
 * its cluster, or the domain was removed or overwritten; in a cluster's domain the program is told
 * at least a tenth of the time to live before another host can hold the lock. Nothing is polled: a
 * thread of the library, which starts with the first such call of a process, sleeps meanwhile.
 *
 * LOCKFLIGHT_NOT_HELD. LOCKFLIGHT_INVALID: also if the handle belongs to another thread.
 * LOCKFLIGHT_UNAVAILABLE: there is no thread or no descriptor for it. */

/* Returns a descriptor that becomes readable, for poll and its like, when the hold is lost. It
 * belongs to the handle: lockflight_named_destroy closes it, and the program neither reads nor
 * closes it. The release makes it unreadable again; a later hold asks again, and gets the same
 * number. */
int lockflight_named_loss_descriptor(lockflight_named* lock, int* descriptor);
/* Calls function(argument) once, on the library's thread, when the hold is lost. The function
 * should be short, and must not use the handle. A second call replaces the function; NULL takes it
 * away. If the function runs at that moment, this call and the release wait for its end, so that
 * the argument may be freed afterwards. */
int lockflight_named_on_loss(lockflight_named* lock, void (*function)(void* argument),
                             void* argument);
/* As lockflight_named_release, and returns LOCKFLIGHT_LOST if the hold was lost before: then an
 * exclusive one is released as the holder's death would release it, so that the next exclusive
 * holder is told (LOCKFLIGHT_OWNER_DIED). LOCKFLIGHT_OK says that the whole section ran under the
 * lock. On one machine some system calls. */
int lockflight_named_release_unless_lost(lockflight_named* lock);

/* Sets a function by which the program can end a wait. While this handle waits,
 * is_interrupted(argument) is called on the waiting thread after each signal, and at least once a
 * second. If it does not return 0, the acquire gives up and returns LOCKFLIGHT_INTERRUPTED. The
 * function must not use the handle. With NULL, as at the beginning, signals do not end a wait. */
int lockflight_named_interrupt_with(lockflight_named* lock, int (*is_interrupted)(void* argument),
                                    void* argument);

/* A thread that holds a lock, on this host or, in a cluster's domain, on another one. */
struct lockflight_holder {
  int holders;          /* how many threads hold it in all; this is the one that has for longest */
  int pid;              /* the process, or that of the command that it runs under the lock; 0: it
                           is in another PID namespace, such as a container's */
  int unit;             /* of a semaphore; -1: of a lock */
  uint64_t nanoseconds; /* it has held for about so long */
  char command[64];     /* the name of the process */
  char host[256];       /* of the cluster; "": this host */
};

/* For a caller that did not get the lock in time: the holder of it, or of several locks, the holder
 * of one of them. Any thread may call this. LOCKFLIGHT_UNKNOWN: nobody does, at this moment. Reads
 * the memory of the domain, some microseconds; in a cluster's domain it asks the other hosts, two
 * seconds at most. */
int lockflight_named_holder(const lockflight_named* lock, struct lockflight_holder* holder);

/* A handle of a semaphore of N units by name: at most N holders at a time, each with a unit of its
 * own, 0 to N - 1. It belongs to the thread that first uses it, and holds one unit at most. Waiters
 * get units in the order in which they came. */
typedef struct lockflight_semaphore lockflight_semaphore;

/* Makes a handle for one thread. The semaphore itself is made when it is first acquired. `units` is
 * N, 1 to 1024. Names are those of locks: a lock and a semaphore of one name do not go together.
 *
 * LOCKFLIGHT_INVALID. LOCKFLIGHT_WRONG_KIND, also returned by the first acquire: the name is a
 * lock's, or a semaphore's with another N; the message names both. LOCKFLIGHT_FULL. */
int lockflight_semaphore_create(lockflight_domain* domain, const char* name, int units,
                                lockflight_semaphore** semaphore);
/* Ends the handle. LOCKFLIGHT_HELD: a thread holds a unit with it, and nothing is done. */
int lockflight_semaphore_destroy(lockflight_semaphore* semaphore);

/* Waits until this thread holds a unit.
 *
 * LOCKFLIGHT_OWNER_DIED: this thread holds a unit, and a thread that held this unit before has
 * died. LOCKFLIGHT_HELD: this handle holds a unit already, or other handles of this thread hold all
 * units. The other codes are those of lockflight_named_lock. */
int lockflight_semaphore_acquire(lockflight_semaphore* semaphore);
/* The same without waiting: LOCKFLIGHT_BUSY if no unit is free, or if others wait for one. */
int lockflight_semaphore_try_acquire(lockflight_semaphore* semaphore);
/* The same, but waits for at most the given nanoseconds and then returns LOCKFLIGHT_BUSY. */
int lockflight_semaphore_try_acquire_for(lockflight_semaphore* semaphore, uint64_t nanoseconds);
/* Gives the unit back. LOCKFLIGHT_NOT_HELD. */
int lockflight_semaphore_release(lockflight_semaphore* semaphore);

/* The unit that this handle holds, 0 to N - 1. LOCKFLIGHT_NOT_HELD. */
int lockflight_semaphore_unit(const lockflight_semaphore* semaphore, int* unit);

/* As lockflight_named_holder, for the units. */
int lockflight_semaphore_holder(const lockflight_semaphore* semaphore,
                                struct lockflight_holder* holder);

/* As the functions of the same names for locks, for the unit that this handle holds. */
int lockflight_semaphore_token(const lockflight_semaphore* semaphore, uint64_t* token);
int lockflight_semaphore_owner_died(const lockflight_semaphore* semaphore);
int lockflight_semaphore_mark_consistent(lockflight_semaphore* semaphore);
int lockflight_semaphore_still_valid(const lockflight_semaphore* semaphore);
int lockflight_semaphore_valid_for(const lockflight_semaphore* semaphore, uint64_t* nanoseconds);
int lockflight_semaphore_is_lost(const lockflight_semaphore* semaphore);
int lockflight_semaphore_interrupt_with(lockflight_semaphore* semaphore,
                                        int (*is_interrupted)(void* argument), void* argument);

/* An election: the role of that name, which one thread of all programs of the domain has at a time,
 * the leader. The role is the lock of that name: candidates lead in the order in which they came, a
 * leader that dies is followed by the next one, and terms are fencing tokens. The leader publishes
 * a value, such as its address. lockflight/election.hpp describes elections.
 *
 * The functions that make and end a leader are for one thread, as those of a named lock; `leader`
 * and `observe` are for one thread, too, which may be another one. */
typedef struct lockflight_election lockflight_election;

/* A candidate with a value of `length` bytes, at most 65,000, or an observer, whose length is 0.
 * LOCKFLIGHT_INVALID. */
int lockflight_election_create(lockflight_domain* domain, const char* name, const char* value,
                               size_t length, lockflight_election** election);
/* LOCKFLIGHT_HELD: it leads. */
int lockflight_election_destroy(lockflight_election* election);
/* The priority of this candidate, 0 to 1,000; before this call it is 0. When the role becomes free,
 * candidates of a greater one that wait come before those of a lesser one. LOCKFLIGHT_INVALID. */
int lockflight_election_set_priority(lockflight_election* election, int priority);

/* Waits until this candidate leads, and publishes its value; at most so long, 0: an attempt,
 * UINT64_MAX: for ever. LOCKFLIGHT_BUSY: it does not lead. It may be called again after a loss,
 * which ends the term that was lost. */
int lockflight_election_campaign(lockflight_election* election, uint64_t nanoseconds);
/* Ends the term. A term that was lost ends as by a death. LOCKFLIGHT_NOT_HELD. */
int lockflight_election_step_down(lockflight_election* election);
/* The same in favour of the candidate with that value. The others make way for it, for two seconds
 * at most. */
int lockflight_election_step_down_for(lockflight_election* election, const char* value,
                                      size_t length);
/* Changes the leader's value. LOCKFLIGHT_NOT_HELD. */
int lockflight_election_publish(lockflight_election* election, const char* value, size_t length);

/* LOCKFLIGHT_OK, or LOCKFLIGHT_NOT_HELD: this candidate does not lead, or its term is lost. Reads a
 * clock. */
int lockflight_election_is_leader(const lockflight_election* election);
/* For how long it certainly leads, as lockflight_named_valid_for; 0 if it does not lead. */
int lockflight_election_valid_for(const lockflight_election* election, uint64_t* nanoseconds);
/* The number of its term, present or last; 0: it has not led. Terms grow. */
int lockflight_election_term(const lockflight_election* election, uint64_t* term);
/* For a leader: as lockflight_named_loss_descriptor and lockflight_named_on_loss. */
int lockflight_election_loss_descriptor(lockflight_election* election, int* descriptor);
int lockflight_election_on_loss(lockflight_election* election, void (*function)(void* argument),
                                void* argument);

/* The leader of now: its term, the length of its value, and as much of the value as `capacity`
 * bytes have room for. LOCKFLIGHT_UNKNOWN: nobody leads, and both numbers are 0. On one machine it
 * reads memory; in a cluster's domain etcd is asked, for five seconds at most. */
int lockflight_election_leader(lockflight_election* election, char* value, size_t capacity,
                               size_t* length, uint64_t* term);
/* Calls function(value, length, term, argument) for the leader of now, and then at each change, on
 * this thread, which sleeps meanwhile; a term of 0 says that nobody leads. Returns when the
 * function returns anything but 0. Changes that follow each other quickly may be seen as one.
 * LOCKFLIGHT_INTERRUPTED. */
int lockflight_election_observe(lockflight_election* election,
                                int (*function)(const char* value, size_t length, uint64_t term,
                                                void* argument),
                                void* argument);
/* As lockflight_named_interrupt_with, for campaign and observe. */
int lockflight_election_interrupt_with(lockflight_election* election,
                                       int (*is_interrupted)(void* argument), void* argument);

#ifdef __cplusplus
}
#endif

#endif
