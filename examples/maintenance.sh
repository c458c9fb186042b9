#!/bin/sh
# Keeps the lock 'backup' while a command runs that must not meet a backup, and frees it at the end.
# Unlike 'lockflight run', the lock is held by a process of its own: it stays held if this script is
# killed, until its time is over or 'lockflight release' is called by hand with the token.
#
# usage: maintenance.sh COMMAND [ARGUMENT...]
set -eu

token=$(lockflight hold --timeout 600 backup --for 2h --note "maintenance: $1")
echo "the token is $token"
trap 'lockflight release backup --token "$token"' EXIT
lockflight who backup
"$@"
