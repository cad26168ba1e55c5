//go:build unix

package recipes

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
)

// TestServerDeployment: the pod is given the time that it takes to its end, asks what the
// server answers, and starts it with flags that it has.
func TestServerDeployment(t *testing.T) {
	var d apps.Deployment
	strictly(t, read(t, "kubernetes/server.yaml"), &d)
	pod := d.Spec.Template.Spec
	c := pod.Containers[0]
	var drain time.Duration
	for _, arg := range c.Command {
		if text, found := strings.CutPrefix(arg, "--drain="); found {
			drain, _ = time.ParseDuration(text) // 0 fails below
		}
	}
	stop := time.Duration(c.Lifecycle.PreStop.Sleep.Seconds)*time.Second + drain
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; drain == 0 || grace <= stop {
		t.Errorf("it has %s, and takes %s", grace, stop)
	}
	if ready, live := c.ReadinessProbe.HTTPGet, c.LivenessProbe.HTTPGet; ready.Path != "/readyz" || live.Path != "/healthz" {
		t.Errorf("it is asked for %s and %s", ready.Path, live.Path)
	}
	for k, v := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[k] != v {
			t.Errorf("the pod has not the label %s=%s", k, v)
		}
	}
	f := newFleet(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(f.bin, c.Command[0]), c.Command[1:]...)
	cmd.Env = append(cmd.Environ(), "HOLDFAST_STORE="+f.store)
	out, _ := cmd.CombinedOutput() // its status is checked
	if status := cmd.ProcessState.ExitCode(); status != 78 || !strings.Contains(string(out), "/tls/tls.crt") {
		t.Errorf("status %d, want 78, because there is no certificate here:\n%s", status, out)
	}
}
