package mutant

// streamMutants are faults of streams that hold locks, and of the stream of events.
func streamMutants() []Mutant {
	const dir = "httplock/server/internal/leasedoor"
	return []Mutant{
		{
			Name: "stream-close-releases-at-once", Invariant: "I1", File: dir + "/hold_end.go",
			Breaks:  "The end of any connection releases at once, though the client may work on by its own rule.",
			Old:     "case s.form.direct:\n\t\tif lease != nil {",
			New:     "case true:\n\t\tif lease != nil {",
			FoundBy: []Finder{{dir, "TestHoldClosed"}, {dir, "TestHoldGoesOnElsewhere"}},
		},
		{
			Name: "stream-forwarded-is-direct", Invariant: "I1", File: dir + "/hold.go",
			Breaks:  "The connection of a proxy on the server's host counts as that of its client.",
			Old:     "f.direct = r.Caller.Direct && !forwarded(r.Header)",
			New:     "f.direct = r.Caller.Direct || forwarded(nil)",
			FoundBy: []Finder{{dir, "TestHoldClosed"}},
		},
		{
			Name: "stream-frees-what-goes-on", Invariant: "I1", File: dir + "/hold_end.go",
			Breaks:  "A server releases a lease that the client has continued at another server.",
			Old:     "now.latest().Sub(first.earliest()) <= doubt",
			New:     "now.latest().Sub(first.earliest()) <= 1000*time.Hour",
			FoundBy: []Finder{{dir, "TestHoldGoesOnElsewhere"}, {dir, "TestHoldGoesOnAmongMany"}},
		},
		{
			Name: "stream-renews-seldom", Invariant: "I1", File: dir + "/hold_times.go",
			Breaks:  "Among thousands of leases one is renewed too seldom for another server to see that it goes on.",
			Old:     "return t.quiet() - t.ping()",
			New:     "return t.ttl",
			FoundBy: []Finder{{dir, "TestHoldGoesOnAmongMany"}},
		},
		{
			Name: "stream-promises-too-much", Invariant: "I3", File: dir + "/hold_times.go",
			Breaks:  "Pings go on until the loss is said: a client that is cut off then works longer than the lease lasts.",
			Old:     "return remaining >= t.promise()",
			New:     "return remaining > t.farewell()",
			FoundBy: []Finder{{dir, "TestHoldStoreAway"}, {dir, "TestHoldPromises"}},
		},
		{
			Name: "stream-silence-renews", Invariant: "I11", File: dir + "/hold.go",
			Breaks:  "A client that acknowledges nothing keeps its lock.",
			Old:     "if now.Sub(s.heard) >= s.times.silence() {",
			New:     "if now.Sub(s.heard) >= 1000*s.times.silence() {",
			FoundBy: []Finder{{dir, "TestHoldSilence"}},
		},
		{
			Name: "stream-silence-releases", Invariant: "I1", File: dir + "/hold_keep.go",
			Breaks:  "A client that acknowledges nothing loses its lock at once, though it may hear.",
			Old:     "cause: \"silent\", detail: errSilent.Error()}, false",
			New:     "cause: \"silent\", detail: errSilent.Error()}, true",
			FoundBy: []Finder{{dir, "TestHoldSilence"}},
		},
		{
			Name: "superseded-stream-ends-the-lease", Invariant: "I1", File: dir + "/holds.go",
			Breaks:  "A stream whose key has come again ends the lease that the later stream has.",
			Old:     "\tif h.stream != s {\n\t\treturn false\n\t}",
			New:     "",
			FoundBy: []Finder{{dir, "TestHoldTwice"}},
		},
		{
			Name: "drain-releases", Invariant: "I1", File: dir + "/leasedoor.go",
			Breaks:  "A server that stops releases what its streams hold.",
			Old:     "\t\td.holds.leave()\n",
			New:     "",
			FoundBy: []Finder{{dir, "TestHoldDrain"}},
		},
		{
			Name: "events-hide-a-gap", File: "httplock/server/internal/eventdoor/ring.go",
			Breaks:  "A reader that comes back too late is not told that it has missed something.",
			Old:     "return g.first, false",
			New:     "return g.first, true",
			FoundBy: []Finder{{"httplock/server/internal/eventdoor", "TestGaps"}},
		},
		{
			Name: "events-of-others", File: "httplock/server/internal/eventdoor/eventdoor.go",
			Breaks:  "A reader hears of names that it may not see.",
			Old:     "strings.HasPrefix(e.Name, v.prefix) && v.r.Shows(caller.Read, e.Name)",
			New:     "strings.HasPrefix(e.Name, v.prefix)",
			FoundBy: []Finder{{"httplock/server/internal/eventdoor", "TestPrefixes"}},
		},
	}
}
