package holdfasttest

import (
	"io"
	"sync"
)

// An output writes to the log of a test, until the test ends: writing after that
// panics.
type output struct {
	mu sync.Mutex // guards to
	to io.Writer  // nil after the end of the test
}

// Write implements io.Writer.
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.to == nil {
		return len(text), nil
	}
	return o.to.Write(text)
}

func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to = nil
}
