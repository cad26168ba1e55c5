#!/bin/sh
# with-stream.sh NAME COMMAND [ARG...] does what with-lock.sh does, by a stream: the server
# renews the lease, and this script reads a line every few seconds. Do not let it say direct=1:
# curl has the connection, and its end is not that of the command.
# Where a proxy may keep lines back, use with-lock.sh.
#
#   HOLDFAST_URLS="http://127.0.0.1:7420" TTL=30 WAIT=60 ./with-stream.sh orders/42 ./book-orders
#
# Variables and statuses are those of with-lock.sh; TTL is 12 or more. docs/reference/hold-stream.md
# has the lines, and the rule: whoever hears nothing for a third of the TTL, or 10 seconds,
# has lost the lock. (curl's --speed-time would notice that about 6 seconds too late.)
# A second of it is for the command to stop in.
set -u
. "$(dirname "$0")/holdfast.sh"
[ "$TTL" -ge 12 ] || fail 64 invalid "TTL=$TTL: want 12 or more: the lines of a shorter lease would look late"
HOLDFAST_NAME=$1
shift
name=$(quote "$HOLDFAST_NAME")
command=$1
key=$(new_key)
quiet=$((TTL / 3))
[ "$quiet" -le 10 ] || quiet=10
quiet=$((quiet - 1))

# cancel leaves the queue, and gives back what may have been granted without our knowing.
cancel() { ask POST /v1/leases/release "{\"name\":\"$name\"}" 2 "$key" >/dev/null; }

# follow reads streams until the lock is lost or released, at one server after the other,
# and hands the first line that decides to the script. A timer stands until the next line.
follow() {
	trap 'kill $curl $old $timer 2>/dev/null; exit' TERM
	exec 3>"$dir/decided"
	curl='' old='' token=''
	start_timer "$quiet" 3>&-
	while :; do
		for url in $HOLDFAST_URLS; do
			headers "$key" | curl -s -K - --no-buffer --connect-timeout 2 "$url/v1/leases?hold=1" \
				-d "{\"name\":\"$name\",$(holder "$command")\"ttl_ms\":$((TTL * 1000)),\"wait_ms\":$((WAIT * 1000))}" >"$dir/lines" 3>&- &
			curl=$!
			while read -r line || [ -n "$line" ]; do
				heard
			done <"$dir/lines"
			wait "$curl"
			refuses $? || first=''
		done
		[ -z "$first" ] || over
		sleep 1
	done
}

# heard does what a line says.
heard() {
	case $(field event "$line") in
	queued | ping | acquired)
		old=$timer
		start_timer "$quiet" 3>&-
		kill "$old"
		;;
	moved) return ;; # the stream ends: on with the same key, at the next server
	lost | released) over ;;
	refused) decide ;;
	*)
		case $(field status "$line") in
		429 | 502 | 503 | 504) return ;; # the same request may succeed elsewhere
		*) decide ;;
		esac
		;;
	esac
	case $line in
	*'"event":"acquired"'*)
		[ -n "$token" ] || echo "$line" >&3
		token=${token:-$(field fencing_token "$line")}
		[ "$token" = "$(field fencing_token "$line")" ] || over
		;;
	esac
}

# decide ends the streams by a refusal.
decide() {
	[ -n "$token" ] || echo "$line" >&3
	over
}

# over ends the streams, and the work if there is any.
over() {
	[ -z "$token" ] || kill -USR1 "$main"
	kill "$curl" "$timer" 2>/dev/null
	exit
}

dir=$(mktemp -d) && mkfifo "$dir/lines" "$dir/decided" || exit 70
trap 'lost=1; stop "$job"; [ -n "$job" ] || kill "$renewer"' USR1
trap interrupted TERM INT HUP
trap 'kill $renewer $guard 2>/dev/null; rm -r "$dir"' EXIT
follow &
renewer=$!
start_guard
read -r answer <"$dir/decided" || answer=''
case $answer in
*'"event":"acquired"'*) ;;
*'"code":"lock-held"'*) fail 75 lock-held "$(field detail "$answer")" ;;
'') cancel; fail 69 unavailable "no server has answered: $HOLDFAST_URLS" ;;
*) fail 76 "$(field code "$answer")" "$(field detail "$answer")" ;;
esac
run_under_lease "$@"
ask POST /v1/leases/release "{$lease}" 5 >/dev/null
exit "$code"
