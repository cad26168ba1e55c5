package form

import "github.com/holdfast-locks/holdfast/driver"

// A Line is one of a list. The last of each list has End or Error, so that a list that
// was cut off is not taken for a whole one.
type Line struct {
	Lock   *Lock       `json:"lock,omitempty"`
	Record *RecordInfo `json:"record,omitempty"`
	End    bool        `json:"end,omitempty"`
	Error  *Error      `json:"error,omitempty"`
}

// A Message is one line of Notices. One without anything says that the server is there.
type Message struct {
	LeaseID driver.LeaseID `json:"lease_id,omitempty"` // a notice about it
	Token   uint64         `json:"token,omitempty"`    // see driver.Notice
	Loss    *Loss          `json:"loss,omitempty"`
}

// A Loss is a driver.Loss.
type Loss struct {
	Name    string         `json:"name"`
	LeaseID driver.LeaseID `json:"lease_id,omitempty"`
	Error   *Error         `json:"error,omitempty"`
}

// LossOf returns the form of a loss.
func LossOf(l driver.Loss) *Loss {
	return &Loss{Name: l.Name, LeaseID: l.LeaseID, Error: ErrorOf(l.Err)}
}

// Driver returns what the form is of.
func (l *Loss) Driver() driver.Loss {
	return driver.Loss{Name: l.Name, LeaseID: l.LeaseID, Err: l.Error.Err()}
}
