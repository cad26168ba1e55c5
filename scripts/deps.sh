#!/bin/sh
# deps.sh finds what the tests need beside Go, or installs it: redis-server,
# PostgreSQL, PgBouncer and MariaDB, which the tests start for themselves, groff, ps, flock of
# util-linux, which holdfast run is compared with, vi, which it runs, systemd-analyze,
# which reads the units of docs/recipes.md, promtool of Prometheus, which checks the
# alert rules of promlock, nginx and HAProxy, which stand between clients and servers,
# Python, Node, a JDK and curl for the clients in other languages, and a C compiler for
# the race detector.
#
#   scripts/deps.sh       for make test-all
#   scripts/deps.sh web   for make test-web: redis-server, nginx and a browser
#   scripts/deps.sh release
#                         for make release and scripts/release.sh: what makes, checks and
#                         signs packages, and the loader of another C library
set -eu

# have looks on the PATH and where Debian and Homebrew keep the programs of
# servers.
have() {
	command -v "$1" >/dev/null 2>&1 && return
	for program in /usr/sbin/"$1" /usr/lib/postgresql/*/bin/"$1" /opt/homebrew/opt/postgresql@*/bin/"$1"; do
		[ -x "$program" ] && return
	done
	return 1
}

debian=
brew=
need() { # need PROGRAM DEBIAN-PACKAGES HOMEBREW-PACKAGE
	have "$1" && return
	debian="$debian $2"
	brew="$brew $3"
}
need redis-server redis-server redis
[ "${1:-}" = release ] || need nginx nginx nginx
if [ "${1:-}" = release ]; then
	need ssh-keygen openssh-client openssh
	need dpkg-deb dpkg dpkg
	need lintian lintian lintian
	need rpmbuild rpm rpm
	[ "$(uname)" != Linux ] || need systemd-sysusers systemd systemd
	[ -e "/lib/ld-musl-$(uname -m).so.1" ] || [ "$(uname)" != Linux ] || need ld-musl musl musl
elif [ "${1:-}" = web ]; then
	need chromium-headless-shell chromium-headless-shell chromium
else
	need postgres postgresql postgresql@17
	need pgbouncer pgbouncer pgbouncer
	need mariadbd mariadb-server mariadb
	need promtool prometheus prometheus
	need haproxy haproxy haproxy
	need groff groff-base groff
	need python3 python3 python
	need node nodejs node
	need javac default-jdk-headless openjdk
	need curl curl curl
	[ "$(uname)" != Linux ] || need ps procps procps
	[ "$(uname)" != Linux ] || need flock util-linux util-linux
	[ "$(uname)" != Linux ] || need systemd-analyze systemd systemd
	[ "$(uname)" != Linux ] || need vi vim-tiny vim
	have cc || need gcc "gcc libc6-dev" gcc
fi
[ -n "$debian" ] || exit 0

if have apt-get && [ "$(id -u)" = 0 ]; then
	# Each test starts its own server. RUNLEVEL keeps Debian from starting those that it
	# installs now; none of them starts at boot either.
	enabled() { find /etc/systemd/system -path '*.wants/*' -name '*.service' 2>/dev/null | sort; }
	before=$(enabled)
	apt-get update -qq
	# shellcheck disable=SC2086 # several packages
	RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $debian
	for unit in $(enabled); do
		case "$before" in *"$unit"*) ;; *) rm "$unit" ;; esac
	done
elif have brew; then
	# shellcheck disable=SC2086
	brew install $brew
else
	echo "holdfast: the tests need more than is here; install it with: apt-get install$debian (or: brew install$brew)" >&2
	exit 1
fi
