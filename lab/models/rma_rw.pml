/* RMA-RW: the topology-aware reader-writer lock, corrected.
 *
 * "High-Performance Distributed RMA Locks", section 3, Listings 4 to 10, with the corrections that
 * the lock needs. Each can be left out with -DMx=0, to see what it is for:
 *
 *   M1  a writer first lets readers in up to T_R, and then waits for those that are in;
 *   M2  a reader that resets its counter never subtracts a WRITE flag;
 *   M3  a reader that waits at T_R reads the writers' queue again;
 *   M4  a reader resets DEPART first, then ARRIVE, and a writer compares a DEPART with an ARRIVE
 *       that it read before (-DM4=0: a writer reads the two in any order; what a reader does then
 *       shows with -DM6=0);
 *   M5  level 1 passes the lock on at T_L,1, not at T_W;
 *   M6  a reader that resets its counter takes DEPART with a swap. With a get and an add, two
 *       readers can subtract the same departures twice: a ticket that is given back late lets a
 *       second one draw T_R while the first still resets;
 *   M7  try_lock_shared reads the counter before it takes a ticket. Otherwise the tickets of
 *       repeated attempts can keep a writer waiting for ever: to it, a ticket that is about to be
 *       given back looks like a reader that is in.
 *
 * Macros of this model: READERS, WRITERS, T_R, and
 *   COUNTERS      1 to 3; reader r counts at counter r % COUNTERS
 *   WRITER_BATCH  asserts that no more writers than that enter in a row, the counters being WRITE
 *   READER_BATCH  asserts that no more readers than that enter at a counter while a writer heads
 *                 the root's queue
 * Of its parts: queue_tree.pml, where P is the number of writers, and shared.pml.
 */

#ifndef READERS
#define READERS 2
#endif
#ifndef WRITERS
#define WRITERS 1
#endif
#ifndef COUNTERS
#define COUNTERS 1
#endif
#ifndef T_R
#define T_R 2
#endif
#ifndef M1
#define M1 1
#endif
#ifndef M2
#define M2 1
#endif
#ifndef M3
#define M3 1
#endif
#ifndef M4
#define M4 1
#endif
#ifndef M5
#define M5 1
#endif
#ifndef M6
#define M6 1
#endif
#ifndef M7
#define M7 1
#endif

#if WRITERS > 0
#define P WRITERS
#else
#define P 1
#endif
#if WRITERS < 2 && !defined(N)
#define N 1
#endif

#include "shared.pml"
#include "queue_tree.pml"

#define T_W (T_L(1) * (N > 1 -> T_L(2) : 1) * (N > 2 -> T_L(3) : 1) * (N > 3 -> T_L(4) : 1))
#define ROOT 0

/* ---- the distributed counter (DC) ---- */

#define WRITE 1024 /* the flag, above any count of readers */
/* Words are unsigned: a negative one is greater than all others. */
#define BELOW(word, limit) ((word) >= 0 && (word) < (limit))

short ARRIVE[COUNTERS]; /* readers that came, and the WRITE flag */
short DEPART[COUNTERS]; /* readers that went */

#ifdef WRITER_BATCH
byte writers_in_a_row = 0;
#define WRITER_OF_BATCH atomic { writers_in_a_row++; assert(writers_in_a_row <= WRITER_BATCH) }
#define WRITER_BATCH_BEGINS writers_in_a_row = 0
#else
#define WRITER_OF_BATCH skip
#define WRITER_BATCH_BEGINS skip
#endif

#ifdef READER_BATCH
byte readers_before_writer[COUNTERS];
bool writer_heads_root = false;
#define READER_OF_BATCH                                       \
  atomic {                                                    \
    if                                                        \
    :: writer_heads_root ->                                   \
      readers_before_writer[C]++;                             \
      assert(readers_before_writer[C] <= READER_BATCH)        \
    :: else                                                   \
    fi                                                        \
  }
#define READER_BATCH_BEGINS writer_heads_root = true
#define READER_BATCH_ENDS                                     \
  atomic {                                                    \
    for (c : 0 .. COUNTERS - 1) {                             \
      readers_before_writer[c] = 0                            \
    }                                                         \
    writer_heads_root = false;                                \
    c = 0                                                     \
  }
#else
#define READER_OF_BATCH skip
#define READER_BATCH_BEGINS skip
#define READER_BATCH_ENDS skip
#endif

/* ---- readers: Listings 9 and 10 ---- */

#define C (me % COUNTERS)

/* Listing 6, reset_counter, as a reader may do it, with a ticket in hand. */
inline reset_by_reader() {
#if M6
  atomic { departed = DEPART[C]; DEPART[C] = 0 }
#else
  departed = DEPART[C];
#endif
  if
  :: departed != 0 ->
#if !M2
    /* As Listing 6 prints it: "make sure that the WRITE is reset if it was set". */
    atomic {
      if
      :: ARRIVE[C] >= WRITE -> flag = WRITE
      :: else
      fi
    }
#endif
#if M4 && !M6
    DEPART[C] = DEPART[C] - departed;
#endif
    ARRIVE[C] = ARRIVE[C] - departed - flag;
#if !M4 && !M6
    DEPART[C] = DEPART[C] - departed;
#endif
    flag = 0
  :: else
  fi
}

/* Listing 9, lines 5 to 9, and M3. The lock polls; here a reader that sees nothing new blocks. */
inline await_turn() {
  do
  :: BELOW(ARRIVE[C], T_R) -> break
#if M3
  :: ARRIVE[C] == T_R -> /* full, and no writer to reset it? */
    if
    :: TAIL[ROOT] == NIL -> break
    :: ARRIVE[C] != T_R
    fi
#endif
  od
}

proctype reader(byte me) {
  short ticket = 0, departed = 0, flag = 0;
  bool trying = false;
  ROUND_COUNTER

  do
  :: NEXT_ROUND ->
    if
    :: WAITS(reader_waits)
#if TRY
    :: /* try_lock_shared */
      trying = true;
#if M7
      if
      :: BELOW(ARRIVE[C], T_R + 1)
      :: !BELOW(ARRIVE[C], T_R + 1) -> goto next_round
      fi
#else
      skip
#endif
#endif
    fi;

    do
    :: atomic { ticket = ARRIVE[C]; ARRIVE[C]++ }
      if
      :: BELOW(ticket, T_R) -> break
      :: ticket == T_R -> /* the first to reach T_R: is a writer waiting? */
        if
        :: TAIL[ROOT] == NIL ->
          reset_by_reader();
          if
          :: departed != 0 -> break /* enters with the ticket that it has */
          :: else
          fi
        :: TAIL[ROOT] != NIL
        fi
      :: else
      fi;
      atomic { ARRIVE[C]--; ticket = 0 } /* back off */
      if
      :: trying -> goto next_round
      :: else -> await_turn()
      fi
    od;
    atomic { ticket = 0; departed = 0 }

    reader_enters();
    READER_OF_BATCH;
    reader_leaves();
    DEPART[C]++;
next_round:
    trying = false
  :: STOP -> break
  od;
  END
}

/* ---- writers: Listings 4, 5, 7 and 8 ---- */

#define BIT(c) (1 << (c))
#define ALL (BIT(COUNTERS) - 1)

#if COUNTERS == 1
#define OF_EACH_COUNTER(x) x(0)
#define ANY_COUNTER(x) x(0)
#elif COUNTERS == 2
#define OF_EACH_COUNTER(x) x(0) x(1)
#define ANY_COUNTER(x) (x(0) || x(1))
#elif COUNTERS == 3
#define OF_EACH_COUNTER(x) x(0) x(1) x(2)
#define ANY_COUNTER(x) (x(0) || x(1) || x(2))
#else
#error "COUNTERS is 1 to 3"
#endif

/* What a writer has seen of the counters; which operations of a round are still on their way and
 * which counters have nothing left to wait for, as sets of bits. Operations that are posted under
 * one flush take effect in any order. */
#define COUNTER_VARIABLES                                                           \
  short arrived[COUNTERS] = 0, departed[COUNTERS] = 0, arrived_now[COUNTERS] = 0;   \
  byte on_arrive = 0, on_depart = 0, done = 0, c = 0;                               \
  bool compared = false;

#define SET_BIT(set, c) set = set | BIT(c)
#define TAKE_EFFECT(set, c) atomic { (set & BIT(c)) -> set = set & ~BIT(c)
#define UNTIL_FLUSHED atomic { on_arrive == 0 && on_depart == 0 -> break }

/* M1, first half (section 3.3.3): at every counter, either no reader was in when we read it, or T_R
 * have entered. One round. */
#define LOOK(c)                                              \
  :: TAKE_EFFECT(on_arrive, c); arrived[c] = ARRIVE[c] }     \
  :: TAKE_EFFECT(on_depart, c); departed[c] = DEPART[c] }

inline had_readers_their_turn() {
  atomic { on_arrive = ALL & ~done; on_depart = on_arrive }
  do
  OF_EACH_COUNTER(LOOK)
  :: UNTIL_FLUSHED
  od;
  atomic {
    for (c : 0 .. COUNTERS - 1) {
      if
      :: (done & BIT(c)) == 0 &&
         (arrived[c] == departed[c] || !BELOW(arrived[c], T_R)) ->
        SET_BIT(done, c); arrived[c] = 0; departed[c] = 0
      :: else
      fi
    }
    c = 0
  }
}
#define LOOK_AGAIN(c) \
  ((done & BIT(c)) == 0 && (ARRIVE[c] != arrived[c] || DEPART[c] != departed[c]))

/* Listing 6, set_counters_to_WRITE: no reader enters from now on. */
#define TAKE(c)                                                \
  :: TAKE_EFFECT(on_arrive, c);                                \
     ARRIVE[c] = ARRIVE[c] + WRITE; arrived[c] = ARRIVE[c] }

inline take_from_readers() {
  atomic { WRITER_BATCH_BEGINS; done = 0; on_arrive = ALL }
  do
  OF_EACH_COUNTER(TAKE)
  :: UNTIL_FLUSHED
  od
}

/* M1, second half: at every counter, ARRIVE less the flag equals DEPART. One round. M4: the DEPART
 * of this round is compared with the ARRIVE of the one before. */
#define CHECK(c)                                                   \
  :: TAKE_EFFECT(on_arrive, c); arrived_now[c] = ARRIVE[c] }       \
  :: TAKE_EFFECT(on_depart, c); departed[c] = DEPART[c] }

inline are_readers_gone() {
  atomic {
    on_depart = ALL & ~done;
    on_arrive = (compared || !M4 -> on_depart : 0)
  }
  do
  OF_EACH_COUNTER(CHECK)
  :: UNTIL_FLUSHED
  od;
  atomic {
    for (c : 0 .. COUNTERS - 1) {
      if
      :: (done & BIT(c)) == 0 ->
        if
        :: !M4 -> arrived[c] = arrived_now[c]
        :: else
        fi;
        if
        :: arrived[c] - WRITE == departed[c] -> SET_BIT(done, c); arrived[c] = 0
        :: else ->
          if
          :: compared -> arrived[c] = arrived_now[c]
          :: else
          fi
        fi;
        arrived_now[c] = 0
      :: else
      fi
    }
    c = 0;
    compared = true
  }
}
#define CHECK_AGAIN(c)                                                             \
  ((done & BIT(c)) == 0 && (ARRIVE[c] != arrived[c] || DEPART[c] != departed[c] || \
                            arrived[c] - WRITE == DEPART[c]))

/* Forgets the readers that came and went. */
#define FORGET(c)                                                            \
  :: TAKE_EFFECT(on_depart, c); DEPART[c] = DEPART[c] - departed[c] }        \
  :: TAKE_EFFECT(on_arrive, c); ARRIVE[c] = ARRIVE[c] - departed[c] }

inline forget_departed() {
  atomic { on_arrive = ALL; on_depart = ALL }
  do
  OF_EACH_COUNTER(FORGET)
  :: UNTIL_FLUSHED
  od
}

/* Listing 6, reset_counters: readers may enter. */
#define GIVE(c) :: TAKE_EFFECT(on_arrive, c); ARRIVE[c] = ARRIVE[c] - WRITE }

inline give_to_readers() {
  on_arrive = ALL;
  do
  OF_EACH_COUNTER(GIVE)
  :: UNTIL_FLUSHED
  od
}

inline forget_what_was_seen() {
  atomic {
    for (c : 0 .. COUNTERS - 1) { arrived[c] = 0; departed[c] = 0; arrived_now[c] = 0 }
    c = 0; done = 0; compared = false
  }
}

#if M5
#define THRESHOLD_OF_ROOT T_L(1)
#else
#define THRESHOLD_OF_ROOT T_W
#endif

proctype writer(byte me) {
  TREE_VARIABLES
  COUNTER_VARIABLES
  bool trying = false, give = false;
  ROUND_COUNTER

  do
  :: NEXT_WRITER_ROUND ->
    level = N;
    if
    :: /* lock */
      WAITS(writer_waits);
      do
      :: level >= 1 ->
        enter();
        if
        :: handed == ENTER -> break
        :: else -> level--
        fi
      :: else -> break
      od
#if TRY
    :: /* try_lock: all queues on the way up must be empty */
      trying = true;
      do
      :: level >= 1 ->
        try_enter();
        if
        :: handed == WAIT -> goto lower
        :: else -> level--
        fi
      :: else -> break
      od
#endif
    fi;

    if
    :: handed != ENTER -> /* we head the root's queue; the readers have the lock */
      READER_BATCH_BEGINS;
#if M1
      do
      :: had_readers_their_turn();
        if
        :: done == ALL -> break
        :: done != ALL && trying -> goto withdraw
        :: done != ALL && !trying && ANY_COUNTER(LOOK_AGAIN)
        fi
      od;
#endif
      take_from_readers();
      READER_BATCH_ENDS;
#if M1
      do
      :: are_readers_gone();
        if
        :: done == ALL -> break
        :: done != ALL && trying -> give = true; goto withdraw
        :: done != ALL && !trying && ANY_COUNTER(CHECK_AGAIN)
        fi
      od;
#endif
      forget_departed();
      forget_what_was_seen()
    :: else
    fi;

    writer_enters();
    WRITER_OF_BATCH;
    writer_leaves();

    /* Listing 5, from level N up: pass the lock on, or release the level above. */
    level = N;
    do
    :: read_successor();
      if
      :: level > 1 ->
        if
        :: succ[level] != NIL && MAY_PASS(status, level) ->
          pass_on(PASSED_AT(status, level));
          goto lower
        :: else -> level--
        fi
      :: else -> /* Listing 8 */
        if
        :: succ[1] != NIL && PASSED(status, 1) + 1 < THRESHOLD_OF_ROOT ->
          pass_on(PASSED_AT(status, 1));
          goto lower
        :: else -> give = true; break
        fi
      fi
    od;
withdraw:
    /* Listing 8, lines 11 to 23: before our successor takes over. */
    if
    :: give -> give_to_readers()
    :: else
    fi;
    atomic { level = 1; give = false }
    forget_what_was_seen();
    leave(MODE_CHANGE);
lower:
    leave_those_below();
    trying = false
  :: WRITER_STOP -> break
  od;
  END
}

init {
  byte p;
  atomic {
#if WRITERS > 0
    for (p : 0 .. WRITERS - 1) { run writer(p) }
#endif
#if READERS > 0
    for (p : 0 .. READERS - 1) { run reader(p) }
#endif
    p = 0
  }
}

#ifdef OBSERVE
ltl no_writer_starves { []<> !writer_waits }
ltl no_reader_starves { []<> !reader_waits }
/* A waiter sees a participant enter, itself or another: a reader, or any. */
ltl readers_have_turns { [] (reader_waits -> <> (!reader_waits || readers_in > 0)) }
ltl somebody_enters {
  [] ((writer_waits || reader_waits) -> <> (writers_in > 0 || readers_in > 0))
}
#endif
