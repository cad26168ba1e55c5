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
		Short: "Draw a token for somebody who may use the server",
		Long: `Add-caller draws a token, adds whoever has it to FILE, which is for serve --callers,
and prints it on standard output. The file has its SHA-256 only: the token is not to be
had again. Servers that have the file open know the caller within a second.

The names of locks that the caller may use begin with one of its prefixes; '' is every
name. Rights are
  acquire  take, renew and release locks   once     do-once work
  read     look at locks and events        onetime  one-time tokens
  break    take locks away from others     admin    see others' lease IDs

To change a token, add the same NAME again, and take the old entry out of FILE when
nobody has it any more.

The exit status is 0, or
  64  wrong arguments                   78   the file cannot be used
  74  the token cannot be printed: take its entry out of the file`,
		Example: `  holdfast serve add-caller /etc/holdfast/callers.json shop --prefix shop/ --right acquire --right read
  holdfast serve add-caller callers.json ops --prefix '' --right read --right break >ops.token`,
		Args: words(2, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.addCaller(args[0], caller.Caller{Name: args[1], Prefixes: prefixes}, rights)
		},
	}
	cmd.Flags().StringArrayVar(&prefixes, "prefix", nil, "what names begin with that the caller may use; may be repeated")
	cmd.Flags().StringArrayVar(&rights, "right", nil, "`RIGHT` of the caller; may be repeated")
	return cmd
}

func (a *app) addCaller(file string, c caller.Caller, rights []string) (err error) {
	if err := driver.CheckName(c.Name); err != nil {
		return usage("serve add-caller: %w", err)
	}
	if len(c.Prefixes) == 0 {
		return usage("serve add-caller: no --prefix: say which names the caller may use; --prefix '' is every name")
	}
	if c.Rights, err = caller.ParseRights(rights); err != nil {
		return usage("serve add-caller: --right: %w", err)
	}
	if c.Rights == 0 {
		return usage("serve add-caller: no --right: say what the caller may do")
	}
	token, err := caller.Add(file, c)
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("serve add-caller: %w", err))
	}
	return a.answer(nil, token+"\n")
}
