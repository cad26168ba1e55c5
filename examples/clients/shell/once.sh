#!/bin/sh
# once.sh KEY COMMAND [ARG...] runs a command unless one has run under this key before,
# and has ended with status 0. Whoever calls it while another runs the command waits for
# the end, for WAIT seconds.
#
#   WAIT=60 ./once.sh invoices/2026-11 ./send-invoices
#
# What it needs, and the rest of what it says and does, is as in with-lock.sh.
set -u
. "$(dirname "$0")/holdfast.sh"
HOLDFAST_NAME=$1
shift
name=$(quote "$HOLDFAST_NAME")
path=/v1/once/$(escape "$HOLDFAST_NAME")
cancel() { :; } # a place in the queue ends by itself

take "$path" "$(holder "$1")"
[ "$(status "$answer")" = 201 ] || exit 0 # it was done
run_under_lease "$@"
if [ "$code" = 0 ]; then
	answer=$(ask PUT "$path/result" "{\"lease_id\":\"$id\",\"result\":{\"status\":0}}" 15)
	[ "$(status "$answer")" = 204 ] || refused "$answer"
else
	ask POST "$path/fail" "{\"lease_id\":\"$id\"}" 2 >/dev/null
fi
exit "$code"
