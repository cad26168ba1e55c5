package store

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
)

// The limits of ttl, which every command that takes a lock accepts.
const (
	minTTL = 100 * time.Millisecond
	maxTTL = 30 * 24 * time.Hour
)

// A config is a configuration file: lines of key = value, and comments
// that begin with #.
type config struct {
	path          string
	lines         map[string]int // of the keys
	store, prefix string
	ttl           time.Duration // of leases; 0: not given
	history       bool          // the store records history, even if another file names the store
}

// fromConfig returns the store that a configuration file names. It is the zero
// Choice if there is no file, and has no URL if the file names no store.
func fromConfig(path string) (c Choice, err error) {
	if path == "" {
		return c, nil
	}
	f, err := read(path)
	if isAbsent(err) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	conf := &config{path: path, lines: map[string]int{}}
	if err := conf.parse(f.text); err != nil {
		return c, err
	}
	c.TTL, c.history = conf.ttl, conf.history
	if c.URL, err = conf.storeURL(); err != nil || c.URL == "" {
		return c, err
	}
	c.Source = fmt.Sprintf("%s, line %d", path, conf.lines["store"])
	return c, f.checkSecret(c.URL)
}

// parse reads the lines of the file. Its errors quote only keys: a value may be a password, or the
// file may be something else.
func (c *config) parse(text string) error {
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch first := c.lines[key]; {
		case !ok:
			return c.wrong(number, "want key = value")
		case first > 0:
			return c.wrong(number, fmt.Sprintf("%s is there a second time, after line %d", key, first))
		}
		if problem := c.set(key, value); problem != "" {
			return c.wrong(number, problem)
		}
		c.lines[key] = number
	}
	return nil
}

// set sets the value of a key, or returns what is wrong with it.
func (c *config) set(key, value string) (problem string) {
	var err error
	switch key {
	case "store":
		c.store = value
	case "prefix":
		c.prefix = value
	case "ttl":
		if c.ttl, err = ParseDuration(value); err != nil || c.ttl < minTTL || c.ttl > maxTTL {
			return fmt.Sprintf("ttl: want a duration from %s to %s, such as 30s", lockinfo.Span(minTTL), lockinfo.Span(maxTTL))
		}
	case "history":
		if c.history, err = strconv.ParseBool(value); err != nil {
			return "history: want 1 or 0"
		}
	default:
		return "unknown key" + quoted(key) + ": want store, prefix, ttl or history"
	}
	if value == "" {
		return key + " has no value"
	}
	return ""
}

// quoted returns a key as errors show it, or "" if it does not look like a key.
func quoted(key string) string {
	if key == "" || len(key) > 32 || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_-") != "" {
		return ""
	}
	return fmt.Sprintf(" %q", key)
}

func (c *config) wrong(line int, what string) error {
	return fmt.Errorf("%w configuration: %s, line %d: %s", driver.ErrInvalid, c.path, line, what)
}

// storeURL returns the URL of the store with its prefix, or nothing.
func (c *config) storeURL() (string, error) {
	if c.prefix == "" {
		return c.store, nil
	}
	if c.store == "" {
		return "", c.wrong(c.lines["prefix"], "prefix belongs to a store in the same file, which names none")
	}
	prefixed, ok := withParameter(c.store, "prefix", c.prefix)
	if !ok {
		return "", c.wrong(c.lines["prefix"], "the URL of store has a prefix already, or is malformed")
	}
	return prefixed, nil
}

// withHistory returns the URL of a store, with history turned on. Servers and quorums have no
// such setting.
func withHistory(rawURL string) string {
	if scheme := strings.ToLower(rawURL); !strings.HasPrefix(scheme, "http") && !strings.HasPrefix(scheme, "quorum") {
		rawURL, _ = withParameter(rawURL, "history", "1")
	}
	return rawURL
}

// withParameter returns a URL with a parameter added. It returns the same URL and false if that has
// the parameter already, or is malformed.
func withParameter(rawURL, key, value string) (string, bool) {
	before, query, _ := strings.Cut(rawURL, "?")
	if values, err := url.ParseQuery(query); err != nil || values.Has(key) {
		return rawURL, false
	}
	if query != "" {
		query += "&"
	}
	return before + "?" + query + key + "=" + url.QueryEscape(value), true
}
