package sqlitelock

import (
	"context"
	"errors"

	"github.com/holdfast-locks/holdfast/sqlitelock/internal/onefile"
)

// MakeSystem makes a system store at path, for root and the members of a group. The
// directory of path must be missing or empty, and becomes the store's own. Only root can
// make a store, on unix. Directory and files belong to root and the group, so that members
// cannot delete or replace them, and Open refuses the store if anything differs.
// SECURITY.md lists what members can still do to each other and to root.
//
// If the process is killed, there is a whole store or none. An existing store is not
// changed, except that MakeSystem makes missing files again while no process uses the
// store; any other difference is driver.ErrInvalid. It reports whether it has made the
// store.
func MakeSystem(ctx context.Context, path string, group int) (made bool, err error) {
	return systemMaker(path, group, func() {}).Run(ctx)
}

// systemMaker returns the maker of a system store. Tests kill the process in a step.
func systemMaker(path string, group int, step func()) *onefile.Maker {
	return &onefile.Maker{
		Path: path, Group: group, Step: step, Create: createDatabase,
		Verify: func(ctx context.Context, path string) error {
			e, err := Open(ctx, path, &Options{System: true})
			if err != nil {
				return err
			}
			return e.Close()
		},
	}
}

// createDatabase makes an empty lock database at path, which no other process uses.
func createDatabase(ctx context.Context, path string) (err error) {
	e := &engine{path: path, brief: brief, closing: make(chan struct{})}
	if e.conn, err = newConn(e.dsn("mode", "rwc")); err != nil {
		return refused(err)
	}
	return refused(errors.Join(e.prepareDatabase(ctx), e.conn.Close()))
}
