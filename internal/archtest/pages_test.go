package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notAnchor = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// TestLinks checks that the targets of all links exist, including headings.
func TestLinks(t *testing.T) {
	all, links := pages(t), 0
	for name, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			to, anchor, _ := strings.Cut(m[1], "#")
			at := path.Join(path.Dir(name), to)
			if to == "" {
				at = name
			}
			if _, err := os.Stat(filepath.Join(tree, at)); err != nil {
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
			if anchor != "" && !slices.Contains(anchors(all[at]), anchor) {
				t.Errorf("%s links to %s, and %s has no such heading", name, m[1], at)
			}
		}
	}
	if links < 100 {
		t.Errorf("%d links, want at least 100: are they read?", links)
	}
}

// anchors returns the anchors of the headings of a page.
func anchors(text string) (all []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(notAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

// TestIndex checks that docs/README.md links to every page of docs once, and describes its purpose.
func TestIndex(t *testing.T) {
	index := read(t, "docs/README.md")
	wanted := []string{"adr/README.md", "bench/README.md"}
	for page := range pages(t) {
		page, inDocs := strings.CutPrefix(page, "docs/")
		if inDocs && !strings.HasPrefix(page, "adr/") && !strings.HasPrefix(page, "bench/") {
			wanted = append(wanted, page)
		}
	}
	if len(wanted) < 20 {
		t.Fatalf("%d pages", len(wanted))
	}
	for _, page := range wanted {
		row := regexp.MustCompile(`(?m)^\| [^|]{10,} \| \[[^]|]+\]\(` + regexp.QuoteMeta(page) + `\) \|$`)
		switch n := strings.Count(index, "("+page+")"); {
		case page == "README.md":
		case n != 1:
			t.Errorf("docs/README.md leads to %s %d times, want once", page, n)
		case !row.MatchString(index):
			t.Errorf("docs/README.md has no row that says what %s is for: | you want | [page](%s) |", page, page)
		}
	}
}

// TestRunbookQuotes checks that the code contains the messages that docs/operations.md quotes, and
// that the rules contain the alerts that it names.
func TestRunbookQuotes(t *testing.T) {
	var code strings.Builder
	walk(t, ".", func(name string) {
		if path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
			code.WriteString(read(t, name))
		}
	})
	quotes := 0
	for _, table := range strings.Split(read(t, "docs/operations.md"), "\n| message | ")[1:] {
		table, _, _ = strings.Cut(table, "\n\n")
		for row := range strings.Lines(table) {
			cell, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
				said := m[1]
				if strings.HasPrefix(said, "held by ada") || said == "run" {
					continue // an example
				}
				if quotes++; !strings.Contains(code.String(), said) {
					t.Errorf("docs/operations.md: nothing says %q", said)
				}
			}
		}
	}
	rules := read(t, "promlock/alerts/holdfast.rules.yml")
	for _, m := range regexp.MustCompile("`(Holdfast\\w+)`").FindAllStringSubmatch(read(t, "docs/operations.md"), -1) {
		if quotes++; !strings.Contains(rules, "alert: "+m[1]+"\n") {
			t.Errorf("docs/operations.md: there is no alert %s", m[1])
		}
	}
	if quotes < 22 {
		t.Errorf("%d quotes, want at least 22: are the tables read?", quotes)
	}
}

// TestComparisonIsMeasured checks that each figure of docs/comparison.md is in the report that the
// page names, rounded to two digits. The samples are not more precise.
func TestComparisonIsMeasured(t *testing.T) {
	_, table, found := strings.Cut(read(t, "docs/comparison.md"), "\n## What was measured\n")
	table, _, _ = strings.Cut(table, "\n## ")
	measured, figures := map[string]bool{}, 0
	report := regexp.MustCompile(`bench/[\d-]+/README\.md`).FindString(table)
	for _, m := range regexp.MustCompile(`\| ([\d,.]+) \[`).FindAllStringSubmatch(read(t, "docs/"+report), -1) {
		measured[twoDigits(t, m[1])] = true
	}
	for _, row := range regexp.MustCompile(`(?m)^\| [^|]+\|( [-–\d][^|]*\|.*)$`).FindAllStringSubmatch(table, -1) {
		for _, n := range regexp.MustCompile(`\d[\d,.]*`).FindAllString(row[1], -1) {
			if figures++; !measured[strings.ReplaceAll(n, ",", "")] {
				t.Errorf("docs/comparison.md: %s is not in the report: %s", n, row[0])
			}
		}
	}
	if !found || figures < 60 {
		t.Errorf("%d figures, want at least 60: is the table read?", figures)
	}
}

// twoDigits returns a number of a report, rounded to two significant digits.
func twoDigits(t *testing.T, figure string) string {
	n, err := strconv.ParseFloat(strings.ReplaceAll(figure, ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	n, _ = strconv.ParseFloat(strconv.FormatFloat(n, 'e', 1, 64), 64)
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// TestDecisions checks that the files of docs/adr have consecutive numbers, and that the index
// lists each decision with its title.
func TestDecisions(t *testing.T) {
	index := read(t, "docs/adr/README.md")
	files, err := filepath.Glob(tree + "/docs/adr/0*.md")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d decisions, %v", len(files), err)
	}
	for i, file := range files {
		file = filepath.Base(file)
		title, _, _ := strings.Cut(read(t, "docs/adr/"+file), "\n")
		number, title, _ := strings.Cut(strings.TrimPrefix(title, "# "), ". ")
		if want := fmt.Sprintf("%04d-", i+1); !strings.HasPrefix(file, want) || number != fmt.Sprint(i+1) {
			t.Errorf("%s, %q: want number %d", file, number, i+1)
		}
		if row := fmt.Sprintf("| [%s](%s) | %s |", number, file, title); !strings.Contains(index, row) {
			t.Errorf("docs/adr/README.md lacks\n%s", row)
		}
	}
	if rows := strings.Count(index, "\n| ["); rows != len(files) {
		t.Errorf("docs/adr/README.md has %d rows, and there are %d decisions", rows, len(files))
	}
}

// codeInPages matches text in code style, and qualified a name in it that is qualified by its Go
// package, such as holdfast.Lease or driver.Engine.Acquire.
var (
	codeInPages = regexp.MustCompile("`[^`\n]+`|(?m)^```go$(?s:.*?)^```$")
	qualified   = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
	member      = regexp.MustCompile(`(?:^|[^.\w])(?:Client|Lease|AcquireOptions|LeadOptions|OnceOptions)\.([A-Z]\w*)`)
)

// documented maps the packages whose names pages may use to their directories.
var documented = map[string]string{
	"goredislock": "goredislock", "observe": "observe", "otellock": "otellock", "pglock": "pglock", "promlock": "promlock", "stores": "stores",
	"holdfast": ".", "driver": "driver", "enginetest": "enginetest", "fence": "fence", "holdfasttest": "holdfasttest", "httpfence": "fence/httpfence",
	"mailbox": "driver/mailbox", "memlock": "memlock", "oncehttp": "oncehttp", "onetime": "onetime", "quorumlock": "quorumlock",
	"rediscore": "rediscore", "redisfence": "rediscore/redisfence", "redislock": "redislock", "rules": "driver/rules",
	"sqlfence": "fence/sqlfence", "sqlitelock": "sqlitelock", "wire": "wire",
}

// TestPagesNameWhatExists checks that the tests and the exported names of our packages in the pages
// exist.
func TestPagesNameWhatExists(t *testing.T) {
	known, names := knownCases(t), 0
	exported, members := map[string]map[string]bool{}, map[string]bool{}
	for pkg, dir := range documented {
		exported[pkg] = exportedNames(t, dir)
		maps.Copy(members, exported[pkg]) // a type may belong to another package, such as holdfast.LockState
	}
	for page, text := range pages(t) {
		if page == "CHANGELOG.md" {
			continue // may name what was removed
		}
		for _, code := range codeInPages.FindAllString(text, -1) {
			for _, m := range qualified.FindAllStringSubmatch(code, -1) {
				if exported[m[1]] == nil {
					continue
				}
				if names++; !exported[m[1]][m[2]] || m[3] != "" && !members[m[3]] {
					t.Errorf("%s: there is no %s", page, m[0])
				}
			}
		}
		for _, code := range codeInPages.FindAllString(text, -1) {
			for _, m := range member.FindAllStringSubmatch(code, -1) {
				if names++; !exported["holdfast"][m[1]] {
					t.Errorf("%s: there is no %s", page, m[0])
				}
			}
		}
		for _, m := range aTest.FindAllStringSubmatch(text, -1) {
			if names++; !known[m[1]] {
				t.Errorf("%s: there is no test %s", page, m[1])
			}
		}
	}
	if names < 150 {
		t.Errorf("%d names, want at least 150: are the pages read?", names)
	}
}

// exportedNames returns the names that the package in dir declares, including methods and fields.
func exportedNames(t *testing.T, dir string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(tree, dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(files), err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names[n.Name.Name] = true
				return false
			case *ast.TypeSpec:
				names[n.Name.Name] = true
			case *ast.Field:
				note(names, n.Names)
			case *ast.ValueSpec:
				note(names, n.Names)
			}
			return true
		})
	}
	return names
}

func note(names map[string]bool, all []*ast.Ident) {
	for _, id := range all {
		names[id.Name] = true
	}
}
