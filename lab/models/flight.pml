/* flight: a lock of each node, a queue of the nodes' leaders, and Peterson's algorithm between the
 * head of that queue and the home's node.
 *
 * include/lockflight/lock/part/abortable_queue.hpp, flight/node_lock.hpp, flight/leader_queue.hpp,
 * flight/peterson.hpp and flight.hpp, with the names that they have there. Node 0 is the home.
 *
 * Stores may be seen late; here each is seen at once. That they are where it matters, by fences and
 * atomics, is the checker's to say.
 *
 * Macros of this model:
 *   OF_0, OF_1, OF_2  participants of each node; numbered from the home's on
 *   BARGE, LOCAL_BUDGET, REMOTE_BUDGET, HANDOVERS   parameters, at most 3
 *   TRIERS            participants that only try: the sum of 2^p
 *   TIMED             participants that may give up whenever they wait, or not: the sum of 2^p
 *   OVERTAKEN         asserts that no more others than that overtake the head of a node's queue
 *   VALUES            1: each holder passes a value to the next one; asserts that a holder that
 *                     gets one was passed it by the last one
 *   PASSES            1: each holder tries `pass` before it releases the lock, or does not
 * and what each part is for shows without it. All of these are on unless they are given:
 *   VICTIM=0          a side that finds the other one waits until that is not interested
 *   VICTIM_FIRST=0    the victim is written after the reads
 *   COUNTS_OVERTAKEN=0  nobody counts how often the head is overtaken
 *   LOCAL_BUDGETS=0   a node keeps the lock as long as somebody waits in it
 *   REMOTE_BUDGETS=0  the nodes pass the lock on as long as one waits
 *   FORGETS_TOP=0     a node that gave the top away keeps the mark that it has it
 *   LEAVES_FIRST=0    the word is passed before the node has left the leaders' queue
 *   COMPETES=0        a node behind an attempt that failed takes that for the holder of the lock
 *   GIVES_WAY=0       an attempt that withdraws does not become the victim before
 *   ATTEMPTS_COUNT=0  an attempt that fails frees the word for all, and the head that it has
 *                     overtaken does not learn it
 *   READS_TAIL=0      an attempt at home takes the word without a read of the tail
 *   READS_AGAIN=0     a holder passes the top inside its node, also if no rank waits there
 *   TAKES_WHAT_IS_LEFT=0  the last waiter that gives up leaves a word that was passed to it
 *   COMPARES=0        a node passes the turn by a put, though the successor may have given up
 *   PUTS_BACK=0       a node's entry is taken out though the node has come back
 *   KEEPS_PLACE=0     a node that has given up enters again, though its entry is in the queue
 *   TRIES=0           a waiter that has come to the queue's head takes the word for its own
 *   TAKES_OUT=0       a left queue node is made the head
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
#ifndef VALUES
#define VALUES 0
#endif
#ifndef TRIERS
#define TRIERS 0
#endif
#ifndef TIMED
#define TIMED 0
#endif

#include "shared.pml"

#define P (OF_0 + OF_1 + OF_2)
#define NODES 3
#define ONLY_NODE (OF_1 + OF_2 == 0)
#define NODE_OF(p) ((p) < OF_0 -> 0 : ((p) < OF_0 + OF_1 -> 1 : 2))
#define ONLY_TRIES(p) (((TRIERS) >> (p)) & 1)
#define MAY_GIVE_UP(p) (((TIMED) >> (p)) & 1)

/* ---- the cells ---- */

/* The word of a node. */
#define HELD 1
#define WITH_TOP 2
#define RESERVED 4
#define BARGING 8
#define VALUE 16 /* the handoff value */
#define OVERTAKEN_OF(word) (((word) >> 5) & 7)
#define IN_A_ROW_OF(word) (((word) >> 8) & 7)
#define LEFT_OF(word) (((word) >> 11) & 7)
#define INTERESTED(word) (((word) & (HELD | WITH_TOP)) != 0)
#define IS_PASSED(word) (((word) & (RESERVED | BARGING)) != 0)

short WORD[NODES];     /* 0: free */
byte NODE_TAIL[NODES]; /* the last queue node of the node's queue */

/* A participant's queue nodes. Each of the others may be about to give one back. */
#if TIMED
#define QUEUE_NODES P
#else
#define QUEUE_NODES 1
#endif
byte NEXT[P * QUEUE_NODES];      /* the queue node behind */
bool ABANDONED[P * QUEUE_NODES]; /* its owner has given up */
short STATE[P * QUEUE_NODES];    /* one of these, or a word that is handed over, with RESERVED */
#define WAITING 0
#define LEFT 1
#define OUT 2
#define HEAD 3 /* its predecessor has left the queue */

/* The leaders' queue: entries of nodes. */
byte TAIL = NIL;    /* the last entry */
byte ENTRY[NODES];  /* the entry behind, and how its node waits */
byte TURN[NODES];   /* where a node waits */
#define WAIT 1      /* the parity of the last wait that has ended, or was given up */
#define GIVEN_UP 2
#define TURN_OF(parity, nodes, v) ((parity) | (v) << 2 | (nodes) << 3)
#define LINK(ref, parity, may_give_up) ((ref) | (parity) << 2 | (may_give_up) << 3)
#define ENTRY_OF(link) ((link) & 3)
#define WAIT_OF(link) ((link) >> 2 & 1)
#define MAY_HAVE_LEFT(link) ((link) >> 3)

byte victim = 0; /* the side that lets the other one go first */
#define LOCAL_SIDE 1
#define REMOTE_SIDE 2

/* ---- what is asserted and observed ---- */

#ifdef OVERTAKEN
bool head_waits[NODES];
byte head_overtaken[NODES];
#define HEADS(n) head_waits[n] = true; head_overtaken[n] = 0
#define HEADS_NO_MORE(n) head_waits[n] = false; head_overtaken[n] = 0
#define OVERTAKES(n) \
  head_overtaken[n] = (head_waits[n] -> head_overtaken[n] + 1 : 0); \
  assert(head_overtaken[n] <= OVERTAKEN)
#else
#define HEADS(n) skip
#define HEADS_NO_MORE(n) skip
#define OVERTAKES(n) skip
#endif

bool is_left = false; /* whether the last holder left a value */
#define CHOOSES_VALUE \
  atomic { \
    assert(!got || is_left); \
    if :: VALUES -> is_left = true :: is_left = false fi \
  }

/* A holder that leaves a queue reads whether somebody is behind that has not given up. That has no
 * end if each time somebody gives up, or comes back, between two of its reads. */
#if TIMED && defined(OBSERVE)
byte leaving = 0; /* the sum of 2^p of the ranks that do so */
#define LEAVES leaving = leaving | (1 << me)
#define HAS_LEFT leaving = leaving & ~(1 << me)
#else
#define LEAVES skip
#define HAS_LEFT skip
#endif

/* ---- a node's queue ---- */

/* A free queue node, or, if it still is_in in the queue, the one that we have left there. */
inline node_to_enter_with() {
  if
  :: abandoned != NIL && ABANDONED[AT(abandoned)] ->
    atomic {
      mine = AT(abandoned); abandoned = NIL;
      WHEN(STATE[mine] == LEFT, STATE[mine] = WAITING; ABANDONED[mine] = false; is_in = true)
    }
    is_in || STATE[mine] == WAITING
  :: else ->
    atomic {
      abandoned = NIL;
      mine = me * QUEUE_NODES;
      do
      :: STATE[mine] != WAITING -> mine++; assert(mine < (me + 1) * QUEUE_NODES)
      :: else -> break
      od;
      assert(!ABANDONED[mine] && NEXT[mine] == NIL)
    }
  fi
}

inline take_out(l) {
  if
  :: atomic { NEXT[l] != NIL -> ref = NEXT[l]; NEXT[l] = NIL }
  :: NEXT[l] == NIL ->
    if
    :: atomic { NODE_TAIL[node] == REF(l) -> NODE_TAIL[node] = NIL; ref = NIL }
    :: atomic { NODE_TAIL[node] != REF(l) && NEXT[l] != NIL -> ref = NEXT[l]; NEXT[l] = NIL }
    fi
  fi
}

#define PASS_TO(what) \
  STATE[AT(ref)] = what; \
  if \
  :: what == HEAD -> HEADS(node) \
  :: else \
  fi

/* Passes `what` to the next one that has not given up; `ref` is NIL if there is none. */
inline pass_on(what) {
  LEAVES;
  take_out(mine);
  do
  :: ref == NIL -> break
#ifndef TAKES_OUT
  :: ref != NIL ->
    if
    :: atomic { STATE[AT(ref)] == WAITING -> PASS_TO(what); break }
    :: STATE[AT(ref)] != WAITING ->
      if
      :: atomic { STATE[AT(ref)] == LEFT -> STATE[AT(ref)] = OUT; there = AT(ref) }
        take_out(there);
        ABANDONED[there] = false;
        atomic { STATE[there] = WAITING; there = 0 }
      :: STATE[AT(ref)] != LEFT /* it is back */
      fi
    fi
#else
  :: atomic { ref != NIL -> PASS_TO(what); break }
#endif
  od;
  HAS_LEFT
}

/* Until we have come to the queue's head: `handed` is what the predecessor passed, or 0. */
inline enter_queue() {
  node_to_enter_with();
  if
  :: !is_in ->
    atomic {
      ref = NODE_TAIL[node];
      NODE_TAIL[node] = REF(mine);
      if :: ref == NIL -> HEADS(node) :: else -> is_behind = true fi
    }
    WHEN(is_behind, atomic { NEXT[AT(ref)] = REF(mine); ref = NIL })
  :: else -> is_behind = true
  fi;
  WHEN(is_behind,
    if
    :: atomic { STATE[mine] >= HEAD -> handed = STATE[mine]; STATE[mine] = WAITING }
    :: atomic {
      timed && STATE[mine] == WAITING ->
      STATE[mine] = LEFT; ABANDONED[mine] = true; abandoned = REF(mine); gave_up = true
    }
    fi);
  atomic { is_in = false; is_behind = false }
}

/* ---- a node's word ---- */

/* Takes the word past the queue; `found` is what it was. */
inline take() {
  atomic {
    found = WORD[node];
    WHEN(found == 0, WORD[node] = HELD; barged = true; OVERTAKES(node))
  }
  WHEN(!barged && (found & HELD) == 0 && ((found & RESERVED) == 0 || NODE_TAIL[node] == NIL),
    atomic { WHEN(WORD[node] == found,
      WORD[node] = HELD; barged = true; barging = (found & BARGING) != 0; OVERTAKES(node)) })
}

/* The queue's head. Whether it had the time to see that nobody barges is not modelled: it may take
 * that for a reason to stay in the queue, or not. */
inline compete() {
  do
  :: atomic { (WORD[node] & HELD) == 0 -> found = WORD[node] }
    if
    :: atomic {
        WORD[node] == found ->
        WORD[node] = HELD;
        if
        :: HANDOVERS > 0 -> in_queue = true; barging = false; handovers_left = HANDOVERS
        :: HANDOVERS > 0 && OVERTAKEN_OF(found) == 0 && barging
        :: HANDOVERS > 0 && OVERTAKEN_OF(found) > 0 -> barging = true
        :: HANDOVERS == 0
        fi;
        break
      }
    :: WORD[node] != found
    :: timed && WORD[node] != found -> gave_up = true; break
    fi
  :: timed && (WORD[node] & HELD) -> gave_up = true; break
  od;
  atomic { HEADS_NO_MORE(node) }
}

inline wait() {
  enter_queue();
  if
  :: gave_up
#ifndef TRIES
  :: atomic { handed > HEAD ->
#else
  :: atomic { handed >= HEAD ->
#endif
      found = handed & ~(RESERVED | 7 << 5); handovers_left = OVERTAKEN_OF(handed);
      in_queue = true; barging = false
    }
  :: else ->
    compete();
    if
    :: !in_queue ->
      pass_on(HEAD);
#ifndef TAKES_WHAT_IS_LEFT
      if
      :: gave_up && ref == NIL ->
        found = WORD[node];
        atomic {
          WHEN(IS_PASSED(found) && (found & HELD) == 0 && WORD[node] == found,
            WORD[node] = HELD; gave_up = false)
        }
      :: else
      fi
#endif
    :: else
    fi
  fi;
  atomic { handed = 0; ref = NIL; mine = (in_queue -> mine : 0) }
}

#define SOMEBODY_WAITS (NODE_TAIL[node] != (in_queue -> REF(mine) : NIL))

/* For a holder that is_in in the queue: out of it. `gone` if the word is the successor's then; if
 * not the successor is the head now, and others may barge once. */
inline hand_over(what) {
  atomic {
    barging = handovers_left == 0;
    handed = (barging -> HEAD : (what) | RESERVED | handovers_left - 1 << 5)
  }
  pass_on(handed);
  atomic {
    gone = ref != NIL && !barging;
    in_queue = false; handovers_left = 0; handed = 0; ref = NIL; mine = 0
  }
}

#ifndef COUNTS_OVERTAKEN
#define NOW_OVERTAKEN \
  (barging && barged -> (overtaken + 1 < BARGE -> overtaken + 1 : BARGE) : 0)
#define MARKS \
  ((barging -> BARGING : RESERVED) | NOW_OVERTAKEN << 5 | (NOW_OVERTAKEN >= BARGE -> RESERVED : 0))
#else
#define MARKS BARGING
#endif

#ifndef FORGETS_TOP
#define KEPT_TOP 0
#else
#define KEPT_TOP (ONLY_NODE -> 0 : WITH_TOP | left << 11)
#endif

/* The word without the top. */
inline release_word() {
  WHEN(in_queue, hand_over(0));
  if
  :: gone
  :: !gone && waited_for -> WORD[node] = MARKS | KEPT_TOP
  :: !gone && !waited_for -> WORD[node] = 0
  fi
}

#ifndef LOCAL_BUDGETS
#define STAYS_HERE (ONLY_NODE || in_a_row + 1 < LOCAL_BUDGET)
#define ONE_MORE (in_a_row + 1)
#else
#define STAYS_HERE true
#define ONE_MORE 0
#endif
#define WITH_THE_TOP \
  ((ONLY_NODE -> 0 : WITH_TOP | ONE_MORE << 8 | left << 11) | is_left << 4)

/* The word with the top, to a waiter of our node: `gone`, or the word is ours again. */
inline pass_inside() {
  WHEN(in_queue, hand_over(WITH_THE_TOP));
  if
  :: gone
  :: else ->
    atomic { passed = MARKS | WITH_THE_TOP; WORD[node] = passed; gone = true }
#ifndef READS_AGAIN
    if
    :: NODE_TAIL[node] != NIL
    :: atomic {
        NODE_TAIL[node] == NIL ->
        gone = WORD[node] != passed;
        WORD[node] = (gone -> WORD[node] : HELD)
      }
    fi;
#endif
    passed = 0
  fi
}

/* ---- Peterson: our side is seen to be interested, by its word or by the tail ---- */

inline agree(other_is_away, own_side) {
  if
  :: other_is_away
  :: else ->
#ifndef VICTIM_FIRST
    victim = own_side;
#endif
    if
    :: other_is_away
#ifndef VICTIM
    :: victim != own_side
#endif
    :: timed -> gave_up = true
    fi;
#ifdef VICTIM_FIRST
    victim = own_side
#endif
  fi
}

/* ---- the leaders' queue ---- */

inline wait_for_turn() {
  if
  :: atomic {
      (TURN[node] ^ turn) & WAIT -> left = TURN[node] >> 3; got = TURN[node] >> 2 & 1
    }
  :: atomic {
      timed && TURN[node] == turn ->
      TURN[node] = ((turn & WAIT) ^ WAIT) | GIVEN_UP; gave_up = true
    }
  fi
}

/* `left` is 0 if we are the first, or have to agree with the home's node. */
inline enter() {
  atomic { turn = TURN[node]; left = 0 }
#ifndef KEEPS_PLACE
  WHEN(turn & GIVEN_UP,
    atomic {
      if
      :: TURN[node] == turn ->
        turn = (turn & ~GIVEN_UP) ^ WAIT; TURN[node] = turn; is_behind = true
      :: else -> turn = TURN[node] /* the predecessor has taken the entry out */
      fi
    });
#endif
  if
  :: is_behind
  :: else ->
    atomic { ref = TAIL; TAIL = REF(node); is_behind = ref != NIL }
    WHEN(is_behind,
      atomic { ENTRY[AT(ref)] = LINK(REF(node), (turn & WAIT) ^ WAIT, timed); ref = NIL })
  fi;
  WHEN(is_behind, wait_for_turn());
  atomic { turn = 0; is_behind = false }
}

/* Enters the entry `ref` behind ours: its node is back, and waits. `succ` is the link to it. */
inline put_back() {
  atomic { turn = ENTRY[node] }
  if
  :: turn != NIL
  :: atomic { turn == NIL && TAIL == REF(node) -> TAIL = ref }
  :: turn == NIL && TAIL != REF(node) -> atomic { ENTRY[node] != NIL -> turn = ENTRY[node] }
  fi;
  WHEN(turn != NIL, ENTRY[AT(ref)] = turn);
  ENTRY[node] = succ
}

/* An entry behind ours that its node has left. What is behind that comes behind ours. */
inline take_out_entry() {
  if
  :: ENTRY[AT(ref)] != NIL
  :: atomic { ENTRY[AT(ref)] == NIL && TAIL == ref -> TAIL = REF(node) }
  :: ENTRY[AT(ref)] == NIL && TAIL != ref -> ENTRY[AT(ref)] != NIL
  fi;
  WHEN(ENTRY[AT(ref)] != NIL,
    atomic { turn = ENTRY[AT(ref)]; ENTRY[AT(ref)] = NIL }
    ENTRY[node] = turn);
#ifndef PUTS_BACK
  if
  :: atomic { TURN[AT(ref)] & GIVEN_UP -> TURN[AT(ref)] = WAIT_OF(succ) }
  :: !(TURN[AT(ref)] & GIVEN_UP) -> put_back()
  fi
#else
  TURN[AT(ref)] = WAIT_OF(succ)
#endif
}

#ifndef REMOTE_BUDGETS
#define NEXT_TURN(v) TURN_OF(WAIT_OF(succ), left - 1, v)
#else
#define NEXT_TURN(v) TURN_OF(WAIT_OF(succ), (left == 1 -> 0 : REMOTE_BUDGET), v)
#endif

/* To the next node that has not given up: `gone`; or to nobody, unless we keep the lock then. */
inline leave(keeps, v) {
  LEAVES;
  do
  :: atomic { succ = ENTRY[node] }
    if
    :: succ == NIL && keeps -> break
    :: succ != NIL
    :: atomic { succ == NIL && !(keeps) && TAIL == REF(node) -> TAIL = NIL; break }
    :: atomic { succ == NIL && !(keeps) && ENTRY[node] != NIL -> succ = ENTRY[node] }
    fi;
    atomic { ENTRY[node] = NIL; ref = ENTRY_OF(succ) }
    if
#ifndef COMPARES
    :: atomic { !(TURN[AT(ref)] & GIVEN_UP) -> TURN[AT(ref)] = NEXT_TURN(v); gone = true; break }
    :: TURN[AT(ref)] & GIVEN_UP -> take_out_entry()
#else
    :: atomic { TURN[AT(ref)] = NEXT_TURN(v); gone = true; break }
#endif
    fi
  od;
  atomic { ref = NIL; succ = NIL; turn = 0; HAS_LEFT }
}

/* ---- flight ---- */

/* At the head of the queue, but the home's node has the top: the next node agrees for itself. */
inline leave_without_top() {
#ifndef COMPETES
  left = 1;
#else
  left = 2;
#endif
  leave(false, 0);
  gone = false
}

/* Fetches the top for our node. */
inline climb() {
  atomic { in_a_row = 0; left = REMOTE_BUDGET; got = 0 }
  if
  :: node == 0 -> agree(TAIL == NIL, LOCAL_SIDE); got = 0
  :: else ->
    enter();
    if
    :: left > 0 || gave_up
    :: else ->
      got = 0;
      agree(!INTERESTED(WORD[0]), REMOTE_SIDE);
      if :: gave_up -> leave_without_top() :: else -> left = REMOTE_BUDGET fi
    fi
  fi
}

inline try_climb() {
  atomic { in_a_row = 0; left = REMOTE_BUDGET; got = 0 }
  if
  :: node == 0 -> gave_up = TAIL != NIL
  :: node != 0 && (TURN[node] & GIVEN_UP) -> gave_up = true
  :: node != 0 && !(TURN[node] & GIVEN_UP) ->
    if
    :: atomic { TAIL == NIL -> TAIL = REF(node) }
      if
      :: !INTERESTED(WORD[0])
      :: else ->
#ifndef GIVES_WAY
        victim = REMOTE_SIDE;
#endif
        leave_without_top();
        gave_up = true
      fi
    :: TAIL != NIL -> gave_up = true
    fi
  fi
}

/* pass, while others wait: `gone`, or the lock is ours still. */
inline pass() {
  waited_for = SOMEBODY_WAITS;
  WHEN(waited_for && STAYS_HERE, pass_inside());
  WHEN(!gone && node != 0 && left > 1,
    leave(true, is_left);
    WHEN(gone, gone = false; release_word(); gone = true))
}

inline unlock() {
  waited_for = SOMEBODY_WAITS;
  WHEN(waited_for && STAYS_HERE, pass_inside());
  if
  :: gone
  :: else ->
#ifdef LEAVES_FIRST
    release_word();
#endif
    WHEN(node != 0, leave(false, is_left); gone = false);
#ifndef LEAVES_FIRST
    release_word()
#endif
  fi
}

proctype participant(byte me; byte node) {
  short found = 0, handed = 0, passed = 0; /* words */
  byte mine = 0, abandoned = NIL, there = 0, ref = NIL, succ = NIL, turn = 0; /* queues */
  byte overtaken = 0, in_a_row = 0, left = 0, handovers_left = 0, got = 0;
  bool barged = false, barging = (HANDOVERS == 0), in_queue = false, gone = false;
  bool is_in = false, is_behind = false, tries = false;
  bool timed = false, gave_up = false, with_top = false, waited_for = false;
  ROUND_COUNTER

  do
  :: NEXT_ROUND ->
    if
    :: !ONLY_TRIES(me) -> /* lock */
      if
      :: MAY_GIVE_UP(me) -> timed = true
      :: WAITS(writer_waits)
      fi;
      take();
      WHEN(!barged, wait())
    :: TRY || ONLY_TRIES(me) -> /* try_lock */
#ifndef READS_TAIL
      if
      :: node == 0 && TAIL != NIL -> goto next_round
      :: node != 0 || TAIL == NIL
      fi;
#endif
      take();
      WHEN(!barged, goto next_round);
      tries = true
    fi;
    WHEN(gave_up, goto next_round);
    atomic { /* what the last holder left in the word */
      with_top = (found & WITH_TOP) != 0 || ONLY_NODE;
      overtaken = (barged -> OVERTAKEN_OF(found) : 0);
      in_a_row = IN_A_ROW_OF(found);
      left = LEFT_OF(found);
      got = (found & VALUE) / VALUE;
      found = 0
    }
    if
    :: with_top
    :: !with_top && !tries -> climb()
    :: !with_top && tries -> try_climb()
    fi;
    if
    :: gave_up -> /* the head learns that it was overtaken */
#ifndef ATTEMPTS_COUNT
      waited_for = SOMEBODY_WAITS;
#endif
      release_word();
      goto next_round
    :: else
    fi;

    writer_enters();
    CHOOSES_VALUE;
    writer_leaves();
#if PASSES
    if :: true :: pass() fi;
#endif
    WHEN(!gone, unlock());
next_round:
    atomic {
      found = 0; overtaken = 0; in_a_row = 0; left = 0; got = 0; barged = false; gone = false;
      waited_for = false; timed = false; gave_up = false; with_top = false;
      tries = false
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
