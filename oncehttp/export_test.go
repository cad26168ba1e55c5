package oncehttp

import (
	"context"
	"time"
)

// Told waits until the Observer has received all events.
func (m *Middleware) Told() { m.events.Wait(context.Background(), time.Minute) }
