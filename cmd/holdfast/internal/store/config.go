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
	path   string
	values map[string]string
	lines  map[string]int
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
	conf, err := parseConfig(path, f.text)
	if err != nil {
		return c, err
	}
	if c.TTL, err = conf.ttl(); err != nil {
		return c, err
	}
	if c.history, err = conf.history(); err != nil {
		return c, err
	}
	if c.URL, err = conf.storeURL(); err != nil || c.URL == "" {
		return c, err
	}
	c.Source = fmt.Sprintf("%s, line %d", path, conf.lines["store"])
	return c, f.checkSecret(c.URL)
}

// parseConfig returns the values of the keys. Its errors quote only keys: a value may be a
// password, or the file may be something else.
func parseConfig(path, text string) (*config, error) {
	c := &config{path, map[string]string{}, map[string]int{}}
	number := 0
	for line := range strings.Lines(text) {
		number++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case !ok:
			return nil, c.wrong(number, "want key = value")
		case c.lines[key] > 0:
			return nil, c.wrong(number, fmt.Sprintf("%s is there a second time, after line %d", key, c.lines[key]))
		case key != "store" && key != "prefix" && key != "ttl" && key != "history":
			return nil, c.wrong(number, "unknown key"+quoted(key)+": want store, prefix, ttl or history")
		case value == "":
			return nil, c.wrong(number, key+" has no value")
		}
		c.values[key], c.lines[key] = value, number
	}
	return c, nil
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

// ttl returns the TTL of leases, or 0.
func (c *config) ttl() (time.Duration, error) {
	text := c.values["ttl"]
	if text == "" {
		return 0, nil
	}
	d, err := ParseDuration(text)
	if err != nil || d < minTTL || d > maxTTL {
		return 0, c.wrong(c.lines["ttl"], fmt.Sprintf("ttl: want a duration from %s to %s, such as 30s", lockinfo.Span(minTTL), lockinfo.Span(maxTTL)))
	}
	return d, nil
}

// history reports whether the store records history, even if another file names the store.
func (c *config) history() (bool, error) {
	text := c.values["history"]
	if text == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, c.wrong(c.lines["history"], "history: want 1 or 0")
	}
	return on, nil
}

// withHistory returns the URL of a store, with history turned on. Servers and quorums have no
// such setting.
func withHistory(rawURL string) string {
	scheme, _, _ := strings.Cut(strings.ToLower(rawURL), ":")
	before, query, _ := strings.Cut(rawURL, "?")
	values, err := url.ParseQuery(query)
	if err != nil || values.Has("history") || strings.HasPrefix(scheme, "http") || strings.HasPrefix(scheme, "quorum") {
		return rawURL
	}
	if query != "" {
		query += "&"
	}
	return before + "?" + query + "history=1"
}

// storeURL returns the URL of the store with its prefix, or nothing.
func (c *config) storeURL() (string, error) {
	rawURL, prefix := c.values["store"], c.values["prefix"]
	switch {
	case prefix == "":
		return rawURL, nil
	case rawURL == "":
		return "", c.wrong(c.lines["prefix"], "prefix belongs to a store in the same file, which names none")
	}
	before, query, found := strings.Cut(rawURL, "?")
	if values, err := url.ParseQuery(query); err != nil || values.Has("prefix") {
		return "", c.wrong(c.lines["prefix"], "the URL of store has a prefix already, or is malformed")
	}
	if found && query != "" {
		query += "&"
	}
	return before + "?" + query + "prefix=" + url.QueryEscape(prefix), nil
}
