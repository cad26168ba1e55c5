package pglock

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/probe"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// newest is the newest version of the server that holdfast knows.
const newest = 18

func (s *survey) lookAtSchema(ctx context.Context) {
	var version int
	var owner, database string
	err := s.row(ctx, `SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4 / 10000,
		pg_catalog.pg_get_userbyid(relowner), pg_catalog.current_database()
		FROM pg_catalog.pg_class WHERE oid = 'holdfast.lock'::pg_catalog.regclass`, &version, &owner, &database)
	switch {
	case err != nil:
		s.Failed("schema", err)
	case version > newest:
		s.Found(driver.Warn, "schema", "layout %d: this program was made for PostgreSQL %d to %d: see that there is no newer holdfast", layout, oldest, newest)
	default:
		s.Found(driver.OK, "schema", "%s in the database %s, of %s; layout %d", s.name, database, owner, layout)
	}
}

var functionText = sync.OnceValue(func() *regexp.Regexp { // only the doctor pays for it
	return regexp.MustCompile(`(?s)CREATE OR REPLACE FUNCTION holdfast\.(\w+)\(.*?\sAS \$\$(.*?)\$\$`)
})

// lookAtFunctions compares the installed functions with this program's.
func (s *survey) lookAtFunctions(ctx context.Context) {
	var number int
	if err := s.row(ctx, `SELECT revision FROM holdfast.layout`, &number); err != nil {
		s.Failed("functions", err)
		return
	}
	if number > revision {
		s.Found(driver.OK, "functions", "number %d: a newer holdfast has installed them", number)
		return
	}
	there, err := rows(ctx, s, `SELECT p.proname || ' ' || pg_catalog.md5(p.prosrc) FROM pg_catalog.pg_proc p
		JOIN pg_catalog.pg_class c ON c.relnamespace = p.pronamespace WHERE c.oid = 'holdfast.lock'::pg_catalog.regclass`, pgx.RowTo[string])
	if err != nil {
		s.Failed("functions", err)
		return
	}
	var wrong []string
	for _, f := range functionText().FindAllStringSubmatch(functionsSQL(), -1) {
		sum := md5.Sum([]byte(inSchema(f[2], s.name)))
		if !slices.Contains(there, f[1]+" "+hex.EncodeToString(sum[:])) {
			wrong = append(wrong, f[1])
		}
	}
	if len(wrong) > 0 {
		s.Found(driver.Warn, "functions", "%s: not as this program installs: somebody has replaced what decides who has a lock: "+
			"have the owner run the SQL of pglock.Schema", strings.Join(wrong, ", "))
		return
	}
	s.Found(driver.OK, "functions", "number %d, as this program installs them", number)
}

func (s *survey) lookAtRights(ctx context.Context) {
	missing, err := rows(ctx, s, `SELECT c.relname || ': ' || r FROM pg_catalog.pg_class c, pg_catalog.unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) r
		WHERE c.relnamespace = (SELECT relnamespace FROM pg_catalog.pg_class WHERE oid = 'holdfast.lock'::pg_catalog.regclass)
			AND c.relkind = 'r' AND NOT pg_catalog.has_table_privilege(c.oid, r) ORDER BY 1`, pgx.RowTo[string])
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("%w: rights are missing (%s): have the owner run %s", driver.ErrPermission, strings.Join(missing, ", "), s.installed.grants())
	}
	if err != nil {
		s.Failed("rights", err)
		return
	}
	var all bool
	if err := s.row(ctx, `SELECT pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')`, &all); err != nil || !all {
		s.Found(driver.Warn, "rights", "enough for locks; what other users of the server do cannot be looked at: GRANT pg_read_all_stats TO %s", s.installed.user)
		return
	}
	s.Found(driver.OK, "rights", "read and write our tables, and see what other users of the server do")
}

// lookAtPooler detects a pooler between the program and the server. A pooler makes up a process ID
// that differs from the server's. If the pooler lends a server connection for a transaction only,
// the server's process ID changes.
func (s *survey) lookAtPooler(ctx context.Context) {
	var mode string
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	err := s.run(ctx, renewing, func(ctx context.Context, conn *pgx.Conn) error {
		pid, err := backend(ctx, conn)
		if err != nil || pid == conn.PgConn().PID() {
			return err
		}
		mode = "session"
		return s.run(ctx, renewing, func(ctx context.Context, other *pgx.Conn) error {
			tx, err := other.Begin(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback(ctx) }()
			theirs, err := backend(ctx, other)
			if err != nil {
				return err
			}
			again, err := backend(ctx, conn)
			if theirs == pid || again != pid {
				mode = "transaction"
			}
			return err
		})
	})
	switch {
	case err != nil:
		s.Found(driver.Warn, "pooler", "cannot look: %s", err)
	case mode == "":
		s.Found(driver.OK, "pooler", "none: the server itself answers")
	default:
		s.Found(driver.OK, "pooler", "one in %s mode", mode)
	}
}

func backend(ctx context.Context, conn *pgx.Conn) (pid uint32, err error) {
	err = conn.QueryRow(ctx, `SELECT pg_catalog.pg_backend_pid()`).Scan(&pid)
	return pid, err
}

// tryMessages sends itself a notification over a connection like the listener's.
func (s *survey) tryMessages(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	err := s.hear(limited)
	heard := err == nil
	var listeners int64
	if heard {
		err = s.row(ctx, `SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity
			WHERE datname = pg_catalog.current_database() AND (application_name LIKE '%`+listenerSuffix+`' OR query ILIKE 'listen %')`, &listeners)
	}
	switch {
	case err != nil && limited.Err() == nil:
		s.Found(driver.Warn, "messages", "LISTEN fails: %s: waiters learn of their grant by polling", err)
	case !heard:
		s.Found(driver.Warn, "messages", "a notification does not arrive: a pooler in transaction mode does not pass it on, so that waiters learn "+
			"of their grant by polling: name the server itself with ?listen=URL")
	default:
		s.Add(driver.Finding{
			Key: "messages", Counts: map[string]int64{"listeners": listeners},
			Text: fmt.Sprintf("LISTEN works; listeners in this database, each of which costs every hand-over: %d", listeners),
		})
	}
}

// hear listens, sends a notification over another connection, and waits for it.
func (s *survey) hear(ctx context.Context) error {
	conn, err := s.connectListener(ctx)
	if err != nil {
		return s.connectError(ctx, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	channel := driver.ProbePrefix + string(lockinfo.NewLeaseID())
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return err
	}
	if err := s.row(ctx, `SELECT pg_catalog.pg_notify('`+channel+`', '')::text`, new(string)); err != nil {
		return err
	}
	_, err = conn.WaitForNotification(ctx)
	return err
}

func (s *survey) lookAtCommits(ctx context.Context) {
	s.warn(ctx, "commits", `SELECT t FROM (VALUES
		(pg_catalog.current_setting('synchronous_commit') IN ('off', 'local') AND pg_catalog.current_setting('synchronous_standby_names') <> '',
			'synchronous_commit is ' || pg_catalog.current_setting('synchronous_commit') || ': grants do not wait for the synchronous standby'),
		(pg_catalog.current_setting('fsync') = 'off', 'fsync is off: a crash of the server''s machine may lose leases and damage the database'),
		(pg_catalog.current_setting('full_page_writes') = 'off', 'full_page_writes is off: a crash of the server''s machine may damage the database')
		) AS v (bad, t) WHERE bad`, "grants reach the server's disk before the answer")
}

const standbysSQL = `SELECT pg_catalog.current_setting('synchronous_standby_names') <> '' AND pg_catalog.current_setting('synchronous_commit') NOT IN ('off', 'local'),
	pg_catalog.count(pid), pg_catalog.count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')), pg_catalog.count(sync_state),
	COALESCE(pg_catalog.max(EXTRACT(epoch FROM reply_time - pg_catalog.clock_timestamp())), 0)::float8
	FROM pg_catalog.pg_stat_replication`

// lookAtStandbys looks for missing synchronous standbys, and for standbys whose clocks are ahead. A
// standby sends its clock with its reports, at least every ten seconds.
func (s *survey) lookAtStandbys(ctx context.Context) {
	var wanted bool
	var all, synchronous, seen int64
	var ahead float64
	if err := s.row(ctx, standbysSQL, &wanted, &all, &synchronous, &seen, &ahead); err != nil {
		s.Found(driver.Warn, "standbys", "cannot look: %s", err)
		return
	}
	lead := time.Duration(ahead * float64(time.Second))
	f := driver.Finding{Key: "standbys", Counts: map[string]int64{"standbys": all, "synchronous": synchronous}}
	switch {
	case lead > probe.ClockStep:
		f.Level = driver.Warn
		f.Text = fmt.Sprintf("the clock of one is %s ahead: if it takes over, leases end early by as much: run NTP on both", lead.Round(time.Millisecond))
	case wanted && seen < all:
		f.Level = driver.Warn
		f.Text = fmt.Sprintf("%d; whether those in synchronous_standby_names are among them cannot be looked at", all)
	case wanted && synchronous == 0:
		f.Level, f.Err = driver.Fail, fmt.Errorf("%w: none of those in synchronous_standby_names is there: grants and extends wait for it", driver.ErrUnavailable)
		f.Text = f.Err.Error()
	case wanted:
		f.Text = fmt.Sprintf("%d, %d of which have each grant before the answer", all, synchronous)
	default:
		f.Text = fmt.Sprintf("%d, none of which has to have a grant before the answer: a failover may lose the latest leases", all)
	}
	s.Add(f)
}

// lookAtClock compares the server's clock with the local one.
func (s *survey) lookAtClock(ctx context.Context) {
	var offset, trip time.Duration
	for i := range probes {
		var micros int64
		sent := time.Now()
		if err := s.row(ctx, `SELECT (EXTRACT(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::int8`, &micros); err != nil {
			s.Failed("clock", err)
			return
		}
		if took := time.Since(sent); i == 0 || took < trip {
			offset, trip = time.UnixMicro(micros).Sub(sent.Add(took/2)), took
		}
	}
	s.Add(probe.Clock(offset, trip/2))
}

// lookAtHolders looks for other users' transactions that have locked rows of holdfast for a long
// time.
func (s *survey) lookAtHolders(ctx context.Context) {
	s.warn(ctx, "rows", `SELECT pg_catalog.format('process %s (user %s, %s, %s) has had rows of ours for %s s: requests for these names wait, '
			'unless it is a guard (Engine.Hold); to end it: SELECT pg_terminate_backend(%s)',
			pid, usename, COALESCE(NULLIF(application_name, ''), 'no name'), state, EXTRACT(epoch FROM pg_catalog.clock_timestamp() - xact_start)::int8, pid)
		FROM pg_catalog.pg_stat_activity a
		WHERE xact_start < pg_catalog.clock_timestamp() - interval '1 s' AND backend_type = 'client backend' AND EXISTS (
			SELECT FROM pg_catalog.pg_locks l WHERE l.pid = a.pid AND l.granted AND l.relation = 'holdfast.lock'::pg_catalog.regclass
				AND l.mode IN ('RowShareLock', 'RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'))
			AND NOT EXISTS (SELECT FROM pg_catalog.pg_locks l WHERE l.pid = a.pid AND NOT l.granted)
		ORDER BY xact_start LIMIT 5`, "no transaction has had any for more than a second")
}

// lookAtSnapshots looks for whatever keeps dead rows from being removed: each renewal leaves one.
func (s *survey) lookAtSnapshots(ctx context.Context) {
	s.warn(ctx, "snapshots", `SELECT pg_catalog.format('%s has kept dead rows for %s transactions: requests become slower until it ends', what, old) FROM (
		SELECT pg_catalog.format('process %s (user %s, %s)', pid, usename, COALESCE(state, backend_type)) AS what,
				GREATEST(pg_catalog.age(backend_xmin), pg_catalog.age(backend_xid)) AS old
			FROM pg_catalog.pg_stat_activity WHERE (datname = pg_catalog.current_database() OR backend_type = 'walsender') AND pid <> pg_catalog.pg_backend_pid()
		UNION ALL SELECT 'the replication slot ' || slot_name, pg_catalog.age(xmin) FROM pg_catalog.pg_replication_slots
		UNION ALL SELECT 'the prepared transaction ' || gid, pg_catalog.age(transaction) FROM pg_catalog.pg_prepared_xacts
			WHERE database = pg_catalog.current_database()
		) AS keepers WHERE old > 1000 ORDER BY old DESC LIMIT 5`, "no snapshot, slot or prepared transaction keeps dead rows")
}

func (s *survey) lookAtVacuum(ctx context.Context) {
	s.warn(ctx, "vacuum", `SELECT 'autovacuum is off: the tables grow with each request' FROM pg_catalog.pg_settings
			WHERE name IN ('autovacuum', 'track_counts') AND setting = 'off'
		UNION ALL SELECT pg_catalog.format('autovacuum is off for %s: it grows with each request: ALTER TABLE %s RESET (autovacuum_enabled)',
			relname, oid::pg_catalog.regclass)
		FROM pg_catalog.pg_class WHERE relkind = 'r' AND 'autovacuum_enabled=false' = ANY (
				SELECT pg_catalog.regexp_replace(o, '=(off|no|0|f)$', '=false') FROM pg_catalog.unnest(reloptions) o)
			AND relnamespace = (SELECT relnamespace FROM pg_catalog.pg_class WHERE oid = 'holdfast.lock'::pg_catalog.regclass)`, "autovacuum looks after our tables")
}
