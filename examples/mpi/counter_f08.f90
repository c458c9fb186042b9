!> A counter in rank 0's memory that all ranks of an MPI program add to. Prints 1000 for each.
program counter_f08
  use, intrinsic :: iso_fortran_env, only: int64
  use mpi_f08
  use lockflight
  implicit none
  type(lockflight_participant) :: me
  type(lockflight_mutex) :: mutex
  type(lockflight_words) :: counter
  integer(int64) :: n
  integer :: i

  call MPI_Init()
  call lockflight_join_mpi(MPI_COMM_WORLD%MPI_VAL, me)
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
  call lockflight_leave(me)
  call MPI_Finalize()
end program
