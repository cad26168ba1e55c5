package promlock_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/memlock"
	"github.com/holdfast-locks/holdfast/promlock"
)

func Example() {
	ctx := context.Background()
	metrics := promlock.New(&promlock.Options{NameLabel: promlock.FoldNames})
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	engine, err := memlock.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	client, err := holdfast.New(engine, &holdfast.Options{Observer: metrics.Observe})
	if err != nil {
		log.Fatal(err)
	}
	for order := range 3 {
		name := fmt.Sprintf("orders/%d", order)
		if err := client.Do(ctx, name, nil, func(context.Context, *holdfast.Lease) error { return nil }); err != nil {
			log.Fatal(err)
		}
	}
	if err := client.Close(); err != nil { // all events are counted when Close returns
		log.Fatal(err)
	}

	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	scrape := httptest.NewRecorder()
	handler.ServeHTTP(scrape, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
	for lines := bufio.NewScanner(scrape.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "holdfast_releases_total") || strings.HasPrefix(lines.Text(), "holdfast_held") {
			fmt.Println(lines.Text())
		}
	}
	// Output:
	// holdfast_held{mode="exclusive",name="orders/*"} 0
	// holdfast_releases_total{name="orders/*",outcome="left"} 0
	// holdfast_releases_total{name="orders/*",outcome="released"} 3
	// holdfast_releases_total{name="orders/*",outcome="unconfirmed"} 0
}
