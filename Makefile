# make test   install or find what the tests need, and run them all
# make test-web
#             install or find a browser and nginx, and test the dashboard in them;
#             under load for 12 seconds, or as LOAD says: make test-web LOAD=60s
# make screenshots
#             pictures of the dashboard, of a demo, into docs/pictures/dashboard
# make soak   the long form of the fault tests, half an hour unless LENGTH says
#             otherwise; what they measured goes into soak.md
# make soak-net
#             the same on networks whose hosts are network namespaces, for 12
#             minutes unless NET_LENGTH says otherwise; on Linux, as root; what
#             they measured goes into soak-net.md
# make bench  holdfast and its peers side by side; 20 minutes on a machine with
#             nothing else to do. Results go to docs/bench by date. BENCH has
#             arguments: make bench BENCH=-quick takes less than 2 minutes and
#             prints, make bench BENCH='-only handoff -rounds 9' is a part
# make lint   formatting, vet, static checks, plain English
# make cross  build the command for the systems that the tests do not run on, and vet
# make ci     lint, cross, test and test-web: what has to be green before a change lands
# make manual docs/cli.md, and pages for man(1) in dist/man, from what --help prints
# make tidy   go mod tidy in every module of the workspace

GO ?= go

LENGTH ?= 30m
NET_LENGTH ?= 12m
LOAD ?= 12s

.PHONY: test test-web screenshots soak soak-net bench lint cross ci manual tidy deps

ci: lint cross test test-web

deps:
	scripts/deps.sh

# Most tests wait for leases to end, and several packages can wait at the same
# time. The fault tests measure time, and must not compete for the processor. What
# an operation costs is measured without the race detector, too. The benchmark has a
# workspace of its own, with its peers.
test: deps
	$(GO) test -race -p 2 -timeout 15m $$($(GO) list work | grep -v '/systest$$')
	$(GO) test -race -timeout 15m ./systest
	$(GO) test -run 'Cost$$' ./systest
	cd systest/bench && $(GO) test ./...

# The tests measure time, one after another where they must.
test-web:
	scripts/deps.sh web
	cd systest/webtest && $(GO) test -tags web -count=1 -timeout 5m . -load $(LOAD)

screenshots:
	scripts/deps.sh web
	cd systest/webtest && $(GO) test -tags web -count=1 -v -run TestScreenshots . -screenshots ../../docs/pictures/dashboard

soak: deps
	scripts/soak.sh $(LENGTH)

soak-net: deps
	scripts/soak-net.sh $(NET_LENGTH)

bench: deps
	scripts/bench.sh $(BENCH)

lint:
	scripts/lint.sh

cross:
	scripts/cross.sh

manual:
	$(GO) run ./cmd/holdfast/internal/manual -markdown docs/cli.md -man dist/man

tidy:
	scripts/tidy.sh
