package keeper

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// Kinds of tickets.
const (
	HoldTicket = "hold"
	OnceTicket = "once"
)

// A Ticket describes one lease. Its reader can release the lease.
type Ticket struct {
	Kind    string           `json:"kind"`
	Store   string           `json:"store"` // without credentials
	Name    string           `json:"name"`
	LeaseID holdfast.LeaseID `json:"lease_id"`
	Token   uint64           `json:"token,omitempty"`  // 0: the reply to the acquire request is not known
	Socket  string           `json:"socket,omitempty"` // of its keeper
	PID     int              `json:"pid,omitempty"`    // of the acquiring process, while Token is 0

	// Of do-once work.
	TTL time.Duration `json:"ttl,omitempty"`
	Once
}

// A Once describes the record of do-once work.
type Once struct {
	Retention   time.Duration `json:"retention,omitempty"`
	Fingerprint string        `json:"fingerprint,omitempty"`
	MaxResult   int           `json:"max_result,omitempty"` // bytes
}

// Options returns the options of such work under a lease of this TTL.
func (o Once) Options(ttl time.Duration) *holdfast.OnceOptions {
	return &holdfast.OnceOptions{TTL: ttl, Retention: o.Retention, Fingerprint: o.Fingerprint, MaxResult: o.MaxResult}
}

// A Box is a directory with the tickets of this user only.
type Box string

// path returns the file of a ticket. A name may have several, with different lease IDs.
func (b Box) path(t Ticket) string {
	sum := sha256.Sum256([]byte(t.Kind + "\x00" + t.Store + "\x00" + t.Name))
	return filepath.Join(string(b), hex.EncodeToString(sum[:16])+"-"+string(t.LeaseID)+".json")
}

// Put writes a ticket, and replaces one of the same lease. When it returns, the ticket is on the
// disk.
func (b Box) Put(t Ticket) error {
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
	defer func() { _ = os.Remove(f.Name()) }() // fails after the rename
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), b.path(t)); err != nil {
		return err
	}
	return b.sync()
}

// sync writes the entries of the directory to the disk.
func (b Box) sync() error {
	dir, err := os.Open(string(b))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// Get returns the tickets for a name: the latest lease first, requests that are not granted last.
func (b Box) Get(kind, store, name string) (found []Ticket, err error) {
	paths, err := filepath.Glob(b.path(Ticket{Kind: kind, Store: store, Name: name, LeaseID: "*"}))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // it was dropped just now
			continue
		}
		var t Ticket
		if err == nil {
			err = json.Unmarshal(data, &t)
		}
		if err != nil || t.Name != name || !t.LeaseID.Valid() {
			return nil, fmt.Errorf("%s: it is damaged: delete it, and break the lock if it is held", path)
		}
		found = append(found, t)
	}
	slices.SortFunc(found, func(x, y Ticket) int { return cmp.Compare(y.Token, x.Token) })
	return found, nil
}

// Drop deletes the ticket of a lease.
func (b Box) Drop(t Ticket) { _ = os.Remove(b.path(t)) }
