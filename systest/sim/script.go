package sim

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// Scripts compiles and runs Lua scripts as Redis does. It is safe for concurrent use. The servers
// of many runs share it, because compiling is slow.
type Scripts struct {
	mu    sync.Mutex // guards the rest
	known map[string]*lua.FunctionProto
	idle  []*interpreter
}

// NewScripts returns an empty cache of scripts.
func NewScripts() *Scripts { return &Scripts{known: map[string]*lua.FunctionProto{}} }

func hashOf(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// load compiles a script and returns its hash.
func (s *Scripts) load(text string) (hash string, err error) {
	hash = hashOf(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[hash] != nil {
		return hash, nil
	}
	chunk, err := parse.Parse(strings.NewReader(text), "user_script")
	if err != nil {
		return "", err
	}
	proto, err := lua.Compile(chunk, "user_script")
	if err != nil {
		return "", err
	}
	s.known[hash] = proto
	return hash, nil
}

// run runs a loaded script. do runs its commands.
func (s *Scripts) run(hash string, keys, args []string, do func([]string) any) any {
	s.mu.Lock()
	proto := s.known[hash]
	var in *interpreter
	if n := len(s.idle); n > 0 {
		in, s.idle = s.idle[n-1], s.idle[:n-1]
	}
	s.mu.Unlock()
	if in == nil {
		in = newInterpreter()
	}
	in.do = do
	reply := in.run(proto, keys, args)
	in.do = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = append(s.idle, in)
	return reply
}

// An interpreter runs one script at a time.
type interpreter struct {
	state *lua.LState
	do    func([]string) any
}

func newInterpreter() *interpreter {
	in := &interpreter{state: lua.NewState(lua.Options{SkipOpenLibs: true})}
	for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenString, lua.OpenTable, lua.OpenMath} {
		open(in.state)
		in.state.SetTop(0)
	}
	in.state.SetGlobal("tonumber", in.state.NewFunction(toNumber))
	redis := in.state.NewTable()
	in.state.SetFuncs(redis, map[string]lua.LGFunction{
		"call":         func(l *lua.LState) int { return in.call(l, true) },
		"pcall":        func(l *lua.LState) int { return in.call(l, false) },
		"error_reply":  func(l *lua.LState) int { return single(l, "err", strings.TrimPrefix(l.CheckString(1), "-")) },
		"status_reply": func(l *lua.LState) int { return single(l, "ok", l.CheckString(1)) },
	})
	in.state.SetGlobal("redis", redis)
	return in
}

// toNumber parses every number as a double: the interpreter's own tonumber supports no integers
// beyond 63 bits.
func toNumber(l *lua.LState) int {
	switch v := l.CheckAny(1).(type) {
	case lua.LNumber:
		l.Push(v)
	case lua.LString:
		if n, err := strconv.ParseFloat(strings.TrimSpace(string(v)), 64); err == nil {
			l.Push(lua.LNumber(n))
			return 1
		}
		l.Push(lua.LNil)
	default:
		l.Push(lua.LNil)
	}
	return 1
}

func single(l *lua.LState, field, text string) int {
	l.Push(tableOf(l, field, text))
	return 1
}

func tableOf(l *lua.LState, field, text string) *lua.LTable {
	t := l.NewTable()
	t.RawSetString(field, lua.LString(text))
	return t
}

func (in *interpreter) run(proto *lua.FunctionProto, keys, args []string) any {
	l := in.state
	defer l.SetTop(0)
	l.SetGlobal("KEYS", list(l, keys))
	l.SetGlobal("ARGV", list(l, args))
	l.Push(l.NewFunctionFromProto(proto))
	err := l.PCall(0, 1, nil)
	var raised *lua.ApiError
	switch {
	case errors.As(err, &raised):
		if t, ok := raised.Object.(*lua.LTable); ok {
			return failure(lua.LVAsString(t.RawGetString("err")))
		}
		return failure("ERR " + raised.Object.String())
	case err != nil:
		return failure("ERR " + err.Error())
	}
	return fromLua(l.Get(-1))
}

func list(l *lua.LState, texts []string) *lua.LTable {
	t := l.CreateTable(len(texts), 0)
	for _, text := range texts {
		t.Append(lua.LString(text))
	}
	return t
}

// call implements redis.call, which raises an error, and redis.pcall, which returns it.
func (in *interpreter) call(l *lua.LState, raise bool) int {
	args := make([]string, l.GetTop())
	for i := range args {
		switch v := l.Get(i + 1).(type) {
		case lua.LString:
			args[i] = string(v)
		case lua.LNumber:
			args[i] = formatScore(float64(v))
		default:
			l.RaiseError("Lua redis lib command arguments must be strings or integers")
		}
	}
	reply := in.do(args)
	if text, failed := reply.(failure); failed && raise {
		l.Error(tableOf(l, "err", string(text)), 1)
	}
	l.Push(toLua(l, reply))
	return 1
}

// toLua converts a reply as Redis does for scripts.
func toLua(l *lua.LState, reply any) lua.LValue {
	switch r := reply.(type) {
	case int64:
		return lua.LNumber(r)
	case string:
		return lua.LString(r)
	case status:
		return tableOf(l, "ok", string(r))
	case failure:
		return tableOf(l, "err", string(r))
	case []any:
		t := l.CreateTable(len(r), 0)
		for _, item := range r {
			t.Append(toLua(l, item))
		}
		return t
	}
	return lua.LFalse
}

// fromLua converts the result of a script as Redis does: numbers lose their fraction, and a list
// ends at its first nil.
func fromLua(value lua.LValue) any {
	switch v := value.(type) {
	case lua.LNumber:
		return int64(math.Trunc(float64(v)))
	case lua.LString:
		return string(v)
	case lua.LBool:
		if v {
			return int64(1)
		}
	case *lua.LTable:
		if text, ok := v.RawGetString("err").(lua.LString); ok {
			return failure(text)
		}
		if text, ok := v.RawGetString("ok").(lua.LString); ok {
			return status(text)
		}
		items := []any{}
		for i := 1; v.RawGetInt(i) != lua.LNil; i++ {
			items = append(items, fromLua(v.RawGetInt(i)))
		}
		return items
	}
	return nil
}
