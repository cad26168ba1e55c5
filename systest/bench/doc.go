// Command bench runs holdfast and its peers on the same servers in interleaved rounds (A
// B C A B C), and reports medians, ranges and ratios as a table, as JSON and as pictures.
// It has a module and a workspace of its own: only its users download the peers, and the
// peers do not decide with which versions holdfast is built and tested.
//
//	make bench                        everything, 7 rounds; about 45 minutes
//	make bench BENCH=-quick           a first look; less than 2 minutes
//	go run . -only handoff -peers 'holdfast|baton' -rounds 3 -for 500ms
//	go run . -list                    what there is to choose from
//	go run . -draw -out DIR           the report of an earlier run again
//
// What is compared is in peer/, what is reported in report/. A new workload is a function
// that returns one, and a line in workloads; what it shall reach is a line in goals. Here
// is what is measured:
//
//	main.go        flags, and what this process is: the benchmark, a crew, or etcd
//	run.go         the interleaved rounds: in turns, or side by side
//	workload.go    what a workload is, and the list of all
//	pair.go        one goroutine; many, each with names of its own
//	cluster.go     the same on a Redis Cluster
//	handoff.go     many that want one name, in one process and in several
//	door.go        sees that two hold a lock at once, in different processes too
//	strict.go      two clients that hand a name to and fro
//	held.go        many held leases
//	scale.go       sizes that few have
//	recovery.go    the holder dies
//	loss.go        the lock is deleted
//	beside.go      one goroutine, with many other locks
//	postgres.go    pairs and hand-offs on PostgreSQL with a disk
//	goals.go       what holdfast shall reach
//	write.go       the files of the report
//	meter.go       CPU of server and client, allocations
//	monitor.go     commands, as the server sees them
//	crew.go        other processes, which are this program again
//	store.go       the servers; life.go ends them
//	etcd.go        a process with one member of etcd
//	cores_*.go     which cores server and client run on
//	machine.go     what it was measured on
package main
