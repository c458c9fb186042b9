!> The part of module lockflight that calls the library of an MPI. It names communicators by their
!> integers alone, so that it is compiled once for all MPIs, and without any.
submodule (lockflight) lockflight_mpi
  implicit none

  interface
    function c_join_mpi(comm, config, me) bind(C, name="lockflight_join_mpi_fint") result(code)
      import :: c_config, c_int, c_ptr
      integer(c_int), value :: comm
      type(c_config), intent(in) :: config
      type(c_ptr), intent(inout) :: me
      integer(c_int) :: code
    end function
    function c_leave(me) bind(C, name="lockflight_leave") result(code)
      import :: c_int, c_ptr
      type(c_ptr), value :: me
      integer(c_int) :: code
    end function
  end interface

contains

  module subroutine lockflight_join_mpi(comm, me, config, stat)
    integer, intent(in) :: comm
    type(lockflight_participant), intent(out) :: me
    type(lockflight_config), intent(in), optional :: config
    integer, intent(out), optional :: stat
    type(prepared_config), target :: with
    call lockflight_detail_prepare(with, config)
    call lockflight_detail_conclude(c_join_mpi(int(comm, c_int), with%c, me%handle), stat)
  end subroutine

  module subroutine lockflight_leave(me, stat)
    type(lockflight_participant), intent(inout) :: me
    integer, intent(out), optional :: stat
    integer(c_int) :: code
    code = c_leave(me%handle)
    if (code == lockflight_ok) me%handle = c_null_ptr
    call lockflight_detail_conclude(code, stat)
  end subroutine

end submodule
