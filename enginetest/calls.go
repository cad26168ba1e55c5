package enginetest

import (
	"context"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// optionalCalls returns a call of every method of f that sends a request to the store.
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
			_, err := f.AllAcquirer.AcquireAll(ctx, askTagged(t.units(40), "one", "two"))
			return err
		}})
	}
	if f.Recorder != nil {
		all = append(all, recordCalls(f.Recorder)...)
		all = append(all, call{"DescribeRecord", func(ctx context.Context, _ *T, l lease) error {
			_, _, err := f.Recorder.DescribeRecord(ctx, l.Name)
			return err
		}}, call{"ListRecords", func(ctx context.Context, _ *T, l lease) error {
			var last error
			for _, err := range f.Recorder.ListRecords(ctx, l.Name) {
				last = err
			}
			return last
		}})
	}
	if f.Breaker != nil {
		all = append(all, call{"Break", func(ctx context.Context, _ *T, l lease) error {
			_, err := f.Breaker.Break(ctx, older(breakOf(l)))
			return err
		}}, call{"Breaks", func(ctx context.Context, _ *T, l lease) error {
			_, err := f.Breaker.Breaks(ctx, l.Name)
			return err
		}})
	}
	if f.Vault != nil {
		all = append(all, vaultCalls(f.Vault)...)
	}
	if f.Diagnoser != nil {
		all = append(all, call{"Diagnose", func(ctx context.Context, _ *T, l lease) error {
			_, err := f.Diagnoser.Diagnose(ctx, driver.DiagnoseRequest{TTL: l.TTL})
			return err
		}})
	}
	if f.Historian != nil {
		all = append(all, call{"History", func(ctx context.Context, _ *T, l lease) error {
			_, err := f.Historian.History(ctx, l.Name)
			return err
		}})
	}
	if f.Lister != nil {
		all = append(all, call{"List", func(ctx context.Context, _ *T, l lease) error {
			var last error
			for _, err := range f.Lister.List(ctx, l.Name) {
				last = err
			}
			return last
		}})
	}
	return all
}

func queueCalls(q driver.Queuer) []call {
	return []call{{"Refresh", func(ctx context.Context, t *T, l lease) error {
		req := driver.RefreshRequest{Name: l.Name, LeaseID: l.LeaseID, WaiterTTL: 4 * l.TTL}
		replies := q.Refresh(ctx, []driver.RefreshRequest{req, req})
		if len(replies) != 2 {
			t.Fatalf("Refresh of 2 places: %d answers", len(replies))
		}
		if replies[0].Err == nil {
			return nil
		}
		return replies[1].Err
	}}, {"Acquire with Queue", func(ctx context.Context, t *T, l lease) error {
		_, err := t.Engine.Acquire(ctx, forPlace(ask(l.Name, l.TTL), l.TTL))
		return err
	}}}
}

func recordCalls(r driver.Recorder) []call {
	return []call{{"Complete", func(ctx context.Context, t *T, l lease) error {
		return r.Complete(ctx, driver.CompleteRequest{Name: l.Name, LeaseID: l.LeaseID, Retention: t.units(40)})
	}}, {"Recall", func(ctx context.Context, _ *T, l lease) error {
		_, _, err := r.Recall(ctx, l.Name)
		return err
	}}, {"Forget", func(ctx context.Context, _ *T, l lease) error {
		_, err := r.Forget(ctx, l.Name)
		return err
	}}}
}

// vaultCalls returns a call of every method of a vault that sends a request to the store.
func vaultCalls(v driver.Vault) []call {
	return []call{
		{"Deposit", func(ctx context.Context, t *T, l lease) error {
			return v.Deposit(ctx, t.askDeposit("another", l.TTL).DepositRequest)
		}},
		{"Redeem", func(ctx context.Context, _ *T, l lease) error {
			_, err := v.Redeem(ctx, driver.RedeemRequest{Proof: proofOf(l.Name), By: lockinfo.NewLeaseID()})
			return err
		}},
		{"Peek", func(ctx context.Context, _ *T, l lease) error {
			_, err := v.Peek(ctx, proofOf(l.Name))
			return err
		}},
		{"Revoke", func(ctx context.Context, _ *T, l lease) error {
			_, err := v.Revoke(ctx, proofOf(l.Name).Digest())
			return err
		}},
		{"Prune", func(ctx context.Context, _ *T, _ lease) error {
			_, _, err := v.Prune(ctx, driver.MaxPrune)
			return err
		}},
	}
}
