#!/bin/sh
# soak.sh runs the long form of the fault tests, and writes what they measured
# to a file.
#
#   scripts/soak.sh [LENGTH [FILE]]   30m and soak.md unless said
set -eu
cd "$(dirname "$0")/../systest"
length=${1:-30m}
report=$(cd .. && pwd)/${2:-soak.md}

{
	echo "# A soak of $length"
	echo
	echo "$(date -u +%Y-%m-%d), $(git describe --always --dirty), $(go env GOVERSION) on $(go env GOOS)/$(go env GOARCH), $(getconf _NPROCESSORS_ONLN) processors, redis-server $(redis-server --version | sed 's/.*v=\([^ ]*\).*/\1/')."
	echo
	echo "| fault | must | saw | test |"
	echo "|---|---|---|---|"
} >"$report"

failed=0
go test -count=1 -timeout 0 -soak "$length" -report "$report" . || failed=1
go test -count=1 -timeout 0 ./pgtest -soak "$length" -report "$report" || failed=1
(cd ../cmd/holdfast && go test -count=1 -timeout 0 -parallel 4 -run TestJobDiesWithItsLock . -soak "$length" -report "$report") || failed=1
(cd ../sqlitelock && go test -count=1 -timeout 0 -run 'OneFile|BindMount' .) || failed=1
(cd .. && go test -count=1 -timeout 0 ./httplock/server -run '^$' -fuzz FuzzRequest -fuzztime 30s) || failed=1
go test -count=1 -timeout 0 ./sim -run Sim -seeds 10000 || failed=1
go test -count=1 -timeout 0 ./quorumsim -seeds 20000 || failed=1
go test -count=1 -timeout 0 ./model/... || failed=1
cat "$report"
exit $failed
