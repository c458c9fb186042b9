/* Ownership of one name across hosts (docs/cluster.md, src/names/cluster/core/): N hosts, each with an agent and
 * clients, an abstract host lock inside each host, etcd as atomic state, a home that moves with the epoch.
 *
 * Of the protocol as it is in src/names/cluster/core it does not have: the witness of a home, names that are
 * forgotten, hosts that leave in order, requests that replace one for more, and tokens that begin anew with
 * each epoch. The simulation and tests/names/agent/ have these.
 *
 * Each step is atomic: one message handled, one read or compare-and-swap of shared memory, one
 * transaction of etcd. Messages wait in channels, in order between two agents; a message of an
 * older epoch is dropped, one of a later epoch waits until its receiver has moved there.
 *
 * Bounds:  N hosts; CL clients, client c on host Pc, modes Mc (1 shared, 2 exclusive, 3 either);
 *          ROUNDS acquires a client; INIT_MEM the first members (bits);
 *          DEATHS hosts die, CUTS hosts lose etcd (and perhaps their peers), RESTARTS of agents,
 *          JOINS of new incarnations, CDEATHS clients die.
 *          ENTRY=1: the check of the deadline and the entry are two steps.
 *          LINKS=1: a cut may also be one from the peers alone; the host is then evicted in etcd.
 *          GIVEUPS representatives give up waiting; GC=1: records of settled epochs are forgotten.
 *          HEAL=1: a renewal may succeed after the deadline, if the key is still there.
 *          ACK=0: a host never forgets what it has given back (fewer states).
 *          FOREVER=1: clients acquire as often as they like and may stop after any round; tokens and
 *          `died` stand still; host locks are first come, first served; each task of an agent is a
 *          process, so that weak fairness means something. LTL: no_starvation, of client WATCHED.
 *          HOMES=1: the home stays on the member with the smallest number (fewer states).
 *          GIVES=0: no holder that has left gives the name back itself, if it is revoked (fewer states).
 * Switches that bring a fault back: the F_ macros, explained where they are used.
 *
 * Properties: assertions; `timeout`: nobody living and connected waits; -DNP: no endless run.
 */
#ifndef N
#define N 3
#endif
#ifndef CL
#define CL 3
#endif
#ifndef P0
#define P0 0
#endif
#ifndef P1
#define P1 1
#endif
#ifndef P2
#define P2 2
#endif
#ifndef P3
#define P3 0
#endif
#ifndef M0
#define M0 2
#endif
#ifndef M1
#define M1 2
#endif
#ifndef M2
#define M2 2
#endif
#ifndef M3
#define M3 1
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef INIT_MEM
#define INIT_MEM ((1<<N)-1)
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef CUTS
#define CUTS 0
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef JOINS
#define JOINS 0
#endif
#ifndef CDEATHS
#define CDEATHS 0
#endif
#ifndef K
#define K 6
#endif
#ifndef ENTRY
#define ENTRY 0
#endif
#ifndef FOREVER
#define FOREVER 0
#endif
#ifndef WATCHED
#define WATCHED 0
#endif
#if FOREVER
#define ACK 0
#endif
#ifndef ACK
#define ACK 1
#endif
#ifndef LINKS
#define LINKS 0
#endif
#ifndef GC
#define GC 0
#endif
#ifndef GIVEUPS
#define GIVEUPS 0
#endif
#ifndef HEAL
#define HEAL 0
#endif
#ifndef HOMES
#define HOMES 0
#endif
#ifndef GIVES
#define GIVES 1
#endif

#define BIT(h) (1<<(h))
#define HOSTOF(c) ((c)==0 -> P0 : ((c)==1 -> P1 : ((c)==2 -> P2 : P3)))
#define MAXE 15

/* modes */
#define NONE 0
#define SH 1
#define EX 2
/* messages */
#define REQ 1      /* arg = mode */
#define GRANT 2    /* t, arg = mode*2 + died */
#define REVOKE 3   /* arg = mode that is wanted */
#define GIVE 4     /* t, arg = kept mode*2 + died */
#define RECORD 5   /* t, arg = label*2 + died: what an old home knows */
#define CLAIM 6    /* t, arg = mode*2 + died: what a host has or last had; also `claims_done` */
/* a client's state */
#define IDLE 0
#define LOCKED 1   /* has the host lock */
#define READ 2     /* has read an ownership word that suffices */
#define PASSED 3   /* has found the deadline ahead */
#define WAIT 4     /* the host's representative: waits for the word, with the host lock */
#define INSIDE 5
#define DONE 6
#define DEAD 7
#define GONE 8     /* its host died or has not come yet */
#define QUEUED 9   /* FOREVER: in the queue of the host lock */
#define LEFT 10    /* GIVES: has left, and has the host lock still */
#define RELEASES 11 /* GIVES: the same, and gives nothing back any more */
#define AG 255     /* holder of a host lock: the agent */

typedef Host {
  bool up; bool cut; bool silent; bool fenced; bool since;
  byte inc;
  /* the domain file: survives the agent */
  byte word;            /* ownership: NONE, SH, EX (of this incarnation) */
  byte want;            /* what a representative waits for; in one word with `word` */
  byte mark;            /* GIVES: the mode for which the name is revoked; in one word with `word` */
  byte t; bool died;    /* token 16*E + counter; what was guarded may be half done */
  bool inside;          /* an exclusive holder is inside; still set when it died there */
  byte hx; byte hs;     /* the host lock: exclusive holder (client + 1, AG), number of sharers */
  bool owes;            /* an answer to a give_back is under way */
  bool rob;             /* F_AGENTDIED, F_WAITDIED: what `robust` says of the host lock */
  byte rl; byte rt; bool rd; byte rx; byte rs;  /* the home's record: epoch, token, died, owners */
  /* the agent's memory */
  byte ep; byte hm; byte asked; byte revoking;
  /* the agent as home, in epoch ep */
  bool act; bool db; byte mm; byte got; byte cx; byte cs; byte mt; bool md;
  byte ml; byte mrt; bool mrd; byte rvs; byte rvx;
}
Host H[N];
chan ch[N*N] = [K] of { byte, byte, byte };   /* type*32 + arg, epoch, token */
chan q[N] = [2*N] of { byte };                /* the home's queue: host*4 + mode */

#if FOREVER
chan hq[N] = [CL+1] of { byte };              /* the host lock's queue */
bool hqa[N];                                  /* the agent is in it */
#define PART(x) (part == (x))
#define FIRST(h,x) (hq[h]?[x])
#define POP(h) hq[h]?_;
inline leave_queue(h, x) { /* the dead leave it, wherever they are */
  w_ = len(hq[h]);
  do
  :: w_ > 0 -> hq[h]?d_; if :: d_ != (x) -> hq[h]!d_ :: else fi; w_--
  :: else -> break
  od;
  d_ = 0
}
#else
#define PART(x) true
#define FIRST(h,x) true
#define POP(h)
#endif

/* etcd */
byte epoch = 1; byte mem = INIT_MEM; byte home; byte past; bool doubt; bool settled = 1;
byte lease = INIT_MEM;      /* members that have a key */
byte newk; byte newinc;     /* keys changed since the epoch: any change; another incarnation */
byte born[N];               /* the epoch in which the incarnation came */

byte st[CL]; byte cm[CL]; byte ci[CL]; byte rounds[CL];
byte deaths = DEATHS; byte cuts = CUTS; byte restarts = RESTARTS; byte joins = JOINS;
byte cdeaths = CDEATHS;
#if GIVEUPS
byte giveups = GIVEUPS;
#else
#define giveups 0
#endif
/* what an observer knows */
byte g_last; bool g_must; bool g_may;

/* scratch, never alive between steps */
hidden byte a_, b_, c_, d_, e_, i_, j_, k_, m_, x_, y_, z_, w_;
hidden byte f_, o_;

#define CHN(from,to) ((from)*N+(to))

/* a message to one that is gone, cannot be reached, or has moved to a later epoch is lost */
#define SEND(from,to,ty,tok,arg) \
  if \
  :: !H[to].up || H[to].ep > H[from].ep || ((from) != (to) && (H[from].silent || H[to].silent)) \
  :: else -> assert(nfull(ch[CHN(from,to)])); ch[CHN(from,to)]!((ty)*32+(arg)),H[from].ep,(tok) \
  fi

#ifdef F_NOINC
#define VALID(c) (!H[HOSTOF(c)].fenced)          /* a holder's check without the incarnation */
#else
#define VALID(c) (!H[HOSTOF(c)].fenced && ci[c] == H[HOSTOF(c)].inc)
#endif

inline purge_in(h) { /* i_ */
  i_ = 0;
  do
  :: i_ < N ->
     do :: nempty(ch[CHN(i_,h)]) -> ch[CHN(i_,h)]?_,_,_ :: empty(ch[CHN(i_,h)]) -> break od;
     i_++
  :: else -> break
  od;
  i_ = 0
}
inline purge_out(h) {
  i_ = 0;
  do
  :: i_ < N ->
     do :: nempty(ch[CHN(h,i_)]) -> ch[CHN(h,i_)]?_,_,_ :: empty(ch[CHN(h,i_)]) -> break od;
     i_++
  :: else -> break
  od;
  i_ = 0
}
inline drop_older(h) {
  i_ = 0;
  do
  :: i_ < N ->
     do
     :: nempty(ch[CHN(i_,h)]) && !(ch[CHN(i_,h)]?[_,eval(H[h].ep),_]) -> ch[CHN(i_,h)]?_,_,_
     :: empty(ch[CHN(i_,h)]) || ch[CHN(i_,h)]?[_,eval(H[h].ep),_] -> break
     od;
     i_++
  :: else -> break
  od;
  i_ = 0
}
/* what h sent in epochs that the receiver will skip (it reads the newest) is as good as lost */
inline drop_skipped(h) {
  i_ = 0;
  do
  :: i_ < N ->
     w_ = len(ch[CHN(h,i_)]);
     do
     :: w_ > 0 ->
        ch[CHN(h,i_)]?a_,b_,c_;
        if :: b_ <= H[i_].ep -> ch[CHN(h,i_)]!a_,b_,c_ :: else fi;
        w_--
     :: else -> break
     od;
     i_++
  :: else -> break
  od;
  i_ = 0; a_ = 0; b_ = 0; c_ = 0
}
inline forget_agent(h) {
  H[h].ep = 0; H[h].hm = 0; H[h].asked = 0; H[h].revoking = 0; H[h].owes = 0;
  forget_home(h);
  if :: H[h].hx == AG -> H[h].hx = 0 :: else fi
#if FOREVER
  ; if :: hqa[h] -> leave_queue(h, AG); hqa[h] = 0 :: else fi
#endif
}
inline forget_home(h) {
  H[h].act = 0; H[h].db = 0; H[h].mm = 0; H[h].got = 0; H[h].cx = 0; H[h].cs = 0; H[h].mt = 0;
  H[h].md = 0; H[h].ml = 0; H[h].mrt = 0; H[h].mrd = 0; H[h].rvs = 0; H[h].rvx = 0;
  do :: nempty(q[h]) -> q[h]?_ :: empty(q[h]) -> break od
}
inline forget_record(h) { H[h].rl = 0; H[h].rt = 0; H[h].rd = 0; H[h].rx = 0; H[h].rs = 0 }

/* ---- the home ---- */

#ifdef F_REVOKEONCE
#define ONE_MARK true    /* one mark "revoked" an owner, whatever for */
#else
#define ONE_MARK false
#endif
inline serve(h) { /* grants the head of the queue, or revokes what is in its way */
  o_ = 1;
  do
  :: o_ && H[h].act && nempty(q[h]) ->
     q[h]?<e_>; x_ = e_/4; m_ = e_%4;
     if
     :: H[h].rx == x_+1 || (m_ == SH && (H[h].rs & BIT(x_))) -> q[h]?_  /* has enough */
     :: else ->
        y_ = H[h].rs; /* the owners in the way */
        if :: H[h].rx -> y_ = BIT(H[h].rx-1) :: m_ == SH && !H[h].rx -> y_ = 0 :: m_ == EX && !H[h].rx fi;
        y_ = y_ & ~BIT(x_);
        if
        :: y_ == 0 ->
           q[h]?_;
           H[h].rvs = H[h].rvs & ~BIT(x_); H[h].rvx = H[h].rvx & ~BIT(x_);
           if
           :: m_ == EX ->
              H[h].rx = x_+1; H[h].rs = 0;
              if :: !H[x_].up || H[x_].fenced || (newinc & BIT(x_)) || born[x_] > H[h].ep -> g_may = !FOREVER :: else fi /* granted to the dead */
           :: else -> H[h].rs = H[h].rs | BIT(x_)
           fi;
           SEND(h, x_, GRANT, H[h].rt, m_*2+H[h].rd)
        :: else ->
           o_ = 0; z_ = 0;
           do
           :: z_ < N ->
              if
              :: (y_ & BIT(z_)) && !(H[h].rvx & BIT(z_)) && !((m_ == SH || ONE_MARK) && (H[h].rvs & BIT(z_))) ->
                 if :: m_ == EX -> H[h].rvx = H[h].rvx | BIT(z_) :: else -> H[h].rvs = H[h].rvs | BIT(z_) fi;
                 SEND(h, z_, REVOKE, 0, m_)
              :: else
              fi;
              z_++
           :: else -> break
           od
        fi
     fi
  :: !o_ || !H[h].act || empty(q[h]) -> break
  od;
  o_ = 0; e_ = 0; x_ = 0; m_ = 0; y_ = 0; z_ = 0
}

inline merge(h, tok, dd) { /* what is known of the name: the greatest token; ties: or */
  if
  :: (tok) > H[h].mt -> H[h].mt = (tok); H[h].md = (dd)
  :: (tok) == H[h].mt -> H[h].md = H[h].md || (dd)
  :: else
  fi
}

#ifdef F_CLAIMSALL
#define ENOUGH(h) (H[h].got)                  /* the home begins at the first claims */
#else
#define ENOUGH(h) (H[h].got == H[h].mm)
#endif

inline activate(h) {
  if
  :: !H[h].act && ENOUGH(h) ->
#ifdef F_TIES
     if :: H[h].ml -> merge(h, H[h].mrt, H[h].mrd) :: else fi;
#else
     /* of the same token a host knows more than a home: it may have died, or been put right, since */
     if :: H[h].ml && H[h].mrt > H[h].mt -> H[h].mt = H[h].mrt; H[h].md = H[h].mrd :: else fi;
#endif
     if
     :: H[h].cx == 0 && H[h].cs == 0 && (H[h].db || H[h].mt == 0) ->
        /* the old home is gone and no living host owns it: nobody knows */
#ifndef F_NODOUBT
        H[h].md = H[h].db;
#endif
#ifdef F_TOKEN
        if :: H[h].mt == 0 -> H[h].mt = 16 :: else fi
#else
        H[h].mt = H[h].ep*16
#endif
     :: else
     fi;
     printf("home %d active in %d: t %d died %d owners X%d S%d\n", h, H[h].ep, H[h].mt, H[h].md, H[h].cx, H[h].cs);
     H[h].rl = H[h].ep; H[h].rt = H[h].mt; H[h].rd = H[h].md; H[h].rx = H[h].cx; H[h].rs = H[h].cs;
     H[h].act = 1; H[h].cx = 0; H[h].cs = 0; H[h].mt = 0; H[h].md = 0; H[h].ml = 0; H[h].mrt = 0;
     H[h].mrd = 0; H[h].got = 0; H[h].db = 0;
     serve(h)
  :: else
  fi
}

/* ---- one message ---- */

inline receive(g, h) {
  ch[CHN(g,h)]?a_,_,c_;
  b_ = a_/32; a_ = a_%32;
  printf("e%d %d>%d type %d arg %d t %d\n", H[h].ep, g, h, b_, a_, c_);
  if
  :: b_ == REQ ->
     if :: q[h]??[eval(g*4+a_)] :: !(q[h]??[eval(g*4+a_)]) -> q[h]!(g*4+a_) fi;
     serve(h)
  :: b_ == RECORD ->
     if
     :: a_/2 >= H[h].ml -> H[h].ml = a_/2; H[h].mrt = c_; H[h].mrd = a_%2
     :: else
     fi
  :: b_ == CLAIM ->
     H[h].got = H[h].got | BIT(g);
     if
     :: a_/2 == EX -> H[h].cx = g+1
     :: a_/2 == SH -> H[h].cs = H[h].cs | BIT(g)
     :: else
     fi;
     merge(h, c_, a_%2);
     activate(h)
  :: b_ == GIVE ->
     if
     :: H[h].act ->
        if
        :: H[h].rx == g+1 ->
           H[h].rx = 0;
#ifdef F_TIES
           H[h].rd = (H[h].rt == c_ -> H[h].rd || (a_%2) : a_%2);
#else
           H[h].rd = a_%2;   /* replaces what a claim said while a holder was inside */
#endif
           H[h].rt = c_
        :: else
        fi;
        H[h].rs = H[h].rs & ~BIT(g);
        if :: a_/2 == SH -> H[h].rs = H[h].rs | BIT(g) :: else fi;
#if ACK
        if :: a_/2 == NONE && H[g].ep == H[h].ep -> H[g].owes = 1 :: else fi;
#endif
        if :: a_/2 == NONE -> H[h].rvs = H[h].rvs & ~BIT(g); H[h].rvx = H[h].rvx & ~BIT(g) :: else fi;
        serve(h)
     :: else -> /* a revocation of the epoch before that ends in this one */
        if
        :: H[h].cx == g+1 -> H[h].cx = 0;
#ifdef F_TIES
           merge(h, c_, a_%2)
#else
           H[h].mt = c_; H[h].md = a_%2
#endif
        :: else
        fi;
        H[h].cs = H[h].cs & ~BIT(g);
        if :: a_/2 == SH -> H[h].cs = H[h].cs | BIT(g) :: else fi
     fi
  :: b_ == GRANT ->
     /* at most one valid exclusive owner, and beside it no other valid owner */
     if
     :: H[h].up && !H[h].fenced ->
        k_ = 0;
        do
        :: k_ < N ->
           assert(k_ == h || !H[k_].up || H[k_].fenced || H[k_].word == NONE ||
                  (H[k_].word == SH && a_/2 == SH));
           k_++
        :: else -> k_ = 0; break
        od
     :: else
     fi;
     if :: a_/2 > H[h].word -> H[h].word = a_/2; H[h].mark = 0; H[h].t = c_; H[h].died = a_%2; H[h].inside = 0; H[h].owes = 0 :: else fi;
     if :: a_/2 >= H[h].asked -> H[h].asked = 0 :: else fi
  :: b_ == REVOKE ->
     if
     :: H[h].word > NONE && !(H[h].word == SH && a_ == SH) && a_ > H[h].revoking -> H[h].revoking = a_
#if GIVES
        if :: H[h].word == EX -> H[h].mark = a_ :: else fi
#endif
     :: else
     fi
  fi;
  a_ = 0; b_ = 0; c_ = 0
}

/* ---- an agent ---- */

#define CAN_ETCD(h) (H[h].up && !H[h].cut && !H[h].fenced && (lease & BIT(h)))
#ifdef F_NORESTARTEPOCH
#define IN_EPOCH(h) ((mem & BIT(h)) && !(newinc & BIT(h)))
#else
#define IN_EPOCH(h) ((mem & BIT(h)) && !(newk & BIT(h)))
#endif
#define CAN_MOVE(h) (CAN_ETCD(h) && H[h].ep < epoch && IN_EPOCH(h))

inline move(h) {
  printf("%d moves to e%d, home %d, word %d t %d\n", h, epoch, home, H[h].word, H[h].t);
  forget_home(h);
  H[h].asked = 0; H[h].owes = 0;
#ifndef F_KEEPREVOKE
  H[h].revoking = 0;      /* a give_back answers a revoke of its own epoch */
#endif
#ifndef F_KEEPMARK
  H[h].mark = 0;          /* the home of this epoch has not asked for the name */
#endif
  drop_skipped(h);
  H[h].ep = epoch; H[h].hm = home;
  if :: h == home -> H[h].mm = mem; H[h].db = doubt :: else fi;
#ifndef F_OLDEPOCH
  drop_older(h);
#endif
  /* what an old home knows; an exclusive owner that is gone left an orphan */
  f_ = H[h].rl && H[h].rx && (!(mem & BIT(H[h].rx-1)) || (newinc & BIT(H[h].rx-1)) ||
#ifdef F_NOBORN
       false
#else
       born[H[h].rx-1] > H[h].rl
#endif
       );
  if
  :: f_ ->
#ifdef F_TOKEN
     SEND(h, home, RECORD, H[h].rt, H[h].rl*2+1)
#else
     SEND(h, home, RECORD, epoch*16, H[h].rl*2+1)
#endif
#ifdef F_NORECORD
  :: else   /* as a first draft had it: orphans alone */
#else
  :: !f_ && H[h].rl -> SEND(h, home, RECORD, H[h].rt, H[h].rl*2+H[h].rd)
  :: else
#endif
  fi;
  f_ = 0;
#ifdef F_FORGET
  if :: home != h -> forget_record(h) :: else fi;   /* what was passed on is forgotten */
#endif
#ifdef F_NORETURN
  if   /* as a first draft had it: only what is owned */
  :: H[h].word == NONE -> SEND(h, home, CLAIM, 0, 0)
  :: else -> SEND(h, home, CLAIM, H[h].t, H[h].word*2+H[h].died)
  fi
#else
  SEND(h, home, CLAIM, H[h].t, H[h].word*2+H[h].died)
#endif
}

inline give_back(h, kept) {
  if :: H[h].inside || H[h].rob -> H[h].died = 1; H[h].inside = 0; H[h].rob = 0 :: else fi;
  j_ = kept; H[h].mark = 0;
  printf("%d gives back, keeps %d, t %d died %d\n", h, j_, H[h].t, H[h].died);
  H[h].word = j_; H[h].revoking = 0;
#if FOREVER
  if :: hqa[h] -> leave_queue(h, AG); hqa[h] = 0 :: else fi;
#endif
  SEND(h, H[h].hm, GIVE, H[h].t, j_*2+H[h].died);
  j_ = 0
}

#ifdef F_OLDEPOCH
#define HEAD(g,h) (nempty(ch[CHN(g,h)]))
#else
#define HEAD(g,h) (ch[CHN(g,h)]?[_,eval(H[h].ep),_])
#endif
#define TO_HEAR(g,h) (H[h].up && H[h].ep > 0 && ((g) == (h) || (!H[h].silent && !H[g].silent)) && HEAD(g,h))

#if FOREVER
#define OUT(h) hqa[h] = 0;
#else
#define OUT(h)
#endif
/* a client has given back what was revoked, and the home does not know yet */
#if GIVES
#define GIVEN(h) (H[h].revoking && (H[h].word == NONE || (H[h].word == SH && H[h].revoking == SH)))
#else
#define GIVEN(h) false
#endif
#if FOREVER
proctype agent(byte me; byte part) {
#else
proctype agent(byte me) {
#endif
end:
  do
  :: d_step { PART(0) && TO_HEAR(0,me) -> receive(0,me) }
  :: d_step { PART(1) && TO_HEAR(1,me) -> receive(1,me) }
#if N > 2
  :: d_step { PART(2) && TO_HEAR(2,me) -> receive(2,me) }
#endif
#if N > 3
  :: d_step { PART(3) && TO_HEAR(3,me) -> receive(3,me) }
#endif
#ifdef F_DROPLATER
  /* as a first draft had it: a message of another epoch is dropped, also one of a later epoch */
  :: d_step { H[me].up && H[me].ep > 0 && nempty(ch[CHN(0,me)]) && !(HEAD(0,me)) -> ch[CHN(0,me)]?_,_,_ }
  :: d_step { H[me].up && H[me].ep > 0 && nempty(ch[CHN(1,me)]) && !(HEAD(1,me)) -> ch[CHN(1,me)]?_,_,_ }
#if N > 2
  :: d_step { H[me].up && H[me].ep > 0 && nempty(ch[CHN(2,me)]) && !(HEAD(2,me)) -> ch[CHN(2,me)]?_,_,_ }
#endif
#endif
  :: d_step { PART(4) && CAN_MOVE(me) -> move(me) }
#if ACK
  /* the home has what we gave back: no need to claim it */
  :: d_step { H[me].up && H[me].owes && (H[me].hm == me || !H[me].silent) ->
       H[me].owes = 0;
       if :: H[me].word == NONE -> H[me].t = 0; H[me].died = 0 :: else fi }
#endif
  /* every home is active: the past may be forgotten */
  :: d_step { PART(5) && CAN_ETCD(me) && H[me].act && H[me].ep == epoch && !settled -> settled = 1; past = 0; doubt = 0; printf("settled\n") }
#if GC
  :: d_step { CAN_ETCD(me) && H[me].ep == epoch && settled && H[me].rl && H[me].rl < epoch -> forget_record(me) }
#endif
  /* asks for what a representative waits for */
  :: d_step {
       PART(6) && H[me].up && H[me].ep && H[me].want > H[me].word && H[me].asked < H[me].want ->
       H[me].asked = H[me].want; printf("%d asks\n", me); SEND(me, H[me].hm, REQ, 0, H[me].want)
     }
  /* revocation: takes the host lock like a client */
#if FOREVER
  :: d_step { PART(7) && H[me].up && H[me].ep && H[me].revoking && !hqa[me] && H[me].hx != AG -> hqa[me] = 1; hq[me]!AG }
#endif
  :: d_step { PART(7) && H[me].up && H[me].ep && H[me].revoking && H[me].hx == 0 && H[me].hs == 0 && FIRST(me,255) -> POP(me) OUT(me) H[me].hx = AG }
  :: d_step {
       PART(7) && H[me].up && H[me].ep && H[me].hx == AG ->
       H[me].hx = 0;
       if
       :: H[me].revoking && H[me].word == EX && H[me].revoking == SH -> give_back(me, SH)
       :: H[me].revoking && H[me].word > NONE && !(H[me].word == EX && H[me].revoking == SH) && !GIVEN(me) -> give_back(me, NONE)
       :: GIVEN(me)
       :: else -> H[me].revoking = 0
       fi
     }
#if GIVES
  /* tells the home what a client has given back: rung, or later with the host lock */
  :: d_step { PART(7) && H[me].up && H[me].ep && GIVEN(me) && H[me].hx != AG -> give_back(me, H[me].word) }
#endif
#ifndef F_REPHOLDS
  /* ... or finds that the holder of the host lock is not inside: it waits for more */
  :: d_step {
       PART(8) && H[me].up && H[me].ep && H[me].revoking && H[me].word == SH && H[me].want == EX ->
       give_back(me, NONE)
     }
#endif
  od
}

/* ---- a client ---- */

#define TROUBLE(h) ((mem & BIT(h)) && (!H[h].up || H[h].cut || H[h].fenced || H[h].silent))
#if N > 3
#define IN_TROUBLE (TROUBLE(0) || TROUBLE(1) || TROUBLE(2) || TROUBLE(3))
#elif N > 2
#define IN_TROUBLE (TROUBLE(0) || TROUBLE(1) || TROUBLE(2))
#else
#define IN_TROUBLE (TROUBLE(0) || TROUBLE(1))
#endif

inline unlock(c, h) {
  if :: cm[c] == EX -> H[h].hx = 0 :: else -> H[h].hs-- fi
}
inline wait_for(c, h) {
  printf("client %d on %d waits for %d\n", c, h, cm[c]);
  st[c] = WAIT;
  if :: cm[c] > H[h].want -> H[h].want = cm[c] :: else fi
}
inline enter(c, h) {
  st[c] = INSIDE;
  printf("client %d on %d enters mode %d, t was %d died %d inside %d valid %d (must %d may %d)\n", c, h, cm[c], H[h].t, H[h].died, H[h].inside, VALID(c), g_must, g_may);
  f_ = H[h].died || H[h].inside || H[h].rob;
  if
  :: cm[c] == EX && ci[c] == H[h].inc ->
#if FOREVER
     H[h].died = 0
#else
     H[h].t++; H[h].inside = 1; H[h].died = f_; H[h].rob = 0
#endif
  :: else
  fi;
  if
  :: VALID(c) ->
     k_ = 0;
     do
     :: k_ < CL ->
        assert(k_ == c || st[k_] != INSIDE || !VALID(k_) || (cm[c] == SH && cm[k_] == SH));
        k_++
     :: else -> break
     od;
     assert(FOREVER || !g_must || f_);           /* a death inside is told */
     if
     :: cm[c] == EX && !FOREVER ->
#ifndef NOALARM
        assert(!f_ || g_must || g_may);          /* no false alarm */
#endif
        assert(H[h].t > g_last);                 /* tokens grow */
        k_ = 0;
        do :: k_ < N -> H[k_].since = H[k_].fenced; k_++ :: else -> break od
     :: else
     fi
  :: else ->
     assert(FOREVER || cm[c] == SH || ci[c] != H[h].inc || !H[h].since || H[h].t < g_last)  /* a stale token is smaller */
  fi;
  k_ = 0; f_ = 0;
  if :: !FOREVER && cm[c] == EX && H[h].t > g_last -> g_last = H[h].t :: else fi
}
#define ALL_KNOWN (mem == lease && newk == 0 && settled)
inline leave(c, h) {
  printf("client %d on %d leaves valid %d\n", c, h, VALID(c));
  if
  :: cm[c] == EX && ci[c] == H[h].inc ->
     /* also past the deadline, if nobody else has entered: the section was completed */
     if :: !H[h].fenced || !H[h].since -> g_must = 0; if :: ALL_KNOWN && !IN_TROUBLE && !H[h].fenced -> g_may = 0 :: else fi :: else fi;
     H[h].died = 0; H[h].inside = 0
  :: else
  fi;
#if GIVES
  st[c] = LEFT
#else
  release(c, h)
#endif
}
inline release(c, h) {
  unlock(c, h);
#if !FOREVER
  rounds[c]--;
#endif
  st[c] = (rounds[c] -> IDLE : DONE); cm[c] = 0; ci[c] = 0
}
#ifdef F_READERGIVES
#define MAY_GIVE(c,h) (H[h].mark)
#else
#define MAY_GIVE(c,h) (H[h].mark && cm[c] == EX)
#endif
#ifdef F_STALEWANT
#define NOBODY_WAITS(h)
#else
#define NOBODY_WAITS(h) H[h].want = 0;
#endif
#ifdef F_NOTAG
#define SAME(c,h) true                           /* the word that was read may be another incarnation's */
#else
#define SAME(c,h) (ci[c] == H[h].inc)
#endif

proctype client(byte me; byte h; byte modes) {
end:
  do
#if FOREVER
  :: d_step { H[h].up && st[me] == IDLE && (modes & 1) -> st[me] = QUEUED; cm[me] = SH; hq[h]!me+1 }
  :: d_step { H[h].up && st[me] == IDLE && (modes & 2) -> st[me] = QUEUED; cm[me] = EX; hq[h]!me+1 }
  :: d_step { H[h].up && st[me] == IDLE -> st[me] = DONE }
  :: d_step { st[me] == QUEUED && FIRST(h,eval(me+1)) && H[h].hx == 0 && (cm[me] == SH || H[h].hs == 0) ->
       POP(h) st[me] = LOCKED; if :: cm[me] == SH -> H[h].hs++ :: else -> H[h].hx = me+1 fi }
#else
  :: d_step { H[h].up && st[me] == IDLE && (modes & 1) && H[h].hx == 0 -> H[h].hs++; cm[me] = SH; st[me] = LOCKED }
  :: d_step { H[h].up && st[me] == IDLE && (modes & 2) && H[h].hx == 0 && H[h].hs == 0 -> H[h].hx = me+1; cm[me] = EX; st[me] = LOCKED }
#endif
  :: d_step { st[me] == LOCKED ->
       if
       :: H[h].word >= cm[me] -> NOBODY_WAITS(h) ci[me] = H[h].inc; st[me] = READ
       :: else -> wait_for(me, h)
       fi }
  :: d_step { st[me] == WAIT && H[h].word >= cm[me] && !H[h].fenced -> NOBODY_WAITS(h) ci[me] = H[h].inc; st[me] = READ }
#ifndef F_WANTONCE
  /* the word has changed and does not suffice: asks again; a neighbour may have taken the want away */
  :: d_step { st[me] == WAIT && H[h].word < cm[me] && H[h].want < cm[me] -> H[h].want = cm[me] }
#endif
  :: d_step { st[me] == READ ->
       if
       :: !H[h].fenced && SAME(me, h) ->
#ifdef F_NOTAG
          ci[me] = H[h].inc;
#endif
          st[me] = PASSED;
#if !ENTRY
          enter(me, h)
#endif
       :: else -> ci[me] = 0; wait_for(me, h)
       fi }
  :: d_step { st[me] == PASSED -> enter(me, h) }
  :: d_step { st[me] == INSIDE -> leave(me, h) }
#if GIVES
#ifdef F_GIVESINSIDE
  :: d_step { st[me] == INSIDE && MAY_GIVE(me, h) ->
       H[h].word = (H[h].mark == SH -> SH : NONE); H[h].mark = 0 }
#endif
  :: d_step { st[me] == LEFT && MAY_GIVE(me, h) ->
       printf("client %d on %d gives back\n", me, h);
       H[h].word = (H[h].mark == SH -> SH : NONE); H[h].mark = 0; st[me] = RELEASES }
  :: d_step { st[me] == LEFT || st[me] == RELEASES -> release(me, h) }
#endif
#if GIVEUPS
  :: d_step { giveups && st[me] == WAIT -> /* takes its want off, then releases the host lock */
       giveups--; H[h].want = 0; unlock(me, h); rounds[me]--;
       st[me] = (rounds[me] -> IDLE : DONE); cm[me] = 0; ci[me] = 0 }
#endif
#if CDEATHS
  :: d_step { cdeaths && ((st[me] >= LOCKED && st[me] <= INSIDE) || st[me] == LEFT || st[me] == RELEASES) ->
       cdeaths--; printf("client %d dies in state %d\n", me, st[me]);
       if :: st[me] == INSIDE && cm[me] == EX && VALID(me) -> g_must = !FOREVER :: else fi;
#ifdef F_WAITDIED
       if :: st[me] < INSIDE && cm[me] == EX -> H[h].rob = 1 :: else fi;
#endif
#if FOREVER
       if :: st[me] == QUEUED -> leave_queue(h, me+1) :: else -> unlock(me, h) fi; st[me] = DEAD;
#else
       unlock(me, h); st[me] = DEAD; cm[me] = 0; ci[me] = 0
#endif
       }
#endif
  od
}

/* ---- what happens ---- */

inline is_gone(h) { /* what may be lost with host h, for those that are allowed a false alarm */
  if :: H[h].word == EX || h == home || (past & BIT(h)) -> g_may = !FOREVER :: else fi;
  k_ = 0;
  do
  :: k_ < N ->
     if :: k_ != h && H[k_].up && (H[k_].rx == h+1 || (H[k_].ep && H[k_].hm == h)) -> g_may = !FOREVER :: else fi;
     k_++
  :: else -> break
  od;
  k_ = 0;
  do
  :: k_ < CL ->
     if :: HOSTOF(k_) == h && st[k_] == INSIDE && cm[k_] == EX && VALID(k_) -> g_must = !FOREVER :: else fi;
     k_++
  :: else -> break
  od;
  k_ = 0
}
inline die(h, lose) {
  printf("host %d dies, lose %d\n", h, lose);
  deaths--;
  if :: !H[h].fenced -> is_gone(h) :: else fi;
  k_ = 0;
  do
  :: k_ < CL ->
     if
     :: HOSTOF(k_) == h && st[k_] != DONE && st[k_] != DEAD -> st[k_] = GONE; cm[k_] = 0; ci[k_] = 0
     :: else
     fi;
     k_++
  :: else -> k_ = 0; break
  od;
#if FOREVER
  do :: nempty(hq[h]) -> hq[h]?_ :: empty(hq[h]) -> break od;
#endif
  forget_agent(h); forget_record(h); forget_file(h); H[h].want = 0; H[h].hx = 0; H[h].hs = 0;
  H[h].up = 0; H[h].cut = 0; H[h].fenced = 0; H[h].silent = 0; H[h].since = 0;
  purge_in(h);
  if :: lose -> purge_out(h) :: else fi;
  i_ = 0
}
inline forget_file(h) { H[h].word = NONE; H[h].mark = 0; H[h].t = 0; H[h].died = 0; H[h].inside = 0; H[h].rob = 0 }
inline join(h) {
  printf("host %d joins\n", h);
  joins--;
  forget_agent(h); forget_record(h); forget_file(h);
  purge_in(h); purge_out(h);
  H[h].up = 1; H[h].cut = 0; H[h].fenced = 0; H[h].silent = 0; H[h].since = 0; H[h].inc++;
  lease = lease | BIT(h); newk = newk | BIT(h); newinc = newinc | BIT(h);
  k_ = 0;
  do
  :: k_ < CL ->
     if :: HOSTOF(k_) == h && st[k_] == GONE -> st[k_] = IDLE :: else fi;
     k_++
  :: else -> break
  od;
  k_ = 0
}
inline restart(h, lose) {
  printf("agent %d restarts, lose %d\n", h, lose);
  restarts--;
#ifdef F_AGENTDIED
  if :: H[h].hx == AG -> H[h].rob = 1 :: else fi;
#endif
  forget_agent(h);
#ifdef F_RESTARTFORGETS
  forget_record(h);
#endif
#ifndef F_NORESTARTEPOCH
  newk = newk | BIT(h);
#endif
  purge_in(h);
  if :: lose -> purge_out(h) :: else fi;
  i_ = 0
}

#ifdef F_STALEPROPOSE
/* the members are read before the epoch, and the transaction compares the epoch alone */
byte snap = INIT_MEM; bool stale;
#define SNAP :: d_step { snap != lease && !stale -> snap = lease }
#define STALE(h) :: d_step { epoch < MAXE && !stale && snap != mem && SOMEBODY_SEES && (snap & BIT(h)) -> stale = 1; propose(h, snap) }
#else
#define SNAP
#define STALE(h)
#endif
#define SOMEBODY_SEES (CAN_ETCD(0) || CAN_ETCD(1) || (N > 2 && CAN_ETCD(N-1)) || (N > 3 && CAN_ETCD(2)))
#define CAN_PROPOSE (epoch < MAXE && (lease != mem || newk) && SOMEBODY_SEES)

inline propose(to, keys) { /* one transaction: compares the epoch and the members' keys */
  a_ = (settled -> 0 : past) | BIT(home);
#ifdef F_NOPAST
  a_ = BIT(home); doubt = 0;
#endif
  doubt = (settled -> 0 : doubt) || ((a_ & ~(keys)) || (a_ & newinc));
  past = a_ & (keys) & ~newinc;
  a_ = 0; k_ = 0;
  do
  :: k_ < N -> if :: newinc & BIT(k_) -> born[k_] = epoch+1 :: else fi; k_++
  :: else -> k_ = 0; break
  od;
  printf("epoch %d members %d home %d doubt %d\n", epoch+1, keys, to, doubt);
  epoch++; mem = keys; newk = 0; newinc = 0; settled = 0; home = to;
  if :: !H[to].up || H[to].fenced -> g_may = !FOREVER :: else fi   /* one that is gone already */
}
#if HOMES
#define HOMEOK(h) (!(lease & (BIT(h)-1)))
#else
#define HOMEOK(h) true
#endif

#ifdef F_EARLY
#define MAY_EXPIRE(h) (!H[h].up || H[h].cut)
#else
#define MAY_EXPIRE(h) (!H[h].up || H[h].fenced)
#endif
#if HEAL
#define REVIVE(h) :: d_step { H[h].up && H[h].fenced && !H[h].silent && (lease & BIT(h)) -> H[h].fenced = 0; H[h].cut = 0; H[h].since = 0 }
#else
#define REVIVE(h)
#endif

#if LINKS
#ifdef F_NOEVICT
#define EVICT(h)
#else
#define EVICT(h) :: d_step { H[h].up && H[h].silent && !H[h].cut -> H[h].cut = 1; printf("host %d evicted\n", h) }
#endif
#define LINK(h) \
  :: d_step { cuts && H[h].up && !H[h].cut && !H[h].silent && !H[h].fenced && (lease & BIT(h)) -> cuts--; H[h].silent = 1; printf("host %d loses its peers\n", h) } \
  EVICT(h)
#else
#define LINK(h)
#endif
#define OF_HOST(h) \
  :: d_step { deaths && H[h].up -> die(h, 0) } \
  :: d_step { deaths && H[h].up -> die(h, 1) } \
  :: d_step { cuts && H[h].up && !H[h].cut && !H[h].silent && !H[h].fenced && (lease & BIT(h)) -> cuts--; H[h].cut = 1; printf("host %d cut\n", h) } \
  :: d_step { cuts && H[h].up && !H[h].cut && !H[h].silent && !H[h].fenced && (lease & BIT(h)) -> cuts--; H[h].cut = 1; H[h].silent = 1; printf("host %d cut, silent\n", h) } \
  :: d_step { H[h].up && H[h].cut && !H[h].fenced -> printf("host %d fenced\n", h); is_gone(h); H[h].fenced = 1; H[h].since = 0 } \
  :: d_step { (lease & BIT(h)) && MAY_EXPIRE(h) -> lease = lease & ~BIT(h); printf("lease of %d expires\n", h) } \
  :: d_step { restarts && H[h].up && !H[h].cut && !H[h].fenced && H[h].ep -> restart(h, 0) } \
  :: d_step { restarts && H[h].up && !H[h].cut && !H[h].fenced && H[h].ep -> restart(h, 1) } \
  :: d_step { joins && !(lease & BIT(h)) && (!H[h].up || H[h].fenced) -> join(h) } \
  :: d_step { CAN_PROPOSE && (lease & BIT(h)) && HOMEOK(h) -> propose(h, lease) } \
  STALE(h) \
  LINK(h) \
  REVIVE(h)

proctype world() {
end:
  do
  OF_HOST(0)
  OF_HOST(1)
#if N > 2
  OF_HOST(2)
#endif
#if N > 3
  OF_HOST(3)
#endif
  SNAP
  /* no more faults: a fault to come would hide an endless wait */
#if GIVEUPS
  :: d_step { giveups -> giveups = 0 }
#endif
  :: d_step { deaths+cuts+restarts+joins+cdeaths -> deaths = 0; cuts = 0; restarts = 0; joins = 0; cdeaths = 0 }
  od
}

#define CONTENT(c) (st[c] == DONE || st[c] == DEAD || st[c] == GONE || H[HOSTOF(c)].fenced || H[HOSTOF(c)].silent)
proctype observer() {
end:
  timeout;
  assert(CONTENT(0));
#if CL > 1
  assert(CONTENT(1));
#endif
#if CL > 2
  assert(CONTENT(2));
#endif
#if CL > 3
  assert(CONTENT(3));
#endif
}

init {
  d_step {
    i_ = 0;
    do
    :: i_ < N ->
       if
       :: INIT_MEM & BIT(i_) ->
          H[i_].up = 1; H[i_].ep = 1; born[i_] = 1
       :: else
       fi;
       i_++
    :: else -> break
    od;
    home = 0;
    H[0].act = 1; H[0].mm = INIT_MEM; H[0].rl = 1; H[0].rt = 16;
    i_ = 0;
    do
    :: i_ < CL ->
       rounds[i_] = ROUNDS;
       if :: INIT_MEM & BIT(HOSTOF(i_)) :: else -> st[i_] = GONE fi;
       i_++
    :: else -> break
    od;
    i_ = 0
  }
  atomic {
    run world();
#if !FOREVER
    run observer();
#endif
#if FOREVER
    j_ = 0;
    do
    :: j_ < N ->
       d_ = 0;
       do :: d_ < 9 -> if :: d_ < N || d_ > 3 -> run agent(j_, d_) :: else fi; d_++ :: else -> break od;
       j_++
    :: else -> j_ = 0; d_ = 0; break
    od;
#else
    run agent(0); run agent(1);
#if N > 2
    run agent(2);
#endif
#if N > 3
    run agent(3);
#endif
#endif
    run client(0, P0, M0);
#if CL > 1
    run client(1, P1, M1);
#endif
#if CL > 2
    run client(2, P2, M2);
#endif
#if CL > 3
    run client(3, P3, M3);
#endif
  }
}

#if FOREVER
#if WATCHED == 0
#define WHOST P0
#elif WATCHED == 1
#define WHOST P1
#elif WATCHED == 2
#define WHOST P2
#else
#define WHOST P3
#endif
#define watched_waits (st[WATCHED] == QUEUED || st[WATCHED] == LOCKED || st[WATCHED] == WAIT || st[WATCHED] == READ)
#define watched_is_well (H[WHOST].up && !H[WHOST].cut && st[WATCHED] != DEAD)
ltl no_starvation { [] ((watched_waits && watched_is_well) -> <> (st[WATCHED] == INSIDE || !watched_is_well)) }
#endif
