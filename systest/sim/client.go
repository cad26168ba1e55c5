package sim

import (
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-locks/holdfast/redislock"
)

// open returns an engine on a host, and a function that closes both it and its client.
// The client has the options of redislock.Open, except buffers, which are small because
// thousands of runs make them.
func (h *host) open() (*redislock.Engine, func(), error) {
	opts := rueidis.ClientOption{
		InitAddress: []string{"sim:6379"}, ClientName: "holdfast", ForceSingleClient: true,
		DisableRetry: true, DisableCache: true, AlwaysPipelining: true, PipelineMultiplex: -1,
		ConnWriteTimeout: 5 * time.Second, ClientSetInfo: rueidis.DisableClientSetInfo,
		DialCtxFn:         h.dial,
		RingScaleEachConn: 6, ReadBufferEachConn: 4096, WriteBufferEachConn: 4096, BlockingPoolSize: 8,
	}
	opts.Dialer.Timeout = 3 * time.Second
	client, err := rueidis.NewClient(opts)
	if err != nil {
		return nil, nil, fmt.Errorf("sim: open: %w", err)
	}
	engine, err := redislock.New(client, nil)
	if err != nil {
		client.Close()
		return nil, nil, fmt.Errorf("sim: open: %w", err)
	}
	return engine, func() {
		_ = engine.Close() // always nil
		client.Close()
		time.Sleep(2 * opts.ConnWriteTimeout) // rueidis may still be making a connection
	}, nil
}
