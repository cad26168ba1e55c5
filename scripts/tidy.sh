#!/bin/sh
# tidy.sh runs "go mod tidy" in every module of the workspace, and in those of
# the benchmark and of scripts/release, which have workspaces of their own, against the siblings in this
# tree, which are not published yet, and leaves no replace directive behind, even
# if it fails: a module with one cannot be installed by "go install".
set -eu
cd "$(dirname "$0")/.."
modules=$(go list -m -f '{{.Path}}={{.Dir}}')
for dir in $(go list -m -f '{{.Dir}}') "$PWD/systest/bench" "$PWD/scripts/release"; do
	(
		cd "$dir"
		for m in $modules; do go mod edit -replace="$m"; done
		status=0
		GOWORK=off go mod tidy "$@" || status=$?
		for m in $modules; do go mod edit -dropreplace="${m%%=*}"; done
		exit $status
	)
done
