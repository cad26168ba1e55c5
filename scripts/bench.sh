#!/bin/sh
# bench.sh runs the benchmark, and writes what it measured, with the machine, the
# versions, the commit and the command, to docs/bench/DATE. A part of it, or its
# quick form, is printed.
#
#   scripts/bench.sh [ARGUMENT...]   as systest/bench takes them
set -eu
cd "$(dirname "$0")/../systest/bench"
case " $* " in
*" -quick "* | *" -only "* | *" -peers "* | *" -list "* | *" -out "*) ;;
*) set -- -out "../../docs/bench/$(date -u +%Y-%m-%d)" "$@" ;;
esac
exec go run . -commit "$(git describe --always --dirty)" "$@"
