# What the scripts beside this one share. They read it with ".".

TTL=${TTL:-30} WAIT=${WAIT:-0}
main=$$

# quote TEXT prints it as it stands in JSON between quotes.
quote() { printf '%s' "$1" | sed 's/[\\"]/\\&/g'; }

# new_key prints a fresh Idempotency-Key.
new_key() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }

# field NAME ANSWER prints a text or a number of an answer.
field() {
	printf '%s' "$2" | sed -n "s/\\\\\"/'/g; s/.*\"$1\":\"\([^\"]*\).*/\1/p; s/.*\"$1\":\([0-9]*\).*/\1/p"
}

# status ANSWER prints the status of HTTP.
status() { printf '%s' "$1" | tail -n 1; }

# headers prints what curl reads as its configuration, so that no other user sees the
# token among its arguments.
headers() { # headers [KEY]
	echo 'header = "Content-Type: application/json"'
	[ -z "${1:-}" ] || echo "header = \"Idempotency-Key: $1\""
	[ -z "${HOLDFAST_TOKEN:-}" ] || echo "header = \"Authorization: Bearer $HOLDFAST_TOKEN\""
}

# ask PATH BODY SECONDS [KEY] asks one server after the other until one has answered, and
# prints the answer, and its status on a line. A request may be repeated: the servers
# know it by the lease ID, or by its key.
ask() {
	ask_until=$(($(date +%s) + $3))
	while :; do
		for url in $HOLDFAST_URLS; do
			answer=$(headers "${4:-}" | curl -s -K - --connect-timeout 2 --max-time "$3" -w '\n%{http_code}' -d "$2" "$url$1")
			case $(status "$answer") in
			429 | 502 | 503 | 504 | 000 | '') ;; # the same request may succeed, here or elsewhere
			*)
				printf '%s\n' "$answer"
				return
				;;
			esac
		done
		[ "$(date +%s)" -lt "$ask_until" ] || return 1
		sleep 1
	done
}

# fail STATUS CODE TEXT ends the script.
fail() {
	echo "holdfast: $2: $3" >&2
	exit "$1"
}

# refused ANSWER ends the script because of a refusal.
refused() {
	case $(status "$1") in
	'' | 000) fail 69 unavailable "no server has answered" ;;
	409) fail 75 "$(field code "$1")" "$(field detail "$1")" ;;
	*) fail 76 "$(field code "$1")" "$(field detail "$1")" ;;
	esac
}

# start_timer starts what tells us of a loss: after nine tenths of the TTL. It is started
# before a request is sent, so that the store counts longer than we do. The tenth is for
# clocks that differ, and for the command to stop in.
start_timer() {
	(
		trap 'kill $!; exit' TERM
		sleep $((TTL * 9 / 10)) &
		wait && kill -USR1 "$main"
	) >/dev/null 2>&1 &
	timer=$!
}

# renew TIMER renews the lease. A timer stands until a later renewal was answered.
renew() {
	trap 'kill $old $! 2>/dev/null; exit' TERM
	old=$1
	while sleep $((TTL / 3)) & wait $!; do
		start_timer
		answer=$(ask /v1/leases/renew "{$lease,\"ttl_ms\":$((TTL * 1000))}" $((TTL / 6 + 1)))
		case $(status "$answer") in
		200)
			kill "$old"
			old=$timer
			;;
		410)
			kill -USR1 "$main"
			exit
			;;
		*) kill "$timer" ;;
		esac
	done
}

# in_group COMMAND [ARG...] becomes the command, in a process group of its own if it can.
in_group() {
	# shellcheck disable=SC2093 # the second is for systems without setsid
	command -v setsid >/dev/null && exec setsid "$@"
	exec "$@"
}

# stop JOB ends a command, and what it has started if it has a group of its own.
stop() {
	[ -n "$1" ] || return 0
	kill -TERM -- "-$1" 2>/dev/null || kill -TERM "$1" 2>/dev/null
	(
		sleep 1
		kill -KILL -- "-$1" 2>/dev/null || kill -KILL "$1" 2>/dev/null
	) >/dev/null 2>&1 &
}
