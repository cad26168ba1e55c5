package wire

// A Stats is what a server has heard of the locks of its store lately, in equal steps of
// time.
type Stats struct {
	EveryMS  int64    `json:"every_ms"`  // how long a bucket is
	BoundsMS []int64  `json:"bounds_ms"` // of the waits, in growing order
	Buckets  []Bucket `json:"buckets"`   // the oldest first; the last is not over

	// More leases may have been lost than are counted: something happened of which the
	// server has not heard, and it could not find out all of it afterwards.
	LossesAtLeast bool `json:"losses_at_least"`

	LastID string         `json:"last_id"` // of the latest event that is counted; empty: there was none
	Losses []HistoryEvent `json:"losses"`  // the latest 20 leases that expired, were lost or were broken, the oldest first

	// Contended are the names with the longest waits in sum, the longest first; 20 at most. Only
	// waits count that ended in the last hour.
	Contended []Contended `json:"contended"`
}

// A Contended sums up the waits for one name.
type Contended struct {
	Name      string `json:"name"`
	Waits     int    `json:"waits"`   // that have ended
	GaveUp    int    `json:"gave_up"` // of them: without a lease
	WaitedMS  int64  `json:"waited_ms"`
	LongestMS int64  `json:"longest_ms"`
}

// A Bucket is what happened in one step.
type Bucket struct {
	AgoMS      int64 `json:"ago_ms"` // since it began
	Gap        bool  `json:"gap"`    // more may have happened, of which the server has not heard
	Missed     bool  `json:"missed"` // leases may have been lost that are not counted
	Acquired   int   `json:"acquired"`
	HandedOver int   `json:"handed_over"`
	Released   int   `json:"released"`
	Expired    int   `json:"expired"`
	Lost       int   `json:"lost"`
	Broken     int   `json:"broken"`
	Queued     int   `json:"queued"`
	GaveUp     int   `json:"gave_up"`
	Completed  int   `json:"completed"`
	Waits      []int `json:"waits"` // how many leases came after a wait up to each bound, and longer than the one before; the last is beyond all bounds; zeros at the end are left out
}
