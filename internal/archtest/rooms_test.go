package archtest

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// roomLine matches a line in the list of rooms. Nested rooms are indented.
var roomLine = regexp.MustCompile(`^( *)([a-z]+(?:/[a-z]+)*)/ +\S`)

// TestRooms checks that the rooms of ARCHITECTURE.md are the directories of the repository. A
// directory named internal is described with its parent. Only the one at the root has rooms itself.
func TestRooms(t *testing.T) {
	_, text, _ := strings.Cut(read(t, "ARCHITECTURE.md"), "\n## Rooms\n")
	text, _, _ = strings.Cut(text, "\n## ")
	rooms, above := map[string]bool{}, ""
	for line := range strings.Lines(text) {
		m := roomLine.FindStringSubmatch(strings.TrimRight(line, "\n") + "  x") // internal/ has no description
		switch {
		case m == nil:
			continue
		case m[1] == "":
			above = m[2]
			rooms[above] = true
		default:
			rooms[path.Join(above, m[2])] = true
		}
	}
	for r := range rooms {
		if found, err := filepath.Glob(filepath.Join(tree, r, "*")); err != nil || len(found) == 0 {
			t.Errorf("ARCHITECTURE.md: there is no room %s (%v)", r, err)
		}
	}
	for _, p := range list(t) {
		name := relative(p.ImportPath)
		if outer, _, found := strings.Cut(name, "/internal/"); found {
			name = outer
		}
		if name != "." && !rooms[name] {
			t.Errorf("ARCHITECTURE.md has no room %s", name)
		}
	}
}
