/* alock: two cohorts, each an MCS queue with a budget, and Peterson's algorithm between their heads.
 *
 * "ALock: Asymmetric Lock Primitive for RDMA Systems", section 5, Algorithms 1 to 4. A cohort's
 * tail is its flag in Peterson's algorithm. The model also has what the source adds: a head reads
 * the other tail first and becomes the victim only if that is set, and attempts.
 *
 * A local participant's stores may become visible late; here each is visible at once. The checker
 * covers the late ones, and the fence that they need.
 *
 * Macros of this model:
 *   LOCALS, REMOTES   participants of each cohort
 *   LOCAL_BUDGET, REMOTE_BUDGET   acquires in a row before a cohort lets the other one in
 *   TRIES=1           the last remote participant only tries
 *   BUDGETS=0         a cohort passes the lock on as long as it has a waiter
 *   VICTIM=0          a head that finds a rival waits until the other tail is not set
 *   GIVES_WAY=0       an attempt that withdraws does not become the victim before
 *   COMPETES=0        the successor of such an attempt takes it for the holder of the lock
 * Of all: shared.pml.
 */

#ifndef LOCALS
#define LOCALS 1
#endif
#ifndef REMOTES
#define REMOTES 1
#endif
#ifndef LOCAL_BUDGET
#define LOCAL_BUDGET 1
#endif
#ifndef REMOTE_BUDGET
#define REMOTE_BUDGET 1
#endif
#ifndef TRIES
#define TRIES 0
#endif
#ifndef BUDGETS
#define BUDGETS 1
#endif
#ifndef VICTIM
#define VICTIM 1
#endif
#ifndef COMPETES
#define COMPETES 1
#endif
#ifndef GIVES_WAY
#define GIVES_WAY 1
#endif

#include "shared.pml"

#define P (LOCALS + REMOTES)
#define COHORT(p) ((p) < LOCALS -> 0 : 1)
#define OTHER(p) ((p) < LOCALS -> 1 : 0)
#define WHOLE_BUDGET(p) ((p) < LOCALS -> LOCAL_BUDGET : REMOTE_BUDGET)
#define MUST_WAIT 255

byte TAIL[2] = NIL; /* of each cohort, and its flag */
byte victim = 0;    /* the cohort that lets the other one go first */
byte NEXT[P];       /* the successor of p */
byte BUDGET[P];     /* MUST_WAIT, or what p was passed */

/* Algorithm 4: our tail is set. Either of the two conditions is reason enough to enter. */
inline compete() {
  if
  :: TAIL[OTHER(me)] == NIL
  :: TAIL[OTHER(me)] != NIL ->
#if VICTIM
    victim = COHORT(me);
    if
    :: TAIL[OTHER(me)] == NIL
    :: victim != COHORT(me)
    fi
#else
    TAIL[OTHER(me)] == NIL
#endif
  fi
}

proctype participant(byte me) {
  byte pred = NIL, succ = NIL;
  byte left = 0; /* of the budget */
  ROUND_COUNTER

  do
  :: NEXT_ROUND ->
    atomic { NEXT[me] = NIL; BUDGET[me] = MUST_WAIT };
    if
    :: TRIES && me == P - 1 ->
      if
      :: atomic { TAIL[COHORT(me)] == NIL -> TAIL[COHORT(me)] = REF(me) }
      :: TAIL[COHORT(me)] != NIL -> goto next_round
      fi;
      if
      :: TAIL[OTHER(me)] == NIL -> left = WHOLE_BUDGET(me)
      :: TAIL[OTHER(me)] != NIL ->
#if GIVES_WAY
        victim = COHORT(me);
#endif
#if COMPETES
        left = 1; /* our successor must compete */
#else
        left = 2;
#endif
        goto leave
      fi
    :: else ->
      WAITS(writer_waits);
      atomic { pred = TAIL[COHORT(me)]; TAIL[COHORT(me)] = REF(me) };
      if
      :: pred == NIL -> left = 0
      :: else ->
        atomic { NEXT[AT(pred)] = REF(me); pred = NIL };
        atomic { BUDGET[me] != MUST_WAIT -> left = BUDGET[me] }
      fi;
      if
      :: left > 0 /* passed on inside the cohort */
      :: else ->
        compete();
        left = WHOLE_BUDGET(me)
      fi
    fi;

    writer_enters();
    writer_leaves();

leave:
    succ = NEXT[me];
    if
    :: succ == NIL ->
      if
      :: atomic { TAIL[COHORT(me)] == REF(me) -> TAIL[COHORT(me)] = NIL };
        goto next_round
      :: TAIL[COHORT(me)] != REF(me) /* a successor is about to write its link */
      fi;
      atomic { NEXT[me] != NIL -> succ = NEXT[me] }
    :: else
    fi;
#if BUDGETS
    BUDGET[AT(succ)] = left - 1;
#else
    BUDGET[AT(succ)] = left;
#endif
next_round:
    atomic { succ = NIL; left = 0 }
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
