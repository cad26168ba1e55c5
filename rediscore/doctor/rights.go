package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// probeLife is how long a key that tryRights makes lasts if it cannot be
// deleted.
const probeLife = "60000" // ms

// A right is a command that a user must be able to run: the words before a
// key, if it takes one, and those after it.
type right struct {
	words   []string
	keyless bool
	args    []string
	creates bool // a key with no expiry, if there is none
}

func (r right) name() string { return strings.ToLower(r.words[0]) }

func word(command string, args ...string) right { return right{words: []string{command}, args: args} }

// memberRights are those that a member of a quorum needs.
func memberRights() []right {
	member := []string{"set", "evalsha", "eval", "get", "exists", "pttl", "pexpire", "time", "scan", "del"}
	rights := []right{{words: []string{"INFO", "server"}, keyless: true}}
	for _, r := range engineRights() {
		if slices.Contains(member, r.name()) {
			rights = append(rights, r)
		}
	}
	return rights
}

// engineRights returns the commands in the order in which they are tried. Set
// makes a string, so that the commands for other types are refused as of the
// wrong type, which comes after the rights were checked, and change nothing.
func engineRights() []right {
	const unknown = "0000000000000000000000000000000000000000"
	soon := time.Now().Add(time.Minute).UnixMilli()
	return []right{
		word("SET", "x", "PX", probeLife),
		{words: []string{"HSET"}, args: []string{"f", "v"}, creates: true},
		{words: []string{"EVALSHA", unknown, "1"}}, {words: []string{"EVAL", "return 1", "1"}},
		word("GET"), word("EXISTS"), word("PTTL"), word("PEXPIREAT", fmt.Sprint(soon)), word("PEXPIRE", probeLife),
		word("ZADD", "XX", "0", "m"), word("ZREM", "m"), word("ZCARD"), word("ZCOUNT", "0", "1"), word("ZSCORE", "m"),
		word("ZRANK", "m"), word("ZMSCORE", "m"), word("ZRANGE", "0", "0"), word("ZRANGEBYSCORE", "0", "1"),
		word("HGET", "f"), word("HMGET", "f"), word("HDEL", "f"), word("HSCAN", "0"), word("GETRANGE", "0", "0"),
		word("STRLEN"),
		{words: []string{"TIME"}, keyless: true}, {words: []string{"SCAN", "0", "COUNT", "1"}, keyless: true},
		word("DEL"), word("UNLINK"),
	}
}

// historyRights are further rights of an engine that writes history.
func historyRights() []right {
	return []right{
		{words: []string{"RPUSH"}, args: []string{"x"}, creates: true},
		word("RPOP"), word("LTRIM", "0", "0"), word("LLEN"), word("LRANGE", "0", "0"),
		{words: []string{"PUBSUB", "NUMSUB"}, keyless: true},
	}
}

// tryRights runs each command that the scripts need on a key of its own, and
// names those that the user has no right to.
func (s *survey) tryRights(ctx context.Context, rights []right, others ...string) {
	name := driver.ProbePrefix + string(lockinfo.NewLeaseID())
	key := s.store.Keys().Lock(name)
	who := s.user(ctx)
	for _, k := range append([]string{key, s.store.Keys().Key(keys.Fence, name)}, others...) {
		if err := s.run(ctx, word("GET"), k); lacks(err, "key") {
			s.failed("rights", "", fmt.Errorf("%w: %s may not use keys such as %q: give it ~%s*, or name a prefix that it may use in the URL",
				driver.ErrPermission, who, k, s.store.Keys().Prefix))
			return
		}
	}
	made := false
	var missing []string
	for _, r := range rights {
		var err error
		if r.creates && !made {
			err = s.dryRun(ctx, who, r, key)
		} else {
			err = s.run(ctx, r, key)
		}
		switch {
		case lacks(err, "key"):
			s.failed("rights", "", fmt.Errorf("%w: %s may not both read and write keys such as %q: give it ~%s*",
				driver.ErrPermission, who, key, s.store.Keys().Prefix))
			return
		case errors.Is(err, driver.ErrPermission):
			missing = append(missing, r.name())
		case err != nil && noAnswer(err):
			s.failed("rights", "", err)
			return
		case err == nil && r.name() == "set":
			made = true
		}
	}
	if len(missing) > 0 {
		s.failed("rights", "", fmt.Errorf("%w: %s may not run %s: give it +%s",
			driver.ErrPermission, who, strings.Join(missing, ", "), strings.Join(missing, " +")))
		return
	}
	s.found(driver.OK, "rights", "", "%s may run all commands that locks need", who)
}

// user returns who we are to the server, as far as it tells.
func (s *survey) user(ctx context.Context) string {
	if reply, err := s.tell(ctx, s.first, "ACL", "WHOAMI"); err == nil {
		return fmt.Sprintf("the user %q", reply)
	}
	return "this user"
}

// run runs one command.
func (s *survey) run(ctx context.Context, r right, key string) error {
	if r.keyless {
		_, err := s.tell(ctx, s.first, r.words...)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	_, err := s.store.Do(ctx, nil, rediscore.Command{Words: r.words, Keys: []string{key}, Args: r.args})
	return err
}

// dryRun returns the error that a command would have, where the server supports ACL
// DRYRUN. Otherwise there is no finding.
func (s *survey) dryRun(ctx context.Context, who string, r right, key string) error {
	name, quoted := strings.CutPrefix(who, "the user ")
	if !quoted {
		return nil
	}
	words := append([]string{"ACL", "DRYRUN", strings.Trim(name, `"`)}, r.words...)
	reply, err := s.tell(ctx, s.first, append(append(words, key), r.args...)...)
	if text, ok := reply.(string); err == nil && ok && text != "OK" {
		return fmt.Errorf("%w: %s", driver.ErrPermission, text)
	}
	return nil
}

// lacks reports whether the server refused because of a key or a channel, and
// not of the command.
func lacks(err error, what string) bool {
	return errors.Is(err, driver.ErrPermission) && !strings.Contains(err.Error(), "to run the") && strings.Contains(rediscore.ServerSays(err), what)
}

// noAnswer reports whether err is not a reply of the server.
func noAnswer(err error) bool {
	return rediscore.ServerSays(err) == "" && !errors.Is(err, driver.ErrPermission)
}

// tryMessages subscribes, publishes and waits for the message.
func (s *survey) tryMessages(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	const loss = "waiting works, by asking now and then, and is slower"
	who := s.user(ctx)
	channel := s.store.Keys().Inboxes() + string(lockinfo.NewLeaseID())
	session := s.first.Dedicate()
	defer session.Close() // it has a subscription
	came := make(chan struct{}, 1)
	told := func(string, string) {
		select {
		case came <- struct{}{}:
		default:
		}
	}
	refused := func(command string, err error) {
		if lacks(err, "channel") {
			s.found(driver.Warn, "messages", "", "%s may not use channels such as %q: %s: give it &%s*", who, channel, loss, s.store.Keys().Inboxes())
		} else if errors.Is(err, driver.ErrPermission) {
			s.found(driver.Warn, "messages", "", "%s may not run %s: %s: give it +%s", who, command, loss, command)
		} else {
			s.found(driver.Warn, "messages", "", "%s failed: %s: %s", command, err, loss)
		}
	}
	if _, err := session.Subscribe(ctx, told, channel); err != nil {
		refused("subscribe", err)
		return
	}
	sent := time.Now()
	if _, err := s.tell(ctx, s.last, "PUBLISH", channel, "0"); err != nil {
		refused("publish", err)
		return
	}
	select {
	case <-came:
		took := time.Since(sent)
		s.add(driver.Finding{
			Key: "messages", Text: "a message came after " + brief(took), Measures: map[string]time.Duration{"took": took},
		})
	case <-ctx.Done():
		s.found(driver.Warn, "messages", "", "a message did not come within %s: %s: see what is between", Limit, loss)
	}
}
