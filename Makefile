# make test   the tests of a change: they need Go and redis-server, and take less than
#             5 minutes on two cores
# make test-all
#             install what all tests need, and run them with the race detector
# make faults put faults into the packages that changed since BASE, in random order
#             for FOR, and see the tests find them; BASE= and FOR=0 try all of them
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
# make bench  holdfast and its peers side by side; 45 minutes on a machine with
#             nothing else to do. Results go to docs/bench by date. BENCH has
#             arguments: make bench BENCH=-quick takes less than 2 minutes and
#             prints, make bench BENCH='-only handoff -rounds 9' is a part
# make lint   formatting, vet, static checks, plain English
# make cross  build the command for the systems that the tests do not run on, and vet
# make ci     lint, cross, test-all and test-web: green before a change lands
# make manual docs/reference/cli.md, and pages for man(1) in dist/man, from what --help prints
# make tidy   go mod tidy in every module of the workspace

GO ?= go

LENGTH ?= 30m
NET_LENGTH ?= 12m
LOAD ?= 12s
BASE ?= HEAD~1
FOR ?= 4m

.PHONY: test test-all test-web faults screenshots soak soak-net bench lint vuln cross ci manual tidy deps

ci: lint cross test-all test-web

deps:
	scripts/deps.sh

# Most tests wait for leases to expire, so that several packages run at a time.
test:
	$(GO) test -short -p 4 $$($(GO) list work | grep -vE '/(systest|examples)(/|$$)') ./systest/model/... ./systest/faults

# The fault tests of systest measure time and run alone; so does what an operation costs,
# without the race detector. The benchmark is a workspace of its own, with its peers.
test-all: deps
	$(GO) test -race -p 2 -timeout 15m $$($(GO) list work | grep -v '/systest$$')
	$(GO) test -race -timeout 15m ./systest
	$(GO) test -run 'Cost$$' ./systest
	cd systest/bench && $(GO) test ./...

faults: deps
	cd systest && $(GO) test -tags faults -timeout 0 ./faults -run TestFaults $(if $(shell git rev-parse -q --verify $(BASE)),-changed $(BASE)) -for $(FOR)

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

# It asks vuln.go.dev.
vuln:
	scripts/vuln.sh

cross:
	scripts/cross.sh

manual:
	$(GO) run ./cmd/holdfast/internal/manual -markdown docs/reference/cli.md -man dist/man

tidy:
	scripts/tidy.sh
