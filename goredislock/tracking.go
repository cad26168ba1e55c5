package goredislock

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/redis/go-redis/v9/push"

	"github.com/holdfast-locks/holdfast/rediscore"
)

// A tracking receives the keys that change on a server. go-redis reads unrequested messages only
// while it waits for a reply, so a tracking has two connections. Keys are read over one, and the
// server reports their changes on the other. Both belong to a separate client, so that the caller's
// pool and handlers stay as they are.
type tracking struct {
	client *redis.Client
	heard  *subscription
	id     atomic.Int64 // the server's ID of the latest connection
}

// newTracking makes a client that connects with the options of another one.
func newTracking(like *redis.Options, changed func(keys []string)) (*tracking, error) {
	t := &tracking{}
	t.client = redis.NewClient(&redis.Options{
		Network: like.Network, Addr: like.Addr, Dialer: like.Dialer, DialTimeout: like.DialTimeout, TLSConfig: like.TLSConfig,
		ReadTimeout: like.ReadTimeout, WriteTimeout: like.WriteTimeout,
		Username: like.Username, Password: like.Password, CredentialsProvider: like.CredentialsProvider,
		CredentialsProviderContext: like.CredentialsProviderContext, StreamingCredentialsProvider: like.StreamingCredentialsProvider,
		DB: like.DB, ClientName: like.ClientName, DisableIdentity: like.DisableIdentity, IdentitySuffix: like.IdentitySuffix,
		Protocol: 3, PoolSize: 1, PipelinePoolSize: -1, PushNotificationProcessor: push.NewProcessor(),
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		OnConnect: func(ctx context.Context, made *redis.Conn) (err error) {
			if like.OnConnect != nil {
				err = like.OnConnect(ctx, made)
			}
			if err == nil {
				var id int64
				id, err = made.ClientID(ctx).Result()
				t.id.Store(id)
			}
			return err
		},
	})
	t.heard = newSubscription(t.client.Subscribe(context.Background()), nil)
	return t, t.client.RegisterPushNotificationHandler("invalidate", invalidations(changed), false)
}

// begin returns a connection, and has the server report changes of keys that are read over it.
func (t *tracking) begin(ctx context.Context) (*redis.Conn, error) {
	if err := t.heard.begin(ctx, nil); err != nil {
		return nil, err
	}
	redirect := strconv.FormatInt(t.id.Load(), 10)
	read := t.client.Conn()
	_, err := sender{on: read}.Do(ctx, rediscore.Command{Words: []string{"CLIENT", "TRACKING", "ON", "REDIRECT", redirect}})
	return read, err
}

func (t *tracking) close() {
	t.heard.close()
	_ = t.client.Close()
}

// invalidations receives the keys that have changed, or nil if all keys may have.
type invalidations func(keys []string)

// HandlePushNotification implements push.NotificationHandler.
func (changed invalidations) HandlePushNotification(_ context.Context, _ push.NotificationHandlerContext, words []any) error {
	if len(words) < 2 {
		return nil
	}
	list, some := words[1].([]any)
	if !some {
		changed(nil)
		return nil
	}
	keys := make([]string, 0, len(list))
	for _, key := range list {
		if text, ok := key.(string); ok {
			keys = append(keys, text)
		}
	}
	changed(keys)
	return nil
}
