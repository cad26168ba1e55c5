package fence

import "time"

// Told waits until the Observer has received all events.
func (g *Gate) Told() { g.reports.Wait(time.Minute) }
