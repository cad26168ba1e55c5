# What the scripts beside this one share. They read it with ".".

TTL=${TTL:-30} WAIT=${WAIT:-0}
main=$$ job='' lost='' timer='' renewer='' guard='' comes_back='' first=yes

# fail STATUS CODE TEXT ends the script.
fail() {
	echo "holdfast: $2: $3" >&2
	exit "$1"
}

for url in ${HOLDFAST_URLS:-none}; do
	case $url in
	http://?* | https://?*) ;;
	*) fail 64 invalid "HOLDFAST_URLS: \"$url\" is not a URL of a holdfast server: want http://HOST:PORT" ;;
	esac
done
[ "$TTL" -ge 1 ] 2>/dev/null && [ "$TTL" -le 3600 ] || fail 64 invalid "TTL=$TTL: want seconds, from 1 to 3600"

# holder COMMAND prints who takes the lock, as a field of a request.
holder() {
	printf '"holder":{"host":"%s","pid":%s,"program":"%s"},' "$(quote "$(uname -n)")" "$$" "$(quote "$(basename -- "$1")")"
}

# quote TEXT prints it as it stands in JSON between quotes.
quote() { printf '%s' "$1" | sed 's/[\\"]/\\&/g'; }

# escape TEXT prints it as it stands in a path.
escape() { printf '%s' "$1" | od -An -tx1 | tr -d '\n' | tr ' ' %; }

# field NAME ANSWER prints a text or a number of an answer.
field() {
	printf '%s' "$2" | sed -n "s/\\\\\"/'/g; s/.*\"$1\":\"\([^\"]*\).*/\1/p; s/.*\"$1\":\([0-9]*\).*/\1/p"
}

# status ANSWER prints the status of HTTP.
status() { printf '%s' "$1" | tail -n 1; }

# headers [KEY] prints what curl reads as its configuration, so that no other user sees
# the token among its arguments.
headers() {
	echo 'header = "Content-Type: application/json"'
	[ -z "${1:-}" ] || echo "header = \"Idempotency-Key: $1\""
	[ -z "$comes_back" ] || echo 'header = "Prefer: respond-async"'
	[ -z "${HOLDFAST_TOKEN:-}" ] || echo "header = \"Authorization: Bearer $HOLDFAST_TOKEN\""
}

# ask METHOD PATH BODY SECONDS [KEY] asks one server after the other until one has
# answered, and prints the answer, and its status on a line. A request may be repeated:
# the servers know it by the lease ID, or by its key. If all refuse the first request's
# connection, that is an error at once: most likely a URL is wrong.
ask() {
	ask_until=$(($(date +%s) + $4))
	while :; do
		for url in $HOLDFAST_URLS; do
			answer=$(headers "${5:-}" | curl -s -K - -X "$1" --connect-timeout 2 --max-time "$4" -w '\n%{http_code}' -d "$3" "$url$2")
			refuses $? || first=''
			case $(status "$answer") in
			429 | 502 | 503 | 504 | 000 | '') ;; # the same request may succeed, here or elsewhere
			*)
				printf '%s\n' "$answer"
				return
				;;
			esac
		done
		[ -z "$first" ] && [ "$(date +%s)" -lt "$ask_until" ] || return 1
		sleep 1
	done
}

# refuses STATUS reports whether curl has ended because no server has taken the request: the
# port is closed, or the host unknown.
refuses() { [ "$1" = 6 ] || [ "$1" = 7 ]; }

# refused ANSWER ends the script because of a refusal.
refused() {
	case $(status "$1") in
	'' | 000) fail 69 unavailable "no server has answered: $HOLDFAST_URLS" ;;
	409) fail 75 "$(field code "$1")" "$(field detail "$1")" ;;
	*) fail 76 "$(field code "$1")" "$(field detail "$1")" ;;
	esac
}

# interrupted ends the command, or the wait for the lock.
interrupted() {
	stop "$job"
	[ -n "$job" ] || { cancel; exit 75; }
}

# new_key prints an Idempotency-Key.
new_key() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }

# take PATH FIELDS asks for a lease, and waits in the queue. Then $answer has it, or the
# result of do-once work.
take() {
	key=$(new_key)
	trap 'lost=1; stop "$job"' USR1
	trap interrupted TERM INT HUP
	trap 'kill $timer $renewer $guard 2>/dev/null' EXIT
	until=$(($(date +%s) + WAIT))
	while :; do
		# A short wait at a time: the deadline counts from before the request.
		piece=$((until - $(date +%s))) comes_back=''
		# Without that a wait that ends without the lock leaves no place in the queue.
		[ "$piece" -le $((TTL / 3)) ] || piece=$((TTL / 3)) comes_back=yes
		[ "$piece" -ge 0 ] || piece=0
		start_timer
		answer=$(ask POST "$1" "{$2\"ttl_ms\":$((TTL * 1000)),\"wait_ms\":$((piece * 1000))}" $((piece + 15)) "$key")
		comes_back=''
		[ -z "$answer" ] || first=''
		case $(status "$answer") in
		200 | 201)
			[ -n "$lost" ] || return # else the answer came too late
			lost=''
			;;
		202) kill "$timer" ;; # a place in the queue, which the next request with this key keeps
		*)
			[ -n "$answer" ] || cancel
			refused "$answer"
			;;
		esac
	done
}

# start_timer [SECONDS] starts what tells us of a loss: after 0.85 of the TTL. It is
# started before a request is sent, so that the store counts longer than we do. A tenth is
# for clocks that are slewed, and a twentieth for the command to stop in.
start_timer() {
	(
		trap 'kill $!; exit' TERM
		sleep "${1:-$((TTL * 85 / 100))}" &
		wait && kill -USR1 "$main"
	) >/dev/null 2>&1 &
	timer=$!
}

# run_under_lease COMMAND [ARG...] runs a command while the lease in $answer is renewed,
# and sets $code to its status.
run_under_lease() {
	id=$(field lease_id "$answer")
	HOLDFAST_FENCING_TOKEN=$(field fencing_token "$answer")
	lease="\"name\":\"$name\",\"lease_id\":\"$id\",\"fencing_token\":$HOLDFAST_FENCING_TOKEN"
	export HOLDFAST_NAME HOLDFAST_FENCING_TOKEN
	[ -n "$renewer" ] || { # else a stream does that
		renew "$timer" &
		renewer=$!
	}
	exec 3<&0 # what is in the background has no input of its own
	in_group "$@" <&3 3<&- &
	job=$!
	start_guard
	while :; do
		wait "$job"
		code=$?
		kill -0 "$job" 2>/dev/null || break # else it was a signal to us
	done
	kill "$renewer" "$guard"
	[ -z "$lost" ] || fail 79 lost "the command was stopped"
}

# start_guard starts what ends the command, and then the renewal, if this script is killed
# and cannot do it by itself. One that was started before ends.
start_guard() {
	[ -z "$guard" ] || kill "$guard"
	(
		trap 'kill $!; exit' TERM
		while alive; do
			sleep 1 &
			wait $!
		done
		[ -z "$job" ] || { stop "$job"; sleep 2; }
		kill "$renewer"
	) >/dev/null 2>&1 3<&- &
	guard=$!
}

# alive reports whether this script runs: one that was killed may stay in the list of
# processes, as a zombie.
alive() {
	kill -0 "$main" || return 1
	case $(ps -o stat= -p "$main") in Z*) return 1 ;; esac
}

# renew TIMER renews the lease. A timer stands until a later renewal was answered.
renew() {
	trap 'kill $old $! 2>/dev/null; exit' TERM
	old=$1
	while sleep $((TTL / 3)) & wait $!; do
		start_timer
		answer=$(ask POST /v1/leases/renew "{$lease,\"ttl_ms\":$((TTL * 1000))}" $((TTL / 6 + 1)))
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
