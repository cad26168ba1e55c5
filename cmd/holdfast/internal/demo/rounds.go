package demo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// packOrder is the usual work of a shop: many names, each for a short time.
func packOrder(ctx context.Context, p *process) error {
	return under(fmt.Sprintf("orders/%d", 41_200+p.rand.IntN(40)), holdfast.AcquireOptions{
		Reason: p.one("pack the order", "charge the card", "print the label"), Labels: map[string]string{"region": p.one("eu", "us")},
	}, busy(0.4, 2.5), busy(0.2, 1.5))(ctx, p)
}

// deploy returns a round that waits for its turn to deploy a release.
func deploy(name string, wait time.Duration) round {
	return func(ctx context.Context, p *process) error {
		return under(name, holdfast.AcquireOptions{
			MaxWait: wait,
			Reason:  fmt.Sprintf("release 2.%d.%d", 14+p.count/3, p.count%3),
			Labels:  map[string]string{"pipeline": strconv.Itoa(48_000 + p.rand.IntN(900))},
		}, busy(8, 16), busy(3, 9))(ctx, p)
	}
}

// freeze is a person who keeps others from deploying, and checks now and then that the lock is
// still held.
func freeze(ctx context.Context, p *process) error {
	l, err := p.Acquire(ctx, payments, &holdfast.AcquireOptions{
		TTL: 4 * time.Hour, KeepAlive: holdfast.KeepAliveOff, WholeTTL: true, Reason: "freeze until the audit is over",
	})
	if err != nil {
		return err
	}
	if _, err := l.Leave(); err != nil { // a person has no process that releases it
		return err
	}
	for ctx.Err() == nil {
		_ = p.pause(ctx, 20, 40)
		lock, err := p.Inspect(ctx, payments)
		if err != nil || len(lock.Holders) == 0 || !lock.Holders[0].Holder.Person {
			return err
		}
	}
	return ctx.Err()
}

// breakHung is a person who breaks a lock that is held for too long.
func breakHung(ctx context.Context, p *process) error {
	_ = p.pause(ctx, 20, 40)
	lock, err := p.Inspect(ctx, hung)
	if err != nil || len(lock.Holders) == 0 || lock.Holders[0].Since < 2*time.Minute {
		return err
	}
	_, err = p.Break(ctx, hung, &holdfast.BreakOptions{
		Token: lock.Holders[0].Token, Author: p.user + "@" + p.host,
		Reason: p.one("worker-3 hangs since its last deploy", "the cache must be warm before the sale begins"),
	})
	return err
}

// cleanup takes several names together, or none of them.
func cleanup(ctx context.Context, p *process) error {
	all, err := p.AcquireAll(ctx, []string{"nightly/cleanup", "files/exports", "files/uploads"}, &holdfast.AcquireOptions{Reason: "delete what is older than 90 days"})
	if err != nil {
		return err
	}
	work, end := context.WithCancel(all.Context())
	defer context.AfterFunc(ctx, end)()
	_ = p.pause(work, 4, 8)
	end()
	err = all.Release(context.WithoutCancel(ctx))
	_ = p.pause(ctx, 10, 15)
	return err
}

// crash abandons its lease now and then, as a killed process does.
func crash(ctx context.Context, p *process) error {
	l, err := p.Acquire(ctx, transcode, &holdfast.AcquireOptions{TTL: 5 * time.Second, WholeTTL: true, Reason: "film of the new shop window"})
	if err != nil {
		return err
	}
	if err = p.pause(ctx, 2, 4); err == nil && p.count%24 == 6 {
		_, err = l.Leave()
		_ = p.pause(ctx, 8, 14) // it is started again
		return err
	}
	err = errors.Join(err, l.Release(context.WithoutCancel(ctx)))
	_ = p.pause(ctx, 2, 4)
	return err
}

// lead is a candidate for the lead. The leader resigns after a while.
func lead(ctx context.Context, p *process) error {
	return p.Lead(ctx, leadership, &holdfast.LeadOptions{
		Acquire: holdfast.AcquireOptions{Reason: "hands out jobs"},
	}, func(ctx context.Context, _ *holdfast.Lease) error {
		return cmp.Or(p.pause(ctx, 80, 100), errors.New("another one may lead"))
	})
}

// importPrices runs on a schedule, on one replica at a time.
func importPrices(ctx context.Context, p *process) error {
	often := holdfast.Periodic(time.Unix(0, 0), 20*time.Second)
	return p.Every(ctx, "jobs/prices", often, &holdfast.EveryOptions{TTL: 5 * time.Second, Reason: "prices of the suppliers"},
		func(ctx context.Context, _ holdfast.EveryRun) error {
			if err := p.pause(ctx, 2, 4); err != nil {
				return err
			}
			if p.rand.IntN(5) == 0 {
				return errors.New("the file of a supplier is not there yet")
			}
			return nil
		})
}

// welcome sends each mail once, even if two clients request it.
func welcome(ctx context.Context, p *process) error {
	key := fmt.Sprintf("mail/welcome/%d", 70_300+p.rand.IntN(60))
	err := p.once(ctx, key, `"sent"`, &holdfast.OnceOptions{Retention: 10 * time.Minute, Reason: "welcome mail"}, busy(0.3, 1.5))
	_ = p.pause(ctx, 2, 5)
	return err
}

// importOrders is in progress nearly all the time.
func importOrders(ctx context.Context, p *process) error {
	key := fmt.Sprintf("import/orders/%04d", 311+p.count)
	err := p.once(ctx, key, `{"orders": 118}`, &holdfast.OnceOptions{Retention: time.Hour, Reason: "orders of the partner shop"}, busy(15, 25))
	_ = p.pause(ctx, 1, 3)
	return err
}

// once does work once, and records the result.
func (p *process) once(ctx context.Context, key, result string, opts *holdfast.OnceOptions, work round) error {
	_, err := p.Once(ctx, key, opts, func(ctx context.Context, _ *holdfast.Lease) ([]byte, error) { return []byte(result), work(ctx, p) })
	return err
}

// signInLink issues a one-time token over HTTP, as programs in other languages do, and
// mostly redeems it.
func signInLink(ctx context.Context, p *process) error {
	issued, err := p.post(ctx, "/v1/onetime", map[string]any{"payload": "customer", "ttl_ms": 30_000})
	if err != nil {
		return err
	}
	if err := p.pause(ctx, 1, 3); err != nil {
		return err
	}
	token := map[string]any{"token": issued["token"]}
	var steps []string
	switch drawn := p.rand.IntN(10); {
	case drawn < 6:
		steps = []string{"redeem"}
	case drawn < 8: // the user follows the link twice
		steps = []string{"redeem", "redeem"}
	case drawn < 9:
		steps = []string{"revoke"}
	}
	for _, step := range steps {
		_, failed := p.post(ctx, "/v1/onetime/"+step, token)
		err = errors.Join(err, failed)
	}
	_ = p.pause(ctx, 1, 3)
	return err
}

// post sends a request to the handler of the server, without a connection, and returns the
// decoded response.
func (p *process) post(ctx context.Context, path string, body any) (answer map[string]any, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.RequestURI = path
	r.Header.Set("Content-Type", "application/json")
	w := &kept{header: http.Header{}, status: http.StatusOK}
	p.api.ServeHTTP(w, r)
	if w.status >= http.StatusBadRequest {
		return nil, fmt.Errorf("%s: %s", path, http.StatusText(w.status))
	}
	if w.body.Len() > 0 {
		err = json.Unmarshal(w.body.Bytes(), &answer)
	}
	return answer, err
}

// A kept is a response that is kept, not sent.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *kept) Header() http.Header         { return w.header }
func (w *kept) WriteHeader(status int)      { w.status = status }
func (w *kept) Write(p []byte) (int, error) { return w.body.Write(p) }
