// Command bench runs holdfast and its peers on the same servers in interleaved rounds (A
// B C A B C), and reports medians, ranges and ratios as a table, as JSON and as pictures.
// It has a module and a workspace of its own: only its users download the peers, and the
// peers do not affect the versions with which holdfast is built and tested.
//
//	make bench                        everything, 7 rounds; about 45 minutes
//	make bench BENCH=-quick           a first look; less than 2 minutes
//	go run . -only handoff -peers 'holdfast|baton' -rounds 3 -for 500ms
//	go run . -list                    the workloads and peers to choose from
//	go run . -draw -out DIR           the report of an earlier run again
//
// The peers are in peer/, the report is in report/. A new workload is a function that returns
// it, and a line in workloads; its goal is a line in goals. The measurements are here:
//
//	main.go        flags, and the role of this process: the benchmark, a crew, or etcd
//	run.go         the interleaved rounds: in turns, or side by side
//	workload.go    the type workload, and the list of all
//	pair.go        one goroutine; many, each with names of its own
//	cluster.go     the same on a Redis Cluster
//	handoff.go     many goroutines that want one name, in one process and in several
//	door.go        detects that two hold a lock at once, even in different processes
//	strict.go      two clients that hand a name to and fro
//	held.go        many held leases
//	scale.go       rare, very large sizes
//	recovery.go    the holder dies
//	loss.go        the lock is deleted
//	beside.go      one goroutine, with many other locks
//	postgres.go    pairs and hand-offs on PostgreSQL with fsync on
//	goals.go       the goals of holdfast
//	write.go       the files of the report
//	meter.go       CPU of server and client, allocations
//	monitor.go     commands, as the server sees them
//	crew.go        other processes of this program; child.go starts them
//	store.go       the servers; life.go ends them
//	etcd.go        a process with one member of etcd
//	cores_*.go     which cores server and client run on
//	machine.go     the machine of the measurement
package main
