// Package sentinel has the errors that packages lockinfo and driver share. Users meet
// them as holdfast.ErrLost and so on.
package sentinel

import "errors"

var (
	ErrLost    = errors.New("lease is lost")
	ErrBroken  = errors.New("broken")
	ErrInvalid = errors.New("invalid")
)
