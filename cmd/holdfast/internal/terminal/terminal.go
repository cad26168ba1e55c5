// Package terminal is what programs need to know of the terminal in front of which
// a person sits, and of Ctrl-Z.
package terminal

import "os"

// unknownWidth is for terminals that do not know how wide they are.
const unknownWidth = 80

// Of returns the terminal that f is, or nil: if f is none, if it is not the one that
// controls this process, whose screen is somebody else's, or if it cannot rewrite a
// line. name is the value of TERM.
func Of(f *os.File, name string) *Terminal {
	if name == "" || name == "dumb" {
		return nil
	}
	t := &Terminal{fd: int(f.Fd())}
	if _, err := t.foreground(); err != nil {
		return nil
	}
	return t
}

// Columns returns the width of the window.
func (t *Terminal) Columns() int {
	if n := t.columns(); n > 0 {
		return n
	}
	return unknownWidth
}
