package sqlitelock

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/bell"
)

// Watch implements driver.Queuer. A hand-over by this engine notifies the watch directly; a
// hand-over by another process rings the bell.
func (e *engine) Watch(id lockinfo.LeaseID) driver.Watch { return e.watches.Watch(id) }

// attend starts a listener to a bell, which ends with Close. It calls began before any change is
// reported, and heard after each change. After Close attend does nothing.
func (e *engine) attend(b bell.Bell, rest time.Duration, began func(), heard func(rung func(lockinfo.LeaseID) bool)) {
	if e.enter(context.Background()) != nil {
		return
	}
	l := bell.Listen(b, e.newWatcher)
	began()
	go func() {
		defer e.users.Done()
		l.Run(e.closing, rest, heard)
	}()
}

// listen starts the listener to the bell, once. It notifies the waiters that were there before.
func (e *engine) listen() {
	e.listening.Do(func() {
		e.attend(e.bell, 0, e.watches.TellAll, func(rung func(lockinfo.LeaseID) bool) {
			for id, name := range e.watches.Requested(rung) {
				for !e.look(name, id) {
				}
			}
		})
	})
}

// look reads the state of id and notifies its watches of a change. If it cannot read the database,
// it notifies them in any case. It returns false if id got its place meanwhile: the caller must
// then call look again.
func (e *engine) look(name string, id lockinfo.LeaseID) bool {
	before := e.watches.Seen(id)
	var s bell.Sight
	err := e.read(func(r reader) error {
		_, err := r.sql.one(noticeSQL, []any{name, id, r.bootID, r.now.boot}, &s.Token, &s.Looks)
		return err
	})
	if err != nil {
		e.watches.Tell(id, driver.Notice{})
		return true
	}
	return e.watches.Saw(id, before, s)
}
