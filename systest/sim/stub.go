package sim

import "strings"

// brief is a command for people.
func brief(args []string) string { return strings.Join(args[:min(2, len(args))], " ") }
