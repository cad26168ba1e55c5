package fence

import "context"

// Marks is the store of a guard in front of a service: Gate.Marks, or a store of the
// caller's. Both methods must apply the rule of this package and return a *StaleError for a
// claim that they refuse; any other error means that the store could not decide.
type Marks interface {
	Advance(ctx context.Context, resource string, c Claim) error
	Check(ctx context.Context, resource string, c Claim) error
}

// A Writer is a Marks that can keep other holders out while a write runs. A
// guard prefers it to Check.
type Writer interface {
	// Write must check the claim and, if it is accepted, call write before it
	// accepts another claim for the resource. It must not return an error of
	// its own after it has called write.
	Write(ctx context.Context, resource string, c Claim, write func()) error
}

// Marks returns the gate as a store of marks. It is a Writer too, and gives up
// the wait for another holder's write when ctx ends.
func (g *Gate) Marks() Marks { return gateMarks{g} }

type gateMarks struct{ gate *Gate }

func (m gateMarks) Advance(ctx context.Context, resource string, c Claim) error {
	return m.gate.write(ctx, resource, c, func() error { return nil })
}

func (m gateMarks) Check(ctx context.Context, resource string, c Claim) error {
	return m.Advance(ctx, resource, c)
}

func (m gateMarks) Write(ctx context.Context, resource string, c Claim, write func()) error {
	return m.gate.write(ctx, resource, c, func() error { write(); return nil })
}
