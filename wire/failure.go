package wire

// A Failure is what a command prints with --json instead of its answer.
type Failure struct {
	Error   string `json:"error"`   // a code of the table, with underscores
	Message string `json:"message"` // for people
	Status  int    `json:"status"`  // with which the command exits
}
