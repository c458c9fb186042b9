/* flight-rw's directory of open gates: nodes, of which only some have gates that are in use.
 *
 * include/lockflight/lock/gate_directory.hpp, gate_keeper.hpp, reader_gates.hpp and flight_rw.hpp,
 * with the names that they have there. Each node has a gate and a cell; the directory has room for
 * one node. Nobody gives up or only tries. Nobody but who has flight reads or writes the directory,
 * and it does so before it lets flight go: so both words are one step.
 *
 * flight is a lock that is first come, first served. Whether it will be passed on while somebody
 * waits is its own choice, and what is noted when it is let go may be lost, as its budgets have it,
 * and is lost if nobody waits. With FIFO=0 anybody who waits or comes may be next (flight_rw.pml).
 *
 * Macros of this model:
 *   NODES             2 or 3
 *   READERS, READ_ON  reader r is on node r % READ_ON
 *   WRITERS, WRITE_ON writer w is on node (WRITE_ON + w) % NODES: the last node and those after it
 *   T_W, FIFO
 * and what each part is for shows without it:
 *   PARITY=0          who has parked enters at any other epoch
 *   COMES_ANEW=0      who has parked does not come anew
 *   FIRST_OPENS=0     who parks first does not open idle gates
 *   REGISTERS=0       who opens its idle gate does not add it to the directory
 *   WRITES_FLAG=0     who opens all gates does not write there that they are of all nodes
 *   KEEPS_EPOCH=0     gates that are left idle say the epoch of those that are opened
 *   LOOKS_AGAIN=0     who leaves gates idle does not look again who waits
 *   LEAVES_OPEN=0     who leaves gates idle does so where it has seen readers
 *   TELLS=0           who passes flight on with its turn does not tell
 *   KEEPS_CLOSED=0    who was told of a turn takes what the directory says for what gates do
 *   AWAITS_FLIGHT=0   who takes flight reads the directory before
 *   COUNTS_FIRST=0    who passes flight on, as others have opened its gate, is not counted before
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
#ifndef WRITERS
#define WRITERS 1
#endif
#ifndef WRITE_ON
#define WRITE_ON (NODES - 1)
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
#ifndef COMES_ANEW
#define COMES_ANEW 1
#endif
#ifndef FIRST_OPENS
#define FIRST_OPENS 1
#endif
#ifndef REGISTERS
#define REGISTERS 1
#endif
#ifndef WRITES_FLAG
#define WRITES_FLAG 1
#endif
#ifndef KEEPS_EPOCH
#define KEEPS_EPOCH 1
#endif
#ifndef LOOKS_AGAIN
#define LOOKS_AGAIN 1
#endif
#ifndef LEAVES_OPEN
#define LEAVES_OPEN 1
#endif
#ifndef TELLS
#define TELLS 1
#endif
#ifndef KEEPS_CLOSED
#define KEEPS_CLOSED 1
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
#define STATE(gate) ((gate) & 3)
#define QUIET(gate) ((gate) >> 2 & 3)
#define EPOCH(gate) ((gate) >> 4 & 3)
#define FEW 64
#define IS_FEW(gate) (((gate) & FEW) != 0)
#define AS(state, gate) ((gate) & ~3 | (state))
#define NEXT_PHASE(gate, q) ((gate) & FEW | (EPOCH(gate) + 1 & 3) << 4 | (q) << 2 | OPEN)
#define MOST_QUIET 1

byte gates[NODES] = 0;
byte says = 0;  /* the directory: what the gates in use say, */
byte nodes = 0; /* and of which nodes they are */

/* Sets of nodes. */
#define OF(node) (1 << (node))
#define HAS(set, node) (((set) & OF(node)) != 0)
#define ALL ((1 << NODES) - 1)
#define HAS_ROOM_FOR(set) (((set) & (set) - 1) == 0) /* one */

/* Counts of a cell, in one word. */
#define ACTIVE 1
#define PARKED(e) ((e) % 2 == 0 -> 16 : 256)
#define NUMBER(one, word) ((word) / (one) & 15)
#define GONE(word, e) (NUMBER(ACTIVE, word) == 0 && NUMBER(PARKED((e) + 1), word) == 0)

short counts[NODES] = 0;

#if PARITY
#define LETS_IN(gate, e) ((EPOCH(gate) - (e) & 1) != 0)
#else
#define LETS_IN(gate, e) (EPOCH(gate) != (e))
#endif

/* ---- flight, abstracted ---- */

/* For whoever the lock is passed to: 0, or a turn, the writers in a row and whether it is quiet. */
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
#define UNLOCK_WITH(what) \
  if                      \
  :: PASS(true, what)     \
  :: UNLOCK               \
  fi

/* ---- who has flight: what the gates in use say, and of which nodes they are ---- */

/* The note, what gates say, and the nodes if they are few; and what is posted to them. */
#define KEEPER                        \
  byte told = 0, now = 0, in_use = 0; \
  bool is_known = false;              \
  byte posted = 0, to = 0, to_nodes = 0

#define IN_USE(node) (!IS_FEW(now) || HAS(in_use, node))
#define NODES_IN_USE (IS_FEW(now) -> in_use : ALL)

inline take_flight() {
#if !AWAITS_FLIGHT
  atomic { to = says; to_nodes = nodes }
#endif
  FLIGHT_WAIT;
  atomic {
    FLIGHT_TAKE;
    /* start */
    told = note; note = 0;
    now = gates[own];
    is_known = !IS_FEW(now);
    if
    :: is_known
    :: !is_known && IS_TURN(told) && TELLS -> now = AS(CLOSED, now)
    :: !is_known && told == ARE_IDLE -> now = AS(IDLE, now)
    :: !is_known && !(IS_TURN(told) && TELLS) && told != ARE_IDLE ->
#if AWAITS_FLIGHT
      now = says; in_use = nodes;
#else
      now = to; in_use = to_nodes;
#endif
      is_known = true
    fi;
    to = 0; to_nodes = 0
  }
}

inline know() {
  atomic {
    if
    :: is_known
    :: else ->
      now = (KEEPS_CLOSED -> AS(STATE(now), says) : says);
      in_use = nodes; is_known = true
    fi
  }
}

#define TAKE_EFFECT(n) atomic { HAS(posted, n) -> posted = posted & ~OF(n)
#define STAYS(n) (!IS_FEW(to) || HAS(to_nodes, n))
#define POSTS(n) ((STAYS(n) -> !IN_USE(n) || to != now : IN_USE(n)) -> OF(n) : 0) |
#if KEEPS_EPOCH
#define LEFT_IDLE (AS(IDLE, to) & ~48 | EPOCH(now) << 4)
#else
#define LEFT_IDLE AS(IDLE, to)
#endif
#define PUT(n) :: TAKE_EFFECT(n); gates[n] = (STAYS(n) -> to : LEFT_IDLE) }

#define ADDS (IS_FEW(now) && (to_nodes & ~nodes) != 0)
#if !REGISTERS
#define REGISTERED (ADDS -> nodes : to_nodes)
#elif !WRITES_FLAG
#define REGISTERED (to_nodes == ALL -> nodes : to_nodes)
#else
#define REGISTERED to_nodes
#endif

/* Puts take effect in any order; stores, to the own node, as well. */
inline flush_gates() {
  do
  OF_EACH_NODE(PUT)
  :: atomic {
      posted == 0 ->
      in_use = (IS_FEW(to) -> REGISTERED : 0);
      now = to;
      if
      :: IS_FEW(to) && STATE(to) != CLOSED -> says = to; nodes = in_use
      :: else
      fi;
      to = 0; to_nodes = 0;
      break
    }
  od
}
/* The gates of these nodes say that then, and the others are idle. */
#define SET(gate, of_nodes)                                                 \
  atomic { to = gate; to_nodes = of_nodes; posted = OF_EACH_NODE(POSTS) 0 } \
  flush_gates()

/* ---- readers ---- */

#define OPENED (STATE(now) == OPEN -> now : NEXT_PHASE(now, 0))
#define WITH_OWN (in_use | OF(own))

inline open_here() {
  if
  :: STATE(now) == OPEN && IN_USE(own)
  :: !(STATE(now) == OPEN && IN_USE(own)) ->
    know();
    if
    :: !IS_FEW(now) -> SET(OPENED, 0)
    :: IS_FEW(now) && HAS_ROOM_FOR(WITH_OWN) -> SET(OPENED, WITH_OWN)
    :: IS_FEW(now) && !HAS_ROOM_FOR(WITH_OWN) ->
      SET((WRITES_FLAG -> OPENED & ~FEW : OPENED), (WRITES_FLAG -> 0 : ALL))
    fi
  fi
}

proctype reader(byte me; byte own) {
  byte found = 0, epoch = 0;
  short held = 0;
  bool first = false;
  KEEPER;
  ROUND_COUNTER

  do
  :: NEXT_ROUND ->
    WAITS(reader_waits);
begin:
    atomic { held = ACTIVE; counts[own] = counts[own] + held }
look:
    found = gates[own];
    if
    :: STATE(found) == OPEN
    :: else -> /* park */
      atomic {
        epoch = EPOCH(found); found = 0;
        held = PARKED(epoch);
        first = FIRST_OPENS && NUMBER(held, counts[own]) == 0;
        counts[own] = counts[own] + held - ACTIVE
      }
      if
      :: LETS_IN(gates[own], epoch)
#if COMES_ANEW
      :: !LETS_IN(gates[own], epoch) && STATE(gates[own]) == OPEN ->
        atomic {
          counts[own] = counts[own] + ACTIVE - held;
          held = ACTIVE; epoch = 0; first = false
        }
        goto look
#endif
      :: !LETS_IN(gates[own], epoch) && first && STATE(gates[own]) == IDLE ->
        atomic { counts[own] = counts[own] - held; held = 0; epoch = 0; first = false }
        take_flight();
        if
        :: STATE(gates[own]) == CLOSED && SOMEBODY_WAITS -> /* others have opened it meanwhile */
#if COUNTS_FIRST
          atomic { held = ACTIVE; counts[own] = counts[own] + held }
#endif
          PASS(true, (TELLS -> told : 0));
          atomic { told = 0; now = 0; in_use = 0; is_known = false }
#if COUNTS_FIRST
          goto look
#else
          goto begin
#endif
        :: true -> open_here()
        fi;
        atomic { held = ACTIVE; counts[own] = counts[own] + held }
        UNLOCK
      fi
    fi;
    atomic { found = 0; epoch = 0; first = false; told = 0; now = 0; in_use = 0; is_known = false }

    reader_enters();
    reader_leaves();
    atomic { counts[own] = counts[own] - held; held = 0 }
  :: STOP -> break
  od;
  END
}

/* ---- writers ---- */

#define SEE(n) seen = (counts[n] != 0 -> seen | OF(n) : seen)

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
  od
}

/* One look at each cell, in any order. */
#define LOOK(n) :: TAKE_EFFECT(n); SEE(n) }

inline look_again() {
  atomic { posted = NODES_IN_USE; seen = 0 }
  do
  OF_EACH_NODE(LOOK)
  :: posted == 0 -> break
  od
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
    SET(NEXT_PHASE(now, (quiet -> QUIET(now) + 1 : 0)), in_use)
  fi
}

proctype writer(byte me; byte own) {
  byte in_a_row = 0, seen = 0;
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
      SET(AS(CLOSED, now), in_use);
      await_readers();
      quiet = IS_QUIET
    fi;

    writer_enters();
    writer_leaves();

    /* unlock */
    if
    :: STATE(now) == IDLE -> UNLOCK_WITH((IS_FEW(now) -> ARE_IDLE : 0))
    :: PASS(STATE(now) == CLOSED && in_a_row + 1 < T_W, (TELLS -> TURN(in_a_row + 1, quiet) : 0))
    :: STATE(now) == CLOSED ->
      end_turn();
      UNLOCK_WITH((STATE(now) == IDLE -> ARE_IDLE : IS_OVER))
    fi;
    atomic {
      in_a_row = 0; seen = 0; quiet = false; told = 0; now = 0; in_use = 0; is_known = false
    }
  :: WRITER_STOP -> break
  od;
  END
}

init {
  byte p;
  atomic {
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
