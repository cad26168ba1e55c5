package oncehttp_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/memlock"
	"github.com/holdfast-locks/holdfast/observe"
	"github.com/holdfast-locks/holdfast/oncehttp"
)

// An account is the result of authentication: the user, and the tenant for which the user works in
// this request.
type account struct{ tenant, user string }

type accountKey struct{}

// authenticate stands for your authentication. It refuses unknown users.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if password != "secret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		a := account{tenant: r.Header.Get("Tenant"), user: user}
		if !mayWorkFor(a.user, a.tenant) {
			http.Error(w, "you do not work for this tenant", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), accountKey{}, a)))
	})
}

func mayWorkFor(user, tenant string) bool { return user == "ada" && tenant == "acme" }

// accountOf returns what authentication has proved, user and tenant, and nothing if it has
// not: the same user in another tenant is another caller.
func accountOf(r *http.Request) string {
	a, ok := r.Context().Value(accountKey{}).(account)
	if !ok {
		return ""
	}
	return callerName(a)
}

// callerName returns a different text for each account, whatever its parts contain.
func callerName(a account) string { return fmt.Sprintf("%q of %q", a.user, a.tenant) }

// mayPay is the check at the beginning of the handler.
func mayPay(r *http.Request) bool {
	a, _ := r.Context().Value(accountKey{}).(account)
	return mayWorkFor(a.user, a.tenant)
}

// charge is work that must run once, in a transaction that ends with the lease.
func charge(w http.ResponseWriter, r *http.Request) {
	if !mayPay(r) {
		http.Error(w, "you may not pay", http.StatusForbidden)
		return
	}
	lease, _ := holdfast.LeaseFromContext(r.Context())
	if err := book(r.Context(), lease.Token(), r.Body); err != nil {
		http.Error(w, "nothing was charged", http.StatusInternalServerError) // 5xx: a repeat runs
		return
	}
	w.Header().Set("Location", "/payments/1")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintln(w, "charged")
}

func book(_ context.Context, token uint64, request io.Reader) error {
	text, err := io.ReadAll(request)
	if err != nil || token == 0 {
		return fmt.Errorf("no request: %w", err)
	}
	fmt.Printf("booking %s\n", text)
	return nil
}

// setUp sets up the whole service.
func setUp(server *http.Server, client *holdfast.Client) error {
	once, err := oncehttp.New(client, &oncehttp.Options{
		Required:  true,
		Await:     5 * time.Second,
		Retention: 48 * time.Hour,
		Vary:      []string{"Accept"}, // what else the answer depends on
		Allow:     mayPay,             // a replay does not run the handler
		Observer: func(e observe.Event) {
			if e.Kind == observe.RequestRan && e.Err != nil {
				log.Printf("a response was not kept: %s: %v", e.Name, e.Err)
			}
		},
	}, accountOf)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /payments", once.Wrap(http.HandlerFunc(charge)))
	server.Handler = authenticate(mux)
	return nil
}

// pay sends one payment until it gets a final reply.
func pay(ctx context.Context, url, key, amount string) (*http.Response, error) {
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(amount))
		if err != nil {
			return nil, err
		}
		r.SetBasicAuth("ada", "secret")
		r.Header.Set("Tenant", "acme")
		r.Header.Set(oncehttp.Header, oncehttp.FormatKey(key)) // the same for each try
		response, err := http.DefaultClient.Do(r)
		if err == nil && response.StatusCode != http.StatusConflict && response.StatusCode < 500 {
			return response, nil
		}
		if err == nil {
			response.Body.Close()
		}
		select {
		case <-time.After(time.Second): // or Retry-After
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func Example() {
	engine, err := memlock.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	client, err := holdfast.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	if err := setUp(server.Config, client); err != nil {
		log.Fatal(err)
	}
	server.Start()
	defer server.Close()
	for range 2 {
		response, err := pay(context.Background(), server.URL+"/payments", "8e03978e-40d5-43e8-bc93-6894a57f9324", "7 EUR")
		if err != nil {
			log.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		fmt.Printf("%d %s, replayed: %q\n", response.StatusCode, strings.TrimSpace(string(body)), response.Header.Get(oncehttp.ReplayedHeader))
	}
	// Output:
	// booking 7 EUR
	// 201 charged, replayed: ""
	// 201 charged, replayed: "true"
}

func ExampleMiddleware_Name() {
	engine, err := memlock.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	client, err := holdfast.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	once, err := oncehttp.New(client, nil, accountOf)
	if err != nil {
		log.Fatal(err)
	}
	// Support lets a customer try again under the same key.
	name := once.Name(callerName(account{tenant: "acme", user: "ada"}), "POST /payments", "8e03978e-40d5-43e8-bc93-6894a57f9324")
	found, err := client.Records().Forget(context.Background(), name)
	fmt.Println(found, err)
	// Output:
	// false <nil>
}
