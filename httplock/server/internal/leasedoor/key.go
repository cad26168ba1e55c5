package leasedoor

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
	"github.com/holdfast-locks/holdfast/oncehttp"
)

// shortestKey is how long an Idempotency-Key must be at least: whoever guesses it, and is
// the same caller, gets the lease.
const shortestKey = 16 // characters

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

// A purpose keeps lease IDs apart that are made of the same name and key.
type purpose string

const (
	forLock  purpose = ""
	forOnce  purpose = "once"
	forBreak purpose = "break"
	forToken purpose = "onetime"
	forHold  purpose = "hold"
)

// leaseID returns the lease ID that a caller's key stands for: the same at every server of
// the store, and nobody's who does not know their secret. It is an HMAC-SHA-256, cut to
// 128 bits. No part has the character 0: names and keys must not, and purposes are ours.
func (d *leases) leaseID(ctx context.Context, r *door.Request, name, key string, use purpose) (driver.LeaseID, error) {
	secret, err := d.house.Secret(ctx)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s\x00%s\x00%s", r.Caller.Name, name, key)
	if use != forLock {
		_, _ = io.WriteString(mac, "\x00"+string(use))
	}
	return driver.LeaseID(hex.EncodeToString(mac.Sum(nil)[:16])), nil
}
