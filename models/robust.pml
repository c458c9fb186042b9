/* robust: any lock, made to outlive its holders by generations.
 *
 * lock/robust.hpp, robust/repair.hpp and rma/interruptible.hpp, over d-mcs, on one node whose memory
 * is sequentially consistent. All acquires are exclusive, and none is an attempt. Names are those
 * of the headers. A record is its phase alone: no other participant reads its generation.
 *
 * `fate` ends a participant before any of its steps, unless its record is idle: such a death is no
 * different from a participant that does not come. The death is known one step later, which is the
 * dead one's last. Before that is_dead says so already (C45). What a participant has posted when it
 * dies takes effect at any time until it is buried, or never (C46).
 *
 * Two reads are one step where the first only makes a wait end earlier: that of `deaths` with the
 * read that follows it.
 *
 * Beside exclusion and progress the assertions are: tokens grow; a holder is told of a death exactly
 * if one died that held; a queue node is clean when it is taken; no participant writes to the queue
 * node of a dead one whose place may be taken; and GENERATIONS=K, the most that there may be.
 *
 * Macros of this model:
 *   P                   participants, at most 4
 *   DEATHS              deaths at most
 *   REBIRTH=1           a dead one's place is taken again when its record is idle
 * What can be left out:
 *   READS_AGAIN=0       an acquirer does not read the generation again after it wrote its record
 *   RELEASES_AGAIN=0    a releaser does not
 *   AWAITS_OPEN=0       a releaser does not wait for a repair that is under way
 *   HEIRS_FIRST=0       an acquirer says that it holds before it waits for heirs
 *   AWAITS_HEIRS=0      an acquirer does not wait for the holders of earlier generations
 *   REPLACES=0          a waiter that leaves a generation replaces it only if it finds a body
 *   KNOWN_FIRST=0       a wait ends with the deaths that come after it has begun, no others
 *   TAKES_OVER=0        a dead repairer keeps its right
 *   NAMES_GENERATION=0  the right to repair does not name the generation
 *   LOOKS_AGAIN=0       a repairer does not look for a body once it has the right
 *   AWAITS_USERS=0      a repairer does not wait for participants that use the words
 *   COUNTS_HEIRS=0      a repairer does not count those that hold
 *   ONE_READ=0          a repairer reads the record again to see whether its participant holds
 *   DEAD_FIRST=0        a repairer reads the record before it reads whether its participant is dead
 *   TELLS=0             a repairer does not say that a holder died
 *   BURIES=0            a repairer does not end what the dead one has posted
 *   LATE=0              a repairer makes the record of a dead one idle when it sees it
 *   SEEN_ALONE=0        a repairer at the end makes the records of all dead ones idle
 *   FRESH=0             a repairer leaves the words as they are
 * Of all: shared.pml.
 */

#ifndef P
#define P 3
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef REBIRTH
#define REBIRTH 0
#endif
#ifndef GENERATIONS
#define GENERATIONS 15
#endif
#ifndef READS_AGAIN
#define READS_AGAIN 1
#endif
#ifndef RELEASES_AGAIN
#define RELEASES_AGAIN 1
#endif
#ifndef AWAITS_OPEN
#define AWAITS_OPEN 1
#endif
#ifndef HEIRS_FIRST
#define HEIRS_FIRST 1
#endif
#ifndef AWAITS_HEIRS
#define AWAITS_HEIRS 1
#endif
#ifndef REPLACES
#define REPLACES 1
#endif
#ifndef KNOWN_FIRST
#define KNOWN_FIRST 1
#endif
#ifndef TAKES_OVER
#define TAKES_OVER 1
#endif
#ifndef NAMES_GENERATION
#define NAMES_GENERATION 1
#endif
#ifndef LOOKS_AGAIN
#define LOOKS_AGAIN 1
#endif
#ifndef AWAITS_USERS
#define AWAITS_USERS 1
#endif
#ifndef COUNTS_HEIRS
#define COUNTS_HEIRS 1
#endif
#ifndef ONE_READ
#define ONE_READ 1
#endif
#ifndef DEAD_FIRST
#define DEAD_FIRST 1
#endif
#ifndef TELLS
#define TELLS 1
#endif
#ifndef BURIES
#define BURIES 1
#endif
#ifndef LATE
#define LATE 1
#endif
#ifndef SEEN_ALONE
#define SEEN_ALONE 1
#endif
#ifndef FRESH
#define FRESH 1
#endif

#include "shared.pml"

/* Phases of a record. */
#define IDLE 0
#define ACQUIRING 1
#define HOLDING 2
#define RELEASING 3
#define LEFT 4
#define BURIED 5

#define NEVER 255
#define IS_CLOSED(g) ((g) % 2 == 1)
#define IS_OVER(r) (record[r] == BURIED || (!SEEN_ALONE && dead[r] && record[r] != IDLE))
#define RANK_OF(right) AT((right) % 8)
#if NAMES_GENERATION
#define RIGHT_OF(g) ((g) * 8 + REF(me))
#else
#define RIGHT_OF(g) REF(me)
#endif
#if !ONE_READ
#define FIRST_READ is_dead = dead[r]; is = record[r]
#define SECOND_READ skip
#define HOLDS (record[r] == HOLDING)
#else
#define HOLDS (is == HOLDING)
#if DEAD_FIRST
#define FIRST_READ is_dead = dead[r]
#define SECOND_READ is = record[r]
#else
#define FIRST_READ is = record[r]
#define SECOND_READ is_dead = dead[r]
#endif
#endif
#if REPLACES
#define IN_DISORDER ours
#else
#define IN_DISORDER NEVER
#endif

byte generation = 0;
byte inherited = 0;
byte repairer = NIL; /* the right to repair */
byte token = 0;
bool died = false;

byte record[P];
bool dead[P];    /* is_dead */
bool ended[P];   /* bury has returned */
byte deaths = 0; /* those that are known */

byte TAIL = NIL; /* the word of the lock inside */
byte NEXT[P];    /* its queue nodes: the successor of p */
bool WAIT[P];    /* p must wait */

/* What no participant reads. */
byte toll = 0;            /* deaths, known or not */
bool inside[P];           /* is in its critical section */
bool holder_died = false; /* and no holder has put things right since */
byte last_token = 0;

/* ---- what a participant has posted ---- */

mtype = { none, swap, link, compare, hand };

#define OTHERS_NODE(r) assert(!dead[r] || record[r] != IDLE)

inline take_effect() {
  if
  :: posted == swap -> TAIL = REF(me)
  :: posted == link -> OTHERS_NODE(AT(pred)); NEXT[AT(pred)] = REF(me)
  :: posted == compare -> WHEN(TAIL == REF(me), TAIL = NIL)
  :: posted == hand -> OTHERS_NODE(AT(succ)); WAIT[AT(succ)] = false
  fi;
  posted = none
}

/* ---- repair.hpp ---- */

#define NEXT_DEAD do :: r < P && !dead[r] -> r++ :: else -> break od

/* Whether a death concerns this lock: into `lost`. */
inline has_lost_one() {
  atomic { seen = deaths; r = (seen == known -> P : 0); NEXT_DEAD };
  do
  :: r < P ->
    atomic {
      if
      :: record[r] != IDLE -> lost = true; r = 0; seen = 0; break
      :: else -> r++; NEXT_DEAD
      fi
    }
  :: atomic { r == P -> known = seen; r = 0; seen = 0; break }
  od
}

/* Into `has_right`. If not, another participant has repaired, or stopped doing so. */
inline take_the_right() {
  atomic { seen = deaths; is = generation; was = repairer };
  if
  :: atomic {
      was != NIL && !(TAKES_OVER && dead[RANK_OF(was)]) ->
      repairer != was || generation != is || deaths != seen ->
      seen = 0; was = NIL; is = IDLE
    }
  :: atomic {
      was == NIL || (TAKES_OVER && dead[RANK_OF(was)]) ->
      WHEN(repairer == was, repairer = RIGHT_OF(is); has_right = true);
      seen = 0; was = NIL; is = IDLE
    }
  fi
}

inline bury() {
  atomic { WHEN(TELLS && is == HOLDING, died = true); ended[r] = BURIES };
  atomic { record[r] = (LATE -> BURIED : IDLE); is = IDLE; is_dead = false; r++ }
}

/* What each participant r brings into the next generation. One read of its record decides. */
inline survey() {
  do
  :: atomic { r < P -> seen = deaths; FIRST_READ };
    atomic {
      SECOND_READ;
      if
      :: is_dead && is != IDLE
      :: AWAITS_USERS && !is_dead && (is == ACQUIRING || is == RELEASING) ->
        record[r] != is || deaths != seen;
        is = IDLE
      :: else ->
        heirs = heirs + (COUNTS_HEIRS && !is_dead && HOLDS);
        is = IDLE; is_dead = false; r++
      fi;
      seen = 0
    };
    WHEN(is_dead, bury())
  :: r == P -> break
  od
}

/* Replaces the generation, if a participant died in it or if it is the one in disorder. */
inline repair(in_disorder) {
  take_the_right();
  if
  :: has_right ->
    atomic {
      closing = generation;
      lost = (IS_CLOSED(closing) || closing == in_disorder || !LOOKS_AGAIN);
      WHEN(!lost, known = NEVER) /* not what we knew before we had the right */
    };
    WHEN(!lost, has_lost_one());
    if
    :: lost ->
      atomic { /* A closed one was closed by a repairer that died. */
        WHEN(!IS_CLOSED(closing), closing++; generation = closing);
        assert(closing / 2 < GENERATIONS)
      };
      survey();
      atomic { /* Now the words are ours alone. */
        inherited = heirs;
        WHEN(FRESH, TAIL = NIL);
        heirs = 0; r = 0
      };
      do
      :: atomic {
          r < P ->
          do :: r < P && !IS_OVER(r) -> r++ :: else -> break od;
          WHEN(r < P, record[r] = IDLE)
        }
      :: r == P -> break
      od;
      atomic { generation = closing + 1; r = 0 }
    :: else
    fi;
    atomic { repairer = NIL; closing = 0; lost = false; has_right = false }
  :: else
  fi
}

/* The generation `now` is closed: waits until it is open, or repairs if the repairer died. */
inline await_repair() {
  atomic { seen = deaths; was = repairer };
  if
  :: atomic { was == NIL || dead[RANK_OF(was)] -> seen = 0; was = NIL; now = 0 };
    repair(NEVER)
  :: atomic {
      was != NIL && !dead[RANK_OF(was)] ->
      generation != now || deaths != seen ->
      seen = 0; was = NIL; now = 0
    }
  fi
}

/* ---- robust.hpp and interruptible.hpp, over d_mcs.hpp ---- */

/* From now on waits end with this generation, and with deaths that were not known. */
#define HOLD_ON_TO line = (KNOWN_FIRST -> known : deaths)

/* A wait of the lock inside. */
#define AWAIT(done, interrupted)                              \
  do                                                          \
  :: done -> break                                            \
  :: generation != ours -> goto interrupted                   \
  :: atomic { deaths != line -> line = deaths };              \
    has_lost_one();                                           \
    if                                                        \
    :: atomic { lost -> lost = false }; goto interrupted      \
    :: else                                                   \
    fi                                                        \
  od

/* Out of the generation, whose words we leave in disorder. It is over when we are out. */
inline leave() {
  atomic { record[me] = LEFT; line = 0; pred = NIL };
  do
  :: generation != ours -> break
  :: generation == ours -> repair(IN_DISORDER); WHEN(!REPLACES, break)
  od
}

inline reset() { NEXT[me] = NIL; WAIT[me] = false }

#define CLEAR                                                            \
  seen = 0; r = 0; lost = false; is = IDLE; was = NIL; is_dead = false;  \
  has_right = false; closing = 0; heirs = 0; now = 0; line = 0; mine = 0; ours = NEVER; known = 0

proctype participant(byte me) {
  byte ours = NEVER; /* generation_ */
  byte known = 0;    /* deaths_: so many, and none of them concerns this lock */
  byte line;         /* the deaths of the lifeline */
  byte now, pred, succ, mine, seen, r, is, was, closing, heirs;
  bool lost, is_dead, has_right;
  mtype posted = none;
  ROUND_COUNTER

born:
  {
    do
    :: NEXT_ROUND ->
enter:
      now = generation;
      if
      :: IS_CLOSED(now) ->
        record[me] = LEFT;
        await_repair();
        goto enter
      :: else -> record[me] = ACQUIRING
      fi;
      if
      :: READS_AGAIN && generation != now -> atomic { record[me] = LEFT; now = 0 }; goto enter
      :: atomic {
          !READS_AGAIN || generation == now ->
          WHEN(now != ours, reset()); /* no participant is in the one that we have left */
          assert(NEXT[me] == NIL && !WAIT[me]);
          ours = now; now = 0; HOLD_ON_TO;
          posted = swap
        }
      fi;
      atomic {
        pred = TAIL; TAIL = REF(me);
        posted = none;
        WHEN(pred == NIL, goto is_head);
        WAIT[me] = true;
        posted = link
      };
      atomic { take_effect(); pred = NIL };
      AWAIT(!WAIT[me], interrupted);
is_head:
#if HEIRS_FIRST && AWAITS_HEIRS
      AWAIT(inherited == 0, interrupted);
#endif
      goto holds;
interrupted:
      leave();
      goto enter;

holds:
      atomic { record[me] = HOLDING; line = 0 };
#if !HEIRS_FIRST
      AWAIT(inherited == 0, interrupted);
#endif
      mine = token + 1;
      atomic {
        token = mine;
        assert(mine > last_token);
        last_token = mine; mine = 0;
        writer_enters(); inside[me] = true;
        assert(died == holder_died)
      };
      atomic {
        if
        :: died -> died = false; holder_died = false /* mark_consistent */
        :: true
        fi;
        writer_leaves(); inside[me] = false
      };

release:
      now = generation;
      if
      :: AWAITS_OPEN && IS_CLOSED(now) -> await_repair(); goto release
      :: else -> record[me] = RELEASING
      fi;
      if
      :: RELEASES_AGAIN && generation != now -> atomic { record[me] = HOLDING; now = 0 }; goto release
      :: atomic { (!RELEASES_AGAIN || generation == now) && now == ours -> now = 0; HOLD_ON_TO }
      :: atomic { (!RELEASES_AGAIN || generation == now) && now != ours -> now = 0 };
        atomic { assert(inherited > 0); inherited--; reset() };
        goto released
      fi;
      if
      :: atomic { NEXT[me] == NIL -> posted = compare };
        atomic {
          if
          :: TAIL == REF(me) -> take_effect(); goto released
          :: else -> posted = none
          fi
        };
        AWAIT(NEXT[me] != NIL, not_released)
      :: NEXT[me] != NIL
      fi;
      atomic { succ = NEXT[me]; NEXT[me] = NIL; posted = hand };
      atomic { take_effect(); succ = NIL };
      goto released;
not_released:
      leave();
      do
      :: atomic { now = generation; WHEN(!IS_CLOSED(now), now = 0; reset(); break) };
        await_repair()
      od;
released:
      atomic { record[me] = IDLE; line = 0 }
    :: atomic { STOP -> ours = NEVER; known = 0 }; break
    od;
    END
  } unless {
    atomic { dead[me] -> deaths++; CLEAR; WHEN(posted == none, pred = NIL; succ = NIL) };
end_dead:
    if
    :: atomic { posted != none && !ended[me] -> take_effect(); pred = NIL; succ = NIL };
      goto end_dead
#if REBIRTH
    :: atomic {
        record[me] == IDLE ->
        posted = none; pred = NIL; succ = NIL;
        reset();
        ended[me] = false; dead[me] = false;
        known = NEVER; round = 0
      };
      goto born
#endif
    fi
  }
}

/* ---- deaths ---- */

inline may_end(p) {
  atomic {
    toll < DEATHS && !dead[p] && record[p] != IDLE ->
    toll++;
    dead[p] = true;
    WHEN(inside[p] || record[p] == HOLDING, holder_died = true);
    WHEN(inside[p], inside[p] = false; writer_leaves())
  }
}

active proctype fate() {
end_of_all:
  do
  :: atomic { toll < DEATHS -> toll = DEATHS } /* Else a death to come would hide an endless wait. */
  :: may_end(0)
  :: may_end(1)
#if P > 2
  :: may_end(2)
#endif
#if P > 3
  :: may_end(3)
#endif
  od
}

init {
  byte p;
  atomic {
    for (p : 0 .. P - 1) { run participant(p) }
    p = 0
  }
}
