# make test   install or find what the tests need, and run them all
# make lint   formatting, vet, static checks
# make ci     both: what has to be green before a change lands
# make tidy   go mod tidy in every module of the workspace

GO ?= go

.PHONY: test lint ci tidy deps

ci: lint test

deps:
	scripts/deps.sh

# One package at a time: the tests start servers and measure time, and must not
# compete with each other for the processor.
test: deps
	$(GO) test -race -p 1 -timeout 15m work

lint:
	scripts/lint.sh

tidy:
	scripts/tidy.sh
