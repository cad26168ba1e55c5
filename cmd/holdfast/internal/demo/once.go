package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// welcome sends each mail once, even if two clients request it.
func welcome(ctx context.Context, p *process) error {
	key := fmt.Sprintf("mail/welcome/%d", 70_300+p.rand.IntN(60))
	_, err := p.Once(ctx, key, &holdfast.OnceOptions{Retention: 10 * time.Minute, Reason: "welcome mail"},
		func(ctx context.Context, _ *holdfast.Lease) ([]byte, error) {
			return []byte(`"sent"`), p.pause(ctx, 300*time.Millisecond, 1500*time.Millisecond)
		})
	_ = p.pause(ctx, 2*time.Second, 5*time.Second)
	return err
}

// importOrders is in progress nearly always.
func importOrders(ctx context.Context, p *process) error {
	key := fmt.Sprintf("import/orders/%04d", 311+p.count)
	_, err := p.Once(ctx, key, &holdfast.OnceOptions{Retention: time.Hour, Reason: "orders of the partner shop"},
		func(ctx context.Context, _ *holdfast.Lease) ([]byte, error) {
			return []byte(`{"orders": 118}`), p.pause(ctx, 15*time.Second, 25*time.Second)
		})
	_ = p.pause(ctx, time.Second, 3*time.Second)
	return err
}

// importPrices runs by a schedule, once over all replicas.
func importPrices(ctx context.Context, p *process) error {
	often := holdfast.Periodic(time.Unix(0, 0), 20*time.Second)
	return p.Every(ctx, "jobs/prices", often, &holdfast.EveryOptions{TTL: 5 * time.Second, Reason: "prices of the suppliers"},
		func(ctx context.Context, _ holdfast.EveryRun) error {
			if err := p.pause(ctx, 2*time.Second, 4*time.Second); err != nil {
				return err
			}
			if p.rand.IntN(5) == 0 {
				return errors.New("the file of a supplier is not there yet")
			}
			return nil
		})
}

// lead is a candidate for the lead. The leader resigns after a while.
func lead(ctx context.Context, p *process) error {
	return p.Lead(ctx, "scheduler/leader", &holdfast.LeadOptions{
		Acquire: holdfast.AcquireOptions{MaxHold: 90 * time.Second, Reason: "hands out jobs"},
	}, p.during(10*time.Minute, 11*time.Minute))
}

// signInLink issues a one-time token over HTTP, as programs in other languages do, and
// mostly redeems it.
func signInLink(ctx context.Context, p *process) error {
	var issued struct {
		Token string `json:"token"`
	}
	err := p.post(ctx, "/v1/onetime", map[string]any{"payload": "customer", "ttl_ms": 30_000}, &issued)
	if err != nil {
		return err
	}
	if err := p.pause(ctx, time.Second, 3*time.Second); err != nil {
		return err
	}
	token := map[string]any{"token": issued.Token}
	switch drawn := p.rand.IntN(10); {
	case drawn < 6:
		err = p.post(ctx, "/v1/onetime/redeem", token, nil)
	case drawn < 8: // somebody follows the link twice
		err = errors.Join(p.post(ctx, "/v1/onetime/redeem", token, nil), p.post(ctx, "/v1/onetime/redeem", token, nil))
	case drawn < 9:
		err = p.post(ctx, "/v1/onetime/revoke", token, nil)
	}
	_ = p.pause(ctx, time.Second, 3*time.Second)
	return err
}

// post sends a request to the server, and reads its answer into to, unless that is nil.
func (p *process) post(ctx context.Context, path string, body, to any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := p.api.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s: %s", path, answer.Status)
	}
	if to == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(to)
}

// inside brings requests to a handler of the same program, at no address.
type inside struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (h inside) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Host, r.RequestURI = r.URL.Host, r.URL.RequestURI()
	w := &kept{header: http.Header{}, status: http.StatusOK}
	h.ServeHTTP(w, r)
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Header: w.header, Request: r,
		ContentLength: int64(w.body.Len()), Body: io.NopCloser(&w.body),
	}, nil
}

// A kept is an answer that is not sent.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *kept) Header() http.Header         { return w.header }
func (w *kept) WriteHeader(status int)      { w.status = status }
func (w *kept) Write(p []byte) (int, error) { return w.body.Write(p) }
