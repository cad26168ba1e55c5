package mutant

// goRedisMutants are faults of the engine on go-redis: of what it makes of the
// client.
func goRedisMutants() []Mutant {
	once := Finder{"goredislock", "TestRequestsAreSentOnce"}
	return []Mutant{
		{
			Name: "goredis-repeats-in-silence", Invariant: "I6", File: "goredislock/sender.go",
			Breaks:  "go-redis sends a request of ours again, up to three times, when its answer is lost.",
			Old:     "func (*request) NoRetry() bool { return true }",
			New:     "func (*request) NoRetry() bool { return false }",
			FoundBy: []Finder{once},
		},
		{
			Name: "goredis-repeats-many-in-silence", Invariant: "I6", File: "goredislock/sender.go",
			Breaks:  "go-redis sends the requests of many again when their answer is lost.",
			Old:     "func (*intsRequest) NoRetry() bool { return true }",
			New:     "func (*intsRequest) NoRetry() bool { return false }",
			FoundBy: []Finder{once},
		},
		{
			Name: "goredis-lost-answer-is-certain", Invariant: "I10", File: "goredislock/errors.go",
			Breaks:  "A connection that breaks under a request is taken for one that was never made.",
			Old:     `op.Op == "dial" || errors.As`,
			New:     `op.Op != "" || errors.As`,
			FoundBy: []Finder{once},
		},
		{
			Name: "goredis-pool-timeout-is-unknown", Invariant: "I10", File: "goredislock/errors.go",
			Breaks:  "Of a request that found no connection it is said that it may have been carried out.",
			Old:     "case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):",
			New:     "case false:",
			FoundBy: []Finder{{"goredislock", "TestPoolTimeout"}},
		},
		{
			Name: "goredis-waits-for-the-pool-to-the-end", Invariant: "I9", File: "goredislock/patience.go",
			Breaks:  "A renewal waits for a connection until its lease is over, and nobody hears why.",
			Old:     "time.Until(end)/2",
			New:     "time.Until(end)*2",
			FoundBy: []Finder{{"goredislock", "TestExhaustedPool"}},
		},
		{
			Name: "goredis-slots-by-a-function", Invariant: "I1", File: "goredislock/conn.go",
			Breaks:  "A client whose slots a function names is taken, which no server corrects.",
			Old:     "if client.Options().ClusterSlots != nil {",
			New:     "if client.Options().ClusterSlots != nil && false {",
			FoundBy: []Finder{{"goredislock", "TestNewRefuses"}},
		},
		{
			Name: "goredis-waits-without-end", Invariant: "I9", File: "goredislock/conn.go",
			Breaks:  "A client that waits for an answer without end is taken.",
			Old:     "if readTimeout <= 0 {",
			New:     "if false && readTimeout <= 0 {",
			FoundBy: []Finder{{"goredislock", "TestNewRefuses"}},
		},
		{
			Name: "goredis-session-keeps-its-connection", Invariant: "", File: "goredislock/session.go",
			Breaks:  "A connection that was taken from the pool for one acquire never comes back.",
			Old:     "func (s *session) GiveBack() { s.Close() }",
			New:     "func (s *session) GiveBack() {}",
			FoundBy: []Finder{{"goredislock", "TestNoConnectionIsHeld"}},
		},
		{
			Name: "goredis-silent-subscription-stays", Invariant: "", File: "goredislock/subscription.go",
			Breaks:  "A subscription whose server is gone without a word is kept.",
			Old:     "if !s.spoke.Swap(false) {",
			New:     "if s.spoke.Swap(false); false {",
			FoundBy: []Finder{{"goredislock", "TestSilentSubscriptionEnds"}},
		},
		{
			Name: "goredis-old-news-of-keys", Invariant: "", File: "goredislock/session.go",
			Breaks:  "What a renewal itself changes is told as a deletion, because it is told on another connection.",
			Old:     "if s.tells != nil && err == nil {",
			New:     "if s.tells != nil && err == nil && false {",
			FoundBy: []Finder{{"goredislock", "TestOldNewsComesFirst"}},
		},
		{
			Name: "goredis-missing-master-is-nil", Invariant: "I10", File: "goredislock/sender.go",
			Breaks:  "An error that wraps go-redis's nil, such as that of sentinels, is a reply.",
			Old:     "if isNil(err) {",
			New:     "if errors.Is(err, redis.Nil) {",
			FoundBy: []Finder{{"goredislock", "TestUnknownMaster"}},
		},
		{
			Name: "goredis-old-map-of-the-cluster", Invariant: "", File: "goredislock/sender.go",
			Breaks:  "A cluster client goes on asking a node that is gone, until it looks by itself.",
			Old:     "if err != nil && s.failed != nil && isSilence(err) {",
			New:     "if err != nil && s.failed != nil && false {",
			FoundBy: []Finder{{"goredislock", "TestClusterFailover"}},
		},
		{
			Name: "goredis-hook-that-leaves-is-certain", Invariant: "I10", File: "goredislock/sender.go",
			Breaks:  "What a hook has sent, and does not wait for, is said not to have been sent.",
			Old:     "if r.unread() {",
			New:     "if true || r.unread() {",
			FoundBy: []Finder{{"goredislock", "TestHookThatLeaves"}},
		},
		{
			Name: "goredis-split-commands", Invariant: "", File: "goredislock/conn.go",
			Breaks:  "A command of several keys goes by the cluster client, which may split it and lose the answer.",
			Old:     "if c.cluster == nil || len(command.Keys) == 0",
			New:     "if true || c.cluster == nil || len(command.Keys) == 0",
			FoundBy: []Finder{{"goredislock", "TestModes"}},
		},
		{
			Name: "redis-nil-client-panics", Invariant: "I10", File: "rediscore/engine.go",
			Breaks:  "An engine on no client at all ends the program.",
			Old:     "if conn == nil {",
			New:     "if conn == nil && false {",
			FoundBy: []Finder{{"redislock", "TestNilClient"}},
		},
		{
			Name: "loss-hides-why-renewals-failed", Invariant: "I10", File: "lease_term.go",
			Breaks:  "A lease that could not be renewed does not say what was wrong.",
			Old:     "t.trouble = why",
			New:     "_ = why",
			FoundBy: []Finder{{".", "TestKeepAliveTellsLossAtDeadline"}},
		},
	}
}
