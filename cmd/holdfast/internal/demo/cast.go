package demo

import (
	"context"
	"time"

	"github.com/holdfast-locks/holdfast"
)

// Names that several roles use.
const (
	report    = "reports/monthly"
	payments  = "deploy/payments"
	hung      = "cache/catalog"
	transcode = "media/transcode"

	leadership = "scheduler/leader"
)

// cast returns all roles. The random choices of a process depend on its number, so add new roles
// at the end.
func cast() []role {
	type options = holdfast.AcquireOptions
	geocode := func(reason string) round {
		return under("api/geocoder", options{Mode: holdfast.Permits(1, 5), Reason: reason}, busy(5, 9), busy(0.2, 1))
	}
	render := func(reason string) round {
		return under("licences/render", options{Mode: holdfast.Permits(1, 2), Reason: reason}, busy(5, 9), busy(0.2, 1))
	}
	waitForReport := func(reason string) round { // gives up, and tries again
		return under(report, options{MaxWait: 3 * time.Minute, Reason: reason}, busy(5, 8), nil)
	}
	return []role{
		{hosts: "web-1 web-2 web-3 web-4", program: "shop", user: "www", round: packOrder},

		{hosts: "ci-1 ci-2", program: "deploy", user: "ci", round: deploy("deploy/shop", time.Hour)},
		{hosts: "ci-3", program: "deploy", user: "ci", round: deploy("deploy/shop", 40*time.Second)},
		{hosts: "ci-1", program: "deploy", user: "ci", round: deploy("deploy/search", time.Hour)},

		{hosts: "desk-17", user: "nora", person: true, round: freeze},
		{hosts: "ci-2", program: "deploy", user: "ci", round: deploy(payments, 90*time.Second)},
		{hosts: "ci-4", program: "deploy", user: "ci", round: deploy(payments, 45*time.Second)},

		// The report renews its lease, but makes no progress. If a user breaks its lease, it
		// starts again after a while.
		{hosts: "batch-1", program: "report", user: "finance", round: under(report,
			options{TTL: 30 * time.Second, Reason: "monthly figures", Labels: map[string]string{"step": "3 of 7"}}, busy(864_000, 864_000), busy(15, 25))},
		{hosts: "batch-2", program: "report", user: "finance", round: waitForReport("send the figures to the board")},
		{hosts: "web-2", program: "export", user: "www", round: waitForReport("export for the tax office")},

		// Backup reads a database that vacuum needs for itself.
		{hosts: "batch-1", program: "backup", user: "root", round: under("nightly/backup", options{Reason: "nightly backup"},
			under("db/orders", options{Mode: holdfast.Shared, Reason: "copy the orders"}, busy(6, 10), busy(3, 5)), busy(8, 12))},
		{hosts: "batch-2", program: "vacuum", user: "postgres", round: under("nightly/vacuum", options{Reason: "nightly vacuum"},
			under("db/orders", options{Reason: "rewrite the table"}, busy(3, 6), nil), busy(5, 9))},
		{hosts: "batch-3", program: "cleanup", user: "root", round: cleanup},

		{hosts: "web-1 web-2 web-3", program: "shop", user: "www", round: under("catalog",
			options{Mode: holdfast.Shared, Reason: "show the catalog"}, busy(3, 6), busy(0.5, 2))},
		{hosts: "batch-2", program: "indexer", user: "search", round: under("catalog", options{Reason: "new prices"}, busy(2, 3), busy(10, 15))},

		{hosts: "worker-1 worker-2", program: "geocoder", user: "app", round: geocode("addresses of new customers")},
		{hosts: "worker-3", program: "geocoder", user: "app", round: geocode("delivery areas")},

		{hosts: "cad-1 cad-2", program: "renderer", user: "app", round: render("preview")},
		{hosts: "cad-3 cad-4", program: "renderer", user: "app", round: render("catalogue pictures")},

		{hosts: "worker-2 worker-4", program: "thumbnailer", user: "app", round: thumbnails()},
		{hosts: "worker-3", program: "warm-up", user: "app", round: under(hung, options{Reason: "warm up the cache"}, busy(120, 180), busy(4, 8))},
		{hosts: "desk-17", user: "nora", person: true, round: breakHung},
		// Billing ends soon, and its name stays closed, so that a replica with a slow clock does
		// not run it again.
		{hosts: "batch-2", program: "billing", user: "finance", round: under("billing/run",
			options{MinHold: 50 * time.Second, Reason: "bill what was sent today"}, busy(2, 3), busy(52, 60))},

		// A chain: the movers wait for each other, and all of them for the inventory.
		{hosts: "stock-1", program: "mover", user: "app", round: move("stock/berlin", "stock/hamburg")},
		{hosts: "stock-2", program: "mover", user: "app", round: move("stock/hamburg", "stock/munich")},
		{hosts: "stock-3", program: "inventory", user: "app", round: under("stock/munich",
			options{Reason: "inventory: nothing may move"}, busy(20, 30), busy(3, 5))},

		// A cycle: the two wait for each other until one of them has waited long enough.
		{hosts: "books-1", program: "ledger", user: "finance", round: transfer("account/1001", "account/2002", 30*time.Second)},
		{hosts: "books-2", program: "ledger", user: "finance", round: transfer("account/2002", "account/1001", 12*time.Second)},

		{hosts: "batch-1 batch-2 batch-3", program: "scheduler", user: "app", round: lead},
		{hosts: "batch-1 batch-2", program: "prices", user: "app", round: importPrices},

		{hosts: "web-3 web-4", program: "mailer", user: "www", round: welcome},
		{hosts: "batch-3", program: "importer", user: "app", round: importOrders},
		{hosts: "web-1", program: "sign-in", user: "www", round: signInLink},

		{hosts: "worker-1", program: "transcoder", user: "app", round: crash},
		{hosts: "worker-4", program: "transcoder", user: "app", round: under(transcode, options{Reason: "films of customers"}, busy(3, 6), busy(2, 4))},
	}
}

// under returns a round that does work under a lock, and then rest without it. rest may be nil.
func under(name string, opts holdfast.AcquireOptions, work, rest round) round {
	return func(ctx context.Context, p *process) error {
		err := p.Do(ctx, name, &opts, func(ctx context.Context, _ *holdfast.Lease) error { return work(ctx, p) })
		if rest != nil {
			_ = rest(ctx, p)
		}
		return err
	}
}

// busy returns a round that takes a random time, in seconds.
func busy(from, to float64) round {
	return func(ctx context.Context, p *process) error { return p.pause(ctx, from, to) }
}

// both returns a round that does first, and then second.
func both(first, second round) round {
	return func(ctx context.Context, p *process) error {
		if err := first(ctx, p); err != nil {
			return err
		}
		return second(ctx, p)
	}
}

// move returns a round that holds one place, and waits for the next.
func move(from, to string) round {
	next := under(to, holdfast.AcquireOptions{Reason: "goods from " + from}, busy(1, 2), nil)
	return under(from, holdfast.AcquireOptions{Reason: "move goods"}, both(busy(1, 2), next), busy(1, 2))
}

// transfer returns a round that takes two accounts, and waits for the second while it holds the
// first. All transfers begin at the same time, every two minutes.
func transfer(from, to string, wait time.Duration) round {
	const often = 2 * time.Minute
	begin := func(ctx context.Context, p *process) error {
		left := time.Until(time.Now().Add(often).Truncate(often)).Seconds()
		return p.pause(ctx, left, left)
	}
	second := under(to, holdfast.AcquireOptions{MaxWait: wait, Reason: "transfer in"}, busy(1, 2), nil)
	return both(begin, under(from, holdfast.AcquireOptions{Reason: "transfer out"}, both(busy(2, 3), second), nil))
}

// thumbnails returns a round under a lease without renewals, whose TTL is long enough.
func thumbnails() round {
	return under("media/thumbnails", holdfast.AcquireOptions{
		TTL: 12 * time.Second, KeepAlive: holdfast.KeepAliveOff, WholeTTL: true, Reason: "thumbnails of new uploads",
	}, busy(2, 8), busy(1, 4))
}
