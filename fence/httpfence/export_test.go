package httpfence

import (
	"net/http"
	"time"
)

// Told waits until the Observer of a handler has received all events.
func Told(h http.Handler) { h.(*handler).reports.Wait(time.Minute) }
