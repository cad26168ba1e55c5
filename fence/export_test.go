package fence

import "time"

// Told waits until the Observer was told everything.
func (g *Gate) Told() { g.reports.Wait(time.Minute) }
