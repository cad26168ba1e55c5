// Package goredislock is the engine for Redis and Valkey on a client of go-redis that
// the program has already. What it puts on the client is package rediscore.
package goredislock
