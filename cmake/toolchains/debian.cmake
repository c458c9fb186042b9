# Cross-compiles for another architecture of Debian with Debian's cross compiler, against the packages
# of that architecture in a folder of their own (the script `sysroot` beside this file makes it), and runs programs of that
# architecture with qemu-user. Two cache variables say what to compile for:
#
#   LOCKFLIGHT_TARGET   the GNU triplet, as in aarch64-linux-gnu
#   LOCKFLIGHT_SYSROOT  the folder with the packages of that architecture
#
# ./dev build arm64 does all of it.

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES LOCKFLIGHT_TARGET LOCKFLIGHT_SYSROOT)

string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR "${LOCKFLIGHT_TARGET}")
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_LIBRARY_ARCHITECTURE "${LOCKFLIGHT_TARGET}")
set(CMAKE_SYSROOT "${LOCKFLIGHT_SYSROOT}")

set(CMAKE_C_COMPILER "${LOCKFLIGHT_TARGET}-gcc")
set(CMAKE_CXX_COMPILER "${LOCKFLIGHT_TARGET}-g++")
set(CMAKE_Fortran_COMPILER "${LOCKFLIGHT_TARGET}-gfortran")

# Programs that the build runs are this machine's; what it compiles with and links to is the target's.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${LOCKFLIGHT_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR}
  "${LOCKFLIGHT_SYSROOT}/usr/lib/${LOCKFLIGHT_TARGET}/pkgconfig:${LOCKFLIGHT_SYSROOT}/usr/lib/pkgconfig:${LOCKFLIGHT_SYSROOT}/usr/share/pkgconfig")

set(CMAKE_CROSSCOMPILING_EMULATOR
  "qemu-${CMAKE_SYSTEM_PROCESSOR}-static;-L;${LOCKFLIGHT_SYSROOT}")
