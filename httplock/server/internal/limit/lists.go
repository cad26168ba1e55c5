package limit

import (
	"context"
	"math"
	"time"

	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// ListsAtOnce is how many lists of one caller the server makes at a time. A list of many locks
// needs megabytes, and much time of the store.
const ListsAtOnce = 16

// listPatience is how long a list waits for its turn: lists that are not read to their end may
// wait for each other.
const listPatience = 10 * time.Second

// List waits until c may have another list. The list counts until leave.
func (l *Limits) List(ctx context.Context, c *caller.Caller) (leave func(), err error) {
	var turns chan struct{}
	gone, err := l.enter(c, "lists", math.MaxInt, func(a *account) *int {
		if a.turns == nil {
			a.turns = make(chan struct{}, ListsAtOnce)
		}
		turns = a.turns
		return &a.lists
	})
	if err != nil {
		return nil, err
	}
	select {
	case turns <- struct{}{}:
		return func() {
			<-turns
			gone()
		}, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(listPatience):
		err = exceeded("lists", ListsAtOnce, time.Second)
	}
	gone()
	return nil, err
}
