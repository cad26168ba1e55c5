package show

import (
	"sort"
	"unicode"
)

// Fit cuts text so that it takes no more than columns on a terminal. It marks the cut in ASCII,
// which every terminal has.
func Fit(text string, columns int) string {
	const more = "..."
	width, cut := 0, 0 // cut: where there is room left for more
	for i, r := range text {
		width += runeWidth(r)
		if width > columns {
			return text[:cut] + more[:min(max(columns, 0), len(more))]
		}
		if width <= columns-len(more) {
			cut = i + len(string(r))
		}
	}
	return text
}

// width returns how many columns of a terminal text takes.
func width(text string) (w int) {
	for _, r := range text {
		w += runeWidth(r)
	}
	return w
}

// runeWidth returns how many columns of a terminal r takes. If terminals differ, it returns the
// greater number.
func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case r == 0xFE0F: // draws the character before it as a picture, which may be wider
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	}
	i := sort.Search(len(wide), func(i int) bool { return wide[i][1] >= r })
	if i < len(wide) && wide[i][0] <= r {
		return 2
	}
	return 1
}

// wide has the ranges, first to last, of characters that take two columns: East Asian scripts,
// and pictures. The ranges include some characters that take one.
var wide = [...][2]rune{
	{0x1100, 0x115F}, {0x231A, 0x231B}, {0x2329, 0x232A}, {0x23E9, 0x23F3}, {0x25FD, 0x25FE}, {0x2600, 0x27BF},
	{0x2B1B, 0x2B55}, {0x2E80, 0xA4CF}, {0xA960, 0xA97F}, {0xAC00, 0xD7A3}, {0xF900, 0xFAFF}, {0xFE10, 0xFE19},
	{0xFE30, 0xFE6F}, {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x16FE0, 0x18DFF}, {0x1AFF0, 0x1B2FF}, {0x1F000, 0x1FAFF},
	{0x20000, 0x3FFFD},
}
