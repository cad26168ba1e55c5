package store

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/sqlitelock"
)

// MakeSystem makes the system store for root and the members of a group, and returns it. made is
// false if it existed before. MakeSystem does not make the group: accounts are the
// administrator's business.
func (a Asked) MakeSystem(ctx context.Context, group string) (c Choice, made bool, err error) {
	c = Choice{URL: a.systemURL(), Source: "the system store", System: true}
	path := a.Root + systemStore
	if os.Geteuid() != 0 {
		return c, false, fmt.Errorf("%w: only root can make the system store %s: use sudo", driver.ErrPermission, path)
	}
	g, err := user.LookupGroup(group)
	if err != nil {
		return c, false, fmt.Errorf("%w group: there is no group %q: make it first (on Linux: groupadd --system %s)", driver.ErrInvalid, group, group)
	}
	number, err := strconv.Atoi(g.Gid)
	if err != nil {
		return c, false, fmt.Errorf("%w: a group has no number here: the system store needs unix", driver.ErrUnsupported)
	}
	made, err = sqlitelock.MakeSystem(ctx, path, number)
	return c, made, err
}
