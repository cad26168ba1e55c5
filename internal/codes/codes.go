// Package codes has the table of all errors that programs can tell apart: the sentinels of
// packages holdfast, driver, onetime and fence, each with its code and its HTTP status. Each
// code is unique, so that a client can turn a response back into the sentinel. The table leaves
// out errors for programs that write SQL themselves, such as sqlfence.ErrNoRow.
package codes

import (
	"slices"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/fence"
	"github.com/holdfast-locks/holdfast/onetime"
	"github.com/holdfast-locks/holdfast/wire"
)

// All returns the table.
func All() wire.Codes { return slices.Clone(table) }

// Of returns the code of an error. It is the zero Code if there is none.
func Of(err error) wire.Code { return table.Of(err) }

// The most specific error comes first: the reasons of a loss come before ErrLost. The error of
// the caller's own context has no code; an error that comes with it may have one.
var table = append(wire.Codes{
	{Name: "lock-held", Status: 409, Err: holdfast.ErrHeld},
	{Name: "in-progress", Status: 409, Err: holdfast.ErrInProgress},
	{Name: "key-reused", Status: 422, Err: holdfast.ErrFingerprint},
	{Name: "deadlock", Status: 409, Err: holdfast.ErrDeadlock},
	{Name: "not-replicated", Status: 503, Err: holdfast.ErrNotReplicated},
	{Name: "max-hold", Status: 410, Err: holdfast.ErrMaxHold},
	{Name: "stalled", Status: 410, Err: holdfast.ErrStalled},
	{Name: "left", Status: 410, Err: holdfast.ErrLeft},

	{Name: "malformed", Status: 400, Err: onetime.ErrMalformed},
	{Name: "unknown", Status: 410, Err: onetime.ErrUnknown},
	{Name: "expired", Status: 410, Err: onetime.ErrExpired},
	{Name: "revoked", Status: 410, Err: onetime.ErrRevoked},
	{Name: "redeemed", Status: 410, Err: onetime.ErrRedeemed},
	{Name: "too-many-attempts", Status: 429, Err: onetime.ErrTooManyAttempts},

	{Name: "token-stale", Status: 412, Err: fence.ErrStale},
	{Name: "marks-full", Status: 503, Err: fence.ErrFull},
}, wire.DriverCodes()...)
