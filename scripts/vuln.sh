#!/bin/sh
# vuln.sh looks in the Go vulnerability database (vuln.go.dev) for faults that the code of
# each module of the workspace can reach. It needs that database, and fails without it.
set -eu
cd "$(dirname "$0")/.."
version=v1.9.0

failed=0
for dir in $(go list -m -f '{{.Dir}}'); do
	echo "$dir"
	(cd "$dir" && go run "golang.org/x/vuln/cmd/govulncheck@$version" ./...) || failed=1
done
exit $failed
