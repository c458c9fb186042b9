/* RMA-RW as the paper prints it: the root level (Listings 7 and 8) and one counter (Listings 6, 9
 * and 10), line by line.
 *
 * "High-Performance Distributed RMA Locks", section 3.3. The listings have errors; each can be
 * corrected by itself, so that each can be shown by itself. With 1 reader and 1 writer:
 *
 *   MEND_1  set_counters_to_WRITE (Listing 6) takes the counter and returns, although readers may
 *           be in. Mend: it then waits until ARRIVE, less the flag, equals DEPART, as section 4.1
 *           says that it does ("a writer that checks each counter again for active readers").
 *   MEND_2  reset_counter (Listing 6), called by a reader that is first at T_R and saw no writer,
 *           also subtracts the WRITE flag of a writer that came in between. Mend: a reader never
 *           subtracts the flag.
 *   MEND_3  reset_counters comes before the writer takes itself off the queue (Listing 8, lines 12
 *           to 15). In between readers can reach T_R, see a TAIL that is not empty, and wait for a
 *           reset that no writer makes (Listing 9, lines 6 to 8). Mend: a reader that waits at T_R
 *           reads TAIL again.
 *
 * Once those are corrected, with 2 readers and 1 writer:
 *
 *   MEND_4  the two accumulates of reset_counter take effect in any order, and so do the two gets
 *           of the check of MEND_1: a reset between or around them can hide a reader that is in.
 *           Mend: a reset changes DEPART, then ARRIVE; the check reads ARRIVE, then DEPART.
 *   MEND_5  two readers can be in reset_counter at once: one backs off late (Listing 9, line 24),
 *           and so the next ticket is T_R once more. Both get the same DEPART and both subtract
 *           it. Mend: reset_counter takes DEPART with a swap.
 *
 * Operations that the listings post under one flush take effect in any order. Words are signed, as
 * the listings declare them.
 *
 * Macros of this model: READERS, WRITERS, T_R, T_W, MEND_1 ... MEND_5. Of all: shared.pml.
 */

#ifndef READERS
#define READERS 1
#endif
#ifndef WRITERS
#define WRITERS 1
#endif
#ifndef T_R
#define T_R 2
#endif
#ifndef T_W
#define T_W 2
#endif
#ifndef MEND_1
#define MEND_1 0
#endif
#ifndef MEND_2
#define MEND_2 0
#endif
#ifndef MEND_3
#define MEND_3 0
#endif
#ifndef MEND_4
#define MEND_4 0
#endif

#ifndef MEND_5
#define MEND_5 0
#endif

#include "shared.pml"

#define FLAG 64 /* INT64_MAX / 2 */

/* STATUS: how often in a row the lock was passed on, or one of these. */
#define ACQUIRE_START 0
#define WAIT (-1)
#define MODE_CHANGE (-2)

byte TAIL = NIL;
byte NEXT[WRITERS];
short STATUS[WRITERS];
short ARRIVE = 0, DEPART = 0;

/* Listing 6, lines 10 to 24. Only writers may reset the flag, if that is corrected. */
inline reset_counter(may_reset_flag) {
#if MEND_5
  arr_cnt = ARRIVE;
  atomic { dep_cnt = DEPART; DEPART = 0 }
#else
  if /* line 12: two gets, one flush */
  :: arr_cnt = ARRIVE; dep_cnt = DEPART
  :: dep_cnt = DEPART; arr_cnt = ARRIVE
  fi;
#endif
  atomic { /* lines 15 to 20 */
    sub_arr_cnt = -dep_cnt;
    if
    :: arr_cnt >= FLAG && may_reset_flag -> sub_arr_cnt = sub_arr_cnt - FLAG
    :: else
    fi;
    arr_cnt = 0
  }
#if MEND_5
  ARRIVE = ARRIVE + sub_arr_cnt;
#else
  if /* lines 22 and 23: two accumulates, one flush */
  :: !MEND_4 -> ARRIVE = ARRIVE + sub_arr_cnt; DEPART = DEPART - dep_cnt
  :: DEPART = DEPART - dep_cnt; ARRIVE = ARRIVE + sub_arr_cnt
  fi;
#endif
  atomic { sub_arr_cnt = 0; dep_cnt = 0 }
}

#define COUNTS short arr_cnt = 0, dep_cnt = 0, sub_arr_cnt = 0;

/* Listing 6, lines 2 to 7. */
inline set_counters_to_WRITE() {
  ARRIVE = ARRIVE + FLAG;
#if MEND_1
  do
  :: if
     :: arr_cnt = ARRIVE; dep_cnt = DEPART
     :: !MEND_4 -> dep_cnt = DEPART; arr_cnt = ARRIVE
     fi;
     if
     :: arr_cnt - FLAG == dep_cnt -> break
     :: arr_cnt - FLAG != dep_cnt && (ARRIVE != arr_cnt || DEPART != dep_cnt) /* read again */
     fi
  od;
  atomic { arr_cnt = 0; dep_cnt = 0 }
#endif
}

proctype writer(byte me) {
  byte pred = NIL, succ = NIL;
  short curr_stat = 0, next_stat = 0;
  bool counters_reset = false;
  COUNTS
  ROUND_COUNTER

  do
  :: NEXT_WRITER_ROUND ->
    WAITS(writer_waits);

    /* Listing 7 */
    atomic { NEXT[me] = NIL; STATUS[me] = WAIT } /* lines 2 and 3 */
    atomic { pred = TAIL; TAIL = REF(me) }       /* lines 5 and 6 */
    if
    :: pred != NIL ->
      atomic { NEXT[AT(pred)] = REF(me); pred = NIL } /* line 9 */
      atomic { STATUS[me] != WAIT -> curr_stat = STATUS[me] } /* lines 10 to 13 */
    :: else -> curr_stat = MODE_CHANGE /* line 19: as if: lines 20 to 22 are lines 15 to 17 */
    fi;
    if
    :: curr_stat == MODE_CHANGE ->
      set_counters_to_WRITE();
      STATUS[me] = ACQUIRE_START
    :: else
    fi;
    curr_stat = 0;

    writer_enters();
    writer_leaves();

    /* Listing 8 */
    next_stat = STATUS[me] + 1; /* lines 4 and 5 */
    succ = NIL;
    if
    :: next_stat == T_W ->
      reset_counter(true); /* line 6 */
      atomic { next_stat = MODE_CHANGE; counters_reset = true }
    :: else
    fi;
    succ = NEXT[me]; /* line 9 */
    if
    :: succ == NIL ->
      if
      :: !counters_reset -> reset_counter(true); next_stat = MODE_CHANGE /* line 12 */
      :: else
      fi;
      if
      :: atomic { TAIL == REF(me) -> TAIL = NIL } /* lines 15 to 17 */
      :: atomic { TAIL != REF(me) && NEXT[me] != NIL -> succ = NEXT[me] } /* lines 18 to 20 */
      fi
    :: else
    fi;
    if
    :: succ != NIL -> STATUS[AT(succ)] = next_stat /* line 23 */
    :: else
    fi;
    atomic { succ = NIL; next_stat = 0; counters_reset = false }
  :: WRITER_STOP -> break
  od;
  END
}

proctype reader(byte me) {
  short curr_stat = 0;
  bool barrier = false;
  COUNTS
  ROUND_COUNTER

  do
  :: NEXT_ROUND ->
    WAITS(reader_waits);

    /* Listing 9 */
    barrier = false;
    do
    :: if
       :: barrier -> /* lines 5 to 9 */
         if
         :: ARRIVE < T_R
#if MEND_3
         :: ARRIVE == T_R -> /* full: is there a writer to empty it? */
           if
           :: TAIL == NIL
           :: ARRIVE != T_R
           fi
#endif
         fi
       :: else
       fi;
       atomic { curr_stat = ARRIVE; ARRIVE++ } /* line 12 */
       if
       :: curr_stat < T_R -> break /* the reader is in */
       :: curr_stat >= T_R ->
         barrier = true;
         if
         :: curr_stat == T_R -> /* lines 15 to 22 */
           if
           :: TAIL == NIL ->
             reset_counter(!MEND_2);
             barrier = false
           :: TAIL != NIL
           fi
         :: else
         fi;
         atomic { ARRIVE--; curr_stat = 0 } /* line 24 */
       fi
    od;
    atomic { curr_stat = 0; barrier = false }

    reader_enters();
    reader_leaves();
    DEPART++ /* Listing 10 */
  :: STOP -> break
  od;
  END
}

init {
  byte p;
  atomic {
    for (p : 0 .. WRITERS - 1) { run writer(p) }
    for (p : 0 .. READERS - 1) { run reader(p) }
    p = 0
  }
}
