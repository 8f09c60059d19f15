#!/usr/bin/env bash
# Several hosts on one Linux machine: each a network namespace behind a full-duplex link of its own, all on
# one switch (a bridge). Bandwidth is the kernel's token bucket, delay is whatever the loopback costs.
#   hosts.sh up N RATE       hosts 0 .. N-1 with addresses 10.77.0.1 .., RATE as tc writes it: 200mbit, 1gbit
#   hosts.sh rate I RATE     another rate for the link of host I (a slow node)
#   hosts.sh run I COMMAND   COMMAND in host I
#   hosts.sh down            removes them all
# Needs root and iproute2. Exit 2: wrong usage, or something is missing.
set -euo pipefail
prefix=lockstep subnet=10.77.0
switch=${prefix}-sw

fail() {
  echo "hosts: $*" >&2
  exit 2
}

whole() { [[ $1 =~ ^[1-9][0-9]{0,2}$|^0$ ]]; }
rated() { [[ $1 =~ ^[1-9][0-9]*(kbit|mbit|gbit)$ ]] || fail "\"$1\" is no rate; write it like 200mbit"; }
known() { whole "$1" && [ -e "/run/netns/$prefix$1" ] || fail "there is no host $1; hosts.sh up N RATE makes them"; }

# A bucket lets so much through at once after a pause, and one that is too small for what comes between two looks of the
# kernel lets less through than its rate. It looks late where hosts share cores: 1 ms then, else a quarter of that. Two
# packets must fit.
bucket_of() {
  local bytes
  case $1 in
    *kbit) bytes=$((${1%kbit} / 8)) ;;
    *mbit) bytes=$((${1%mbit} * 125)) ;;
    *gbit) bytes=$((${1%gbit} * 125000)) ;;
  esac
  [ "$(ip netns list | grep -c "^$prefix")" -gt "$(nproc)" ] || bytes=$((bytes / 4))
  echo $((bytes > 32000 ? bytes : 32000))
}

# The kernel takes a packet larger than the bucket apart, and each piece costs it a timer: eight hosts at 200 Mbit/s
# kept two cores from communicating. Two packets must fit, so that one that is looked at late costs nothing.
largest_packet_of() {
  local half=$(($(bucket_of "$1") / 2))
  echo $((half < 65536 ? half : 65536))
}

# Both ends are limited: were only the sender's, three senders could fill one receiver's link three times.
limit() {
  local bucket=(tbf rate "$2" burst "$(bucket_of "$2")" latency 400ms)
  ip -n "$prefix$1" link set eth0 gso_max_size "$(largest_packet_of "$2")"
  ip netns exec "$prefix$1" tc qdisc replace dev eth0 root "${bucket[@]}"
  tc qdisc replace dev "$prefix-v$1" root "${bucket[@]}"
}

down() {
  local name
  for name in $(ip netns list | awk -v prefix="$prefix" '$1 ~ "^" prefix "[0-9]+$" { print $1 }'); do
    ip netns pids "$name" | xargs -r kill -KILL 2>/dev/null || true
    # A namespace goes some time after its last process; its link must not wait for that.
    ip link del "$prefix-v${name#"$prefix"}" 2>/dev/null || true
    ip netns del "$name"
  done
  ip link del "$switch" 2>/dev/null || true
}

up() {
  local count=$1 rate=$2 host
  ip link show "$switch" >/dev/null 2>&1 && fail "there are hosts already; hosts.sh down removes them"
  trap down ERR INT TERM
  ip link add "$switch" type bridge
  ip link set "$switch" up
  for ((host = 0; host < count; host++)); do
    ip netns add "$prefix$host"
    ip link add "$prefix-v$host" type veth peer name eth0 netns "$prefix$host"
    ip link set "$prefix-v$host" master "$switch" up
    ip -n "$prefix$host" addr add "$subnet.$((host + 1))/24" dev eth0
    ip -n "$prefix$host" link set eth0 up
    ip -n "$prefix$host" link set lo up
  done
  for ((host = 0; host < count; host++)); do limit "$host" "$rate"; done
}

[ $# -gt 0 ] || fail "$(sed -n '4,7s/^# *//p' "${BASH_SOURCE[0]}")"
command=$1
shift
[ "$(id -u)" -eq 0 ] || fail "making network namespaces needs root"
command -v tc >/dev/null || fail "ip and tc are missing: apt-get install iproute2"
case "$command:$#" in
  up:2)
    whole "$1" && [ "$1" -ge 1 ] && [ "$1" -le 64 ] || fail "\"$1\" hosts; take 1 to 64"
    rated "$2"
    up "$1" "$2"
    ;;
  rate:2)
    known "$1"
    rated "$2"
    limit "$1" "$2"
    ;;
  down:0) down ;;
  run:0 | run:1) fail "which host, and which command?" ;;
  run:*)
    known "$1"
    host=$1
    shift
    exec ip netns exec "$prefix$host" "$@"
    ;;
  *) fail "use: up N RATE, rate I RATE, run I COMMAND, down" ;;
esac
