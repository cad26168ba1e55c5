package oncehttp

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/observe"
)

// The limits of the memory and of the store's share for one request.
const (
	MaxBodyLimit = 15 << 20 // bytes; of Options.MaxBody

	defaultMaxBody = 1 << 20
	maxHeader      = 256 << 10 // of a kept response, encoded; with MaxBodyLimit it is below holdfast.MaxOnceResult
	maxPrefix      = 128
)

// Options are the options of New. Nil means the defaults, and so does a zero field.
type Options struct {
	// Route names what a key is for: the same key on two routes is two keys.
	// Default: the pattern of the http.ServeMux that called the handler, or the
	// method and path if there is none. A change of it makes all keys new.
	Route func(*http.Request) string

	// Vary names the fields of a request's header, in addition to Content-Type, that the
	// response depends on, such as one that chooses the tenant, or Accept: a repeat with another
	// value is another request, and refused with 422. Default: none.
	Vary []string

	// Allow reports whether this request may have a kept response. The handler does not
	// run, so Allow must check what the handler would check: rights may have changed since
	// the first time, or belong to a role of the same caller. If Allow returns false, the
	// response is 403. Default: every request of the same caller may.
	Allow func(*http.Request) bool

	// Methods are the methods that are handled; requests with others are passed
	// on unchanged. Default: POST and PATCH.
	Methods []string

	// Required refuses requests without a key. Otherwise they are passed on as
	// they are.
	Required bool

	// Await makes a repeat wait this long for the first request, and take its turn
	// if that fails, before it is refused with 409. Zero: it is refused at once.
	// holdfast.Forever: until its context ends.
	Await time.Duration

	// Retention is how long a response is kept. Clients must not repeat a
	// request after it. Default: 24 hours.
	Retention time.Duration

	// TTL is how long a key stays taken if the process that works dies.
	// Default: the client's.
	TTL time.Duration

	// MaxRequest is the greatest length of a request's body in bytes, which is
	// read before anything else: a longer one is refused with 413. Default:
	// 1 MiB.
	MaxRequest int64

	// MaxBody is the greatest length of a response's body that is kept, in
	// bytes, up to MaxBodyLimit. Default: 1 MiB.
	MaxBody int

	// Keep decides by the status whether a response is kept. If not, the key is
	// free at once, and a repeat runs. Default: KeepStatus.
	Keep func(status int) bool

	// Prefix is what the names in the store begin with. Default: "http/".
	Prefix string

	// ProblemBase is what "type" begins with in the bodies of refusals, before
	// the code: the address of a page that explains them. Default: none, and
	// the type is "about:blank".
	ProblemBase string

	// Observer receives the outcome of each request: the kinds are observe.RequestRan,
	// RequestReplayed and RequestRefused. No request waits for it; see package observe.
	// Default: none.
	Observer observe.Observer
}

// KeepStatus is the default of Options.Keep. It keeps final responses: 2xx, 3xx
// and 4xx, except 408, 425, 429 and 499 (the client has gone), after which a
// repeat may succeed. A 5xx frees the key, so the handler must have undone its
// work, or do it in a transaction.
func KeepStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, 499:
		return false
	}
	return status >= 200 && status < 500
}

// resolve returns a copy of o with the defaults filled in, or an error that
// wraps holdfast.ErrInvalid.
func (o *Options) resolve() (Options, error) {
	c := *cmp.Or(o, &Options{})
	if c.Route == nil {
		c.Route = route
	}
	if len(c.Methods) == 0 {
		c.Methods = []string{http.MethodPost, http.MethodPatch}
	}
	c.MaxRequest = cmp.Or(c.MaxRequest, defaultMaxBody)
	c.MaxBody = cmp.Or(c.MaxBody, defaultMaxBody)
	if c.Keep == nil {
		c.Keep = KeepStatus
	}
	if c.Allow == nil {
		c.Allow = func(*http.Request) bool { return true }
	}
	c.Vary = append([]string{"Content-Type"}, c.Vary...)
	for i, name := range c.Vary {
		c.Vary[i] = http.CanonicalHeaderKey(name)
	}
	c.Prefix = cmp.Or(c.Prefix, "http/")
	return c, c.check()
}

func (o *Options) check() error {
	switch {
	case o.Await < 0:
		return fmt.Errorf("oncehttp: %w Await %s: it is negative", holdfast.ErrInvalid, o.Await)
	case o.Retention != 0 && (o.Retention < holdfast.MinTTL || o.Retention > holdfast.MaxRetention):
		return fmt.Errorf("oncehttp: %w Retention %s: want %s to %s", holdfast.ErrInvalid, o.Retention, holdfast.MinTTL, holdfast.MaxRetention)
	case o.MaxRequest < 0:
		return fmt.Errorf("oncehttp: %w MaxRequest %d: it is negative", holdfast.ErrInvalid, o.MaxRequest)
	case o.MaxBody < 0 || o.MaxBody > MaxBodyLimit:
		return fmt.Errorf("oncehttp: %w MaxBody %d: want up to %d", holdfast.ErrInvalid, o.MaxBody, MaxBodyLimit)
	case len(o.Prefix) > maxPrefix:
		return fmt.Errorf("oncehttp: %w Prefix: it has %d bytes, the limit is %d", holdfast.ErrInvalid, len(o.Prefix), maxPrefix)
	}
	if err := (&holdfast.AcquireOptions{TTL: o.TTL}).Check(); err != nil {
		return fmt.Errorf("oncehttp: %w", err)
	}
	if err := driver.CheckName(o.Prefix); err != nil {
		return fmt.Errorf("oncehttp: Prefix: %w", err)
	}
	return nil
}
