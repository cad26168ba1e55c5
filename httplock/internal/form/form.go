// Package form has the JSON of the requests of engines, as both ends of the wire read
// and write it.
package form

// Base is in front of the names of methods.
const Base = "/v1/driver/"
