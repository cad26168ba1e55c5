package wire

// A TokenRequest asks a server for a one-time token.
type TokenRequest struct {
	Payload      string `json:"payload,omitempty"`
	PayloadBytes []byte `json:"payload_base64,omitempty"` // instead of Payload, if it is not UTF-8
	TTLMS        int64  `json:"ttl_ms"`                   // how long the token can be redeemed
}

// An IssuedToken is a one-time token. Its secret redeems it.
type IssuedToken struct {
	Secret string `json:"token"`
	ID     string `json:"id"` // the ID in the store, in logs and in errors
	TTLMS  int64  `json:"ttl_ms"`
}

// A TokenSecret is the secret that redeems or revokes a one-time token.
type TokenSecret struct {
	Secret string `json:"token"`
}

// A Redeemed is the payload of a one-time token.
type Redeemed struct {
	Payload      string `json:"payload"`
	PayloadBytes []byte `json:"payload_base64,omitempty"` // instead of Payload, if it is not UTF-8
}

// A Revoked is a one-time token that can no longer be redeemed.
type Revoked struct {
	ID string `json:"id"`
}

// A TokenCounts counts what one server has done with one-time tokens since it started.
type TokenCounts struct {
	SinceMS     int64             `json:"since_ms"` // when the server started
	Collections []TokenCollection `json:"collections"`
}

// A TokenCollection counts the tokens of one collection at that server by their states.
type TokenCollection struct {
	Name     string `json:"name"`
	Issued   int    `json:"issued"`
	Redeemed int    `json:"redeemed"`
	Revoked  int    `json:"revoked"`
	Expired  int    `json:"expired"` // redeems of an expired token
	Refused  int    `json:"refused"` // redeems of a token that was redeemed, revoked, unknown or malformed
	Failed   int    `json:"failed"`  // redeems that failed because of the store
	Pruned   int    `json:"pruned"`
}
