/* robust: any lock, made to outlive its holders by generations.
 *
 * Over d-mcs, on one node whose memory is sequentially consistent. Acquires are exclusive and never
 * give up. A record is its phase alone. The repairer waits until no living participant uses the
 * words and then makes them fresh; lock/robust.hpp evicts participants instead and goes on in other
 * words. The rest of the protocol, from the right to repair to the fate of the dead, is the same.
 *
 * `fate` ends a participant before any of its steps, unless its record is idle: such a death is no
 * different from a participant that does not come. The death becomes known in a later step, the
 * last of the dead one; is_dead says so before (C45). What a participant has posted when it dies
 * takes effect at any time until the participant is buried, or never (C46).
 *
 * Reads are one step where the earlier ones only make a wait end earlier (`deaths`), and where they
 * read of several participants that they live.
 *
 * The assertions, beside exclusion: tokens grow; a holder is told of a death exactly if a
 * participant died that held; no generation is replaced without a death; a queue node is clean when
 * it is taken; no participant writes to the queue node of a dead one whose place may be taken.
 *
 * Macros of this model:
 *   P             participants, at most 4
 *   DEATHS        deaths at most
 *   REBIRTH=1     the place of a dead participant is taken again when its record is idle
 *   WITHOUT=PART  leaves out one of the parts below
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
#ifndef WITHOUT
#define WITHOUT 0
#endif
#define HAS(part) (WITHOUT != part)

/* An acquirer or a releaser */
#define READ_AGAIN 1       /* reads the generation again after it wrote that it acquires */
#define RELEASE_AGAIN 2    /* the same, after it wrote that it releases */
#define AWAIT_OPEN 3       /* waits for a repair under way before it releases */
#define HEIRS_FIRST 4      /* waits for the holders of earlier generations before it holds */
#define AWAIT_HEIRS 5      /* waits for them at all */
#define REPLACE 6          /* replaces the generation that it leaves, also if it finds no body */
#define KNOWN_FIRST 7      /* ends a wait with a death that was known before the wait began */
#define TAKE_OVER 8        /* takes the right to repair from a dead repairer */
#define NAME_GENERATION 9  /* names the generation in the right to repair */
/* A repairer */
#define LOOK_AGAIN 10      /* looks for a body once it has the right */
#define AWAIT_USERS 11     /* waits for participants that use the words */
#define COUNT_HEIRS 12     /* counts those that hold */
#define ONE_READ 13        /* lets one read of a record decide */
#define DEAD_FIRST 14      /* reads whether a participant is dead before it reads the record */
#define TELL 15            /* says that a holder died */
#define END_POSTED 16      /* ends what the dead one has posted */
#define BURY_FIRST 17      /* makes the record of a dead one idle only after all were surveyed */
#define SEEN_ALONE 18      /* makes no record idle whose participant it has not seen dead */
#define FRESH 19           /* makes the words of the lock inside fresh */

#include "shared.pml"

#define IDLE 0
mtype = { ACQUIRING, HOLDING, RELEASING, LEFT, BURIED, none, swap, link, compare, hand };
#define NEVER 255
#define IS_CLOSED(g) ((g) % 2 == 1)
#define RIGHT_OF(g) ((g) * 8 * HAS(NAME_GENERATION) + REF(me))
#define RANK_OF(right) AT((right) % 8)

byte generation = 0, inherited = 0, token = 0;
byte repairer = NIL; /* the right to repair */
bool died = false;
byte record[P];
bool dead[P], ended[P]; /* is_dead; bury has returned */
byte deaths = 0;        /* those that are known */

byte TAIL = NIL; /* the word of the lock inside */
byte NEXT[P]; bool WAIT[P]; /* its queue nodes: the successor of p; p must wait */

/* What no participant reads */
byte toll = 0, last_token = 0; /* deaths, known or not */
bool inside[P];                /* p is in its critical section */
bool holder_died = false;      /* and no holder has put things right since */

/* What a participant has posted */
#define CHECK_PLACE(r) assert(!dead[r] || record[r] != IDLE)

inline take_effect() {
  if
  :: posted == swap -> TAIL = REF(me)
  :: posted == link -> CHECK_PLACE(AT(pred)); NEXT[AT(pred)] = REF(me)
  :: posted == compare -> WHEN(TAIL == REF(me), TAIL = NIL)
  :: posted == hand -> CHECK_PLACE(AT(succ)); WAIT[AT(succ)] = false
  fi;
  posted = none
}

/* ---- repair.hpp ---- */
#define NEXT_DEAD do :: r < P && !dead[r] -> r++ :: else -> break od
/* Whether a death concerns this lock: into `lost`. */
inline has_lost_one() {
  atomic { seen = deaths; r = (seen == known -> P : 0); NEXT_DEAD };
  do
  :: atomic { r < P && record[r] != IDLE -> lost = true; r = 0; seen = 0; break }
  :: atomic { r < P && record[r] == IDLE -> r++; NEXT_DEAD }
  :: atomic { r == P -> known = seen; r = 0; seen = 0; break }
  od
}

/* Into `has_right`. If not, another participant has repaired, or stopped doing so. */
inline take_the_right() {
  atomic { seen = deaths; is = generation; was = repairer };
  if
  :: was != NIL && !(HAS(TAKE_OVER) && dead[RANK_OF(was)]) ->
    repairer != was || generation != is || deaths != seen
  :: else -> atomic { WHEN(repairer == was, repairer = RIGHT_OF(is); has_right = true) }
  fi;
  atomic { seen = 0; was = NIL; is = IDLE }
}

/* What each participant r brings into the next generation */
#define EARLY (!HAS(ONE_READ) || !HAS(DEAD_FIRST))
inline survey() {
  do
  :: atomic { r < P -> seen = deaths; is_dead = dead[r]; is = EARLY * record[r] };
    atomic {
      WHEN(!EARLY, is = record[r]);
      WHEN(!HAS(DEAD_FIRST), is_dead = dead[r]);
      if
      :: is_dead && is != IDLE
      :: HAS(AWAIT_USERS) && !is_dead && (is == ACQUIRING || is == RELEASING) ->
        record[r] != is || deaths != seen; is = IDLE
      :: else ->
        WHEN(!HAS(ONE_READ), is = record[r]);
        heirs = heirs + (HAS(COUNT_HEIRS) && !is_dead && is == HOLDING);
        is = IDLE; is_dead = false; r++
      fi;
      seen = 0
    };
    WHEN(is_dead,
      atomic { WHEN(HAS(TELL) && is == HOLDING, died = true); ended[r] = HAS(END_POSTED) };
      atomic { record[r] = (HAS(BURY_FIRST) -> BURIED : IDLE); is = IDLE; is_dead = false; r++ })
  :: r == P -> break
  od
}
#define IS_OVER(r) (record[r] == BURIED || (!HAS(SEEN_ALONE) && dead[r] && record[r] != IDLE))

/* Replaces the generation, if a participant died in it or if it is the one in disorder. */
inline repair(in_disorder) {
  take_the_right();
  if
  :: atomic {
      has_right -> closing = generation;
      lost = (IS_CLOSED(closing) || closing == in_disorder || !HAS(LOOK_AGAIN));
      WHEN(!lost, known = NEVER) /* not what we knew before we had the right */
    };
    WHEN(!lost, has_lost_one());
    if
    :: atomic { /* A repairer that died may have closed it. */
        lost -> WHEN(!IS_CLOSED(closing), closing++; generation = closing);
        assert(closing / 2 < (REBIRTH -> 15 : toll))
      };
      survey();
      /* Now the words are ours alone. */
      atomic { inherited = heirs; heirs = 0; r = 0; WHEN(HAS(FRESH), TAIL = NIL) };
      do
      :: r < P && IS_OVER(r) -> record[r] = IDLE
      :: atomic { r < P && !IS_OVER(r) -> r++ }
      :: r == P -> break
      od;
      atomic { generation = closing + 1; r = 0 }
    :: !lost
    fi;
    atomic { repairer = NIL; closing = 0; lost = false; has_right = false }
  :: !has_right
  fi
}

/* The generation `now` is closed: waits until it is open, or repairs if the repairer died. */
inline await_repair() {
  atomic { seen = deaths; was = repairer };
  if
  :: atomic { was == NIL || dead[RANK_OF(was)] -> seen = 0; was = NIL }; repair(NEVER)
  :: else -> atomic { generation != now || deaths != seen -> seen = 0; was = NIL }
  fi;
  now = 0
}
/* ---- robust.hpp and interruptible.hpp, over d_mcs.hpp ---- */
/* From now on waits end with this generation, and with deaths that were not known. */
#define HOLD_ON_TO line = (HAS(KNOWN_FIRST) -> known : deaths)
/* A wait of the lock inside */
#define AWAIT(done, interrupted)                           \
  do                                                       \
  :: done -> break                                         \
  :: generation != ours -> goto interrupted                \
  :: atomic { deaths != line -> line = deaths };           \
    has_lost_one();                                        \
    if                                                     \
    :: atomic { lost -> lost = false }; goto interrupted   \
    :: !lost                                               \
    fi                                                     \
  od

/* Out of the generation, whose words we leave in disorder. It is over when we are out. */
#define IN_DISORDER (HAS(REPLACE) * ours + !HAS(REPLACE) * NEVER)
inline leave() {
  atomic { record[me] = LEFT; line = 0; pred = NIL };
  do
  :: generation != ours -> break
  :: generation == ours -> repair(IN_DISORDER); WHEN(!HAS(REPLACE), break)
  od
}

inline reset() { NEXT[me] = NIL; WAIT[me] = false }

proctype participant(byte me) {
  byte ours = NEVER; /* the generation that we entered last */
  byte known = 0;    /* so many deaths, and none of them concerns this lock */
  byte line = 0;     /* the deaths of the lifeline */
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
      :: IS_CLOSED(now) -> record[me] = LEFT; await_repair(); goto enter
      :: !IS_CLOSED(now) -> record[me] = ACQUIRING
      fi;
      if
      :: HAS(READ_AGAIN) && generation != now ->
        atomic { record[me] = LEFT; now = 0 }; goto enter
      :: atomic {
          !HAS(READ_AGAIN) || generation == now ->
          WHEN(now != ours, reset()); /* no participant is in the one that we have left */
          assert(NEXT[me] == NIL && !WAIT[me]);
          ours = now; now = 0; HOLD_ON_TO; posted = swap
        }
      fi;
      atomic {
        pred = TAIL; TAIL = REF(me); posted = none;
        WHEN(pred == NIL, goto is_head);
        WAIT[me] = true; posted = link
      };
      atomic { take_effect(); pred = NIL };
      AWAIT(!WAIT[me], interrupted);
is_head:
#if !HAS(HEIRS_FIRST)
      record[me] = HOLDING;
#endif
      AWAIT(inherited == 0 || !HAS(AWAIT_HEIRS), interrupted);
      goto holds;
interrupted:
      leave(); goto enter;
holds:
      atomic { record[me] = HOLDING; line = 0 };
      mine = token + 1;
      atomic {
        token = mine;
        assert(mine > last_token); last_token = mine; mine = 0;
        writer_enters(); inside[me] = true;
        assert(died == holder_died)
      };
      atomic {
        if :: died -> died = false; holder_died = false :: true fi; /* mark_consistent, or not */
        writer_leaves(); inside[me] = false
      };
release:
      now = generation;
      if
      :: HAS(AWAIT_OPEN) && IS_CLOSED(now) -> await_repair(); goto release
      :: else -> record[me] = RELEASING
      fi;
      if
      :: HAS(RELEASE_AGAIN) && generation != now ->
        atomic { record[me] = HOLDING; now = 0 }; goto release
      :: atomic { (!HAS(RELEASE_AGAIN) || generation == now) && now == ours -> now = 0; HOLD_ON_TO }
      :: atomic { (!HAS(RELEASE_AGAIN) || generation == now) && now != ours -> now = 0 };
        atomic { assert(inherited > 0); inherited--; reset() }; goto released
      fi;
      if
      :: atomic { NEXT[me] == NIL -> posted = compare };
        atomic { WHEN(TAIL == REF(me), take_effect(); goto released); posted = none };
        AWAIT(NEXT[me] != NIL, not_released)
      :: NEXT[me] != NIL
      fi;
      atomic { succ = NEXT[me]; NEXT[me] = NIL; posted = hand };
      atomic { take_effect(); succ = NIL; goto released };
not_released:
      leave();
      do
      :: atomic { now = generation; WHEN(!IS_CLOSED(now), now = 0; reset(); break) };
        await_repair()
      od;
released:
      atomic { record[me] = IDLE; line = 0 }
    :: atomic { STOP -> ours = NEVER; known = 0; break }
    od;
    END
  } unless {
    atomic {
      dead[me] -> deaths++;
      ours = NEVER; known = 0; line = 0; now = 0; mine = 0; seen = 0; r = 0; is = IDLE;
      was = NIL; closing = 0; heirs = 0; lost = false; is_dead = false; has_right = false;
      WHEN(posted == none, pred = NIL; succ = NIL)
    };
end_dead:
    if
    :: atomic { posted != none && !ended[me] -> take_effect(); pred = NIL; succ = NIL };
      goto end_dead
    :: atomic {
        REBIRTH && record[me] == IDLE ->
        posted = none; pred = NIL; succ = NIL; reset();
        ended[me] = false; dead[me] = false; known = NEVER; round = 0
      };
      goto born
    fi
  }
}

active proctype fate() {
  byte p;
end_of_all:
  do
  :: atomic { toll < DEATHS -> toll = DEATHS } /* a death to come would hide an endless wait */
  :: atomic {
      toll < DEATHS ->
      do :: p < P - 1 -> p++ :: break od;
      WHEN(!dead[p] && (record[p] == HOLDING || inside[p]), holder_died = true);
      WHEN(!dead[p] && inside[p], inside[p] = false; writer_leaves());
      WHEN(!dead[p] && record[p] != IDLE, toll++; dead[p] = true);
      p = 0
    }
  od
}

init {
  byte p;
  atomic { for (p : 0 .. P - 1) { run participant(p) }; p = 0 }
}
