package faults

import (
	"regexp"
	"strings"
)

// A verdict is the outcome of one test.
type verdict int

const (
	passed verdict = iota
	failed
	hung
	crashed // by a panic
	unclear // the test was not run, or something else went wrong
)

func (v verdict) String() string {
	return [...]string{"passed", "failed", "hung", "crashed", "unclear"}[v]
}

// judge returns the outcome of the test from the output of a run and its exit.
func (f Finder) judge(output string, err error) verdict {
	stands := func(word string) bool {
		return regexp.MustCompile(`(?m)^ *--- ` + word + `: ` + regexp.QuoteMeta(f.Test) + ` \(`).MatchString(output)
	}
	switch {
	case strings.Contains(output, "panic: test timed out"), strings.Contains(output, "all goroutines are asleep"),
		strings.Contains(output, "panic: deadlock: all goroutines in bubble are blocked"):
		return hung
	case err == nil && stands("PASS"):
		return passed
	case err != nil && stands("FAIL"):
		return failed
	case err != nil && strings.Contains(output, "=== RUN   "+f.Test+"\n") && strings.Contains(output, "\npanic: "):
		return crashed
	}
	return unclear
}
