package holdfast

import (
	"maps"

	"github.com/holdfast-locks/holdfast/driver"
)

// holderFor returns what the store is told of an acquisition, or an error that wraps
// ErrInvalid; see driver.CheckHolder. What all acquisitions of the client have in common was
// checked when the client was made.
func (c *Client) holderFor(o *AcquireOptions) (Holder, error) {
	h := c.opts.Holder
	if o.Reason == "" && len(o.Labels) == 0 {
		return h, c.holderErr
	}
	h.Reason, h.Labels = o.Reason, maps.Clone(o.Labels)
	return h, driver.CheckHolder(h)
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
