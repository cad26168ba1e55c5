package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/probe"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/sqlitelock/internal/onefile"
)

var _ driver.Diagnoser = (*engine)(nil)

const tokenLead = time.Second // tokens may be this far ahead of the clock

// A survey is one run of Diagnose.
type survey struct {
	*engine
	probe.Findings
}

// Diagnose implements driver.Diagnoser. The last tokens of the random names that it locks stay
// until the sweep.
func (e *engine) Diagnose(ctx context.Context, req driver.DiagnoseRequest) (driver.Diagnosis, error) {
	s := &survey{engine: e}
	number, err := answer(ctx, e.query, func(r reader) (number int, err error) {
		_, err = r.sql.one(`PRAGMA user_version`, nil, &number)
		return number, err
	})
	if err != nil {
		return driver.Diagnosis{}, err
	}
	s.lookAtFileSystem()
	s.Found(driver.OK, "journal", "write-ahead log") // Open needs its files, and no program can change it meanwhile
	s.judgeSchema(number)
	s.lookAtPermissions()
	s.lookAtSize()
	s.lookAtClock()
	s.TryLocks(ctx, e, req.TTL)
	s.lookAtNames(ctx)
	if ctx.Err() != nil {
		return driver.Diagnosis{}, interrupted(ctx)
	}
	return driver.Diagnosis{Findings: s.Findings}, nil
}

// judgeSchema judges the number of the schema. Open refuses other numbers, so a difference arose
// after Open.
func (s *survey) judgeSchema(number int) {
	if number == schemaNumber {
		s.Found(driver.OK, "schema", "number %d", number)
	} else {
		s.Found(driver.Warn, "schema", "number %d, this program knows %d: use one version of holdfast everywhere", number, schemaNumber)
	}
}

func (s *survey) lookAtFileSystem() {
	kind, err := onefile.FileSystem(s.path)
	if err != nil {
		s.Found(driver.Warn, "file_system", "cannot tell its type: %s: see that it is local to this host", err)
		return
	}
	s.Add(fileSystemFinding(kind))
}

func fileSystemFinding(kind string) driver.Finding {
	switch {
	case onefile.Remote(kind):
		return driver.Finding{Level: driver.Warn, Key: "file_system", Text: kind +
			" may be shared with other hosts: the lock file is for the processes of one host: put it on a local disk, or use a server"}
	case strings.HasPrefix(kind, "fuse"):
		return driver.Finding{Level: driver.Warn, Key: "file_system", Text: kind +
			": whether other hosts share it is unknown: the lock file is for the processes of one host"}
	}
	return driver.Finding{Key: "file_system", Text: kind + ", local to this host"}
}

// lookAtPermissions warns of files that every user may write, because then every user can end every
// lease.
func (s *survey) lookAtPermissions() {
	var open []string
	for _, path := range []string{filepath.Dir(s.path), s.path, s.path + onefile.LogSuffix, s.path + onefile.MemorySuffix, s.bell.Path, s.alarm.Path} {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // made when it is needed
		}
		if err == nil {
			err = onefile.MayUse(path)
		}
		if err != nil {
			s.Failed("permissions", onefile.PathError(err))
			return
		}
		if info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
			open = append(open, fmt.Sprintf("%s (%s)", path, info.Mode()))
		}
	}
	switch {
	case len(open) > 0:
		s.Found(driver.Warn, "permissions", "every user of this host may write %s, and so take any lock away: chmod o-w", strings.Join(open, ", "))
	case s.system:
		s.Found(driver.OK, "permissions", "a system store: root and the members of its group may read and write, and block each other")
	default:
		s.Found(driver.OK, "permissions", "this user may read and write, others as their group may")
	}
}

func (s *survey) lookAtSize() {
	counts := map[string]int64{}
	for suffix, key := range map[string]string{"": "database_bytes", onefile.LogSuffix: "log_bytes"} {
		if info, err := os.Stat(s.path + suffix); err == nil {
			counts[key] = info.Size()
		}
	}
	f := driver.Finding{Key: "size", Counts: counts, Text: fmt.Sprintf("%d KiB, and a log of %d KiB", counts["database_bytes"]>>10, counts["log_bytes"]>>10)}
	const large = 64 << 20
	if counts["log_bytes"] > large {
		f.Level = driver.Warn
		f.Text += ": something keeps the log from being carried over: see which program has a reading transaction open on the database"
	}
	s.Add(f)
}

func (s *survey) lookAtClock() {
	now, err := s.clock.now()
	if err != nil {
		s.Failed("clock", err)
		return
	}
	s.Add(driver.Finding{
		Key: "clock", Measures: map[string]time.Duration{"since_boot": time.Duration(now.boot)},
		Text: fmt.Sprintf("time since the boot, %s: nobody can set it", time.Duration(now.boot).Round(time.Second)),
	})
}

// lookAtNames counts the holders and places of the first names in use, and looks for last tokens
// that are ahead of the clock.
func (s *survey) lookAtNames(ctx context.Context) {
	locks, err := answer(ctx, s.query, func(r reader) ([]lockinfo.LockState, error) { return r.page("", "") })
	now, clockErr := s.clock.now()
	if err = errors.Join(err, clockErr); err != nil {
		s.Failed("names", err)
		return
	}
	var held, queued int64
	var lead time.Duration
	leader := ""
	for _, l := range locks {
		queued += int64(l.QueueLength)
		if len(l.Holders) > 0 {
			held++
		}
		if ahead := time.Duration(int64(l.LastToken)-int64(now.micros)) * time.Microsecond; l.LastToken > 0 && ahead > lead {
			lead, leader = ahead, l.Name
		}
	}
	extent := "in all"
	if len(locks) == pageNames {
		extent = "among the first"
	}
	s.Add(driver.Finding{
		Key: "names", Counts: map[string]int64{"names": int64(len(locks)), "held": held, "queued": queued},
		Text: fmt.Sprintf("%d names in use, %d held, %d places in queues, %s", len(locks), held, queued, extent),
	})
	f := driver.Finding{Key: "tokens", Measures: map[string]time.Duration{"lead": lead}, Text: "none leads this host's clock by much"}
	if lead > tokenLead {
		f.Level = driver.Warn
		f.Text = fmt.Sprintf("the last token of %q leads this host's clock by %s: the clock went back, or a MinToken lifted it: see that the clock is right",
			leader, lead.Round(time.Second))
	}
	s.Add(f)
}
