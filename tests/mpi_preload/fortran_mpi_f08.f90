! A program in Fortran, with the module mpi_f08, that knows nothing of the drop-in: everybody adds to
! a counter of rank 0 under exclusive locks, and looks at it under shared ones and under lock_all.
! Prints the lock that serves on the window, or nothing where it is the MPI's own.
program fortran_mpi_f08
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  use, intrinsic :: iso_fortran_env, only: int64, error_unit
  use mpi_f08
  implicit none
  integer, parameter :: rounds = 40
  integer(MPI_ADDRESS_KIND), parameter :: bytes = 64, first = 0
  type(MPI_Win) :: win
  type(MPI_Info) :: info
  type(c_ptr) :: base
  integer(int64), pointer :: counter(:)
  integer(int64), asynchronous :: seen
  integer :: rank, ranks, i
  logical :: named
  character(len=64) :: name

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
  call c_f_pointer(base, counter, [8])
  counter = 0
  call MPI_Win_fence(0, win)
  do i = 1, rounds
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win)
    call MPI_Get(seen, 1, MPI_INTEGER8, 0, first, 1, MPI_INTEGER8, win)
    call MPI_Win_flush(0, win)
    seen = seen + 1
    call MPI_Put(seen, 1, MPI_INTEGER8, 0, first, 1, MPI_INTEGER8, win)
    call MPI_Win_unlock(0, win)
  end do
  call MPI_Barrier(MPI_COMM_WORLD)

  call MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win)
  call MPI_Get(seen, 1, MPI_INTEGER8, 0, first, 1, MPI_INTEGER8, win)
  call MPI_Win_unlock(0, win)
  call check(seen)
  call MPI_Win_lock_all(0, win)
  call MPI_Get(seen, 1, MPI_INTEGER8, 0, first, 1, MPI_INTEGER8, win)
  call MPI_Win_unlock_all(win)
  call check(seen)

  call MPI_Win_get_info(win, info)
  call MPI_Info_get(info, 'lockflight_lock', len(name), name, named)
  if (rank == 0 .and. named) print '(a)', trim(name)
  call MPI_Info_free(info)
  call MPI_Win_free(win)
  call MPI_Finalize()

contains

  subroutine check(counted)
    integer(int64), intent(in) :: counted
    if (counted == int(rounds, int64) * ranks) return
    write (error_unit, '(a, i0, a, i0)') 'the counter says ', counted, ' of ', rounds * ranks
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine check

end program fortran_mpi_f08
