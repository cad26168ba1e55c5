package otellock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-locks/holdfast"
	"github.com/holdfast-locks/holdfast/memlock"
	"github.com/holdfast-locks/holdfast/otellock"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func Example() {
	ctx := context.Background()
	recorder := tracetest.NewSpanRecorder() // an exporter, in a program
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
	telemetry, err := otellock.New(otellock.Options{TracerProvider: provider})
	if err != nil {
		log.Fatal(err)
	}
	client, err := holdfast.New(otellock.Engine(memlock.New()), &holdfast.Options{Observer: telemetry.Observe})
	if err != nil {
		log.Fatal(err)
	}

	tracer := provider.Tracer("shop")
	ctx, request := tracer.Start(ctx, "POST /orders/42")
	err = client.Do(ctx, "orders/42", nil, func(ctx context.Context, _ *holdfast.Lease) error {
		_, charge := tracer.Start(telemetry.WithHold(ctx), "charge the card")
		defer charge.End()
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := client.Close(ctx); err != nil { // all is told when it returns
		log.Fatal(err)
	}
	request.End()

	names := map[string]string{}
	for _, span := range recorder.Ended() {
		names[span.SpanContext().SpanID().String()] = span.Name()
	}
	for _, name := range []string{"lock.acquire", "lock.hold", "charge the card"} {
		for _, span := range recorder.Ended() {
			if span.Name() == name {
				fmt.Println(name, "is a child of", names[span.Parent().SpanID().String()])
			}
		}
	}
	// Output:
	// lock.acquire is a child of POST /orders/42
	// lock.hold is a child of POST /orders/42
	// charge the card is a child of lock.hold
}
