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

// fenceKey is where the last token of a name is.
func fenceKey(name string) string { return name + ":token" }

// millis is a duration as scripts and PX take it.
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// value returns what tells one holder from all others.
func value() string { return rand.Text() }

// noWait is embedded by clients that can only try.
type noWait struct{}

func (noWait) Wait(context.Context, string) (Held, error) { return nil, errWait }
