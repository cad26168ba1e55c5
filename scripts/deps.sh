#!/bin/sh
# deps.sh finds what the tests need beside Go, or installs it: redis-server,
# PostgreSQL, MariaDB, and a C compiler for the race detector.
set -eu

have() { command -v "$1" >/dev/null 2>&1; }

# Debian and Homebrew keep PostgreSQL's server programs off the PATH.
have_postgres() {
	have initdb && have postgres && return
	for dir in /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin; do
		[ -x "$dir/initdb" ] && return
	done
	return 1
}
have_mariadb() { { have mariadbd || [ -x /usr/sbin/mariadbd ]; } && have mariadb-install-db; }

missing=
have redis-server || missing="$missing redis-server"
have_postgres || missing="$missing postgresql"
have_mariadb || missing="$missing mariadb-server"
have cc || have gcc || missing="$missing gcc"
[ -n "$missing" ] || exit 0

if have apt-get && [ "$(id -u)" = 0 ]; then
	# The tests start servers of their own; Debian must not start one as well.
	apt-get update -qq
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		$(echo "$missing" | sed 's/gcc/gcc libc6-dev/')
elif have brew && [ "${missing% gcc}" = "$missing" ]; then
	brew install $(echo "$missing" | sed 's/redis-server/redis/; s/postgresql/postgresql@17/; s/mariadb-server/mariadb/')
else
	echo "holdfast: the tests need$missing; install it (Debian: apt-get install redis-server postgresql mariadb-server gcc libc6-dev, macOS: brew install redis postgresql@17 mariadb; xcode-select --install)" >&2
	exit 1
fi
