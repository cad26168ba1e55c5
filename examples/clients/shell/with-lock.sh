#!/bin/sh
# with-lock.sh NAME COMMAND [ARG...] runs a command under a lock of a holdfast server.
# It needs curl and a POSIX shell. The command finds its fencing token in
# HOLDFAST_FENCING_TOKEN, and is stopped before another can have the lock.
#
#   export HOLDFAST_URLS="http://127.0.0.1:7420 http://127.0.0.1:7421"
#   TTL=30 WAIT=60 ./with-lock.sh orders/42 ./book-orders
#
#   HOLDFAST_URLS   the servers of the store, with spaces between
#   HOLDFAST_TOKEN  the caller's token, if the servers want one
#   TTL, WAIT       seconds: of the lease (30), and in the queue (0)
#
# It exits with the status of the command, or 75: somebody else has the lock; 69: no
# server has answered; 76: a server refuses; 79: the lock was lost.
#
# docs/clients.md has what is guaranteed, and the rules that this file keeps.
set -u
. "$(dirname "$0")/holdfast.sh"
HOLDFAST_NAME=$1
name=$(quote "$1")
shift
key=$(new_key)
job='' lost='' timer='' renewer=''
trap 'lost=1; stop "$job"' USR1
trap 'interrupted' TERM INT HUP
trap 'kill $timer $renewer 2>/dev/null' EXIT

# cancel leaves the queue, and gives back what may have been granted without our knowing.
cancel() { ask /v1/leases/release "{\"name\":\"$name\"}" 2 "$key" >/dev/null; }

# interrupted ends the command, or the wait for the lock.
interrupted() {
	stop "$job"
	[ -n "$job" ] || { cancel; exit 75; }
}

until=$(($(date +%s) + WAIT))
while :; do
	# A short wait at a time: the deadline counts from before the request.
	piece=$((until - $(date +%s)))
	[ "$piece" -le $((TTL / 3)) ] || piece=$((TTL / 3))
	[ "$piece" -ge 0 ] || piece=0
	start_timer
	answer=$(ask /v1/leases "{\"name\":\"$name\",\"ttl_ms\":$((TTL * 1000)),\"wait_ms\":$((piece * 1000))}" $((piece + 15)) "$key")
	case $(status "$answer") in
	201)
		[ -n "$lost" ] || break # else the answer came too late
		lost=''
		;;
	202)
		kill "$timer"
		[ "$(date +%s)" -lt "$until" ] || { cancel; fail 75 lock-held "somebody else has it"; }
		;;
	*)
		[ -n "$answer" ] || cancel
		refused "$answer"
		;;
	esac
done
lease="\"name\":\"$name\",\"lease_id\":\"$(field lease_id "$answer")\""
export HOLDFAST_FENCING_TOKEN HOLDFAST_NAME
HOLDFAST_FENCING_TOKEN=$(field fencing_token "$answer")

renew "$timer" &
renewer=$!
exec 3<&0 # the shell takes the input from what is in the background
in_group "$@" <&3 3<&- &
job=$!
while :; do
	wait "$job"
	code=$?
	kill -0 "$job" 2>/dev/null || break # else it was a signal to us
done
kill "$renewer"
[ -z "$lost" ] || fail 79 lost "the command was stopped"
ask /v1/leases/release "{$lease}" 5 >/dev/null
exit "$code"
