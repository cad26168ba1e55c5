#!/bin/sh
# demo.sh shows what the scripts beside it can do: demo.sh URL[,URL...] COMMAND ARG...
set -eu
here=$(dirname "$0")
HOLDFAST_URLS=$(echo "$1" | tr , ' ')
export HOLDFAST_URLS TTL WAIT
TTL=12 WAIT=60
with=$here/with-lock.sh
[ -z "${STREAM:-}" ] || with=$here/with-stream.sh
case $2 in
count) # NAME FILE TIMES: add 1 to the number in a file, as others do at the same time
	for _ in $(seq "$5"); do
		# shellcheck disable=SC2016 # expanded by the command
		"$with" "$3" sh -c 'n=$(cat "$1"); echo $((n + 1)) >"$1"' sh "$4"
	done
	;;
hold) # NAME TTL: hold a lock until the input ends
	TTL=$4
	# shellcheck disable=SC2016 # expanded by the command
	"$with" "$3" sh -c 'echo "acquired $HOLDFAST_FENCING_TOKEN"; cat >/dev/null'
	echo released
	;;
run) # NAME TTL COMMAND ARG...: run a command under a lock
	name=$3 TTL=$4
	shift 4
	exec "$with" "$name" "$@"
	;;
once) # KEY VALUE: do work once, whoever else does it too
	# shellcheck disable=SC2016 # expanded by the command
	"$here/once.sh" "$3" sh -c 'echo "working $HOLDFAST_FENCING_TOKEN"'
	;;
take) # NAME: take a lock if it is free
	# shellcheck disable=SC2016 # expanded by the command
	WAIT=0 exec "$with" "$3" sh -c 'echo "acquired $HOLDFAST_FENCING_TOKEN"'
	;;
esac
