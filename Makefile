# make test   install or find what the tests need, and run them all
# make soak   the long form of the fault tests, half an hour unless LENGTH says
#             otherwise; what they measured goes into soak.md
# make lint   formatting, vet, static checks
# make ci     both: what has to be green before a change lands
# make tidy   go mod tidy in every module of the workspace

GO ?= go

LENGTH ?= 30m

.PHONY: test soak lint ci tidy deps

ci: lint test

deps:
	scripts/deps.sh

# Most tests wait for leases to end, and several packages can wait at the same
# time. The fault tests measure time, and must not compete for the processor.
test: deps
	$(GO) test -race -p 2 -timeout 15m $$($(GO) list work | grep -v '/systest$$')
	$(GO) test -race -timeout 15m ./systest

soak: deps
	scripts/soak.sh $(LENGTH)

lint:
	scripts/lint.sh

tidy:
	scripts/tidy.sh
