package enginetest

import (
	"context"
	"iter"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// optionalCalls returns a call of each method of f that sends a request.
func optionalCalls(t *T, f driver.Features) (all []call) {
	if f.Queuer != nil {
		all = append(all, queueCalls(f.Queuer)...)
	}
	if f.Downgrader != nil {
		all = append(all, call{"Downgrade", func(ctx context.Context, _ *T, l lease) error {
			return f.Downgrader.Downgrade(ctx, driver.DowngradeRequest{Name: l.Name, LeaseID: l.LeaseID})
		}})
	}
	if f.AllAcquirer != nil {
		all = append(all, call{"AcquireAll", func(ctx context.Context, t *T, _ lease) error {
			return errOf(f.AllAcquirer.AcquireAll(ctx, askTagged(t.units(40), "one", "two")))
		}})
	}
	if f.Recorder != nil {
		all = append(all, recordCalls(f.Recorder)...)
		all = append(all, call{"DescribeRecord", func(ctx context.Context, _ *T, l lease) error {
			return errOfFound(f.Recorder.DescribeRecord(ctx, l.Name))
		}}, call{"ListRecords", func(ctx context.Context, _ *T, l lease) error {
			return errOfList(f.Recorder.ListRecords(ctx, l.Name))
		}})
	}
	if f.Breaker != nil {
		all = append(all, call{"Break", func(ctx context.Context, _ *T, l lease) error {
			return errOf(f.Breaker.Break(ctx, older(breakOf(l))))
		}}, call{"Breaks", func(ctx context.Context, _ *T, l lease) error {
			return errOf(f.Breaker.Breaks(ctx, l.Name))
		}})
	}
	if f.Vault != nil {
		all = append(all, vaultCalls(f.Vault)...)
	}
	if f.Diagnoser != nil {
		all = append(all, call{"Diagnose", func(ctx context.Context, _ *T, l lease) error {
			return errOf(f.Diagnoser.Diagnose(ctx, driver.DiagnoseRequest{TTL: l.TTL}))
		}})
	}
	if f.Historian != nil {
		all = append(all, call{"History", func(ctx context.Context, _ *T, l lease) error {
			return errOf(f.Historian.History(ctx, l.Name))
		}})
	}
	if f.Lister != nil {
		all = append(all, call{"List", func(ctx context.Context, _ *T, l lease) error {
			return errOfList(f.Lister.List(ctx, l.Name))
		}})
	}
	return all
}

func queueCalls(q driver.Queuer) []call {
	return []call{{"Refresh", func(ctx context.Context, t *T, l lease) error {
		req := driver.RefreshRequest{Name: l.Name, LeaseID: l.LeaseID, WaiterTTL: 4 * l.TTL}
		replies := q.Refresh(ctx, []driver.RefreshRequest{req, req})
		t.need(len(replies) == 2, "Refresh of 2 places: %d answers", len(replies))
		return errOfBoth(replies[0].Err, replies[1].Err)
	}}, {"Acquire with Queue", func(ctx context.Context, t *T, l lease) error {
		return errOf(t.Engine.Acquire(ctx, forPlace(ask(l.Name, l.TTL), l.TTL)))
	}}}
}

func recordCalls(r driver.Recorder) []call {
	return []call{{"Complete", func(ctx context.Context, t *T, l lease) error {
		return r.Complete(ctx, driver.CompleteRequest{Name: l.Name, LeaseID: l.LeaseID, Retention: t.units(40)})
	}}, {"Recall", func(ctx context.Context, _ *T, l lease) error {
		return errOfFound(r.Recall(ctx, l.Name))
	}}, {"Forget", func(ctx context.Context, _ *T, l lease) error {
		return errOf(r.Forget(ctx, l.Name))
	}}}
}

// vaultCalls returns a call of each method of a vault that sends a request.
func vaultCalls(v driver.Vault) []call {
	return []call{
		{"Deposit", func(ctx context.Context, t *T, l lease) error {
			return v.Deposit(ctx, t.askDeposit("another", l.TTL).DepositRequest)
		}},
		{"Redeem", func(ctx context.Context, _ *T, l lease) error {
			return errOf(v.Redeem(ctx, driver.RedeemRequest{Proof: proofOf(l.Name), By: lockinfo.NewLeaseID()}))
		}},
		{"Peek", func(ctx context.Context, _ *T, l lease) error {
			return errOf(v.Peek(ctx, proofOf(l.Name)))
		}},
		{"Revoke", func(ctx context.Context, _ *T, l lease) error {
			return errOf(v.Revoke(ctx, proofOf(l.Name).Digest()))
		}},
		{"Prune", func(ctx context.Context, _ *T, _ lease) error {
			return errOfFound(v.Prune(ctx, driver.MaxPrune))
		}},
	}
}

// errOf returns the error of a call.
func errOf[R any](_ R, err error) error { return err }

// errOfFound is errOf for a call that has two more results.
func errOfFound[R, Found any](_ R, _ Found, err error) error { return err }

// errOfList returns the last error of a list.
func errOfList[V any](list iter.Seq2[V, error]) (last error) {
	for _, err := range list {
		last = err
	}
	return last
}

// errOfBoth returns an error if both requests of a batch failed.
func errOfBoth(first, second error) error {
	if first == nil {
		return nil
	}
	return second
}
