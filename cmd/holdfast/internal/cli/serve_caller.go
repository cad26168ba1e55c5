package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

func (a *app) addCallerCommand() *cobra.Command {
	var prefixes, rights []string
	cmd := &cobra.Command{
		Use:   "add-caller FILE NAME --prefix PREFIX --right RIGHT",
		Short: "Create a token for a caller of the server",
		Long: `Add-caller creates a token, adds the caller NAME to FILE, which is for serve --callers, and
prints the token on standard output. The file stores only its SHA-256, so it cannot be printed
again. Running servers accept the caller within a second.

The caller may use locks whose names begin with one of its prefixes; '' is every name. Rights
are
  acquire  take, renew and release locks   once     do-once work
  read     look at locks and events        onetime  one-time tokens
  break    take locks away from others     admin    see others' lease IDs

To replace a token, add the same NAME again, and remove the old entry from FILE later.

The exit status is 0, 78 if the file cannot be used, or one of those in holdfast --help. After
74 the token was not printed: remove its entry.`,
		Example: `  holdfast serve add-caller /etc/holdfast/callers.json shop --prefix shop/ --right acquire --right read
  holdfast serve add-caller callers.json ops --prefix '' --right read --right break >ops.token`,
		Args: words(2, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.addCaller(args[0], caller.Caller{Name: args[1], Prefixes: prefixes}, rights)
		},
	}
	cmd.Flags().StringArrayVar(&prefixes, "prefix", nil, "allow names that begin with `PREFIX`; may be repeated")
	cmd.Flags().StringArrayVar(&rights, "right", nil, "`RIGHT` of the caller; may be repeated")
	return cmd
}

func (a *app) addCaller(file string, c caller.Caller, rights []string) (err error) {
	if err := driver.CheckName(c.Name); err != nil {
		return usage("serve add-caller: %w", err)
	}
	if len(c.Prefixes) == 0 {
		return usage("serve add-caller: no --prefix: want the names that the caller may use; --prefix '' is every name")
	}
	if c.Rights, err = caller.ParseRights(rights); err != nil {
		return usage("serve add-caller: --right: %w", err)
	}
	if c.Rights == 0 {
		return usage("serve add-caller: no --right: want what the caller may do")
	}
	token, err := caller.Add(file, c)
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("serve add-caller: %w", err))
	}
	return a.answer(nil, token+"\n")
}
