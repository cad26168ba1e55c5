package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Fault is one deliberate fault of the product.
type Fault struct {
	Name      string
	Breaks    string
	Invariant string // "" if none
	Pkg       string // folder of the package, below the root of the repository
	File      string // below the root of the repository
	Old, New  string // whole lines; the code of Old occurs in the file exactly once
	FoundBy   []Finder
	Hang      bool   // a test that exceeds its time limit has found it
	Crash     string // a panic that begins with this text has found it

	diff string // the file that describes it
}

// A Finder is a test that must fail.
type Finder struct {
	Dir  string // of its package, below the root of the repository
	Test string // its name, and its subtest's after a '/'
}

// String returns the finder as reports print it.
func (f Finder) String() string {
	if f.Dir == "." {
		return f.Test
	}
	return f.Dir + " " + f.Test
}

// All reads the faults of every package below root.
func All(root string) ([]Fault, error) {
	var all []Fault
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".diff") || !strings.HasSuffix(filepath.Dir(path), "testdata/faults"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pkg, err := filepath.Rel(root, filepath.Dir(filepath.Dir(filepath.Dir(path))))
		if err != nil {
			return err
		}
		faults, err := parse(filepath.ToSlash(pkg), string(text))
		for i := range faults {
			faults[i].diff = path
		}
		all = append(all, faults...)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	return all, err
}

// parse reads the faults of a package.
func parse(pkg, text string) (faults []Fault, err error) {
	inDiff := false
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if name, ok := strings.CutPrefix(line, "fault: "); ok {
			faults, inDiff = append(faults, Fault{Name: name, Pkg: pkg}), false
			continue
		}
		if len(faults) == 0 {
			return nil, fmt.Errorf("line %d: want \"fault: NAME\" first", i+1)
		}
		f := &faults[len(faults)-1]
		if strings.HasPrefix(line, "@@") {
			inDiff = true
		} else if inDiff {
			err = f.change(line)
		} else {
			err = f.describe(line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return faults, nil
}

// describe reads a line before the diff.
func (f *Fault) describe(line string) error {
	key, value, _ := strings.Cut(line, ": ")
	switch {
	case key == "breaks":
		f.Breaks = value
	case key == "invariant":
		f.Invariant = value
	case key == "found by":
		dir, test, other := strings.Cut(value, " ")
		if !other {
			dir, test = f.Pkg, value
		}
		f.FoundBy = append(f.FoundBy, Finder{Dir: dir, Test: test})
	case line == "may hang":
		f.Hang = true
	case key == "panics":
		f.Crash = value
	case strings.HasPrefix(line, "--- a/"):
		f.File = filepath.ToSlash(filepath.Join(f.Pkg, strings.TrimPrefix(line, "--- a/")))
	case strings.HasPrefix(line, "+++ b/"):
	default:
		return fmt.Errorf("%q does not describe a fault", line)
	}
	return nil
}

// change reads a line of the diff. An empty line ends it.
func (f *Fault) change(line string) error {
	if line == "" {
		return nil
	}
	switch kind, rest := line[0], line[1:]+"\n"; kind {
	case ' ':
		f.Old, f.New = f.Old+rest, f.New+rest
	case '-':
		f.Old += rest
	case '+':
		f.New += rest
	default:
		return fmt.Errorf("%q: a line of a diff begins with ' ', '-' or '+'", line)
	}
	return nil
}

// apply returns the text of the file with the fault.
func (f Fault) apply(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, f.File))
	if err != nil {
		return "", fmt.Errorf("fault %s: %w", f.Name, err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	numbers, codes := codeOf(lines)
	_, old := codeOf(strings.SplitAfter(f.Old, "\n"))
	at := occurrences(codes, old)
	if len(at) > 1 { // indentation and comments decide
		at = slices.DeleteFunc(at, func(i int) bool { return !strings.HasPrefix(strings.Join(lines[numbers[i]:], ""), f.Old) })
	}
	if len(at) != 1 {
		return "", fmt.Errorf("fault %s of %s: %d places in %s have these lines, want 1; change the diff with the code:\n%s",
			f.Name, f.diff, len(at), f.File, f.Old)
	}
	first, last := numbers[at[0]], numbers[at[0]+len(old)-1]
	return strings.Join(lines[:first], "") + f.New + strings.Join(lines[last+1:], ""), nil
}

// codeOf returns the lines that have code, without indentation and comments, and their
// numbers.
func codeOf(lines []string) (numbers []int, codes []string) {
	for i, line := range lines {
		if code := strings.TrimSpace(comment.ReplaceAllString(line, "")); code != "" {
			numbers, codes = append(numbers, i), append(codes, code)
		}
	}
	return numbers, codes
}

// comment matches a comment at the end of a line of Go, JavaScript or Lua.
var comment = regexp.MustCompile(`(^|\s)(//|--)\s.*`)

// occurrences returns where part begins in whole.
func occurrences(whole, part []string) (at []int) {
	for i := range whole {
		if len(part) > 0 && len(whole)-i >= len(part) && slices.Equal(whole[i:i+len(part)], part) {
			at = append(at, i)
		}
	}
	return at
}
