package holdfast

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-locks/holdfast/driver"
)

// holderFor returns what the store is told of an acquisition, or an error that wraps
// ErrInvalid; see checkHolder. What all acquisitions of the client have in common was
// checked when the client was made.
func (c *Client) holderFor(o *AcquireOptions) (Holder, error) {
	h := c.opts.Holder
	if o.Reason == "" && len(o.Labels) == 0 {
		return h, c.holderErr
	}
	h.Reason, h.Labels = o.Reason, maps.Clone(o.Labels)
	return h, checkHolder(h)
}

// holder returns what the store was told of the acquisition: that of the client, which
// leases need not keep for themselves, unless there is more to it.
func (a *acquisition) holder() *Holder {
	h := &a.req.Holder
	if h.Reason == "" && h.Labels == nil && !h.Once && h.Fingerprint == a.client.opts.Holder.Fingerprint {
		return &a.client.opts.Holder
	}
	own := *h
	return &own
}

// checkHolder returns an error that wraps ErrInvalid if h is too large for a
// store to keep with every lease, or cannot be shown on a terminal.
func checkHolder(h Holder) error {
	texts := []string{h.Host, h.User, h.Program, h.Label, h.Reason}
	for k, v := range h.Labels {
		texts = append(texts, k, v)
	}
	for _, s := range texts {
		if !isText(s) {
			return fmt.Errorf("%w holder text %q: want UTF-8 without control characters", ErrInvalid, s)
		}
	}
	encoded, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("%w holder: %w", ErrInvalid, err)
	}
	if len(encoded) > maxHolderText {
		return fmt.Errorf("%w holder: reason and labels take %d bytes, the limit is %d", ErrInvalid, len(encoded), maxHolderText)
	}
	return nil
}

// isText reports whether s can be shown on a terminal.
func isText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, driver.IsControl)
}
