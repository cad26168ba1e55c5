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
)

// cast returns all roles. The number of a role is part of what it draws: add new roles at
// the end.
func cast() []role {
	type options = holdfast.AcquireOptions
	geocode := func(reason string) round {
		return under("api/geocoder", options{Mode: holdfast.Permits(1, 5), Reason: reason}, busy(5, 9), busy(0.2, 1))
	}
	render := func(reason string) round {
		return under("licences/render", options{Mode: holdfast.Permits(1, 2), Reason: reason}, busy(5, 9), busy(0.2, 1))
	}
	waitForReport := func(reason string) round { // gives up, and comes again
		return under(report, options{MaxWait: 3 * time.Minute, Reason: reason}, busy(5, 8), nil)
	}
	readCatalog := under("catalog", options{Mode: holdfast.Shared, Reason: "show the catalog"}, busy(3, 6), busy(0.5, 2))
	return []role{
		{host: "web-1", program: "shop", user: "www", round: packOrder},
		{host: "web-2", program: "shop", user: "www", round: packOrder},
		{host: "web-3", program: "shop", user: "www", round: packOrder},
		{host: "web-4", program: "shop", user: "www", round: packOrder},

		{host: "ci-1", program: "deploy", user: "ci", round: deploy("deploy/shop", time.Hour)},
		{host: "ci-2", program: "deploy", user: "ci", round: deploy("deploy/shop", time.Hour)},
		{host: "ci-3", program: "deploy", user: "ci", round: deploy("deploy/shop", 40*time.Second)},
		{host: "ci-1", program: "deploy", user: "ci", round: deploy("deploy/search", time.Hour)},

		{host: "desk-17", user: "nora", person: true, round: freeze},
		{host: "ci-2", program: "deploy", user: "ci", round: deploy(payments, 90*time.Second)},
		{host: "ci-4", program: "deploy", user: "ci", round: deploy(payments, 45*time.Second)},

		// The report renews its lease, but makes no progress. If a user breaks its lease, it
		// starts again after a while.
		{host: "batch-1", program: "report", user: "finance", round: under(report,
			options{TTL: 30 * time.Second, Reason: "monthly figures", Labels: map[string]string{"step": "3 of 7"}}, busy(864_000, 864_000), busy(15, 25))},
		{host: "batch-2", program: "report", user: "finance", round: waitForReport("send the figures to the board")},
		{host: "web-2", program: "export", user: "www", round: waitForReport("export for the tax office")},

		// Backup reads what vacuum wants for itself.
		{host: "batch-1", program: "backup", user: "root", round: under("nightly/backup", options{Reason: "nightly backup"},
			under("db/orders", options{Mode: holdfast.Shared, Reason: "copy the orders"}, busy(6, 10), busy(3, 5)), busy(8, 12))},
		{host: "batch-2", program: "vacuum", user: "postgres", round: under("nightly/vacuum", options{Reason: "nightly vacuum"},
			under("db/orders", options{Reason: "rewrite the table"}, busy(3, 6), nil), busy(5, 9))},
		{host: "batch-3", program: "cleanup", user: "root", round: cleanup},

		{host: "web-1", program: "shop", user: "www", round: readCatalog},
		{host: "web-2", program: "shop", user: "www", round: readCatalog},
		{host: "web-3", program: "shop", user: "www", round: readCatalog},
		{host: "batch-2", program: "indexer", user: "search", round: under("catalog", options{Reason: "new prices"}, busy(2, 3), busy(10, 15))},

		{host: "worker-1", program: "geocoder", user: "app", round: geocode("addresses of new customers")},
		{host: "worker-2", program: "geocoder", user: "app", round: geocode("addresses of new customers")},
		{host: "worker-3", program: "geocoder", user: "app", round: geocode("delivery areas")},

		{host: "cad-1", program: "renderer", user: "app", round: render("preview")},
		{host: "cad-2", program: "renderer", user: "app", round: render("preview")},
		{host: "cad-3", program: "renderer", user: "app", round: render("catalogue pictures")},
		{host: "cad-4", program: "renderer", user: "app", round: render("catalogue pictures")},

		{host: "worker-2", program: "thumbnailer", user: "app", round: thumbnails()},
		{host: "worker-4", program: "thumbnailer", user: "app", round: thumbnails()},
		{host: "worker-3", program: "warm-up", user: "app", round: under(hung, options{Reason: "warm up the cache"}, busy(120, 180), busy(4, 8))},
		{host: "desk-17", user: "nora", person: true, round: breakHung},
		// Billing is done soon, and its name stays closed, so that a replica whose clock is slow does
		// not run it again.
		{host: "batch-2", program: "billing", user: "finance", round: under("billing/run",
			options{MinHold: 50 * time.Second, Reason: "bill what was sent today"}, busy(2, 3), busy(52, 60))},

		// A chain: the movers wait for each other, and all of them for the inventory.
		{host: "stock-1", program: "mover", user: "app", round: move("stock/berlin", "stock/hamburg")},
		{host: "stock-2", program: "mover", user: "app", round: move("stock/hamburg", "stock/munich")},
		{host: "stock-3", program: "inventory", user: "app", round: under("stock/munich",
			options{Reason: "inventory: nothing may move"}, busy(20, 30), busy(3, 5))},

		// A cycle: the two wait for each other until one of them has waited long enough.
		{host: "books-1", program: "ledger", user: "finance", round: transfer("account/1001", "account/2002", 30*time.Second)},
		{host: "books-2", program: "ledger", user: "finance", round: transfer("account/2002", "account/1001", 12*time.Second)},

		{host: "batch-1", program: "scheduler", user: "app", round: lead},
		{host: "batch-2", program: "scheduler", user: "app", round: lead},
		{host: "batch-3", program: "scheduler", user: "app", round: lead},
		{host: "batch-1", program: "prices", user: "app", round: importPrices},
		{host: "batch-2", program: "prices", user: "app", round: importPrices},

		{host: "web-3", program: "mailer", user: "www", round: welcome},
		{host: "web-4", program: "mailer", user: "www", round: welcome},
		{host: "batch-3", program: "importer", user: "app", round: importOrders},
		{host: "web-1", program: "sign-in", user: "www", round: signInLink},

		{host: "worker-1", program: "transcoder", user: "app", round: crash},
		{host: "worker-4", program: "transcoder", user: "app", round: under(transcode, options{Reason: "films of customers"}, busy(3, 6), busy(2, 4))},
	}
}

// under returns a round that does work under a lock, and then rest without it. rest may be
// nil.
func under(name string, opts holdfast.AcquireOptions, work, rest round) round {
	return func(ctx context.Context, p *process) error {
		err := p.Do(ctx, name, &opts, func(ctx context.Context, _ *holdfast.Lease) error { return work(ctx, p) })
		if rest != nil {
			_ = rest(ctx, p)
		}
		return err
	}
}

// busy returns a round that takes a time that is drawn, in seconds.
func busy(from, to float64) round {
	return func(ctx context.Context, p *process) error { return p.pause(ctx, from, to) }
}

// both returns a round of two parts.
func both(first, second round) round {
	return func(ctx context.Context, p *process) error {
		if err := first(ctx, p); err != nil {
			return err
		}
		return second(ctx, p)
	}
}

// move holds one place, and waits for the next.
func move(from, to string) round {
	next := under(to, holdfast.AcquireOptions{Reason: "goods from " + from}, busy(1, 2), nil)
	return under(from, holdfast.AcquireOptions{Reason: "move goods"}, both(busy(1, 2), next), busy(1, 2))
}

// transfer takes two accounts, and waits for the second while it holds the first. All transfers
// begin at the same time, every two minutes.
func transfer(from, to string, wait time.Duration) round {
	const often = 2 * time.Minute
	begin := func(ctx context.Context, p *process) error {
		left := time.Until(time.Now().Add(often).Truncate(often)).Seconds()
		return p.pause(ctx, left, left)
	}
	second := under(to, holdfast.AcquireOptions{MaxWait: wait, Reason: "transfer in"}, busy(1, 2), nil)
	return both(begin, under(from, holdfast.AcquireOptions{Reason: "transfer out"}, both(busy(2, 3), second), nil))
}

// thumbnails takes a lease without renewals, which lasts for long enough.
func thumbnails() round {
	return under("media/thumbnails", holdfast.AcquireOptions{
		TTL: 12 * time.Second, KeepAlive: holdfast.KeepAliveOff, WholeTTL: true, Reason: "thumbnails of new uploads",
	}, busy(2, 8), busy(1, 4))
}
