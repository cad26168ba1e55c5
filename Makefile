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
# make release
#             try to make a version of the last commit, twice, and what people install of it,
#             beside the last version; scripts/release.sh makes one
# make third-party
#             the list of what the command links, with licences
# make packages
#             the part of it that make ci has: the files for one system, twice and compared,
#             and all checks of them that need no root
# make ci     lint, cross, test-all, test-web, packages and, for 2 minutes, the faults of the
#             packages that changed since BASE: green before a change lands
# make manual docs/reference/cli.md, and pages for man(1) in dist/man, from what --help prints
# make tidy   go mod tidy in every module of the workspace

GO ?= go

LENGTH ?= 30m
NET_LENGTH ?= 12m
LOAD ?= 12s
BASE ?= HEAD~1
FOR ?= 4m

.PHONY: test test-all test-web faults screenshots soak soak-net bench lint vuln cross release packages changed-faults third-party ci manual tidy deps

ci: lint cross test-all test-web packages changed-faults

deps:
	scripts/deps.sh

# Most tests wait for leases to expire, so that several packages run at a time.
test:
	$(GO) test -short -p 4 $$($(GO) list work | grep -vE '/(systest|examples)(/|$$)') ./systest/model/... ./systest/faults

# The fault tests of systest measure time and run alone, and so does the command, whose tests
# start many processes; so does what an operation costs, without the race detector. The
# benchmark is a workspace of its own, with its peers.
#
# Tests that start servers and measure time can fail because a machine is slow. TWICE runs a
# test that failed once more, alone; it prints both results. A second failure, a data race or
# more than ten failures, a subtest and its parent counting as two, are final.
TWICE = $(GO) run gotest.tools/gotestsum@v1.13.0 --format standard-quiet \
	--rerun-fails=1 --rerun-fails-max-failures=10 --rerun-fails-abort-on-data-race

test-all: deps
	$(TWICE) --packages="$$($(GO) list work | grep -vE '/(systest|cmd/holdfast)$$' | tr '\n' ' ')" -- -race -p 2 -timeout 25m
	$(TWICE) --packages=./cmd/holdfast -- -race -timeout 25m
	$(TWICE) --packages=./systest -- -race -timeout 25m
	$(GO) test -run 'Cost$$' ./systest
	cd systest/bench && $(GO) test ./...

faults: deps
	cd systest && $(GO) test -tags faults -timeout 0 ./faults -run TestFaults $(if $(shell git rev-parse -q --verify $(BASE)),-changed $(BASE)) -for $(FOR)

# The tests measure time, one after another where they must.
test-web:
	scripts/deps.sh web
	cd systest/webtest && $(TWICE) --packages=. -- -tags web -count=1 -timeout 10m -args -load $(LOAD)

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

# The module has a workspace of its own.
release:
	scripts/deps.sh release
	cd scripts/release && $(GO) test -count=1 -timeout 60m .
	cd systest && $(GO) test -tags versions -count=1 -timeout 30m -run TestTwoVersions .

# A tree without its history makes no version, and has no changes.
packages changed-faults: export GIT_CONFIG_COUNT = 1
packages changed-faults: export GIT_CONFIG_KEY_0 = safe.directory
packages changed-faults: export GIT_CONFIG_VALUE_0 = *
changed-faults:
	git rev-parse -q --verify $(BASE) >/dev/null || exit 0; $(MAKE) faults FOR=2m

packages:
	scripts/deps.sh release
	git rev-parse --git-dir >/dev/null || exit 0; cd scripts/release && $(GO) test -count=1 -timeout 20m . -platforms linux/amd64 \
		-skip 'TestAnyLinux|TestDeb|TestRPM|TestImage' # they need root

third-party:
	cd scripts/release && $(GO) run . -tree ../.. -third-party

manual:
	$(GO) run ./cmd/holdfast/internal/manual -markdown docs/reference/cli.md -man dist/man

tidy:
	scripts/tidy.sh
