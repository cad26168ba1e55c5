#!/bin/sh
# vendor.sh fetches the libraries of the dashboard from the npm registry, and makes of each one
# script in the form that dashboard/join.go understands: it exports one object, with all that the
# library exports. What it makes is committed; a test compares it with
# dashboard/web/vendor/SHA256SUMS.
set -eu
cd "$(dirname "$0")/../dashboard/web/vendor"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# take PACKAGE VERSION FILE NAME: the file of the package becomes NAME.js.
take() {
	dir=$work/$4
	mkdir "$dir"
	(cd "$dir" && npm pack --silent "$1@$2" >/dev/null && tar xzf ./*.tgz)
	{
		[ "$4" != hooks ] || echo 'import { preact } from "./preact.js";'
		echo "export const $4 = (() => {"
		sed -E -e '/^\/\/# sourceMappingURL=/d' -e 's,//# sourceMappingURL=.*$,,' \
			-e 's/\bimport\{(\w+) as (\w+)\}from *"preact";/const{\1:\2}=preact;/' \
			-e 's/\bexport default /return /; s/\bexport\{/return{/' \
			-e ':a; s/(\breturn\{([^}]*,)?)([$A-Za-z_]+) as ([$A-Za-z_]+)/\1\4:\3/; ta' "$dir/package/$3"
		echo "})();"
	} >"$4.js"
	[ ! -e "$dir/package/LICENSE" ] || cp "$dir/package/LICENSE" "LICENSE.$4"
	echo "$1 $2 $3" >>"$work/versions"
}

rm -f ./*.js LICENSE.* VERSIONS SHA256SUMS
take preact 11.2.0 dist/preact.mjs preact
take preact 11.2.0 hooks/dist/hooks.mjs hooks
take htm 3.1.1 dist/htm.mjs htm
rm -f LICENSE.hooks # preact's
mv "$work/versions" VERSIONS
sha256sum -- *.js LICENSE.* VERSIONS >SHA256SUMS
