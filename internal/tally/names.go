package tally

import (
	"strings"
	"sync"
)

const (
	// MaxNames is how many labels there are at most, Other among them.
	MaxNames = 200

	// Other is the label of all names beyond that limit.
	Other = "other"
)

// Names turns names of locks into a bounded number of labels: the first ones stay, and later ones
// become Other. It is safe for concurrent use.
type Names struct {
	label func(name string) string
	mu    sync.RWMutex
	known map[string]struct{}
}

// NewNames returns Names that labels names by a function, such as Fold. Without a
// function there are no labels.
func NewNames(label func(name string) string) *Names {
	return &Names{label: label, known: map[string]struct{}{}}
}

// On reports whether there are labels.
func (n *Names) On() bool { return n.label != nil }

// Label returns the label of a name: valid UTF-8, and empty if there are no labels.
func (n *Names) Label(name string) string {
	if n.label == nil {
		return ""
	}
	label := strings.ToValidUTF8(n.label(name), "\uFFFD")
	n.mu.RLock()
	_, known := n.known[label]
	full := len(n.known) >= MaxNames-1
	n.mu.RUnlock()
	if known || !full && n.add(strings.Clone(label)) { // a clone, because label may share the memory of a long name
		return label
	}
	return Other
}

// add reports whether there is room for the label.
func (n *Names) add(label string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.known[label]; !known && len(n.known) >= MaxNames-1 {
		return false
	}
	n.known[label] = struct{}{}
	return true
}
