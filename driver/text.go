package driver

import "github.com/holdfast-locks/holdfast/internal/named"

// The names of the numbered constants, in JSON and for people.
var (
	outcomes    = []string{"held", "granted", "cancelled", "recorded", "spent", "repeated"}
	vaultStates = []string{"unknown", "fresh", "redeemed", "revoked", "expired"}
	levels      = []string{"ok", "warn", "fail"}
)

// MarshalText implements encoding.TextMarshaler.
func (o Outcome) MarshalText() ([]byte, error) { return named.Text(o, outcomes...) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *Outcome) UnmarshalText(text []byte) error { return named.Parse(text, o, outcomes...) }

func (s VaultState) String() string { return named.Of(s, "VaultState", vaultStates...) }

// MarshalText implements encoding.TextMarshaler.
func (s VaultState) MarshalText() ([]byte, error) { return named.Text(s, vaultStates...) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *VaultState) UnmarshalText(text []byte) error { return named.Parse(text, s, vaultStates...) }

func (l Level) String() string { return named.Of(l, "Level", levels...) }

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return named.Text(l, levels...) }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Level) UnmarshalText(text []byte) error { return named.Parse(text, l, levels...) }
