/* flight-rw: gates and reader counters of nodes, a directory, and a mutex among the writers.
 *
 * include/lockflight/lock/flight_rw.hpp and the headers of lock/flight_rw/, with the names that are
 * used there. Each node has a gate and one reader counter; the last node is the home's.
 *
 * flight is a lock that is first come, first served (flight.pml has its own model). Whether it is
 * passed with a value is the model's choice, as flight's budgets decide it; a value
 * may be lost. With FIFO=0 any waiter or arrival may be next. An attempt may fail.
 *
 * Macros of this model:
 *   NODES             1, 2 or 3
 *   DIRECTORY         0: all gates are in use, as on a machine of very many nodes
 *   READERS, READ_ON  reader r is on node r % READ_ON
 *   WRITERS           writer w is on node (w - 1) % NODES: from the home's on
 *   UPGRADERS         more participants, on nodes as readers are, which hold the lock for upgrade
 *                     or share it, go up, and go down again
 *   TRY_READERS       so many of them, the first ones, only try
 *   TIMED_READERS, TIMED_WRITERS   so many of them, the first ones, may give up whenever they wait
 *   LITTLE, MUCH      no more nodes than that are never dropped; more than that are not listed
 *   T_W, FIFO, UNLISTED_AT   the last one: the epoch and QUIET of unlisted gates at first
 *   OVERTAKING        how often a reader comes anew at a closed gate before it parks
 * and what each part is for shows without it. All of these are on unless they are given:
 *   COUNTS_FIRST=0    a reader reads the gate before it is counted
 *   PARITIES=0        readers that parked in even and in odd epochs are counted together
 *   PARITY=0          a parked reader enters at any other epoch
 *   COMES_ANEW=0      a parked reader does not come anew at an open or unlisted gate
 *   UNCOUNTS=0        a reader that opens idle gates stays counted while it waits for flight
 *   PARKS=0           a reader that is overtaken comes anew each time
 *   READS_FIRST=0     a try_lock_shared counts itself before it reads the gate
 *   ADDS_FIRST=0      a reader reads the home's gate, and then lists its node
 *   COUNTED=0         a reader is not counted while it opens its gate
 *   COMPARES=0        it opens the gate that it has claimed whatever that says by then
 *   OWN_CLAIM=0       a reader that goes for flight seems to list its node still
 *   LEAVES_IDLE=0     a reader that gives up leaves the gate to others as one that it will open
 *   AWAITS_PARKED=0   a writer does not wait for the readers that parked at the epoch before
 *   TURNS=0           writers pass the lock on as long as one waits
 *   HOME_FIRST=0      a writer that closes the gates reads the directory first
 *   READS_ANEW=0      it closes the nodes that it has opened, whatever was listed since
 *   REMOVES_FIRST=0   unlisted gates are put before their nodes are off the directory
 *   CLOSED_ALONE=0    a writer drops nodes whose gates it has not closed
 *   CLOSES_AGAIN=0    it leaves them idle without closing them
 *   SAME_EPOCH=0      a writer that gives up opens the gates for the next epoch
 *   LEAVES_ITSELF=0   a reader that goes up waits for itself to leave
 *   ATTEMPTS_UP=0     a reader waits to go up
 *   COUNTS_AT_ONCE=0  a writer that goes down releases flight before it is counted
 * Of all: shared.pml.
 */

#ifndef NODES
#define NODES 2
#endif
#ifndef DIRECTORY
#define DIRECTORY (NODES > 1)
#endif
#ifndef READERS
#define READERS 2
#endif
#ifndef READ_ON
#define READ_ON NODES
#endif
#ifndef WRITERS
#define WRITERS 1
#endif
#ifndef TRY_READERS
#define TRY_READERS 0
#endif
#ifndef TIMED_READERS
#define TIMED_READERS 0
#endif
#ifndef TIMED_WRITERS
#define TIMED_WRITERS 0
#endif
#ifndef UPGRADERS
#define UPGRADERS 0
#endif
#ifndef LITTLE
#define LITTLE 1
#endif
#ifndef MUCH
#define MUCH 1
#endif
#ifndef UNLISTED_AT
#define UNLISTED_AT 0
#endif
#ifndef T_W
#define T_W 2
#endif
#ifndef FIFO
#define FIFO 1
#endif
#ifndef OVERTAKING
#define OVERTAKING 0
#endif

#include "shared.pml"

#define P (READERS + WRITERS + UPGRADERS)

/* ---- gates, reader counters, the directory ---- */

#define HOME (NODES - 1)
#if NODES == 1
#define OF_EACH_NODE(x) x(0)
#elif NODES == 2
#define OF_EACH_NODE(x) x(0) x(1)
#else
#define OF_EACH_NODE(x) x(0) x(1) x(2)
#endif

/* A gate: its state, the epoch, whether no reader came in the writers' phase before, and whether
 * all gates say this. */
#define OPEN 0
#define CLOSED 1
#define IDLE 2
#ifndef OWN_CLAIM
#define OPENING 3
#else
#define OPENING CLAIMED
#endif
#define UNLISTED 4
#define CLAIMED 5
#define QUIET 32
#define ALL 64
#define STATE(gate) ((gate) & 7)
#define EPOCH(gate) ((gate) >> 3 & 3)
#define AS(state, gate) ((gate) & ~7 | (state))
#define NEXT_PHASE(gate) (AS(OPEN, gate) & ~(24 | QUIET) | (EPOCH(gate) + 1 & 3) << 3)
#define IS_IDLE(gate) (STATE(gate) == IDLE || STATE(gate) == OPENING)
#define IN_WRITE(gate) (STATE(gate) != OPEN && !IS_IDLE(gate))
#define NEEDS_READER(gate) (STATE(gate) == IDLE || STATE(gate) == UNLISTED)
#ifndef PARITY
#define LETS_IN(gate, e) (STATE(gate) <= CLOSED && (EPOCH(gate) - (e) & 1) != 0)
#else
#define LETS_IN(gate, e) (STATE(gate) <= CLOSED && EPOCH(gate) != (e))
#endif

byte gates[NODES] = 0;
byte listed = 0; /* the directory, a set of nodes */

#define OF(node) (1 << (node))
#define HAS(set, node) (((set) & OF(node)) != 0)
#define OTHERS(set) ((set) & OF(HOME) - 1) /* than the home's node */
#define SIZE(set) ((OTHERS(set) & 1) + OTHERS(set) / 2)

/* The readers of a counter, in one word. */
#define ACTIVE 1
#ifndef PARITIES
#define PARKED(e) ((e) % 2 == 0 -> 16 : 256)
#else
#define PARKED(e) 16
#endif
#define NUMBER(one, word) ((word) / (one) & 15)
#ifndef AWAITS_PARKED
#define GONE(word, e) (NUMBER(ACTIVE, word) == 0 && NUMBER(PARKED((e) + 1), word) == 0)
#else
#define GONE(word, e) (NUMBER(ACTIVE, word) == 0)
#endif

short counts[NODES] = 0;

/* ---- flight, abstracted ---- */

/* The handoff value: a writers' phase, the writers so far and whether it is quiet; that the gates
 * are idle; or nothing. */
byte value = 0;
#define ARE_IDLE 1

#if FIFO
chan flight = [P] of { pid }; /* its holder and its waiters */
#define SOMEBODY_WAITS (len(flight) > 1)
#define FLIGHT_WAIT flight ! _pid
#define FLIGHT_COMES flight ? [eval(_pid)]
#define FLIGHT_TAKE skip
#define FLIGHT_LEAVE flight ?? eval(_pid)
#define FLIGHT_TRY empty(flight) -> flight ! _pid
#define FLIGHT_GIVE flight ? eval(_pid)
#else
bool flight_held = false;
byte flight_waiters = 0;
#define SOMEBODY_WAITS (flight_waiters > 0)
#define FLIGHT_WAIT flight_waiters++
#define FLIGHT_COMES (!flight_held)
#define FLIGHT_TAKE flight_held = true; flight_waiters--
#define FLIGHT_LEAVE flight_waiters--
#define FLIGHT_TRY !flight_held -> flight_held = true
#define FLIGHT_GIVE flight_held = false
#endif

#define UNLOCK atomic { value = 0; FLIGHT_GIVE }
#define UNLOCK_IDLE if :: atomic { value = ARE_IDLE; FLIGHT_GIVE } :: UNLOCK fi

/* ---- the holder of flight ---- */

/* Its writers' phase, what it knows of the home's gate and of the set, where it has seen readers,
 * and what it puts to the gates. */
#define HOLDER \
  byte writers = 0, now = 0, known = 0, seen = 0, posted = 0, to = 0, keep = 0; \
  bool quiet = false, knows_gate = false, knows_set = false, has_closed = false, were_idle = false
#define FORGET \
  writers = 0; now = 0; known = 0; seen = 0; \
  quiet = false; knows_gate = false; knows_set = false; has_closed = false

#define IS_FEW(gate) (DIRECTORY && ((gate) & ALL) == 0)
#define IS_USED(gate, set, node) (!IS_FEW(gate) || (node) == HOME || HAS(set, node))
#define USED(n) (IS_USED(now, known, n) -> OF(n) : 0) |
#define NODES_IN_USE (OF_EACH_NODE(USED) 0)

/* The home's gate; any gate that is open or closed says the same. */
inline learn_gate() {
  if
  :: knows_gate
  :: atomic { !knows_gate -> knows_gate = true; now = gates[own] }
    WHEN(own != HOME && DIRECTORY && STATE(now) > CLOSED, now = gates[HOME]);
    now = (IS_IDLE(now) -> AS(IDLE, now) : now)
  fi
}

inline learn_set() {
  atomic { WHEN(!knows_set && IS_FEW(now), known = listed; knows_set = true) }
}

/* What the last holder passed says what the gates do, or nothing, and then they are read. */
inline start() {
  atomic {
    if
    :: value == 0
    :: value == ARE_IDLE -> now = IDLE
    :: value > ARE_IDLE -> now = CLOSED; writers = value >> 1; quiet = value & 1
    fi;
    value = 0
  }
  WHEN(now == 0, learn_gate())
}

inline take_flight(until) {
  FLIGHT_WAIT;
  if
  :: atomic { FLIGHT_COMES -> FLIGHT_TAKE } start()
  :: atomic { until && !FLIGHT_COMES -> FLIGHT_LEAVE; gave_up = true }
  fi
}

inline try_flight() {
  if
  :: atomic { FLIGHT_TRY } start()
  :: gave_up = true
  fi
}

#define LIST_ONLY atomic { WHEN(IS_FEW(to) && keep != known, listed = listed + keep - known) }
#define TAKE_EFFECT(n) atomic { HAS(posted, n) -> posted = posted & ~OF(n)
#define POSTS(n) (IS_USED(to, keep, n) || IS_USED(now, known, n) -> OF(n) : 0) |
#define PUT(n) \
  :: TAKE_EFFECT(n); gates[n] = (IS_USED(to, keep, n) -> to : AS(UNLISTED, now) & ~ALL) }

/* The gates of the nodes `keep` and the home's say `to` then, or, if it says so, those of all;
 * others that were in use are unlisted. Puts, and the store to the own gate, in any order. */
inline put_gates() {
  atomic { WHEN(IS_FEW(to) && !IS_FEW(now), known = listed) } /* the set was not used */
#ifndef REMOVES_FIRST
  LIST_ONLY
#endif
  posted = OF_EACH_NODE(POSTS) 0;
  do
  OF_EACH_NODE(PUT)
  :: atomic { posted == 0 -> break }
  od;
#ifdef REMOVES_FIRST
  LIST_ONLY
#endif
  atomic { known = (IS_FEW(to) -> keep : known); now = to; to = 0; keep = 0 }
}
#define PUT_GATES(gate, set) atomic { to = gate; keep = set } put_gates()

inline close() {
#ifndef READS_ANEW
  knows_set = false;
#endif
#ifdef HOME_FIRST
  learn_set();
#endif
  WHEN(IS_FEW(now), gates[HOME] = AS(CLOSED, now); learn_set());
  has_closed = true;
  PUT_GATES(AS(CLOSED, now), known)
}

/* For the same epoch, since readers that parked at the one before may not have left. */
#ifndef SAME_EPOCH
#define REOPENED (AS(OPEN, now) & ~QUIET)
#else
#define REOPENED NEXT_PHASE(now)
#endif

#define SAYS_ALL (IS_FEW(now) && SIZE(known) > MUCH)
#ifndef CLOSED_ALONE
#define DROPS (IS_FEW(now) && has_closed && SIZE(known) > LITTLE)
#else
#define DROPS (IS_FEW(now) && SIZE(known) > LITTLE)
#endif
#define OPEN_FOR(gate) PUT_GATES((gate) | (SAYS_ALL -> ALL : 0), (DROPS -> known & seen : known))

/* Opens gates for a new phase, if they are not open. */
inline open_gates() {
  if
  :: STATE(now) == OPEN
  :: else ->
    were_idle = STATE(now) == IDLE;
    learn_gate();
    WHEN(were_idle && IS_FEW(now), gates[HOME] = NEXT_PHASE(now));
    were_idle = false;
    learn_set();
    OPEN_FOR(NEXT_PHASE(now))
  fi
}

#define SEE(n) seen = (counts[n] != 0 -> seen | OF(n) : seen)
#define IS_QUIET (seen == 0 || (((now) & ALL) != 0 && SIZE(seen) <= LITTLE))

/* Polls; here a writer that sees nothing new blocks. */
#define AWAIT(n) \
  :: TAKE_EFFECT(n); \
     SEE(n); \
     if \
     :: GONE(counts[n], EPOCH(now)) -> skip \
     :: else -> \
       if \
       :: GONE(counts[n], EPOCH(now)) \
       :: timed -> gave_up = true; posted = 0 \
       fi \
     fi }

inline await_readers() {
  atomic { posted = NODES_IN_USE; seen = 0 }
  do
  OF_EACH_NODE(AWAIT)
  :: posted == 0 -> break
  od
}

#define READ(n) :: TAKE_EFFECT(n); SEE(n) }

inline end_phase() {
  learn_gate();
  learn_set();
  if
  :: quiet && (writers > 1 || (now & QUIET) != 0) ->
#ifndef CLOSES_AGAIN
    WHEN(!has_closed && IS_FEW(now) && (now & QUIET) != 0, close());
#endif
    atomic { posted = NODES_IN_USE; seen = 0 }
    do
    OF_EACH_NODE(READ)
    :: posted == 0 -> break
    od;
    quiet = IS_QUIET
  :: else
  fi;
  if
  :: !quiet || (now & QUIET) == 0 -> OPEN_FOR(NEXT_PHASE(now) | (quiet -> QUIET : 0))
  :: quiet && (now & QUIET) != 0 && DIRECTORY && OTHERS(seen) != 0 ->
    PUT_GATES(NEXT_PHASE(now) & ~ALL, OTHERS(seen))
  :: else -> PUT_GATES(AS(IDLE, now) & ~ALL, 0)
  fi
}

/* ---- readers ---- */

#define READER \
  byte found = 0, they = 0, epoch = 0, overtaken = 0; \
  short held = 0; \
  bool must_open = false, is_in = false, timed = false, gave_up = false

#define COUNT_AS(what) counts[own] = counts[own] + (what) - held; held = what
#define COUNT(what) atomic { COUNT_AS(what) }
#define ASKS_HOME (DIRECTORY && own != HOME)
#define CLAIM AS((ASKS_HOME -> CLAIMED : OPENING), found)
#ifndef COMPARES
#define IS_OURS (gates[own] == CLAIM)
#else
#define IS_OURS true
#endif

/* For a reader that is counted as active and has found a gate that needs one. `must_open`: the
 * others are idle. */
inline open_gate(until) {
#ifdef COUNTED
  counts[own] = counts[own] - held;
#endif
  if
  :: gates[own] != found
  :: atomic { gates[own] == found -> gates[own] = CLAIM }
    if
    :: !ASKS_HOME -> must_open = true
    :: ASKS_HOME ->
#ifdef ADDS_FIRST
      they = gates[HOME];
#endif
      WHEN(STATE(found) == UNLISTED,
        atomic { assert(!HAS(listed, own)); listed = listed + OF(own) });
#ifndef ADDS_FIRST
      they = gates[HOME];
#endif
      do
      :: atomic {
          IS_IDLE(they) && IS_OURS -> gates[own] = AS(OPENING, found); must_open = true; break
        }
      :: atomic { STATE(they) == OPEN && IS_OURS -> gates[own] = they; break }
      :: gates[own] != CLAIM -> break
      :: atomic { until && IN_WRITE(they) && IS_OURS -> gates[own] = AS(IDLE, found); break }
      :: atomic { IN_WRITE(they) && gates[HOME] != they -> they = gates[HOME] }
      od;
      they = 0
    fi
  fi;
#ifdef COUNTED
  counts[own] = counts[own] + held
#endif
}

/* Whether the gate has let us in; else we come anew, or time is over. */
inline park() {
  atomic { epoch = EPOCH(found); COUNT_AS(PARKED(epoch)) }
  if
  :: LETS_IN(gates[own], epoch) -> is_in = true
#ifndef COMES_ANEW
  :: !LETS_IN(gates[own], epoch) && (STATE(gates[own]) == OPEN || STATE(gates[own]) == UNLISTED)
#endif
  :: STATE(gates[own]) == IDLE
  :: timed && !LETS_IN(gates[own], epoch)
  fi;
  epoch = 0
}

/* A reader that is counted as active, and has found `found`. */
inline wait() {
  do
  :: STATE(found) == OPEN || is_in -> break
  :: else ->
    if
    :: NEEDS_READER(found) -> open_gate(timed)
    :: !NEEDS_READER(found) && !timed && overtaken < OVERTAKING ->
      COUNT(0);
      found = gates[own];
      WHEN(STATE(found) != OPEN && !NEEDS_READER(found), gates[own] != found);
#ifndef PARKS
      overtaken++
#endif
    :: else -> park()
    fi;
    if
    :: is_in
    :: must_open ->
#ifndef UNCOUNTS
      COUNT(0);
#endif
      break
    :: !is_in && !must_open && timed -> COUNT(0); gave_up = true; break
    :: !is_in && !must_open ->
      WHEN(held != ACTIVE, COUNT(ACTIVE));
      found = gates[own]
    fi
  od
}

inline open_and_enter() {
  open_gates();
#ifdef COUNTS_AT_ONCE
  UNLOCK;
#endif
  COUNT(ACTIVE);
  do /* enter_with_flight */
  :: STATE(gates[own]) == OPEN -> break
  :: atomic { IS_IDLE(gates[own]) || STATE(gates[own]) == UNLISTED -> found = gates[own] }
    open_gate(false)
#ifdef COUNTS_AT_ONCE
  :: STATE(gates[own]) == CLOSED -> break
#endif
  od;
#ifndef COUNTS_AT_ONCE
  UNLOCK
#endif
}

#define END_OF_ROUND \
  found = 0; overtaken = 0; must_open = false; is_in = false; timed = false; FORGET

proctype reader(byte me; byte own) {
  bool tries = false;
  READER;
  HOLDER;
  ROUND_COUNTER

  do
  :: NEXT_ROUND ->
    if
    :: me >= TRY_READERS && me >= TIMED_READERS -> WAITS(reader_waits) /* lock_shared */
    :: me < TIMED_READERS -> /* try_lock_shared_within */
      atomic { timed = true; found = gates[own] }
      if
      :: STATE(found) != CLOSED || gates[own] != found
      :: STATE(found) == CLOSED -> gave_up = true
      fi
    :: TRY || me < TRY_READERS -> /* try_lock_shared */
      atomic {
        tries = true; found = gates[own];
#ifndef READS_FIRST
        gave_up = STATE(found) != OPEN && !NEEDS_READER(found)
#endif
      }
    fi;
    if
    :: gave_up
    :: else ->
#ifndef COUNTS_FIRST
      COUNT(ACTIVE);
      found = gates[own];
#else
      found = gates[own];
      COUNT(ACTIVE);
#endif
      if
      :: !tries -> wait()
      :: tries ->
        WHEN(NEEDS_READER(found), open_gate(true); found = gates[own]);
        if
        :: must_open -> COUNT(0)
        :: !must_open && STATE(found) == OPEN
        :: !must_open && STATE(found) != OPEN -> COUNT(0); gave_up = true
        fi
      fi;
      if
      :: must_open ->
        if
        :: tries -> try_flight()
        :: !tries -> take_flight(timed)
        fi;
#ifdef UNCOUNTS
        COUNT(0);
#endif
        if
        :: !gave_up -> open_and_enter()
#ifndef LEAVES_IDLE
        :: gave_up -> atomic { /* leave_idle: its compare-swap fails only at a changed gate */
            gates[own] = (STATE(gates[own]) == OPENING -> AS(IDLE, gates[own]) : gates[own])
          }
#else
        :: gave_up
#endif
        fi
      :: else
      fi
    fi;
    atomic { tries = false; END_OF_ROUND }
    if
    :: gave_up -> gave_up = false
    :: else -> reader_enters(); reader_leaves(); COUNT(0)
    fi
  :: STOP -> break
  od;
  END
}

/* ---- writers ---- */

inline shut_out_readers() {
  WHEN(STATE(now) == OPEN,
    close();
    await_readers();
    if
    :: gave_up -> PUT_GATES(REOPENED, known)
    :: else -> atomic { writers = 0; quiet = IS_QUIET }
    fi)
}

#ifndef TURNS
#define MAY_PASS (writers < T_W)
#else
#define MAY_PASS true
#endif
inline unlock() {
  if
  :: STATE(now) == IDLE -> UNLOCK_IDLE
  :: else ->
    writers = (writers < T_W -> writers + 1 : writers);
    if
    :: atomic { MAY_PASS && SOMEBODY_WAITS -> value = writers << 1 | quiet; FLIGHT_GIVE }
    :: true ->
      end_phase();
      if :: STATE(now) == IDLE -> UNLOCK_IDLE :: else -> UNLOCK fi
    fi
  fi
}

proctype writer(byte me; byte own) {
  bool timed = false, gave_up = false;
  HOLDER;
  ROUND_COUNTER

  do
  :: NEXT_WRITER_ROUND ->
    if
    :: me >= TIMED_WRITERS -> WAITS(writer_waits); take_flight(false)
    :: me < TIMED_WRITERS -> timed = true; take_flight(true)
    :: TRY -> timed = true; try_flight()
    fi;
    if
    :: gave_up
    :: else ->
      shut_out_readers();
      if :: gave_up -> UNLOCK :: else -> writer_enters(); writer_leaves(); unlock() fi
    fi;
    atomic { timed = false; gave_up = false; FORGET }
  :: WRITER_STOP -> break
  od;
  END
}

/* ---- up and down ---- */

#if UPGRADERS
proctype upgrader(byte me; byte own) {
  READER;
  HOLDER;
  ROUND_COUNTER

  do
  :: NEXT_ROUND ->
    if
    :: true -> /* lock_upgrade */
      WAITS(writer_waits);
      take_flight(false);
      open_gates();
      atomic { assert(writers_in == 0); SERVED(writer_waits); readers_in++ }
    :: true -> /* lock_shared */
      COUNT(ACTIVE);
      found = gates[own];
      wait();
      WHEN(must_open, take_flight(false); open_and_enter());
      atomic { END_OF_ROUND; assert(writers_in == 0); readers_in++ }
#ifndef ATTEMPTS_UP
      try_flight();
#else
      take_flight(false);
#endif
      if
      :: gave_up -> gave_up = false; goto share
      :: else -> close() /* try_unlock_shared_and_lock */
      fi;
#ifndef LEAVES_ITSELF
      COUNT(0);
#endif
      await_readers();
      goto write
    fi;
upgrade:
    if
    :: true -> readers_in--; UNLOCK; goto next_round /* unlock_upgrade */
    :: true -> open_and_enter(); goto share /* unlock_upgrade_and_lock_shared */
    :: true -> shut_out_readers() /* unlock_upgrade_and_lock */
    fi;
write:
    atomic { readers_in--; writer_enters() }
    if
    :: atomic { writers_in--; readers_in++ } open_and_enter() /* unlock_and_lock_shared */
    :: atomic { writers_in--; readers_in++ } open_gates(); goto upgrade
    :: writer_leaves(); unlock(); goto next_round
    fi;
share:
    reader_leaves();
    COUNT(0);
next_round:
    atomic { END_OF_ROUND }
  :: STOP -> break
  od;
  END
}
#endif

init {
  byte p;
  atomic {
#if DIRECTORY
    for (p : 0 .. NODES - 1) { gates[p] = (p == HOME -> OPEN : UNLISTED | UNLISTED_AT) }
    p = 0;
#endif
    do :: p < WRITERS -> run writer(p, (HOME + p) % NODES); p++ :: else -> break od;
    p = 0;
#if UPGRADERS
    do :: p < UPGRADERS -> run upgrader(p, p % READ_ON); p++ :: else -> break od;
    p = 0;
#endif
    do :: p < READERS -> run reader(p, p % READ_ON); p++ :: else -> break od;
    p = 0
  }
}

#ifdef OBSERVE
ltl no_writer_starves { []<> !writer_waits }
ltl no_reader_starves { []<> !reader_waits }
#endif
