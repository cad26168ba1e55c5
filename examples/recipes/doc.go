// Package recipes has the files that docs/recipes.md shows, and the tests that run
// them.
package recipes
