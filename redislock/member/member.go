// Package member makes members of a quorum from URLs of Redis or Valkey servers. For a member on a
// client that the program already has, use On of package rediscore/member.
package member

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/member"
	"github.com/holdfast-locks/holdfast/redislock"
)

// Open returns a member on the server of a URL of redislock.Open. It does not wait for the server:
// while the server cannot be reached, requests fail with ErrUnavailable, so that a quorum can be
// used while some of its members are down. Open returns ErrInvalid for a malformed URL, and for one
// with token_memory: the members of a quorum remember tokens for driver.TokenMemory.
func Open(rawURL string) (driver.Member, error) {
	ended, end := context.WithCancel(context.Background())
	end() // so redislock.Open only checks the URL
	if _, err := redislock.Open(ended, rawURL); !errors.Is(err, context.Canceled) {
		return nil, err
	}
	rest, query, _ := strings.Cut(rawURL, "?")
	if params, err := url.ParseQuery(query); err != nil || params.Has("token_memory") {
		return nil, fmt.Errorf("%w redis URL: token_memory is not for a quorum, whose members remember tokens for %s", driver.ErrInvalid, driver.TokenMemory)
	}
	open := func(ctx context.Context) (driver.Engine, error) {
		e, err := redislock.Open(ctx, rawURL)
		if err != nil {
			return nil, err
		}
		return e, nil
	}
	return member.New(address(rest), open), nil
}

// address returns the hosts of a URL, or the path of its socket.
func address(rawURL string) string {
	_, rest, _ := strings.Cut(rawURL, "://")
	host, path, _ := strings.Cut(rest[strings.LastIndexByte(rest, '@')+1:], "/")
	if host == "" {
		return "/" + path
	}
	return host
}
