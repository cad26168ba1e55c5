package holdfast

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/ask"
)

// A ScheduleRecord is what the store remembers of the schedule of one name. All times of
// day are by the clocks of the replicas that recorded them; scheduled times are in UTC.
type ScheduleRecord struct {
	Began   time.Time    `json:"began"`          // when the first replica called Every; zero if none has
	Settled time.Time    `json:"settled"`        // the last scheduled time that was done or missed; at first, Began
	Next    time.Time    `json:"next,omitzero"`  // the scheduled time after Settled; zero if there is none
	Last    DoneRun      `json:"last,omitzero"`  // the last run that was done; zero if none was
	Begun   *BegunRun    `json:"begun,omitzero"` // the run that was begun and is not done; nil if there is none
	Done    uint64       `json:"done"`           // how many runs were done
	Missed  uint64       `json:"missed"`         // how many runs were missed
	Gaps    []MissedRuns `json:"gaps,omitempty"` // the runs missed lately, the latest last

	// Runs has the outcomes of the latest scheduled times, up to 30, the latest last: d for done, r
	// for done after attempts that failed, m for missed.
	Runs string `json:"runs,omitempty"`
}

// A DoneRun is a run of a schedule that has succeeded.
type DoneRun struct {
	Scheduled time.Time     `json:"scheduled"`
	Started   time.Time     `json:"started"`
	Took      time.Duration `json:"took"` // in nanoseconds
	By        string        `json:"by"`   // the holder, for people
	Token     uint64        `json:"token"`
	Attempt   int           `json:"attempt"`
}

// A BegunRun is a run of a schedule that was begun and is not done: it goes on, or may
// be tried again.
type BegunRun struct {
	Scheduled time.Time `json:"scheduled"`
	At        time.Time `json:"at"` // when the last attempt began, or failed
	By        string    `json:"by"` // the holder of the last attempt, for people
	Attempts  int       `json:"attempts"`
	Open      bool      `json:"open"`          // the last attempt goes on, or no replica has noticed its end yet
	Err       string    `json:"err,omitempty"` // the error of the last attempt that has ended
}

// same reports whether a and b are the same state of a run.
func (b *BegunRun) same(a *BegunRun) bool {
	return b == a || a != nil && b != nil && a.Attempts == b.Attempts && a.Open == b.Open && a.At.Equal(b.At)
}

// end notes how the last attempt has ended.
func (b *BegunRun) end(now time.Time, err string) {
	b.At, b.Open, b.Err = now, false, recordText(err)
}

// silence returns the error of an attempt whose lease has ended without a record of the outcome.
func (b *BegunRun) silence() string {
	return fmt.Sprintf("attempt %d left no result: its process died, or it lost its lease", b.Attempts)
}

// MissedRuns are consecutive runs of a schedule that were missed: no replica was there in
// time, the run before took too long, or the run has failed too often.
type MissedRuns struct {
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Count int       `json:"count"`
	Err   string    `json:"err,omitempty"` // the error of the last attempt at First, if there was one
}

func (m *MissedRuns) add(t time.Time) {
	if m.Count == 0 {
		m.First = t
	}
	m.Last = t
	m.Count++
}

const (
	shownGaps     = 5
	shownRuns     = 30
	recordedText  = 160 // bytes of an error or of a holder
	scheduleHead  = `{"schedule":`
	scheduleFirst = 1 // the version of the record
)

// miss adds missed runs to the record, and settles them.
func (r *ScheduleRecord) miss(m MissedRuns) {
	r.Settled, r.Begun = m.Last, nil
	r.Missed += uint64(m.Count)
	r.Gaps = append(r.Gaps, m)
	r.Gaps = r.Gaps[max(0, len(r.Gaps)-shownGaps):]
	r.remember(strings.Repeat("m", min(m.Count, shownRuns)))
}

// remember adds the outcomes of scheduled times.
func (r *ScheduleRecord) remember(runs string) {
	r.Runs += runs
	r.Runs = r.Runs[max(0, len(r.Runs)-shownRuns):]
}

// A scheduleLine is the record of a schedule, as JSON in one line. It fits into the
// driver.RecordHead bytes that a listing reads.
type scheduleLine struct {
	Version int `json:"schedule"`
	*ScheduleRecord
}

func (r *ScheduleRecord) format() []byte {
	short := *r
	for {
		var line bytes.Buffer
		e := json.NewEncoder(&line)
		e.SetEscapeHTML(false)                            // escapes of six bytes could make the record too long
		_ = e.Encode(scheduleLine{scheduleFirst, &short}) // times of four-digit years, numbers and texts: cannot fail
		if line.Len() <= driver.RecordHead || len(short.Gaps) == 0 {
			return line.Bytes()
		}
		short.Gaps = short.Gaps[1:]
	}
}

// parseSchedule returns the record of a schedule, or nil if data is another record.
func parseSchedule(data []byte) *ScheduleRecord {
	line, _, ok := bytes.Cut(data, []byte{'\n'})
	l := scheduleLine{ScheduleRecord: &ScheduleRecord{}}
	if !ok || !bytes.HasPrefix(line, []byte(scheduleHead)) || json.Unmarshal(line, &l) != nil || l.Version != scheduleFirst {
		return nil
	}
	return l.ScheduleRecord
}

// recordText returns s as a record keeps it: shortened, valid UTF-8, and without control
// characters.
func recordText(s string) string {
	s = strings.Map(func(r rune) rune {
		if driver.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	if len(s) > recordedText {
		s = s[:recordedText-len("…")] + "…"
	}
	return strings.ToValidUTF8(s, "")
}

// scheduleOf returns the record of the schedule of a name and how long the store keeps it, or
// nil if there is none.
func scheduleOf(ctx context.Context, recorder driver.Recorder, name string) (r *ScheduleRecord, expiresIn time.Duration, err error) {
	kept, found, err := recorder.Recall(ctx, name)
	if err != nil || !found {
		return nil, 0, ask.Harmless(ctx, err)
	}
	if r = parseSchedule(kept.Data); r == nil {
		return nil, 0, fmt.Errorf("%w: it is a do-once key, with a result: take another name for the schedule, or forget the key", ErrKindMismatch)
	}
	return r, kept.ExpiresIn, nil
}
