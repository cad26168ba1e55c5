#!/bin/sh
# bench-before.sh measures an earlier commit and this tree in turns, and prints the ratios.
#
#   scripts/bench-before.sh COMMIT [ROUNDS [ARGUMENT...]]   arguments as systest/bench takes them
#   scripts/bench-before.sh HEAD~1 15 -only 'throughput|latency-split' -peers 'holdfast$'
#
# The benchmark of this tree measures both; the earlier library must have the API that it
# uses.
set -eu
commit=$(git rev-parse --verify "$1^{commit}")
rounds=${2:-7}
[ $# -lt 2 ] && shift || shift 2
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'git worktree remove --force "$dir/tree" 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
git worktree add --quiet --detach "$dir/tree" "$commit"
rm -rf "$dir/tree/systest/bench"
cp -R systest/bench "$dir/tree/systest/bench"
(cd "$dir/tree/systest/bench" && go build -o "$dir/before" .)
(cd systest/bench && go build -o "$dir/after" .)
for round in $(seq "$rounds"); do
	for tree in before after; do
		echo "round $round of $rounds, $tree" >&2
		"$dir/$tree" -rounds 1 -commit "$tree" -out "$dir/run-$tree" "$@" 2>"$dir/log" || { cat "$dir/log" >&2; exit 1; }
	done
done
"$dir/after" -out "$dir/run-after" -before "$dir/run-before"
