package lease

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/oncehttp"
)

// shortestKey is the least length of an Idempotency-Key. A process that guesses one gets
// the lease, if it has the token of the same caller.
const shortestKey = 16 // characters

// HasKey reports whether a request has an Idempotency-Key. Without one each copy of it is
// an acquisition of its own.
func HasKey(r *door.Request) bool { return len(r.Header.Values(oncehttp.Header)) > 0 }

// keyOf returns the Idempotency-Key of a request, which must have one.
func keyOf(r *door.Request) (string, error) {
	values := r.Header.Values(oncehttp.Header)
	if len(values) != 1 {
		return "", badKey(fmt.Sprintf("the request has %d headers %s, want one: draw a key for each acquisition, and send it again with each repeat", len(values), oncehttp.Header))
	}
	key, err := oncehttp.ParseKey(values[0])
	if err != nil {
		return "", badKey(err.Error())
	}
	if len(key) < shortestKey {
		return "", badKey(fmt.Sprintf("the %s has %d characters, want %d or more: a random one, such as a UUID", oncehttp.Header, len(key), shortestKey))
	}
	return key, nil
}

func badKey(detail string) error {
	return &door.Refusal{Status: http.StatusBadRequest, Code: "key-invalid", Detail: detail}
}

// A Purpose separates the lease IDs of the same name and key.
type Purpose string

const (
	ForLock  Purpose = ""
	ForOnce  Purpose = "once"
	ForBreak Purpose = "break"
	ForToken Purpose = "onetime"
	ForHold  Purpose = "hold"
)

// LeaseID returns the lease ID for the Idempotency-Key of a request, which must have one: the
// same at every server of the store, and secret to clients without the key. It is an
// HMAC-SHA-256, cut to 128 bits. No part of the text contains the separator, the byte 0.
func (d *Store) LeaseID(ctx context.Context, r *door.Request, name string, use Purpose) (lockinfo.LeaseID, error) {
	key, err := keyOf(r)
	if err != nil {
		return "", err
	}
	secret, err := d.House.Secret(ctx)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s\x00%s\x00%s", r.Caller.Name, name, key)
	if use != ForLock {
		_, _ = io.WriteString(mac, "\x00"+string(use))
	}
	return lockinfo.LeaseID(hex.EncodeToString(mac.Sum(nil)[:16])), nil
}
