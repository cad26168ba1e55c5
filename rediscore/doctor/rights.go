package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/internal/probe"
	"github.com/holdfast-locks/holdfast/lockinfo"
	"github.com/holdfast-locks/holdfast/rediscore"
	"github.com/holdfast-locks/holdfast/rediscore/internal/keys"
)

// probeLife is how long a key of tryRights lasts if it cannot be deleted.
const probeLife = "60000" // ms

// A right is a command that the user must be able to run, as its words separated by spaces. The
// word KEY stands for the check's key. A command without it has no key.
type right string

// split returns the words before the key and those after it. keyless says that there is no key.
func (r right) split() (words, args []string, keyless bool) {
	words = strings.Fields(string(r))
	at := slices.Index(words, "KEY")
	if at < 0 {
		return words, nil, true
	}
	return words[:at], words[at+1:], false
}

func (r right) name() string {
	name, _, _ := strings.Cut(string(r), " ")
	return strings.ToLower(name)
}

// creates reports whether the command would create a missing key, with no expiry.
func (r right) creates() bool { return r.name() == "hset" || r.name() == "rpush" }

// memberRights returns the rights that a member of a quorum needs.
func memberRights() []right {
	member := []string{"set", "evalsha", "eval", "get", "exists", "pttl", "pexpire", "time", "scan", "del"}
	others := func(r right) bool { return !slices.Contains(member, r.name()) }
	return append([]right{"INFO server"}, slices.DeleteFunc(engineRights(), others)...)
}

// engineRights returns the rights that an engine needs, in the order in which to try them. SET
// makes a string. Commands for other types then change nothing: the server checks the user's rights
// first, and then refuses the command because of the type.
func engineRights() []right {
	soon := strconv.FormatInt(time.Now().Add(time.Minute).UnixMilli(), 10)
	return []right{
		"SET KEY x PX " + probeLife, "HSET KEY f v",
		"EVALSHA 0000000000000000000000000000000000000000 1 KEY", "EVAL return(1) 1 KEY",
		"GET KEY", "MGET KEY", "EXISTS KEY", "PTTL KEY", right("PEXPIREAT KEY " + soon), "PEXPIRE KEY " + probeLife,
		"ZADD KEY XX 0 m", "ZREM KEY m", "ZCARD KEY", "ZCOUNT KEY 0 1", "ZSCORE KEY m",
		"ZRANK KEY m", "ZMSCORE KEY m", "ZRANGE KEY 0 0", "ZRANGEBYSCORE KEY 0 1",
		"HGET KEY f", "HMGET KEY f", "HDEL KEY f", "HSCAN KEY 0", "GETRANGE KEY 0 0", "STRLEN KEY",
		"TIME", "SCAN 0 COUNT 1",
		"DEL KEY", "UNLINK KEY",
	}
}

// historyRights returns the further rights of an engine with history.
func historyRights() []right {
	return []right{"RPUSH KEY x", "RPOP KEY", "LTRIM KEY 0 0", "LLEN KEY", "LRANGE KEY 0 0", "PUBSUB NUMSUB"}
}

// tryRights tries each of rights on a key with a random name, and reports those that the user
// lacks.
func (s *survey) tryRights(ctx context.Context, rights []right, others ...string) {
	name := driver.ProbePrefix + string(lockinfo.NewLeaseID())
	key := s.store.Keys().Lock(name)
	who := s.user(ctx)
	for _, k := range append([]string{key, s.store.Keys().Key(keys.Fence, name)}, others...) {
		if err := s.run(ctx, "GET KEY", k); lacks(err, "key") {
			s.failed("rights", "", fmt.Errorf("%w: %s may not use keys such as %q: give it ~%s*, or name a prefix that it may use in the URL",
				driver.ErrPermission, who, k, s.store.Keys().Prefix))
			return
		}
	}
	made := false
	var missing []string
	for _, r := range rights {
		var err error
		if r.creates() && !made {
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

// user returns the name of the user, if the server tells it.
func (s *survey) user(ctx context.Context) string {
	if reply, err := s.tell(ctx, s.first, "ACL", "WHOAMI"); err == nil {
		return fmt.Sprintf("the user %q", reply)
	}
	return "this user"
}

// run runs the command of a right.
func (s *survey) run(ctx context.Context, r right, key string) error {
	words, args, keyless := r.split()
	if keyless {
		_, err := s.tell(ctx, s.first, words...)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	_, err := s.store.Do(ctx, nil, rediscore.Command{Words: words, Keys: []string{key}, Args: args})
	return err
}

// dryRun returns the error that a command would have. It returns nil if the server does not support
// ACL DRYRUN.
func (s *survey) dryRun(ctx context.Context, who string, r right, key string) error {
	name, quoted := strings.CutPrefix(who, "the user ")
	if !quoted {
		return nil
	}
	words, args, _ := r.split()
	reply, err := s.tell(ctx, s.first, slices.Concat([]string{"ACL", "DRYRUN", strings.Trim(name, `"`)}, words, []string{key}, args)...)
	if text, ok := reply.(string); err == nil && ok && text != "OK" {
		return fmt.Errorf("%w: %s", driver.ErrPermission, text)
	}
	return nil
}

// lacks reports whether the server refused because of a key or a channel, and not because of the
// command.
func lacks(err error, what string) bool {
	return errors.Is(err, driver.ErrPermission) && !strings.Contains(err.Error(), "to run the") && strings.Contains(rediscore.ServerSays(err), what)
}

// noAnswer reports whether err is not an error reply of the server.
func noAnswer(err error) bool {
	return rediscore.ServerSays(err) == "" && !errors.Is(err, driver.ErrPermission)
}

// tryMessages subscribes, publishes a message and waits for it.
func (s *survey) tryMessages(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	const loss = "waiting works, by asking now and then, and is slower"
	who := s.user(ctx)
	channel := s.store.Keys().Inboxes() + string(lockinfo.NewLeaseID())
	came := make(chan struct{}, 1)
	onMessage := func(string, string) {
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
	session, err := s.first.Dedicate(ctx)
	if err == nil {
		defer session.Close() // it may still be subscribed
		_, err = session.Subscribe(ctx, onMessage, channel)
	}
	if err != nil {
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
			Key: "messages", Text: "a message came after " + probe.Brief(took), Measures: map[string]time.Duration{"took": took},
		})
	case <-ctx.Done():
		s.found(driver.Warn, "messages", "", "a message did not come within %s: %s: see what is between", Limit, loss)
	}
}
