/* lockflight for C: locks for participants that share memory or a network.
 *
 * A participant is one thread of control that locks. It comes from lockflight_run (below: processes
 * or threads of this machine) or from lockflight_join_mpi (lockflight_mpi.h: the ranks of a
 * communicator), and everything else is asked of it.
 *
 * Every function that can fail returns a code, LOCKFLIGHT_OK or another of enum lockflight_code;
 * lockflight_last_error says in a line what was wrong: the argument, its value, what is accepted.
 * What a call refuses it leaves as it was. No C++ exception leaves a function of this header.
 *
 * All participants create the same locks and words in the same order: that is how they find the
 * same memory without a word to each other. Handles belong to the participant that made them, live
 * at most as long as it, and are not used by two threads at once.
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

/* What functions return. Numbers are for good; later versions may add codes. */
enum lockflight_code {
  LOCKFLIGHT_OK = 0,
  LOCKFLIGHT_BUSY = 1,    /* try_lock: somebody else has the lock; the only one that is no error */
  LOCKFLIGHT_INVALID = 2, /* an argument that is not accepted, NULL and what was destroyed too */
  LOCKFLIGHT_UNKNOWN = 3, /* no lock, or no parameter of this lock, has that name */
  LOCKFLIGHT_WRONG_KIND = 4,   /* not of this lock: sharing, a wait that ends in time, upgrade */
  LOCKFLIGHT_NOT_HELD = 5,     /* unlock, upgrade, downgrade of what this participant does not hold,
                                  or not that way */
  LOCKFLIGHT_HELD = 6,         /* lock, destroy, leave: this participant holds the lock */
  LOCKFLIGHT_FULL = 7,         /* no words left for it, or 32 locks held by one participant */
  LOCKFLIGHT_RANK_FAILED = 8,  /* lockflight_run: a rank died or returned a failure */
  LOCKFLIGHT_ABORTED = 9,      /* another rank has failed; this one should return */
  LOCKFLIGHT_UNAVAILABLE = 10, /* the system or the MPI lacks, or refuses, what is needed */
  LOCKFLIGHT_INTERNAL = 11     /* none of these: a mistake of the library's */
};

/* The meaning of a code in a few words. Never NULL, of unknown codes too; valid for ever. */
const char* lockflight_error_text(int code);

/* What was wrong in this thread's last call that returned neither LOCKFLIGHT_OK nor
 * LOCKFLIGHT_BUSY, in one line; "" if there was none. Valid until the thread's next failure. */
const char* lockflight_last_error(void);

/* The library's version, such as "0.1.0". Valid for ever. */
const char* lockflight_version(void);

/* ---- participants ---- */

typedef struct lockflight_participant lockflight_participant;

/* How participants come about. Zeroes, and NULL for the whole, are the defaults. */
struct lockflight_config {
  int ranks;           /* how many, to 4096; 0: what `levels` says, else one for each processor */
  const char* levels;  /* the machine's levels, such as "2x4": 2 elements of 4 ranks, at most 4
                          levels; NULL: all ranks are neighbours (MPI: the nodes that it finds) */
  int node_level;      /* the level whose elements are nodes, counted from 1; 0: the smallest */
  int threads;         /* not 0: ranks are threads of this process, not processes */
  int unpinned;        /* not 0: ranks are not bound to processors */
  const char* waiting; /* how ranks wait: "auto", "spin", "yield" or "park"; NULL: "auto" */
  uint32_t words_per_rank; /* memory of each rank for locks and words; 0: 131072 words of 8 bytes */
};

/* What a rank does. Returns LOCKFLIGHT_OK, or anything else to fail the run with it; so does what
 * it throws, in C++. */
typedef int lockflight_body(lockflight_participant* me, void* argument);

/* Runs body(me, argument) once on every rank, and returns when all have returned. The ranks are
 * forked from the caller (or started as threads): they see what it has prepared, and as processes
 * keep what they change, but for memory that is mapped shared, to themselves. They take part until
 * their body returns; `me` and all that it made end then.
 *
 * A rank that dies, returns another code than LOCKFLIGHT_OK or still holds a lock ends the run
 * within a second: LOCKFLIGHT_RANK_FAILED, and lockflight_last_error names it and says how. The
 * other ranks are killed if they are processes; threads get LOCKFLIGHT_ABORTED from whatever they
 * wait in, and must return. LOCKFLIGHT_UNAVAILABLE if the system refuses memory or processes. */
int lockflight_run(const struct lockflight_config* config, lockflight_body* body, void* argument);

/* Makes a participant of each rank of a communicator: lockflight_join_mpi (lockflight_mpi.h, which
 * says the rest) for a communicator as MPI_Comm_c2f gives it and Fortran has it. Of the library
 * lockflight_openmpi or lockflight_mpich. Optional arguments come last, as in Fortran. */
int lockflight_join_mpi_f(int comm, lockflight_participant** me,
                          const struct lockflight_config* config);

/* Ends a participant that joined; of the same library. Collective over its communicator's ranks: it
 * returns when all have come, and serves their operations until then. Call it before MPI_Finalize.
 * `me` and all that it made are gone then. LOCKFLIGHT_HELD, and nothing has happened, while it
 * holds a lock. */
int lockflight_leave(lockflight_participant* me);

/* This participant's number, from 0, and how many there are; -1 of NULL. No operations. */
int lockflight_rank(const lockflight_participant* me);
int lockflight_ranks(const lockflight_participant* me);

/* Waits for all participants, and completes all that this one has posted. With P of them
 * ceil(log2 P) puts. */
int lockflight_barrier(lockflight_participant* me);

/* ---- locks ---- */

/* Which lock. Zeroes, and NULL for the whole, are the defaults. */
struct lockflight_lock_options {
  const char* name;       /* as `lockflight locks` lists them; NULL: "flight" for a mutex,
                             "flight-rw" for a shared mutex. A mutex may be any lock */
  const char* parameters; /* of that lock, such as "T_R=100,T_L2=8"; what is not named has the value
                             that a profile gives it (below), else its default */
  int home;               /* the rank whose memory holds the lock's own word */
};

/* The environment variable LOCKFLIGHT_PROFILE names a file that `lockflight tune --out` has
 * written, with parameters of locks for one workload and machine. It is read when lockflight_run
 * begins, and on the first rank when a communicator joins. A file that cannot be used is warned of
 * on standard error, and locks have their defaults. */

/* One at a time. */
typedef struct lockflight_mutex lockflight_mutex;
/* One writer (lock) or any number of readers (lock_shared) at a time. */
typedef struct lockflight_shared_mutex lockflight_shared_mutex;

/* Creates a lock, or rather this participant's handle of it, with the words that it needs of the
 * participants' memory; no operations. All participants do so at the same point, with the same
 * options. Words are not given back before the participants end.
 * LOCKFLIGHT_INVALID, LOCKFLIGHT_UNKNOWN, LOCKFLIGHT_WRONG_KIND, LOCKFLIGHT_FULL. */
int lockflight_mutex_create(lockflight_participant* me,
                            const struct lockflight_lock_options* options,
                            lockflight_mutex** mutex);
int lockflight_shared_mutex_create(lockflight_participant* me,
                                   const struct lockflight_lock_options* options,
                                   lockflight_shared_mutex** mutex);

/* Ends this participant's handle; the others' stay. A participant that ends destroys what it has
 * left, so this is for those who want to be told of later use (LOCKFLIGHT_INVALID, as long as the
 * participant lives). LOCKFLIGHT_HELD if this participant holds the lock. */
int lockflight_mutex_destroy(lockflight_mutex* mutex);
int lockflight_shared_mutex_destroy(lockflight_shared_mutex* mutex);

/* Waits until the lock is this participant's, alone. Not recursive: LOCKFLIGHT_HELD if it holds the
 * lock already, in whichever way. LOCKFLIGHT_FULL if it holds 32 others that queue. */
int lockflight_mutex_lock(lockflight_mutex* mutex);
int lockflight_shared_mutex_lock(lockflight_shared_mutex* mutex);

/* Takes the lock if nobody has it and leaves no trace otherwise: LOCKFLIGHT_BUSY. May find a lock
 * busy that is just being released. */
int lockflight_mutex_try_lock(lockflight_mutex* mutex);
int lockflight_shared_mutex_try_lock(lockflight_shared_mutex* mutex);

/* Waits no longer than so many nanoseconds, or until a moment of TIME_UTC, as mtx_timedlock does:
 * LOCKFLIGHT_BUSY if the lock is not this participant's by then, which leaves the queue. Of
 * "flight" and "flight-rw", the default locks, and "dlm-server"; LOCKFLIGHT_WRONG_KIND for
 * others. */
int lockflight_mutex_try_lock_for(lockflight_mutex* mutex, uint64_t nanoseconds);
int lockflight_mutex_try_lock_until(lockflight_mutex* mutex, const struct timespec* moment);
int lockflight_shared_mutex_try_lock_for(lockflight_shared_mutex* mutex, uint64_t nanoseconds);
int lockflight_shared_mutex_try_lock_until(lockflight_shared_mutex* mutex,
                                           const struct timespec* moment);

/* Releases. The next holder sees what this participant wrote and flushed (lockflight_flush) before;
 * what is posted and not flushed is not waited for. LOCKFLIGHT_NOT_HELD. */
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

/* ---- up and down: from reading to writing and back, with nobody writing in between ----
 *
 * Of "flight-rw", the default lock; LOCKFLIGHT_WRONG_KIND, and the line names the lock, for others.
 * Names and meaning are those of Boost's UpgradeLockable. A lock may be held for upgrade: readers
 * come and go beside that, writers and others for upgrade do not, so that what is read stays as it
 * is and the way to writing is open. Two readers that each wait for the other to leave would wait
 * for ever; hence readers cannot wait to become a writer, only try.
 *
 * What is held otherwise than a call says is left as it was: LOCKFLIGHT_NOT_HELD. What a writer put
 * and flushed before a call is seen by whoever the call lets in. In network operations, with K
 * other nodes, C cells of readers on them, and the lock not contended: */

/* Waits until nobody else writes or holds the lock for upgrade. The turn is that of a writer:
 * nobody overtakes for ever. What lock of "flight" costs, and if readers are shut out K puts.
 * Not recursive: LOCKFLIGHT_HELD. */
int lockflight_shared_mutex_lock_upgrade(lockflight_shared_mutex* mutex);
/* The same if it is free for that at once, beside readers: else LOCKFLIGHT_BUSY. */
int lockflight_shared_mutex_try_lock_upgrade(lockflight_shared_mutex* mutex);
/* What unlock of "flight" costs. */
int lockflight_shared_mutex_unlock_upgrade(lockflight_shared_mutex* mutex);

/* Upgrade: waits until the readers are gone, and then holds the lock alone. Never fails, since
 * nobody else can be on the way; readers that come later wait. K puts and C gets, C gets for each
 * further look. */
int lockflight_shared_mutex_unlock_upgrade_and_lock(lockflight_shared_mutex* mutex);
/* From sharing to alone, if nobody writes, waits to write, or holds the lock for upgrade: else
 * LOCKFLIGHT_BUSY, and the lock is still shared. Two readers that try can both find it busy; they
 * unlock, since the other one's success may wait for that. If nothing is in the way it waits until
 * the other readers are gone. What try_lock of "flight" costs, K puts and C gets. */
int lockflight_shared_mutex_try_unlock_shared_and_lock(lockflight_shared_mutex* mutex);

/* Downgrade: at once, and nobody writes in between. Readers that wait are let in: K puts if they
 * are shut out. To sharing, the next writer's turn comes as well: what unlock of "flight" costs. */
int lockflight_shared_mutex_unlock_and_lock_shared(lockflight_shared_mutex* mutex);
int lockflight_shared_mutex_unlock_and_lock_upgrade(lockflight_shared_mutex* mutex);
int lockflight_shared_mutex_unlock_upgrade_and_lock_shared(lockflight_shared_mutex* mutex);

/* ---- words: memory that participants reach, for what locks guard ---- */

/* As many 8-byte words in the memory of every rank. Reads and writes of a word are atomic; those of
 * several words are not, and that is what locks are for. */
typedef struct lockflight_words lockflight_words;

/* Takes `count` words on every rank, all 0; no operations. All participants do so at the same
 * point, with the same count. LOCKFLIGHT_INVALID, LOCKFLIGHT_FULL. */
int lockflight_words_create(lockflight_participant* me, uint32_t count, lockflight_words** words);

/* Posts a put of values[0..count) to rank's words from `first` on, or a get of them. What is posted
 * takes effect, and a get's values are there, after lockflight_flush and in no order before; the
 * values of a put are taken at the call. `count` operations. */
int lockflight_put(lockflight_words* words, int rank, uint32_t first, uint32_t count,
                   const uint64_t* values);
int lockflight_get(lockflight_words* words, int rank, uint32_t first, uint32_t count,
                   uint64_t* values);

/* Completes all that this participant has posted, to all ranks. */
int lockflight_flush(lockflight_participant* me);

/* One word, at once: a put or a get, and the flush of its rank. */
int lockflight_put_now(lockflight_words* words, int rank, uint32_t index, uint64_t value);
int lockflight_get_now(lockflight_words* words, int rank, uint32_t index, uint64_t* value);

#ifdef __cplusplus
}
#endif

#endif
