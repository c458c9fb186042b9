!> Four processes, a lock, and a counter in the memory that they share. Prints 4000.
module counting
  use, intrinsic :: iso_fortran_env, only: int64
  use lockflight
  implicit none

contains

  subroutine count(me)
    type(lockflight_participant), intent(in) :: me
    type(lockflight_mutex) :: mutex
    type(lockflight_words) :: counter
    integer(int64) :: n
    integer :: i
    call lockflight_create(me, mutex)
    call lockflight_create(me, counter, 1)

    do i = 1, 1000
      call lockflight_lock(mutex)
      call lockflight_get(counter, 0, 0, n)
      call lockflight_put(counter, 0, 0, n + 1)
      call lockflight_flush(me)
      call lockflight_unlock(mutex)
    end do

    call lockflight_barrier(me)
    call lockflight_get(counter, 0, 0, n)
    if (lockflight_rank(me) == 0) print "(i0)", n
  end subroutine

end module

program counter_fortran
  use counting
  implicit none
  call lockflight_run(count, lockflight_config(ranks=4))
end program
