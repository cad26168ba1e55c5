package oncehttp

import (
	"context"
	"time"
)

// Told waits until the Observer was told everything.
func (m *Middleware) Told() { m.events.Wait(context.Background(), time.Minute) }
