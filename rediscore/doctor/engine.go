package doctor

import (
	"context"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore"
)

// An Engine is a rediscore.Engine that finds out whether its store is fit for locks.
type Engine struct {
	*rediscore.Engine
	way func(rawURL string) (Way, error)
}

// NewEngine returns an engine on a connection; see rediscore.New. way returns the way to
// the servers of a URL.
func NewEngine(conn rediscore.Conn, opts *rediscore.Options, way func(rawURL string) (Way, error)) (*Engine, error) {
	e, err := rediscore.New(conn, opts)
	if err != nil {
		return nil, err
	}
	return &Engine{e, way}, nil
}

// Capabilities implements driver.Engine.
func (e *Engine) Capabilities() driver.Capabilities {
	c := e.Engine.Capabilities()
	c.Diagnose = true
	return c
}

// Diagnose implements driver.Diagnoser; see the function Diagnose.
func (e *Engine) Diagnose(ctx context.Context, req driver.DiagnoseRequest) (driver.Diagnosis, error) {
	way, err := e.way(req.URL)
	if err != nil {
		return driver.Diagnosis{}, err
	}
	return Diagnose(ctx, e.Engine, req, way)
}
