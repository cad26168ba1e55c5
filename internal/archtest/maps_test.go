package archtest

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// roomLine finds a line of the list of rooms; deeper rooms stand further right.
var roomLine = regexp.MustCompile(`^( *)([a-z]+(?:/[a-z]+)*)/ +\S`)

// TestRooms: the rooms of ARCHITECTURE.md are the directories that there are.
// A directory named internal is described where its parent is; only the one at
// the root has rooms of its own.
func TestRooms(t *testing.T) {
	_, text, _ := strings.Cut(read(t, "ARCHITECTURE.md"), "\n## Rooms\n")
	text, _, _ = strings.Cut(text, "\n## ")
	rooms, above := map[string]bool{}, ""
	for line := range strings.Lines(text) {
		m := roomLine.FindStringSubmatch(strings.TrimRight(line, "\n") + "  x") // internal/ has no words of its own
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

// aGoFile finds the name of a file, or of several with a star.
var aGoFile = regexp.MustCompile(`\b[a-z0-9_]+\*?\.go\b`)

// mapped are the packages that have a map of their files, and where it is.
var mapped = map[string]string{
	".":          "ARCHITECTURE.md",
	"memlock":    "memlock/doc.go",
	"quorumlock": "quorumlock/doc.go",
	"rediscore":  "rediscore/doc.go",
	"redislock":  "redislock/doc.go",
	"sqlitelock": "sqlitelock/doc.go",
}

// TestMaps: the packages with many files say which does what, and leave none out.
func TestMaps(t *testing.T) {
	for dir, page := range mapped {
		names := aGoFile.FindAllString(read(t, page), -1)
		used := map[string]bool{}
		files, err := filepath.Glob(filepath.Join(tree, dir, "*.go"))
		if err != nil || len(files) < 5 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			file = filepath.Base(file)
			known := file == "doc.go" || strings.HasSuffix(file, "_test.go")
			for _, name := range names {
				if found, _ := path.Match(name, file); found {
					known, used[name] = true, true
				}
			}
			if !known {
				t.Errorf("the map of %s has no %s", dir, file)
			}
		}
		for _, name := range names {
			if !used[name] && path.Ext(page) == ".go" { // ARCHITECTURE.md has files of others, too
				t.Errorf("the map of %s has %s, which does not exist", dir, name)
			}
		}
	}
}
