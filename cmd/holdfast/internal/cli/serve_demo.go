package cli

import (
	"context"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/stores"
)

// demoStore is where the locks of a demo are.
const demoStore = "memory:?history=1"

// checkDemo refuses what a demo has no use for.
func (a *app) checkDemo(f *serveFlags) error {
	switch {
	case !f.demo && f.seeded:
		return usage("serve: --demo-seed goes with --demo")
	case f.demo && (a.asked.Store != "" || a.asked.File != ""):
		return usage("serve: --demo has a store of its own, in memory, so that nobody's locks are in its way: leave out --store and --store-file")
	case f.demo && f.callers != "":
		return usage("serve: --demo is for everybody who reaches it, because its locks are nobody's: leave out --callers")
	}
	return nil
}

// served opens the store whose locks are served, and returns what to call it.
func (a *app) served(ctx context.Context, f *serveFlags) (driver.Engine, string, error) {
	if f.demo {
		engine, err := stores.Open(ctx, demoStore)
		return engine, "a demo, in memory", err
	}
	engine, choice, err := a.opener(ctx)
	return engine, choice.Public(), err
}
