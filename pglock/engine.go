package pglock

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/driver/mailbox"
	"github.com/holdfast-locks/holdfast/internal/holders"
	"github.com/holdfast-locks/holdfast/internal/modes"
	"github.com/holdfast-locks/holdfast/internal/whole"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// An Engine keeps locks in one schema of a database. Use Open or New to make one, and Close to end
// it.
type Engine struct{ *hidden }

// hidden is engine under a name whose methods go doc does not list, so that go doc shows only what
// programs call.
type hidden = engine

// Close sends the remaining notices, for at most a second, and closes all connections.
func (e *Engine) Close() error { return e.hidden.Close() }

// An engine is the implementation of an Engine.
type engine struct {
	*pools
	name   string   // of the schema, quoted
	calls  sync.Map // SQL that calls a function, by the function's name
	opts   Options
	listen *pgx.ConnConfig // for the connection that listens

	inbox   string // names this engine's channel
	watches mailbox.Box[struct{}]
	losses  driver.Losses
	feed    follower
	sender  sender
	ear     ear
	sweeper sweeper
	users   sync.WaitGroup // goroutines
}

var _ whole.Engine = (*Engine)(nil)

// Capabilities implements driver.Engine.
func (e *engine) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Shared: true, Semaphore: true, Queue: true, Break: true, Losses: true,
		AcquireAll: true, Records: true, OneTime: true, List: true, Diagnose: true, History: e.opts.History,
	}
}

// Close implements driver.Engine.
func (e *engine) Close() error {
	e.sender.flush(time.Second)
	e.close()
	e.users.Wait()
	return nil
}

// spawn runs do on a goroutine that Close waits for, unless the engine is closed.
func (e *engine) spawn(do func()) {
	e.sender.mu.Lock() // Close waits under it; see flush
	defer e.sender.mu.Unlock()
	if !e.sender.closed {
		e.users.Go(do)
	}
}

// call calls a function of the schema, and reads its row into dest.
func (e *engine) call(ctx context.Context, k kind, function string, args []any, dest ...any) error {
	sql, ok := e.calls.Load(function)
	if !ok {
		sql, _ = e.calls.LoadOrStore(function, callSQL(e.name+"."+function, len(args), len(dest)))
	}
	return e.query(ctx, k, sql.(string), args, func(rows pgx.Rows) error { return rows.Scan(dest...) })
}

// callSQL returns a statement that calls a function. It does not call the function in FROM, because
// the server would first store its rows.
func callSQL(function string, args, columns int) string {
	var numbers []string
	for i := range args {
		numbers = append(numbers, fmt.Sprintf("$%d", i+1))
	}
	call := fmt.Sprintf("SELECT %s(%s)", function, strings.Join(numbers, ","))
	if columns == 1 {
		return call
	}
	return "SELECT (call.reply).* FROM (" + call + " AS reply OFFSET 0) AS call" // OFFSET 0: one call for all columns
}

// change is call for a function that may cause notices, which are its last column. change sends
// them, unless the outcome is unknown: a waiter must not trust a hand-over that a failover undoes.
func (e *engine) change(ctx context.Context, k kind, function string, args []any, dest ...any) error {
	var all []notices
	err := e.call(ctx, k, function, args, append(dest, inJSON(&all))...)
	if err == nil {
		e.send(all)
	}
	return err
}

// inJSON scans a column with JSON, or NULL, into v.
func inJSON(v any) *jsonColumn { return &jsonColumn{v} }

type jsonColumn struct{ v any }

// ScanBytes implements pgtype.BytesScanner.
func (c *jsonColumn) ScanBytes(text []byte) error {
	if text == nil {
		return nil
	}
	return json.Unmarshal(text, c.v)
}

// A row is a lease, a place, a broken lease or an event, as the functions describe it. Times are
// durations relative to now.
type row struct {
	Seq       int64            `json:"seq"`
	Name      string           `json:"name"`
	LeaseID   lockinfo.LeaseID `json:"lease_id"`
	Token     uint64           `json:"token"`
	Kind      int              `json:"mode"`
	Limit     int              `json:"permit_limit"`
	Permits   int              `json:"permits"`
	Holder    string           `json:"holder"`
	Since     int64            `json:"since"`
	ExpiresIn int64            `json:"expires_in"`
	Released  bool             `json:"released"`
}

func (r *row) mode() lockinfo.Mode {
	return modes.Fields{Kind: modes.Kind(r.Kind), Limit: r.Limit, Permits: r.Permits}.Mode()
}

func (r *row) holding() lockinfo.Holding {
	return lockinfo.Holding{
		LeaseID: r.LeaseID, Token: r.Token, Mode: r.mode(), Holder: holders.Read(r.Holder),
		Since: max(duration(r.Since), 0), ExpiresIn: duration(r.ExpiresIn), Released: r.Released,
	}
}

// micros returns d in microseconds, rounded up: a lease or a record may end late, never early.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

func duration(micros int64) time.Duration { return time.Duration(micros) * time.Microsecond }
