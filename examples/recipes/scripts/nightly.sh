#!/bin/sh
# One at a time, wherever and by whomever it is started.
[ "${HOLDFAST_NAME-}" = nightly ] || exec holdfast run -n nightly -- sh "$0" "$@"

echo "token $HOLDFAST_FENCING_TOKEN: $*"
