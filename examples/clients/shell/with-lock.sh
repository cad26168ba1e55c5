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
# server has answered; 76: a server refuses; 79: the lock was lost; 64: a wrong variable.
#
# docs/clients.md has what is guaranteed, and the rules that this file keeps.
set -u
. "$(dirname "$0")/holdfast.sh"
HOLDFAST_NAME=$1
shift
name=$(quote "$HOLDFAST_NAME")

# cancel leaves the queue, and gives back what may have been granted without our knowing.
cancel() { ask POST /v1/leases/release "{\"name\":\"$name\"}" 2 "$key" >/dev/null; }

take /v1/leases "\"name\":\"$name\",$(holder "$1")"
run_under_lease "$@"
ask POST /v1/leases/release "{$lease}" 5 >/dev/null
exit "$code"
