!> lockflight for Fortran 2008 and later: the C interface (include/lockflight/lockflight.h, which
!> says more of each call) in Fortran's terms.
!>
!> A subroutine that can fail has an optional `stat`, lockflight_ok or another code, as ALLOCATE has
!> one; without it a failure says what was wrong on standard error and is an ERROR STOP. Handles are
!> small and may be copied. Ranks and offsets count from 0, as everywhere in MPI.
!>
!> All participants create the same locks and words in the same order.
module lockflight
  use, intrinsic :: iso_c_binding, only: c_char, c_f_pointer, c_f_procpointer, c_funloc, c_funptr, &
    c_int, c_int32_t, c_int64_t, c_loc, c_null_char, c_null_ptr, c_ptr, c_size_t
  use, intrinsic :: iso_fortran_env, only: error_unit, int64, output_unit, real64
  implicit none
  private

  ! ---- codes, as enum lockflight_code ----

  integer, parameter, public :: &
    lockflight_ok = 0, lockflight_busy = 1, lockflight_invalid = 2, lockflight_unknown = 3, &
    lockflight_wrong_kind = 4, lockflight_not_held = 5, lockflight_held = 6, &
    lockflight_full = 7, lockflight_rank_failed = 8, lockflight_aborted = 9, &
    lockflight_unavailable = 10, lockflight_internal = 11, lockflight_owner_died = 12, &
    lockflight_removed = 13, lockflight_interrupted = 14, lockflight_lost = 15

  !> How a lock is held, as enum lockflight_mode.
  integer, parameter, public :: lockflight_shared = 1, lockflight_exclusive = 2
  integer, parameter :: as_held = 0  ! for the release of a named lock
  !> Time limits of an acquire beside nanoseconds. An attempt is not a limit of 0, which some locks
  !> do not offer.
  integer, parameter :: most_held = 31  ! units of one handle
  integer(int64), parameter :: at_once = -2, for_ever = -1  ! UINT64_MAX of C

  public :: lockflight_error_text, lockflight_last_error, lockflight_version

  ! ---- handles ----

  !> One thread of control that locks.
  type, public :: lockflight_participant
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> What all locks have: the two calls that every acquire and every release goes through.
  type, abstract :: any_lock
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    private
    procedure(acquire_call), nopass, deferred :: acquire
    procedure(release_call), nopass, deferred :: release
  end type
  type, abstract, extends(any_lock) :: shareable_lock
  end type

  !> A lock with one holder at a time.
  type, extends(any_lock), public :: lockflight_mutex
  contains
    private
    procedure, nopass :: acquire => acquire_mutex
    procedure, nopass :: release => release_mutex
  end type

  !> A lock with one writer or any number of readers at a time.
  type, extends(shareable_lock), public :: lockflight_shared_mutex
  contains
    private
    procedure, nopass :: acquire => acquire_mutex
    procedure, nopass :: release => release_mutex
  end type

  !> Named locks for processes that come, go and die: any thread of any process opens a domain.
  type, public :: lockflight_domain
    private
    type(c_ptr) :: handle = c_null_ptr
  end type

  !> A lock of a domain, several that are held together, or a semaphore, for one thread. An acquire
  !> after a holder's death returns lockflight_owner_died in `stat`, and the lock is held; without
  !> `stat` that is an ERROR STOP.
  type, extends(shareable_lock), public :: lockflight_named
  contains
    private
    procedure, nopass :: acquire => acquire_named
    procedure, nopass :: release => release_named
  end type

  !> The same number of integers of kind int64 in the memory of every rank.
  type, public :: lockflight_words
    private
    type(c_ptr) :: handle = c_null_ptr
    type(c_ptr) :: owner = c_null_ptr
  end type

  !> The configuration of a run; components that are not set have their defaults.
  type, public :: lockflight_config
    integer :: ranks = 0                           !< 0: product of `levels`, else one a processor
    character(len=:), allocatable :: levels        !< such as "2x4"
    integer :: node_level = 0                      !< the level whose elements are nodes
    logical :: threads = .false.                   !< ranks are threads, not processes
    logical :: unpinned = .false.                  !< ranks are not bound to processors
    character(len=:), allocatable :: waiting       !< "auto", "spin", "yield" or "park"
    integer(int64) :: words_per_rank = 0           !< memory of each rank; 0: 131072 words
  end type

  abstract interface
    !> The procedure that a rank of lockflight_run runs.
    subroutine lockflight_body(me)
      import :: lockflight_participant
      type(lockflight_participant), intent(in) :: me
    end subroutine
  end interface
  public :: lockflight_body

  public :: lockflight_run, lockflight_join_mpi, lockflight_leave
  public :: lockflight_rank, lockflight_ranks, lockflight_barrier, lockflight_flush
  public :: lockflight_create, lockflight_destroy
  public :: lockflight_lock, lockflight_try_lock, lockflight_unlock
  public :: lockflight_lock_shared, lockflight_try_lock_shared, lockflight_unlock_shared
  public :: lockflight_try_lock_for, lockflight_try_lock_until
  public :: lockflight_try_lock_shared_for, lockflight_try_lock_shared_until
  public :: lockflight_lock_upgrade, lockflight_try_lock_upgrade, lockflight_unlock_upgrade
  public :: lockflight_unlock_upgrade_and_lock, lockflight_try_unlock_shared_and_lock
  public :: lockflight_unlock_and_lock_shared, lockflight_unlock_and_lock_upgrade
  public :: lockflight_unlock_upgrade_and_lock_shared
  public :: lockflight_domain_open, lockflight_domain_close, lockflight_domain_remove
  public :: lockflight_token, lockflight_owner_has_died, lockflight_mark_consistent
  public :: lockflight_still_valid, lockflight_acquire, lockflight_release, lockflight_unit
  public :: lockflight_units
  public :: lockflight_put, lockflight_get

  !> lockflight_create(me, mutex [, name, parameters, home, stat]): a mutex or a shared mutex, such
  !> as name = "rma-rw", parameters = "T_R=100".
  !> lockflight_create(me, words, count [, stat]): words in the memory of every rank.
  !> lockflight_create(domain, lock, name [, kind, parameters, stat]): a lock that has a name, such
  !> as kind = "flight-rw".
  !> lockflight_create(domain, lock, names [, stat]): several locks, which are acquired together,
  !> all or none; threads with overlapping sets do not deadlock.
  !> lockflight_create(domain, lock, name, units [, stat] [, take]): a semaphore, of which a holder
  !> has one unit; lockflight_unit says which. With `take` it has several, all of them or none;
  !> lockflight_units says which.
  interface lockflight_create
    module procedure create_mutex, create_shared_mutex, create_words
    module procedure create_named, create_several, create_semaphore
  end interface

  !> lockflight_destroy(mutex [, stat]): ends this participant's handle.
  interface lockflight_destroy
    module procedure destroy_mutex, destroy_shared_mutex, destroy_named
  end interface

  !> lockflight_put(words, rank, offset, values [, stat]): posts the writing of one value or
  !> several; done after lockflight_flush.
  interface lockflight_put
    module procedure put_one, put_many
  end interface

  !> lockflight_get(words, rank, offset, values [, stat]): reads one value or several, and completes
  !> all that this participant has posted. (The values are there at the return: an argument that
  !> Fortran passes may be a copy, which does not exist later.)
  interface lockflight_get
    module procedure get_one, get_many
  end interface

  ! The two that need the library of an MPI are compiled apart (lockflight_mpi.f90): a program that
  ! calls neither links without one.
  interface
    !> Makes a participant of each rank of a communicator: an integer as of `use mpi`, or
    !> comm%MPI_VAL as of `use mpi_f08`. Collective.
    module subroutine lockflight_join_mpi(comm, me, config, stat)
      integer, intent(in) :: comm
      type(lockflight_participant), intent(out) :: me
      type(lockflight_config), intent(in), optional :: config
      integer, intent(out), optional :: stat
    end subroutine

    !> Ends a participant that joined, before MPI_Finalize. Collective.
    module subroutine lockflight_leave(me, stat)
      type(lockflight_participant), intent(inout) :: me
      integer, intent(out), optional :: stat
    end subroutine
  end interface

  ! For lockflight_mpi.f90 alone: compilers show no private procedures to a submodule in another
  ! file.
  public :: lockflight_detail_conclude, lockflight_detail_prepare

  ! ---- the C interface ----

  type, bind(C) :: c_config
    integer(c_int) :: ranks = 0
    type(c_ptr) :: levels = c_null_ptr
    integer(c_int) :: node_level = 0
    integer(c_int) :: threads = 0
    integer(c_int) :: unpinned = 0
    type(c_ptr) :: waiting = c_null_ptr
    integer(c_int32_t) :: words_per_rank = 0
  end type

  type, bind(C) :: c_domain_options
    integer(c_int) :: slots = 0
    integer(c_int32_t) :: names = 0
    integer(c_int) :: mode = 0
    type(c_ptr) :: group = c_null_ptr
  end type

  type, bind(C) :: c_named_options
    type(c_ptr) :: kind = c_null_ptr
    type(c_ptr) :: parameters = c_null_ptr
  end type

  type, bind(C) :: c_lock_options
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: parameters = c_null_ptr
    integer(c_int) :: home = 0
  end type

  !> A configuration for C, and the texts that it points to. Not copied once it is filled.
  type :: prepared_config
    type(c_config) :: c
    character(len=:), allocatable :: levels, waiting
  end type

  !> The procedure that a rank calls, on its way through C.
  type :: rank_call
    procedure(lockflight_body), pointer, nopass :: body => null()
  end type

  abstract interface
    function acquire_call(handle, mode, nanoseconds) result(code)
      import :: c_int, c_ptr, int64
      type(c_ptr), intent(in) :: handle
      integer, intent(in) :: mode
      integer(int64), intent(in) :: nanoseconds
      integer(c_int) :: code
    end function
    function release_call(handle, mode) result(code)
      import :: c_int, c_ptr
      type(c_ptr), intent(in) :: handle
      integer, intent(in) :: mode
      integer(c_int) :: code
    end function

    function c_call(handle) bind(C) result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: handle
      integer(c_int) :: code
    end function
    function c_timed_call(handle, nanoseconds) bind(C) result(code)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: handle
      integer(c_int64_t), value :: nanoseconds
      integer(c_int) :: code
    end function
    function c_create_lock(me, options, mutex) bind(C) result(code)
      import :: c_int, c_lock_options, c_ptr
      type(c_ptr), value :: me
      type(c_lock_options), intent(in) :: options
      type(c_ptr), intent(inout) :: mutex
      integer(c_int) :: code
    end function
  end interface

  interface
    function c_error_text(code) bind(C, name="lockflight_error_text") result(text)
      import :: c_int, c_ptr
      integer(c_int), value :: code
      type(c_ptr) :: text
    end function
    function c_last_error() bind(C, name="lockflight_last_error") result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function
    function c_version() bind(C, name="lockflight_version") result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function
    function c_strlen(text) bind(C, name="strlen") result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function

    function c_run(config, body, argument) bind(C, name="lockflight_run") result(code)
      import :: c_config, c_funptr, c_int, c_ptr
      type(c_config), intent(in) :: config
      type(c_funptr), value :: body
      type(c_ptr), value :: argument
      integer(c_int) :: code
    end function
    function c_domain_open(name, options, domain) bind(C, name="lockflight_domain_open") &
        result(code)
      import :: c_char, c_domain_options, c_int, c_ptr
      character(kind=c_char), intent(in) :: name(*)
      type(c_domain_options), intent(in) :: options
      type(c_ptr), intent(inout) :: domain
      integer(c_int) :: code
    end function
    function c_domain_remove(name, force) bind(C, name="lockflight_domain_remove") result(code)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: force
      integer(c_int) :: code
    end function
    function c_named_create(domain, name, options, lock) bind(C, name="lockflight_named_create") &
        result(code)
      import :: c_char, c_int, c_named_options, c_ptr
      type(c_ptr), value :: domain
      character(kind=c_char), intent(in) :: name(*)
      type(c_named_options), intent(in) :: options
      type(c_ptr), intent(inout) :: lock
      integer(c_int) :: code
    end function
    function c_named_create_several(domain, names, count, lock) &
        bind(C, name="lockflight_named_create_several") result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: domain
      type(c_ptr), intent(in) :: names(*)
      integer(c_int), value :: count
      type(c_ptr), intent(inout) :: lock
      integer(c_int) :: code
    end function
    function c_named_acquire(lock, mode, nanoseconds) bind(C, name="lockflight_named_acquire") &
        result(code)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: lock
      integer(c_int), value :: mode
      integer(c_int64_t), value :: nanoseconds
      integer(c_int) :: code
    end function
    function c_named_create_units(domain, name, numbers, count, take, lock) &
        bind(C, name="lockflight_named_create_units") result(code)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: domain
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: numbers
      integer(c_int), value :: count, take
      type(c_ptr), intent(inout) :: lock
      integer(c_int) :: code
    end function
    function c_named_units(lock, units, most, count) bind(C, name="lockflight_named_units") &
        result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: lock
      integer(c_int), intent(inout) :: units(*)
      integer(c_int), value :: most
      integer(c_int), intent(inout) :: count
      integer(c_int) :: code
    end function
    function c_named_unit(lock, unit) bind(C, name="lockflight_named_unit") result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: lock
      integer(c_int), intent(inout) :: unit
      integer(c_int) :: code
    end function
    function c_named_token(lock, token) bind(C, name="lockflight_named_token") result(code)
      import :: c_int, c_int64_t, c_ptr
      type(c_ptr), value :: lock
      integer(c_int64_t), intent(out) :: token
      integer(c_int) :: code
    end function

    function c_flush(me) bind(C, name="lockflight_flush") result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: me
      integer(c_int) :: code
    end function
    function c_words_create(me, count, words) bind(C, name="lockflight_words_create") result(code)
      import :: c_int, c_int32_t, c_ptr
      type(c_ptr), value :: me
      integer(c_int32_t), value :: count
      type(c_ptr), intent(inout) :: words
      integer(c_int) :: code
    end function
    function c_put(words, rank, first, count, values) bind(C, name="lockflight_put") result(code)
      import :: c_int, c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: words
      integer(c_int), value :: rank
      integer(c_int32_t), value :: first, count
      integer(c_int64_t), intent(in) :: values(*)
      integer(c_int) :: code
    end function
    function c_get(words, rank, first, count, values) bind(C, name="lockflight_get") result(code)
      import :: c_int, c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: words
      integer(c_int), value :: rank
      integer(c_int32_t), value :: first, count
      integer(c_int64_t), intent(inout), asynchronous :: values(*)
      integer(c_int) :: code
    end function
  end interface

  ! Each of these is called in one place only: if there is a second one, GNU Fortran 12 passes a
  ! pointer to the argument there, and not its value.
  procedure(c_call), bind(C, name="lockflight_rank") :: c_rank
  procedure(c_call), bind(C, name="lockflight_ranks") :: c_ranks
  procedure(c_call), bind(C, name="lockflight_barrier") :: c_barrier

  procedure(c_create_lock), bind(C, name="lockflight_mutex_create") :: c_mutex_create
  procedure(c_create_lock), bind(C, name="lockflight_shared_mutex_create") :: c_shared_mutex_create
  procedure(c_call), bind(C, name="lockflight_mutex_destroy") :: c_mutex_destroy
  procedure(c_call), bind(C, name="lockflight_shared_mutex_destroy") :: c_shared_mutex_destroy
  procedure(c_call), bind(C, name="lockflight_shared_mutex_lock") :: c_lock
  procedure(c_call), bind(C, name="lockflight_shared_mutex_try_lock") :: c_try_lock
  procedure(c_timed_call), bind(C, name="lockflight_shared_mutex_try_lock_for") :: c_try_lock_for
  procedure(c_call), bind(C, name="lockflight_shared_mutex_unlock") :: c_unlock
  procedure(c_call), bind(C, name="lockflight_shared_mutex_lock_shared") :: c_lock_shared
  procedure(c_call), bind(C, name="lockflight_shared_mutex_try_lock_shared") :: c_try_lock_shared
  procedure(c_timed_call), bind(C, name="lockflight_shared_mutex_try_lock_shared_for") :: &
    c_try_lock_shared_for
  procedure(c_call), bind(C, name="lockflight_shared_mutex_unlock_shared") :: c_unlock_shared
  procedure(c_call), bind(C, name="lockflight_shared_mutex_lock_upgrade") :: c_lock_upgrade
  procedure(c_call), bind(C, name="lockflight_shared_mutex_try_lock_upgrade") :: c_try_lock_upgrade
  procedure(c_call), bind(C, name="lockflight_shared_mutex_unlock_upgrade") :: c_unlock_upgrade
  procedure(c_call), bind(C, name="lockflight_shared_mutex_unlock_upgrade_and_lock") :: &
    c_unlock_upgrade_and_lock
  procedure(c_call), bind(C, name="lockflight_shared_mutex_try_unlock_shared_and_lock") :: &
    c_try_unlock_shared_and_lock
  procedure(c_call), bind(C, name="lockflight_shared_mutex_unlock_and_lock_shared") :: &
    c_unlock_and_lock_shared
  procedure(c_call), bind(C, name="lockflight_shared_mutex_unlock_and_lock_upgrade") :: &
    c_unlock_and_lock_upgrade
  procedure(c_call), bind(C, name="lockflight_shared_mutex_unlock_upgrade_and_lock_shared") :: &
    c_unlock_upgrade_and_lock_shared

  procedure(c_call), bind(C, name="lockflight_named_destroy") :: c_named_destroy
  procedure(c_call), bind(C, name="lockflight_named_release") :: c_named_release
  procedure(c_call), bind(C, name="lockflight_named_unlock") :: c_named_unlock
  procedure(c_call), bind(C, name="lockflight_named_unlock_shared") :: c_named_unlock_shared
  procedure(c_call), bind(C, name="lockflight_named_owner_died") :: c_named_owner_died
  procedure(c_call), bind(C, name="lockflight_named_mark_consistent") :: c_named_mark_consistent
  procedure(c_call), bind(C, name="lockflight_named_still_valid") :: c_named_still_valid
  procedure(c_call), bind(C, name="lockflight_domain_close") :: c_domain_close

contains

  ! ---- codes ----

  !> The meaning of a code in a few words.
  function lockflight_error_text(code) result(text)
    integer, intent(in) :: code
    character(len=:), allocatable :: text
    text = text_of(c_error_text(int(code, c_int)))
  end function

  !> What was wrong in this thread's last call that failed, in a line; empty if none did.
  function lockflight_last_error() result(text)
    character(len=:), allocatable :: text
    text = text_of(c_last_error())
  end function

  !> The library's version.
  function lockflight_version() result(text)
    character(len=:), allocatable :: text
    text = text_of(c_version())
  end function

  function text_of(from) result(text)
    type(c_ptr), intent(in) :: from
    character(len=:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i, length
    length = int(c_strlen(from))
    call c_f_pointer(from, letters, [length])
    allocate (character(len=length) :: text)
    do i = 1, length
      text(i:i) = letters(i)
    end do
  end function

  !> A text of the caller for C; `at` stays as it is if there is none. `kept` belongs to the caller,
  !> where it stays until C has read it.
  subroutine pass_text(from, kept, at)
    character(len=*), intent(in), optional :: from
    character(len=:), allocatable, target, intent(out) :: kept
    type(c_ptr), intent(inout) :: at
    if (.not. present(from)) return
    kept = trim(from) // c_null_char
    at = c_loc(kept)
  end subroutine

  !> The end of every call: returns the code in `stat` if the caller passed it, else stops on a
  !> failure.
  subroutine lockflight_detail_conclude(code, stat)
    integer(c_int), intent(in) :: code
    integer, intent(out), optional :: stat
    if (present(stat)) then
      stat = int(code)
    else if (code /= lockflight_ok .and. code /= lockflight_busy) then
      write (error_unit, "(3a)") lockflight_error_text(int(code)), ": ", lockflight_last_error()
      flush (error_unit)
      error stop 1
    end if
  end subroutine

  ! ---- participants ----

  !> Runs `body` once on every rank, processes that are forked from here or threads, and returns
  !> when all have returned. What a rank has written to units other than output_unit and error_unit
  !> it flushes itself.
  subroutine lockflight_run(body, config, stat)
    procedure(lockflight_body) :: body
    type(lockflight_config), intent(in), optional :: config
    integer, intent(out), optional :: stat
    type(rank_call), target :: what
    type(prepared_config), target :: with
    what%body => body
    call lockflight_detail_prepare(with, config)
    flush (output_unit)  ! else each rank would write what is still in the buffer
    flush (error_unit)
    call lockflight_detail_conclude(c_run(with%c, c_funloc(run_rank_call), c_loc(what)), stat)
  end subroutine

  function run_rank_call(me, argument) bind(C) result(code)
    type(c_ptr), value :: me, argument
    integer(c_int) :: code
    type(rank_call), pointer :: what
    call c_f_pointer(argument, what)
    call what%body(lockflight_participant(me))
    flush (output_unit)
    flush (error_unit)
    code = lockflight_ok
  end function

  subroutine lockflight_detail_prepare(with, config)
    type(prepared_config), intent(out), target :: with
    type(lockflight_config), intent(in), optional :: config
    if (.not. present(config)) return
    with%c%ranks = int(config%ranks, c_int)
    with%c%node_level = int(config%node_level, c_int)
    with%c%threads = merge(1_c_int, 0_c_int, config%threads)
    with%c%unpinned = merge(1_c_int, 0_c_int, config%unpinned)
    with%c%words_per_rank = unsigned(config%words_per_rank)
    call pass_text(config%levels, with%levels, with%c%levels)
    call pass_text(config%waiting, with%waiting, with%c%waiting)
  end subroutine

  !> A number as C's uint32_t; what does not fit becomes the largest, which is refused.
  pure function unsigned(number) result(bits)
    integer(int64), intent(in) :: number
    integer(c_int32_t) :: bits
    integer(int64), parameter :: limit = 2_int64**32
    integer(int64) :: low
    low = merge(number, limit - 1, number >= 0 .and. number < limit)
    if (low >= limit / 2) low = low - limit
    bits = int(low, c_int32_t)
  end function

  !> This participant's number, from 0.
  function lockflight_rank(me) result(rank)
    type(lockflight_participant), intent(in) :: me
    integer :: rank
    rank = int(c_rank(me%handle))
  end function

  !> How many participants there are.
  function lockflight_ranks(me) result(ranks)
    type(lockflight_participant), intent(in) :: me
    integer :: ranks
    ranks = int(c_ranks(me%handle))
  end function

  !> Waits for all participants; completes what this one has posted.
  subroutine lockflight_barrier(me, stat)
    type(lockflight_participant), intent(in) :: me
    integer, intent(out), optional :: stat
    call lockflight_detail_conclude(c_barrier(me%handle), stat)
  end subroutine

  !> Completes what this participant has posted.
  subroutine lockflight_flush(me, stat)
    type(lockflight_participant), intent(in) :: me
    integer, intent(out), optional :: stat
    call lockflight_detail_conclude(c_flush(me%handle), stat)
  end subroutine

  ! ---- locks ----

  subroutine create_mutex(me, mutex, name, parameters, home, stat)
    type(lockflight_participant), intent(in) :: me
    type(lockflight_mutex), intent(out) :: mutex
    character(len=*), intent(in), optional :: name, parameters
    integer, intent(in), optional :: home
    integer, intent(out), optional :: stat
    call create_lock(c_mutex_create, me, mutex%handle, name, parameters, home, stat)
  end subroutine

  subroutine create_shared_mutex(me, mutex, name, parameters, home, stat)
    type(lockflight_participant), intent(in) :: me
    type(lockflight_shared_mutex), intent(out) :: mutex
    character(len=*), intent(in), optional :: name, parameters
    integer, intent(in), optional :: home
    integer, intent(out), optional :: stat
    call create_lock(c_shared_mutex_create, me, mutex%handle, name, parameters, home, stat)
  end subroutine

  subroutine create_lock(create, me, handle, name, parameters, home, stat)
    procedure(c_create_lock) :: create
    type(lockflight_participant), intent(in) :: me
    type(c_ptr), intent(inout) :: handle
    character(len=*), intent(in), optional :: name, parameters
    integer, intent(in), optional :: home
    integer, intent(out), optional :: stat
    character(len=:), allocatable, target :: name_text, parameters_text
    type(c_lock_options) :: options
    call pass_text(name, name_text, options%name)
    call pass_text(parameters, parameters_text, options%parameters)
    if (present(home)) options%home = int(home, c_int)
    call lockflight_detail_conclude(create(me%handle, options, handle), stat)
  end subroutine

  subroutine destroy_mutex(mutex, stat)
    type(lockflight_mutex), intent(in) :: mutex
    integer, intent(out), optional :: stat
    call lockflight_detail_conclude(c_mutex_destroy(mutex%handle), stat)
  end subroutine

  subroutine destroy_shared_mutex(mutex, stat)
    type(lockflight_shared_mutex), intent(in) :: mutex
    integer, intent(out), optional :: stat
    call lockflight_detail_conclude(c_shared_mutex_destroy(mutex%handle), stat)
  end subroutine

  ! C has the functions of a mutex under two names, for two types of one record.

  function acquire_mutex(handle, mode, nanoseconds) result(code)
    type(c_ptr), intent(in) :: handle
    integer, intent(in) :: mode
    integer(int64), intent(in) :: nanoseconds
    integer(c_int) :: code
    if (mode == lockflight_shared) then
      select case (nanoseconds)
      case (for_ever); code = c_lock_shared(handle)
      case (at_once); code = c_try_lock_shared(handle)
      case default; code = c_try_lock_shared_for(handle, nanoseconds)
      end select
    else
      select case (nanoseconds)
      case (for_ever); code = c_lock(handle)
      case (at_once); code = c_try_lock(handle)
      case default; code = c_try_lock_for(handle, nanoseconds)
      end select
    end if
  end function

  function release_mutex(handle, mode) result(code)
    type(c_ptr), intent(in) :: handle
    integer, intent(in) :: mode
    integer(c_int) :: code
    if (mode == lockflight_shared) then
      code = c_unlock_shared(handle)
    else
      code = c_unlock(handle)
    end if
  end function

  !> Waits until this participant, or this thread, holds the lock alone.
  subroutine lockflight_lock(mutex, stat)
    class(any_lock), intent(in) :: mutex
    integer, intent(out), optional :: stat
    call lockflight_detail_conclude( &
      mutex%acquire(mutex%handle, lockflight_exclusive, for_ever), stat)
  end subroutine

  !> Takes the lock if it is free.
  subroutine lockflight_try_lock(mutex, got, stat)
    class(any_lock), intent(in) :: mutex
    logical, intent(out) :: got
    integer, intent(out), optional :: stat
    call conclude_try(mutex%acquire(mutex%handle, lockflight_exclusive, at_once), got, stat)
  end subroutine

  !> Waits at most that long.
  subroutine lockflight_try_lock_for(mutex, seconds, got, stat)
    class(any_lock), intent(in) :: mutex
    real(real64), intent(in) :: seconds
    logical, intent(out) :: got
    integer, intent(out), optional :: stat
    call conclude_try( &
      mutex%acquire(mutex%handle, lockflight_exclusive, nanoseconds_of(seconds)), got, stat)
  end subroutine

  !> Waits until system_clock, asked for a count of int64, says that count.
  subroutine lockflight_try_lock_until(mutex, count, got, stat)
    class(any_lock), intent(in) :: mutex
    integer(int64), intent(in) :: count
    logical, intent(out) :: got
    integer, intent(out), optional :: stat
    call lockflight_try_lock_for(mutex, seconds_until(count), got, stat)
  end subroutine

  !> The next holder sees what was put and flushed before.
  subroutine lockflight_unlock(mutex, stat)
    class(any_lock), intent(in) :: mutex
    integer, intent(out), optional :: stat
    call lockflight_detail_conclude(mutex%release(mutex%handle, lockflight_exclusive), stat)
  end subroutine

  !> Waits until no writer has the lock; other readers may have it.
  subroutine lockflight_lock_shared(mutex, stat)
    class(shareable_lock), intent(in) :: mutex
    integer, intent(out), optional :: stat
    call lockflight_detail_conclude(mutex%acquire(mutex%handle, lockflight_shared, for_ever), stat)
  end subroutine

  !> Takes the lock as a reader if no writer has it.
  subroutine lockflight_try_lock_shared(mutex, got, stat)
    class(shareable_lock), intent(in) :: mutex
    logical, intent(out) :: got
    integer, intent(out), optional :: stat
    call conclude_try(mutex%acquire(mutex%handle, lockflight_shared, at_once), got, stat)
  end subroutine

  !> The same, and waits at most that long.
  subroutine lockflight_try_lock_shared_for(mutex, seconds, got, stat)
    class(shareable_lock), intent(in) :: mutex
    real(real64), intent(in) :: seconds
    logical, intent(out) :: got
    integer, intent(out), optional :: stat
    call conclude_try( &
      mutex%acquire(mutex%handle, lockflight_shared, nanoseconds_of(seconds)), got, stat)
  end subroutine

  !> The same until a count of system_clock.
  subroutine lockflight_try_lock_shared_until(mutex, count, got, stat)
    class(shareable_lock), intent(in) :: mutex
    integer(int64), intent(in) :: count
    logical, intent(out) :: got
    integer, intent(out), optional :: stat
    call lockflight_try_lock_shared_for(mutex, seconds_until(count), got, stat)
  end subroutine

  !> Releases what lockflight_lock_shared has taken.
  subroutine lockflight_unlock_shared(mutex, stat)
    class(shareable_lock), intent(in) :: mutex
    integer, intent(out), optional :: stat
    call lockflight_detail_conclude(mutex%release(mutex%handle, lockflight_shared), stat)
  end subroutine

  !> 0 for a negative time; the largest number if the time is too long.
  function nanoseconds_of(seconds) result(count)
    real(real64), intent(in) :: seconds
    integer(int64) :: count
    real(real64), parameter :: most = 9.0e18_real64
    count = int(min(max(seconds, 0.0_real64) * 1.0e9_real64, most), int64)
  end function

  function seconds_until(count) result(seconds)
    integer(int64), intent(in) :: count
    real(real64) :: seconds
    integer(int64) :: now, rate
    call system_clock(now, rate)
    seconds = real(count - now, real64) / real(rate, real64)
  end function

  subroutine conclude_try(code, got, stat)
    integer(c_int), intent(in) :: code
    logical, intent(out) :: got
    integer, intent(out), optional :: stat
    got = code == lockflight_ok .or. code == lockflight_owner_died
    call lockflight_detail_conclude(code, stat)
  end subroutine

  ! ---- upgrade and downgrade, of "flight-rw" ----

  !> Waits until there is no writer and no upgrade holder; readers may share the lock.
  subroutine lockflight_lock_upgrade(mutex, stat)
    type(lockflight_shared_mutex), intent(in) :: mutex
    integer, intent(out), optional :: stat
    call lockflight_detail_conclude(c_lock_upgrade(mutex%handle), stat)
  end subroutine

  !> Takes the lock for upgrade if there is no writer and no upgrade holder.
  subroutine lockflight_try_lock_upgrade(mutex, got, stat)
    type(lockflight_shared_mutex), intent(in) :: mutex
    logical, intent(out) :: got
    integer, intent(out), optional :: stat
    call conclude_try(c_try_lock_upgrade(mutex%handle), got, stat)
  end subroutine

  !> Releases what lockflight_lock_upgrade has taken.
  subroutine lockflight_unlock_upgrade(mutex, stat)
    type(lockflight_shared_mutex), intent(in) :: mutex
    integer, intent(out), optional :: stat
    call lockflight_detail_conclude(c_unlock_upgrade(mutex%handle), stat)
  end subroutine

  !> From upgrade holder to writer: waits until the readers are gone. No writer comes in between,
  !> here and below; the C interface says what each costs.
  subroutine lockflight_unlock_upgrade_and_lock(mutex, stat)
    type(lockflight_shared_mutex), intent(in) :: mutex
    integer, intent(out), optional :: stat
    call lockflight_detail_conclude(c_unlock_upgrade_and_lock(mutex%handle), stat)
  end subroutine

  !> From reader to writer. If there is a writer, a waiting writer or an upgrade holder, `got` is
  !> false and the lock is still shared; then unlock, since that participant may wait for it.
  subroutine lockflight_try_unlock_shared_and_lock(mutex, got, stat)
    type(lockflight_shared_mutex), intent(in) :: mutex
    logical, intent(out) :: got
    integer, intent(out), optional :: stat
    call conclude_try(c_try_unlock_shared_and_lock(mutex%handle), got, stat)
  end subroutine

  !> From writer to reader.
  subroutine lockflight_unlock_and_lock_shared(mutex, stat)
    type(lockflight_shared_mutex), intent(in) :: mutex
    integer, intent(out), optional :: stat
    call lockflight_detail_conclude(c_unlock_and_lock_shared(mutex%handle), stat)
  end subroutine

  !> From writer to upgrade holder: readers may share the lock.
  subroutine lockflight_unlock_and_lock_upgrade(mutex, stat)
    type(lockflight_shared_mutex), intent(in) :: mutex
    integer, intent(out), optional :: stat
    call lockflight_detail_conclude(c_unlock_and_lock_upgrade(mutex%handle), stat)
  end subroutine

  !> From upgrade holder to reader.
  subroutine lockflight_unlock_upgrade_and_lock_shared(mutex, stat)
    type(lockflight_shared_mutex), intent(in) :: mutex
    integer, intent(out), optional :: stat
    call lockflight_detail_conclude(c_unlock_upgrade_and_lock_shared(mutex%handle), stat)
  end subroutine

  ! ---- domains and named locks ----

  !> Opens the domain, and creates it if there is none, with so many slots for threads and names for
  !> locks; one that exists keeps its own numbers. With `group` it is one that a group shares, the
  !> process's or that of `group_name`; with group=.false. it is the user's own; without both it is
  !> what there is of that name.
  subroutine lockflight_domain_open(name, domain, slots, names, group, group_name, stat)
    character(len=*), intent(in) :: name
    type(lockflight_domain), intent(out) :: domain
    integer, intent(in), optional :: slots, names
    logical, intent(in), optional :: group
    character(len=*), intent(in), optional :: group_name
    integer, intent(out), optional :: stat
    type(c_domain_options) :: options
    character(len=:), allocatable, target :: group_text
    if (present(slots)) options%slots = int(slots, c_int)
    if (present(names)) options%names = unsigned(int(names, int64))
    call pass_text(group_name, group_text, options%group)
    if (present(group_name)) options%mode = int(o"660", c_int)
    if (present(group)) options%mode = merge(int(o"660", c_int), int(o"600", c_int), group)
    call lockflight_detail_conclude( &
      c_domain_open(trim(name) // c_null_char, options, domain%handle), stat)
  end subroutine

  !> Ends `domain`; handles of its locks stay as they are.
  subroutine lockflight_domain_close(domain, stat)
    type(lockflight_domain), intent(inout) :: domain
    integer, intent(out), optional :: stat
    integer(c_int) :: code
    code = c_domain_close(domain%handle)
    domain%handle = c_null_ptr
    call lockflight_detail_conclude(code, stat)
  end subroutine

  !> Removes the domain with all its locks; with `force` also one that living threads use.
  subroutine lockflight_domain_remove(name, force, stat)
    character(len=*), intent(in) :: name
    logical, intent(in), optional :: force
    integer, intent(out), optional :: stat
    integer(c_int) :: forced
    forced = 0
    if (present(force)) forced = merge(1_c_int, 0_c_int, force)
    call lockflight_detail_conclude(c_domain_remove(trim(name) // c_null_char, forced), stat)
  end subroutine

  subroutine create_named(domain, lock, name, kind, parameters, stat)
    type(lockflight_domain), intent(in) :: domain
    type(lockflight_named), intent(out) :: lock
    character(len=*), intent(in) :: name
    character(len=*), intent(in), optional :: kind, parameters
    integer, intent(out), optional :: stat
    character(len=:), allocatable, target :: kind_text, parameters_text
    type(c_named_options) :: options
    call pass_text(kind, kind_text, options%kind)
    call pass_text(parameters, parameters_text, options%parameters)
    call lockflight_detail_conclude( &
      c_named_create(domain%handle, trim(name) // c_null_char, options, lock%handle), stat)
  end subroutine

  subroutine create_several(domain, lock, names, stat)
    type(lockflight_domain), intent(in) :: domain
    type(lockflight_named), intent(out) :: lock
    character(len=*), intent(in) :: names(:)
    integer, intent(out), optional :: stat
    character(len=len(names) + 1), target :: texts(size(names))
    type(c_ptr) :: at(size(names))
    integer :: i
    do i = 1, size(names)
      texts(i) = trim(names(i)) // c_null_char
      at(i) = c_loc(texts(i))
    end do
    call lockflight_detail_conclude( &
      c_named_create_several(domain%handle, at, size(names, kind=c_int), lock%handle), stat)
  end subroutine

  subroutine create_semaphore(domain, lock, name, units, stat, take)
    type(lockflight_domain), intent(in) :: domain
    type(lockflight_named), intent(out) :: lock
    character(len=*), intent(in) :: name
    integer, intent(in) :: units
    integer, intent(out), optional :: stat
    integer, intent(in), optional :: take
    integer :: taken
    taken = 1
    if (present(take)) taken = take
    call lockflight_detail_conclude(c_named_create_units( &
      domain%handle, trim(name) // c_null_char, c_null_ptr, int(units, c_int), &
      int(taken, c_int), lock%handle), stat)
  end subroutine

  subroutine destroy_named(lock, stat)
    type(lockflight_named), intent(inout) :: lock
    integer, intent(out), optional :: stat
    integer(c_int) :: code
    code = c_named_destroy(lock%handle)
    if (code == lockflight_ok) lock%handle = c_null_ptr
    call lockflight_detail_conclude(code, stat)
  end subroutine

  function acquire_named(handle, mode, nanoseconds) result(code)
    type(c_ptr), intent(in) :: handle
    integer, intent(in) :: mode
    integer(int64), intent(in) :: nanoseconds
    integer(c_int) :: code
    code = c_named_acquire( &
      handle, int(mode, c_int), merge(0_int64, nanoseconds, nanoseconds == at_once))
  end function

  function release_named(handle, mode) result(code)
    type(c_ptr), intent(in) :: handle
    integer, intent(in) :: mode
    integer(c_int) :: code
    select case (mode)
    case (as_held); code = c_named_release(handle)
    case (lockflight_shared); code = c_named_unlock_shared(handle)
    case default; code = c_named_unlock(handle)
    end select
  end function

  !> Holds the lock in that mode, lockflight_exclusive or lockflight_shared; without a mode, alone.
  !> Waits at most so many seconds, which is an attempt if they are 0, and without them for ever.
  !> `got`, or lockflight_busy in `stat`, says whether the time was over first; without both that is
  !> an ERROR STOP. All other acquires of a named lock are this one with other names.
  subroutine lockflight_acquire(lock, mode, seconds, got, stat)
    type(lockflight_named), intent(in) :: lock
    integer, intent(in), optional :: mode
    real(real64), intent(in), optional :: seconds
    logical, intent(out), optional :: got
    integer, intent(out), optional :: stat
    integer :: as
    integer(int64) :: limit
    logical :: had
    as = lockflight_exclusive
    if (present(mode)) as = mode
    limit = for_ever
    if (present(seconds)) limit = nanoseconds_of(seconds)
    call conclude_try(lock%acquire(lock%handle, as, limit), had, stat)
    if (present(got)) then
      got = had
    else if (.not. (had .or. present(stat))) then
      error stop "lockflight_acquire: not free in time, and the caller has no got and no stat"
    end if
  end subroutine

  !> Releases it in whichever mode it is held.
  subroutine lockflight_release(lock, stat)
    type(lockflight_named), intent(in) :: lock
    integer, intent(out), optional :: stat
    call lockflight_detail_conclude(lock%release(lock%handle, as_held), stat)
  end subroutine

  !> The unit of a semaphore that this handle holds, from 0; -1: it is of locks.
  subroutine lockflight_unit(lock, unit, stat)
    type(lockflight_named), intent(in) :: lock
    integer, intent(out) :: unit
    integer, intent(out), optional :: stat
    integer(c_int) :: number, code
    number = -1
    code = c_named_unit(lock%handle, number)
    unit = int(number)
    call lockflight_detail_conclude(code, stat)
  end subroutine

  !> All units of a semaphore that this handle holds, in their order.
  subroutine lockflight_units(lock, units, stat)
    type(lockflight_named), intent(in) :: lock
    integer, allocatable, intent(out) :: units(:)
    integer, intent(out), optional :: stat
    integer(c_int) :: numbers(most_held), count, code
    count = 0
    code = c_named_units(lock%handle, numbers, int(most_held, c_int), count)
    units = int(numbers(1:count))
    call lockflight_detail_conclude(code, stat)
  end subroutine

  !> The fencing token of this handle's last exclusive acquire; greater than all before it.
  subroutine lockflight_token(lock, token, stat)
    type(lockflight_named), intent(in) :: lock
    integer(int64), intent(out) :: token
    integer, intent(out), optional :: stat
    token = 0
    call lockflight_detail_conclude(c_named_token(lock%handle, token), stat)
  end subroutine

  !> For a holder: whether a holder has died, and none since has called lockflight_mark_consistent.
  subroutine lockflight_owner_has_died(lock, died, stat)
    type(lockflight_named), intent(in) :: lock
    logical, intent(out) :: died
    integer, intent(out), optional :: stat
    integer(c_int) :: code
    code = c_named_owner_died(lock%handle)
    died = code == lockflight_owner_died
    if (died) code = lockflight_ok
    call lockflight_detail_conclude(code, stat)
  end subroutine

  !> For an exclusive holder: what the lock guards is in order again.
  subroutine lockflight_mark_consistent(lock, stat)
    type(lockflight_named), intent(in) :: lock
    integer, intent(out), optional :: stat
    call lockflight_detail_conclude(c_named_mark_consistent(lock%handle), stat)
  end subroutine

  !> For a holder: whether threads that come later find this lock. Not if its domain was removed.
  subroutine lockflight_still_valid(lock, valid, stat)
    type(lockflight_named), intent(in) :: lock
    logical, intent(out) :: valid
    integer, intent(out), optional :: stat
    integer(c_int) :: code
    code = c_named_still_valid(lock%handle)
    valid = code == lockflight_ok
    if (code == lockflight_removed) code = lockflight_ok
    call lockflight_detail_conclude(code, stat)
  end subroutine

  ! ---- words ----

  subroutine create_words(me, words, count, stat)
    type(lockflight_participant), intent(in) :: me
    type(lockflight_words), intent(out) :: words
    integer, intent(in) :: count
    integer, intent(out), optional :: stat
    words%owner = me%handle
    call lockflight_detail_conclude( &
      c_words_create(me%handle, unsigned(int(count, int64)), words%handle), stat)
  end subroutine

  subroutine put_many(words, rank, offset, values, stat)
    type(lockflight_words), intent(in) :: words
    integer, intent(in) :: rank, offset
    integer(int64), intent(in) :: values(:)
    integer, intent(out), optional :: stat
    call lockflight_detail_conclude(c_put(words%handle, int(rank, c_int), &
      unsigned(int(offset, int64)), size(values, kind=c_int32_t), values), stat)
  end subroutine

  subroutine put_one(words, rank, offset, value, stat)
    type(lockflight_words), intent(in) :: words
    integer, intent(in) :: rank, offset
    integer(int64), intent(in) :: value
    integer, intent(out), optional :: stat
    call put_many(words, rank, offset, [value], stat)
  end subroutine

  subroutine get_many(words, rank, offset, values, stat)
    type(lockflight_words), intent(in) :: words
    integer, intent(in) :: rank, offset
    integer(int64), intent(out) :: values(:)
    integer, intent(out), optional :: stat
    integer(int64), asynchronous :: got(size(values))
    integer(c_int) :: code
    got = 0
    code = c_get(words%handle, int(rank, c_int), unsigned(int(offset, int64)), &
                 size(got, kind=c_int32_t), got)
    if (code == lockflight_ok) code = c_flush(words%owner)
    values = got
    call lockflight_detail_conclude(code, stat)
  end subroutine

  subroutine get_one(words, rank, offset, value, stat)
    type(lockflight_words), intent(in) :: words
    integer, intent(in) :: rank, offset
    integer(int64), intent(out) :: value
    integer, intent(out), optional :: stat
    integer(int64) :: values(1)
    call get_many(words, rank, offset, values, stat)
    value = values(1)
  end subroutine

end module
