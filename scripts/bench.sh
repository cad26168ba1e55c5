#!/bin/sh
# bench.sh runs the benchmark, and writes what it measured, with the machine, the
# versions, the commit and the command, to docs/bench/DATE, or with -scale to
# docs/bench/DATE-scale. A part of it, or its quick form, is printed.
#
#   scripts/bench.sh [ARGUMENT...]   as systest/bench takes them
set -eu
cd "$(dirname "$0")/../systest/bench"
out="../../docs/bench/$(date -u +%Y-%m-%d)"
case " $* " in
*" -quick "* | *" -only "* | *" -peers "* | *" -list "* | *" -out "*) ;;
*" -scale "*) set -- -out "$out-scale" "$@" ;;
*) set -- -out "$out" "$@" ;;
esac
exec go run . -commit "$(git describe --always --dirty)" "$@"
