package demo

import "time"

// cast returns everybody there is. The number of a role is part of what it draws: add
// new roles at the end.
func cast() []role {
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
		{host: "ci-2", program: "deploy", user: "ci", round: deploy("deploy/payments", 90*time.Second)},
		{host: "ci-4", program: "deploy", user: "ci", round: deploy("deploy/payments", 45*time.Second)},

		{host: "batch-1", program: "report", user: "finance", round: stuckReport},
		{host: "batch-2", program: "report", user: "finance", round: waitForReport("send the figures to the board")},
		{host: "web-2", program: "export", user: "www", round: waitForReport("export for the tax office")},

		{host: "batch-1", program: "backup", user: "root", round: backup},
		{host: "batch-2", program: "vacuum", user: "postgres", round: vacuum},
		{host: "batch-3", program: "cleanup", user: "root", round: cleanup},

		{host: "web-1", program: "shop", user: "www", round: readCatalog},
		{host: "web-2", program: "shop", user: "www", round: readCatalog},
		{host: "web-3", program: "shop", user: "www", round: readCatalog},
		{host: "batch-2", program: "indexer", user: "search", round: writeCatalog},

		{host: "worker-1", program: "geocoder", user: "app", round: permits("api/geocoder", 5, "addresses of new customers")},
		{host: "worker-2", program: "geocoder", user: "app", round: permits("api/geocoder", 5, "addresses of new customers")},
		{host: "worker-3", program: "geocoder", user: "app", round: permits("api/geocoder", 5, "delivery areas")},

		{host: "cad-1", program: "renderer", user: "app", round: permits("licences/render", 2, "preview")},
		{host: "cad-2", program: "renderer", user: "app", round: permits("licences/render", 2, "preview")},
		{host: "cad-3", program: "renderer", user: "app", round: permits("licences/render", 2, "catalogue pictures")},
		{host: "cad-4", program: "renderer", user: "app", round: permits("licences/render", 2, "catalogue pictures")},

		{host: "worker-2", program: "thumbnailer", user: "app", round: runOut},
		{host: "worker-4", program: "thumbnailer", user: "app", round: runOut},
		{host: "worker-3", program: "warm-up", user: "app", round: hang},
		{host: "desk-17", user: "nora", person: true, round: breakHung},
		{host: "batch-2", program: "billing", user: "finance", round: billing},

		{host: "stock-1", program: "mover", user: "app", round: move("stock/berlin", "stock/hamburg")},
		{host: "stock-2", program: "mover", user: "app", round: move("stock/hamburg", "stock/munich")},
		{host: "stock-3", program: "inventory", user: "app", round: inventory},

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
		{host: "worker-4", program: "transcoder", user: "app", round: transcoder},
	}
}
