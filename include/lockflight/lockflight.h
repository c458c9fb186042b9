/* lockflight for C: locks for participants that share memory or a network.
 *
 * A participant is one thread of control that locks. lockflight_run makes participants of processes
 * or threads of this machine, lockflight_join_mpi (lockflight_mpi.h) of the ranks of a
 * communicator, lockflight_join_ucx of processes that something else has started. All other
 * functions take a participant, or a handle that one has made.
 *
 * Every function that can fail returns a code, LOCKFLIGHT_OK or another of enum lockflight_code.
 * lockflight_last_error says in a line what was wrong: the argument, its value, what is accepted.
 * A call that fails changes nothing. No C++ exception leaves a function of this header.
 *
 * All participants create the same locks and words in the same order: so they find the same memory
 * without communication. A handle belongs to the participant that made it, lives at most as long as
 * that participant, and is not used by two threads at once.
 *
 * Costs are in network operations; each lock's are in the table of docs/performance.md. */
#ifndef LOCKFLIGHT_LOCKFLIGHT_H
#define LOCKFLIGHT_LOCKFLIGHT_H

#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- codes ---- */

/* The codes that functions return. Their numbers are fixed; later versions may add codes. */
enum lockflight_code {
  LOCKFLIGHT_OK = 0,
  LOCKFLIGHT_BUSY = 1,    /* try_lock: another participant has the lock; this is no error */
  LOCKFLIGHT_INVALID = 2, /* an argument that is not accepted; also NULL and a destroyed handle */
  LOCKFLIGHT_UNKNOWN = 3, /* no lock, or no parameter of this lock, has that name */
  LOCKFLIGHT_WRONG_KIND = 4, /* this lock cannot do that: share, wait until a time, upgrade */
  LOCKFLIGHT_NOT_HELD = 5,   /* unlock, upgrade, downgrade: this participant does not hold the lock,
                                or not in that way */
  LOCKFLIGHT_HELD = 6,       /* lock, destroy, leave: this participant holds the lock */
  LOCKFLIGHT_FULL = 7,       /* no words left, or one participant holds 32 locks that queue */
  LOCKFLIGHT_RANK_FAILED = 8,  /* a rank died, or returned a failure */
  LOCKFLIGHT_ABORTED = 9,      /* another rank has failed; this one should return */
  LOCKFLIGHT_UNAVAILABLE = 10, /* the system, MPI or UCX lacks, or refuses, what is needed */
  LOCKFLIGHT_INTERNAL = 11,    /* none of these: an error in the library */
  LOCKFLIGHT_OWNER_DIED = 12,  /* an acquire of a named lock has succeeded, and a holder has died */
  LOCKFLIGHT_REMOVED = 13,     /* acquire of a named lock: its domain has been removed */
  LOCKFLIGHT_INTERRUPTED = 14  /* acquire of a named lock: see lockflight_named_interrupt_with */
};

/* The meaning of a code in a few words. Never NULL, not even for unknown codes; valid for ever. */
const char* lockflight_error_text(int code);

/* What was wrong in this thread's last call that returned neither LOCKFLIGHT_OK nor
 * LOCKFLIGHT_BUSY, in one line; "" if there was none. Valid until the thread's next failure. */
const char* lockflight_last_error(void);

/* The library's version, such as "0.1.0". Valid for ever. */
const char* lockflight_version(void);

/* ---- participants ---- */

typedef struct lockflight_participant lockflight_participant;

/* The configuration of a run. Zeroes are the defaults, and so is NULL in place of a config. */
struct lockflight_config {
  int ranks;          /* how many, at most 4096; 0: the product of `levels`, else one a processor */
  const char* levels; /* the machine's levels, such as "2x4": 2 elements of 4 ranks, at most 4
                         levels; NULL: all ranks are on one node (MPI: the nodes that it finds) */
  int node_level;     /* the level whose elements are nodes, counted from 1; 0: the smallest */
  int threads;        /* not 0: ranks are threads of this process, not processes */
  int unpinned;       /* not 0: ranks are not bound to processors */
  const char* waiting;     /* how ranks wait: "auto", "spin", "yield" or "park"; NULL: "auto" */
  uint32_t words_per_rank; /* memory of each rank for locks and words; 0: 131072 words of 8 bytes */
};

/* The function that a rank runs. It returns LOCKFLIGHT_OK; any other code, and in C++ an exception,
 * fails the run. */
typedef int lockflight_body(lockflight_participant* me, void* argument);

/* Runs body(me, argument) once on every rank, and returns when all have returned. The ranks are
 * forked from the caller, or started as threads, and see what it has prepared. What processes
 * change is private to them, except in memory that is mapped shared. A rank takes part until its
 * body returns; `me` and all handles that it made end then.
 *
 * A rank that dies, returns another code than LOCKFLIGHT_OK or still holds a lock ends the run
 * within a second: LOCKFLIGHT_RANK_FAILED, and lockflight_last_error names it and says how. The
 * other ranks are killed if they are processes; threads get LOCKFLIGHT_ABORTED from the call in
 * which they wait, and must return. LOCKFLIGHT_UNAVAILABLE if the system refuses memory or
 * processes. */
int lockflight_run(const struct lockflight_config* config, lockflight_body* body, void* argument);

/* lockflight_join_mpi (lockflight_mpi.h, which says the rest) for a communicator as MPI_Comm_c2f
 * gives it and Fortran has it. It is in the library lockflight_openmpi or lockflight_mpich.
 * Optional arguments come last, as in Fortran. */
int lockflight_join_mpi_f(int comm, lockflight_participant** me,
                          const struct lockflight_config* config);

/* Makes a participant of this process, over UCX and without MPI: a rank of the launch that
 * LOCKFLIGHT_RENDEZVOUS=HOST:PORT, LOCKFLIGHT_RANK=i and LOCKFLIGHT_RANKS=n describe, or else of
 * the job of a launcher with PMIx (mpirun of Open MPI, prterun, srun --mpi=pmix), or else the only
 * one. It is in the library lockflight_c_ucx. Collective, with the same configuration on all ranks.
 * Ranks of one host are one node unless `config` has levels, whose product is then the number of
 * ranks. `ranks`, `threads` and `unpinned` are lockflight_run's and stay 0. One participant for
 * each process at a time.
 *
 * LOCKFLIGHT_INVALID (wrong variables, levels that do not fit), LOCKFLIGHT_UNAVAILABLE (ranks have
 * not come within LOCKFLIGHT_RENDEZVOUS_TIMEOUT seconds, by default 30; UCX refuses). When a rank
 * is gone later, calls of the others return LOCKFLIGHT_RANK_FAILED within seconds, and
 * lockflight_last_error names it; only lockflight_leave works then. */
int lockflight_join_ucx(const struct lockflight_config* config, lockflight_participant** me);

/* Makes a participant of each PE of an OpenSHMEM launch, numbered as there, between shmem_init and
 * shmem_finalize. Collective over all PEs, with the same configuration; `ranks`, `threads` and
 * `unpinned` stay 0. It is in the library lockflight_shmem. Its cells are on the symmetric heap.
 * LOCKFLIGHT_INVALID and LOCKFLIGHT_UNAVAILABLE (the heap has no room) on all PEs alike. */
int lockflight_join_shmem(lockflight_participant** me, const struct lockflight_config* config);

/* Ends a participant that joined. Collective over all that joined with it: it
 * returns when all have called it, and serves their operations until then. Call it before
 * MPI_Finalize or shmem_finalize. `me` and all handles that it made end then. LOCKFLIGHT_HELD, and
 * nothing is done, while the participant holds a lock. */
int lockflight_leave(lockflight_participant* me);

/* This participant's number, from 0, and how many there are; -1 for NULL. No operations. */
int lockflight_rank(const lockflight_participant* me);
int lockflight_ranks(const lockflight_participant* me);

/* Waits for all participants, and completes all that this one has posted. ceil(log2 P) puts for P
 * participants. */
int lockflight_barrier(lockflight_participant* me);

/* ---- locks ---- */

/* Which lock. Zeroes are the defaults, and so is NULL in place of the options. */
struct lockflight_lock_options {
  const char* name;       /* as `lockflight locks` lists them; NULL: "flight" for a mutex,
                             "flight-rw" for a shared mutex. A mutex may be any lock */
  const char* parameters; /* of that lock, such as "T_R=100,T_L2=8"; a parameter that is not named
                             has the value of a profile (below), else its default */
  int home;               /* the rank whose memory holds the lock's own word */
};

/* The environment variable LOCKFLIGHT_PROFILE names a file that `lockflight tune --out` has
 * written, with parameters of locks for one workload and machine. It is read when lockflight_run
 * begins, and on the first rank when a communicator joins. If it cannot be used, a warning goes to
 * standard error and locks have their defaults. */

/* One holder at a time. */
typedef struct lockflight_mutex lockflight_mutex;
/* One writer (lock) or any number of readers (lock_shared) at a time. */
typedef struct lockflight_shared_mutex lockflight_shared_mutex;

/* Creates this participant's handle of a new lock, and takes the lock's words from the
 * participants' memory; no operations. All participants do so at the same point, with the same
 * options. Words are not given back before the participants end. LOCKFLIGHT_INVALID,
 * LOCKFLIGHT_UNKNOWN, LOCKFLIGHT_WRONG_KIND, LOCKFLIGHT_FULL. */
int lockflight_mutex_create(lockflight_participant* me,
                            const struct lockflight_lock_options* options,
                            lockflight_mutex** mutex);
int lockflight_shared_mutex_create(lockflight_participant* me,
                                   const struct lockflight_lock_options* options,
                                   lockflight_shared_mutex** mutex);

/* Ends this participant's handle; other participants' handles stay. A participant that ends
 * destroys its remaining handles. Destroying one earlier makes later uses of it fail
 * (LOCKFLIGHT_INVALID, as long as the participant lives). LOCKFLIGHT_HELD if this participant holds
 * the lock. */
int lockflight_mutex_destroy(lockflight_mutex* mutex);
int lockflight_shared_mutex_destroy(lockflight_shared_mutex* mutex);

/* Waits until this participant holds the lock alone. Not recursive: LOCKFLIGHT_HELD if it holds the
 * lock already, in any way. LOCKFLIGHT_FULL if it holds 32 other locks that queue. */
int lockflight_mutex_lock(lockflight_mutex* mutex);
int lockflight_shared_mutex_lock(lockflight_shared_mutex* mutex);

/* Takes the lock if it is free, else changes nothing: LOCKFLIGHT_BUSY. May find a lock busy that is
 * just being released. */
int lockflight_mutex_try_lock(lockflight_mutex* mutex);
int lockflight_shared_mutex_try_lock(lockflight_shared_mutex* mutex);

/* Waits at most the given nanoseconds, or until a moment of TIME_UTC, as mtx_timedlock does. If
 * this participant does not hold the lock by then, it leaves the queue: LOCKFLIGHT_BUSY. For
 * "flight" and "flight-rw", the default locks, and "dlm-server"; LOCKFLIGHT_WRONG_KIND for other
 * locks. */
int lockflight_mutex_try_lock_for(lockflight_mutex* mutex, uint64_t nanoseconds);
int lockflight_mutex_try_lock_until(lockflight_mutex* mutex, const struct timespec* moment);
int lockflight_shared_mutex_try_lock_for(lockflight_shared_mutex* mutex, uint64_t nanoseconds);
int lockflight_shared_mutex_try_lock_until(lockflight_shared_mutex* mutex,
                                           const struct timespec* moment);

/* Releases. The next holder sees what this participant wrote and flushed (lockflight_flush) before.
 * Posted operations that are not flushed are not waited for. LOCKFLIGHT_NOT_HELD. */
int lockflight_mutex_unlock(lockflight_mutex* mutex);
int lockflight_shared_mutex_unlock(lockflight_shared_mutex* mutex);

/* The same for readers. */
int lockflight_shared_mutex_lock_shared(lockflight_shared_mutex* mutex);
int lockflight_shared_mutex_try_lock_shared(lockflight_shared_mutex* mutex);
int lockflight_shared_mutex_try_lock_shared_for(lockflight_shared_mutex* mutex,
                                                uint64_t nanoseconds);
int lockflight_shared_mutex_try_lock_shared_until(lockflight_shared_mutex* mutex,
                                                  const struct timespec* moment);
int lockflight_shared_mutex_unlock_shared(lockflight_shared_mutex* mutex);

/* ---- upgrade and downgrade: from reading to writing and back, without a writer in between ----
 *
 * For "flight-rw", the default lock; LOCKFLIGHT_WRONG_KIND, and the error line names the lock, for
 * other locks. Names and meaning are those of Boost's UpgradeLockable. The upgrade holder is one
 * participant: readers come and go beside it, writers and other upgrade holders wait. So the
 * guarded data does not change while it reads, and it can become the writer. Two readers that each
 * waited for the other to leave would wait for ever; hence a reader cannot wait to become a writer,
 * only try.
 *
 * If the lock is not held as a call requires, nothing changes: LOCKFLIGHT_NOT_HELD. What a writer
 * put and flushed before a call is seen by the participants that the call lets in. Costs are in
 * network operations, with K other nodes, C reader counters on them, and the lock not contended: */

/* Waits until there is no writer and no upgrade holder, in a writer's order: it is not overtaken
 * for ever. Costs what lock of "flight" costs, and K puts if readers are excluded. Not recursive:
 * LOCKFLIGHT_HELD. */
int lockflight_shared_mutex_lock_upgrade(lockflight_shared_mutex* mutex);
/* The same if there is no writer and no upgrade holder now, else LOCKFLIGHT_BUSY. */
int lockflight_shared_mutex_try_lock_upgrade(lockflight_shared_mutex* mutex);
/* Costs what unlock of "flight" costs. */
int lockflight_shared_mutex_unlock_upgrade(lockflight_shared_mutex* mutex);

/* Upgrade: waits until the readers are gone, and then holds the lock alone. Never fails, since no
 * other participant can upgrade; readers that come later wait. K puts and C gets, C gets for each
 * further poll. */
int lockflight_shared_mutex_unlock_upgrade_and_lock(lockflight_shared_mutex* mutex);
/* From reader to writer, if there is no writer, no waiting writer and no upgrade holder. It then
 * waits until the other readers are gone. Else LOCKFLIGHT_BUSY, and this participant is still a
 * reader. Two readers that try can both find the lock busy; each must unlock then, since the other
 * reader's success may wait for that. Costs what try_lock of "flight" costs, K puts and C gets. */
int lockflight_shared_mutex_try_unlock_shared_and_lock(lockflight_shared_mutex* mutex);

/* Downgrade: at once, without a writer in between. Waiting readers are let in: K puts if readers
 * are excluded. A downgrade to reader also releases the lock to the next writer: what unlock of
 * "flight" costs. */
int lockflight_shared_mutex_unlock_and_lock_shared(lockflight_shared_mutex* mutex);
int lockflight_shared_mutex_unlock_and_lock_upgrade(lockflight_shared_mutex* mutex);
int lockflight_shared_mutex_unlock_upgrade_and_lock_shared(lockflight_shared_mutex* mutex);

/* ---- words: memory that all participants reach, for the data that locks guard ---- */

/* The same number of 8-byte words in the memory of every rank. A read or write of one word is
 * atomic; reads and writes of several words are not, so locks guard them. */
typedef struct lockflight_words lockflight_words;

/* Takes `count` words on every rank, all 0; no operations. All participants do so at the same
 * point, with the same count. LOCKFLIGHT_INVALID, LOCKFLIGHT_FULL. */
int lockflight_words_create(lockflight_participant* me, uint32_t count, lockflight_words** words);

/* Posts a put of values[0..count) to rank's words from `first` on, or a get of them. Posted
 * operations take effect at the latest at lockflight_flush, in any order; a get's values are there
 * after it. The values of a put are copied at the call. `count` operations. */
int lockflight_put(lockflight_words* words, int rank, uint32_t first, uint32_t count,
                   const uint64_t* values);
int lockflight_get(lockflight_words* words, int rank, uint32_t first, uint32_t count,
                   uint64_t* values);

/* Completes all that this participant has posted, to all ranks. */
int lockflight_flush(lockflight_participant* me);

/* One word, at once: a put or a get, and the flush of its rank. */
int lockflight_put_now(lockflight_words* words, int rank, uint32_t index, uint64_t value);
int lockflight_get_now(lockflight_words* words, int rank, uint32_t index, uint64_t* value);

/* ---- domains: named locks for processes that come, go and die ----
 *
 * A domain is a file in this machine's memory with a fixed number of slots. There is no daemon, no
 * participant and nothing to join: any thread of any process opens a domain by its name and takes
 * locks by theirs. A thread takes a slot when it first uses a lock of the domain, and gives it back
 * when it ends. A thread that ends, or whose process is killed, while it holds a lock frees it, and
 * the next holder learns of it: LOCKFLIGHT_OWNER_DIED. There are no network operations. */

/* A domain that this process has open. Its threads may use it at the same time. */
typedef struct lockflight_domain lockflight_domain;
/* A handle of a named lock. It belongs to the thread that first uses it. A process that forks keeps
 * its handles; the child's copies are of no use (LOCKFLIGHT_INVALID) and can only be destroyed. */
typedef struct lockflight_named lockflight_named;

/* The size and the mode of a domain, for the call that creates it. Zeroes are the defaults, and
 * so is NULL in place of the options. A domain that exists keeps its own numbers. */
struct lockflight_domain_options {
  int slots;         /* the most threads at the same time, 1 to 4095; 0: 4095. Others wait */
  uint32_t names;    /* the most locks at the same time, 1 to 1048576, then idle ones give way; 0:
                        131072 */
  unsigned mode;     /* 0600: its user's own; 0660: its group's, one for all users of that group; 0:
                        as it exists, and 0600 if it does not */
  const char* group; /* with mode 0660: the group's name or number; NULL: the process's */
};

/* Which lock. Zeroes are the defaults, and so is NULL in place of the options. All callers that ask
 * for a name agree. */
struct lockflight_named_options {
  const char* kind;       /* as `lockflight locks` lists them; NULL: "flight-rw", which can be
                             shared and is what `lockflight run` uses */
  const char* parameters; /* of that lock, such as "local_budget=16"; NULL: the defaults */
};

/* Creates the domain, or opens it if it exists. A name has 1 to 64 characters of a-z, A-Z, 0-9,
 * '.', '_', '-', and does not begin with '.'. LOCKFLIGHT_INVALID; LOCKFLIGHT_WRONG_KIND if it
 * exists with another mode or group, or the user and a group have one of that name each and `mode`
 * is 0; LOCKFLIGHT_UNAVAILABLE if the system refuses, or the file is damaged or of another
 * version. */
int lockflight_domain_open(const char* name, const struct lockflight_domain_options* options,
                           lockflight_domain** domain);

/* Ends `domain`. Handles of its locks stay as they are. */
int lockflight_domain_close(lockflight_domain* domain);

/* Removes the domain with all its locks. LOCKFLIGHT_UNKNOWN if there is none; LOCKFLIGHT_HELD if
 * another living thread has a slot, or this one holds a lock, and `force` is 0;
 * LOCKFLIGHT_WRONG_KIND if the user and a group have a domain of that name each. Threads that hold
 * a lock of it go on, and exclude nobody who comes later: lockflight_named_still_valid. */
int lockflight_domain_remove(const char* name, int force);

/* Makes a handle of the lock of that name, for one thread. The lock itself is made when it is first
 * asked for. A name has 1 to 255 bytes, none of them a newline. LOCKFLIGHT_INVALID,
 * LOCKFLIGHT_UNKNOWN (no lock of that kind), LOCKFLIGHT_WRONG_KIND (the lock exists, of another
 * kind or with other parameters), LOCKFLIGHT_FULL. This call or the first acquire says so. */
int lockflight_named_create(lockflight_domain* domain, const char* name,
                            const struct lockflight_named_options* options,
                            lockflight_named** lock);

/* Ends the handle. LOCKFLIGHT_HELD, and nothing is done, if this thread holds the lock with it. */
int lockflight_named_destroy(lockflight_named* lock);

/* Waits until this thread holds the lock alone. LOCKFLIGHT_OWNER_DIED: it does, and a thread that
 * held the lock has died; what the lock guards may be half written. Every later acquire returns
 * that too, until a holder calls lockflight_named_mark_consistent. Not recursive: LOCKFLIGHT_HELD.
 * The same for another handle of this thread, which would wait for itself. A thread that finds no
 * slot waits for one. LOCKFLIGHT_FULL if the domain has no room left, LOCKFLIGHT_INVALID for the
 * handle of another thread, LOCKFLIGHT_REMOVED, LOCKFLIGHT_INTERRUPTED. */
int lockflight_named_lock(lockflight_named* lock);
/* The same if the lock is free now, else LOCKFLIGHT_BUSY. */
int lockflight_named_try_lock(lockflight_named* lock);
/* The same, and waits at most the given nanoseconds: else LOCKFLIGHT_BUSY. */
int lockflight_named_try_lock_for(lockflight_named* lock, uint64_t nanoseconds);
/* Releases. The next holder sees what this thread wrote before. LOCKFLIGHT_NOT_HELD. */
int lockflight_named_unlock(lockflight_named* lock);

/* The same for readers. LOCKFLIGHT_WRONG_KIND for a kind that readers do not share. */
int lockflight_named_lock_shared(lockflight_named* lock);
int lockflight_named_try_lock_shared(lockflight_named* lock);
int lockflight_named_try_lock_shared_for(lockflight_named* lock, uint64_t nanoseconds);
int lockflight_named_unlock_shared(lockflight_named* lock);

/* The fencing token of this handle's last exclusive acquire: greater than that of any exclusive
 * acquire of this name before it. A store that refuses smaller tokens than it has seen is safe from
 * a holder that was taken for dead, or slept. */
int lockflight_named_token(const lockflight_named* lock, uint64_t* token);
/* For a holder: LOCKFLIGHT_OWNER_DIED if a holder has died and no holder since has called
 * lockflight_named_mark_consistent, else LOCKFLIGHT_OK. LOCKFLIGHT_NOT_HELD. */
int lockflight_named_owner_died(const lockflight_named* lock);
/* For an exclusive holder: what the lock guards is in order again. LOCKFLIGHT_NOT_HELD. */
int lockflight_named_mark_consistent(lockflight_named* lock);
/* For a holder: LOCKFLIGHT_OK if threads that come later find this lock, LOCKFLIGHT_REMOVED if its
 * domain has been removed, so that the lock excludes nobody who comes later. LOCKFLIGHT_NOT_HELD. A
 * few system calls. */
int lockflight_named_still_valid(const lockflight_named* lock);

/* While this handle waits, calls is_interrupted(argument) on the waiting thread whenever a signal
 * disturbs the wait, and at least once a second. If that does not return 0 the acquire gives up:
 * LOCKFLIGHT_INTERRUPTED. The function does not use the handle. NULL, as at the beginning: waits go
 * on through signals. */
int lockflight_named_interrupt_with(lockflight_named* lock, int (*is_interrupted)(void* argument),
                                    void* argument);

#ifdef __cplusplus
}
#endif

#endif
