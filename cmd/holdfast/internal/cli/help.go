package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/store"
)

// shortHelp is printed by holdfast without arguments.
const shortHelp = `holdfast runs commands under locks that hosts share.

  holdfast run NAME -- COMMAND       wait for the lock, run the command, release the lock
  holdfast run -n NAME -- COMMAND    the same, or exit with status 75 at once
  holdfast once KEY -- COMMAND       run it unless it was done already, on any host
  holdfast ls                        the locks in use
  holdfast show NAME                 its holders and its queue
  holdfast doctor                    the store in use, and whether it is fit for locks

holdfast --help lists all commands, holdfast COMMAND --help explains one.
`

// groups are the headings of holdfast --help, and the commands below each.
var groups = []struct{ title, commands string }{
	{"Run a command under a lock:", "run once elect"},
	{"Hold a lock without a command:", "acquire extend heartbeat release hold"},
	{"Look at locks:", "ls show history check wait watch"},
	{"Break a lock, and one-time tokens:", "break token"},
	{"The store and this program:", "doctor bench serve completion version help"},
}

// meant maps our commands to words that users may try instead, such as the names of commands in
// other programs.
var meant = map[string]string{
	"run": "lock exec with flock", "acquire": "lock get take", "release": "unlock free unfreeze", "break": "unlock kill steal force-unlock rm delete",
	"hold": "freeze reserve", "show": "status info who inspect get", "ls": "locks ps status", "watch": "top tail", "history": "log events",
	"doctor": "ping test status", "serve": "server ui dashboard", "elect": "leader lead",
}

// group puts the commands under their headings.
func group(root *cobra.Command) {
	for _, c := range root.Commands() {
		c.SuggestFor = strings.Fields(meant[c.Name()])
	}
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range root.Commands() {
			if strings.Contains(" "+g.commands+" ", " "+c.Name()+" ") {
				c.GroupID = g.title
			}
		}
	}
	root.SetHelpCommandGroupID(groups[len(groups)-1].title)
}

// noCommand handles a missing or unknown command.
func (a *app) noCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		a.messages.Put(shortHelp)
		return &exit.Error{Status: exit.Usage}
	}
	return usage("unknown command %q%s", args[0], suggested(root, args[0]))
}

// suggested names the commands that a mistyped one may mean, or points to the list.
func suggested(c *cobra.Command, typed string) string {
	c.SuggestionsMinimumDistance = 2 // wrong letters
	if names := c.SuggestionsFor(typed); len(names) > 0 {
		for i, name := range names {
			names[i] = c.CommandPath() + " " + name
		}
		return "; did you mean " + strings.Join(names, " or ") + "?"
	}
	return fmt.Sprintf("; %s --help lists them all", c.CommandPath())
}

// Tree returns the commands with their flags and texts, for the manual and tests.
func Tree() *cobra.Command {
	none := func(string) string { return "" }
	a := &app{getenv: none, stdout: io.Discard, asked: store.Asked{Getenv: none}}
	return a.rootCommand()
}
