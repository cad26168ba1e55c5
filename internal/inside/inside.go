// Package inside has the parts of a client that only our own packages use. Its
// documentation leaves them out: they name types of package driver, which may change.
package inside

import "github.com/holdfast-locks/holdfast/driver"

// A Client is embedded by holdfast.Client, under a name that go doc leaves out.
type Client struct{ Engine driver.Features }

// Features returns what the engine of the client can do, for packages that use more of it
// than locks. What they do with it, the client does not see. Of a client that
// holdfast.New has not made it returns nothing.
func (c *Client) Features() driver.Features {
	if c == nil {
		return driver.Features{}
	}
	return c.Engine
}
