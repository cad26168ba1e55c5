#!/bin/sh
# api.sh compares the packages that a version freezes (docs/internals/modules.md lists them) with
# those of an earlier commit, and fails if a program that uses them could break. Without a
# commit it takes the latest version's tag, and does nothing if there is none yet.
#
#   scripts/api.sh [COMMIT]
#
# A change that breaks programs needs a line in the Unreleased section of CHANGELOG.md
# that begins with "- **Breaking:**". The comparison is then printed, and does not fail.
set -eu
cd "$(dirname "$0")/.."
version=v0.0.0-20261014143641-f0251eb4aa3e # of golang.org/x/exp

base=${1:-$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || true)}
if [ -z "$base" ]; then
	echo "api: there is no version yet to compare with"
	exit 0
fi
apidiff=$PWD/.cache/bin/apidiff
[ -x "$apidiff" ] || GOBIN="$PWD/.cache/bin" go install "golang.org/x/exp/cmd/apidiff@$version"

root=github.com/holdfast-locks/holdfast
frozen=$(sed -n '/^### Frozen$/,/^### Open$/s/^- `\([a-z/]*\)`$/\1/p' docs/internals/modules.md)
[ -n "$frozen" ] || { echo "api: docs/internals/modules.md lists no frozen package" >&2; exit 1; }

work=$(mktemp -d)
trap 'git worktree remove --force "$work/base" 2>/dev/null; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/base" "$base"

broken=0
for package in $frozen; do
	path=$root/$package
	[ "$package" != holdfast ] || path=$root
	if ! (cd "$work/base" && "$apidiff" -w "$work/old" "$path") 2>"$work/error"; then
		echo "api: $package is new since $base"
		continue
	fi
	"$apidiff" -incompatible "$work/old" "$path" >"$work/changes"
	[ ! -s "$work/changes" ] || { echo "$package, since $base:"; cat "$work/changes"; broken=1; }
done
if [ $broken = 1 ] && ! sed -n '/^## Unreleased/,/^## [^U]/p' CHANGELOG.md | grep -q '^- \*\*Breaking:\*\*'; then
	echo "api: programs could break; say how in CHANGELOG.md, with \"- **Breaking:**\", or undo it" >&2
	exit 1
fi
