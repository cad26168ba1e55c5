#!/bin/sh
# release.sh makes a version: it writes the versions that modules require of each other, packs
# the modules as a proxy of Go does, builds the command from them and tries it, and writes what
# people install to dist/VERSION. Then it adds the commit and the tags to this repository, and
# pushes nothing. It refuses, before it writes anything, a dirty tree, an empty section
# Unreleased, a version that exists or is not one, and a red "make ci release".
#
#   scripts/release.sh --key FILE VERSION   as v0.1.0; FILE is a private key of ssh-keygen
#   scripts/release.sh --dry-run [VERSION]  all but "make ci release", the commit and the tags
#   scripts/release.sh --rebuild VERSION    the files again, of tags that exist
set -eu
here=$(cd "$(dirname "$0")" && pwd)
"$here/deps.sh" release
cd "$here/release"
GOFLAGS= exec go run . --tree "$here/.." "$@"
