package wire

// A LookRequest is a request for the state of several names.
type LookRequest struct {
	Names []string `json:"names"` // 1 to 128
}

// A Looked is the reply to a LookRequest.
type Looked struct {
	Locks  []LockDetails `json:"locks"`  // in the order of the request, held or not
	Failed []LookFailure `json:"failed"` // the names whose state could not be read
}

// A LookFailure is a name whose state could not be read.
type LookFailure struct {
	Name   string `json:"name"`
	Status int    `json:"status"` // the HTTP status of a request for this name alone
	Code   string `json:"code"`
	Detail string `json:"detail"`
}
