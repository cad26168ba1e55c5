package holdfast

// A leaseHeap implements heap.Interface: leases by the time at which they need
// attention. The keeper's mutex guards it.
type leaseHeap []*Lease

func (h leaseHeap) Len() int           { return len(h) }
func (h leaseHeap) Less(i, j int) bool { return h[i].slot.at.Before(h[j].slot.at) }

func (h leaseHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].slot.index, h[j].slot.index = i+1, j+1
}

func (h *leaseHeap) Push(x any) {
	l := x.(*Lease)
	*h = append(*h, l)
	l.slot.index = len(*h)
}

func (h *leaseHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	l.slot.index = 0
	return l
}
