// Package inside has the parts of a client that only packages of this repository use. The
// documentation of holdfast.Client leaves them out, because they name types of package driver,
// which may change.
package inside

import "github.com/holdfast-locks/holdfast/driver"

// A Client is embedded by holdfast.Client, under a name that go doc leaves out.
type Client struct{ Engine driver.Features }

// Features returns the features of the client's engine, for packages that use it for more than
// locks. The client does not see what they do with it. If holdfast.New has not made the client
// Features returns the zero Features.
func (c *Client) Features() driver.Features {
	if c == nil {
		return driver.Features{}
	}
	return c.Engine
}
