// Package tell brings events to an Observer without waiting for it, and logs what
// goes wrong with that.
package tell
