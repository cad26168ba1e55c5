package cli

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
)

// withJSON gives a command the flag --json.
func (a *app) withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON")
	return cmd
}

// answer prints the result: v as JSON, or text.
func (a *app) answer(v any, text string) error {
	a.answered = true
	var err error
	if a.json {
		e := json.NewEncoder(a.stdout)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		err = e.Encode(v)
	} else {
		_, err = io.WriteString(a.stdout, text)
	}
	return exit.With(exit.Output, err)
}

// answerWith is answer followed by an exit with status, if printing succeeded.
func (a *app) answerWith(status int, v any, text string) error {
	if err := a.answer(v, text); err != nil || status == exit.OK {
		return err
	}
	return &exit.Error{Status: status}
}
