/* What all models share: the rounds of a participant, its critical section, what is observed.
 *
 * A step is one operation that the lock posts and flushes at once, or one read of a cell of the
 * own node. Where a lock posts several operations under one flush they are several steps, in any
 * order. A participant that polls a cell, or several, blocks until it would read something new: an
 * endless wait is an invalid end state.
 *
 *   ROUNDS=K         every participant acquires K times. Not given: as often as it likes, and it
 *                    may stop after any round, so that all K are covered at once.
 *   WRITER_ROUNDS=K  writers acquire K times; readers as ROUNDS says.
 *   TRY=1            each acquire is a lock or a try_lock, as it likes.
 *   OBSERVE          declares what the LTL formulas refer to.
 *   WATCHED=p        the participant whose waiting they refer to (0). The waiting of a try_lock
 *                    does not count.
 */

#ifndef TRY
#define TRY 0
#endif

#define WHEN(condition, then) if :: condition -> then :: else fi

#define NIL 0 /* of references: a reference to x is x + 1 */
#define REF(x) ((x) + 1)
#define AT(ref) ((ref) - 1)

/* ---- rounds: `do :: NEXT_ROUND -> ... :: STOP -> break od` ---- */

#define ROUND_COUNTER byte round = 0;
#define NEXT_OF(rounds) atomic { round < rounds -> round++ }

#ifdef ROUNDS
#define NEXT_ROUND NEXT_OF(ROUNDS)
#define STOP round == ROUNDS
#else
#define NEXT_ROUND true
#define STOP true
#endif

#ifdef WRITER_ROUNDS
#define NEXT_WRITER_ROUND NEXT_OF(WRITER_ROUNDS)
#define WRITER_STOP round == WRITER_ROUNDS
#else
#define NEXT_WRITER_ROUND NEXT_ROUND
#define WRITER_STOP STOP
#endif

/* A stopped participant stays where it is: Promela lets processes die only in the reverse order
 * of their birth, and the order would be so many more states. */
#define END end_stopped: false

/* ---- what is observed ---- */

#ifndef WATCHED
#define WATCHED 0
#endif

#ifdef OBSERVE
bool writer_waits = false; /* the watched writer has called lock and has not entered since */
bool reader_waits = false; /* the same of the watched reader */
#define WAITS(it) it = (it || me == WATCHED)
#define SERVED(it) it = (it && me != WATCHED)
#else
#define WAITS(it) skip
#define SERVED(it) skip
#endif

/* ---- the critical section ---- */

byte writers_in = 0;
byte readers_in = 0;

inline writer_enters() {
  atomic {
    assert(writers_in == 0 && readers_in == 0);
    writers_in++;
    SERVED(writer_waits)
  }
}

inline writer_leaves() { writers_in-- }

inline reader_enters() {
  atomic {
    assert(writers_in == 0);
    readers_in++;
    SERVED(reader_waits)
  }
}

inline reader_leaves() { readers_in-- }
