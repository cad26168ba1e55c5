package mutant

const (
	serving   = "cmd/holdfast/internal/serve"
	leasedoor = "httplock/server/internal/leasedoor"
)

// serveMutants are faults of the command serve: where it listens, and how it ends.
func serveMutants() []Mutant {
	return []Mutant{
		{
			Name: "drain-releases-what-it-cuts-off", Invariant: "I1", File: leasedoor + "/hold_end.go",
			Breaks:  "A server that drains takes a connection that it closes itself for one that the client has hung up, and releases the lock.",
			Old:     "	case s.draining():\n",
			New:     "	case false:\n",
			FoundBy: []Finder{{leasedoor, "TestHoldCutByDrain"}},
		},
		{
			Name: "serve-takes-work-while-it-drains", File: serving + "/serve.go",
			Breaks:  "After TERM a server takes new work, which its end cuts off.",
			Old:     "	s.locks.Drain()\n",
			New:     "",
			FoundBy: []Finder{{command, "TestServeDrainWaits"}},
		},
		{
			Name: "serve-does-not-wait-for-what-was-begun", File: serving + "/traffic.go",
			Breaks:  "TERM cuts off requests that are at work, whose outcome nobody knows then.",
			Old:     "	if t.draining && t.begun == 0 {\n",
			New:     "	if t.draining && t.begun >= 0 {\n",
			FoundBy: []Finder{{command, "TestServeDrainWaits"}},
		},
		{
			Name: "serve-is-ready-while-it-drains", File: serving + "/health.go",
			Breaks:  "A load balancer goes on sending requests to a server that is about to stop.",
			Old:     "	if s.draining.Load() {\n",
			New:     "	if false {\n",
			FoundBy: []Finder{{command, "TestServeDrainWaits"}},
		},
		{
			Name: "serve-ends-with-a-second-hangup", File: "cmd/holdfast/internal/cli/serve_run.go",
			Breaks:  "HUP, which reloads files, cuts off a server that drains.",
			Old:     "			if got != syscall.SIGHUP {\n",
			New:     "			if true {\n",
			FoundBy: []Finder{{command, "TestServeDrainWaits"}},
		},
		{
			Name: "serve-lets-other-hosts-in", File: "cmd/holdfast/internal/cli/serve_run.go",
			Breaks:  "An address that other hosts can reach is served although nobody has said who may do what.",
			Old:     "	if !public || f.callers != \"\" || f.insecure {\n",
			New:     "	if !public || f.callers == \"\" || f.insecure {\n",
			FoundBy: []Finder{{"cmd/holdfast/internal/cli", "TestMayListen"}},
		},
		{
			Name: "serve-takes-every-address-for-this-host", File: serving + "/address.go",
			Breaks:  "0.0.0.0 counts as a loopback address.",
			Old:     "		return !a.IP.IsLoopback() //",
			New:     "		return !a.IP.IsLoopback() && !a.IP.IsUnspecified() && a.IP != nil //",
			FoundBy: []Finder{{serving, "TestPublic"}},
		},
		{
			Name: "serve-takes-the-socket-of-another-server", File: serving + "/listen.go",
			Breaks:  "A server takes the socket away from one that answers there.",
			Old:     "		return fmt.Errorf(\"somebody answers at %s already\", path)\n",
			New:     "		return nil\n",
			FoundBy: []Finder{{command, "TestServeTakesOverAStaleSocket"}},
		},
		{
			Name: "serve-shows-an-old-certificate", File: serving + "/certificate.go",
			Breaks:  "A certificate that was renewed is not read before the process ends.",
			Old:     "	if of := c.stamps(); of != c.of {\n",
			New:     "	if of := c.stamps(); false {\n",
			FoundBy: []Finder{{command, "TestServeTLS"}},
		},
		{
			Name: "metrics-for-everybody", File: "httplock/server/admit.go",
			Breaks:  "Whoever is known to the server reads metrics, which are about every lock.",
			Old:     "		if !c.MayAll(right, \"\") {\n",
			New:     "		if c == nil {\n",
			FoundBy: []Finder{{"httplock/server", "TestGuard"}},
		},
	}
}
