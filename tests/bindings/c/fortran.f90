!> Module lockflight: every generic name, every way of failing. Prints "all holds", or says what
!> does not.
module checks
  use, intrinsic :: iso_fortran_env, only: error_unit, int64, real64
  use lockflight
  implicit none

contains

  subroutine require(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    write (error_unit, "(4a)") what, " (last error: ", lockflight_last_error(), ")"
    error stop 1
  end subroutine

  subroutine refused(stat, expected, words)
    integer, intent(in) :: stat, expected
    character(len=*), intent(in) :: words
    call require(stat == expected, "another code where '" // words // "' is expected")
    call require(index(lockflight_last_error(), words) > 0, "the text lacks '" // words // "'")
  end subroutine

  ! ---- one rank: what is refused ----

  subroutine misuse(me)
    type(lockflight_participant), intent(in) :: me
    type(lockflight_mutex) :: mutex, none
    type(lockflight_shared_mutex) :: shared
    type(lockflight_words) :: words
    integer(int64) :: value
    integer :: stat
    logical :: got
    call lockflight_lock(none, stat)
    call refused(stat, lockflight_invalid, "mutex NULL")
    call lockflight_create(me, mutex, name="rma-msc", stat=stat)
    call refused(stat, lockflight_unknown, "lock 'rma-msc'")
    call lockflight_create(me, mutex, parameters="T_L2=x", stat=stat)
    call refused(stat, lockflight_invalid, "T_L2=x")
    call lockflight_create(me, mutex, home=7, stat=stat)
    call refused(stat, lockflight_invalid, "home 7")
    call lockflight_create(me, shared, name="d-mcs", stat=stat)
    call refused(stat, lockflight_wrong_kind, "d-mcs")
    call lockflight_create(me, words, huge(1), stat)
    call refused(stat, lockflight_full, "segments are full")
    call lockflight_create(me, words, -1, stat)
    call refused(stat, lockflight_full, "4294967295 cells")

    call lockflight_create(me, mutex, name="d-mcs  ")  ! Fortran's blanks do not count
    call lockflight_unlock(mutex, stat)
    call refused(stat, lockflight_not_held, "d-mcs")
    call lockflight_try_lock(mutex, got)
    call require(got, "a free lock is busy")
    call lockflight_lock(mutex, stat)
    call refused(stat, lockflight_held, "d-mcs")
    call lockflight_destroy(mutex, stat)
    call refused(stat, lockflight_held, "d-mcs")
    call lockflight_unlock(mutex)
    call lockflight_destroy(mutex)
    call lockflight_lock(mutex, stat)
    call refused(stat, lockflight_invalid, "destroyed")

    call lockflight_create(me, shared, parameters="T_W=7")
    call lockflight_try_lock_shared(shared, got)
    call require(got, "a free lock is busy")
    call lockflight_unlock(shared, stat)
    call refused(stat, lockflight_not_held, "with other readers")
    call lockflight_unlock_shared(shared)
    call lockflight_try_lock(shared, got)
    call require(got, "a free lock is busy")
    call lockflight_unlock(shared)

    call lockflight_unlock_upgrade(shared, stat)
    call refused(stat, lockflight_not_held, "does not hold")
    call lockflight_unlock_upgrade_and_lock(shared, stat)
    call refused(stat, lockflight_not_held, "unlock_upgrade_and_lock of flight-rw")
    call lockflight_unlock_upgrade_and_lock_shared(shared, stat)
    call refused(stat, lockflight_not_held, "unlock_upgrade_and_lock_shared of flight-rw")
    call lockflight_unlock_and_lock_upgrade(shared, stat)
    call refused(stat, lockflight_not_held, "unlock_and_lock_upgrade of flight-rw")
    call lockflight_unlock_and_lock_shared(shared, stat)
    call refused(stat, lockflight_not_held, "unlock_and_lock_shared of flight-rw")
    call lockflight_try_unlock_shared_and_lock(shared, got, stat)
    call refused(stat, lockflight_not_held, "try_unlock_shared_and_lock of flight-rw")
    call require(.not. got, "what is refused is not got")
    call lockflight_try_lock_upgrade(shared, got)
    call require(got, "a free lock is busy")
    call lockflight_lock_upgrade(shared, stat)
    call refused(stat, lockflight_held, "flight-rw")
    call lockflight_unlock(shared, stat)
    call refused(stat, lockflight_not_held, "for upgrade")
    call lockflight_unlock_upgrade(shared)
    call lockflight_destroy(shared)
    call lockflight_create(me, shared, name="rma-rw")
    call lockflight_lock_upgrade(shared, stat)
    call refused(stat, lockflight_wrong_kind, "lock 'rma-rw'")
    call lockflight_try_lock_for(shared, 0.0_real64, got, stat)
    call refused(stat, lockflight_wrong_kind, "lock 'rma-rw'")
    call lockflight_try_lock(shared, got)
    call require(got, "a free lock is busy")
    call lockflight_unlock(shared)
    call lockflight_destroy(shared)

    call lockflight_create(me, words, 3)
    call lockflight_get(words, 0, 3, value, stat)
    call refused(stat, lockflight_invalid, "word 3")
    call lockflight_put(words, 1, 0, value, stat)
    call refused(stat, lockflight_invalid, "rank 1")
    call lockflight_put(words, 0, -1, value, stat)
    call refused(stat, lockflight_invalid, "word 4294967295")
  end subroutine

  ! ---- four ranks ----

  subroutine work(me)
    type(lockflight_participant), intent(in) :: me
    integer, parameter :: rounds = 200
    type(lockflight_mutex) :: mutex
    type(lockflight_shared_mutex) :: shared
    type(lockflight_words) :: pair
    integer(int64) :: seen(2), strided(4), moment
    integer :: i
    logical :: got
    call require(lockflight_ranks(me) == 4, "another number of ranks")
    call lockflight_create(me, mutex, home=3)
    call lockflight_create(me, shared)
    call lockflight_create(me, pair, 2)
    do i = 1, rounds
      if (mod(i, 2) == 0) then
        call lockflight_lock(shared)
      else
        call lockflight_try_lock(shared, got)
        if (.not. got) call lockflight_lock(shared)
      end if
      call lockflight_get(pair, 0, 0, seen)
      call require(seen(1) == seen(2), "a writer shares the lock")
      call lockflight_put(pair, 0, 0, seen(1) + 1)
      call lockflight_put(pair, 0, 1, seen(2) + 1)
      call lockflight_flush(me)
      call lockflight_unlock(shared)

      call lockflight_lock_shared(shared)
      strided = -1
      call lockflight_get(pair, 0, 0, strided(1:4:3))  ! into a copy, and back
      call require(strided(1) == strided(4) .and. strided(2) == -1, "a reader sees half a change")
      call lockflight_unlock_shared(shared)
    end do
    call lockflight_barrier(me)
    call lockflight_get(pair, 0, 1, seen(1))
    call require(seen(1) == 4 * rounds, "additions were lost")
    call lockflight_barrier(me)
    call up_and_down(me, shared, pair)

    if (lockflight_rank(me) == 0) call lockflight_lock(mutex)
    call lockflight_barrier(me)
    if (lockflight_rank(me) /= 0) then
      call lockflight_try_lock(mutex, got)
      call require(.not. got, "a held mutex is free")
      call lockflight_try_lock_for(mutex, 1.0e-4_real64, got)
      call require(.not. got, "a held mutex is free in time")
      call lockflight_try_lock_for(mutex, -1.0_real64, got)
      call require(.not. got, "a held mutex is free at once")
      call system_clock(moment)
      call lockflight_try_lock_until(mutex, moment, got)
      call require(.not. got, "a held mutex was free")
      call lockflight_try_lock_shared_for(shared, 10.0_real64, got)
      call require(got, "readers do not share")
      call lockflight_unlock_shared(shared)
    end if
    call lockflight_barrier(me)
    if (lockflight_rank(me) == 0) call lockflight_unlock(mutex)
  end subroutine

  !> From reading to writing and back, with nobody writing in between.
  subroutine up_and_down(me, shared, counter)
    type(lockflight_participant), intent(in) :: me
    type(lockflight_shared_mutex), intent(in) :: shared
    type(lockflight_words), intent(in) :: counter
    type(lockflight_words) :: written
    integer, parameter :: rounds = 200
    integer(int64) :: first, before, after, mine, all
    integer :: i
    logical :: got
    call lockflight_create(me, written, 1)
    call lockflight_get(counter, 0, 0, first)
    call lockflight_barrier(me)
    mine = 0
    do i = 1, rounds
      if (mod(i + lockflight_rank(me), 2) == 0) then
        call lockflight_lock_upgrade(shared)
        call lockflight_get(counter, 0, 0, before)
        call lockflight_unlock_upgrade_and_lock(shared)
        got = .true.
      else
        call lockflight_lock_shared(shared)
        call lockflight_get(counter, 0, 0, before)
        call lockflight_try_unlock_shared_and_lock(shared, got)
      end if
      if (got) then
        call lockflight_get(counter, 0, 0, after)
        call require(after == before, "somebody wrote during an upgrade")
        call lockflight_put(counter, 0, 0, before + 1)
        call lockflight_flush(me)
        mine = mine + 1
        before = before + 1
        if (mod(i, 4) < 2) then
          call lockflight_unlock_and_lock_upgrade(shared)
          call lockflight_unlock_upgrade_and_lock_shared(shared)
        else
          call lockflight_unlock_and_lock_shared(shared)
        end if
      end if
      call lockflight_get(counter, 0, 0, after)
      call require(after == before, "somebody wrote beside a reader")
      call lockflight_unlock_shared(shared)
    end do
    call lockflight_put(written, lockflight_rank(me), 0, mine)
    call lockflight_barrier(me)
    all = 0
    do i = 0, lockflight_ranks(me) - 1
      call lockflight_get(written, i, 0, mine)
      all = all + mine
    end do
    call lockflight_get(counter, 0, 0, after)
    call require(after == first + all, "additions were lost")
  end subroutine

  ! ---- named locks ----

  subroutine named()
    character(len=*), parameter :: name = "fortran-test"
    type(lockflight_domain) :: domain, shared
    type(lockflight_named) :: lock, none
    integer(int64) :: token, before
    integer :: stat
    logical :: got, died, valid
    call lockflight_lock(none, stat)
    call refused(stat, lockflight_invalid, "lock NULL")
    call lockflight_domain_open("a/b", domain, stat=stat)
    call refused(stat, lockflight_invalid, "a/b")
    call lockflight_domain_remove(name, .true., stat)  ! of a run that was killed
    call lockflight_domain_open(name, domain, slots=4, names=8)
    call lockflight_domain_open(name, shared, group_name="no such group", stat=stat)
    call refused(stat, lockflight_invalid, "no such group")
    call lockflight_domain_open(name, shared, group=.true., stat=stat)
    call refused(stat, lockflight_wrong_kind, name)
    call lockflight_create(domain, lock, "a")
    call lockflight_unlock(lock, stat)
    call refused(stat, lockflight_not_held, "'a'")
    call lockflight_still_valid(lock, valid, stat)
    call refused(stat, lockflight_not_held, "'a'")
    call lockflight_lock(lock)
    call lockflight_still_valid(lock, valid)
    call require(valid, "a domain that is there is not valid")
    call lockflight_token(lock, before)
    call lockflight_owner_has_died(lock, died)
    call require(.not. died, "a death that was not")
    call lockflight_unlock(lock)
    call lockflight_try_lock(lock, got)
    call require(got, "a free lock is busy")
    call lockflight_token(lock, token)
    call require(token > before, "a token that does not grow")
    call lockflight_mark_consistent(lock)
    call lockflight_unlock(lock)
    call lockflight_try_lock_for(lock, 1.0_real64, got)
    call require(got, "a free lock is busy for a time")
    call lockflight_unlock(lock)
    call lockflight_lock_shared(lock)
    call lockflight_unlock_shared(lock)
    call lockflight_try_lock_shared(lock, got)
    call require(got, "a free lock is busy for readers")
    call lockflight_unlock_shared(lock)
    call lockflight_try_lock_shared_for(lock, 1.0_real64, got)
    call require(got, "a free lock is busy for readers for a time")
    call lockflight_destroy(lock, stat)
    call refused(stat, lockflight_held, "'a'")
    call lockflight_domain_remove(name, .true.)
    call lockflight_still_valid(lock, valid)
    call require(.not. valid, "a domain that was removed is valid")
    call lockflight_unlock_shared(lock)
    call lockflight_destroy(lock)
    call lockflight_domain_close(domain)
    call lockflight_domain_remove(name, stat=stat)
    call refused(stat, lockflight_unknown, name)
  end subroutine

  !> The one acquire and its other names; several locks; a semaphore.
  subroutine handles()
    character(len=*), parameter :: name = "fortran-handles"
    type(lockflight_domain) :: domain
    type(lockflight_named) :: both, first, gpus, others(2)
    integer(int64) :: moment
    integer :: stat, unit
    integer, allocatable :: units(:)
    logical :: got
    call lockflight_domain_remove(name, .true., stat)  ! of a run that was killed
    call lockflight_domain_open(name, domain, slots=4, names=16)
    call lockflight_create(domain, both, ["data ", "index"])
    call lockflight_create(domain, first, "data")
    call lockflight_create(domain, others(1), [character(len=4) ::], stat)
    call refused(stat, lockflight_invalid, "no lock")
    call lockflight_create(domain, others(1), ["a", "a"], stat)
    call refused(stat, lockflight_invalid, "'a'")

    call lockflight_acquire(both)
    call lockflight_acquire(first, seconds=0.0_real64, got=got, stat=stat)
    call refused(stat, lockflight_held, "'data'")
    call require(.not. got, "what is refused is not got")
    call lockflight_release(both)
    call lockflight_release(both, stat)
    call refused(stat, lockflight_not_held, "'data'")
    call lockflight_acquire(both, lockflight_shared, 1.0_real64)
    call lockflight_acquire(first, lockflight_shared, stat=stat)  ! two shares are one hold
    call require(stat == lockflight_ok, "a thread does not share with itself")
    call lockflight_unlock(both, stat)
    call refused(stat, lockflight_not_held, "exclusively")
    call lockflight_unlock_shared(both)
    call lockflight_release(first)
    call lockflight_acquire(first, 3, got=got, stat=stat)
    call refused(stat, lockflight_invalid, "mode 3")
    call system_clock(moment)
    call lockflight_try_lock_until(first, moment, got)
    call require(got, "a free lock is busy")
    call lockflight_unlock(first)

    call lockflight_create(domain, gpus, "gpu", 2)
    call lockflight_unit(gpus, unit, stat)
    call refused(stat, lockflight_not_held, "semaphore 'gpu'")
    call lockflight_create(domain, others(1), "gpu", 2)
    call lockflight_create(domain, others(2), name="gpu", units=2)
    call lockflight_lock(gpus)
    call lockflight_acquire(others(1), got=got)
    call require(got, "a free unit is busy")
    call lockflight_unit(others(1), unit)
    call require(unit == 1, "another unit")
    call lockflight_try_lock(others(2), got, stat)
    call require(.not. got, "a third holder of two units")
    call lockflight_acquire(others(2), lockflight_shared, stat=stat)
    call refused(stat, lockflight_wrong_kind, "semaphore 'gpu'")
    call lockflight_unlock(gpus)
    call lockflight_release(others(1))
    call lockflight_destroy(others(1))
    call lockflight_release(others(1), stat)
    call refused(stat, lockflight_invalid, "lock NULL")
    call lockflight_destroy(both)
    call lockflight_destroy(first)
    call lockflight_destroy(gpus)
    call lockflight_create(domain, gpus, "pair", units=4, take=2)
    call lockflight_units(gpus, units, stat)
    call refused(stat, lockflight_not_held, "semaphore 'pair'")
    call require(size(units) == 0, "units without a hold")
    call lockflight_lock(gpus)
    call lockflight_units(gpus, units)
    call require(size(units) == 2 .and. all(units == [0, 1]), "two units")
    call lockflight_unlock(gpus)
    call lockflight_destroy(gpus)
    call lockflight_create(domain, gpus, "pair", units=4, stat=stat, take=5)
    call refused(stat, lockflight_invalid, "take 5 of 4 units")
    call lockflight_destroy(others(2))
    call lockflight_domain_close(domain)
    call lockflight_domain_remove(name, .true.)
  end subroutine

  subroutine stop_here(me)
    type(lockflight_participant), intent(in) :: me
    type(lockflight_mutex) :: mutex
    call lockflight_create(me, mutex)
    if (lockflight_rank(me) == 1) call lockflight_unlock(mutex)
    call lockflight_barrier(me)
  end subroutine

end module

program fortran
  use checks
  implicit none
  type(lockflight_config) :: config
  integer :: stat, code

  config = lockflight_config(ranks=5000)
  call lockflight_run(work, config, stat)
  call refused(stat, lockflight_invalid, "ranks 5000")
  config = lockflight_config(levels="2x")
  call lockflight_run(work, config, stat)
  call refused(stat, lockflight_invalid, "levels '2x'")
  config = lockflight_config(ranks=1, waiting="nap")
  call lockflight_run(work, config, stat)
  call refused(stat, lockflight_invalid, "nap")
  config = lockflight_config(ranks=1, words_per_rank=2_int64**32)
  call lockflight_run(work, config, stat)
  call refused(stat, lockflight_invalid, "words per rank")

  call named()
  call handles()
  call lockflight_run(misuse, lockflight_config(ranks=1, threads=.true.))
  call lockflight_run(work, lockflight_config(levels="2x2"))
  ! Without `stat` a failure is an ERROR STOP of that rank, and the run fails.
  call lockflight_run(stop_here, lockflight_config(ranks=2), stat)
  call refused(stat, lockflight_rank_failed, "rank 1 (pid ")

  do code = lockflight_ok, lockflight_lost
    call require(lockflight_error_text(code) /= lockflight_error_text(-1), "a code without a text")
  end do
  call require(lockflight_error_text(lockflight_lost + 1) == lockflight_error_text(-1), &
               "a code that Fortran does not know")
  call require(verify(lockflight_version(), "0123456789.") == 0 .and. &
               count(transfer(lockflight_version(), [character :: "."]) == ".") == 2, &
               "a version that is not three numbers")
  print "(a)", "all holds"
end program
