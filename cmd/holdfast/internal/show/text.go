package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-locks/holdfast/driver"
)

// Each returns the results of of for the items.
func Each[T, V any](items []T, of func(T) V) []V {
	all := make([]V, len(items))
	for i, item := range items {
		all[i] = of(item)
	}
	return all
}

// All returns all items of a list, or its first error.
func All[T any](list iter.Seq2[T, error]) (all []T, err error) {
	for item, err := range list {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

// number formats n; it returns "" for 0.
func number(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// counted returns a number with a noun, such as 1 lock or 2 locks.
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

// Plain makes text from other clients safe for a terminal, and shows invisible characters: it
// writes a character that does not print as in a Go string, \u202e for example.
func Plain(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
	return b.String()
}

// JSON returns an encoder that escapes all characters for which driver.IsControl is true:
// encoding/json leaves some of them unescaped.
func JSON(w io.Writer) *json.Encoder {
	e := json.NewEncoder(escaped{w})
	e.SetEscapeHTML(false)
	return e
}

// An escaped writer writes JSON. Each Write must have whole characters.
type escaped struct{ io.Writer }

func (w escaped) Write(p []byte) (int, error) {
	hidden := func(r rune) bool { return r > '~' && driver.IsControl(r) } // encoding/json escapes the others, or writes them between values
	if bytes.IndexFunc(p, hidden) < 0 {
		return w.Writer.Write(p)
	}
	var b []byte
	for _, r := range string(p) {
		if hidden(r) {
			b = fmt.Appendf(b, `\u%04x`, r)
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	if _, err := w.Writer.Write(b); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Columns returns rows of cells, each made plain, aligned in columns with a gap between them.
func Columns(gap int, rows [][]string) string {
	var b strings.Builder
	for _, line := range layout(gap, rows, func([]int) {}) {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// ASCII writes microseconds as us, for terminals that have ASCII only.
func ASCII(text string) string { return strings.ReplaceAll(text, "\u00b5s", "us") }

// Tabbed returns rows of cells, each made plain, with a tab between two.
func Tabbed(rows [][]string) string {
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(strings.Join(Each(row, Plain), "\t") + "\n")
	}
	return b.String()
}

// layout returns a line for each row. First it calls fit, which may change the widths of the
// columns; a column of width 0 is omitted.
func layout(gap int, rows [][]string, fit func(widths []int)) []string {
	var widths []int
	for _, row := range rows {
		widths = append(widths, make([]int, max(len(row)-len(widths), 0))...)
		for i, cell := range row {
			widths[i] = max(widths[i], width(Plain(cell)))
		}
	}
	fit(widths)
	lines := make([]string, len(rows))
	for n, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			if widths[i] > 0 {
				cell = Fit(Plain(cell), widths[i])
				b.WriteString(cell + strings.Repeat(" ", widths[i]-width(cell)+gap))
			}
		}
		lines[n] = strings.TrimRight(b.String(), " ")
	}
	return lines
}
