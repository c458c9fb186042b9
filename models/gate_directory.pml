/* flight-rw's directory of open gates: nodes, of which only some have gates that are in use.
 *
 * include/lockflight/lock/flight_rw/directory.hpp, flight_rw/listing.hpp, flight_rw/writer_side.hpp, flight_rw/reader_side.hpp
 * and flight_rw.hpp, with the names that they have there. Each node has a gate and a cell; the last
 * node is the home's. Nobody gives up, and no writer only tries. What the directory says is written only by who
 * has flight, which so reads it when it takes flight.
 *
 * flight is a lock that is first come, first served. Whether it will be passed on while somebody
 * waits is its own choice, and what is noted when it is let go may be lost, as its budgets have it;
 * while nobody waits it keeps none but that gates are idle, and may lose that (flight.pml). With FIFO=0 anybody who waits or comes may be next (flight_rw.pml).
 *
 * Macros of this model:
 *   NODES             2 or 3
 *   READERS, READ_ON  reader r is on node r % READ_ON
 *   TRY_READERS       so many of them, the first ones, only try, and take no flight for that
 *   WRITERS, WRITE_ON writer w is on node (WRITE_ON + w) % NODES: the last node and those after it
 *   ROOM              nodes of the directory besides the home's: 1, or 0, so that few nodes show
 *                     what happens when there are more
 *   BROADCASTS        1: if there are more all gates are opened; 0: those alone where readers are
 *                     seen
 *   STARTS_OPEN       1: the gates of all nodes are open at first; 0: nobody is listed
 *   T_W, FIFO
 * and what each part is for shows without it:
 *   PARITY=0              who has parked enters at any other epoch
 *   IN_USE_ALONE=0        nor does it matter whether a writer minds that gate
 *   COMES_ANEW=0          who has parked does not come anew at an open gate
 *   LOOKS_AFTER=0         who parks first does not list its node, nor open idle gates
 *   KEEPS_LOOKING_AFTER=0 who looks after its cell and comes anew no longer does
 *   COUNTED=0             who lists its node is not counted meanwhile
 *   ADDS_FIRST=0          it looks what is said, and then adds its node
 *   TAKES_EPOCH=0         it leaves its gate at the epoch that it has
 *   COMPARES=0            it puts the gate that it has claimed whatever that says by then
 *   AWAITS_COMING=0       who has flight opens its gate while another lists the node
 *   ANNOUNCES=0           who closes few gates looks who is listed before it says that it does
 *   CLEARS_FIRST=0        who unlists gates takes their nodes off the list afterwards
 *   SAYS_CLOSED=0         who lists few nodes does not say first that all gates are closed
 *   WRITES_FLAG=0         who opens all gates does not write there that they are of all nodes
 *   LOOKS_AGAIN=0         who leaves gates idle does not look again who waits
 *   LOOKS_ANEW=0          who ends a turn that others began, and unlists gates, does not look where
 *                         readers are
 *   SEES_ITSELF=0         nor does a reader that opens the gates
 *   LEAVES_OPEN=0         who leaves gates idle does so where it has seen readers
 *   TELLS=0               who passes flight on with its turn does not tell
 *   AWAITS_FLIGHT=0       who takes flight reads the directory before
 *   COUNTS_FIRST=0        who passes flight on, since others opened its gate, is not counted before
 * Of all: shared.pml.
 */

#ifndef NODES
#define NODES 2
#endif
#ifndef READERS
#define READERS 2
#endif
#ifndef READ_ON
#define READ_ON 2
#endif
#ifndef TRY_READERS
#define TRY_READERS 0
#endif
#ifndef WRITERS
#define WRITERS 1
#endif
#ifndef WRITE_ON
#define WRITE_ON (NODES - 1)
#endif
#ifndef ROOM
#define ROOM 1
#endif
#ifndef BROADCASTS
#define BROADCASTS 1
#endif
#ifndef STARTS_OPEN
#define STARTS_OPEN 0
#endif
#ifndef T_W
#define T_W 2
#endif
#ifndef FIFO
#define FIFO 1
#endif
#ifndef PARITY
#define PARITY 1
#endif
#ifndef IN_USE_ALONE
#define IN_USE_ALONE 1
#endif
#ifndef COMES_ANEW
#define COMES_ANEW 1
#endif
#ifndef LOOKS_AFTER
#define LOOKS_AFTER 1
#endif
#ifndef KEEPS_LOOKING_AFTER
#define KEEPS_LOOKING_AFTER 1
#endif
#ifndef COUNTED
#define COUNTED 1
#endif
#ifndef ADDS_FIRST
#define ADDS_FIRST 1
#endif
#ifndef TAKES_EPOCH
#define TAKES_EPOCH 1
#endif
#ifndef COMPARES
#define COMPARES 1
#endif
#ifndef AWAITS_COMING
#define AWAITS_COMING 1
#endif
#ifndef ANNOUNCES
#define ANNOUNCES 1
#endif
#ifndef CLEARS_FIRST
#define CLEARS_FIRST 1
#endif
#ifndef SAYS_CLOSED
#define SAYS_CLOSED 1
#endif
#ifndef WRITES_FLAG
#define WRITES_FLAG 1
#endif
#ifndef LOOKS_AGAIN
#define LOOKS_AGAIN 1
#endif
#ifndef LOOKS_ANEW
#define LOOKS_ANEW 1
#endif
#ifndef SEES_ITSELF
#define SEES_ITSELF 1
#endif
#ifndef LEAVES_OPEN
#define LEAVES_OPEN 1
#endif
#ifndef TELLS
#define TELLS 1
#endif
#ifndef AWAITS_FLIGHT
#define AWAITS_FLIGHT 1
#endif
#ifndef COUNTS_FIRST
#define COUNTS_FIRST 1
#endif

#include "shared.pml"

#define P (READERS + WRITERS)

/* ---- gates, counts, and the directory ---- */

#define HOME (NODES - 1)
#if NODES == 2
#define OF_EACH_NODE(x) x(0) x(1)
#elif NODES == 3
#define OF_EACH_NODE(x) x(0) x(1) x(2)
#else
#error "NODES is 2 or 3"
#endif

/* A gate: its state, turns in a row that were quiet, the epoch, and whether it is one of few. */
#define OPEN 0
#define CLOSED 1
#define IDLE 2
#define UNLISTED 3
#define COMING 4
#define LISTED 5
#define STATE(gate) ((gate) & 7)
#define QUIET(gate) ((gate) >> 3 & 3)
#define EPOCH(gate) ((gate) >> 5 & 3)
#define FEW 128
#define IS_FEW(gate) (((gate) & FEW) != 0)
#define AS(state, gate) ((gate) & ~7 | (state))
#define NEXT_PHASE(gate, q) ((gate) & FEW | (EPOCH(gate) + 1 & 3) << 5 | (q) << 3 | OPEN)
#define MOST_QUIET 1

byte gates[NODES] = 0;
byte says = 0;   /* the directory: what the gates in use say, */
byte listed = 0; /* and of which nodes they are, besides the home's */

/* Sets of nodes. */
#define OF(node) (1 << (node))
#define HAS(set, node) (((set) & OF(node)) != 0)
#define OTHERS(set) ((set) & ~OF(HOME))
#define WITH_HOME(set) ((set) | OF(HOME))
#define HAS_ROOM_FOR(set) (ROOM == 0 -> OTHERS(set) == 0 : (OTHERS(set) & OTHERS(set) - 1) == 0)

/* Counts of a cell, in one word. */
#define ACTIVE 1
#define PARKED(e) ((e) % 2 == 0 -> 16 : 256)
#define NUMBER(one, word) ((word) / (one) & 15)
#define GONE(word, e) (NUMBER(ACTIVE, word) == 0 && NUMBER(PARKED((e) + 1), word) == 0)

short counts[NODES] = 0;

#define MAY_LET_IN(gate) (STATE(gate) == OPEN || STATE(gate) == CLOSED || !IN_USE_ALONE)
#if PARITY
#define LETS_IN(gate, e) (MAY_LET_IN(gate) && (EPOCH(gate) - (e) & 1) != 0)
#else
#define LETS_IN(gate, e) (MAY_LET_IN(gate) && EPOCH(gate) != (e))
#endif

/* ---- flight, abstracted ---- */

/* For whoever has the lock next: 0, or a turn, the writers in a row and whether it is quiet. */
byte note = 0;
#define IS_OVER 1
#define ARE_IDLE 254
#define TURN(in_a_row, is_quiet) ((in_a_row) << 1 | (is_quiet))
#define IS_TURN(what) ((what) > IS_OVER && (what) != ARE_IDLE)

#if FIFO
chan flight = [P] of { pid }; /* its holder and those who wait */
#define SOMEBODY_WAITS (len(flight) > 1)
#define FLIGHT_WAIT flight ! _pid
#define FLIGHT_TAKE flight ? [eval(_pid)]
#define FLIGHT_GIVE flight ? eval(_pid)
#else
bool flight_held = false;
byte flight_waiters = 0;
#define SOMEBODY_WAITS (flight_waiters > 0)
#define FLIGHT_WAIT flight_waiters++
#define FLIGHT_TAKE !flight_held -> flight_held = true; flight_waiters--
#define FLIGHT_GIVE flight_held = false
#endif

/* unlock, pass if it does, and unlock_with. */
#define UNLOCK atomic { note = 0; FLIGHT_GIVE }
#define PASS(condition, what) \
  atomic { condition && SOMEBODY_WAITS -> note = what; FLIGHT_GIVE }
#define UNLOCK_WITH(what)                      \
  if                                           \
  :: PASS(true, what)                          \
  :: atomic {                                  \
       !SOMEBODY_WAITS && (what) == ARE_IDLE -> \
       note = what; FLIGHT_GIVE                \
     }                                         \
  :: UNLOCK                                    \
  fi

/* ---- who has flight: what the gates in use say, and of which nodes they are ---- */

/* The note, what gates say, and the nodes if they are few; and what is posted to them. */
#define KEEPER                                       \
  byte told = 0, now = 0, in_use = 0, seen = 0;      \
  bool is_known = false, has_looked = false;         \
  byte posted = 0, to = 0, to_nodes = 0
#define FORGET told = 0; now = 0; in_use = 0; seen = 0; is_known = false; has_looked = false

#define IN_USE(node) (!IS_FEW(now) || HAS(in_use, node))
#define NODES_IN_USE (IS_FEW(now) -> in_use : OF(NODES) - 1)

/* Whether the own gate says what the directory does. */
#define TELLS_ALL (is_known || own == HOME)

inline take_flight() {
#if !AWAITS_FLIGHT
  to = says;
#endif
  FLIGHT_WAIT;
  atomic {
    FLIGHT_TAKE;
    /* start */
    told = note; note = 0;
    now = gates[own];
    is_known = !IS_FEW(now);
    if
    :: told == ARE_IDLE -> now = AS(IDLE, now) | FEW; is_known = false
    :: told != ARE_IDLE && TELLS_ALL
    :: told != ARE_IDLE && !TELLS_ALL && IS_TURN(told) && TELLS -> now = AS(CLOSED, now)
    :: told != ARE_IDLE && !TELLS_ALL && !(IS_TURN(told) && TELLS) ->
      now = (AWAITS_FLIGHT -> says : to)
    fi;
    to = 0
  }
}

inline know() {
  atomic {
    if
    :: is_known
    :: else ->
      now = AS(STATE(now), (own == HOME -> gates[own] : says));
      in_use = WITH_HOME(listed); is_known = true
    fi
  }
}

/* announce_closing, at gates that are few. */
inline say_closed() {
#if ANNOUNCES
  says = AS(CLOSED, now);
  atomic { in_use = WITH_HOME(listed); is_known = true }
#else
  atomic { in_use = WITH_HOME(listed); is_known = true }
  says = AS(CLOSED, now)
#endif
}

#define TAKE_EFFECT(n) atomic { HAS(posted, n) -> posted = posted & ~OF(n)
#define STAYS(n) (!IS_FEW(to) || HAS(to_nodes, n))
#define POSTS(n) ((STAYS(n) -> !IN_USE(n) || to != now : IN_USE(n)) -> OF(n) : 0) |
#define SAYS NODES /* posted beside the gates */
#define POSTS_SAYS (IS_FEW(to) && STATE(to) != CLOSED -> OF(SAYS) : 0)
#define UNLISTED_GATE (AS(UNLISTED, now) | FEW)
#define PUT(n) :: TAKE_EFFECT(n); gates[n] = (STAYS(n) -> to : UNLISTED_GATE) }

inline change_list() {
  atomic {
    if
    :: IS_FEW(to) && to_nodes != in_use -> listed = listed + to_nodes - in_use
    :: else
    fi
  }
}

/* Puts take effect in any order; stores, to the own node, as well. */
inline set_gates() {
  if
  :: IS_FEW(to) && !IS_FEW(now) -> /* list_only */
#if SAYS_CLOSED
    says = AS(CLOSED, now);
#endif
    in_use = WITH_HOME(listed)
  :: !(IS_FEW(to) && !IS_FEW(now))
  fi;
#if CLEARS_FIRST
  change_list();
#endif
  posted = OF_EACH_NODE(POSTS) POSTS_SAYS;
  do
  OF_EACH_NODE(PUT)
  :: TAKE_EFFECT(SAYS); says = to }
  :: atomic { posted == 0 -> break }
  od;
#if !CLEARS_FIRST
  change_list();
#endif
  atomic {
    in_use = (IS_FEW(to) -> to_nodes : 0);
    now = to; to = 0; to_nodes = 0
  }
}
/* The gates of these nodes and the home's say that then, and the others are unlisted. */
#define SET(gate, of_nodes)                            \
  atomic { to = gate; to_nodes = WITH_HOME(of_nodes) } \
  set_gates()

#define FEW_IF_ROOM(gate) \
  (IS_FEW(gate) && !HAS_ROOM_FOR(in_use) && WRITES_FLAG -> (gate) & ~FEW : (gate))
#define OR_ALL (HAS_ROOM_FOR(in_use) || WRITES_FLAG -> in_use : OF(NODES) - 1)

/* Where a reader is, on its way out or waiting. */
#define SEE(n) seen = (counts[n] != 0 -> seen | OF(n) : seen)

/* One look at each cell, in any order. */
#define LOOK(n) :: TAKE_EFFECT(n); SEE(n) }

inline look_again() {
  atomic { posted = NODES_IN_USE; seen = 0 }
  do
  OF_EACH_NODE(LOOK)
  :: posted == 0 -> break
  od;
  has_looked = true
}

#define WHERE_SEEN (IS_FEW(now) && !HAS_ROOM_FOR(in_use) && !BROADCASTS)

/* `to` is what they shall say. */
inline open_gates(looks) {
  if
  :: WHERE_SEEN ->
    if
    :: !has_looked && looks -> look_again()
    :: has_looked || !looks
    fi;
    SET(to, seen)
  :: !WHERE_SEEN -> SET(FEW_IF_ROOM(to), OR_ALL)
  fi
}

/* ---- readers ---- */

#define LISTER byte found = 0, they = 0
#define FOUND(state) AS(state, found)
/* The gate as the directory has it. */
#define TAKEN (TAKES_EPOCH -> they : AS(STATE(they), found))
#define REPLACE(from) \
  gates[own] = (gates[own] == FOUND(from) || !COMPARES -> TAKEN : gates[own])

inline add_own() {
  atomic { assert(!HAS(listed, own)); listed = listed + OF(own) }
}

/* gate_listing's list: `found` is UNLISTED. */
inline list(waits) {
  if
  :: atomic { gates[own] == found -> gates[own] = FOUND(COMING) }
#if ADDS_FIRST
    add_own();
    they = says;
#else
    they = says;
    add_own();
#endif
    if
    :: STATE(they) == OPEN -> REPLACE(COMING)
    :: STATE(they) != OPEN ->
      if
      :: gates[own] != FOUND(COMING) && COMPARES
      :: atomic { gates[own] == FOUND(COMING) || !COMPARES -> gates[own] = FOUND(LISTED) }
        if
        :: STATE(they) == CLOSED && waits ->
          if
          :: gates[own] != FOUND(LISTED)
          :: atomic { STATE(says) != CLOSED -> they = says }
          fi
        :: STATE(they) == CLOSED && !(waits) -> they = AS(IDLE, they)
        :: STATE(they) != CLOSED
        fi;
        if
        :: STATE(they) != CLOSED -> REPLACE(LISTED)
        :: STATE(they) == CLOSED
        fi
      fi
    fi
  :: gates[own] != found
  fi;
  they = 0
}

inline list_own() {
  found = gates[own];
  if
  :: STATE(found) == UNLISTED -> list(false)
  :: STATE(found) != UNLISTED
  fi;
  STATE(gates[own]) != COMING || !AWAITS_COMING;
  found = 0
}

inline open_here() {
  if
  :: STATE(now) == OPEN && (!IS_FEW(now) || STATE(gates[own]) == OPEN)
  :: !(STATE(now) == OPEN && (!IS_FEW(now) || STATE(gates[own]) == OPEN)) ->
    if
    :: IS_FEW(now) && own != HOME -> list_own()
    :: !(IS_FEW(now) && own != HOME)
    fi;
    know();
    if
    :: STATE(now) != OPEN -> to = NEXT_PHASE(now, 0); open_gates(SEES_ITSELF)
    :: STATE(now) == OPEN && STATE(gates[own]) == OPEN
    :: STATE(now) == OPEN && STATE(gates[own]) != OPEN -> gates[own] = now
    fi
  fi
}

#define COME_ANEW counts[own] = counts[own] + ACTIVE - held; held = ACTIVE; epoch = 0

#define ONLY_TRIES (me < TRY_READERS)

proctype reader(byte me; byte own) {
  byte epoch = 0;
  short held = 0;
  bool looks_after = false;
  LISTER;
  KEEPER;
  ROUND_COUNTER

next_round:
  do
  :: NEXT_ROUND ->
    WAITS(reader_waits);
begin:
    atomic { held = ACTIVE; counts[own] = counts[own] + held }
look:
    found = gates[own];
    if
    :: STATE(found) == UNLISTED ->
#if !COUNTED
      counts[own] = counts[own] - held;
#endif
      list(!ONLY_TRIES);
#if !COUNTED
      counts[own] = counts[own] + held;
#endif
      found = gates[own]
    :: STATE(found) != UNLISTED
    fi;
    if
    :: STATE(found) == OPEN
    :: STATE(found) != OPEN && ONLY_TRIES ->
      atomic { counts[own] = counts[own] - held; held = 0; found = 0 }
      goto next_round
    :: STATE(found) != OPEN && !ONLY_TRIES -> /* park */
      atomic {
        epoch = EPOCH(found); found = 0;
        held = PARKED(epoch);
        looks_after = LOOKS_AFTER && (looks_after || NUMBER(held, counts[own]) == 0);
        counts[own] = counts[own] + held - ACTIVE
      }
      if
      :: LETS_IN(gates[own], epoch)
#if COMES_ANEW
      :: !LETS_IN(gates[own], epoch) && STATE(gates[own]) == OPEN ->
        atomic { COME_ANEW; looks_after = looks_after && KEEPS_LOOKING_AFTER }
        goto look
#endif
      :: !LETS_IN(gates[own], epoch) && looks_after && STATE(gates[own]) == UNLISTED ->
        atomic { COME_ANEW; looks_after = looks_after && KEEPS_LOOKING_AFTER }
        goto look
      :: !LETS_IN(gates[own], epoch) && looks_after && STATE(gates[own]) == IDLE ->
        atomic { counts[own] = counts[own] - held; held = 0; epoch = 0; looks_after = false }
        take_flight();
#if COUNTS_FIRST
        atomic { held = ACTIVE; counts[own] = counts[own] + held }
#endif
        if
        :: atomic { STATE(gates[own]) == CLOSED && SOMEBODY_WAITS -> /* opened meanwhile */
            note = (TELLS -> told : 0); FLIGHT_GIVE; FORGET
          }
#if COUNTS_FIRST
          goto look
#else
          goto begin
#endif
        :: true -> open_here()
        fi;
#if !COUNTS_FIRST
        atomic { held = ACTIVE; counts[own] = counts[own] + held }
#endif
        UNLOCK
      fi
    fi;
    atomic { found = 0; epoch = 0; looks_after = false; FORGET }

    reader_enters();
    reader_leaves();
    atomic { counts[own] = counts[own] - held; held = 0 }
  :: STOP -> break
  od;
  END
}

/* ---- writers ---- */

/* Polls; here whoever sees nothing new blocks. */
#define AWAIT(n)                                    \
  :: TAKE_EFFECT(n);                                \
     SEE(n);                                        \
     if                                             \
     :: GONE(counts[n], EPOCH(now)) -> skip         \
     :: else -> GONE(counts[n], EPOCH(now))         \
     fi }

inline await_readers() {
  atomic { posted = NODES_IN_USE; seen = 0 }
  do
  OF_EACH_NODE(AWAIT)
  :: posted == 0 -> break
  od;
  has_looked = true
}

#define IS_QUIET (seen == 0 || (!IS_FEW(now) && HAS_ROOM_FOR(seen)))

inline end_turn() {
  know();
#if LOOKS_AGAIN
  if
  :: quiet && (in_a_row > 0 || QUIET(now) >= MOST_QUIET) ->
    look_again();
    quiet = IS_QUIET
  :: !(quiet && (in_a_row > 0 || QUIET(now) >= MOST_QUIET))
  fi;
#endif
  if
  :: quiet && QUIET(now) >= MOST_QUIET && (seen == 0 || !LEAVES_OPEN) -> /* leave_idle */
    SET(AS(IDLE, now) | FEW, 0)
  :: quiet && QUIET(now) >= MOST_QUIET && !(seen == 0 || !LEAVES_OPEN) ->
    SET(NEXT_PHASE(now, 0) | FEW, seen)
  :: !(quiet && QUIET(now) >= MOST_QUIET) ->
    to = NEXT_PHASE(now, (quiet -> QUIET(now) + 1 : 0)); open_gates(LOOKS_ANEW)
  fi
}

proctype writer(byte me; byte own) {
  byte in_a_row = 0;
  bool quiet = false;
  KEEPER;
  ROUND_COUNTER

  do
  :: NEXT_WRITER_ROUND ->
    WAITS(writer_waits);
    take_flight();
    /* begin_turn */
    if
    :: STATE(now) == CLOSED -> atomic { in_a_row = told >> 1; quiet = told & 1 }
    :: STATE(now) == IDLE
    :: STATE(now) == OPEN ->
      if
      :: IS_FEW(now) -> say_closed()
      :: !IS_FEW(now)
      fi;
      SET(AS(CLOSED, now), in_use);
      await_readers();
      quiet = IS_QUIET
    fi;

    writer_enters();
    writer_leaves();

    /* unlock */
    if
    :: STATE(now) == IDLE -> UNLOCK_WITH(ARE_IDLE)
    :: PASS(STATE(now) == CLOSED && in_a_row + 1 < T_W, (TELLS -> TURN(in_a_row + 1, quiet) : 0))
    :: STATE(now) == CLOSED ->
      end_turn();
      UNLOCK_WITH((STATE(now) == IDLE -> ARE_IDLE : IS_OVER))
    fi;
    atomic { in_a_row = 0; quiet = false; FORGET }
  :: WRITER_STOP -> break
  od;
  END
}

init {
  byte p;
  atomic {
#if !STARTS_OPEN
    for (p : 0 .. NODES - 1) { gates[p] = AS((p == HOME -> OPEN : UNLISTED), FEW) }
    says = AS(OPEN, FEW);
#endif
    for (p : 0 .. WRITERS - 1) { run writer(p, (WRITE_ON + p) % NODES) }
#if READERS > 0
    for (p : 0 .. READERS - 1) { run reader(p, p % READ_ON) }
#endif
    p = 0
  }
}

#ifdef OBSERVE
ltl no_writer_starves { []<> !writer_waits }
ltl no_reader_starves { []<> !reader_waits }
#endif
