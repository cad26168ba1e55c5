// Package sim runs the real library, the real Redis engine and the real Redis
// client in virtual time, against a server in memory that runs the engine's own
// scripts, through a network that loses, delays and repeats what it carries.
// One seed makes one run; thousands of them fit into a minute or two.
//
// # What is real
//
// The scripts are redislock's own, run by a Lua interpreter on a keyspace of
// ours. TestServerConforms runs the conformance suite on it, and
// TestServerAnswersAsRedis compares it with a real server, command by command.
//
// The interpreter writes large integers with all their digits where Redis
// would round them: a script that forgets '%.0f' is found by the tests on a
// real server, not here.
//
// # What a seed decides
//
// The clients, their work, the faults and what the network does to each
// message. It does not decide how goroutines are scheduled at one instant,
// nor the library's own jitter, which no program can seed: a replay meets the
// same faults at the same times, and mostly, but not always, the same end.
package sim
