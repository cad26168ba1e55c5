// Package ticket remembers leases for the commands of this user that come later: for
// hold and once begin, whose end is another command, in another shell.
//
// A ticket is written before the lease is asked for: if the answer is lost, or this
// process dies, the lease can still be given back by its ID.
package ticket

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// Kinds of tickets.
const (
	Hold = "hold"
	Once = "once"
)

// A Ticket is what is known of one lease. Whoever reads it can give the lease back.
type Ticket struct {
	Kind    string           `json:"kind"`
	Store   string           `json:"store"` // without credentials
	Name    string           `json:"name"`
	LeaseID holdfast.LeaseID `json:"lease_id"`
	Token   uint64           `json:"token,omitempty"` // 0: the answer to the acquire is not known
	Mode    holdfast.Mode    `json:"mode,omitempty"`
	Limit   int              `json:"limit,omitempty"`
	Permits int              `json:"permits,omitempty"`
	Socket  string           `json:"socket,omitempty"` // of its keeper

	// Of do-once work.
	TTL         time.Duration `json:"ttl,omitempty"`
	Retention   time.Duration `json:"retention,omitempty"`
	Fingerprint string        `json:"fingerprint,omitempty"`
	MaxResult   int           `json:"max_result,omitempty"`
}

// A Box is a directory with tickets, of this user alone.
type Box string

// ErrNone says that there is no such ticket.
var ErrNone = errors.New("no ticket")

// path is where the ticket for a name on a store is.
func (b Box) path(kind, store, name string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + store + "\x00" + name))
	return filepath.Join(string(b), hex.EncodeToString(sum[:16])+".json")
}

// Put writes a ticket, in place of the one that is there for the name. When it returns
// the ticket is on the disk.
func (b Box) Put(t Ticket) (err error) {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(b), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(string(b), ".new-*") // of mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), b.path(t.Kind, t.Store, t.Name)); err != nil {
		return err
	}
	return b.sync()
}

// sync has the names of the directory written to the disk.
func (b Box) sync() error {
	dir, err := os.Open(string(b))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// Get returns the ticket for a name, or ErrNone.
func (b Box) Get(kind, store, name string) (t Ticket, err error) {
	path := b.path(kind, store, name)
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t, ErrNone
	case err != nil:
		return t, err
	}
	if err := json.Unmarshal(data, &t); err != nil || t.Name != name || !t.LeaseID.Valid() {
		return t, fmt.Errorf("%s: it is damaged: delete it, and break the lock if it is held", path)
	}
	return t, nil
}

// Drop deletes the ticket for a name, if it is still about the same lease.
func (b Box) Drop(t Ticket) {
	if now, err := b.Get(t.Kind, t.Store, t.Name); err == nil && now.LeaseID == t.LeaseID {
		_ = os.Remove(b.path(t.Kind, t.Store, t.Name))
	}
}
