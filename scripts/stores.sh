#!/bin/sh
# stores.sh runs the engine's tests on servers of Redis and Valkey that other releases of
# Debian have: it unpacks them below .cache/stores, with their libraries, and installs
# nothing. The last lines have what passed, for the table in SUPPORT.md. It needs Debian.
#
#   scripts/stores.sh [ARGUMENT...]   as go test takes them, such as -run Conformance
set -eu
cd "$(dirname "$0")/.."
cache=$PWD/.cache/stores
mirror=$(sed -nE 's/^(deb (\[[^]]*\] )?|URIs: )(https?:[^ ]*\/debian)\/?( .*)?$/\3/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -n 1)
failed=0

# unpack NAME RELEASES PACKAGE: with a separate apt, which knows these releases only and
# believes that nothing is installed.
unpack() {
	at=$cache/$1
	[ ! -x "$at/bin/redis-server" ] || return 0
	mkdir -p "$at/lists/partial" "$at/cache/archives/partial" "$at/root" "$at/bin"
	: >"$at/sources.list"
	for release in $2; do
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror:?apt has no mirror of Debian} $release main" >>"$at/sources.list"
	done
	apt="apt-get -qq -y -o Dir::Etc::SourceList=$at/sources.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=$at/lists
		-o Dir::State::status=/dev/null -o Dir::Cache=$at/cache -o Debug::NoLocking=true"
	# shellcheck disable=SC2086 # several words
	$apt update && $apt --download-only --no-install-recommends -t "${2##* }" install "$3"
	for package in "$at"/cache/archives/*.deb; do dpkg-deb --extract "$package" "$at/root"; done
	rm -rf "$at/cache" "$at/lists"
	loader=$(find "$at/root/lib" "$at/root/usr/lib" "$at/root/lib64" "$at/root/usr/lib64" -name 'ld-linux*.so.*' 2>/dev/null | head -n 1)
	libraries=$at/root/lib/$(uname -m)-linux-gnu:$at/root/usr/lib/$(uname -m)-linux-gnu
	for program in redis-server redis-sentinel; do
		printf '#!/bin/sh\nexec "%s" --argv0 %s --library-path "%s" "%s" "$@"\n' \
			"$loader" "$program" "$libraries" "$at/root/usr/bin/$3" >"$at/bin/$program"
		chmod +x "$at/bin/$program"
	done
}

passed=
try() { # try NAME, and arguments: the engine's tests on that server, or on the machine's
	name=$1
	shift
	path=$cache/$name/bin:$PATH
	version=$(PATH=$path redis-server --version | sed -n 's/^\(.*\) server v=\([^ ]*\).*/\1 \2/p')
	echo "stores: $version"
	if (cd redislock && PATH=$path go test -count=1 -timeout 20m "$@" .); then
		passed="$passed$version on $(date -u +%Y-%m-%d)
"
	else
		failed=1
	fi
}

unpack redis-8 trixie redis-server
unpack valkey-8.1 trixie valkey-server
unpack valkey-8.0 "bookworm bookworm-backports" valkey-server
for name in here redis-8 valkey-8.1 valkey-8.0; do
	try "$name" "$@"
done
printf 'stores: passed:\n%s' "$passed"
exit $failed
