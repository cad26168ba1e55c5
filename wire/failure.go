package wire

// A Failure is what a command prints with --json if it fails.
type Failure struct {
	Error   string `json:"error"`   // a code of the table, with underscores
	Message string `json:"message"` // for people
	Status  int    `json:"status"`  // the exit status of the command
}
