package wire

// A Stats counts the latest events of the locks of a server's store, in buckets of equal time.
type Stats struct {
	EveryMS  int64    `json:"every_ms"`  // how long a bucket is
	BoundsMS []int64  `json:"bounds_ms"` // the bounds of Waits, ascending
	Buckets  []Bucket `json:"buckets"`   // the oldest first; the last has not ended

	// LossesAtLeast means that more leases may have been lost than are counted: the server has
	// missed events, and could not find out all of them afterwards.
	LossesAtLeast bool `json:"losses_at_least"`

	LastID string         `json:"last_id"` // the ID of the latest event that is counted; empty: there was none
	Losses []HistoryEvent `json:"losses"`  // the latest 20 leases that expired, were lost or were broken, the oldest first

	// Contended has the names with the greatest sums of waits, the greatest first; 20 at most.
	// Only waits that ended in the last hour count.
	Contended []Contended `json:"contended"`
}

// A Contended sums up the waits for one name.
type Contended struct {
	Name      string `json:"name"`
	Waits     int    `json:"waits"`   // how many waits have ended
	GaveUp    int    `json:"gave_up"` // how many of them ended without a lease, and without the result of do-once work
	WaitedMS  int64  `json:"waited_ms"`
	LongestMS int64  `json:"longest_ms"`
}

// A Bucket counts the events of one period.
type Bucket struct {
	AgoMS      int64 `json:"ago_ms"` // since it began
	Gap        bool  `json:"gap"`    // the server may have missed events
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
	Waits      []int `json:"waits"` // how many leases were granted after a wait up to each bound, and above the bound before; the last is beyond all bounds; zeros at the end are left out
}
