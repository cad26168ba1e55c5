#!/bin/sh
# bench.sh runs the benchmark, and writes what it measured, with the machine, the
# versions, the commit and the command, to docs/bench/DATE.
#
#   scripts/bench.sh [ARGUMENT...]   as systest/bench takes them
set -eu
cd "$(dirname "$0")/../systest/bench"
exec go run . -commit "$(git describe --always --dirty)" -out "../../docs/bench/$(date -u +%Y-%m-%d)" "$@"
