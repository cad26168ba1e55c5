package member

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/rediscore/doctor"
)

// String returns the address of the server, without credentials.
func (m *member) String() string {
	if m.addr != "" {
		return m.addr
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.engine == nil {
		return ""
	}
	return strings.Join(slices.Sorted(maps.Keys(m.engine.Store().Conn().Nodes())), ",")
}

// Check implements quorumlock.Checker; see doctor.Check.
func (m *member) Check(ctx context.Context, req driver.DiagnoseRequest, quarantine time.Duration) (run string, d driver.Diagnosis, err error) {
	reaching, cancel := context.WithTimeout(ctx, doctor.Limit)
	e, err := m.connect(reaching)
	cancel()
	if err != nil {
		return "", driver.Diagnosis{}, err
	}
	return doctor.Check(ctx, e, m, req, quarantine)
}
