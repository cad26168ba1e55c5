package wire

// A LookRequest asks what the store knows of several names.
type LookRequest struct {
	Names []string `json:"names"` // 1 to 128
}

// A Looked is what the store knows of them.
type Looked struct {
	Locks  []LockDetails `json:"locks"`  // in the order in which they were asked for, held or not
	Failed []LookFailure `json:"failed"` // those that nothing can be said of now
}

// A LookFailure is a name that could not be looked at.
type LookFailure struct {
	Name   string `json:"name"`
	Status int    `json:"status"` // of the response, if it had been asked for alone
	Code   string `json:"code"`
	Detail string `json:"detail"`
}
