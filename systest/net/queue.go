package net

import "time"

// A delayed packet is under way.
type delayed struct {
	at     time.Time // when it arrives
	order  int       // breaks ties of at
	to     *Host
	packet packet
}

// A queue is a heap of delayed packets by arrival time.
type queue []delayed

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].at.Equal(q[j].at) {
		return q[i].order < q[j].order
	}
	return q[i].at.Before(q[j].at)
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *queue) Push(x any) { *q = append(*q, x.(delayed)) }

func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
