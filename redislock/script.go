package redislock

import (
	"context"
	"crypto/sha1" //nolint:gosec // what Redis calls scripts by
	"encoding/hex"
	"strconv"
	"strings"
)

// A script is Lua code, and the hash by which the server knows it.
type script struct{ text, sha string }

func newScript(parts ...string) *script {
	text := strings.Join(parts, "")
	sum := sha1.Sum([]byte(text)) //nolint:gosec // see above
	return &script{text, hex.EncodeToString(sum[:])}
}

// run sends the script by its hash, and in full if the server answers that it
// does not know it, which it does before it runs anything.
func (s *script) run(ctx context.Context, on Sender, keys, args []string) (any, error) {
	reply, err := on.EvalSHA(ctx, s.sha, keys, args)
	if err != nil && strings.HasPrefix(serverSays(err), "NOSCRIPT") {
		words := []string{"EVAL", s.text, strconv.Itoa(len(keys))}
		return on.Do(ctx, Command{Words: words, Keys: keys, Args: args})
	}
	return reply, err
}
