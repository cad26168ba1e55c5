package show

import (
	"cmp"
	"io"
	"os"
)

// The size of a window if the terminal does not know it.
const (
	unknownWidth  = 80
	unknownHeight = 24
)

// TerminalOf returns f as a Terminal. It returns nil if f is not a terminal, if f does not control
// this process, so that others own its screen, or if it cannot rewrite a line. name is the value
// of TERM.
func TerminalOf(f *os.File, name string) *Terminal {
	if name == "" || name == "dumb" {
		return nil
	}
	t := &Terminal{fd: int(f.Fd())}
	if _, err := t.foreground(); err != nil {
		return nil
	}
	return t
}

// WidthOf returns the width of out if it is a terminal, even one that cannot rewrite a line, or
// 0.
func WidthOf(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok {
		return 0
	}
	t := &Terminal{fd: int(f.Fd())}
	if _, _, ok := t.size(); !ok {
		return 0
	}
	return t.Columns()
}

// Columns returns the width of the window.
func (t *Terminal) Columns() int {
	columns, _, _ := t.size()
	return cmp.Or(columns, unknownWidth)
}

// Rows returns the height of the window.
func (t *Terminal) Rows() int {
	_, rows, _ := t.size()
	return cmp.Or(rows, unknownHeight)
}
