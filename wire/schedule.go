package wire

import "time"

// A Schedule is the state of a job that runs by a schedule. Times of day are by the clocks of the
// replicas that recorded them.
type Schedule struct {
	Name    string       `json:"name"`
	Began   time.Time    `json:"began"`
	Next    *time.Time   `json:"next"`  // null: there is none
	Last    *DoneRun     `json:"last"`  // null: none was done
	Begun   *BegunRun    `json:"begun"` // null: no run was begun that is not done
	Done    uint64       `json:"done"`
	Missed  uint64       `json:"missed"`
	Gaps    []MissedRuns `json:"gaps"`             // the runs missed lately, the latest last
	Runs    []string     `json:"runs"`             // outcomes of the latest 30 scheduled times, the latest last: done, retried (done after attempts that failed), missed
	Running *Who         `json:"running"`          // the holder that runs it now, or null
	Led     *bool        `json:"led,omitempty"`    // a replica runs it or waits for the next run; absent if that was not read
	Leader  *Who         `json:"leader,omitempty"` // if it is led
	Standby []Who        `json:"standby,omitempty"`
}

// A DoneRun is a run of a schedule that has succeeded.
type DoneRun struct {
	Scheduled time.Time `json:"scheduled"`
	Started   time.Time `json:"started"`
	TookMS    int64     `json:"took_ms"`
	By        string    `json:"by"`
	Attempt   int       `json:"attempt"`
	Token
}

// A BegunRun is a run of a schedule that was begun and is not done.
type BegunRun struct {
	Scheduled time.Time `json:"scheduled"`
	At        time.Time `json:"at"` // when the last attempt began, or failed
	By        string    `json:"by"`
	Attempts  int       `json:"attempts"`
	Open      bool      `json:"open"`  // the last attempt goes on, or no replica has noticed its end yet
	Error     string    `json:"error"` // the error of the last attempt that has ended; empty if none has
}

// MissedRuns are consecutive runs of a schedule that were missed.
type MissedRuns struct {
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Count int       `json:"count"`
	Error string    `json:"error"` // the error of the last attempt at First; empty if there was none
}
