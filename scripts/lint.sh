#!/bin/sh
# lint.sh checks formatting, the English of all texts and, once there is a version, that
# programs written for it still compile (api.sh), and runs golangci-lint over every module
# of the workspace. It installs golangci-lint below .cache if it is not on the PATH.
set -eu
cd "$(dirname "$0")/.."
version=v2.15.0

unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
	echo "not formatted by gofmt:" "$unformatted" >&2
	exit 1
fi
go vet work
(cd systest/bench && go vet ./...)
(cd scripts/release && go vet ./...)
(cd systest && go vet -tags soaknet ./net ./nettest)
(cd systest/webtest && go vet -tags web .)
go run ./scripts/english
scripts/api.sh

lint=$(command -v golangci-lint || echo "$PWD/.cache/bin/golangci-lint")
if [ ! -x "$lint" ]; then
	GOBIN="$PWD/.cache/bin" go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
fi
"$lint" run $(go list -m -f '{{.Dir}}/...')
(cd systest/bench && "$lint" run ./...)
