package sim

import (
	"bytes"
	"errors"
	"strconv"
)

// encode writes a reply as RESP3.
func encode(reply any) []byte { return appendReply(nil, reply) }

func appendReply(b []byte, reply any) []byte {
	switch r := reply.(type) {
	case int64:
		return appendHead(b, ':', int(r))
	case string:
		return append(append(appendHead(b, '$', len(r)), r...), "\r\n"...)
	case status:
		return append(append(append(b, '+'), r...), "\r\n"...)
	case failure:
		return append(append(append(b, '-'), r...), "\r\n"...)
	case []any:
		b = appendHead(b, '*', len(r))
		for _, item := range r {
			b = appendReply(b, item)
		}
		return b
	}
	return append(b, "_\r\n"...)
}

func appendHead(b []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(b, kind), int64(n), 10), "\r\n"...)
}

func encodePush(items ...any) []byte {
	b := appendHead(nil, '>', len(items))
	for _, item := range items {
		b = appendReply(b, item)
	}
	return b
}

func encodeHello() []byte {
	fields := []any{"server", "redis", "version", "7.2.4", "proto", int64(3), "id", int64(1),
		"mode", "standalone", "role", "master", "modules", []any{}}
	b := appendHead(nil, '%', len(fields)/2)
	for _, field := range fields {
		b = appendReply(b, field)
	}
	return b
}

var errProtocol = errors.New("sim: a request is not an array of bulk strings")

// decode decodes the first command of b. It returns no arguments if b does not have all of it.
func decode(b []byte) (args []string, rest []byte, err error) {
	n, rest, err := decodeHead(b, '*')
	if err != nil || rest == nil {
		return nil, b, err
	}
	for range n {
		var size int
		if size, rest, err = decodeHead(rest, '$'); err != nil || len(rest) < size+2 {
			return nil, b, err
		}
		args, rest = append(args, string(rest[:size])), rest[size+2:]
	}
	return args, rest, nil
}

func decodeHead(b []byte, kind byte) (n int, rest []byte, err error) {
	line, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok {
		return 0, nil, nil
	}
	if len(line) < 2 || line[0] != kind {
		return 0, nil, errProtocol
	}
	n, err = strconv.Atoi(string(line[1:]))
	return n, rest, err
}
