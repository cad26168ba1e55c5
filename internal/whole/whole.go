// Package whole has the interface of an engine that implements all interfaces of package driver
// but Diagnoser and Router: not every store can be examined, or has parts.
package whole

import "github.com/holdfast-locks/holdfast/driver"

// An Engine has all these methods. Its Capabilities decide which are used.
type Engine interface {
	driver.Engine
	driver.Queuer
	driver.Downgrader
	driver.AllAcquirer
	driver.Recorder
	driver.Vault
	driver.Lister
	driver.Breaker
	driver.LossTeller
	driver.Historian
}
