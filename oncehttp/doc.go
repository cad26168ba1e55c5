// Package oncehttp makes HTTP requests safe to repeat. A client that got no
// reply sends the same request again with the same Idempotency-Key header
// field, and the work is not done again: the client gets the response of the
// first time.
//
// # What
//
// A [Middleware] keeps each response as the result of do-once work
// (holdfast.Client.Once), for all processes that share a store. The header
// field is specified by the Internet-Draft draft-ietf-httpapi-idempotency-key-header.
//
// # Example
//
//	once, err := oncehttp.New(client, nil, accountOf)
//	if err != nil {
//		return err
//	}
//	mux.Handle("POST /payments", once.Wrap(payments))
//
// # Guarantees
//
// Of all requests of one caller with one key, one at a time runs, and none after one whose
// response was kept, for Options.Retention. It guarantees what holdfast.Client.Once guarantees.
//
// # What is not promised
//
// A process that dies in the middle has done what it has done: a repeat runs again from the
// start. Work that must not be half done needs a transaction, with the token of the lease.
//
// # Clocks
//
// The store's clock ends the retention.
//
// # Fencing
//
// holdfast.LeaseFromContext has the token, for whatever the handler writes to.
//
// # Errors
//
// Every refusal is an HTTP response, see below. The Observer gets each, with its reason.
//
// # Testing
//
// A client of package holdfasttest and net/http/httptest need no server.
//
// # What a client sees
//
//	the first request             runs; its response is kept
//	a repeat afterwards           the same status, header and body, and Idempotency-Replayed: true
//	a repeat while it runs        409 in_progress with Retry-After, or the response: see Options.Await
//	the key with another request  422 key_reused; see below
//	a repeat after a response     runs again: see Options.Keep
//	  that is not kept
//	the store does not answer     503 store_unavailable with Retry-After; nothing was run
//
// The other refusals are 400 key_missing, key_malformed and body_unreadable,
// 403 caller_unknown and replay_not_allowed, 410 response_not_kept, 413 body_too_large, 500
// misconfigured and 503 interrupted. The body of each is
// application/problem+json (RFC 9457) with "type", "title", "status", "detail"
// and "code".
//
// # Who may see a kept response
//
// Any client that sends the same key and request as the same caller gets the response.
// Clients choose their keys, so two of them may choose the same, by accident or on purpose:
// if the middleware takes them for one caller, one of them gets the other's
// response. That is why the function that tells callers apart has no default.
// It must return everything that authentication has proved and that the handler's answer
// depends on, such as the IDs of the account and of the tenant,
// and nothing that a client claims. The middleware belongs inside the
// authentication also because a 401 would be kept like any other response.
//
// A request is the same if its method, Host, path, query, body, Content-Type and the
// fields of Options.Vary are. Anything else that the handler looks at, such as Accept or the
// field that chooses a tenant, must be in Vary or be part of the caller. A replay bypasses
// the handler and its check of rights: Options.Allow repeats that check.
//
// Responses are in the store for Options.Retention, and readable to all who can read the
// store. Set-Cookie is left out: a cookie of the first time may
// be a session that has ended since. So are Date and the fields of one connection
// only.
//
// # What a handler has to know
//
// Its context ends when the client hangs up, as always, and when the lease is
// lost, with a cause that is holdfast.ErrLost: then it must stop, because a
// repeat may run. holdfast.LeaseFromContext returns the lease, which has the
// fencing token; work that is to go on without the client uses the lease's
// context.
//
// If a handler returns, its response is kept, even if the client has gone. A
// handler that returns after its context has ended, and has written nothing, not
// even a status, has not answered: nothing is kept, and a repeat runs.
//
// The response is sent when the handler has returned and the response is in
// the store. So a handler can neither flush nor hijack (http.ResponseController
// returns http.ErrNotSupported), and informational responses and trailers are not
// sent. A panic keeps nothing, frees the key and goes on to the server.
//
// A response that outgrows Options.MaxBody is sent on as it is written from
// then on. Then the store only keeps that the request was carried out: a repeat
// gets 410 response_not_kept instead of doing the work again.
//
// If the store does not answer when the response is to be kept, the client gets
// it all the same, because the work is done; a repeat may run again. If the
// lease was lost the client gets 503 interrupted: another response may exist.
//
// A handler that compresses responses or sets cookies goes outside of the
// middleware. A handler that parses the request's body goes inside: the
// fingerprint covers the bytes of the body, and the form if an outer handler has
// parsed it.
package oncehttp
