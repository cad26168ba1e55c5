package main

import (
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

//go:embed budgets.txt
var budgetsText string

// A budget is how often a pattern may occur in 100,000 words.
type budget struct {
	most    int
	pattern *regexp.Regexp
	text    string
	count   int
}

func parseBudgets(text string) (all []*budget) {
	for line := range strings.Lines(text) {
		most, pattern, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(most)
		if err != nil {
			continue // a comment
		}
		pattern = strings.TrimSpace(pattern)
		expression := strings.ReplaceAll(pattern, " ", `\s+`)
		all = append(all, &budget{n, regexp.MustCompile(`(?i)\b(?:` + expression + `)\b`), pattern, 0})
	}
	return all
}

var (
	countedWord = regexp.MustCompile(`[A-Za-z']+`)
	codeOfPage  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	uncounted   = regexp.MustCompile(`_test\.go$|(^|/)(docs/(adr|bench)|testdata|node_modules)/|^CHANGELOG\.md$|(^|/)\.`)
)

// overBudget describes each word that the tree uses more often than budgets.txt allows.
func overBudget(root string) (over []string) {
	budgets, words := parseBudgets(budgetsText), 0
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		if err != nil || d.IsDir() || uncounted.MatchString(filepath.ToSlash(name)) {
			return nil
		}
		source, _ := os.ReadFile(path)
		for _, text := range prose(name, source) {
			words += len(countedWord.FindAllString(text, -1))
			for _, b := range budgets {
				b.count += len(b.pattern.FindAllString(text, -1))
			}
		}
		return nil
	})
	for _, b := range budgets {
		if here := b.count * 100_000 / max(words, 1); here > b.most {
			over = append(over, fmt.Sprintf("%q: %d in 100,000 words, want at most %d", b.text, here, b.most))
		}
	}
	return over
}

// prose returns the texts of a file in which words are counted.
func prose(name string, source []byte) (all []string) {
	switch filepath.Ext(name) {
	case ".md":
		return []string{codeOfPage.ReplaceAllString(string(source), "")}
	case ".go":
		for _, p := range goPieces(source) {
			if quoted := strings.ContainsAny(p.text[:1], "\"`"); !p.name && (!quoted || strings.Count(p.text, " ") > 1) {
				all = append(all, p.text)
			}
		}
	}
	return all
}
