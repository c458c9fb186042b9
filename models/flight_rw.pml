/* flight-rw: gates and counters of readers at each cell, and a mutex among the writers.
 *
 * include/lockflight/lock/reader_gates.hpp, gate_keeper.hpp and flight_rw.hpp, with the names that
 * they have there, without `adaptive`, and with a gate for each cell.
 * Nobody gives up in time, upgrades or downgrades.
 * flight is not told again (flight.pml): here it is a lock that is first come, first served, and
 * whether it will be passed on while somebody waits is its own choice, as flight's depends on its
 * budgets and on who has made itself visible. With FIFO=0 anybody who waits or comes may be next:
 * more orders than flight has, for what holds in any order. An attempt on it may fail at any time.
 *
 * Macros of this model:
 *   READERS, WRITERS, T_W
 *   CELLS             1 or 2; reader r counts at cell r % CELLS, writer w looks at gate w % CELLS
 *   TRY_WRITERS, TRY_READERS   so many of them, the last ones, only try
 *   FIFO              see above (1)
 *   WRITER_BATCH      asserts that no more writers than that enter while the gates stay closed
 * and what each part is for shows without it:
 *   COUNTS_FIRST=0    a reader looks at the gate before it is counted
 *   FIRST_OPENS=0     who parks first does not open idle gates
 *   UNCOUNTS=0        who opens idle gates stays counted while it waits for flight
 *   PARITIES=1        those who parked in even and in odd phases are counted together
 *   AWAITS_PARKED=0   a writer does not wait for those who parked in the last phase
 *   TURNS=0           writers pass the lock on as long as one waits
 *   LOOKS=0           a try_lock closes the gates before it looks at the counts
 *   LOOKS_AT_GATE=0   a try_lock_shared counts itself before it looks at the gate
 * Of all: shared.pml.
 */

#ifndef READERS
#define READERS 2
#endif
#ifndef WRITERS
#define WRITERS 1
#endif
#ifndef T_W
#define T_W 2
#endif
#ifndef CELLS
#define CELLS 1
#endif
#ifndef TRY_WRITERS
#define TRY_WRITERS 0
#endif
#ifndef TRY_READERS
#define TRY_READERS 0
#endif
#ifndef FIFO
#define FIFO 1
#endif
#ifndef COUNTS_FIRST
#define COUNTS_FIRST 1
#endif
#ifndef FIRST_OPENS
#define FIRST_OPENS 1
#endif
#ifndef UNCOUNTS
#define UNCOUNTS 1
#endif
#ifndef PARITIES
#define PARITIES 2
#endif
#ifndef AWAITS_PARKED
#define AWAITS_PARKED 1
#endif
#ifndef TURNS
#define TURNS 1
#endif
#ifndef LOOKS
#define LOOKS 1
#endif
#ifndef LOOKS_AT_GATE
#define LOOKS_AT_GATE 1
#endif

#include "shared.pml"

#define P (READERS + WRITERS)

/* ---- flight, abstracted ---- */

/* The note is for whoever the lock is passed to: the writers in a row, and whether they are quiet. */
byte note = 0;
#define NOTE(in_a_row, is_quiet) ((in_a_row) << 1 | (is_quiet))

#if FIFO
chan flight = [P] of { pid }; /* its holder and those who wait */
#define FLIGHT_IS_FREE empty(flight)
#define SOMEBODY_WAITS (len(flight) > 1)
#define FLIGHT_LOCK   \
  flight ! _pid;      \
  flight ? [eval(_pid)];
#define FLIGHT_TAKE flight ! _pid
#define FLIGHT_GIVE flight ? eval(_pid)
#else
bool flight_held = false;
byte flight_waiters = 0;
#define FLIGHT_IS_FREE (!flight_held)
#define SOMEBODY_WAITS (flight_waiters > 0)
#define FLIGHT_LOCK                                               \
  flight_waiters++;                                               \
  atomic { !flight_held -> flight_held = true; flight_waiters-- }
#define FLIGHT_TAKE flight_held = true
#define FLIGHT_GIVE flight_held = false
#endif

#define FLIGHT_UNLOCK(what) atomic { note = what; FLIGHT_GIVE }

/* ---- gates ---- */

#define OPEN 0
#define CLOSED 1
#define IDLE 2
#define GATE(state, e, q) (((e) & 3) << 4 | (q) << 2 | (state))
#define STATE(gate) ((gate) & 3)
#define QUIET_WANTED(gate) ((gate) >> 2 & 3)
#define EPOCH(gate) ((gate) >> 4)
#define MOST_QUIET 1

byte gates[CELLS] = 0;

/* ---- counts: in one word each ---- */

#define ACTIVE 1
#if PARITIES == 2
#define PARKED(e) ((e) % 2 == 0 -> 16 : 256)
#else
#define PARKED(e) 16
#endif
#define OF(one, word) ((word) / (one) & 15)
#if AWAITS_PARKED
#define GONE(word, e) (OF(ACTIVE, word) == 0 && OF(PARKED((e) + 1), word) == 0)
#else
#define GONE(word, e) (OF(ACTIVE, word) == 0)
#endif

short counts[CELLS] = 0;

#if CELLS == 1
#define OF_EACH_CELL(x) x(0)
#define ALL 1
#elif CELLS == 2
#define OF_EACH_CELL(x) x(0) x(1)
#define ALL 3
#else
#error "CELLS is 1 or 2"
#endif
#define TAKE_EFFECT(c) atomic { (posted & (1 << (c))) -> posted = posted & ~(1 << (c))

/* Puts take effect in any order; stores, to the writer's own node, as well. */
#define SET(c) :: TAKE_EFFECT(c); gates[c] = to }
inline flush_gates() {
  do
  OF_EACH_CELL(SET)
  :: atomic { posted == 0 -> to = 0; break }
  od
}
#define SET_GATES(word) atomic { posted = ALL; to = word } flush_gates()

#define MINE (me % CELLS)
#define OPEN_GATES(q) SET_GATES(GATE(OPEN, EPOCH(gates[MINE]) + 1, q))

/* ---- what bounds speak of ---- */

#ifdef WRITER_BATCH
byte writers_in_a_row = 0;
#define WRITER_OF_BATCH                                                                     \
  atomic {                                                                                  \
    writers_in_a_row = (STATE(gates[MINE]) == CLOSED -> writers_in_a_row + 1 : 0);          \
    assert(writers_in_a_row <= WRITER_BATCH)                                                \
  }
#define BATCH_ENDS writers_in_a_row = 0
#else
#define WRITER_OF_BATCH skip
#define BATCH_ENDS skip
#endif

/* ---- readers ---- */

inline open_and_enter() {
  if
  :: STATE(gates[MINE]) == OPEN
  :: STATE(gates[MINE]) != OPEN -> atomic { BATCH_ENDS }; OPEN_GATES(MOST_QUIET)
  fi;
  atomic { held = ACTIVE; counts[MINE] = counts[MINE] + held }
  FLIGHT_UNLOCK(0)
}

inline park() {
  epoch = EPOCH(found);
  atomic {
    held = PARKED(epoch);
    first = FIRST_OPENS && OF(held, counts[MINE]) == 0;
    counts[MINE] = counts[MINE] + held - ACTIVE
  }
  if
  :: EPOCH(gates[MINE]) != epoch
  :: EPOCH(gates[MINE]) == epoch && first && STATE(gates[MINE]) == IDLE ->
#if UNCOUNTS
    counts[MINE] = counts[MINE] - held;
#endif
    FLIGHT_LOCK
#if !UNCOUNTS
    counts[MINE] = counts[MINE] - held;
#endif
    open_and_enter()
  fi
}

#define ONLY_TRIES(p, all, triers) ((p) >= (all) - (triers))

proctype reader(byte me) {
  byte found = 0, epoch = 0, posted = 0, to = 0;
  short held = 0;
  bool first = false;
  ROUND_COUNTER

  do
  :: NEXT_ROUND ->
    if
    :: !ONLY_TRIES(me, READERS, TRY_READERS) -> /* lock_shared */
      WAITS(reader_waits);
#if !COUNTS_FIRST
      found = gates[MINE];
#endif
      atomic { held = ACTIVE; counts[MINE] = counts[MINE] + held }
#if COUNTS_FIRST
      found = gates[MINE];
#endif
      if
      :: STATE(found) == OPEN
      :: else -> park()
      fi
    :: TRY || ONLY_TRIES(me, READERS, TRY_READERS) -> /* try_lock_shared */
      found = gates[MINE];
      if
      :: LOOKS_AT_GATE && STATE(found) == CLOSED -> goto next_round
      :: LOOKS_AT_GATE && STATE(found) == IDLE ->
        if
        :: atomic { FLIGHT_IS_FREE -> FLIGHT_TAKE }
        :: goto next_round
        fi;
        open_and_enter()
      :: else ->
        atomic { held = ACTIVE; counts[MINE] = counts[MINE] + held }
        if
        :: STATE(gates[MINE]) == OPEN
        :: STATE(gates[MINE]) != OPEN -> counts[MINE] = counts[MINE] - held; goto next_round
        fi
      fi
    fi;

    reader_enters();
    reader_leaves();
    counts[MINE] = counts[MINE] - held;
next_round:
    atomic { found = 0; epoch = 0; held = 0; first = false }
  :: STOP -> break
  od;
  END
}

/* ---- writers ---- */

/* Whether no reader is left. One look at each cell, in any order. */
#define LOOK(c)                                          \
  :: TAKE_EFFECT(c);                                     \
     seen_any = seen_any || counts[c] != 0;              \
     gone = gone && GONE(counts[c], EPOCH(gates[MINE])) }

inline readers_are_gone() {
  atomic { posted = ALL; gone = true; seen_any = false }
  do
  OF_EACH_CELL(LOOK)
  :: posted == 0 -> break
  od;
  atomic { quiet = !seen_any; seen_any = false }
}

/* Polls; here whoever sees nothing new blocks. */
#define AWAIT(c)                                                        \
  :: TAKE_EFFECT(c);                                                    \
     seen_any = seen_any || counts[c] != 0;                             \
     if                                                                 \
     :: GONE(counts[c], EPOCH(gates[MINE])) -> skip                     \
     :: else -> GONE(counts[c], EPOCH(gates[MINE]))                     \
     fi }

inline await_readers() {
  atomic { posted = ALL; seen_any = false }
  do
  OF_EACH_CELL(AWAIT)
  :: posted == 0 -> break
  od;
  atomic { quiet = !seen_any; seen_any = false }
}

/* Closes the gates if they are open: `must_wait`. */
inline begin_turn() {
  atomic {
    if
    :: STATE(gates[MINE]) == CLOSED -> in_a_row = note >> 1; quiet = note & 1
    :: else -> in_a_row = 0; quiet = false
    fi;
    must_wait = STATE(gates[MINE]) == OPEN
  }
  if
  :: must_wait ->
    atomic { BATCH_ENDS }
    SET_GATES(GATE(CLOSED, EPOCH(gates[MINE]), QUIET_WANTED(gates[MINE])))
  :: else
  fi
}

#if TURNS
#define MAY_PASS (in_a_row + 1 < T_W)
#else
#define MAY_PASS true
#endif

proctype writer(byte me) {
  byte posted = 0, to = 0, in_a_row = 0;
  bool quiet = false, gone = false, seen_any = false, must_wait = false;
  ROUND_COUNTER

  do
  :: NEXT_WRITER_ROUND ->
    if
    :: !ONLY_TRIES(me, WRITERS, TRY_WRITERS) -> /* lock */
      WAITS(writer_waits);
      FLIGHT_LOCK
      begin_turn();
      if
      :: must_wait -> await_readers()
      :: else
      fi
    :: TRY || ONLY_TRIES(me, WRITERS, TRY_WRITERS) -> /* try_lock */
      if
      :: atomic { FLIGHT_IS_FREE -> FLIGHT_TAKE }
      :: goto next_round
      fi;
#if LOOKS
      if
      :: STATE(gates[MINE]) == OPEN ->
        readers_are_gone();
        if
        :: !gone -> FLIGHT_UNLOCK(0); goto next_round
        :: else
        fi
      :: STATE(gates[MINE]) != OPEN
      fi;
#endif
      begin_turn();
      if
      :: must_wait ->
        readers_are_gone();
        if
        :: !gone -> OPEN_GATES(MOST_QUIET); FLIGHT_UNLOCK(0); goto next_round
        :: else
        fi
      :: else
      fi
    fi;

    writer_enters();
    WRITER_OF_BATCH;
    writer_leaves();

    /* unlock */
    if
    :: STATE(gates[MINE]) == CLOSED ->
      if
      :: MAY_PASS && SOMEBODY_WAITS ->
        FLIGHT_UNLOCK(NOTE((TURNS -> in_a_row + 1 : 0), quiet));
        goto next_round
      :: true -> /* end_turn */
        if
        :: quiet && QUIET_WANTED(gates[MINE]) == 0 ->
          SET_GATES(GATE(IDLE, EPOCH(gates[MINE]), QUIET_WANTED(gates[MINE])))
        :: else -> OPEN_GATES((quiet -> QUIET_WANTED(gates[MINE]) - 1 : MOST_QUIET))
        fi
      fi
    :: STATE(gates[MINE]) != CLOSED
    fi;
    FLIGHT_UNLOCK(0);
next_round:
    atomic { in_a_row = 0; quiet = false; gone = false; must_wait = false }
  :: WRITER_STOP -> break
  od;
  END
}

init {
  byte p;
  atomic {
#if WRITERS > 0
    for (p : 0 .. WRITERS - 1) { run writer(p) }
#endif
#if READERS > 0
    for (p : 0 .. READERS - 1) { run reader(p) }
#endif
    p = 0
  }
}

#ifdef OBSERVE
ltl no_writer_starves { []<> !writer_waits }
ltl no_reader_starves { []<> !reader_waits }
#endif
