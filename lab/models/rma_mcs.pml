/* RMA-MCS: the topology-aware MCS lock, a tree of queues.
 *
 * "High-Performance Distributed RMA Locks", section 3.5; Listings 4 and 5 at all levels. At the
 * root the lock is always passed on: there is no other element to leave it to, so T_L,1 does not
 * apply.
 *
 * Macros: queue_tree.pml, shared.pml.
 */

#include "shared.pml"
#include "queue_tree.pml"

proctype participant(byte me) {
  TREE_VARIABLES
  ROUND_COUNTER

  do
  :: NEXT_ROUND ->
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

    writer_enters();
    writer_leaves();

    level = N;
    do
    :: read_successor();
      if
      :: level == 1 -> leave(ENTER); break
      :: level > 1 && succ[level] != NIL && MAY_PASS(status, level) ->
        pass_on(PASSED_AT(status, level));
        break
      :: else -> level-- /* the parent's first: a successor sent up finds our entry out of it */
      fi
    od;
lower:
    leave_those_below()
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
