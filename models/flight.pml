/* flight: a lock of each node, a queue of the nodes, and Peterson's algorithm between the head of
 * that queue and the home's node.
 *
 * include/lockflight/lock/node_queue.hpp and flight.hpp, with the names that they have there. Node
 * 0 is the home. Nobody gives up in time, so what a node is told is told to whoever waits for it.
 * Of notes nothing is here.
 *
 * Stores may be seen late; here each is seen at once. That they are where it matters, by fences and
 * atomics, is the checker's to say.
 *
 * Macros of this model:
 *   OF_0, OF_1, OF_2  participants of each node; numbered from the home's on
 *   BARGE, LOCAL_BUDGET, REMOTE_BUDGET   parameters, at most 7
 *   TRIERS            participants that only try: the sum of 2^p
 *   PASSED_BY         asserts that no more others than that come past the head of a node's queue
 *   HOME_BATCH        asserts that the home's node enters no more often than that once the head of the
 *                     queue of nodes has become the victim
 *   REMOTE_BATCH      the same of the other nodes, once the home's node has become the victim
 * and what each part is for shows without it:
 *   VICTIM=0          whoever finds the other side waits until it is not interested
 *   VICTIM_FIRST=0    the victim is written after the looks
 *   COUNTS_PASSED=0   nobody counts who comes past the head
 *   LOCAL_BUDGETS=0   a node keeps the lock as long as somebody waits in it
 *   REMOTE_BUDGETS=0  the nodes pass the lock on as long as one waits
 *   FORGETS_TOP=0     a node that gave the lock above away keeps the mark that it has it
 *   LEAVES_FIRST=0    the word is passed before the node has left the queue of nodes
 *   ENTRY_IS_P=1      an entry is that of the participant, not of the node: a releaser looks at its
 *                     own
 *   COMPETES=0        whoever came behind an attempt takes it for the holder of the lock
 *   GIVES_WAY=0       an attempt that withdraws does not become the victim before
 *   ATTEMPTS_COUNT=0  an attempt that fails frees the word for all, and the head that it has passed
 *                     is not told
 *   LOOKS_AT_TAIL=0   an attempt at home takes the word without a look at the tail
 * Of all: shared.pml.
 */

#ifndef OF_0
#define OF_0 1
#endif
#ifndef OF_1
#define OF_1 1
#endif
#ifndef OF_2
#define OF_2 0
#endif
#ifndef BARGE
#define BARGE 1
#endif
#ifndef LOCAL_BUDGET
#define LOCAL_BUDGET 2
#endif
#ifndef REMOTE_BUDGET
#define REMOTE_BUDGET 2
#endif
#ifndef TRIERS
#define TRIERS 0
#endif
#ifndef VICTIM
#define VICTIM 1
#endif
#ifndef VICTIM_FIRST
#define VICTIM_FIRST 1
#endif
#ifndef COUNTS_PASSED
#define COUNTS_PASSED 1
#endif
#ifndef LOCAL_BUDGETS
#define LOCAL_BUDGETS 1
#endif
#ifndef REMOTE_BUDGETS
#define REMOTE_BUDGETS 1
#endif
#ifndef FORGETS_TOP
#define FORGETS_TOP 1
#endif
#ifndef LEAVES_FIRST
#define LEAVES_FIRST 1
#endif
#ifndef ENTRY_IS_P
#define ENTRY_IS_P 0
#endif
#ifndef COMPETES
#define COMPETES 1
#endif
#ifndef GIVES_WAY
#define GIVES_WAY 1
#endif
#ifndef ATTEMPTS_COUNT
#define ATTEMPTS_COUNT 1
#endif
#ifndef LOOKS_AT_TAIL
#define LOOKS_AT_TAIL 1
#endif

#include "shared.pml"

#define P (OF_0 + OF_1 + OF_2)
#define NODES 3
#define ONLY_NODE (OF_1 + OF_2 == 0)
#define NODE_OF(p) ((p) < OF_0 -> 0 : ((p) < OF_0 + OF_1 -> 1 : 2))
#define ONLY_TRIES(p) (((TRIERS) >> (p)) & 1)

/* ---- the word of a node ---- */

#define HELD 1
#define WITH_TOP 2
#define RESERVED 4
#define PASSED_BY_OF(word) (((word) >> 3) & 7)
#define IN_A_ROW_OF(word) (((word) >> 6) & 7)
#define LEFT_OF(word) (((word) >> 9) & 7)
#define INTERESTED(word) (((word) & (HELD | WITH_TOP)) != 0)

/* ---- the cells ---- */

short WORD[NODES];       /* 0: free */
byte NODE_TAIL[NODES];   /* the last in the node's queue */
byte NEXT[P];            /* who stands behind p in its node's queue */
bool HEAD[P];            /* p's predecessor has left that queue */
byte TAIL = NIL;         /* the last in the queue of nodes */
byte TOLD[P];            /* what p was told: nodes that the lock may still be passed to, + 1 */
byte victim = 0;         /* the side that lets the other one go first */
#if ENTRY_IS_P
byte ENTRY[P];
#define OWN_ENTRY me
#else
byte ENTRY[NODES];       /* who waits behind the node */
#define OWN_ENTRY node
#endif

#define LOCAL_SIDE 1
#define REMOTE_SIDE 2

/* ---- what bounds speak of ---- */

#ifdef PASSED_BY
bool head_waits[NODES]; /* somebody heads the node's queue */
byte passed_head[NODES];
#define HEADS(n) head_waits[n] = true; passed_head[n] = 0
#define HEADS_NO_MORE(n) head_waits[n] = false; passed_head[n] = 0
#define GOES_PAST(n)                                \
  if                                                \
  :: head_waits[n] ->                               \
    passed_head[n]++;                               \
    assert(passed_head[n] <= PASSED_BY)             \
  :: else                                           \
  fi
#else
#define HEADS(n) skip
#define HEADS_NO_MORE(n) skip
#define GOES_PAST(n) skip
#endif

#ifdef HOME_BATCH
byte home_batch = 0;
bool node_waits = false;
#define NODE_WAITS node_waits = true
#else
#define NODE_WAITS skip
#endif
#ifdef REMOTE_BATCH
byte remote_batch = 0;
bool home_waits = false;
#define HOME_WAITS home_waits = true
#else
#define HOME_WAITS skip
#endif


inline batch_goes_on() {
  atomic {
#ifdef HOME_BATCH
    if
    :: node != 0 -> home_batch = 0; node_waits = false
    :: node == 0 && node_waits -> home_batch++; assert(home_batch <= HOME_BATCH)
    :: else
    fi;
#endif
#ifdef REMOTE_BATCH
    if
    :: node == 0 -> remote_batch = 0; home_waits = false
    :: node != 0 && home_waits -> remote_batch++; assert(remote_batch <= REMOTE_BATCH)
    :: else
    fi;
#endif
    skip
  }
}

/* ---- node_queue ---- */

/* Takes the word past the queue: `barged` says whether, `found` what it was. */
inline take() {
  atomic {
    found = WORD[node];
    if
    :: found == 0 -> WORD[node] = HELD; barged = true; GOES_PAST(node)
    :: else
    fi
  }
  if
  :: !barged && (found & (HELD | RESERVED)) == 0 ->
    atomic {
      if
      :: WORD[node] == found -> WORD[node] = HELD; barged = true; GOES_PAST(node)
      :: else
      fi
    }
  :: else
  fi
}

inline queue() {
  atomic {
    ref = NODE_TAIL[node];
    NODE_TAIL[node] = REF(me);
    if
    :: ref == NIL -> HEADS(node)
    :: else
    fi
  }
  if
  :: ref != NIL ->
    atomic { NEXT[AT(ref)] = REF(me); ref = NIL }
    atomic { HEAD[me] -> HEAD[me] = false }
  :: else
  fi;
  /* compete: looks until the word is free, and takes it if it has not changed since. */
  do
  :: atomic { (WORD[node] & HELD) == 0 -> found = WORD[node] }
    if
    :: atomic { WORD[node] == found -> WORD[node] = HELD; HEADS_NO_MORE(node) } break
    :: WORD[node] != found
    fi
  od;
  /* Out of the queue at once. */
  ref = NEXT[me];
  if
  :: ref == NIL ->
    if
    :: atomic { NODE_TAIL[node] == REF(me) -> NODE_TAIL[node] = NIL }
    :: atomic { NODE_TAIL[node] != REF(me) && NEXT[me] != NIL -> ref = NEXT[me] }
    fi
  :: else
  fi;
  if
  :: ref != NIL -> atomic { NEXT[me] = NIL; HEAD[AT(ref)] = true; HEADS(node); ref = NIL }
  :: else
  fi
}

/* What the last holder has kept in the word. */
inline keep_found() {
  atomic {
    with_top = (found & WITH_TOP) != 0;
    passed_by = (barged -> PASSED_BY_OF(found) : 0);
    in_a_row = IN_A_ROW_OF(found);
    left = LEFT_OF(found);
    found = 0
  }
}

#if COUNTS_PASSED
#define NOW_PASSED_BY (barged -> (passed_by + 1 < BARGE -> passed_by + 1 : BARGE) : 0)
#define MARK_OF_HEAD(passed) (((passed) << 3) | ((passed) >= BARGE -> RESERVED : 0))
#else
#define NOW_PASSED_BY 0
#define MARK_OF_HEAD(passed) 0
#endif

/* ---- Peterson: our side is seen to be interested, by its word or by the tail ---- */

#define HOME_MAY_ENTER \
  if                             \
  :: TAIL == NIL                 \
  :: VICTIM && victim != LOCAL_SIDE \
  fi

#define REMOTE_MAY_ENTER \
  if                             \
  :: !INTERESTED(WORD[0])        \
  :: VICTIM && victim != REMOTE_SIDE \
  fi

inline agree_at_home() {
  if
  :: TAIL == NIL
  :: TAIL != NIL ->
#if VICTIM_FIRST
    atomic { victim = LOCAL_SIDE; HOME_WAITS }
#endif
    HOME_MAY_ENTER;
#if !VICTIM_FIRST
    victim = LOCAL_SIDE
#endif
  fi
}

inline agree_from_elsewhere() {
  if
  :: !INTERESTED(WORD[0])
  :: INTERESTED(WORD[0]) ->
#if VICTIM_FIRST
    atomic { victim = REMOTE_SIDE; NODE_WAITS }
#endif
    REMOTE_MAY_ENTER;
#if !VICTIM_FIRST
    victim = REMOTE_SIDE
#endif
  fi
}

/* ---- the queue of nodes ---- */

inline wait_behind() {
  atomic { ENTRY[AT(ref)] = REF(me); ref = NIL }
  atomic { TOLD[me] != 0 -> left = TOLD[me] - 1; TOLD[me] = 0 }
}

/* Fetches the lock above for our node. */
inline climb() {
  atomic { in_a_row = 0; left = REMOTE_BUDGET }
  if
  :: node == 0 -> agree_at_home()
  :: else ->
    atomic {
      ref = TAIL;
      TAIL = REF(OWN_ENTRY);
      left = (ref == NIL -> 0 : REMOTE_BUDGET)
    }
    if
    :: ref != NIL -> wait_behind()
    :: else
    fi;
    if
    :: left > 0
    :: else -> agree_from_elsewhere(); left = REMOTE_BUDGET
    fi
  fi
}

inline leave_queue() {
  ref = ENTRY[OWN_ENTRY];
  if
  :: ref == NIL ->
    if
    :: atomic { TAIL == REF(OWN_ENTRY) -> TAIL = NIL }
    :: atomic { TAIL != REF(OWN_ENTRY) && ENTRY[OWN_ENTRY] != NIL -> ref = ENTRY[OWN_ENTRY] }
    fi
  :: else
  fi;
  if
  :: ref != NIL ->
    ENTRY[OWN_ENTRY] = NIL;
#if REMOTE_BUDGETS
    atomic { TOLD[AT(ref)] = left; ref = NIL }
#else
    atomic { TOLD[AT(ref)] = (left == 1 -> 1 : REMOTE_BUDGET + 1); ref = NIL }
#endif
  :: else
  fi
}

#if LOCAL_BUDGETS
#define STAYS_HERE (ONLY_NODE || in_a_row + 1 < LOCAL_BUDGET)
#define ONE_MORE_IN_A_ROW (in_a_row + 1)
#else
#define STAYS_HERE true
#define ONE_MORE_IN_A_ROW 0
#endif

inline pass() {
  WORD[node] = MARK_OF_HEAD(NOW_PASSED_BY) |
               (stays && !ONLY_NODE -> WITH_TOP | (ONE_MORE_IN_A_ROW << 6) | (left << 9)
                                    : (FORGETS_TOP || ONLY_NODE -> 0 : WITH_TOP | (left << 9)))
}

proctype participant(byte me; byte node) {
  short found = 0;
  byte ref = NIL, passed_by = 0, in_a_row = 0, left = 0;
  bool barged = false, with_top = false, waited_for = false, stays = false;
  ROUND_COUNTER

  do
  :: NEXT_ROUND ->
    if
    :: !ONLY_TRIES(me) -> /* lock */
      WAITS(writer_waits);
      take();
      if
      :: barged
      :: else -> queue()
      fi;
      keep_found();
      if
      :: ONLY_NODE || with_top
      :: else -> climb()
      fi
    :: TRY || ONLY_TRIES(me) -> /* try_lock */
#if LOOKS_AT_TAIL
      if
      :: node == 0 && TAIL != NIL -> goto next_round
      :: node != 0 || TAIL == NIL
      fi;
#endif
      take();
      if
      :: barged
      :: else -> found = 0; goto next_round
      fi;
      keep_found();
      if
      :: ONLY_NODE || with_top
      :: else -> /* try_climb */
        atomic { in_a_row = 0; left = REMOTE_BUDGET }
        if
        :: node == 0 ->
          if
          :: TAIL == NIL
          :: TAIL != NIL -> goto let_go
          fi
        :: else ->
          if
          :: atomic { TAIL == NIL -> TAIL = REF(OWN_ENTRY) }
          :: TAIL != NIL -> goto let_go
          fi;
          if
          :: !INTERESTED(WORD[0])
          :: INTERESTED(WORD[0]) ->
#if GIVES_WAY
            victim = REMOTE_SIDE;
#endif
#if COMPETES
            left = 1; /* whoever came behind us must agree for itself */
#else
            left = 2;
#endif
            leave_queue();
            goto let_go
          fi
        fi
      fi
    fi;

    writer_enters();
    batch_goes_on();
    writer_leaves();

    /* unlock */
    waited_for = NODE_TAIL[node] != NIL;
    stays = waited_for && STAYS_HERE;
#if !LEAVES_FIRST
    if
    :: waited_for -> pass()
    :: else -> WORD[node] = 0
    fi;
#endif
    if
    :: node != 0 && !stays -> leave_queue()
    :: else
    fi;
#if LEAVES_FIRST
    if
    :: waited_for -> pass()
    :: else -> WORD[node] = 0
    fi;
#endif
    goto next_round;
let_go:
#if ATTEMPTS_COUNT
    waited_for = NODE_TAIL[node] != NIL;
#endif
    if
    :: waited_for -> pass()
    :: else -> WORD[node] = 0
    fi;
next_round:
    atomic {
      passed_by = 0; in_a_row = 0; left = 0; barged = false;
      with_top = false; waited_for = false; stays = false
    }
  :: STOP -> break
  od;
  END
}

init {
  byte p;
  atomic {
    for (p : 0 .. P - 1) { run participant(p, NODE_OF(p)) }
    p = 0
  }
}

#ifdef OBSERVE
ltl no_starvation { []<> !writer_waits }
#endif
