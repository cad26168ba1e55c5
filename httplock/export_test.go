package httplock

// ID returns the name of the engine's session.
func (e *Engine) ID() string { return e.id }

// SetID makes the engine use another session.
func (e *Engine) SetID(id string) { e.id = id }
