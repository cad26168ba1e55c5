package tally

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fold turns the name of a lock into the name of its family: a star replaces each part that
// distinguishes its members.
//
//	orders/42                                     orders/*
//	user-7f9c24e8-3b12-4fef-91e0-2d6a9d0cbe51     user-*
//	report/2026-11-22T17:30:00Z                   report/*
//	build/9f86d081884c7d65                        build/*
//	nightly-report                                nightly-report
//
// It folds UUIDs, dates with or without a time of day, hexadecimal words of eight
// digits or more, words of twenty letters and digits or more, such as ULIDs, and
// numbers, so that no digit is left. A word without any digit stays unchanged.
// Names that differ in letters stay apart: bound them as well, see Names.
func Fold(name string) string {
	if !strings.ContainsFunc(name, unicode.IsDigit) {
		return name
	}
	var folded strings.Builder
	folded.Grow(len(name))
	inWord := false // the rune before was a letter or a digit
	for rest := name; rest != ""; {
		if n := foldable(rest, inWord); n > 0 {
			folded.WriteByte('*')
			rest, inWord = rest[n:], true
			continue
		}
		r, n := utf8.DecodeRuneInString(rest)
		folded.WriteString(rest[:n])
		rest, inWord = rest[n:], unicode.IsLetter(r)
	}
	return folded.String()
}

// foldable returns how many bytes at the beginning of s become one star. Inside a word only a
// number is folded.
func foldable(s string, inWord bool) int {
	if !inWord {
		if n := max(uuid(s), date(s), word(s)); n > 0 {
			return n
		}
	}
	return number(s)
}

// The patterns that are folded. In them x stands for a hexadecimal digit, 9 for a decimal digit,
// and every other character for itself.
const (
	uuidPattern = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	datePattern = "9999-99-99"
	timePattern = "99:99"
)

func uuid(s string) int { return whole(s, match(s, uuidPattern)) }

// date returns the length of a date with the time of day and the zone that follow it, or 0.
func date(s string) int {
	day := match(s, datePattern)
	if day == 0 {
		return 0
	}
	if n := clock(s[day:]); n > 0 && whole(s, day+n) > 0 {
		return day + n
	}
	return whole(s, day)
}

// clock returns the length of a time of day that follows a date.
func clock(s string) (n int) {
	if s == "" || !strings.ContainsRune("Tt _", rune(s[0])) || match(s[1:], timePattern) == 0 {
		return 0
	}
	n = 1 + len(timePattern)
	for n < len(s) && (s[n] == ':' || s[n] == '.') && number(s[n+1:]) > 0 {
		n += 1 + number(s[n+1:])
	}
	switch {
	case n < len(s) && (s[n] == 'Z' || s[n] == 'z'):
		n++
	case n < len(s) && (s[n] == '+' || s[n] == '-') && match(s[n+1:], timePattern) > 0:
		n += 1 + len(timePattern)
	}
	return n
}

// word returns the length of a word that looks like an identifier, or 0. It must be long and have
// a digit, because a word without digits may be of a human language.
func word(s string) (n int) {
	decimal, hex := false, true
	for n < len(s) && isWord(s[n]) {
		decimal, hex = decimal || isDecimal(s[n]), hex && isHex(s[n])
		n++
	}
	if !decimal || n < 8 || n < 20 && !hex {
		return 0
	}
	return whole(s, n)
}

// number returns the length of a number, in the digits of any script.
func number(s string) (n int) {
	for n < len(s) {
		r, size := utf8.DecodeRuneInString(s[n:])
		if !unicode.IsDigit(r) {
			break
		}
		n += size
	}
	return n
}

// match returns the length of the pattern if s begins with it, or 0.
func match(s, pattern string) int {
	if len(s) < len(pattern) {
		return 0
	}
	for i := range len(pattern) {
		var ok bool
		switch pattern[i] {
		case 'x':
			ok = isHex(s[i])
		case '9':
			ok = isDecimal(s[i])
		default:
			ok = s[i] == pattern[i]
		}
		if !ok {
			return 0
		}
	}
	return len(pattern)
}

// whole returns n if a word ends there, or 0.
func whole(s string, n int) int {
	r, _ := utf8.DecodeRuneInString(s[n:])
	if n < len(s) && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
		return 0
	}
	return n
}

func isDecimal(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool { return isDecimal(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func isHex(c byte) bool {
	return isDecimal(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
