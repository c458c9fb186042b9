/* flight-rw's tree of gates: a writer, its deputies in one branch, and readers there.
 *
 * include/lockflight/lock/flight_rw/gate_tree.hpp, flight_rw/deputies.hpp and flight_rw/deputy.hpp, with the names that they have
 * there. The writer's node is not of the branch; the branch has a first node, all of whose readers
 * may be deputies, and another node. Gates are opened after each writer. What readers and writers do
 * at a gate is as in flight_rw.pml, and flight is a lock that is first come, first served.
 *
 * How long the writer is patient is its choice: it dismisses a deputy that is not there at any look.
 * Wishes are numbered without end, and numbers are only compared: so those that somebody remembers
 * are replaced, after each step, by their rank among them, and states are finitely many.
 *
 * Macros of this model:
 *   WRITERS, DEPUTIES, READERS   the latter on the other node
 *   TIMED             1: a writer may give up while it waits for readers and deputies
 * and what each part is for shows without it:
 *   CHECKS_DISMISSAL=0  a deputy does not look whether it has been dismissed
 *   LOOKS_AGAIN=0       a writer does not look for a deputy that came before it was dismissed
 *   AWAITS_DEPUTIES=0   a writer that gives up does not wait for its deputies
 *   COMPARES_WISHES=0   a deputy takes on any wish but the last one that was
 *   AWAITS_READERS=0    a deputy does not wait for the readers of its branch
 *   KNOWS_ITS_PHASE=0   who has parked before the gates were opened sees to their closing
 * Of all: shared.pml.
 */

#ifndef WRITERS
#define WRITERS 1
#endif
#ifndef DEPUTIES
#define DEPUTIES 1
#endif
#ifndef READERS
#define READERS 1
#endif
#ifndef TIMED
#define TIMED 0
#endif
#ifndef CHECKS_DISMISSAL
#define CHECKS_DISMISSAL 1
#endif
#ifndef LOOKS_AGAIN
#define LOOKS_AGAIN 1
#endif
#ifndef AWAITS_DEPUTIES
#define AWAITS_DEPUTIES 1
#endif
#ifndef COMPARES_WISHES
#define COMPARES_WISHES 1
#endif
#ifndef AWAITS_READERS
#define AWAITS_READERS 1
#endif
#ifndef KNOWS_ITS_PHASE
#define KNOWS_ITS_PHASE 1
#endif

#include "shared.pml"

chan flight = [WRITERS] of { byte }; /* its holder and those who wait */

/* ---- numbers of wishes ---- */

#define WISHED 0    /* last, as all writers know from the gate of their node */
#define AT_GATE 1   /* as the first node's gate says */
#define TAKEN_ON 2  /* by the last deputy, its errand */
#define DISMISSED 3 /* last */
#define READ(d) (4 + 2 * (d))   /* by a deputy */
#define BEFORE(d) (5 + 2 * (d)) /* what it found in the errand */
#define NUMBERS (4 + 2 * DEPUTIES)
#define NEW (NUMBERS + 1)

byte number[NUMBERS] = 0;
hidden byte n, value, rank, met;

inline keep_order() {
  value = 1; /* 0 is none */
  rank = 1;
  do
  :: value <= NEW ->
    met = 0;
    for (n : 0 .. NUMBERS - 1) {
      if
      :: number[n] == value -> number[n] = rank; met = 1
      :: else
      fi
    }
    if
    :: met == 1 -> rank++
    :: else
    fi;
    value++
  :: else -> break
  od;
  n = 0; value = 0; rank = 0; met = 0
}
#define SET_NUMBER(to, from) d_step { number[to] = from; keep_order() }

/* ---- gates and counts ---- */

#define FIRST 0 /* node of the branch */
#define OTHER 1

bool closed[2] = false;
bool phase[2] = false; /* the epoch's parity */
bool wants_deputy = false; /* at the first gate */
byte counted[2] = 0;
byte parked[4] = 0; /* by node and phase */
#define PARKED(node, p) parked[2 * (node) + (p)]
#define GONE(node, p) (counted[node] == 0 && PARKED(node, 1 - (p)) == 0)

bool under_way = false; /* the errand */

inline set_gate(node, is_closed, p) {
  closed[node] = is_closed;
  phase[node] = p
}

/* ---- the writer ---- */

inline await_gone(node, p) {
  if
  :: give_up
  :: !give_up && GONE(node, p)
#if TIMED
  :: !give_up -> give_up = true
#endif
  fi
}

/* What the writer does itself. */
inline set_other_gate(is_closed, p) {
  atomic { set_gate(OTHER, is_closed, p) }
  if
  :: is_closed -> await_gone(FIRST, p); await_gone(OTHER, p)
  :: else
  fi
}

/* Opens or closes the branch, by a deputy or not; ends when nobody reads there, if it closes it. */
inline set_branch(is_closed, p) {
  SET_NUMBER(WISHED, NEW);
  d_step {
    set_gate(FIRST, is_closed, p);
    wants_deputy = true; number[AT_GATE] = number[WISHED]; keep_order()
  }
  do
  :: number[TAKEN_ON] == number[WISHED] && !under_way -> break
  :: number[TAKEN_ON] != number[WISHED] && LOOKS_AGAIN && !has_dismissed ->
    d_step { has_dismissed = true; number[DISMISSED] = number[WISHED]; keep_order() }
  :: number[TAKEN_ON] != number[WISHED] && (has_dismissed || !LOOKS_AGAIN) ->
    SET_NUMBER(DISMISSED, number[WISHED]);
    set_other_gate(is_closed, p);
    break
#if TIMED
  :: is_closed -> /* dismiss_all */
    give_up = true;
    SET_NUMBER(DISMISSED, number[WISHED]);
#if AWAITS_DEPUTIES
    !(number[TAKEN_ON] == number[WISHED] && under_way);
#endif
    break
#endif
  od;
  has_dismissed = false
}

proctype writer(byte me) {
  bool give_up = false, has_dismissed = false;
  bool now = false; /* the phase */
  ROUND_COUNTER

  do
  :: NEXT_WRITER_ROUND ->
    WAITS(writer_waits);
    flight ! me;
    flight ? [eval(me)];
    now = phase[FIRST];
    set_branch(true, now);
    if
    :: give_up ->
      /* For the same phase: who parked before it may not have left. */
      atomic { set_gate(FIRST, false, now); wants_deputy = false }
      atomic { set_gate(OTHER, false, now) }
      give_up = false;
      SERVED(writer_waits)
    :: else ->
      writer_enters();
      writer_leaves();
      set_branch(false, 1 - now)
    fi;
    atomic { flight ? eval(me); now = false }
  :: WRITER_STOP -> break
  od;
  END
}

/* ---- readers, and deputies ---- */

#define IS_NO_ERRAND(d)                                                  \
  (under_way || (COMPARES_WISHES && number[TAKEN_ON] > number[READ(d)]) || \
   number[TAKEN_ON] == number[READ(d)])

/* At a gate that it has found to want a deputy; `seen_closed` and `seen_phase` are of that look. */
inline see_to(d) {
  if
  :: IS_NO_ERRAND(d)
  :: d_step { !IS_NO_ERRAND(d) -> number[BEFORE(d)] = number[TAKEN_ON]; keep_order() }
    if
    :: d_step { !under_way && number[TAKEN_ON] == number[BEFORE(d)] ->
        number[TAKEN_ON] = number[READ(d)]; under_way = true; keep_order()
      }
      if
      :: CHECKS_DISMISSAL && number[DISMISSED] >= number[READ(d)] -> is_done = false
      :: else ->
        atomic { set_gate(OTHER, seen_closed, seen_phase) }
        is_done = true;
        if
        :: seen_closed && AWAITS_READERS ->
          if
          :: GONE(OTHER, seen_phase)
          :: number[DISMISSED] >= number[READ(d)] -> is_done = false
          fi;
          if
          :: !is_done
          :: is_done && GONE(FIRST, seen_phase)
          :: is_done && number[DISMISSED] >= number[READ(d)] -> is_done = false
          fi
        :: else
        fi
      fi;
      d_step {
        if
        :: is_done
        :: else -> number[TAKEN_ON] = number[BEFORE(d)]
        fi;
        under_way = false; is_done = false; number[BEFORE(d)] = 0; keep_order()
      }
    :: d_step { under_way || number[TAKEN_ON] != number[BEFORE(d)] ->
        number[BEFORE(d)] = 0; keep_order()
      }
    fi
  fi
}

#define IS_FOR_US(d)                                                              \
  (wants_deputy && number[AT_GATE] != number[READ(d)] &&                          \
   (!closed[FIRST] || phase[FIRST] == mine || !KNOWS_ITS_PHASE))

inline look_at_gate(d) {
  d_step {
    seen_closed = closed[FIRST]; seen_phase = phase[FIRST];
    number[READ(d)] = number[AT_GATE]; keep_order()
  }
}

proctype deputy(byte me) {
  bool mine = false, seen_closed = false, seen_phase = false, is_done = false;
  ROUND_COUNTER

  do
  :: NEXT_ROUND ->
    WAITS(reader_waits);
    counted[FIRST]++;
come:
    if
    :: !closed[FIRST] -> reader_enters(); reader_leaves(); counted[FIRST]--
    :: atomic { closed[FIRST] -> mine = phase[FIRST] }
      atomic { counted[FIRST]--; PARKED(FIRST, mine)++ }
      do
      :: atomic { IS_FOR_US(me) -> look_at_gate(me) }
        see_to(me);
        if
        :: seen_phase != mine -> break
        :: else
        fi
      :: phase[FIRST] != mine && !IS_FOR_US(me) -> break
      :: phase[FIRST] == mine && !closed[FIRST] ->
        atomic { PARKED(FIRST, mine)--; counted[FIRST]++ }
        goto come
      od;
      reader_enters();
      reader_leaves();
      PARKED(FIRST, mine)--
    fi;
    d_step { mine = false; seen_closed = false; seen_phase = false; number[READ(me)] = 0; keep_order() }
  :: STOP -> break
  od;
  END
}

proctype reader(byte me) {
  bool mine = false;
  ROUND_COUNTER

  do
  :: NEXT_ROUND ->
    WAITS(reader_waits);
    counted[OTHER]++;
come:
    if
    :: !closed[OTHER] -> reader_enters(); reader_leaves(); counted[OTHER]--
    :: atomic { closed[OTHER] -> mine = phase[OTHER] }
      atomic { counted[OTHER]--; PARKED(OTHER, mine)++ }
      if
      :: phase[OTHER] != mine
      :: phase[OTHER] == mine && !closed[OTHER] ->
        atomic { PARKED(OTHER, mine)--; counted[OTHER]++ }
        goto come
      fi;
      reader_enters();
      reader_leaves();
      PARKED(OTHER, mine)--
    fi;
    mine = false
  :: STOP -> break
  od;
  END
}

init {
  byte p;
  atomic {
    for (p : 0 .. WRITERS - 1) { run writer(p) }
#if DEPUTIES > 0
    for (p : 0 .. DEPUTIES - 1) { run deputy(p) }
#endif
#if READERS > 0
    for (p : 0 .. READERS - 1) { run reader(DEPUTIES + p) }
#endif
    p = 0
  }
}

#ifdef OBSERVE
ltl no_writer_starves { []<> !writer_waits }
ltl no_reader_starves { []<> !reader_waits }
#endif
