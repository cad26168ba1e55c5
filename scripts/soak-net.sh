#!/bin/sh
# soak-net.sh runs the tests on networks whose hosts are network namespaces, and
# writes what they measured to a file. It fails where hosts cannot be made.
#
#   scripts/soak-net.sh [LENGTH [FILE]]   12m and soak-net.md unless said
set -eu
cd "$(dirname "$0")/../systest"
length=${1:-12m}
report=$(cd .. && pwd)/${2:-soak-net.md}

fail() {
	echo "holdfast: $*" >&2
	exit 1
}
[ "$(uname)" = Linux ] || fail "the tests on networks need Linux: their hosts are network namespaces"
command -v ip >/dev/null || fail "the tests on networks need the ip program: apt-get install iproute2"
[ -c /dev/net/tun ] || fail "the tests on networks need /dev/net/tun: modprobe tun, or give it to the container"
[ -w /dev/net/tun ] || fail "the tests on networks need to open /dev/net/tun, which this user may not: sudo make soak-net"
unshare --net true 2>/dev/null || fail "the tests on networks need root or CAP_NET_ADMIN and CAP_SYS_ADMIN: sudo make soak-net, or unshare --user --map-root-user make soak-net"

{
	echo "# A soak of $length on networks"
	echo
	echo "$(date -u +%Y-%m-%d), $(git describe --always --dirty), $(go env GOVERSION) on $(go env GOOS)/$(go env GOARCH), $(getconf _NPROCESSORS_ONLN) processors, redis-server $(redis-server --version | sed 's/.*v=\([^ ]*\).*/\1/')."
	echo
	echo "| fault | must | saw | test |"
	echo "|---|---|---|---|"
} >"$report"

failed=0
go test -tags soaknet -count=1 -timeout 5m -parallel 6 ./net || failed=1
go test -tags soaknet -count=1 -timeout 1h -parallel 4 ./nettest -soak "$length" -report "$report" || failed=1
cat "$report"
exit $failed
