/* flight: a lock of each node, a queue of the nodes, and Peterson's algorithm between the head of
 * that queue and the home's node.
 *
 * include/lockflight/lock/part/abortable_queue.hpp, flight/node_lock.hpp, flight/leader_queue.hpp, flight/peterson.hpp and
 * flight.hpp, with the names that they have there. Node 0 is the home. Where nobody gives up in time, what a node is told is told to
 * whoever waits for it.
 *
 * Stores may be seen late; here each is seen at once. That they are where it matters, by fences and
 * atomics, is the checker's to say.
 *
 * Macros of this model:
 *   OF_0, OF_1, OF_2  participants of each node; numbered from the home's on
 *   BARGE, LOCAL_BUDGET, REMOTE_BUDGET   parameters, at most 7
 *   HANDOVERS         another, at most 6; 0 unless set
 *   TRIERS            participants that only try: the sum of 2^p
 *   TIMED             participants whose time may be over whenever they wait: the sum of 2^p. Each of
 *                     their acquires is such a one or a lock, as they like
 *   PASSED_BY         asserts that no more others than that come past the head of a node's queue
 *   HOME_BATCH        asserts that the home's node enters no more often than that once the head of the
 *                     queue of nodes has become the victim
 *   REMOTE_BATCH      the same of the other nodes, once the home's node has become the victim
 *   NOTES             1: the lock keeps a note while it is free, whether its last holder has left
 *                     something in order, and asserts that whoever believes that it is finds it so. Of
 *                     what is noted for whoever the lock is passed to nothing is here
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
 *   LOOKS_AGAIN=0     a node passes what it has inside, and does not look whether somebody is left
 *   TAKES_WHAT_IS_LEFT=0  the last one that gives up does not look whether the word was left to it
 *   TELLS=0           a node tells the next one by a put, though that may have given up
 *   KEEPS_PLACE=0     a node that has given up enters again, though its entry is in the queue
 *   TRIES=0           who is told that it is the head, so that others may come past it, takes the word
 *                     for its own
 *   STANDS_DOWN=0     who stays in the queue puts down its word and does not leave the queue
 *   TAKES_OUT=0       who gives up goes away, and who finds its line in the queue makes it the head
 *   HOME_SAYS=0       who finds the lock free believes the note at the tail, whatever the home's says
 *   OTHERS_SAY=0      the other way round
 *   VICTIM_FORGETS=0  who gets the lock since the other side is the victim believes both
 *   DOUBTS=0          who at home has not got the lock puts its word down as if all were in order
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
#ifndef HANDOVERS
#define HANDOVERS 0
#endif
#ifndef TRIES
#define TRIES 1
#endif
#ifndef STANDS_DOWN
#define STANDS_DOWN 1
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
#ifndef TIMED
#define TIMED 0
#endif
#ifndef LOOKS_AGAIN
#define LOOKS_AGAIN 1
#endif
#ifndef TAKES_WHAT_IS_LEFT
#define TAKES_WHAT_IS_LEFT 1
#endif
#ifndef TELLS
#define TELLS 1
#endif
#ifndef KEEPS_PLACE
#define KEEPS_PLACE 1
#endif
#ifndef TAKES_OUT
#define TAKES_OUT 1
#endif
#ifndef NOTES
#define NOTES 0
#endif
#ifndef HOME_SAYS
#define HOME_SAYS 1
#endif
#ifndef OTHERS_SAY
#define OTHERS_SAY 1
#endif
#ifndef DOUBTS
#define DOUBTS 1
#endif
#ifndef VICTIM_FORGETS
#define VICTIM_FORGETS 1
#endif

#include "shared.pml"

#define P (OF_0 + OF_1 + OF_2)
#define NODES 3
#define ONLY_NODE (OF_1 + OF_2 == 0)
#define NODE_OF(p) ((p) < OF_0 -> 0 : ((p) < OF_0 + OF_1 -> 1 : 2))
#define ONLY_TRIES(p) (((TRIERS) >> (p)) & 1)
#define MAY_GIVE_UP(p) (((TIMED) >> (p)) & 1)

/* ---- the word of a node ---- */

#define HELD 1
#define WITH_TOP 2
#define RESERVED 4
#define PASSED_BY_OF(word) (((word) >> 3) & 7)
#define IN_A_ROW_OF(word) (((word) >> 6) & 7)
#define LEFT_OF(word) (((word) >> 9) & 7)
#define BARGING 4096
#define INTERESTED(word) (((word) & (HELD | WITH_TOP)) != 0)

/* What is noted while the lock is free: in the home's word, that it was not left in order, so that a
 * word that says nothing else is the one of memory full of zeroes; at the tail that it was. */
#if NOTES
#define NOTE 8192
#define NOTE_AT_TAIL 128
bool in_order = false; /* as it is */
#define FINDS_AND_LEAVES_ORDER                      \
  atomic {                                          \
    assert(!is_told || in_order);                   \
    if                                              \
    :: in_order = true                              \
    :: in_order = false                             \
    fi;                                             \
    note = (node != 0 || in_order -> 0 : NOTE)      \
  }
#define NOTE_OF_NOTHING (node == 0 && DOUBTS -> NOTE : 0)
#define FREE_TAIL (in_order -> NOTE_AT_TAIL : NIL)
#define LOOK_FOR_NOTES(word, tail)                              \
  is_told = (!HOME_SAYS || ((word) & NOTE) == 0) &&             \
            (!OTHERS_SAY || ((tail) & NOTE_AT_TAIL) != 0)
#else
#define NOTE 0
#define NOTE_AT_TAIL 0
#define NOTE_OF_NOTHING 0
#define FREE_TAIL NIL
#define LOOK_FOR_NOTES(word, tail) skip
#endif
#define IS_FREE(word) (((word) & ~NOTE) == 0)
#define NOBODY_AT(tail) (((tail) & ~NOTE_AT_TAIL) == NIL)

/* ---- the cells ---- */

short WORD[NODES];       /* 0: free */
byte NODE_TAIL[NODES];   /* the last in the node's queue */
byte TAIL = NIL;         /* the last in the queue of nodes */
byte victim = 0;         /* the side that lets the other one go first */
#if ENTRY_IS_P
byte ENTRY[P];
#define OWN_ENTRY me
#else
byte ENTRY[NODES];       /* who waits behind the node; of a node that may give up, how */
#define OWN_ENTRY node
#endif

/* A participant's lines. Each of the others may be about to give one back that it has taken out. */
#if TIMED
#define LINES P
bool STANDS_IN[P * LINES]; /* its owner has left */
short TURN[NODES];         /* where a node waits: the parity, LEFT, OUT, nodes, as turn_word */
#else
#define LINES 1
byte TOLD[P];            /* what p was told: nodes that the lock may still be passed to, + 1 */
#endif
byte NEXT[P * LINES];    /* who stands behind a line in its node's queue */
#define WAITING 0
#define HEAD 1 /* its predecessor has left the queue */
#define LEFT 2
#define OUT 3
short STATE[P * LINES];  /* one of these, or the word of a node that is handed over, with RESERVED */

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

/* What is kept for the head of a queue that nobody is left in is for anybody. */
#if TIMED
#define NOBODY_STANDS (NODE_TAIL[node] == NIL)
#else
#define NOBODY_STANDS false
#endif

/* Takes the word past the queue: `barged` says whether, `found` what it was. */
inline take() {
  atomic {
    found = WORD[node];
    if
    :: IS_FREE(found) -> WORD[node] = HELD; barged = true; GOES_PAST(node)
    :: else
    fi
  }
  if
  :: !barged && (found & HELD) == 0 && ((found & RESERVED) == 0 || NOBODY_STANDS) ->
    atomic {
      if
      :: WORD[node] == found ->
        WORD[node] = HELD; barged = true; barging = (found & BARGING) != 0; GOES_PAST(node)
      :: else
      fi
    }
  :: else
  fi
}

/* Who was handed the word, or has come to the queue's head and was not passed by there, stays in
 * the queue while it has it. */
inline stay_if_told() {
  atomic {
    if
    :: told_word > HEAD || (!TRIES && told_word == HEAD) ->
      found = told_word & ~(RESERVED | 7 << 3); handovers_left = PASSED_BY_OF(told_word);
      in_queue = true; barging = false
    :: else
    fi;
    told_word = 0
  }
}
/* That it was not passed by tells nothing if it had no time. By whom it was is not told apart: it
 * may take that for a reason to let others come past, or not. */
inline stay_if_alone() {
  if
  :: HANDOVERS > 0 -> in_queue = true; barging = false; handovers_left = HANDOVERS
  :: HANDOVERS > 0 && PASSED_BY_OF(found) == 0 && barging
  :: HANDOVERS > 0 && PASSED_BY_OF(found) > 0 -> barging = true
  :: HANDOVERS == 0
  fi
}

#define TELL(what)                                  \
  STATE[AT(ref)] = what;                            \
  if                                                \
  :: what == HEAD -> HEADS(node)                    \
  :: else                                           \
  fi

#if TIMED
#define GIVES_UP timed
#define GAVE_UP gave_up
#define STATE_OF(ref) STATE[AT(ref)]

/* Who leaves a queue looks for somebody behind who has not given up. That has no end if each time
 * somebody gives up, or comes back, between two of its looks. */
#ifdef OBSERVE
byte leaving = 0; /* the sum of 2^p of those who are at it */
#define LEAVES leaving = leaving | (1 << me)
#define HAS_LEFT leaving = leaving & ~(1 << me)
#else
#define LEAVES skip
#define HAS_LEFT skip
#endif

/* A free line, or the one that we have left in the queue and that still stands there. */
inline line_to_stand_in() {
  stands = false;
  if
  :: left_line != NIL && STANDS_IN[AT(left_line)] ->
    atomic { line = AT(left_line); left_line = NIL }
    atomic {
      if
      :: STATE[line] == LEFT -> STATE[line] = WAITING; STANDS_IN[line] = false; stands = true
      :: else
      fi
    }
    if
    :: stands
    :: !stands && STATE[line] == WAITING
    fi
  :: else ->
    atomic {
      left_line = NIL;
      line = me * LINES;
      do
      :: STATE[line] != WAITING -> line++; assert(line < (me + 1) * LINES)
      :: else -> break
      od;
      assert(!STANDS_IN[line] && NEXT[line] == NIL)
    }
  fi
}

inline take_out(l) {
  if
  :: NEXT[l] != NIL -> atomic { ref = NEXT[l]; NEXT[l] = NIL }
  :: NEXT[l] == NIL ->
    if
    :: atomic { NODE_TAIL[node] == REF(l) -> NODE_TAIL[node] = NIL; ref = NIL }
    :: atomic { NODE_TAIL[node] != REF(l) && NEXT[l] != NIL -> ref = NEXT[l]; NEXT[l] = NIL }
    fi
  fi
}

/* The next one that has not given up is told. */
inline tell_next(what) {
  take_out(line);
  do
  :: ref == NIL -> break
  :: ref != NIL ->
    if
    :: atomic { STATE_OF(ref) == WAITING -> TELL(what) } break
#if TAKES_OUT
    :: STATE_OF(ref) != WAITING ->
      if
      :: atomic { STATE_OF(ref) == LEFT -> STATE_OF(ref) = OUT; there = AT(ref) }
        take_out(there);
        STANDS_IN[there] = false;
        atomic { STATE[there] = WAITING; there = 0 }
      :: STATE_OF(ref) != LEFT /* it is back */
      fi
#else
    :: atomic { STATE_OF(ref) != WAITING -> TELL(what) } break
#endif
    fi
  od
}

inline queue() {
  line_to_stand_in();
  if
  :: stands -> is_behind = true
  :: !stands ->
    atomic {
      ref = NODE_TAIL[node];
      NODE_TAIL[node] = REF(line);
      is_behind = ref != NIL;
      if
      :: ref == NIL -> HEADS(node)
      :: else
      fi
    }
    if
    :: ref != NIL -> atomic { NEXT[AT(ref)] = REF(line); ref = NIL }
    :: ref == NIL
    fi
  fi;
  if
  :: is_behind ->
    if
    :: atomic {
        STATE[line] != WAITING && STATE[line] != LEFT && STATE[line] != OUT ->
        told_word = STATE[line]; STATE[line] = WAITING
      }
    :: atomic {
        GIVES_UP && STATE[line] == WAITING ->
        STATE[line] = LEFT; STANDS_IN[line] = true; left_line = REF(line); gave_up = true
      }
    fi
  :: !is_behind
  fi;
  stay_if_told();
  if
  :: gave_up || in_queue
  :: else ->
    /* compete */
    do
    :: atomic { (WORD[node] & HELD) == 0 -> found = WORD[node] }
      if
      :: atomic {
          WORD[node] == found -> WORD[node] = HELD; HEADS_NO_MORE(node); stay_if_alone()
        } break
      :: WORD[node] != found
      :: GIVES_UP && WORD[node] != found -> gave_up = true; break
      fi
    :: GIVES_UP && (WORD[node] & HELD) -> gave_up = true; break
    od;
    atomic { found = (gave_up -> 0 : found); HEADS_NO_MORE(node); LEAVES }
    if
    :: !in_queue -> tell_next(HEAD)
    :: in_queue
    fi;
#if TAKES_WHAT_IS_LEFT
    if
    :: ref == NIL && gave_up ->
      found = WORD[node];
      if
      :: !IS_FREE(found) && (found & HELD) == 0 ->
        atomic {
          if
          :: WORD[node] == found -> WORD[node] = HELD; gave_up = false
          :: else
          fi
        }
      :: else
      fi
    :: else
    fi;
#endif
  fi;
  atomic {
    ref = NIL; stands = false; is_behind = false; line = (in_queue -> line : 0); HAS_LEFT
  }
}
#define OWN_LINE line

#else
#define GAVE_UP false
#define OWN_LINE me
#define LEAVES skip
#define HAS_LEFT skip

/* The next one, if there is one, is told. */
inline tell_next(what) {
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
  :: ref != NIL -> atomic { NEXT[me] = NIL; TELL(what) }
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
    atomic { STATE[me] != WAITING -> told_word = STATE[me]; STATE[me] = WAITING }
  :: else
  fi;
  stay_if_told();
  if
  :: in_queue
  :: !in_queue ->
    /* compete: looks until the word is free, and takes it if it has not changed since. */
    do
    :: atomic { (WORD[node] & HELD) == 0 -> found = WORD[node] }
      if
      :: atomic {
          WORD[node] == found -> WORD[node] = HELD; HEADS_NO_MORE(node); stay_if_alone()
        } break
      :: WORD[node] != found
      fi
    od;
    /* Out of the queue at once. */
    if
    :: !in_queue -> tell_next(HEAD); ref = NIL
    :: in_queue
    fi
  fi
}
#endif

/* What the last holder has kept in the word. */
inline keep_found() {
  atomic {
    with_top = (found & WITH_TOP) != 0;
    passed_by = (barged -> PASSED_BY_OF(found) : 0);
    in_a_row = IN_A_ROW_OF(found);
    left = LEFT_OF(found);
    is_noted = (found & NOTE) != 0;
    found = 0
  }
}

#if COUNTS_PASSED
#define NOW_PASSED_BY (barged -> (passed_by + 1 < BARGE -> passed_by + 1 : BARGE) : 0)
#define MARK_OF_HEAD(passed)                                                           \
  (HANDOVERS > 0 && !barging                                                           \
       -> RESERVED                                                                     \
       : (HANDOVERS > 0 -> BARGING : 0) | ((passed) << 3) | ((passed) >= BARGE -> RESERVED : 0))
#else
#define NOW_PASSED_BY 0
#define MARK_OF_HEAD(passed) 0
#endif

/* ---- Peterson: our side is seen to be interested, by its word or by the tail ---- */

#if TIMED
#define OR_GIVES_UP :: timed -> gave_up = true
#else
#define OR_GIVES_UP
#endif

#define LOOK_AT_HOME LOOK_FOR_NOTES((is_noted -> NOTE : 0), TAIL)
#define LOOK_FROM_ELSEWHERE LOOK_FOR_NOTES(WORD[0], (is_noted -> NOTE_AT_TAIL : 0))

/* Whose turn it is since the other side is the victim. */
#if VICTIM_FORGETS
#define GOES_FIRST(look) skip
#else
#define GOES_FIRST(look) look
#endif

#define HOME_MAY_ENTER                                                     \
  if                                                                       \
  :: atomic { NOBODY_AT(TAIL) -> LOOK_AT_HOME }                            \
  :: atomic { VICTIM && victim != LOCAL_SIDE -> GOES_FIRST(LOOK_AT_HOME) } \
  OR_GIVES_UP                                                              \
  fi

#define REMOTE_MAY_ENTER                                                           \
  if                                                                               \
  :: atomic { !INTERESTED(WORD[0]) -> LOOK_FROM_ELSEWHERE }                        \
  :: atomic { VICTIM && victim != REMOTE_SIDE -> GOES_FIRST(LOOK_FROM_ELSEWHERE) } \
  OR_GIVES_UP                                                                      \
  fi

inline agree_at_home() {
  if
  :: atomic { NOBODY_AT(TAIL) -> LOOK_AT_HOME }
  :: !NOBODY_AT(TAIL) ->
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
  :: atomic { !INTERESTED(WORD[0]) -> LOOK_FROM_ELSEWHERE }
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

#define SWAP_TAIL(entry)                        \
  ref = TAIL; TAIL = entry;                     \
  is_noted = (ref & NOTE_AT_TAIL) != 0;         \
  ref = (NOBODY_AT(ref) -> NIL : ref);          \
  left = (ref == NIL -> 0 : REMOTE_BUDGET)

#if TIMED
#define PARITY 1 /* of the last wait that has ended, or was given up */
#define GIVEN_UP 2
#define BEING_TAKEN_OUT 4
#define NODES_TOLD(turn) ((turn) >> 3)
#define LINK(ref, parity, may_give_up) ((ref) | (parity) << 2 | (may_give_up) << 3)
#define ENTRY_OF(link) (AT((link) & 3))
#define PARITY_OF(link) ((link) >> 2 & 1)
#define MAY_HAVE_LEFT(link) ((link) >> 3)

/* Whether our node's entry is in the queue, left there by one of us who gave up: its place is ours. */
inline has_a_place() {
  atomic { turn = TURN[node]; has_place = false }
#if KEEPS_PLACE
  if
  :: (turn & (GIVEN_UP | BEING_TAKEN_OUT)) == GIVEN_UP ->
    atomic {
      if
      :: TURN[node] == turn ->
        TURN[node] = (turn & ~GIVEN_UP) ^ PARITY; turn = TURN[node]; has_place = true
      :: else
      fi
    }
  :: else
  fi;
  if
  :: !has_place && (turn & GIVEN_UP) -> atomic { (TURN[node] & GIVEN_UP) == 0 -> turn = TURN[node] }
  :: else
  fi
#endif
}

inline wait_for_turn() {
  if
  :: atomic { (TURN[node] & PARITY) != (turn & PARITY) -> left = NODES_TOLD(TURN[node]) }
  :: atomic {
      GIVES_UP && TURN[node] == turn ->
      TURN[node] = ((turn & PARITY) ^ PARITY) | GIVEN_UP; gave_up = true
    }
  fi
}

inline enter() {
  has_a_place();
  if
  :: has_place -> wait_for_turn()
  :: !has_place ->
    atomic { SWAP_TAIL(REF(node)) }
    if
    :: ref != NIL ->
      atomic { ENTRY[AT(ref)] = LINK(REF(node), (turn & PARITY) ^ PARITY, timed); ref = NIL }
      wait_for_turn()
    :: ref == NIL
    fi
  fi;
  atomic { turn = 0; has_place = false }
}

#else
inline wait_behind() {
  atomic { ENTRY[AT(ref)] = REF(me); ref = NIL }
  atomic { TOLD[me] != 0 -> left = TOLD[me] - 1; TOLD[me] = 0 }
}

inline enter() {
  atomic { SWAP_TAIL(REF(OWN_ENTRY)) }
  if
  :: ref != NIL -> wait_behind()
  :: else
  fi
}
#endif

#if TIMED
/* An entry behind ours that its node has left. What is behind that comes behind ours. */
inline take_out_entry() {
  if
  :: ENTRY[AT(ref)] != NIL
  :: ENTRY[AT(ref)] == NIL ->
    if
    :: atomic { TAIL == ref -> TAIL = REF(node) }
    :: atomic { TAIL != ref && ENTRY[AT(ref)] != NIL }
    fi
  fi;
  if
  :: ENTRY[AT(ref)] != NIL ->
    atomic { behind = ENTRY[AT(ref)]; ENTRY[AT(ref)] = NIL }
    atomic { ENTRY[node] = behind; behind = NIL }
  :: ENTRY[AT(ref)] == NIL
  fi;
  TURN[AT(ref)] = PARITY_OF(succ)
}

/* To the next node that has not given up. */
inline leave_queue(free_tail) {
  do
  :: atomic { succ = ENTRY[node]; LEAVES }
    if
    :: succ == NIL ->
      if
      :: atomic { TAIL == REF(node) -> TAIL = free_tail } break
      :: atomic { TAIL != REF(node) && ENTRY[node] != NIL -> succ = ENTRY[node] }
      fi
    :: succ != NIL
    fi;
    atomic { ENTRY[node] = NIL; ref = succ & 3 }
    if
    :: !MAY_HAVE_LEFT(succ) || !TELLS ->
      TURN[AT(ref)] = PARITY_OF(succ) | ((left - 1) << 3); break
    :: else ->
      /* tell */
      turn = TURN[AT(ref)];
      do
      :: atomic {
          TURN[AT(ref)] == turn && (turn & GIVEN_UP) == 0 ->
          TURN[AT(ref)] = PARITY_OF(succ) | ((left - 1) << 3); told = true
        } break
      :: atomic {
          TURN[AT(ref)] == turn && (turn & GIVEN_UP) != 0 ->
          TURN[AT(ref)] = turn | BEING_TAKEN_OUT
        } break
      :: atomic { TURN[AT(ref)] != turn -> turn = TURN[AT(ref)] } /* it gave up, or is back */
      od;
      if
      :: told -> break
      :: !told -> take_out_entry()
      fi
    fi
  od;
  atomic { ref = NIL; succ = NIL; turn = 0; told = false; HAS_LEFT }
}
#else
inline leave_queue(free_tail) {
  ref = ENTRY[OWN_ENTRY];
  if
  :: ref == NIL ->
    if
    :: atomic { TAIL == REF(OWN_ENTRY) -> TAIL = free_tail }
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
#endif

/* Fetches the lock above for our node. */
inline climb() {
  atomic { in_a_row = 0; left = REMOTE_BUDGET }
  if
  :: node == 0 -> agree_at_home()
  :: else ->
    enter();
    if
    :: left > 0 || GAVE_UP
    :: else ->
      agree_from_elsewhere();
      if
      :: GAVE_UP -> left = 1; leave_queue(NIL) /* whoever is behind us must agree for itself */
      :: !GAVE_UP -> left = REMOTE_BUDGET
      fi
    fi
  fi
}

#if LOCAL_BUDGETS
#define STAYS_HERE (ONLY_NODE || in_a_row + 1 < LOCAL_BUDGET)
#define ONE_MORE_IN_A_ROW (in_a_row + 1)
#else
#define STAYS_HERE true
#define ONE_MORE_IN_A_ROW 0
#endif

#define OF_TOP (stays && !ONLY_NODE -> WITH_TOP | (ONE_MORE_IN_A_ROW << 6) | (left << 9) \
                                    : (FORGETS_TOP || ONLY_NODE -> note : WITH_TOP | (left << 9)))
#define KEPT (MARK_OF_HEAD(NOW_PASSED_BY) | OF_TOP)

/* The word is the next one's, and we are out of the queue; or just that, and `in_queue` is no more:
 * where nobody is left behind us, and where the next one is told to compete, a trial. */
inline hand_over() {
#if STANDS_DOWN
  atomic {
    barging = handovers_left == 0;
    told_word = (barging -> HEAD : OF_TOP | RESERVED | ((handovers_left - 1) << 3));
    LEAVES
  }
  tell_next(told_word);
  atomic {
    gone = ref != NIL && told_word != HEAD;
    in_queue = false; handovers_left = 0; told_word = 0; ref = NIL; HAS_LEFT
  }
#else
  in_queue = false
#endif
}

inline pass() { WORD[node] = KEPT }

#define SOMEBODY_WAITS (NODE_TAIL[node] != (in_queue -> REF(OWN_LINE) : NIL))

#define ENTER_FREE is_noted = (TAIL & NOTE_AT_TAIL) != 0; TAIL = REF(OWN_ENTRY)

proctype participant(byte me; byte node) {
  bool is_noted = false, is_told = false; /* what was found while the lock was free, and believed */
  short note = NOTE_OF_NOTHING;           /* for the next one that finds the home's word free */
#if TIMED
  byte line = 0, left_line = NIL, there = 0, succ = NIL, behind = NIL;
  short turn = 0, passed = 0;
  bool timed = false, gave_up = false, stands = false, is_behind = false, has_place = false,
       told = false;
#endif
  short found = 0;
  short told_word = 0;
  byte ref = NIL, passed_by = 0, in_a_row = 0, left = 0, handovers_left = 0;
  bool in_queue = false, barging = false, gone = false; /* barging: as it was the last time, too */
  bool barged = false, with_top = false, waited_for = false, stays = false;
  ROUND_COUNTER

  do
  :: NEXT_ROUND ->
    if
    :: !ONLY_TRIES(me) -> /* lock */
#if TIMED
      if
      :: MAY_GIVE_UP(me) -> timed = true
      :: timed = false; WAITS(writer_waits)
      fi;
#else
      WAITS(writer_waits);
#endif
      take();
      if
      :: barged
      :: else -> queue()
      fi;
#if TIMED
      if
      :: gave_up -> goto next_round
      :: !gave_up
      fi;
#endif
      keep_found();
      if
      :: ONLY_NODE || with_top
      :: else ->
        climb();
#if TIMED
        if
        :: gave_up -> goto let_go
        :: !gave_up
        fi
#endif
      fi
    :: TRY || ONLY_TRIES(me) -> /* try_lock */
#if LOOKS_AT_TAIL
      if
      :: node == 0 && !NOBODY_AT(TAIL) -> goto next_round
      :: node != 0 || NOBODY_AT(TAIL)
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
          :: atomic { NOBODY_AT(TAIL) -> LOOK_AT_HOME }
          :: !NOBODY_AT(TAIL) -> goto let_go
          fi
        :: else ->
          if
#if TIMED
          :: TURN[node] & GIVEN_UP -> goto let_go
          :: atomic { (TURN[node] & GIVEN_UP) == 0 && NOBODY_AT(TAIL) -> ENTER_FREE }
#else
          :: atomic { NOBODY_AT(TAIL) -> ENTER_FREE }
#endif
          :: !NOBODY_AT(TAIL) -> goto let_go
          fi;
          if
          :: atomic { !INTERESTED(WORD[0]) -> LOOK_FROM_ELSEWHERE }
          :: INTERESTED(WORD[0]) ->
#if GIVES_WAY
            victim = REMOTE_SIDE;
#endif
#if COMPETES
            left = 1; /* whoever came behind us must agree for itself */
#else
            left = 2;
#endif
            leave_queue(NIL);
            goto let_go
          fi
        fi
      fi
    fi;

    writer_enters();
    batch_goes_on();
#if NOTES
    FINDS_AND_LEAVES_ORDER
#endif
    writer_leaves();

    /* unlock */
    waited_for = SOMEBODY_WAITS;
    stays = waited_for && STAYS_HERE;
    if
    :: in_queue && stays ->
      hand_over();
      if
      :: gone -> goto next_round
      :: else
      fi
    :: else
    fi;
#if TIMED
    if
    :: stays -> /* pass_to_somebody */
      atomic { passed = KEPT; WORD[node] = passed }
#if LOOKS_AGAIN
      if
      :: NODE_TAIL[node] != NIL -> goto next_round
      :: NODE_TAIL[node] == NIL
      fi;
      atomic {
        if
        :: WORD[node] == passed -> WORD[node] = HELD; stays = false; passed = 0
        :: else -> goto next_round
        fi
      }
#else
      goto next_round
#endif
    :: !stays
    fi;
#endif
#if !LEAVES_FIRST
    if
    :: waited_for -> pass()
    :: else -> WORD[node] = note
    fi;
#endif
    if
    :: node != 0 && !stays -> leave_queue(FREE_TAIL)
    :: else
    fi;
#if LEAVES_FIRST
    if
    :: in_queue -> hand_over()
    :: else
    fi;
    if
    :: gone
    :: !gone && waited_for -> pass()
    :: else -> WORD[node] = note
    fi;
#endif
    goto next_round;
let_go:
#if ATTEMPTS_COUNT
    waited_for = SOMEBODY_WAITS;
#endif
    if
    :: in_queue -> hand_over()
    :: else
    fi;
    if
    :: gone
    :: !gone && waited_for -> pass()
    :: else -> WORD[node] = note
    fi;
next_round:
    atomic {
#if TIMED
      timed = false; gave_up = false; passed = 0;
#endif
      passed_by = 0; in_a_row = 0; left = 0; barged = false;
      with_top = false; waited_for = false; stays = false; gone = false;
      is_noted = false; is_told = false; note = NOTE_OF_NOTHING
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
#if TIMED
/* Of three participants, at most. */
#define LEAVES_FOR_EVER(p) <>[] ((leaving & (1 << p)) != 0)
ltl no_starvation {
  []<> !writer_waits || LEAVES_FOR_EVER(0) || LEAVES_FOR_EVER(1) || LEAVES_FOR_EVER(2)
}
ltl no_leaving_without_end { []<> !writer_waits }
#else
ltl no_starvation { []<> !writer_waits }
#endif
#endif
