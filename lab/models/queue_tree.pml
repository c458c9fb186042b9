/* The distributed tree of queues (DT): what RMA-MCS is, and what the writers of RMA-RW climb.
 *
 * "High-Performance Distributed RMA Locks", sections 3.2.2 to 3.3.2, Listings 4 and 5.
 *
 *   N             levels, 1 to 4; level 1 is the machine
 *   FAN           elements of level i + 1 in each element of level i
 *   LEAF          places for participants in each element of level N
 *   P             participants; they fill the places from the first element on
 *   TL1 ... TL4   T_L,i, at most 7
 *   TL_FOREVER=1  the lock is passed on inside an element as long as it has a waiter, to see what
 *                 the thresholds are for
 *
 * Above level N an entry of a queue stands for an element: the holder there may not be the
 * participant that entered it, since the lock was passed on inside the element meanwhile. An entry
 * is known by its NEXT, and NEXT says where its successor waits. Listings 4 and 5 write p for both;
 * -DENTRY_IS_P=1 reads them so: each entry is that of the participant that entered it, and a
 * releaser reads its own. It shows that this reading waits for ever.
 */

#ifndef N
#define N 2
#endif
#ifndef FAN
#define FAN 2
#endif
#ifndef LEAF
#define LEAF 2
#endif
#ifndef P
#define P (LEAF * ELEMENTS_OF_N)
#endif
#ifndef TL1
#define TL1 2
#endif
#ifndef TL2
#define TL2 1
#endif
#ifndef TL3
#define TL3 1
#endif
#ifndef TL4
#define TL4 1
#endif
#ifndef TL_FOREVER
#define TL_FOREVER 0
#endif
#ifndef ENTRY_IS_P
#define ENTRY_IS_P 0
#endif

/* ---- the machine ---- */

/* Arrays need constants, hence no conditional here. */
#if N == 1
#define ELEMENTS_OF_N 1
#define QUEUES 1
#elif N == 2
#define ELEMENTS_OF_N (FAN)
#define QUEUES (1 + FAN)
#elif N == 3
#define ELEMENTS_OF_N (FAN * FAN)
#define QUEUES (1 + FAN + FAN * FAN)
#elif N == 4
#define ELEMENTS_OF_N (FAN * FAN * FAN)
#define QUEUES (1 + FAN + FAN * FAN + FAN * FAN * FAN)
#else
#error "N is 1 to 4"
#endif

#define FAN_TO(k) ((k) == 0 -> 1 : ((k) == 1 -> FAN : ((k) == 2 -> FAN * FAN : FAN * FAN * FAN)))
#define FIRST(i) ((i) == 1 -> 0 : ((i) == 2 -> 1 : ((i) == 3 -> 1 + FAN : 1 + FAN + FAN * FAN)))
#define T_L(i) ((i) == 1 -> TL1 : ((i) == 2 -> TL2 : ((i) == 3 -> TL3 : TL4)))

/* The queue of e(p, i), p's element at level i: the root's is 0, then level by level. */
#define QUEUE(p, i) (FIRST(i) + (p) / (LEAF * FAN_TO(N - (i))))

/* p's entry in that queue: at level N its own, above it that of its element one level down. */
#if ENTRY_IS_P
#define ENTRIES (P * N)
#define ENTRY(p, i) ((p) * N + (i) - 1)
#else
#define ENTRIES (P + QUEUES - 1)
#define ENTRY(p, i) ((i) == N -> (p) : P + QUEUE(p, (i) + 1) - 1)
#endif

/* ---- STATUS: an order and, for each level, how often in a row the lock was passed there ---- */

#define WAIT 0           /* nothing was passed yet */
#define ENTER 1          /* the lock is yours */
#define ACQUIRE_PARENT 2 /* go on to the level above */
#define MODE_CHANGE 3    /* RMA-RW, level 1: the readers have the lock */

#define ORDER(status) ((status) & 3)
#define SHIFT(i) (3 * (i) - 1)
#define PASSED(status, i) (((status) >> SHIFT(i)) & 7)
/* As the next holder at level i gets it: passed there once more, and never yet below. */
#define PASSED_AT(status, i) \
  (((((status) & ((1 << SHIFT((i) + 1)) - 1)) + (1 << SHIFT(i))) & ~3) | ENTER)

/* Whether the lock may be passed on inside an element of level i > 1 once more. */
#define MAY_PASS(status, i) (TL_FOREVER || PASSED(status, i) < T_L(i))
#if TL_FOREVER
#undef PASSED_AT
#define PASSED_AT(status, i) (status)
#endif

/* ---- the cells ---- */

byte TAIL[QUEUES];  /* NIL or REF(entry) */
byte NEXT[ENTRIES]; /* NIL or REF(the participant that waits behind the entry) */
short STATUS[P];    /* one for all levels: a waiter at a level heads the queues below it */

/* What a participant knows. `status` is valid while it holds the lock. */
#define TREE_VARIABLES                                          \
  byte level = 0, pred = NIL, handed = WAIT, succ[N + 1] = NIL; \
  short status = 0;

/* Listing 4, lines 2 to 20: enters the queue at `level` and waits. `handed` is what the predecessor
 * passed, or ACQUIRE_PARENT if there was none. The stores that prepare the entry are one step: no
 * participant can refer to it before the swap. */
inline enter() {
  atomic {
    NEXT[ENTRY(me, level)] = NIL;
    STATUS[me] = WAIT
  }
  atomic {
    pred = TAIL[QUEUE(me, level)];
    TAIL[QUEUE(me, level)] = REF(ENTRY(me, level))
  }
  if
  :: pred == NIL -> atomic { handed = ACQUIRE_PARENT; status = ENTER }
  :: else ->
    atomic { NEXT[AT(pred)] = REF(me); pred = NIL } /* the predecessor now knows where we wait */
    atomic {
      STATUS[me] != WAIT -> handed = ORDER(STATUS[me]);
      if
      :: handed == ENTER -> status = STATUS[me]
      :: else -> status = ENTER
      fi
    }
  fi
}

/* Enters the queue at `level` only if it is empty: `handed` is ACQUIRE_PARENT, else WAIT. */
inline try_enter() {
  atomic {
    NEXT[ENTRY(me, level)] = NIL;
    STATUS[me] = WAIT
  }
  atomic {
    if
    :: TAIL[QUEUE(me, level)] == NIL ->
      TAIL[QUEUE(me, level)] = REF(ENTRY(me, level));
      handed = ACQUIRE_PARENT;
      status = ENTER
    :: else -> handed = WAIT
    fi
  }
}

/* Listing 5, line 3: our successor, if it has written its link. */
inline read_successor() { succ[level] = NEXT[ENTRY(me, level)] }

inline pass_on(what) { atomic { STATUS[AT(succ[level])] = what; succ[level] = NIL } }

/* Listing 5, lines 13 to 23: takes our entry off the queue, or passes a value to its successor. */
inline leave(what) {
  if
  :: succ[level] == NIL ->
    if
    :: atomic {
         TAIL[QUEUE(me, level)] == REF(ENTRY(me, level)) -> TAIL[QUEUE(me, level)] = NIL
       }
    :: atomic { /* a successor swapped itself in and is about to write its link */
         TAIL[QUEUE(me, level)] != REF(ENTRY(me, level)) && NEXT[ENTRY(me, level)] != NIL ->
         succ[level] = NEXT[ENTRY(me, level)]
       }
    fi
  :: else
  fi;
  if
  :: succ[level] != NIL -> pass_on(what)
  :: else
  fi
}

/* Leaves the queues below the level at which the lock was passed on or given up. */
inline leave_those_below() {
  do
  :: level < N -> level++; leave(ACQUIRE_PARENT)
  :: else -> break
  od;
  atomic { level = 0; handed = WAIT; status = 0 }
}
