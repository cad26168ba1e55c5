package holdfast

import (
	"maps"

	"github.com/holdfast-locks/holdfast/driver"
)

// holderFor returns the holder that the store keeps for an acquisition, or an error that
// wraps ErrInvalid; see driver.CheckHolder. The parts that all acquisitions of the client
// share were checked when the client was made.
func (c *Client) holderFor(o *AcquireOptions) (Holder, error) {
	h := c.opts.Holder
	if o.Reason == "" && len(o.Labels) == 0 {
		return h, c.holderErr
	}
	h.Reason, h.Labels = o.Reason, maps.Clone(o.Labels)
	return h, driver.CheckHolder(h)
}

// holder returns the holder of the acquisition: the client's own, which leases need not
// keep for themselves, unless there is more to it.
func (a *acquisition) holder() *Holder {
	h := &a.req.Holder
	if h.Reason == "" && h.Labels == nil && !h.Once && h.Fingerprint == a.client.opts.Holder.Fingerprint {
		return &a.client.opts.Holder
	}
	own := *h
	return &own
}
