package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
)

// shortHelp is what holdfast alone prints.
const shortHelp = `holdfast runs commands under locks that hosts share.

  holdfast run NAME -- COMMAND       wait for the lock, run the command, give it back
  holdfast run -n NAME -- COMMAND    the same, or exit with status 75 at once
  holdfast once KEY -- COMMAND       run it unless it was done already, on any host
  holdfast ls                        who holds what
  holdfast show NAME                 who holds this, since when, and who waits
  holdfast doctor                    which store is used, and is it fit for locks

holdfast --help lists all commands, holdfast COMMAND --help explains one.
`

// groups are the headings of holdfast --help, and the commands below each.
var groups = []struct{ title, commands string }{
	{"Run a command under a lock:", "run once elect"},
	{"Hold a lock without a command:", "acquire extend progress release hold"},
	{"See who holds what:", "ls show history check wait watch"},
	{"Change what the store has:", "break token"},
	{"The store and this program:", "doctor bench serve completion version help"},
}

// group puts the commands of root under their headings.
func group(root *cobra.Command) {
	for _, g := range groups {
		id := g.title
		root.AddGroup(&cobra.Group{ID: id, Title: g.title})
		for _, c := range root.Commands() {
			if strings.Contains(" "+g.commands+" ", " "+c.Name()+" ") {
				c.GroupID = id
			}
		}
	}
	root.SetHelpCommandGroupID(groups[len(groups)-1].title)
}

// noCommand is what holdfast does without a command, or with one that it does not know.
func (a *app) noCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		a.messages.Put(shortHelp)
		return &exit.Error{Status: exit.Usage}
	}
	return usage("unknown command %q%s", args[0], suggested(root, args[0]))
}

// suggested names the commands that a mistyped one may mean, or where to find them.
func suggested(c *cobra.Command, typed string) string {
	c.SuggestionsMinimumDistance = 2 // letters that are wrong
	if names := c.SuggestionsFor(typed); len(names) > 0 {
		return "; did you mean " + strings.Join(names, " or ") + "?"
	}
	return fmt.Sprintf("; %s --help lists them all", c.CommandPath())
}

// Tree returns the commands with their flags and texts, for those who describe them.
func Tree() *cobra.Command {
	a := &app{asked: store.Asked{Getenv: func(string) string { return "" }}, stdout: io.Discard}
	return a.rootCommand()
}
