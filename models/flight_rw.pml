/* flight-rw: gates and counters of readers at each cell, and a mutex among the writers.
 *
 * include/lockflight/lock/flight_rw/reader_side.hpp, flight_rw/writer_side.hpp and flight_rw.hpp, with the names that
 * they have there. Nobody gives up in time. There is a gate for each cell, or, with MOVES, one gate
 * and cells of two kinds, as with `adaptive`: whether readers change to the others when a turn ends
 * is the writer's choice, whatever flight_rw/turn_policy.hpp would say; T_W stays as it is. A bias of the gates
 * saves an atomic, and here each store is seen at once (flight.pml): the checker has both.
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
 *   MOVES             1: each reader has a cell of its own, and all have one together
 *   UPGRADERS         so many more, which hold the lock for upgrade or share it, go up, and down again
 *   OVERTAKING        so often a reader comes anew at a closed gate before it parks
 *   WRITER_BATCH      asserts that no more writers than that enter while the gates stay closed
 * and what each part is for shows without it:
 *   COUNTS_FIRST=0    a reader looks at the gate before it is counted
 *   FIRST_OPENS=0     who parks first does not open idle gates
 *   UNCOUNTS=0        who opens idle gates stays counted while it waits for flight
 *   PARKS=0           a reader that is passed by comes anew each time
 *   PARITIES=1        those who parked in even and in odd phases are counted together
 *   AWAITS_PARKED=0   a writer does not wait for those who parked in the last phase
 *   TURNS=0           writers pass the lock on as long as one waits
 *   LOOKS=0           a try_lock closes the gates before it looks at the counts
 *   LOOKS_AT_GATE=0   a try_lock_shared counts itself before it looks at the gate
 *   CELL_CHANGES=0    a reader stays where it was counted last, whatever the gate says
 *   LOOKS_ANEW=0      a reader that changes its cell does not look at the gate again
 *   REMEMBERS=0       a writer does not look at the other cells after a change
 *   FORGETS_ITSELF=0  who goes up waits for itself to stop reading
 *   ATTEMPTS_UP=0     who shares the lock waits to go up
 *   COUNTS_AT_ONCE=0  who goes down lets flight go before it is counted
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

#ifndef MOVES
#define MOVES 0
#endif
#ifndef UPGRADERS
#define UPGRADERS 0
#endif
#ifndef OVERTAKING
#define OVERTAKING 0
#endif
#ifndef PARKS
#define PARKS 1
#endif
#ifndef CELL_CHANGES
#define CELL_CHANGES 1
#endif
#ifndef LOOKS_ANEW
#define LOOKS_ANEW 1
#endif
#ifndef REMEMBERS
#define REMEMBERS 1
#endif
#ifndef FORGETS_ITSELF
#define FORGETS_ITSELF 1
#endif
#ifndef ATTEMPTS_UP
#define ATTEMPTS_UP 1
#endif
#ifndef COUNTS_AT_ONCE
#define COUNTS_AT_ONCE 1
#endif

#include "shared.pml"

#define P (READERS + WRITERS + UPGRADERS)

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
#define QUIET(gate) ((gate) >> 2 & 3)
#define EPOCH(gate) ((gate) >> 4 & 3)
#define MOST_QUIET 1
#define GATHERED 64 /* readers count themselves in the cell that all share */
#define MOVED 128   /* and those who parked in the phase before in the others, or the other way */
#define PLACE (gates[MINE] & (GATHERED | MOVED))

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

#if CELLS == 1
#define OF_EACH_GATE(x) x(0)
#define ALL 1
#elif CELLS == 2
#define OF_EACH_GATE(x) x(0) x(1)
#define ALL 3
#else
#error "CELLS is 1 or 2"
#endif

/* Cells of two kinds: a reader's own, and the last one, of all. */
#if MOVES
#if READERS + UPGRADERS == 1
#define FEW 1
#define OF_EACH_CELL(x) x(0) x(1)
#elif READERS + UPGRADERS == 2
#define FEW 2
#define OF_EACH_CELL(x) x(0) x(1) x(2)
#else
#error "MOVES is for one reader or two"
#endif
#define COUNTS (FEW + 1)
#define ALL_FEW ((1 << FEW) - 1)
#define USED(gate) (((gate) & GATHERED) != 0 -> 1 << FEW : ALL_FEW)
#if REMEMBERS
#define TO_LOOK_AT (((gates[MINE] & MOVED) != 0) -> ALL_FEW | 1 << FEW : USED(gates[MINE]))
#else
#define TO_LOOK_AT USED(gates[MINE])
#endif
#define CELL (in_all -> FEW : _pid % FEW)
#else
#define OF_EACH_CELL OF_EACH_GATE
#define COUNTS CELLS
#define TO_LOOK_AT ALL
#define CELL MINE
#endif

short counts[COUNTS] = 0;

#define TAKE_EFFECT(c) atomic { (posted & (1 << (c))) -> posted = posted & ~(1 << (c))

/* Puts take effect in any order; stores, to the writer's own node, as well. */
#define SET(c) :: TAKE_EFFECT(c); gates[c] = to }
inline flush_gates() {
  do
  OF_EACH_GATE(SET)
  :: atomic { posted == 0 -> to = 0; break }
  od
}
#define SET_GATES(word) atomic { posted = ALL; to = word } flush_gates()

#define MINE (me % CELLS)
#define OPEN_GATES(q) SET_GATES(GATE(OPEN, EPOCH(gates[MINE]) + 1, q) | PLACE & GATHERED)
#define MOVE_GATES(q) \
  SET_GATES(GATE(OPEN, EPOCH(gates[MINE]) + 1, q) | (PLACE & GATHERED ^ GATHERED) | MOVED)

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

/* Looks at the gate, for who is counted as active, and changes the cell if the gate says so. */
inline look_when_counted() {
  found = gates[MINE];
#if MOVES && CELL_CHANGES
  if
  :: in_all == ((found & GATHERED) != 0)
  :: else ->
#if LOOKS_ANEW
    atomic { in_all = !in_all; counts[CELL] = counts[CELL] + ACTIVE }
    found = gates[MINE];
    atomic { in_all = (found & GATHERED) == 0; counts[CELL] = counts[CELL] - ACTIVE; in_all = !in_all }
#else
    counts[CELL] = counts[CELL] - ACTIVE;
    atomic { in_all = !in_all; counts[CELL] = counts[CELL] + ACTIVE }
#endif
  fi
#endif
}

/* For who has flight, since nobody moves the cells then. */
inline count_with_flight() {
  atomic {
#if MOVES
    in_all = (gates[MINE] & GATHERED) != 0;
#endif
    held = ACTIVE; counts[CELL] = counts[CELL] + held
  }
}

inline let_readers_in() {
  if
  :: STATE(gates[MINE]) == OPEN
  :: STATE(gates[MINE]) != OPEN -> atomic { BATCH_ENDS }; OPEN_GATES(0)
  fi
}

inline open_and_enter() {
  let_readers_in();
#if COUNTS_AT_ONCE
  count_with_flight();
  FLIGHT_UNLOCK(0)
#else
  FLIGHT_UNLOCK(0);
  count_with_flight()
#endif
}

/* A reader that is counted, and has found its gate closed, is not waited for while it waits. */
inline let_turns_pass() {
  do
  :: STATE(found) == CLOSED && turns_passed < OVERTAKING ->
    counts[CELL] = counts[CELL] - held;
    (STATE(gates[MINE]) != CLOSED || EPOCH(gates[MINE]) != EPOCH(found));
    counts[CELL] = counts[CELL] + held;
    look_when_counted();
#if PARKS
    turns_passed++
#endif
  :: else -> break
  od;
  turns_passed = 0
}

inline park() {
  epoch = EPOCH(found);
  atomic {
    held = PARKED(epoch);
    first = FIRST_OPENS && OF(held, counts[CELL]) == 0;
    counts[CELL] = counts[CELL] + held - ACTIVE
  }
  if
  :: EPOCH(gates[MINE]) != epoch
  :: EPOCH(gates[MINE]) == epoch && first && STATE(gates[MINE]) == IDLE ->
#if UNCOUNTS
    counts[CELL] = counts[CELL] - held;
#endif
    FLIGHT_LOCK
#if !UNCOUNTS
    counts[CELL] = counts[CELL] - held;
#endif
    open_and_enter()
  fi
}

#define ONLY_TRIES(p, all, triers) ((p) >= (all) - (triers))

proctype reader(byte me) {
  byte found = 0, epoch = 0, posted = 0, to = 0;
  short held = 0;
  bool first = false;
#if MOVES
  bool in_all = false;
#endif
#if OVERTAKING
  byte turns_passed = 0;
#endif
  ROUND_COUNTER

  do
  :: NEXT_ROUND ->
    if
    :: !ONLY_TRIES(me, READERS, TRY_READERS) -> /* lock_shared */
      WAITS(reader_waits);
#if !COUNTS_FIRST
      found = gates[MINE];
#endif
      atomic { held = ACTIVE; counts[CELL] = counts[CELL] + held }
#if COUNTS_FIRST
      look_when_counted();
#endif
#if OVERTAKING
      let_turns_pass();
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
        atomic { held = ACTIVE; counts[CELL] = counts[CELL] + held }
        look_when_counted();
        if
        :: STATE(found) == OPEN
        :: else -> counts[CELL] = counts[CELL] - held; goto next_round
        fi
      fi
    fi;

    reader_enters();
    reader_leaves();
    counts[CELL] = counts[CELL] - held;
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
  atomic { posted = TO_LOOK_AT; gone = true; seen_any = false }
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
  atomic { posted = TO_LOOK_AT; seen_any = false }
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
    SET_GATES(GATE(CLOSED, EPOCH(gates[MINE]), QUIET(gates[MINE])) | PLACE)
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
        :: !gone -> OPEN_GATES(0); FLIGHT_UNLOCK(0); goto next_round
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
        :: quiet && QUIET(gates[MINE]) >= MOST_QUIET ->
          SET_GATES(GATE(IDLE, EPOCH(gates[MINE]), QUIET(gates[MINE])) | PLACE)
        :: !(quiet && QUIET(gates[MINE]) >= MOST_QUIET) ->
          OPEN_GATES((quiet -> QUIET(gates[MINE]) + 1 : 0))
#if MOVES
        :: !(quiet && QUIET(gates[MINE]) >= MOST_QUIET) ->
          MOVE_GATES((quiet -> QUIET(gates[MINE]) + 1 : 0))
#endif
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

/* ---- up and down ---- */

#if UPGRADERS
proctype upgrader(byte me) {
  byte posted = 0, to = 0, in_a_row = 0, found = 0, epoch = 0;
  short held = 0;
  bool quiet = false, gone = false, seen_any = false, must_wait = false, first = false;
#if MOVES
  bool in_all = false;
#endif
  ROUND_COUNTER

  do
  :: NEXT_ROUND ->
    if
    :: true -> /* lock_upgrade */
      WAITS(writer_waits);
      FLIGHT_LOCK
      let_readers_in();
      atomic { assert(writers_in == 0); readers_in++ }
      if
      :: true -> /* unlock_upgrade */
        atomic { readers_in--; SERVED(writer_waits) }
        FLIGHT_UNLOCK(0);
        goto next_round
      :: true -> /* unlock_upgrade_and_lock_shared */
        atomic { SERVED(writer_waits) }
        open_and_enter();
        goto shares
      :: true -> /* unlock_upgrade_and_lock */
        begin_turn();
        if
        :: must_wait -> await_readers()
        :: else
        fi
      fi
    :: true -> /* lock_shared, try_unlock_shared_and_lock */
      atomic { held = ACTIVE; counts[CELL] = counts[CELL] + held }
      look_when_counted();
      if
      :: STATE(found) == OPEN
      :: else -> park()
      fi;
      atomic { assert(writers_in == 0); readers_in++ }
      if
#if ATTEMPTS_UP
      :: atomic { FLIGHT_IS_FREE -> FLIGHT_TAKE }
      :: goto shares
#else
      :: true -> FLIGHT_LOCK
#endif
      fi;
      begin_turn();
#if FORGETS_ITSELF
      counts[CELL] = counts[CELL] - held;
#endif
      await_readers()
    fi;

    /* Nobody else has written since we read. */
    atomic { readers_in--; writer_enters() }

    /* and down */
    if
    :: atomic { writers_in--; readers_in++ }
      open_and_enter(); /* unlock_and_lock_shared */
      goto shares
    :: atomic { writers_in--; readers_in++ }
      let_readers_in(); /* unlock_and_lock_upgrade, unlock_upgrade */
      readers_in--;
      FLIGHT_UNLOCK(0);
      goto next_round
    fi;
shares:
    readers_in--;
    counts[CELL] = counts[CELL] - held;
next_round:
    atomic {
      found = 0; epoch = 0; held = 0; first = false;
      in_a_row = 0; quiet = false; gone = false; must_wait = false
    }
  :: STOP -> break
  od;
  END
}
#endif

init {
  byte p;
  atomic {
#if WRITERS > 0
    for (p : 0 .. WRITERS - 1) { run writer(p) }
#endif
#if UPGRADERS > 0
    for (p : WRITERS .. WRITERS + UPGRADERS - 1) { run upgrader(p) }
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
