/* The promises of one host in a cluster, and an etcd that may lose the host's keys: the rules of
 * src/names/cluster/core/membership.hpp that no deadline is made void by what etcd loses.
 *
 * The host has a key and a beat in etcd. It renews by a transaction that compares its key and its
 * last beat, and writes the next beat. When the host has the answer, its deadline is TTL - 1 after
 * the moment at which it sent the renewal. Another member reads the keys. It takes the host off the
 * epoch when it has seen for TTL that the beat has not changed, or that the key is gone. The clock
 * of both is `now`. The answer of each transaction may be late, or lost.
 *
 * Rule: when the host is taken off, or comes back as another incarnation, its deadline is over. No
 * answer that comes after that sets a deadline that is ahead.
 *
 * Macros: LAST, the clock's end; LOSSES, how often a key is lost. With two losses the rule is broken:
 * if the beat is lost twice between two reads of the other member, and the host renews between the
 * two losses, the member does not see that renewal. Faults that can be put back:
 *   F_BACK  the host comes back at once when its key is gone
 *   F_GONE  a member without a key is taken off at once
 *   F_BEAT  the other member does not count the loss of the beat as a renewal
 *   F_SENT  the deadline counts from the answer to a renewal
 */
#ifndef LOSSES
#define LOSSES 1
#endif
#define TTL 3
#ifndef LAST
#define LAST 13
#endif
#define NO_KEY 0

byte now = 1;
byte beat = 1;       /* its revision; NO_KEY: it is lost */
byte revision = 1;
bool has_key = true;
bool is_member = true; /* in the epoch, in this incarnation */
byte deadline = 0;
byte losses = LOSSES;

#define is_over (now >= deadline)

active proctype clock() {
  do
  :: atomic { now < LAST -> now++ }
  :: break
  od
}

active proctype adversary() {
  do
  :: atomic { losses > 0 && has_key -> has_key = false; losses = 0 }
  :: atomic { losses > 0 && beat != NO_KEY -> beat = NO_KEY; losses-- }
  :: break
  od
}

active proctype host() {
  byte sent = 0, mine = 1;
  bool carried_out, is_unanswered = false;
  do
  :: atomic { now < LAST && has_key && sent != now -> sent = now; carried_out = false }
     /* the transaction arrives */
     atomic {
       if
       :: has_key && beat == mine ->
          revision++; beat = revision; carried_out = true
       :: else
       fi
     }
     if
     :: atomic { carried_out ->
          mine = revision; is_unanswered = false;
#ifdef F_SENT
          sent = now;
#endif
          if
          :: deadline < sent + TTL - 1 -> deadline = sent + TTL - 1
          :: else
          fi;
          assert(is_member || is_over)
        }
     :: carried_out -> is_unanswered = true /* the answer is lost */
     :: atomic { !carried_out && has_key && (is_unanswered || beat == NO_KEY) ->
          mine = beat; is_unanswered = false }
     :: !carried_out && !(has_key && (is_unanswered || beat == NO_KEY))
     fi
#ifdef F_BACK
  :: atomic { !has_key && is_member -> is_member = false; assert(is_over); break }
#else
  :: atomic { !has_key && is_member && is_over -> is_member = false; break }
#endif
  :: atomic { now == LAST || !is_member -> break }
  od
}

active proctype other() {
  byte seen = 1, since = 1, lost_since = 0; /* 0: the key is there, as far as it has read */
  do
  :: atomic { is_member && now < LAST ->
       if
#ifdef F_BEAT
       :: beat != seen && beat != NO_KEY -> seen = beat; since = now
#else
       :: beat != seen -> seen = beat; since = now
#endif
       :: else
       fi;
       if
       :: !has_key && lost_since == 0 -> lost_since = now
       :: else
       fi }
     /* the member acts on what it has read in a later step, which compares the beat */
     if
#ifdef F_BEAT
     :: atomic { is_member && has_key && now - since >= TTL && (beat == seen || beat == NO_KEY) ->
#else
     :: atomic { is_member && has_key && now - since >= TTL && beat == seen ->
#endif
          has_key = false; is_member = false; assert(is_over) }
#ifdef F_GONE
     :: atomic { is_member && !has_key && lost_since != 0 ->
#else
     :: atomic { is_member && !has_key && lost_since != 0 && now - lost_since >= TTL ->
#endif
          is_member = false; assert(is_over) }
     :: skip
     fi
  :: atomic { !is_member || now == LAST -> break }
  od
}
