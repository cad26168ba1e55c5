package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/cmd/holdfast/internal/exit"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/onetime"
)

// maxSecretInput is more bytes than a secret and the white space around it have.
const maxSecretInput = 4096

// tokenFlags are the flags of the commands of token as they were given.
type tokenFlags struct {
	collection string
	ttl        time.Duration
}

func (a *app) tokenCommand() *cobra.Command {
	var f tokenFlags
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Issue and redeem one-time tokens",
		Long: `A one-time token is a secret whose payload is handed out once, however many clients redeem
it. Secrets are read from standard input: other users can see arguments.

The exit status is 0, 1 if the token is unknown, expired, revoked or already redeemed. Others:
holdfast --help. If redeem exits with 69, its message shows whether the outcome is unknown.`,
		Example: `  printf 'user 42' | holdfast token issue --ttl 15m - >secret
  holdfast token redeem - <secret`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("token: unknown command %q%s", args[0], suggested(cmd, args[0]))
			}
			return usage("token: want issue, redeem, revoke or prune")
		},
	}
	cmd.PersistentFlags().StringVar(&f.collection, "collection", "onetime", "`NAME` of the collection; a token is unknown in all others")
	cmd.AddCommand(
		a.tokenIssueCommand(&f),
		a.secretCommand(&f, "redeem -", "Print the payload of the token whose secret is on standard input, once",
			`  holdfast token redeem - <secret
  payload=$(holdfast token redeem - --json <secret | jq -r .payload)`, a.redeemToken),
		a.secretCommand(&f, "revoke -", "Make the token whose secret is on standard input useless",
			`  holdfast token revoke - <secret
  holdfast token revoke --collection invitations - <secret`,
			func(ctx context.Context, s *onetime.Service, secret string) error { return s.Revoke(ctx, secret) }),
		a.tokenPruneCommand(&f),
	)
	return cmd
}

func (a *app) tokenIssueCommand(f *tokenFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "issue [-]",
		Short: "Store a payload, which - reads from standard input, and print the secret that redeems it",
		Example: `  printf 'user 42' | holdfast token issue --ttl 15m - >secret
  holdfast token issue --collection invitations - <letter`,
		Args: words(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var payload []byte
			switch {
			case len(args) == 1 && args[0] != "-":
				return usage("token issue: want - and the payload on standard input; an argument can be seen by others")
			case len(args) == 1:
				var err error
				if payload, err = readInput(cmd, onetime.MaxPayload); err != nil {
					return usage("token issue: payload: %w", err)
				}
			}
			return a.withTokens(cmd, f, func(ctx context.Context, s *onetime.Service) error {
				return a.issueToken(ctx, s, payload, f.ttl)
			})
		},
	}
	durationVar(cmd.Flags(), &f.ttl, "ttl", 15*time.Minute, limits{onetime.MinTTL, onetime.MaxTTL}, "how long the token can be redeemed")
	return a.withJSON(cmd)
}

func (a *app) issueToken(ctx context.Context, s *onetime.Service, payload []byte, ttl time.Duration) error {
	secret, err := s.Issue(ctx, payload, ttl)
	if err != nil {
		return err
	}
	id, _ := s.ID(secret) // the secret was just made
	err = a.answer(struct {
		Secret string `json:"secret"`
		ID     string `json:"id"`
		TTLMS  int64  `json:"ttl_ms"`
	}{secret, id, ttl.Milliseconds()}, secret+"\n")
	if err != nil {
		// The secret is lost. If this fails, the token expires.
		_ = s.Revoke(ctx, secret)
	}
	return err
}

// secretCommand returns a command that calls do with the secret from standard input.
func (a *app) secretCommand(f *tokenFlags, use, short, examples string, do func(context.Context, *onetime.Service, string) error) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:     use,
		Short:   short,
		Example: examples,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] != "-" {
				return usage("token %s: want - and the secret on standard input; an argument can be seen by others", cmd.Name())
			}
			data, err := readInput(cmd, maxSecretInput)
			if err != nil {
				return usage("token %s: secret: %w", cmd.Name(), err)
			}
			return a.withTokens(cmd, f, func(ctx context.Context, s *onetime.Service) error {
				return do(ctx, s, strings.TrimSpace(string(data)))
			})
		},
	})
}

func (a *app) redeemToken(ctx context.Context, s *onetime.Service, secret string) error {
	payload, err := s.Redeem(ctx, secret)
	if err != nil {
		return err
	}
	text := string(payload)
	view := struct {
		Payload       *string `json:"payload"` // null if it is not UTF-8
		PayloadBase64 []byte  `json:"payload_base64"`
	}{nil, append([]byte{}, payload...)}
	if utf8.ValidString(text) {
		view.Payload = &text
	}
	if err := a.answer(view, text); err != nil {
		return exit.Errorf(exit.Output, "token redeem: it is redeemed, but its payload cannot be written: %w", err)
	}
	return nil
}

func (a *app) tokenPruneCommand(f *tokenFlags) *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "prune",
		Short: "Delete expired tokens of every collection, in a store that does not do so itself",
		Example: `  holdfast token prune
  holdfast token prune --json | jq .pruned`,
		Args: words(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withTokens(cmd, f, func(ctx context.Context, s *onetime.Service) error {
				n, err := s.Prune(ctx)
				if err != nil {
					return err
				}
				return a.answer(struct {
					Pruned int `json:"pruned"`
				}{n}, fmt.Sprintf("%d pruned\n", n))
			})
		},
	})
}

// withTokens opens the collection and calls f.
func (a *app) withTokens(cmd *cobra.Command, f *tokenFlags, use func(context.Context, *onetime.Service) error) error {
	if f.collection == "" {
		return usage("token: --collection: it is empty")
	}
	if err := driver.CheckName(f.collection); err != nil {
		return usage("token: --collection: %w", err)
	}
	return a.ask(cmd, func(ctx context.Context, c *holdfast.Client) error {
		s, err := onetime.New(c, &onetime.Options{Name: f.collection})
		if err != nil {
			return err
		}
		defer s.Close(ctx) // cannot fail: the context does not end
		return use(ctx, s)
	})
}

// readInput reads all of standard input, up to limit bytes.
func readInput(cmd *cobra.Command, limit int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), int64(limit)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("standard input: %w", err)
	case len(data) > limit:
		return nil, fmt.Errorf("standard input has more than %d bytes", limit)
	}
	return data, nil
}
