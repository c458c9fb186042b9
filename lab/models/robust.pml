/* robust: any lock, made to outlive its holders and those that stop, by generations.
 *
 * Over d-mcs, on one node whose memory is sequentially consistent. Acquires are exclusive and never
 * give up. The rest is the protocol of lock/robust.hpp but for the watch. Each record of a
 * participant has one queue node, which is taken and given back with it.
 *
 * `fate` ends a participant before any of its steps, unless its records are idle: such a death is
 * no different from a participant that does not come. The death becomes known in a later step, the
 * last of the dead one; is_dead says so before (C45). What a participant has posted when it dies
 * takes effect at any time until its death is acknowledged, or never (C46). In the same way `fate`
 * stops a participant for ever, and nobody is told; a stopped participant may die as well.
 *
 * A waiter withdraws a grant at any moment, LAPSES times. When nothing else can happen and somebody
 * is stopped or has withdrawn a grant, it does so in any case, but an acquirer only if nobody's
 * record says that it holds. A participant may wait for ever for a stopped one that holds or
 * repairs; a release may not.
 *
 * Reads are one step where the earlier ones only make a wait end earlier (`deaths`), and where they
 * read of several participants that they live. A scan for a participant that is in a generation
 * that is over, or that holds from an earlier one, is one step too: those become fewer, and no
 * other one comes. So is what a repairer reads of all records of one participant, of which one says
 * more than that it is left.
 *
 * The assertions, beside exclusion: tokens grow; a holder is told of a death exactly if a
 * participant died that held; no generation is replaced without a death or a grant withdrawn; a
 * queue node is clean when it is taken; no participant writes to a queue node that is not of its
 * generation, or uses an instance that is made fresh for another one; only deaths of the dead are
 * acknowledged.
 *
 * Macros of this model:
 *   P             participants, at most 4
 *   DEATHS        deaths at most
 *   STOPS         so many participants at most stop for ever without dying
 *   LAPSES        so many grants at most are withdrawn while others can go on (STOPS)
 *   INSTANCES     copies of the lock inside, at most 3 and more than STOPS (3)
 *   RECORDS       of each participant
 *   REBIRTH=1     the place of a dead participant is taken again when its records are idle
 *   WITHOUT=PART  leaves out one of the parts below
 * Of all: shared.pml.
 */
#ifndef P
#define P 3
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef STOPS
#define STOPS 0
#endif
#ifndef LAPSES
#define LAPSES STOPS
#endif
#ifndef INSTANCES
#define INSTANCES 3
#endif
#ifndef RECORDS
#define RECORDS (1 + DEATHS + STOPS + LAPSES)
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
#define READ_AGAIN 1        /* reads the generation again after it wrote that it acquires */
#define RELEASE_AGAIN 2     /* the same, after it wrote that it releases */
#define COMPARE_TO_HOLD 3   /* holds only if nobody has evicted it */
#define INHERITED_FIRST 4   /* waits for the holders of earlier generations before it holds */
#define AWAIT_INHERITED 5   /* waits for them at all */
#define SCAN 6              /* looks for them in the records */
#define TELL_OTHERS 7       /* tells those that wait for it that it does not hold any more */
#define QUARANTINE 8        /* uses other queue nodes than those that it has left */
#define COLLECT_LATE 9      /* takes those back only when nobody is in their generation */
#define REPLACE 10          /* replaces the generation that it leaves, also if nobody died in it */
#define KNOWN_FIRST 11      /* ends a wait with a death that was known before the wait began */
#define WITHDRAW 12         /* withdraws a grant that is not taken up */
#define END_RELEASE 13      /* ends a release that cannot go on */
#define TAKE_OVER 14        /* takes the right to repair from a dead repairer */
#define NAME_GENERATION 15  /* names the generation in the right to repair */
/* A repairer */
#define LOOK_AGAIN 16       /* looks for an unhandled death once it has the right */
#define EVICT 17            /* evicts those that acquire */
#define COMPARE_TO_EVICT 18 /* evicts no participant that has come to hold meanwhile */
#define INHERIT 19          /* says that somebody holds from this generation */
#define NEW_NUMBER 20       /* says so with a new number */
#define DEAD_FIRST 21       /* reads whether a participant is dead before it reads the record */
#define DEAD_STILL 22       /* and again after that: its place may have a new owner */
#define TELL 23             /* says that a holder died */
#define END_POSTED 24       /* ends what the dead one has posted */
#define ELSEWHERE 25        /* goes on in an instance that no living participant is in */
#define FRESH 26            /* makes the words of the lock inside fresh */
#define FREE_LATE 27        /* makes a record of the dead idle when nobody is in its generation */
#define FREE_OPEN 28        /* and when the generation is open */

#include "shared.pml"

mtype = { none, swap, link, compare, hand };
#define N (P * RECORDS) /* records, and queue nodes */
#define OWNER(n) ((n) / RECORDS)
#define FIRST(p) ((p) * RECORDS)

/* A generation: bit 0 closed; above it 3 * number + instance */
#define NEVER 62
#define IS_CLOSED(g) ((g) % 2 == 1)
#define INSTANCE(g) ((g) / 2 % 3)
#define NUMBER(g) ((g) / 6)

/* A record: the phase in 3 bits, and a generation that is not closed */
#define IDLE 0
#define ACQUIRING 1
#define HOLDING 2
#define RELEASING 4
#define LEFT 5
#define ACKNOWLEDGED 6
#define EVICTED 7
#define RECORD(phase, g) ((g) * 4 + phase)
#define PHASE(n) (record[n] % 8)
#define GENERATION(n) (record[n] / 8 * 2)
#define IS_IN(n) (PHASE(n) == ACQUIRING || PHASE(n) == RELEASING || PHASE(n) == EVICTED)
#define IS_UNHANDLED(n) (PHASE(n) != IDLE && PHASE(n) != ACKNOWLEDGED)

#define RIGHT_OF(g) ((g) * 8 * HAS(NAME_GENERATION) + REF(me))
#define RANK_OF(right) AT((right) % 8)

byte generation = 0, inherited = 0, token = 0;
short repairer = NIL; /* the right to repair */
bool died = false;
byte record[N];
bool dead[P], ended[P]; /* is_dead; acknowledge has returned */
byte deaths = 0;        /* those that are known */

byte TAIL[3] = NIL; /* the word of the lock inside, in each instance */
byte NEXT[N]; bool WAIT[N]; /* its queue nodes: the successor of n; the owner of n must wait */

/* What no participant reads */
byte toll = 0, last_token = 0; /* deaths, known or not */
byte withdrawn = 0;            /* grants */
byte made_for[3] = 0;          /* the last generation in each instance */
bool inside[P];                /* p is in its critical section */
bool holder_died = false;      /* and no holder has put things right since */
bool stopped[P];
byte halted = 0, blockers = 0; /* the stopped that live, and those that others may wait for */
/* What the records come to: those that say `holding`, those in each instance, those of p in use */
byte holders = 0, users[3] = 0, used[P] = 0;

inline write(n, word) {
  d_step {
    holders = holders - (PHASE(n) == HOLDING);
    users[INSTANCE(GENERATION(n))] = users[INSTANCE(GENERATION(n))] - IS_IN(n);
    used[OWNER(n)] = used[OWNER(n)] - (record[n] != IDLE);
    record[n] = word;
    holders = holders + (PHASE(n) == HOLDING);
    users[INSTANCE(GENERATION(n))] = users[INSTANCE(GENERATION(n))] + IS_IN(n);
    used[OWNER(n)] = used[OWNER(n)] + (record[n] != IDLE)
  }
}

/* What a participant has posted */
#define CHECK_NODE(n) assert(PHASE(n) != IDLE && GENERATION(n) == ours)
#define CHECK_INSTANCE assert(made_for[INSTANCE(ours)] == ours)
#define OUR_TAIL TAIL[INSTANCE(ours)]

inline take_effect() {
  if
  :: posted == swap -> CHECK_INSTANCE; OUR_TAIL = REF(at)
  :: posted == link -> CHECK_NODE(AT(pred)); NEXT[AT(pred)] = REF(at)
  :: posted == compare -> CHECK_INSTANCE; WHEN(OUR_TAIL == REF(at), OUR_TAIL = NIL)
  :: posted == hand -> CHECK_NODE(AT(succ)); WAIT[AT(succ)] = false
  fi;
  posted = none
}

/* ---- users.hpp and participant.hpp ---- */
#define ANY(condition)                                                \
  any = false; k = 0;                                                 \
  do :: k < N -> any = any || (condition); k++ :: else -> break od;   \
  k = 0
/* Into `any`: whether somebody is in that generation, or holds from another one than ours. */
#define FIND_IN(g) ANY(IS_IN(k) && GENERATION(k) == (g))
#define FIND_HOLDERS ANY(PHASE(k) == HOLDING && GENERATION(k) != ours)

#define NEXT_DEAD do :: r < P && !dead[r] -> r++ :: else -> break od
/* Whether a death concerns this lock: into `lost`. */
inline has_unhandled_death() {
  atomic { seen = deaths; r = (seen == known -> P : 0); NEXT_DEAD };
  do
  :: atomic {
      r < P -> k = FIRST(r); r++;
      do :: k < FIRST(r) && !IS_UNHANDLED(k) -> k++ :: else -> break od;
      lost = (k < FIRST(r)); k = 0;
      WHEN(lost, r = 0; seen = 0; break);
      NEXT_DEAD
    }
  :: atomic { r == P -> known = seen; r = 0; seen = 0; break }
  od
}

#define NEXT_ACKNOWLEDGED                                                   \
  do :: r < N && PHASE(r) != ACKNOWLEDGED -> r++ :: else -> break od;       \
  is = (r < N -> record[r] : IDLE)
inline free_acknowledged() {
  atomic { r = 0; NEXT_ACKNOWLEDGED };
  do
  :: r < N ->
    if
    :: HAS(FREE_OPEN) && IS_CLOSED(generation) -> break
    :: else ->
      atomic {
        FIND_IN(is / 8 * 2);
        WHEN(record[r] == is && !(any && HAS(FREE_LATE)), write(r, IDLE));
        any = false; r++; NEXT_ACKNOWLEDGED
      }
    fi
  :: r == N -> break
  od;
  atomic { r = 0; is = IDLE }
}

inline reset() { NEXT[at] = NIL; WAIT[at] = false }
#define NEXT_LEFT do :: at < FIRST(me + 1) && PHASE(at) != LEFT -> at++ :: else -> break od
/* Takes back what can be of the records that we have left, and takes an idle one. */
inline take_record() {
  atomic { at = FIRST(me); NEXT_LEFT };
  do
  :: atomic { at < FIRST(me + 1) -> now = generation };
    atomic {
      FIND_IN(GENERATION(at));
      WHEN(!(IS_CLOSED(now) || now == GENERATION(at) || (any && HAS(COLLECT_LATE))),
           reset(); write(at, IDLE));
      any = false; now = 0; at++; NEXT_LEFT
    }
  :: atomic {
      at == FIRST(me + 1) -> at = FIRST(me);
      do :: at < FIRST(me + 1) && record[at] != IDLE -> at++ :: else -> break od;
      assert(at < FIRST(me + 1)); break
    }
  od
}

/* ---- repair.hpp ---- */
/* Into `has_right`: false if another participant has it. */
#define HAS_THE_RIGHT (was != NIL && !(HAS(TAKE_OVER) && dead[RANK_OF(was)]))
inline take_the_right() {
  is = generation;
  was = repairer;
  if
  :: HAS_THE_RIGHT
  :: else ->
    atomic {
      WHEN(repairer == was, repairer = RIGHT_OF(is); has_right = true; took_over = (was != NIL))
    }
  fi;
  atomic { was = NIL; is = IDLE }
}
/* Another participant has the right to repair: until it has given that back, or died. */
inline await_repairer() {
  atomic { seen = deaths; was = repairer; is = generation };
  if
  :: atomic {
      !HAS_THE_RIGHT || repairer != was || generation != is || deaths != seen ->
      was = NIL; is = IDLE; seen = 0
    }
  :: timeout && blockers > 0 -> goto end_stopped
  fi
}

/* What each participant r brings into the next generation */
inline survey() {
  do
  :: atomic {
      r < P -> is_dead = dead[r];
      WHEN(!HAS(DEAD_FIRST),
           k = FIRST(r);
           do :: k < FIRST(r + 1) -> said = said || PHASE(k) == HOLDING; k++ :: else -> break od;
           k = 0)
    };
    atomic {
      WHEN(!HAS(DEAD_FIRST), is_dead = dead[r]);
      k = FIRST(r);
      do
      :: k < FIRST(r + 1) ->
        if
        :: is_dead -> any = any || IS_UNHANDLED(k);
          said = said || (HAS(DEAD_FIRST) && PHASE(k) == HOLDING)
        :: !is_dead ->
          if
          :: (PHASE(k) == ACQUIRING && HAS(EVICT)) || PHASE(k) == RELEASING ->
            if
            :: HAS(COMPARE_TO_EVICT) -> write(k, RECORD(EVICTED, GENERATION(k)))
            :: else -> victim = REF(k)
            fi
          :: else
          fi;
          WHEN(IS_IN(k), occupied = occupied | (1 << INSTANCE(GENERATION(k))));
          held = held || (PHASE(k) == HOLDING && HAS(INHERIT))
        fi;
        k++
      :: else -> break
      od;
      k = 0
    };
    if
    :: any && HAS(DEAD_STILL) && !dead[r] /* its place has a new owner: once more */
    :: else ->
      if
      :: atomic {
          any -> assert(dead[r]);
          WHEN(HAS(TELL) && said, died = true);
          ended[r] = HAS(END_POSTED)
        };
        atomic {
          k = FIRST(r);
          do
          :: k < FIRST(r + 1) ->
            WHEN(IS_UNHANDLED(k) && (said || PHASE(k) != HOLDING),
                 write(k, RECORD(ACKNOWLEDGED, GENERATION(k))));
            k++
          :: else -> break
          od;
          k = 0
        }
      :: else -> /* without COMPARE_TO_EVICT */
        atomic {
          WHEN(victim != NIL, write(AT(victim), RECORD(EVICTED, GENERATION(AT(victim)))));
          victim = NIL
        }
      fi;
      r++
    fi;
    atomic { any = false; said = false; is_dead = false }
  :: r == P -> break
  od
}

/* Into `k`: the first one after the present instance that nobody is in, or INSTANCES. */
#define OCCUPIED(i) (occupied & (1 << ((INSTANCE(closing) + 1 + (i)) % INSTANCES)))
inline choose_instance() {
  k = 0;
  do :: k < INSTANCES && OCCUPIED(k) -> k++ :: else -> break od;
  WHEN(k < INSTANCES, k = (INSTANCE(closing) + 1 + k) % INSTANCES);
  WHEN(!HAS(ELSEWHERE), k = INSTANCE(closing))
}

/* Replaces the generation, if a participant died in it or if it is the one in disorder. Into
 * `is_busy`: another participant has the right to repair. */
inline repair(in_disorder) {
  take_the_right();
  if
  :: atomic {
      has_right -> closing = generation;
      lost = (IS_CLOSED(closing) || closing == in_disorder || took_over || !HAS(LOOK_AGAIN));
      WHEN(!lost, known = NEVER) /* not what we knew before we had the right */
    };
    WHEN(!lost, has_unhandled_death());
    if
    :: atomic { /* A repairer that died or gave up may have closed it. */
        lost -> lost = false; WHEN(!IS_CLOSED(closing), closing++; generation = closing);
        assert(NUMBER(closing) < (REBIRTH -> 9 : toll + withdrawn))
      };
      survey();
      atomic {
        r = 0; occupied = occupied * HAS(ELSEWHERE);
        WHEN(held, held = false; inherited = (inherited + 2 * HAS(NEW_NUMBER)) | 1)
      };
      atomic {
        choose_instance(); occupied = 0;
        WHEN(k < INSTANCES,
             is = ((NUMBER(closing) + 1) * 3 + k) * 2; assert(is < NEVER);
             made_for[k] = is; WHEN(HAS(FRESH), TAIL[k] = NIL));
        k = 0
      };
      atomic { WHEN(is != IDLE, generation = is); is_over = (is != IDLE); is = IDLE }
    :: !lost -> is_over = true
    fi;
    atomic { repairer = NIL; closing = 0; has_right = false; took_over = false };
    WHEN(is_over, is_over = false; free_acknowledged())
  :: !has_right -> is_busy = true
  fi
}

#define HAS_ROOM \
  (users[0] == 0 || (users[1] == 0 && INSTANCES > 1) || (users[2] == 0 && INSTANCES > 2))
/* Waits until the generation is open, or repairs if nobody does. */
inline await_open() {
  do
  :: !IS_CLOSED(generation) -> break
  :: atomic { IS_CLOSED(generation) -> knew = deaths };
    repair(NEVER);
    if
    :: atomic { is_busy -> is_busy = false; knew = 0 }; await_repairer()
    :: atomic { /* Those that run leave as soon as they know that their generation is over. */
        !is_busy && (!IS_CLOSED(generation) || deaths != knew || HAS_ROOM) -> knew = 0
      }
    fi
  od
}
/* ---- handle.hpp, waiting.hpp and interruptible.hpp, over d_mcs.hpp ---- */
/* From now on waits end with this generation, and with deaths that were not known. */
#define HOLD_ON_TO WHEN(!HAS(KNOWN_FIRST), known = deaths)
/* A wait of the lock inside */
#define CAN_WITHDRAW(releases)                                                               \
  (HAS(WITHDRAW) && (halted > 0 || withdrawn > 0) &&                                         \
   ((releases) && HAS(END_RELEASE) || !(releases) && holders == 0))
#define AWAIT(done, interrupted, releases)                                                   \
  do                                                                                         \
  :: done -> break                                                                           \
  :: generation != ours -> goto interrupted                                                  \
  :: deaths != known -> has_unhandled_death();                                               \
    if                                                                                       \
    :: atomic { lost -> lost = false }; goto interrupted                                     \
    :: !lost                                                                                 \
    fi                                                                                       \
  :: atomic { withdrawn < LAPSES -> withdrawn++ }; goto interrupted                          \
  :: atomic { timeout && CAN_WITHDRAW(releases) -> withdrawn++ }; goto interrupted           \
  :: timeout && blockers > 0 && !(releases) -> goto end_stopped                              \
  od

#define IN_DISORDER (HAS(REPLACE) * ours + !HAS(REPLACE) * NEVER)

proctype participant(byte me) {
  byte ours = NEVER; /* the generation that we are in */
  byte known = 0;    /* so many deaths, and none of them concerns this lock */
  byte at = FIRST(me); /* our record and queue node */
  byte now, pred, succ, mine, seen, knew, r, k, is, closing, occupied, victim;
  short was;
  bool lost, is_dead, has_right, took_over, any, said, held, is_busy, is_over, told;
  mtype posted = none;
  ROUND_COUNTER

born:
  {
    do
    :: NEXT_ROUND ->
      take_record();
enter:
      now = generation;
      if
      :: IS_CLOSED(now) -> atomic { write(at, RECORD(LEFT, NEVER)); now = 0 };
        await_open(); goto enter
      :: else -> write(at, RECORD(ACQUIRING, now))
      fi;
      if
      :: HAS(READ_AGAIN) && generation != now ->
        atomic { write(at, RECORD(LEFT, NEVER)); now = 0 }; goto enter
      :: atomic {
          !HAS(READ_AGAIN) || generation == now -> ours = now; now = 0;
          assert(NEXT[at] == NIL && !WAIT[at]);
          HOLD_ON_TO; posted = swap
        }
      fi;
      atomic {
        pred = OUR_TAIL; take_effect();
        WHEN(pred == NIL, goto is_head);
        WAIT[at] = true; posted = link
      };
      atomic { take_effect(); pred = NIL };
      AWAIT(!WAIT[at], interrupted, false);
is_head:
#if !HAS(INHERITED_FIRST)
      atomic { WHEN(record[at] != RECORD(ACQUIRING, ours), goto interrupted);
               write(at, RECORD(HOLDING, ours)) };
#endif
      now = inherited;
      do
      :: now % 2 == 0 || !HAS(AWAIT_INHERITED) -> break
      :: else -> atomic { FIND_HOLDERS; any = any || !HAS(SCAN) };
        if
        :: atomic { any -> any = false };
          AWAIT(inherited != now, interrupted, false);
          now = inherited
        :: !any ->
          if
          :: generation == ours ->
            atomic { WHEN(inherited == now, inherited = now - 1) }
          :: else
          fi;
          break
        fi
      od;
      now = 0;
#if HAS(INHERITED_FIRST)
      atomic {
        WHEN(HAS(COMPARE_TO_HOLD) && record[at] != RECORD(ACQUIRING, ours), goto interrupted);
        write(at, RECORD(HOLDING, ours))
      };
#endif
      goto holds;
interrupted:
      atomic {
        write(at, RECORD(LEFT, ours)); now = 0; pred = NIL;
        WHEN(!HAS(QUARANTINE), reset(); goto vacated)
      };
      take_record();
      write(at, RECORD(LEFT, NEVER));
vacated:
      do
      :: generation != ours -> break
      :: generation == ours -> repair(IN_DISORDER);
        if
        :: atomic { is_busy -> is_busy = false }; await_repairer()
        :: !is_busy -> WHEN(!HAS(REPLACE), break)
        fi
      od;
      ours = NEVER;
      free_acknowledged();
      goto enter;
holds:
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
      write(at, RECORD(RELEASING, ours));
      if
      :: HAS(RELEASE_AGAIN) && generation != ours ->
        WHEN(HAS(TELL_OTHERS), inherited = inherited + 2);
        write(at, RECORD(LEFT, ours));
        goto left
      :: atomic { !HAS(RELEASE_AGAIN) || generation == ours -> HOLD_ON_TO }
      fi;
      if
      :: atomic { NEXT[at] == NIL -> posted = compare };
        atomic { WHEN(OUR_TAIL == REF(at), take_effect(); goto released); posted = none };
        AWAIT(NEXT[at] != NIL, not_released, true)
      :: NEXT[at] != NIL
      fi;
      atomic { succ = NEXT[at]; NEXT[at] = NIL; posted = hand };
      atomic { take_effect(); succ = NIL; goto released };
not_released:
      write(at, RECORD(LEFT, ours));
      if
      :: generation == ours -> repair(IN_DISORDER); is_busy = false
      :: else
      fi;
left:
      ours = NEVER;
      free_acknowledged();
      goto gone;
released:
      atomic { write(at, IDLE); ours = NEVER };
gone:
      at = FIRST(me)
    :: atomic { STOP -> known = 0; break }
    od;
    END
  } unless {
    atomic {
      dead[me] || stopped[me] -> told = dead[me]; deaths = deaths + told;
      known = 0; now = 0; mine = 0; seen = 0; knew = 0; r = 0; k = 0; is = IDLE;
      was = NIL; closing = 0; occupied = 0; victim = NIL;
      lost = false; is_dead = false; has_right = false; took_over = false; any = false;
      said = false; held = false;
      is_busy = false; is_over = false;
      WHEN(posted == none, ours = NEVER; at = FIRST(me); pred = NIL; succ = NIL)
    };
end_dead:
    if
    :: atomic { dead[me] && !told -> told = true; deaths++ }; goto end_dead
    :: atomic {
        posted != none && !ended[me] -> take_effect();
        ours = NEVER; at = FIRST(me); pred = NIL; succ = NIL
      };
      goto end_dead
    :: atomic {
        REBIRTH && told && used[me] == 0 ->
        posted = none; ours = NEVER; pred = NIL; succ = NIL;
        for (at : FIRST(me) .. FIRST(me + 1) - 1) { reset() }
        at = FIRST(me);
        ended[me] = false; dead[me] = false; told = false; known = NEVER; round = 0
      };
      goto born
    fi
  }
}

#define HOLDS(p) (inside[p] || says)
active proctype fate() {
  byte p, n, to_die = DEATHS, to_stop = STOPS;
  bool says;
end_of_all:
  do
  :: atomic { /* one to come would hide an endless wait */
      to_die + to_stop > 0 -> to_die = 0; to_stop = 0
    }
  :: atomic {
      to_die + to_stop > 0 ->
      do :: p < P - 1 -> p++ :: break od;
      for (n : FIRST(p) .. FIRST(p + 1) - 1) { says = says || PHASE(n) == HOLDING }
      if
      :: to_die > 0 && !dead[p] && used[p] > 0 ->
        holder_died = holder_died || HOLDS(p);
        WHEN(inside[p], inside[p] = false; writer_leaves());
        WHEN(stopped[p], stopped[p] = false; halted--;
             blockers = blockers - (says || (repairer != NIL && RANK_OF(repairer) == p)));
        to_die--; toll++; dead[p] = true
      :: to_stop > 0 && !dead[p] && !stopped[p] && used[p] > 0 ->
        to_stop--; halted++; stopped[p] = true;
        blockers = blockers + (says || (repairer != NIL && RANK_OF(repairer) == p))
      :: else
      fi;
      p = 0; n = 0; says = false
    }
  od
}

init {
  byte p;
  atomic { for (p : 0 .. P - 1) { run participant(p) }; p = 0 }
}
