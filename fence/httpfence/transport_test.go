package httpfence_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/fence/httpfence"
	"github.com/holdfast-locks/holdfast/internal/mem"
)

// hold calls work under a lease.
func hold(t *testing.T, client *holdfast.Client, work func(context.Context, *holdfast.Lease)) {
	t.Helper()
	err := client.Do(t.Context(), "seat", nil, func(ctx context.Context, l *holdfast.Lease) error {
		work(ctx, l)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func newClient(t *testing.T) *holdfast.Client {
	t.Helper()
	client, err := holdfast.New(mem.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func get(ctx context.Context, t *testing.T, client *http.Client, url string, fields ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	before := fmt.Sprint(r.Header)
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if after := fmt.Sprint(r.Header); after != before {
		t.Errorf("the caller's request was changed from %s to %s", before, after)
	}
	return resp
}

func TestTransportSendsTheLease(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, fmt.Sprint(r.Header.Values(httpfence.Header), r.Header.Values(httpfence.AltHeader)))
	}))
	defer server.Close()
	client := &http.Client{Transport: &httpfence.Transport{}}
	var lease *holdfast.Lease
	hold(t, newClient(t), func(ctx context.Context, l *holdfast.Lease) {
		lease = l
		get(ctx, t, client, server.URL)
		get(ctx, t, client, server.URL, httpfence.Header, "7")
		get(ctx, t, client, server.URL, httpfence.AltHeader, "8")
	})
	get(t.Context(), t, client, server.URL)
	want := []string{
		fmt.Sprintf(`[%d;lease="%s"] []`, lease.Token(), lease.ID()),
		"[7] []", "[] [8]", "[] []",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("the server saw\n%q, want\n%q", seen, want)
	}
}

// TestTransportKeepsTheLeaseFromOtherHosts: a client that knows a lease ID can release the lease.
func TestTransportKeepsTheLeaseFromOtherHosts(t *testing.T) {
	sent := map[string]bool{} // path -> with a claim
	note := func(r *http.Request) { sent[r.URL.Path] = r.Header.Get(httpfence.Header) != "" }
	var first, other *httptest.Server
	other = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(r)
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "/away/again", http.StatusTemporaryRedirect)
		case "/away/again":
			http.Redirect(w, r, first.URL+"/back", http.StatusTemporaryRedirect)
		}
	}))
	defer other.Close()
	first = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		note(r)
		switch r.URL.Path {
		case "/":
			http.Redirect(w, r, "/same", http.StatusTemporaryRedirect)
		case "/same":
			http.Redirect(w, r, other.URL+"/away", http.StatusTemporaryRedirect)
		}
	}))
	defer first.Close()
	client := &http.Client{Transport: &httpfence.Transport{}}
	hold(t, newClient(t), func(ctx context.Context, _ *holdfast.Lease) { get(ctx, t, client, first.URL+"/") })
	if got := fmt.Sprint(sent); got != "map[/:true /away:false /away/again:false /back:true /same:true]" {
		t.Errorf("sent with a claim: %s", got)
	}
}

// TestZombieOverHTTP combines all parts: two leases, a transport, a guarded service, and a first
// holder that continues too late.
func TestZombieOverHTTP(t *testing.T) {
	server := httptest.NewServer(httpfence.NewHandler(http.NotFoundHandler(), newGate().Marks(), nil))
	defer server.Close()
	locks, client := newClient(t), &http.Client{Transport: &httpfence.Transport{}}
	var zombie context.Context
	hold(t, locks, func(ctx context.Context, _ *holdfast.Lease) {
		zombie = context.WithoutCancel(ctx) // it does not notice that its lease has ended
		if r := get(ctx, t, client, server.URL); r.StatusCode != http.StatusNotFound {
			t.Errorf("the first holder: %s", r.Status)
		}
	})
	hold(t, locks, func(ctx context.Context, _ *holdfast.Lease) {
		if r := get(ctx, t, client, server.URL); r.StatusCode != http.StatusNotFound {
			t.Errorf("the second holder: %s", r.Status)
		}
	})
	if r := get(zombie, t, client, server.URL); r.StatusCode != http.StatusPreconditionFailed {
		t.Errorf("the zombie: %s, want 412", r.Status)
	}
}
