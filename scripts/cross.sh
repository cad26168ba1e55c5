#!/bin/sh
# cross.sh builds the command, and all that programs use, for the systems that "make
# test" does not run on, and vets what is built there, tests included. Tests that start
# servers or send signals need unix.
set -eu
cd "$(dirname "$0")/.."
# As scripts/release.sh builds, which then finds most of it done.
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath"
for os in windows darwin freebsd; do
	for arch in amd64 arm64; do
		echo "cross: $os/$arch"
		GOOS=$os GOARCH=$arch go build -o /dev/null ./cmd/holdfast
	done
	skip='/systest|/examples'
	GOOS=$os go build $(GOOS=$os go list -f '{{if .GoFiles}}{{.ImportPath}}{{end}}' work | grep -Ev "$skip")
	[ $os != windows ] || skip="$skip|/rediscore|redislock|/pglock"
	GOOS=$os go vet $(GOOS=$os go list work | grep -Ev "$skip")
done
