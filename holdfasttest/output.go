package holdfasttest

import (
	"io"
	"sync"
)

// An output is that of a test, until the test is over. After that nobody may write
// there.
type output struct {
	mu sync.Mutex // guards to
	to io.Writer  // nil when the test is over
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
