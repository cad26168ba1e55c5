// The command english looks for patterns of English that a reader stumbles over,
// and for words that the project has given up, in all texts of the tree:
//
//	go run ./scripts/english [DIRECTORY]
//
// It names each place and what to write instead, and fails if there is one.
// rules.txt has the patterns, and budgets.txt has words that are fine now and then, each with
// how often it may occur. What a pattern finds is hardly ever right; if it
// is, the exception belongs into the rule.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	findings, err := checkTree(root)
	for _, f := range findings {
		fmt.Println(f)
	}
	over := overBudget(root)
	for _, word := range over {
		fmt.Fprintln(os.Stderr, word)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "english:", err)
		os.Exit(2)
	}
	if len(findings) > 0 || len(over) > 0 {
		os.Exit(1)
	}
}

// checkTree checks all files below root, except directories and files whose names begin
// with a dot.
func checkTree(root string) (all []finding, err error) {
	rules, err := parseRules(rulesText)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(d.Name(), ".") && path != root:
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || filepath.Base(path) == "rules.txt":
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all = append(all, check(rules, path, source)...)
		return nil
	})
	return all, err
}
