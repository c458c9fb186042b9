#!/bin/bash
# Makes an etcd and three hosts on this machine, each with an agent, and shows what locks do there.
#
# usage: three_hosts.sh [LOCKFLIGHT]
#
# LOCKFLIGHT is the program, if it is not on the PATH. A host is a folder for its domain files; what
# real hosts need is in docs/cluster.md. Everything is removed at the end.
set -euo pipefail

readonly lockflight="${1:-lockflight}"
work=$(mktemp -d)
readonly work
readonly etcd=http://127.0.0.1:23479
pids=()

finish() {
  kill "${pids[@]}" 2> /dev/null || true
  wait 2> /dev/null || true
  for host in 1 2 3; do rm -rf "/dev/shm/lockflight-example-$$-$host"; done
  rm -rf "$work"
}
trap finish EXIT

# Runs a command on one of the hosts.
on() {
  local host="$1"
  shift
  LOCKFLIGHT_DOMAINS="/dev/shm/lockflight-example-$$-$host" "$@"
}

etcd --data-dir "$work/etcd" --listen-client-urls "$etcd" --advertise-client-urls "$etcd" \
  --listen-peer-urls http://127.0.0.1:23480 > "$work/etcd.log" 2>&1 &
pids+=($!)
until etcdctl --endpoints "$etcd" endpoint health > /dev/null 2>&1; do sleep 0.1; done

for host in 1 2 3; do
  mkdir -m 0700 "/dev/shm/lockflight-example-$$-$host"
  on "$host" "$lockflight" agent --etcd "$etcd" --domain jobs --host "host$host" --ttl 3 \
    --listen "127.0.0.1:$((7420 + host))" --advertise "127.0.0.1:$((7420 + host))" \
    --state "$work/state$host" 2> "$work/agent$host.log" &
  pids+=($!)
done
for host in 1 2 3; do
  until on "$host" "$lockflight" agent status --domain jobs > /dev/null 2>&1; do sleep 0.1; done
done
on 1 "$lockflight" agent status --domain jobs

echo
echo "Three hosts count to 30 under one lock:"
echo 0 > "$work/count"
for host in 1 2 3; do
  (for _ in {1..10}; do
    on "$host" "$lockflight" run --domain etcd:jobs count -- \
      sh -c 'n=$(cat "$0"); echo $((n + 1)) > "$0"' "$work/count"
  done) &
  counters+=($!)
done
wait "${counters[@]}"
cat "$work/count"

echo
echo "Host 1 holds a lock; host 2 sees who:"
on 1 "$lockflight" run --domain etcd:jobs report -- sleep 1 &
sleep 0.3
on 2 "$lockflight" who report --domain etcd:jobs
