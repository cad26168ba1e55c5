package mutant

// wireMutants are faults of the wire that the tests of networks stand on: a
// cut that does not cut would make everything else pass.
func wireMutants() []Mutant {
	return []Mutant{
		{
			Name: "wire-cut-does-nothing", File: "systest/net/fault.go",
			Breaks:  "A cut between two hosts of the tests' network loses nothing.",
			Old:     "w.cuts[[2]*Host{from, to}] = true",
			New:     "w.cuts[[2]*Host{from, to}] = false",
			FoundBy: []Finder{{"systest/net", "TestCuts"}},
		},
		{
			Name: "wire-cuts-both-ways", File: "systest/net/wire.go",
			Breaks:  "A cut of one direction cuts the other, too.",
			Old:     "w.cuts[[2]*Host{from, to}] ||",
			New:     "w.cuts[[2]*Host{from, to}] || w.cuts[[2]*Host{to, from}] ||",
			FoundBy: []Finder{{"systest/net", "TestCuts"}},
		},
		{
			Name: "wire-port-lets-answers-pass", File: "systest/net/wire.go",
			Breaks:  "A port that is cut still sends.",
			Old:     "netip.AddrPortFrom(from.Addr, src)",
			New:     "netip.AddrPortFrom(from.Addr, src*0)",
			FoundBy: []Finder{{"systest/net", "TestPort"}},
		},
		{
			Name: "wire-heals-what-it-forgot", File: "systest/net/wire.go",
			Breaks:  "A connection that was forgotten lives again with its next packet.",
			Old:     "} else if _, known := w.flows[f]; !known {",
			New:     "} else {",
			FoundBy: []Finder{{"systest/net", "TestForget"}},
		},
		{
			Name: "wire-vanished-host-returns", File: "systest/net/fault.go",
			Breaks:  "A host that vanished is there again when the network heals.",
			Old:     "\tclear(w.ports)\n",
			New:     "\tclear(w.ports)\n\tfor _, h := range w.hosts {\n\t\th.gone = false\n\t}\n",
			FoundBy: []Finder{{"systest/net", "TestVanishedStaysAway"}},
		},
		{
			Name: "wire-order-by-chance", File: "systest/net/queue.go",
			Breaks:  "Packets that arrive in the same instant change their order.",
			Old:     "return q[i].order < q[j].order",
			New:     "return q[i].order%3 < q[j].order%3",
			FoundBy: []Finder{{"systest/net", "TestDelay"}},
		},
		{
			Name: "wire-black-hole-off-by-one", File: "systest/net/wire.go",
			Breaks:  "A path takes packets that are one byte too long for it.",
			Old:     "len(p) > l.mtu",
			New:     "len(p) > l.mtu+1",
			FoundBy: []Finder{{"systest/net", "TestMTU"}},
		},
	}
}
