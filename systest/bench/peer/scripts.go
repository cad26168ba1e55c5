package peer

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"strconv"
	"time"
)

var (
	//go:embed lua/fence.lua
	fenceText string
	//go:embed lua/release.lua
	releaseText string
	//go:embed lua/renew.lua
	renewText string
)

var (
	errHeld = errors.New("the lock is held")
	errLost = errors.New("the lock is not ours any more")
	errWait = errors.New("this peer does not wait")
)

// fenceKey returns the key of the last token of a name.
func fenceKey(name string) string { return name + ":token" }

// millis formats a duration for scripts and PX.
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// value returns a value that identifies one holder.
func value() string { return rand.Text() }

// noWait is embedded by clients that can only try.
type noWait struct{}

func (noWait) Wait(context.Context, string) (Held, error) { return nil, errWait }
