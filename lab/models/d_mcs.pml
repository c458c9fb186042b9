/* D-MCS: the distributed MCS queue lock.
 *
 * "High-Performance Distributed RMA Locks", section 2.4, Listings 2 and 3. The paper's WAIT and
 * STATUS are one word.
 *
 * Macros of this model:
 *   P                 participants
 *   ATOMIC_SWAP=0     the swap on TAIL is a get and a put, to see what it is for
 *   ATOMIC_COMPARE=0  the compare-swap on TAIL in a release is a get and a put, the same
 * Of all: shared.pml.
 */

#ifndef P
#define P 3
#endif
#ifndef ATOMIC_SWAP
#define ATOMIC_SWAP 1
#endif
#ifndef ATOMIC_COMPARE
#define ATOMIC_COMPARE 1
#endif

#include "shared.pml"

byte TAIL = NIL; /* the last in the queue */
byte NEXT[P];    /* the successor of p */
bool WAIT[P];    /* p must wait */

proctype participant(byte me) {
  byte pred = NIL, succ = NIL, tail = NIL;
  ROUND_COUNTER

  do
  :: NEXT_ROUND ->
    /* Listing 2, lines 3 and 4. No participant can refer to us before the swap. */
    atomic { NEXT[me] = NIL; WAIT[me] = true };
    if
    :: /* lines 6 to 14 */
      WAITS(writer_waits);
#if ATOMIC_SWAP
      atomic { pred = TAIL; TAIL = REF(me) };
#else
      pred = TAIL;
      TAIL = REF(me);
#endif
      if
      :: pred != NIL ->
        atomic { NEXT[AT(pred)] = REF(me); pred = NIL }; /* the predecessor sees us */
        !WAIT[me]
      :: else
      fi
#if TRY
    :: /* try_lock: a compare-swap in place of the swap */
      if
      :: atomic { TAIL == NIL -> TAIL = REF(me) }
      :: TAIL != NIL -> goto next_round
      fi
#endif
    fi;

    writer_enters();
    writer_leaves();

    /* Listing 3 */
    succ = NEXT[me];
    if
    :: succ == NIL ->
#if ATOMIC_COMPARE
      atomic {
        tail = TAIL;
        if
        :: tail == REF(me) -> TAIL = NIL
        :: else
        fi
      }
#else
      tail = TAIL;
      if
      :: tail == REF(me) -> TAIL = NIL
      :: else
      fi;
#endif
      if
      :: tail == REF(me) -> goto next_round /* alone in the queue */
      :: else /* a successor is about to write its link */
      fi;
      atomic { NEXT[me] != NIL -> succ = NEXT[me] }
    :: else
    fi;
    WAIT[AT(succ)] = false;
next_round:
    atomic { succ = NIL; tail = NIL }
  :: STOP -> break
  od;
  END
}

init {
  byte p;
  atomic {
    for (p : 0 .. P - 1) { run participant(p) }
    p = 0
  }
}

#ifdef OBSERVE
ltl no_starvation { []<> !writer_waits }
#endif
