package pglock

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/probe"
)

var _ driver.Diagnoser = (*engine)(nil)

const (
	probeLimit = 2 * time.Second // bounds one check
	probes     = 5               // the fastest one counts
)

// A survey is one run of Diagnose.
type survey struct {
	*engine
	probe.Findings
}

// Diagnose implements driver.Diagnoser. The last tokens of the random names that it locks stay
// until the sweep.
func (e *engine) Diagnose(ctx context.Context, req driver.DiagnoseRequest) (driver.Diagnosis, error) {
	s := &survey{engine: e}
	var version string
	if err := s.row(ctx, `SELECT pg_catalog.current_setting('server_version')`, &version); err != nil {
		return driver.Diagnosis{}, err
	}
	s.Found(driver.OK, "server", "PostgreSQL %s", version)
	err := e.run(ctx, waiting, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := e.installed.look(ctx, conn)
		return err
	})
	if err != nil {
		s.Failed("schema", err)
		return driver.Diagnosis{Findings: s.Findings}, nil // the rest cannot be checked
	}
	for _, look := range []func(context.Context){
		s.lookAtSchema, s.lookAtFunctions, s.lookAtRights, s.lookAtPooler, s.tryMessages, s.lookAtCommits, s.lookAtStandbys,
		s.lookAtClock, s.lookAtHolders, s.lookAtSnapshots, s.lookAtVacuum, func(ctx context.Context) { s.TryLocks(ctx, e, req.TTL) },
	} {
		look(ctx)
		if ctx.Err() != nil {
			return driver.Diagnosis{}, interrupted(ctx)
		}
	}
	return driver.Diagnosis{Findings: s.Findings}, nil
}

// rows runs a statement of a check, and returns what read makes of each row.
func rows[T any](ctx context.Context, s *survey, sql string, read pgx.RowToFunc[T]) (all []T, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	err = s.run(ctx, renewing, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, inSchema(sql, s.name))
		if err == nil {
			all, err = pgx.CollectRows(rows, read)
		}
		return err
	})
	return all, err
}

// row reads the only row of a statement.
func (s *survey) row(ctx context.Context, sql string, to ...any) error {
	_, err := rows(ctx, s, sql, func(row pgx.CollectableRow) (struct{}, error) { return struct{}{}, row.Scan(to...) })
	return err
}

// warn adds a warning for each text that a statement returns, or the finding none if there is none.
func (s *survey) warn(ctx context.Context, key, sql, none string) {
	texts, err := rows(ctx, s, sql, pgx.RowTo[string])
	if err != nil {
		s.Found(driver.Warn, key, "cannot look: %s", err)
	}
	for _, text := range texts {
		s.Found(driver.Warn, key, "%s", text)
	}
	if err == nil && len(texts) == 0 {
		s.Found(driver.OK, key, "%s", none)
	}
}
