!> A table that many ranks read and rank 0 changes: a shared mutex, with `use mpi`.
program shared_table
  use, intrinsic :: iso_fortran_env, only: int64
  use mpi
  use lockflight
  implicit none
  integer, parameter :: entries = 16, versions = 100
  type(lockflight_participant) :: me
  type(lockflight_shared_mutex) :: mutex
  type(lockflight_words) :: table
  integer(int64) :: seen(entries), version
  integer :: error, reads

  call MPI_Init(error)
  call lockflight_join_mpi(MPI_COMM_WORLD, me)
  call lockflight_create(me, mutex, name="rma-rw", parameters="T_R=100")
  call lockflight_create(me, table, entries)
  call lockflight_barrier(me)

  if (lockflight_rank(me) == 0) then
    do version = 1, versions
      call lockflight_lock(mutex)
      call lockflight_put(table, 0, 0, spread(version, 1, entries))
      call lockflight_flush(me)  ! unlock passes on what is complete
      call lockflight_unlock(mutex)
    end do
  else
    seen = 0
    reads = 0
    do while (seen(1) < versions)
      call lockflight_lock_shared(mutex)
      call lockflight_get(table, 0, 0, seen)
      call lockflight_unlock_shared(mutex)
      if (any(seen /= seen(1))) error stop "read a table that is half changed"
      reads = reads + 1
    end do
    if (lockflight_rank(me) == 1) &
      print "(a, i0, a)", "rank 1 read the table ", reads, " times, always whole"
  end if

  call lockflight_leave(me)
  call MPI_Finalize(error)
end program
