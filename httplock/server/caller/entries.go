package caller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/strict"
)

// A document is the content of a file of callers.
type document struct {
	Callers []entry  `json:"callers"`
	Issuers []issuer `json:"issuers,omitempty"`
}

// An entry is a caller that has a token, or is a user of this host.
type entry struct {
	grant
	SHA256 string  `json:"sha256,omitempty"` // of the token, 64 hex digits
	UID    *uint32 `json:"uid,omitempty"`
}

// A grant is what a caller may do.
type grant struct {
	Name     string   `json:"name"`
	Prefixes []string `json:"prefixes"`
	Rights   []string `json:"rights"`
}

func (g *grant) caller() (*Caller, error) {
	if err := driver.CheckName(g.Name); err != nil {
		return nil, fmt.Errorf("name: %w", err)
	}
	if len(g.Prefixes) == 0 {
		return nil, errors.New(`prefixes: say with what the names begin that it may use; [""] is every name`)
	}
	rights, err := ParseRights(g.Rights)
	if err != nil {
		return nil, fmt.Errorf("rights: %w", err)
	}
	if rights == 0 {
		return nil, errors.New("rights: it has none")
	}
	return &Caller{Name: g.Name, Rights: rights, Prefixes: slices.Clone(g.Prefixes)}, nil
}

// known is the parsed content of a File. It is read-only.
type known struct {
	count   int
	tokens  map[[sha256.Size]byte]*Caller
	users   map[uint32]*Caller
	issuers map[string]*believed
}

// parse reads the text of a file.
func parse(text []byte, verifier func(Issuer) (Verifier, error)) (*known, error) {
	var doc document
	if err := strict.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	all := &known{
		count: len(doc.Callers), tokens: map[[sha256.Size]byte]*Caller{},
		users: map[uint32]*Caller{}, issuers: map[string]*believed{},
	}
	for n, e := range doc.Callers {
		if err := all.add(e); err != nil {
			return nil, fmt.Errorf("callers[%d] (%q): %w", n, e.Name, err)
		}
	}
	for n, i := range doc.Issuers {
		if err := all.believe(i, verifier); err != nil {
			return nil, fmt.Errorf("issuers[%d] (%q): %w", n, i.URL, err)
		}
	}
	return all, nil
}

func (k *known) add(e entry) error {
	c, err := e.caller()
	switch {
	case err != nil:
		return err
	case (e.SHA256 == "") == (e.UID == nil):
		return errors.New("want either sha256 or uid")
	case e.UID != nil && k.users[*e.UID] != nil:
		return fmt.Errorf("uid: %d is that of %q already", *e.UID, k.users[*e.UID].Name)
	case e.UID != nil:
		k.users[*e.UID] = c
		return nil
	}
	sum, err := hex.DecodeString(e.SHA256)
	if err != nil || len(sum) != sha256.Size {
		return errors.New("sha256: want the 64 hex digits of the SHA-256 of a token, never the token itself")
	}
	digest := [sha256.Size]byte(sum)
	if digest == sha256.Sum256(nil) {
		return errors.New("sha256: it is that of no token at all")
	}
	if other := k.tokens[digest]; other != nil {
		return fmt.Errorf("sha256: it is that of %q already", other.Name)
	}
	k.tokens[digest] = c
	return nil
}

// ofToken returns the caller of a token. The time of a look-up depends on the digest only,
// which a client cannot choose, so it reveals nothing about the known tokens.
func (k *known) ofToken(ctx context.Context, token string) (*Caller, error) {
	if c := k.tokens[sha256.Sum256([]byte(token))]; c != nil {
		return c, nil
	}
	if strings.Count(token, ".") == 2 && len(k.issuers) > 0 {
		return k.ofIssuer(ctx, token)
	}
	return nil, Wrong("the token is not one that the server knows")
}
